// What kernels see of a level. A field's own text comes before this file: namespace `field` with REAL, COMPONENTS and more
// (see `mesh::program`).

namespace mesh {

using field::REAL;
using field::COMPONENTS;
namespace parameters = ::nestar_kernels::mesh::parameters;
typedef parameters::View<REAL> View;
typedef parameters::Registers<REAL> Registers;

constexpr int PATCH = 8, CELLS = 512, FACE = 64, QUARTER = 16;
// Codes of neighbour tables, as in mod.rs.
constexpr int COARSER = -1, OUTSIDE = -2, SELF = 13;
// First child of a patch that has none.
constexpr int LEAF = -1;
// A row of the neighbour table: 27 neighbours, then which codes occur among them.
constexpr int AROUND = 28, HAS_COARSER = 1, HAS_OUTSIDE = 2;

RS_FN const REAL* row_of(const REAL* bank, int row) { return bank + (rs::i64)row * (COMPONENTS * CELLS); }
RS_FN REAL* row_of(REAL* bank, int row) { return bank + (rs::i64)row * (COMPONENTS * CELLS); }

}  // namespace mesh
