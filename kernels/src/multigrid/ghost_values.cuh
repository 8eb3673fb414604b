// Ghost values: device version of ghost_values.rs. Follows the gather of the field of the potential, which has one
// component.

namespace multigrid {

using field::REAL;
using mesh::AROUND;
using mesh::CELLS;
using mesh::PATCH;
using mesh::GatherView;
namespace stencil = ::nestar_kernels::multigrid::stencil;
namespace mirrors = ::nestar_kernels::multigrid::mirrors;
typedef ::nestar_kernels::multigrid::device::SourceParameters<REAL> Source;
typedef ::nestar_kernels::multigrid::device::ExteriorParameters<REAL> Exterior;
typedef ::nestar_kernels::multigrid::device::LevelParameters<REAL> Level;
typedef ::nestar_kernels::multigrid::device::CoarseChangeParameters<REAL> Change;
typedef ::nestar_kernels::multigrid::device::CoarseGridParameters<REAL> Coarse;
typedef ::nestar_kernels::multigrid::device::ProlongCorrectionParameters<REAL> Prolong;
typedef ::nestar_kernels::multigrid::device::CoarseCycleParameters<REAL> Corrections;
typedef ::nestar_kernels::multigrid::device::LevelPairParameters<REAL> Pair;
typedef ::nestar_kernels::multigrid::device::LargestResidualParameters<REAL> Largest;
typedef rs::arr<REAL, 3> Three;

constexpr int HALF = PATCH / 2;

// Work of a block: 512 cells of rows of N^3.
constexpr int CELLS_PER_BLOCK = 512;
#define EACH_CELL(N, n, cell, count)                                                                         \
  for (int i = launch::thread(), n, cell; i < multigrid::CELLS_PER_BLOCK; i += launch::threads())            \
    if ((n = (launch::block() * multigrid::CELLS_PER_BLOCK + i) / (N * N * N)) < (count) &&                  \
        ((cell = (launch::block() * multigrid::CELLS_PER_BLOCK + i) % (N * N * N)), true))
// Work of a block: cells of one colour of rows of even N, half as many items.
#define EACH_COLOURED(N, n, cell, count, colour)                                                             \
  for (int i = launch::thread(), n, cell; i < multigrid::CELLS_PER_BLOCK / 2; i += launch::threads())        \
    if ((n = (launch::block() * multigrid::CELLS_PER_BLOCK / 2 + i) / (N * N * N / 2)) < (count) &&          \
        ((cell = multigrid::coloured<N>((launch::block() * multigrid::CELLS_PER_BLOCK / 2 + i) % (N * N * N / 2), colour)), true))

// Cell `n` of a colour of a row of N^3.
template<int N> RS_FN int coloured(int n, int colour) {
  const int x = n % (N / 2), y = n / (N / 2) % N, z = n / (N / 2 * N);
  return 2 * x + ((y + z + colour) & 1) + N * (y + N * z);
}

RS_FN Three three(const double* w) { return Three{{(REAL)w[0], (REAL)w[1], (REAL)w[2]}}; }
template<class A> RS_FN Three weights_of(const A& p) { return Three{{(REAL)p.weights[0], (REAL)p.weights[1], (REAL)p.weights[2]}}; }

// Source of Poisson's equation in a cell.
RS_FN REAL source_at(const Source& p, int row, int cell) {
  return stencil::source_of<REAL>(p.density[(rs::i64)row * CELLS + cell], (REAL)p.coefficient, (REAL)p.mean);
}

RS_FN constexpr int power(int n, int axis) { return axis == 0 ? 1 : axis == 1 ? n : n * n; }
RS_FN int floor_div(int x, int n) { return x >= 0 ? x / n : -((n - 1 - x) / n); }
RS_FN int floor_mod(int x, int n) { return x - n * floor_div(x, n); }
RS_FN int direction(int x, int y, int z) { return (z + 1) * 9 + (y + 1) * 3 + x + 1; }
RS_FN int cell_at(const int* to) {
  return floor_mod(to[0], PATCH) + PATCH * (floor_mod(to[1], PATCH) + PATCH * floor_mod(to[2], PATCH));
}
template<int N> RS_FN void place(int cell, int* at) {
  at[0] = cell % N;
  at[1] = cell / N % N;
  at[2] = cell / (N * N);
}

// Neighbours of a cell, and a bit mask of faces without a patch.
template<int N> RS_FN int around(const REAL* bank, const int* neighbours, int row, int cell, rs::arr<REAL, 6>& values) {
  constexpr int VALUES = N * N * N;
  int at[3], missing = 0;
  place<N>(cell, at);
  RS_UNROLL for (int face = 0; face < 6; ++face) {
    const int axis = face / 2, up = face % 2, stride = power(N, axis);
    const bool inside = up ? at[axis] + 1 < N : at[axis] > 0;
    values[face] = REAL(0);
    if (inside) {
      values[face] = bank[(rs::i64)row * VALUES + (up ? cell + stride : cell - stride)];
      continue;
    }
    const int beside = neighbours[(rs::i64)row * AROUND + mesh::face_direction(face)];
    const int far = (N - 1) * stride;
    if (beside >= 0) values[face] = bank[(rs::i64)beside * VALUES + (up ? cell - far : cell + far)];
    else missing |= 1 << face;
  }
  return missing;
}

// A value of the tables around the domain.
RS_FN REAL table_value(const Exterior& e, int place) {
  const REAL first = e.older[place];
  return first + (REAL)e.weight * (e.newer[place] - first);
}

// Evaluates the spline of the table of a face.
RS_FN REAL spline_by_face(const Exterior& e, int face, const int* root, const rs::arr<Three, 3>& weights) {
  const int axis = face / 2, a = (axis + 1) % 3, b = (axis + 2) % 3;
  Three layers;
  for (int layer = 0; layer < 3; ++layer) {
    rs::arr<REAL, 9> values;
    for (int n = 0; n < 9; ++n) {
      rs::arr<int, 3> to{{root[0], root[1], root[2]}};
      to[axis] += layer - 1;
      to[a] += n % 3 - 1;
      to[b] += n / 3 - 1;
      values[n] = table_value(e, e.coefficients + stencil::table_index(e.cells, face, to));
    }
    layers[layer] = weights[axis][layer] * stencil::weighted_sum_3x3<REAL>(values, weights[a], weights[b]);
  }
  return ::nestar_device::math::sums::sum3<REAL>(layers[0], layers[1], layers[2]);
}

// Value in a cell of a level outside the domain: device version of exterior.rs.
RS_NOINLINE REAL exterior_value(const Exterior& e, int level, const int* cell) {
  int root[3];
  bool beyond[3];
  for (int axis = 0; axis < 3; ++axis) {
    root[axis] = cell[axis] >> level;
    beyond[axis] = root[axis] < 0 || root[axis] >= e.cells[axis];
  }
  if (level == 0) {
    const int axis = beyond[0] ? 0 : beyond[1] ? 1 : beyond[2] ? 2 : 0;
    return table_value(e, stencil::table_index(e.cells, 2 * axis + (root[axis] > 0), rs::arr<int, 3>{{root[0], root[1], root[2]}}));
  }
  rs::arr<Three, 3> weights;
  for (int axis = 0; axis < 3; ++axis) weights[axis] = stencil::spline<REAL>(stencil::offset_in_root_cell<REAL>(cell[axis], level));
  // outside edges several faces have the value: use the mean
  Three terms{{REAL(0), REAL(0), REAL(0)}};
  REAL count = REAL(0);
  for (int axis = 0; axis < 3; ++axis)
    if (beyond[axis]) {
      terms[axis] = spline_by_face(e, 2 * axis + (root[axis] > 0), root, weights);
      count = count + REAL(1);
    }
  return ::nestar_device::math::sums::sum3<REAL>(terms[0], terms[1], terms[2]) / count;
}

// The same at a position relative to a row of the level.
RS_FN REAL exterior_value(const Exterior& e, const int* index, int level, int row, const int* place) {
  int cell[3];
  for (int axis = 0; axis < 3; ++axis) cell[axis] = PATCH * index[(rs::i64)row * 4 + axis] + place[axis];
  return exterior_value(e, level, cell);
}

// Bit mask of mirrored faces at which a row of a level lies.
RS_FN int mirrors_beside(const Exterior& e, const int* index, int level, int row) {
  const int* own = index + (rs::i64)row * 4;
  const rs::arr<int, 3> patches{{(e.cells[0] / PATCH) << level, (e.cells[1] / PATCH) << level, (e.cells[2] / PATCH) << level}};
  return e.mirrored == 0 ? 0 : mirrors::mirrors_beside(e.mirrored, patches, rs::arr<int, 3>{{own[0], own[1], own[2]}});
}

// Reflects a position outside mirrored faces of a row of N^3 cells back into the domain.
template<int N> RS_FN void reflect(int faces, int* place) {
  const auto cell = mirrors::reflected(faces, rs::arr<int, 3>{{place[0], place[1], place[2]}}, N);
  for (int axis = 0; axis < 3; ++axis) place[axis] = cell[axis];
}

// Row of a position relative to a row; negative if there is none.
RS_FN int row_at(const int* neighbours, int row, const int* to) {
  return neighbours[(rs::i64)row * AROUND + direction(floor_div(to[0], PATCH), floor_div(to[1], PATCH), floor_div(to[2], PATCH))];
}

// A level at one time, and the potential outside the domain.
struct CoarserLevel {
  const REAL *older, *newer;
  REAL weight;
  const int *neighbours, *index;
  int number;
  const Exterior& exterior;

  RS_MEMBER REAL value(int row, int cell) const {
    const REAL first = older[(rs::i64)row * CELLS + cell];
    return first + weight * (newer[(rs::i64)row * CELLS + cell] - first);
  }
  // Searches only once, after the reflection: NVRTC 13.0 compiles a second search to wrong code.
  RS_MEMBER REAL at(int row, const int* to) const {
    int place[3] = {to[0], to[1], to[2]};
    if (exterior.mirrored != 0) reflect<PATCH>(mirrors_beside(exterior, index, number, row), place);
    const int beside = row_at(neighbours, row, place);
    return beside < 0 ? exterior_value(exterior, index, number, row, place) : value(beside, cell_at(place));
  }
};

RS_FN CoarserLevel coarser_level(const GatherView& v, const Exterior& e, int row) {
  return CoarserLevel{v.coarse_old, v.coarse_new, (REAL)v.weight, v.neighbours, v.index, v.index[(rs::i64)row * 4 + 3] - 1, e};
}
RS_FN CoarserLevel present(const GatherView& v, const Exterior& e, int row) {
  return CoarserLevel{v.level, v.level, REAL(1), v.neighbours, v.index, v.index[(rs::i64)row * 4 + 3], e};
}

// Position `n` of the 3 x 3 around a position, normal to an axis.
RS_FN rs::arr<int, 3> in_plane(const int* middle, int axis, int n) {
  rs::arr<int, 3> to;
  RS_UNROLL for (int other = 0; other < 3; ++other)
    to[other] = middle[other] + (other == (axis + 1) % 3 ? n % 3 - 1 : other == (axis + 2) % 3 ? n / 3 - 1 : 0);
  return to;
}

// The 3 x 3 values around a position relative to a row, normal to an axis.
RS_FN rs::arr<REAL, 9> plane_values(const CoarserLevel& level, int row, const int* middle, int axis) {
  rs::arr<REAL, 9> values;
  rs::arr<int, 9> beside;
  bool all = level.exterior.mirrored == 0;
  // independent loads, so that the device waits for memory twice and not 18 times
  RS_UNROLL for (int n = 0; n < 9; ++n) {
    beside[n] = row_at(level.neighbours, row, in_plane(middle, axis, n).d);
    all = all && beside[n] >= 0;
  }
  if (all) {
    RS_UNROLL for (int n = 0; n < 9; ++n) values[n] = level.value(beside[n], cell_at(in_plane(middle, axis, n).d));
    return values;
  }
  for (int n = 0; n < 9; ++n) values[n] = level.at(row, in_plane(middle, axis, n).d);
  return values;
}

// Cell of the parent that contains a cell of a row.
RS_FN void coarse_place(const GatherView& v, int row, const int* at, int* to) {
  for (int axis = 0; axis < 3; ++axis) to[axis] = HALF * (v.index[(rs::i64)row * 4 + axis] & 1) + at[axis] / 2;
}

// Coarse value in the plane `depth` coarse cells outside a face of a patch, beside a cell at the face.
RS_FN REAL plane(const GatherView& v, const Exterior& e, int row, const int* at, int face, int depth) {
  const int axis = face / 2;
  int middle[3];
  coarse_place(v, row, at, middle);
  middle[axis] += face % 2 == 0 ? -depth : depth;
  const auto values = plane_values(coarser_level(v, e, row), v.parent[row], middle, axis);
  return stencil::interpolate_in_plane<REAL>(values, at[(axis + 1) % 3] & 1, at[(axis + 2) % 3] & 1);
}

// Returns true if a face of a row is a mirrored face of the domain.
RS_FN bool is_mirror(const GatherView& v, const Exterior& e, int row, int face) {
  return mirrors_beside(e, v.index, v.index[(rs::i64)row * 4 + 3], row) >> face & 1;
}

// Value of the root level in a layer outside a face of the domain, beside a cell of a row.
RS_FN REAL domain_ghosts(const GatherView& v, const Exterior& e, int row, const int* at, int face, int layer) {
  int to[3] = {at[0], at[1], at[2]};
  to[face / 2] = face % 2 == 0 ? -layer : PATCH - 1 + layer;
  return exterior_value(e, v.index, 0, row, to);
}

// Ghost value outside a face of a row where its level has no patch, beside a cell at the face.
RS_NOINLINE REAL face_ghost(const GatherView& v, const Exterior& e, int row, int cell, int face) {
  int at[3];
  place<PATCH>(cell, at);
  if (is_mirror(v, e, row, face)) return v.level[(rs::i64)row * CELLS + cell];
  if (v.index[(rs::i64)row * 4 + 3] == 0) return domain_ghosts(v, e, row, at, face, 1);
  const int axis = face / 2, stride = face % 2 == 0 ? power(PATCH, axis) : -power(PATCH, axis);
  const REAL* own = v.level + (rs::i64)row * CELLS + cell;
  return stencil::laplacian_ghost<REAL>(plane(v, e, row, at, face, 1), rs::arr<REAL, 2>{{own[0], own[stride]}});
}

// The larger of two numbers that are not negative; a NaN stays.
RS_FN REAL larger(REAL most, REAL value) { return value > most || value != value ? value : most; }

// A kernel with one patch per block; many blocks per multiprocessor hide memory latency.
#define PATCH_KERNEL(name, Params) KERNEL_BOUNDS(name, Params, 256, 8)

// Cell n of the 8 x 8 at a face: by its coordinates along the other two axes, the lower axis first.
RS_FN int at_face(int face, int n) {
  const int axis = face / 2, low = n % power(PATCH, axis), edge = face % 2 == 0 ? 0 : PATCH - 1;
  return low + edge * power(PATCH, axis) + (n - low) * PATCH;
}

// A patch with LAYERS ghost layers outside its faces, for shared memory. Values outside its edges are not set.
template<int LAYERS> struct Tile {
  static constexpr int SIDE = PATCH + 2 * LAYERS;
  REAL values[SIDE * SIDE * SIDE];

  static RS_MEMBER constexpr int stride(int axis) { return power(SIDE, axis); }
  // Index of a cell.
  static RS_MEMBER int of(int cell) {
    int at[3];
    place<PATCH>(cell, at);
    return at[0] + LAYERS + SIDE * (at[1] + LAYERS + SIDE * (at[2] + LAYERS));
  }
  // Index of the ghost cell `layer` outside a face, beside a cell at the face.
  static RS_MEMBER int ghost(int cell, int face, int layer) {
    return of(cell) + (face % 2 == 0 ? -layer : layer) * stride(face / 2);
  }
  RS_MEMBER rs::arr<REAL, 6> around(int cell) const {
    const REAL* own = values + of(cell);
    return {{own[-1], own[1], own[-SIDE], own[SIDE], own[-SIDE * SIDE], own[SIDE * SIDE]}};
  }
};

template<int LAYERS> RS_FN void fill_inside(Tile<LAYERS>& tile, const GatherView& v, int row) {
  EACH(cell, CELLS) tile.values[Tile<LAYERS>::of(cell)] = v.level[(rs::i64)row * CELLS + cell];
}

// Value outside a face, beside a cell at the face.
RS_FN REAL face_value(const GatherView& v, const Exterior& e, int row, int cell, int face) {
  const int beside = v.neighbours[(rs::i64)row * AROUND + mesh::face_direction(face)];
  const int far = (PATCH - 1) * power(PATCH, face / 2);
  return beside >= 0 ? v.level[(rs::i64)beside * CELLS + (face % 2 == 0 ? cell + far : cell - far)] : face_ghost(v, e, row, cell, face);
}

// Fills the patch and its ghost values: beside all cells at faces, or beside those of a colour. Ends with a barrier.
RS_FN void fill(Tile<1>& tile, const GatherView& v, const Exterior& e, int row) {
  fill_inside(tile, v, row);
  EACH(i, 6 * PATCH * PATCH) {
    const int face = i / (PATCH * PATCH), cell = at_face(face, i % (PATCH * PATCH));
    tile.values[Tile<1>::ghost(cell, face, 1)] = face_value(v, e, row, cell, face);
  }
  launch::barrier();
}
RS_FN void fill_before(Tile<1>& tile, const Level& p, int row, int colour) {
  constexpr int CELLS_OF_COLOUR = PATCH * PATCH / 2;
  fill_inside(tile, p.view, row);
  EACH(i, 6 * CELLS_OF_COLOUR) {
    const int face = i / CELLS_OF_COLOUR, n = 2 * (i % CELLS_OF_COLOUR);
    // rows of the face start with alternating colours
    const int odd = (n / PATCH + (face % 2 == 0 ? 0 : PATCH - 1) + colour) & 1;
    const int cell = at_face(face, n + odd);
    tile.values[Tile<1>::ghost(cell, face, 1)] = face_value(p.view, p.exterior, row, cell, face);
  }
  launch::barrier();
}

// Two values outside a face beside a cell at it, the nearer first, for slopes.
RS_FN rs::arr<REAL, 2> two_ghost_layers(const GatherView& v, const Exterior& e, const Source& source, REAL width, int row, int cell, int face) {
  const int axis = face / 2, inward = face % 2 == 0 ? power(PATCH, axis) : -power(PATCH, axis);
  const int beside = v.neighbours[(rs::i64)row * AROUND + mesh::face_direction(face)];
  if (beside >= 0) {
    const bool covered = v.first_child[beside] != mesh::LEAF && v.first_child[row] == mesh::LEAF;
    rs::arr<REAL, 2> values;
    RS_UNROLL for (int n = 0; n < 2; ++n) {
      const int there = cell + (PATCH - 1 - n) * inward;
      values[n] = v.level[(rs::i64)beside * CELLS + there];
      if (covered) values[n] = values[n] - stencil::average_excess<REAL>(source_at(source, beside, there), width);
    }
    return values;
  }
  const REAL* own = v.level + (rs::i64)row * CELLS + cell;
  int at[3];
  place<PATCH>(cell, at);
  if (is_mirror(v, e, row, face)) return {{own[0], own[inward]}};
  if (v.index[(rs::i64)row * 4 + 3] == 0) return {{domain_ghosts(v, e, row, at, face, 1), domain_ghosts(v, e, row, at, face, 2)}};
  const rs::arr<REAL, 2> planes{{plane(v, e, row, at, face, 1), plane(v, e, row, at, face, 2)}};
  return stencil::slope_ghosts<REAL>(planes, rs::arr<REAL, 2>{{own[0], own[inward]}});
}

// Fills the patch and two ghost layers, for slopes. Ends with a barrier.
RS_FN void fill_for_slopes(Tile<2>& tile, const GatherView& v, const Exterior& e, const Source& source, const Three& width, int row) {
  fill_inside(tile, v, row);
  EACH(i, 6 * PATCH * PATCH) {
    const int face = i / (PATCH * PATCH), cell = at_face(face, i % (PATCH * PATCH));
    const auto values = two_ghost_layers(v, e, source, width[face / 2], row, cell, face);
    RS_UNROLL for (int n = 0; n < 2; ++n) tile.values[Tile<2>::ghost(cell, face, n + 1)] = values[n];
  }
  launch::barrier();
}

// Coarse values of a patch: of its own HALF^3 cells and of one layer around them.
constexpr int WIDE = HALF + 2;

// Position of value i of them, from -1 to HALF along each axis.
RS_FN void wide_place(int i, int* to) {
  place<WIDE>(i, to);
  for (int axis = 0; axis < 3; ++axis) to[axis] -= 1;
}

// Values of the coarse cell that contains a fine one and of its neighbours on the side of that cell, as bits z y x.
RS_FN rs::arr<REAL, 8> octant(const REAL* wide, int cell) {
  int at[3], middle = 0, step[3];
  place<PATCH>(cell, at);
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    middle += (at[axis] / 2 + 1) * power(WIDE, axis);
    step[axis] = at[axis] % 2 == 1 ? power(WIDE, axis) : -power(WIDE, axis);
  }
  rs::arr<REAL, 8> values;
  RS_UNROLL for (int bits = 0; bits < 8; ++bits)
    values[bits] = wide[middle + (bits & 1) * step[0] + (bits >> 1 & 1) * step[1] + (bits >> 2) * step[2]];
  return values;
}

}  // namespace multigrid
