// Maps a function over the cells of a field.

// Results go to `out`, or to the first field. Cells of the other colour keep their state of the first field.
KERNEL(cells_map, cells::F::Parameters) {
  using namespace cells;
  constexpr int COUNT = sizeof(F::Result) / sizeof(REAL);
  EACH_ROW(n, p.input) {
    const int row = p.input.rows[n];
    const REAL* block = around(p.input, row);
    REAL* out = p.input.out ? p.input.out + (rs::i64)row * (p.input.out_components * CELLS) : nullptr;
    EACH(cell, CELLS) {
      const int colour = (cell ^ cell >> 3 ^ cell >> 6) & 1;
      F::Result result;
      if (p.input.colour < 0 || p.input.colour == colour) result = F::at(p, block, row, cell);
      else result = state_of<F::Result>(Cell{p.input, block, row, cell, n}, 0);
      const REAL* member = (const REAL*)&result;
      if (!p.input.out) {
        write_back<COUNT>(p.input, (unsigned)(n * CELLS + cell), row, cell, member);
        continue;
      }
      RS_UNROLL for (int c = 0; c < COUNT; ++c)
        if (p.input.chosen[c] >= 0) out[p.input.chosen[c] * CELLS + cell] = member[c];
    }
    if (launch::thread() == 0) p.input.stale[row] = 1;
  }
}
