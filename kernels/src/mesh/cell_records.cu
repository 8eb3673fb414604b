// Collects the records that a function returns for some cells of leaf patches. A bit mask of 16 words tells the cells of a patch.

// Finds the cells with a record. `sectors` takes the masks, `[count][16]`; the first word of `largest` becomes 1 if there is any.
KERNEL(cells_find_records, cells::F::Parameters) {
  using namespace cells;
  SHARED unsigned words[16];
  EACH_ROW(n, p.input) {
    const int row = p.input.rows[n];
    const bool leaf = p.input.first_child[row] == mesh::LEAF;
    const REAL* block = leaf ? around(p.input, row) : nullptr;
    EACH(w, 16) words[w] = 0;
    launch::barrier();
    EACH(cell, leaf ? CELLS : 0) {
      if (F::at(p, block, row, cell).found) launch::atomic_or(words + cell / 32, 1u << cell % 32);
    }
    launch::barrier();
    EACH(w, 16) {
      p.input.sectors[16 * n + w] = words[w];
      if (words[w] != 0) launch::atomic_or((unsigned*)p.input.largest, 1u);
    }
    launch::barrier();
  }
}

// Stores the records of patches that have some, `[record][number]`, in the order of patches and cells. `list` has the number of records
// before each word of the masks.
KERNEL(cells_store_records, cells::F::Parameters) {
  using namespace cells;
  EACH_ROW(n, p.input) {
    const int row = p.input.rows[n];
    const REAL* block = around(p.input, row);
    EACH(cell, CELLS) {
      const int word = 16 * n + cell / 32;
      const unsigned bit = 1u << cell % 32, mask = p.input.sectors[word];
      if ((mask & bit) == 0) continue;
      rs::i64 place = p.input.list[word];
      for (unsigned below = mask & (bit - 1); below != 0; below &= below - 1) ++place;
      const auto result = F::at(p, block, row, cell);
      constexpr int COUNT = sizeof(result.record) / sizeof(REAL);
      const REAL* member = (const REAL*)&result.record;
      RS_UNROLL for (int c = 0; c < COUNT; ++c) p.input.out[place * COUNT + c] = member[c];
    }
    launch::barrier();
  }
}
