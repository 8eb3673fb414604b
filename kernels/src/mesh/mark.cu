// Flags the cells for which a function is true and finds the patches within the flag buffer. Follows sectors.cuh.

KERNEL(cells_mark, cells::F::Parameters) {
  using namespace cells;
  SHARED unsigned words[17];
  EACH_ROW(n, p.input) {
    const int row = p.input.rows[n];
    const REAL* block = around(p.input, row);
    EACH(w, 17) words[w] = 0;
    launch::barrier();
    EACH(cell, CELLS) {
      if (F::at(p, block, row, cell)) criteria::set_flag(words, cell);
    }
    launch::barrier();
    EACH(sector, 27) {
      if (criteria::reaches(words, sector, p.input.buffer)) launch::atomic_or(words + 16, 1u << sector);
    }
    launch::barrier();
    EACH(once, 1) p.input.sectors[n] = words[16];
    launch::barrier();
  }
}
