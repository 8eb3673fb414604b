// The root level with one cell a patch, solved for by eigenvectors along its axes: the twin of the solver's bottom.rs. Follows moments.cu.

namespace multigrid {

typedef ::nestar_kernels::multigrid::device::CoarsestLevelParameters<REAL> Whole;
typedef ::nestar_kernels::multigrid::device::AxisTransformParameters Along;
typedef ::nestar_kernels::multigrid::device::EigenvalueParameters Divide;

// The place of a row in the whole level.
RS_FN int place_of_row(const Whole& p, int row) {
  const int* index = p.index + (rs::i64)row * 4;
  return index[0] + p.cells[0] * (index[1] + p.cells[1] * index[2]);
}

}  // namespace multigrid

// Pairs of own rows.
KERNEL(root_gather, multigrid::Whole) {
  EACH_CELL(1, n, cell, p.count) {
    const int row = p.rows[n] + cell;
    p.pairs[2 * n] = (double)multigrid::place_of_row(p, row);
    p.pairs[2 * n + 1] = (double)p.values[row];
  }
}

// Pairs of any rows.
KERNEL(root_place, multigrid::Whole) {
  EACH_CELL(1, n, cell, p.count) p.whole[(int)p.pairs[2 * n] + cell] = p.pairs[2 * n + 1];
}

// Own rows of the whole level.
KERNEL(root_scatter, multigrid::Whole) {
  EACH_CELL(1, n, cell, p.count) {
    const int row = p.rows[n] + cell;
    p.values[row] = (multigrid::REAL)p.whole[multigrid::place_of_row(p, row)];
  }
}

// From cells to modes along an axis, or back: terms are added in their order.
KERNEL(root_along, multigrid::Along) {
  EACH_CELL(1, n, cell, p.count) {
    const int to = n / p.stride % p.cells, first = n - to * p.stride + cell;
    double sum = 0.0;
    for (int from = 0; from < p.cells; ++from)
      sum = sum + p.weights[from * p.cells + to] * p.from[first + from * p.stride];
    p.to[n] = sum;
  }
}

// Modes over their eigenvalues; those that have none do not count.
KERNEL(root_divide, multigrid::Divide) {
  const int nx = p.cells[0], ny = p.cells[1];
  EACH_CELL(1, n, cell, nx * ny * p.cells[2]) {
    const int y = n / nx, z = y / ny + cell;
    const double sum = ::nestar_device::math::sums::sum3<double>(p.along[0][n % nx], p.along[1][y % ny], p.along[2][z]);
    p.values[n] = rs::abs(sum) > p.nothing ? p.values[n] / sum : 0.0;
  }
}
