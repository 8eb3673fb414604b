// Marks: the cells where a function holds, and the patches that their surroundings reach into. Follows sectors.cuh.

KERNEL(cells_mark, cells::F::Parameters) {
  using namespace cells;
  SHARED unsigned words[17];
  const int row = p.input.rows[launch::block()];
  EACH(w, 17) words[w] = 0;
  launch::barrier();
  EACH(cell, CELLS) {
    if (F::at(p, row, cell)) criteria::set_flag(words, cell);
  }
  launch::barrier();
  EACH(sector, 27) {
    if (criteria::reaches(words, sector, p.input.buffer)) launch::atomic_or(words + 16, 1u << sector);
  }
  launch::barrier();
  EACH(once, 1) p.input.sectors[launch::block()] = words[16];
  launch::barrier();
}
