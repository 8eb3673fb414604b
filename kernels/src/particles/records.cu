// Inserts and packs particles, as pages or records. Include after pages.cuh.

// Inserts host pages, one page per block.
KERNEL(particles_insert_pages, particles::args::InsertPagesParameters) {
  using namespace particles;
  SHARED unsigned first;
  const unsigned* page_row = p.page_rows + 2 * (i64)launch::block();
  const int count = (int)page_row[1];
  if (launch::thread() == 0) first = launch::atomic_add(p.cursors + page_row[0], page_row[1]);
  launch::barrier();
  const u64* page = p.pages + (i64)launch::block() * p.page_words;
  const REAL* numbers = (const REAL*)(page + PAGE);
  const PageView to = page_view(p.to);
  EACH(k, count) {
    to.id(first + k) = page[k];
    for (int c = 0; c < p.numbers; ++c) to.number(c, first + k) = numbers[c * PAGE + k];
  }
}

// Inserts records, one segment per block.
KERNEL(particles_unpack, particles::args::UnpackParameters) {
  using namespace particles;
  SHARED unsigned first;
  const unsigned* piece = p.pieces + 4 * (i64)launch::block();
  const int list = (int)piece[1], count = (int)piece[3];
  if (launch::thread() == 0) first = launch::atomic_add(p.cursors + list * (p.rows + 1) + piece[0], piece[3]);
  launch::barrier();
  const PageView to = page_view(p.to[piece[2]]);
  const int width = 8 + p.numbers * (int)sizeof(REAL) + 1;
  const unsigned char* records = p.records + p.firsts[launch::block()];
  EACH(k, count) {
    const unsigned char* from = records + (i64)k * width;
    u64 id = 0;
    for (int b = 0; b < 8; ++b) id |= (u64)from[b] << (8 * b);
    to.id(first + k) = id;
    from += 8;
    for (int c = 0; c < p.numbers; ++c) {
      rs::lim<REAL>::U bits = 0;
      for (int b = 0; b < (int)sizeof(REAL); ++b) bits |= (rs::lim<REAL>::U)*from++ << (8 * b);
      to.number(c, first + k) = rs::from_bits(bits);
    }
  }
}

// Packs records.
KERNEL(particles_pack, particles::args::PackParameters) {
  using namespace particles;
  const PageView from = page_view(p.page_array);
  const int width = 8 + p.numbers * (int)sizeof(REAL) + 1;
  for (i64 k = (i64)launch::block() * launch::threads() + launch::thread(); k < p.count;
       k += (i64)launch::blocks() * launch::threads()) {
    unsigned char* out = p.out + k * width;
    const u64 id = from.id(p.first + k);
    for (int b = 0; b < 8; ++b) out[b] = (unsigned char)(id >> (8 * b));
    out += 8;
    for (int c = 0; c < p.numbers; ++c) {
      u64 bits = rs::to_bits(from.number(c, p.first + k));
      for (int b = 0; b < (int)sizeof(REAL); ++b) *out++ = (unsigned char)(bits >> (8 * b));
    }
    *out = (unsigned char)p.mark;
  }
}
