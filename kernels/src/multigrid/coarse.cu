// Corrections of a level in rows of 4^3, 2^3 and 1 cells: the twin of coarse.rs. Follows star.cuh.

namespace multigrid {

template<int N> RS_FN REAL laplacian(const Coarse& p, int row, int cell, REAL& whole) {
  const REAL u = p.values[(rs::i64)row * (N * N * N) + cell], mirror = (REAL)p.mirror;
  rs::arr<REAL, 6> values;
  const int missing = around<N>(p.values, p.neighbours, row, cell, values);
  RS_UNROLL for (int face = 0; face < 6; ++face)
    if (missing >> face & 1) values[face] = mirror * u;
  const Three weights = weights_of(p);
  whole = stencil::diagonal<REAL>(weights, missing, mirror);
  return stencil::laplacian<REAL>(u, values, weights);
}

template<int N> RS_FN void relax(const Coarse& p, int row, int cell) {
  REAL whole;
  const REAL change = laplacian<N>(p, row, cell, whole);
  const rs::i64 at = (rs::i64)row * (N * N * N) + cell;
  p.values[at] = stencil::relaxed<REAL>(p.values[at], change, p.rhs[at], whole, (REAL)p.omega);
}

template<int N> RS_FN void restrict_residual(const Coarse& p) {
  constexpr int M = N / 2;
  EACH_CELL(M, n, cell, p.count) {
    const int row = p.rows[n];
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
}

// The corrections in the cell that holds a finer one of a row of N^3, and in those towards it, as bits z y x.
template<int N> RS_FN rs::arr<REAL, 8> towards(const Coarse& p, int row, int cell) {
  constexpr int M = N / 2;
  int at[3];
  place<N>(cell, at);
  const int* neighbours = p.neighbours + (rs::i64)row * AROUND;
  rs::arr<REAL, 8> values;
  bool found[8];
  RS_UNROLL for (int bits = 0; bits < 8; ++bits) {
    int to[3], step[3];
    for (int axis = 0; axis < 3; ++axis) {
      to[axis] = at[axis] / 2 + (bits >> axis & 1) * (at[axis] % 2 == 1 ? 1 : -1);
      step[axis] = floor_div(to[axis], M);
    }
    const int beside = neighbours[direction(step[0], step[1], step[2])];
    found[bits] = beside >= 0;
    if (found[bits]) {
      const int n = floor_mod(to[0], M) + M * (floor_mod(to[1], M) + M * floor_mod(to[2], M));
      values[bits] = p.values[(rs::i64)beside * (M * M * M) + n];
      continue;
    }
    // the mean of those across a border, of those that were found if any was
    bool any = false;
    for (int axis = 0; axis < 3; ++axis) any = any || (step[axis] != 0 && found[bits ^ 1 << axis]);
    REAL terms[3] = {REAL(0), REAL(0), REAL(0)}, count = REAL(0);
    for (int axis = 0; axis < 3; ++axis)
      if (step[axis] != 0 && (found[bits ^ 1 << axis] || !any)) {
        terms[axis] = values[bits ^ 1 << axis];
        count = count + REAL(1);
      }
    values[bits] = (REAL)p.mirror * (::nestar_device::math::sums::sum3<REAL>(terms[0], terms[1], terms[2]) / count);
  }
  return values;
}

template<int N> RS_FN void prolong(const Prolong& p) {
  EACH_CELL(N, n, cell, p.grid.count) {
    const int row = p.grid.rows[n];
    REAL* to = p.to + (rs::i64)row * (N * N * N) + cell;
    *to = *to + stencil::trilinear<REAL>(towards<N>(p.grid, row, cell));
  }
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
    const int* index = p.index + (rs::i64)row * 4;
    if (((index[0] + index[1] + index[2]) & 1) == p.colour) multigrid::relax<1>(p, row, cell);
  }
}
KERNEL(coarse_restrict_residual_4, multigrid::Coarse) { multigrid::restrict_residual<4>(p); }
KERNEL(coarse_restrict_residual_2, multigrid::Coarse) { multigrid::restrict_residual<2>(p); }
KERNEL(coarse_prolong_8, multigrid::Prolong) { multigrid::prolong<8>(p); }
KERNEL(coarse_prolong_4, multigrid::Prolong) { multigrid::prolong<4>(p); }
KERNEL(coarse_prolong_2, multigrid::Prolong) { multigrid::prolong<2>(p); }
