// Fills ghost cells outside the domain: the twin of boundary.rs. Follows view.cuh.

#if RS_DEVICE
#define RS_NOINLINE static __device__ __noinline__
#define EACH_COMPONENT(c) _Pragma("unroll (mesh::UNROLLED)") for (int c = 0; c < mesh::COMPONENTS; ++c)
#else
#define RS_NOINLINE static __attribute__((noinline, unused))
#define EACH_COMPONENT(c) for (int c = 0; c < mesh::COMPONENTS; ++c)
#endif

namespace mesh {

// Long component lists are not unrolled, because their states do not fit into registers.
constexpr int UNROLLED = COMPONENTS <= 8 ? COMPONENTS : 1;
// Kinds of boundaries, as in FaceRule.
constexpr int PERIODIC = 0, OUTFLOW = 1, REFLECTING = 2, RULE = 3;

// Stores the components of a cell in a block of N^3 cells, `[component][N][N][N]`.
template<int N> struct Store {
  RS_MEMBER void operator()(REAL* block, int cell, const REAL* u) const {
    EACH_COMPONENT(c) block[c * (N * N * N) + cell] = u[c];
  }
};

using ::nestar_kernels::mesh::block::cell_centre;

// Returns the side of `axis` (0 or 1) on which a cell lies outside the domain; -1 inside, or if the axis is periodic.
RS_FN int outer_side(int i, int cells, int axis) {
  const int side = i < 0 ? 0 : i >= cells ? 1 : -1;
  return side < 0 || field::kind(axis, side) == PERIODIC ? -1 : side;
}

RS_FN int wrapped(int i, int cells) { return (i % cells + cells) % cells; }

// Returns the centre of a cell for which rules are evaluated.
RS_FN rs::arr<double, 3> centre_of(const GatherView& v, const int* cells, const int* asked) {
  rs::arr<double, 3> centre;
  for (int a = 0; a < 3; ++a) centre[a] = cell_centre(asked[a], cells[a], v.left[a], v.right[a]);
  return centre;
}

// Maps cell `at` of a level with `cells` cells to the inner cell from which it takes its state, see Boundaries::fill. Returns the axes of
// reflecting walls as bits.
RS_NOINLINE int source_of(const GatherView& v, const int* cells, int* at) {
  int side[3], asked[3], walls = 0, more = 0;
  for (int a = 0; a < 3; ++a) {
    side[a] = outer_side(at[a], cells[a], a);
    asked[a] = side[a] < 0 ? wrapped(at[a], cells[a]) : at[a];
    if (side[a] >= 0 && field::kind(a, side[a]) == REFLECTING) more |= 1 << a;
  }
  do {
    for (int a = 0; a < 3; ++a)
      if (more >> a & 1) asked[a] = side[a] == 0 ? -1 - at[a] : 2 * cells[a] - 1 - at[a];
    walls |= more;
    more = 0;
    const rs::arr<double, 3> centre = centre_of(v, cells, asked);
    for (int a = 0; a < 3; ++a)
      if (side[a] >= 0 && !(walls >> a & 1) && field::kind(a, side[a]) == RULE &&
          field::wall(a, side[a], centre.d, v.time, v.fault))
        more |= 1 << a;
  } while (more);
  for (int a = 0; a < 3; ++a)
    if (side[a] >= 0) at[a] = walls >> a & 1 ? asked[a] : side[a] * (cells[a] - 1);
  return walls;
}

// Replaces the loader of inner cells if no rule reads more than the nearest one, so that a single instance serves all loaders.
struct NoCells {
  template<class Load> RS_MEMBER NoCells(const Load&) {}
  RS_MEMBER void operator()(const int*, REAL*) const {}
};
template<class Load, bool READ = (field::INNER > 1)> struct Further { typedef Load t; };
template<class Load> struct Further<Load, false> { typedef NoCells t; };

// Turns the state `u` of the cell `inside` (from source_of) into that of the ghost cell `at` outside the domain. load(cell, u) gives the
// state of any other inner cell.
template<class Load>
RS_NOINLINE void apply_rules(const GatherView& v, int level, const int* cells, const int* at, const int* inside, int walls, REAL* u,
                             const Load& load) {
  int asked[3], rules = 0;
  REAL states[3][COMPONENTS];
  for (int a = 0; a < 3; ++a) {
    const bool outside = outer_side(at[a], cells[a], a) >= 0;
    asked[a] = !outside ? wrapped(at[a], cells[a]) : walls >> a & 1 ? inside[a] : at[a];
  }
  for (int a = 0; a < 3; ++a) {
    const int side = outer_side(at[a], cells[a], a);
    if (side < 0 || walls >> a & 1 || field::kind(a, side) != RULE) continue;
    const rs::arr<double, 3> centre = centre_of(v, cells, asked);
    REAL inner[field::INNER * COMPONENTS];
    for (int c = 0; c < COMPONENTS; ++c) inner[c] = states[rules][c] = u[c];
    for (int n = 1; n < field::INNER; ++n) {
      int cell[3] = {inside[0], inside[1], inside[2]};
      cell[a] += side == 0 ? n : -n;
      load(cell, inner + n * COMPONENTS);
    }
    const int layer = side == 0 ? -1 - asked[a] : asked[a] - cells[a];
    const field::GhostQuery asks{v.left.d, v.right.d, cells, level, asked, centre.d, inner, v.time, layer};
    field::ghost(a, side, asks, states[rules++], v.fault);
  }
  for (int c = 0; c < COMPONENTS; ++c) {
    if (rules == 1) u[c] = states[0][c];
    if (rules > 1)
      u[c] = ::nestar_kernels::mesh::boundary::mean_of_rules<REAL>(states[0][c], states[1][c], states[rules - 1][c], rules == 3);
    for (int a = 0; a < 3; ++a)
      if (walls >> a & 1 && field::normal(a) >> c & 1) u[c] = -u[c];
  }
}

}  // namespace mesh
