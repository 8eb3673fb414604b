// What kernels see of a level. A field's own text comes before this file: namespace `field` with REAL, COMPONENTS and more
// (see `mesh::program`).

namespace mesh {

using field::REAL;
using field::COMPONENTS;

constexpr int PATCH = 8, CELLS = 512, FACE = 64, QUARTER = 16;
// Codes of neighbour tables, as in mod.rs.
constexpr int COARSER = -1, OUTSIDE = -2, SELF = 13;
// First child of a patch that has none.
constexpr int LEAF = -1;
// A row of the neighbour table: 27 neighbours, then which codes occur among them.
constexpr int AROUND = 28, HAS_COARSER = 1, HAS_OUTSIDE = 2;

// Everything a gather reads, as `GhostView`; the twin of `DeviceView` in engine/src/field/device/view.rs.
struct View {
  const REAL* level;
  const REAL* coarse_old;
  const REAL* coarse_new;
  const int* neighbours;  // [row][AROUND]
  const int* parent;      // [row]
  const int* first_child; // [row]
  const int* index;       // [row][4]: x, y, z, level
  unsigned* fault;        // [0]: 0 or the number of a rule; then its place: bits of x, y, z, t
  double weight;          // of coarse_new
  double time;
  double left[3];
  double right[3];
  int domain_cells[3];
  int reserved;
};

// Where the fluxes through the faces between a level and its neighbours in level go: the twin of `RegisterView`. Null slots:
// the level has no such faces.
struct Registers {
  const int* coarse_slot;  // [row][6]: slot of the face as the coarse side, -1: none
  const int* fine_slot;    // [row][6]: as the fine side
  REAL* coarse_flux;       // [slot][COMPONENTS][8][8]
  REAL* attempt;           // [slot][COMPONENTS][4][4]
};

RS_FN const REAL* row_of(const REAL* bank, int row) { return bank + (rs::i64)row * (COMPONENTS * CELLS); }
RS_FN REAL* row_of(REAL* bank, int row) { return bank + (rs::i64)row * (COMPONENTS * CELLS); }

}  // namespace mesh
