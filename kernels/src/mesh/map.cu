// Maps: the first field takes the function's result.

KERNEL(cells_map, cells::F::Parameters) {
  using namespace cells;
  const int row = p.input.rows[launch::block()];
  REAL* own = p.input.fields[0] + (rs::i64)row * (p.input.components[0] * CELLS);
  EACH(cell, CELLS) {
    const F::Result result = F::at(p, row, cell);
    const REAL* member = (const REAL*)&result;
    RS_UNROLL for (int c = 0; c < (int)(sizeof(result) / sizeof(REAL)); ++c) own[c * CELLS + cell] = member[c];
  }
  if (launch::thread() == 0) p.input.stale[row] = 1;
}
