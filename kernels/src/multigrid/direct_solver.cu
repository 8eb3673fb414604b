// Direct solver for the coarsest grid of the root level, by eigenvectors along its axes: device version of
// direct_solver.rs of the systems. Follows moments.cu.

namespace multigrid {

typedef ::nestar_kernels::multigrid::device::CoarsestLevelParameters<REAL> CoarsestLevel;
typedef ::nestar_kernels::multigrid::device::AxisTransformParameters AxisTransform;
typedef ::nestar_kernels::multigrid::device::EigenvalueParameters Eigenvalues;

// Index of a row in the whole level.
RS_FN int place_of_row(const CoarsestLevel& p, int row) {
  const int* index = p.index + (rs::i64)row * 4;
  return index[0] + p.cells[0] * (index[1] + p.cells[1] * index[2]);
}

}  // namespace multigrid

// Gathers pairs of own rows.
KERNEL(root_gather, multigrid::CoarsestLevel) {
  EACH_CELL(1, n, cell, p.count) {
    const int row = p.rows[n] + cell;
    p.pairs[2 * n] = (double)multigrid::place_of_row(p, row);
    p.pairs[2 * n + 1] = (double)p.values[row];
  }
}

// Puts pairs of any rows into the whole level.
KERNEL(root_place, multigrid::CoarsestLevel) {
  EACH_CELL(1, n, cell, p.count) p.whole[(int)p.pairs[2 * n] + cell] = p.pairs[2 * n + 1];
}

// Copies own rows from the whole level.
KERNEL(root_scatter, multigrid::CoarsestLevel) {
  EACH_CELL(1, n, cell, p.count) {
    const int row = p.rows[n] + cell;
    p.values[row] = (multigrid::REAL)p.whole[multigrid::place_of_row(p, row)];
  }
}

// Transforms along an axis, from cells to modes or back; terms are added in order.
KERNEL(root_transform_axis, multigrid::AxisTransform) {
  EACH_CELL(1, n, cell, p.count) {
    const int to = n / p.stride % p.cells, first = n - to * p.stride + cell;
    double sum = 0.0;
    for (int from = 0; from < p.cells; ++from)
      sum = sum + p.weights[from * p.cells + to] * p.from[first + from * p.stride];
    p.to[n] = sum;
  }
}

// Divides modes by their eigenvalues; modes with eigenvalue 0 are set to 0.
KERNEL(root_divide, multigrid::Eigenvalues) {
  const int nx = p.cells[0], ny = p.cells[1];
  EACH_CELL(1, n, cell, nx * ny * p.cells[2]) {
    const int y = n / nx, z = y / ny + cell;
    const double sum = ::nestar_device::math::sums::sum3<double>(p.along[0][n % nx], p.along[1][y % ny], p.along[2][z]);
    p.values[n] = rs::abs(sum) > p.zero_limit ? p.values[n] / sum : 0.0;
  }
}
