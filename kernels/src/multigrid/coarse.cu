// Coarse grids of corrections, with 4^3, 2^3 and 1 cells per row: device version of coarse.rs. Follows
// ghost_values.cuh.

namespace multigrid {

// Bit mask of mirrored faces at which a row lies.
RS_FN int mirrors_beside(const Coarse& p, int row) {
  const int* index = p.index + (rs::i64)row * 4;
  return p.mirrored == 0 ? 0 : mirrors::mirrors_beside(p.mirrored, p.patches, rs::arr<int, 3>{{index[0], index[1], index[2]}});
}

template<int N> RS_FN REAL laplacian(const Coarse& p, int row, int cell, REAL& whole) {
  const REAL u = p.values[(rs::i64)row * (N * N * N) + cell], mirror = (REAL)p.mirror;
  rs::arr<REAL, 6> values;
  const int missing = around<N>(p.values, p.neighbours, row, cell, values);
  const int same = missing == 0 ? 0 : mirrors_beside(p, row);
  RS_UNROLL for (int face = 0; face < 6; ++face)
    if (missing >> face & 1) values[face] = same >> face & 1 ? u : mirror * u;
  const Three weights = weights_of(p);
  whole = stencil::diagonal<REAL>(weights, missing, same, mirror);
  return stencil::laplacian<REAL>(u, values, weights);
}

template<int N> RS_FN void relax(const Coarse& p, int row, int cell) {
  REAL whole;
  const REAL change = laplacian<N>(p, row, cell, whole);
  const rs::i64 at = (rs::i64)row * (N * N * N) + cell;
  p.values[at] = stencil::relaxed<REAL>(p.values[at], change, p.rhs[at], whole, (REAL)p.omega);
}

// Restricts the residual to cell `cell` of the row of half as many cells along each axis, and sets its correction to 0.
template<int N> RS_FN void restrict_residual(const Coarse& p, int row, int cell) {
  constexpr int M = N / 2;
  int at[3];
  place<M>(cell, at);
  rs::arr<REAL, 8> values;
  for (int side = 0; side < 8; ++side) {
    const int x = 2 * at[0] + (side & 1), y = 2 * at[1] + (side >> 1 & 1), z = 2 * at[2] + (side >> 2);
    const int fine = x + N * (y + N * z);
    REAL whole;
    values[side] = p.rhs[(rs::i64)row * (N * N * N) + fine] - laplacian<N>(p, row, fine, whole);
  }
  const rs::i64 to = (rs::i64)row * (M * M * M) + cell;
  p.residual[to] = ::nestar_kernels::mesh::means::mean8<REAL>(values);
  p.correction[to] = REAL(0);
}

// Returns the address of the correction at a position relative to the first cell of a row of M^3; null outside the
// level.
template<int M> RS_FN const REAL* find(const Coarse& p, int row, const int* to) {
  const int step = direction(floor_div(to[0], M), floor_div(to[1], M), floor_div(to[2], M));
  const int beside = p.neighbours[(rs::i64)row * AROUND + step];
  if (beside < 0) return nullptr;
  return p.values + (rs::i64)beside * (M * M * M) + floor_mod(to[0], M) + M * (floor_mod(to[1], M) + M * floor_mod(to[2], M));
}

template<int M, int LEFT> RS_NOINLINE REAL ghost_correction(const Coarse& p, int row, const int* at);

// Returns the correction at a position at most one cell outside the row along LEFT axes.
template<int M, int LEFT = 3> RS_FN REAL correction_at(const Coarse& p, int row, const int* to) {
  const REAL* there = find<M>(p, row, to);
  if constexpr (LEFT > 0) {
    if (!there) return ghost_correction<M, LEFT>(p, row, to);
  }
  return *there;
}

// Ghost value: that of the mirrored cell, or the mean of the values across the boundary along each axis (of existing
// ones, if there are any), times the ghost factor.
template<int M, int LEFT> RS_NOINLINE REAL ghost_correction(const Coarse& p, int row, const int* at) {
  int to[3] = {at[0], at[1], at[2]};
  if constexpr (LEFT == 3) {
    reflect<M>(mirrors_beside(p, row), to);
    const REAL* there = find<M>(p, row, to);
    if (there) return *there;
  }
  bool found[3], any = false;
  int inward[3][3];
  for (int axis = 0; axis < 3; ++axis) {
    for (int n = 0; n < 3; ++n) inward[axis][n] = to[n];
    if (to[axis] < 0) inward[axis][axis] = 0;
    if (to[axis] >= M) inward[axis][axis] = M - 1;
    found[axis] = inward[axis][axis] != to[axis] && find<M>(p, row, inward[axis]);
    any = any || found[axis];
  }
  REAL terms[3] = {REAL(0), REAL(0), REAL(0)}, count = REAL(0);
  for (int axis = 0; axis < 3; ++axis)
    if (inward[axis][axis] != to[axis] && (found[axis] || !any)) {
      terms[axis] = correction_at<M, LEFT - 1>(p, row, inward[axis]);
      count = count + REAL(1);
    }
  return (REAL)p.mirror * (::nestar_device::math::sums::sum3<REAL>(terms[0], terms[1], terms[2]) / count);
}

// Adds the interpolated corrections to a cell of a row of N^3.
template<int N> RS_FN void prolong(const Coarse& p, REAL* to, int row, int cell) {
  constexpr int M = N / 2;
  int at[3];
  place<N>(cell, at);
  rs::arr<REAL, 8> values;
  RS_UNROLL for (int bits = 0; bits < 8; ++bits) {
    int there[3];
    for (int axis = 0; axis < 3; ++axis) there[axis] = at[axis] / 2 + (bits >> axis & 1) * (at[axis] % 2 == 1 ? 1 : -1);
    values[bits] = correction_at<M>(p, row, there);
  }
  REAL& value = to[(rs::i64)row * (N * N * N) + cell];
  value = value + stencil::trilinear<REAL>(values);
}

// Returns true if the only cell of a row has a colour.
RS_FN bool has_colour(const Coarse& p, int row, int colour) {
  const int* index = p.index + (rs::i64)row * 4;
  return ((index[0] + index[1] + index[2]) & 1) == colour;
}

// The kernels below, for all rows by one block; each ends with a barrier.
template<int N> RS_FN void relax_all(const Coarse& p, int times) {
  constexpr int ITEMS = N == 1 ? 1 : N * N * N / 2;
  for (int n = 0; n < times; ++n) {
    EACH(i, p.count * ITEMS) {
      const int row = p.rows[i / ITEMS];
      if constexpr (N > 1) relax<N>(p, row, coloured<N>(i % ITEMS, n % 2));
      else if (has_colour(p, row, n % 2)) relax<1>(p, row, 0);
    }
    launch::barrier();
  }
}
template<int N> RS_FN void restrict_all(const Coarse& p) {
  constexpr int ITEMS = N * N * N / 8;
  EACH(i, p.count * ITEMS) restrict_residual<N>(p, p.rows[i / ITEMS], i % ITEMS);
  launch::barrier();
}
template<int N> RS_FN void prolong_all(const Coarse& p, REAL* to) {
  constexpr int ITEMS = N * N * N;
  EACH(i, p.count * ITEMS) prolong<N>(p, to, p.rows[i / ITEMS], i % ITEMS);
  launch::barrier();
}

}  // namespace multigrid

KERNEL(coarse_relax_4, multigrid::Coarse) {
  EACH_COLOURED(4, n, cell, p.count, p.colour) multigrid::relax<4>(p, p.rows[n], cell);
}
KERNEL(coarse_relax_2, multigrid::Coarse) {
  EACH_COLOURED(2, n, cell, p.count, p.colour) multigrid::relax<2>(p, p.rows[n], cell);
}
KERNEL(coarse_relax_1, multigrid::Coarse) {
  EACH_CELL(1, n, cell, p.count) {
    const int row = p.rows[n];
    if (multigrid::has_colour(p, row, p.colour)) multigrid::relax<1>(p, row, cell);
  }
}
KERNEL(coarse_restrict_residual_4, multigrid::Coarse) {
  EACH_CELL(2, n, cell, p.count) multigrid::restrict_residual<4>(p, p.rows[n], cell);
}
KERNEL(coarse_restrict_residual_2, multigrid::Coarse) {
  EACH_CELL(1, n, cell, p.count) multigrid::restrict_residual<2>(p, p.rows[n], cell);
}
KERNEL(coarse_prolong_4, multigrid::Prolong) {
  EACH_CELL(4, n, cell, p.grid.count) multigrid::prolong<4>(p.grid, p.to, p.grid.rows[n], cell);
}
KERNEL(coarse_prolong_2, multigrid::Prolong) {
  EACH_CELL(2, n, cell, p.grid.count) multigrid::prolong<2>(p.grid, p.to, p.grid.rows[n], cell);
}

PATCH_KERNEL(coarse_prolong_8, multigrid::Prolong) {
  using namespace multigrid;
  SHARED REAL corrections[WIDE * WIDE * WIDE];
  const int row = p.grid.rows[launch::block()];
  EACH(i, WIDE * WIDE * WIDE) {
    int to[3];
    wide_place(i, to);
    corrections[i] = correction_at<HALF>(p.grid, row, to);
  }
  launch::barrier();
  EACH(cell, CELLS) {
    REAL& value = p.to[(rs::i64)row * CELLS + cell];
    value = value + stencil::trilinear<REAL>(octant(corrections, cell));
  }
}

// The coarse part of a V-cycle of a small level, by one block.
KERNEL_BOUNDS(coarse_cycle, multigrid::Corrections, 1024, 1) {
  using namespace multigrid;
  relax_all<4>(p.coarse_4, p.relaxations);
  restrict_all<4>(p.coarse_4);
  relax_all<2>(p.coarse_2, p.relaxations);
  restrict_all<2>(p.coarse_2);
  relax_all<1>(p.coarse_1, p.coarse_1_relaxations);
  prolong_all<2>(p.coarse_1, p.coarse_2.values);
  relax_all<2>(p.coarse_2, p.relaxations);
  prolong_all<4>(p.coarse_2, p.coarse_4.values);
  relax_all<4>(p.coarse_4, p.relaxations);
}
