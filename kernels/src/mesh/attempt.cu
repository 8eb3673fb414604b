// Functions that may fail in a cell or want to be called there again: on all cells, or on those of a list. The first field takes the
// states.
KERNEL(cells_attempt, cells::F::Parameters) {
  using namespace cells;
  const int total = p.input.list ? p.input.listed : p.input.count * CELLS;
  for (int n = launch::block(); n * CELLS < total; n += launch::blocks()) EACH(c, CELLS) {
      if (n * CELLS + c >= total) continue;
      const unsigned item = p.input.list ? p.input.list[n * CELLS + c] : (unsigned)(n * CELLS + c);
      const int row = p.input.rows[item / CELLS], cell = (int)(item % CELLS);
      const F::Result result = F::at(p, nullptr, row, cell);
      if (result.status == ::nestar_kernels::mesh::attempt::FAILED) {
        launch::atomic_max(&p.input.round->failed, ~0u - item);
        continue;
      }
      constexpr int COUNT = sizeof(result.state) / sizeof(REAL);
      if (!take<COUNT>(p.input, item, row, cell, (const REAL*)&result.state)) continue;
      if (result.status == ::nestar_kernels::mesh::attempt::UNFINISHED)
        p.input.next[launch::atomic_add(&p.input.round->unfinished, 1u)] = item;
      p.input.stale[row] = 1;
    }
}
