// Sums the derived inputs of a list over the cells of each patch along an axis: the twin of columns.rs in engine/data.

KERNEL(cells_columns, cells::F::Parameters) {
  using namespace cells;
  constexpr int KEPT = F::KEPT, COLUMNS = PATCH * PATCH;
  const auto& options = p.parameters;
  EACH_ROW(n, p.input) {
    const int row = p.input.rows[n];
    EACH(column, COLUMNS) {
      double sums[KEPT];
      for (int q = 0; q < KEPT; ++q) sums[q] = 0.0;
      for (int k = 0; k < PATCH; ++k) {
        const double factor = options.factors[n * PATCH + k];
        if (factor == 0.0) continue;
        REAL numbers[KEPT];
        F::at(p.input, row, ::nestar_kernels::mesh::columns::column_cell(options.axis, column, k), numbers);
        const double weight = options.weighted ? (double)numbers[KEPT - 1] * factor : factor;
        for (int q = 0; q < KEPT; ++q) sums[q] += options.weighted && q == KEPT - 1 ? weight : (double)numbers[q] * weight;
      }
      for (int q = 0; q < KEPT; ++q) options.sums[((rs::i64)n * KEPT + q) * COLUMNS + column] = sums[q];
    }
  }
}
