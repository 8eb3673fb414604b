// View of a level in kernels. A field's own text comes before this file: namespace `field` with REAL, COMPONENTS and more (see
// `FieldText::text`).

namespace mesh {

using field::REAL;
using field::COMPONENTS;
using field::CENTRING;
using field::SIDE;
namespace parameters = ::nestar_kernels::mesh::parameters;
typedef parameters::GatherView<REAL> GatherView;
typedef parameters::FluxRegisterView<REAL> FluxRegisterView;

constexpr int PATCH = 8, CELLS = 512, FACE = 64, QUARTER = 16;
// Centring, values per component, and groups of components with equal positions, as in Centring.
constexpr int IN_CELLS = 0, ON_FACES = 1, ON_EDGES = 2;
constexpr int VALUES = CENTRING == IN_CELLS ? SIDE * SIDE * SIDE : CENTRING == ON_FACES ? 9 * 64 : 81 * 8;
constexpr int GROUPS = CENTRING == IN_CELLS ? 1 : 3;
// Codes of neighbour tables, as in mod.rs.
constexpr int COARSER = -1, OUTSIDE = -2, SELF = 13;
// First child of a patch that has none.
constexpr int LEAF = -1;
// Row of the neighbour table: 27 neighbours, then a bit mask of the codes among them and of ownership by another rank.
constexpr int AROUND = 28, HAS_COARSER = 1, HAS_OUTSIDE = 2, IS_COPY = 4;

// Direction in a table of 27 of the neighbour through face f (x-, x+, y-, y+, z-, z+).
RS_FN int face_direction(int f) { return f < 2 ? 12 + 2 * f : f < 4 ? 10 + 6 * (f - 2) : 4 + 18 * (f - 4); }

RS_FN const REAL* row_of(const REAL* bank, int row) { return bank + (rs::i64)row * (COMPONENTS * VALUES); }
RS_FN REAL* row_of(REAL* bank, int row) { return bank + (rs::i64)row * (COMPONENTS * VALUES); }

// 1 if the values of component c lie on the sides of cells along an axis, else 0.
RS_FN constexpr int staggered(int c, int axis) {
  return CENTRING == IN_CELLS ? 0 : (c % 3 == axis) == (CENTRING == ON_FACES) ? 1 : 0;
}
// Offset between values of component c along an axis.
RS_FN constexpr int step_along(int c, int axis) {
  return axis == 0 ? 1 : (SIDE + staggered(c, 0)) * (axis == 1 ? 1 : SIDE + staggered(c, 1));
}
// Index of a value among those of its component.
RS_FN constexpr int value_at(int c, int x, int y, int z) {
  return x + step_along(c, 1) * y + step_along(c, 2) * z;
}

// Changes a state so that component and remainder together are those before the operation that made it, see keep_remainder in states.rs.
RS_FN void keep_remainder(REAL* u, const REAL* kept) {
  REAL own[COMPONENTS];
  for (int c = 0; c < COMPONENTS; ++c) own[c] = u[c];
  field::to_remainder(own);
  for (int c = 0; c < COMPONENTS; ++c) u[c] = ::nestar_kernels::mesh::fluxes::with_kept_remainder<REAL>(u[c], kept[c], own[c]);
}

}  // namespace mesh
