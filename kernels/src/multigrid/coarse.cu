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
  RS_UNROLL for (int side = 0; side < 8; ++side) {
    const int x = 2 * at[0] + (side & 1), y = 2 * at[1] + (side >> 1 & 1), z = 2 * at[2] + (side >> 2);
    const int fine = x + N * (y + N * z);
    REAL whole;
    values[side] = p.rhs[(rs::i64)row * (N * N * N) + fine] - laplacian<N>(p, row, fine, whole);
  }
  const rs::i64 to = (rs::i64)row * (M * M * M) + cell;
  p.residual[to] = ::nestar_kernels::mesh::means::mean8<REAL>(values);
  p.correction[to] = REAL(0);
}

// Row of M^3 cells at a position at most one cell outside a row; negative if there is none.
template<int M> RS_FN int row_of(const Coarse& p, int row, const rs::arr<int, 3>& at) {
  const int there = direction(floor_div(at[0], M), floor_div(at[1], M), floor_div(at[2], M));
  return there == direction(0, 0, 0) ? row : p.neighbours[(rs::i64)row * AROUND + there];
}
// Correction there, in the row that `row_of` gives.
template<int M> RS_FN REAL value_at(const Coarse& p, int row, const rs::arr<int, 3>& at) {
  return p.values[(rs::i64)row * (M * M * M) + floor_mod(at[0], M) + M * (floor_mod(at[1], M) + M * floor_mod(at[2], M))];
}

// Returns the correction at a position at most one cell outside a row of M^3. Outside the level this is a ghost value: that of
// the mirrored cell, or the mean of the values across the boundary along each axis (of existing ones, if there are any), times
// the ghost factor. The values that may be needed are loaded together.
template<int M> RS_FN REAL correction_at(const Coarse& p, int row, const int* at) {
  rs::arr<int, 3> to{{at[0], at[1], at[2]}};
  if (p.mirrored != 0) reflect<M>(mirrors_beside(p, row), to.d);
  rs::arr<int, 3> inside;
  int outside = 0;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    inside[axis] = to[axis] < 0 ? 0 : to[axis] >= M ? M - 1 : to[axis];
    if (inside[axis] != to[axis]) outside |= 1 << axis;
  }
  // the position that is outside along the axes of a set of bits alone
  const auto position = [&](int set) {
    rs::arr<int, 3> there;
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) there[axis] = set >> axis & 1 ? to[axis] : inside[axis];
    return there;
  };
  const int beside = row_of<M>(p, row, to);
  if (beside >= 0) return value_at<M>(p, beside, to);
  rs::arr<int, 8> rows;
  rs::arr<REAL, 8> values;
  RS_UNROLL for (int set = 0; set < 8; ++set) rows[set] = (set & ~outside) == 0 ? row_of<M>(p, row, position(set)) : -1;
  RS_UNROLL for (int set = 0; set < 8; ++set) values[set] = rows[set] >= 0 ? value_at<M>(p, rows[set], position(set)) : REAL(0);
  RS_UNROLL for (int set = 1; set < 8; ++set) {
    if ((set & ~outside) != 0 || rows[set] >= 0) continue;
    bool any = false;
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) any = any || ((set >> axis & 1) && rows[set & ~(1 << axis)] >= 0);
    Three terms{{REAL(0), REAL(0), REAL(0)}};
    REAL count = REAL(0);
    RS_UNROLL for (int axis = 0; axis < 3; ++axis)
      if ((set >> axis & 1) && (!any || rows[set & ~(1 << axis)] >= 0)) {
        terms[axis] = values[set & ~(1 << axis)];
        count = count + REAL(1);
      }
    values[set] = (REAL)p.mirror * (::nestar_device::math::sums::sum3<REAL>(terms[0], terms[1], terms[2]) / count);
  }
  REAL value = values[7];
  RS_UNROLL for (int set = 1; set < 7; ++set)
    if (set == outside) value = values[set];
  return value;
}

// Adds the interpolated corrections to a cell of a row of N^3.
template<int N> RS_FN void prolong(const Coarse& p, REAL* to, int row, int cell) {
  constexpr int M = N / 2;
  int at[3];
  place<N>(cell, at);
  const auto beside = [&](int bits) {
    rs::arr<int, 3> to;
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) to[axis] = at[axis] / 2 + (bits >> axis & 1) * (at[axis] % 2 == 1 ? 1 : -1);
    return to;
  };
  rs::arr<int, 8> rows;
  bool all = p.mirrored == 0;
  RS_UNROLL for (int bits = 0; bits < 8; ++bits) {
    rows[bits] = row_of<M>(p, row, beside(bits));
    all = all && rows[bits] >= 0;
  }
  rs::arr<REAL, 8> values;
  if (all) {
    RS_UNROLL for (int bits = 0; bits < 8; ++bits) values[bits] = value_at<M>(p, rows[bits], beside(bits));
  } else {
    for (int bits = 0; bits < 8; ++bits) values[bits] = correction_at<M>(p, row, beside(bits).d);
  }
  REAL& value = to[(rs::i64)row * (N * N * N) + cell];
  value = value + stencil::trilinear<REAL>(values);
}

// Number of items up to which one block relaxes a grid.
constexpr int ITEMS_OF_ONE_BLOCK = 1024;

// Returns true if the only cell of a row has a colour.
RS_FN bool has_colour(const Coarse& p, int row, int colour) {
  const int* index = p.index + (rs::i64)row * 4;
  return ((index[0] + index[1] + index[2]) & 1) == colour;
}

// The kernels below, for all rows by one launch; each ends with a barrier of the grid.
template<int N> RS_FN constexpr int coloured_items() { return N == 1 ? 1 : N * N * N / 2; }
template<int N> RS_FN void relax_item(const Coarse& p, int item, int colour) {
  const int row = p.rows[item / coloured_items<N>()];
  if constexpr (N > 1) relax<N>(p, row, coloured<N>(item % coloured_items<N>(), colour));
  else if (has_colour(p, row, colour)) relax<1>(p, row, 0);
}
template<int N> RS_FN void relax_all(const Coarse& p, int times) {
  const int items = p.count * coloured_items<N>();
  if (items > ITEMS_OF_ONE_BLOCK) {
    for (int n = 0; n < times; ++n) {
      EACH_OF_GRID(i, items) relax_item<N>(p, i, n % 2);
      launch::barrier_of_grid();
    }
    return;
  }
  // a barrier of one block is much faster than one of the grid
  if (launch::block() == 0)
    for (int n = 0; n < times; ++n) {
      EACH(i, items) relax_item<N>(p, i, n % 2);
      launch::barrier();
    }
  launch::barrier_of_grid();
}
template<int N> RS_FN void restrict_all(const Coarse& p) {
  constexpr int ITEMS = N * N * N / 8;
  EACH_OF_GRID(i, p.count * ITEMS) restrict_residual<N>(p, p.rows[i / ITEMS], i % ITEMS);
  launch::barrier_of_grid();
}
template<int N> RS_FN void prolong_all(const Coarse& p, REAL* to) {
  constexpr int ITEMS = N * N * N;
  EACH_OF_GRID(i, p.count * ITEMS) prolong<N>(p, to, p.rows[i / ITEMS], i % ITEMS);
  launch::barrier_of_grid();
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

// The coarse part of a V-cycle of a level, by blocks that run at the same time.
KERNEL_BOUNDS(coarse_cycle, multigrid::Corrections, 512, 1) {
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
