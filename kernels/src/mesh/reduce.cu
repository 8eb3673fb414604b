// Reductions of a function over cells. Extrema do not depend on the order; sums use the order of totals.cu.

// Finds the largest value, ordered by `order_key`.
KERNEL(cells_largest, cells::F::Parameters) {
  using namespace cells;
  rs::u64 largest = 0;
  EACH_ROW(n, p.input) {
    const int row = p.input.rows[n];
    const REAL* block = around(p.input, row);
    EACH(cell, CELLS) {
      const double value = (double)F::at(p, block, row, cell);
      largest = rs::max(largest, ::nestar_kernels::mesh::order::order_key(p.input.negate ? -value : value));
    }
  }
  largest = launch::largest_word_of_block(largest);
  // avoids most contended atomics
  if (launch::thread() == 0 && largest > *(volatile rs::u64*)p.input.largest) launch::atomic_max(p.input.largest, largest);
}

// Sums over the cells of each leaf patch.
KERNEL(cells_sum, cells::F::Parameters) {
  using namespace cells;
  SHARED double lanes[8];
  EACH_ROW(n, p.input) {
    const int row = p.input.rows[n];
    const bool leaf = p.input.first_child[row] == mesh::LEAF;
    const REAL* block = leaf ? around(p.input, row) : nullptr;
    EACH(lane, 8) {
      double sum = 0.0;
      for (int line = 0; line < CELLS / 8 && leaf; ++line) sum += (double)F::at(p, block, row, 8 * line + lane);
      lanes[lane] = sum;
    }
    launch::barrier();
    EACH(once, 1) p.input.sums[n] = ::nestar_kernels::mesh::order::sum_of_lanes(
        rs::arr<double, 8>{{lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[6], lanes[7]}});
    launch::barrier();
  }
}
