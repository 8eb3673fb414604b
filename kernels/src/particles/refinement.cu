// Flags cells for refinement, one block per row.
KERNEL(particles_mark, particles::args::MarkParameters<field::REAL>) {
  using namespace particles;
  SHARED u64 octants[8];
  const int row = p.rows[launch::block()];
  const u64* sums = p.sums + (i64)p.slots[row] * mesh::CELLS;
  EACH(n, 8) octants[n] = 0;
  launch::barrier();
  EACH(cell, mesh::CELLS) {
    const int octant = (cell >> 2 & 1) | (cell >> 4 & 2) | (cell >> 6 & 4);
    if (sums[cell] > 0) launch::atomic_add(octants + octant, sums[cell]);
  }
  launch::barrier();
  u64 all = 0, most = 0;
  for (int n = 0; n < 8; ++n) {
    all += octants[n];
    most = octants[n] > most ? octants[n] : most;
  }
  const bool full = (double)all > p.per_patch;
  REAL* marks = (REAL*)p.marks + (i64)row * mesh::CELLS;
  EACH(cell, mesh::CELLS) if (full || (double)sums[cell] > p.per_cell) marks[cell] = (REAL)1;
  EACH(n, p.kept != nullptr ? 1 : 0) p.kept[launch::block()] = (double)most > p.per_octant ? 1 : 0;
}
