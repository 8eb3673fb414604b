// Writes the buffered results at `out` to the first field.
KERNEL(cells_write_back, cells::F::Parameters) {
  using namespace cells;
  constexpr int COUNT = sizeof(F::Result) / sizeof(REAL);
  EACH_ROW(n, p.input) {
    const int row = p.input.rows[n];
    const REAL* from = p.input.out + (rs::i64)row * (p.input.out_components * CELLS);
    EACH(cell, CELLS) {
      REAL values[COUNT];
      RS_UNROLL for (int c = 0; c < COUNT; ++c) values[c] = from[c * CELLS + cell];
      write_back<COUNT>(p.input, (unsigned)(n * CELLS + cell), row, cell, values);
    }
  }
}
