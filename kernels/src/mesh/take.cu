// The first field takes the results that stand at `out`.
KERNEL(cells_take, cells::F::Parameters) {
  using namespace cells;
  EACH_ROW(n, p.input) {
    const int row = p.input.rows[n];
    const rs::i64 first = (rs::i64)row * (p.input.out_components * CELLS);
    EACH(value, (int)(sizeof(F::Result) / sizeof(REAL)) * CELLS) p.input.fields[0][first + value] = p.input.out[first + value];
  }
}
