// Selects particles by one of their numbers. Include after pages.cuh.

// Lists particles whose number `column` lies above `above` and not above `upto`, in any order, as far as there is room: identity, row, then
// all numbers as the bits of doubles, those of the offset as integers in units of 2^-64 patch widths.
KERNEL(particles_select, particles::args::SelectParameters) {
  using namespace particles;
  const Chunk chunk = particles::chunk(p.from);
  const PageView from = page_view(p.from.page_array);
  EACH(k, chunk.count) {
    const i64 n = chunk.first + k;
    const double number = (double)from.number(p.column, n);
    if (!(number > p.above && number <= p.upto)) continue;
    const i64 place = launch::take_place(p.count);
    if (place >= p.room) continue;
    u64* out = p.out + place * (p.from.numbers + 2);
    out[0] = from.id(n);
    out[1] = (u64)chunk.row;
    for (int axis = 0; axis < 3; ++axis) out[2 + axis] = widen(from.offset(axis, n));
    for (int c = VELOCITY; c < p.from.numbers; ++c) out[2 + c] = rs::to_bits((double)from.number(c, n));
  }
}
