// Lists particles for which a function returns a record. Include after functions.cuh.

// Lists them in any order, as far as there is room: identity, row, then all numbers as the bits of doubles, those of the offset as integers
// in units of 2^-64 patch widths, then the numbers of the record.
KERNEL(particles_collect, particles::F::Parameters) {
  using namespace particles;
  const Chunk chunk = particles::chunk(p.input.from);
  const PageView from = page_view(p.input.from.page_array);
  const int numbers = p.input.from.numbers;
  EACH(k, chunk.count) {
    const i64 n = chunk.first + k;
    const auto result = F::at(p, chunk.row, n);
    if (!result.found) continue;
    const i64 place = launch::take_place((unsigned*)p.input.words);
    if (place >= p.input.room) continue;
    constexpr int COUNT = sizeof(result.record) / sizeof(REAL);
    const REAL* member = (const REAL*)&result.record;
    u64* out = p.input.out + place * (numbers + 2 + COUNT);
    out[0] = from.id(n);
    out[1] = (u64)chunk.row;
    for (int axis = 0; axis < 3; ++axis) out[2 + axis] = widen(from.offset(axis, n));
    for (int c = VELOCITY; c < numbers; ++c) out[2 + c] = rs::to_bits((double)from.number(c, n));
    RS_UNROLL for (int c = 0; c < COUNT; ++c) out[2 + numbers + c] = rs::to_bits((double)member[c]);
  }
}
