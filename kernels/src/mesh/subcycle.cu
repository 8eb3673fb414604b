// Sub-cycled cell functions, which may fail or ask to be called again, on all cells or on those of a list. The first field receives the
// states. `kept` holds what a cell carries to its next call, or its sums once it is done. With a queue a cell is called once per launch and
// enters the next list if unfinished; without one it is called until it is done.

namespace cells {

using ::nestar_kernels::mesh::subcycle::SHARED_SUM_BYTES;

// Sizes of a function's result.
template<class T> struct ResultLayout;
template<class S> struct ResultLayout<::nestar_kernels::mesh::subcycle::Outcome<S>> {
  static constexpr int STATE = sizeof(S) / sizeof(REAL), CARRIED = 0, SUMS = 0, KEPT = 0;
};
template<class S, class C, class T> struct ResultLayout<::nestar_kernels::mesh::subcycle::Subcycle<S, C, T>> {
  static constexpr int STATE = sizeof(S) / sizeof(REAL), CARRIED = sizeof(C) / sizeof(REAL), SUMS = sizeof(T) / sizeof(REAL);
  static constexpr int KEPT = CARRIED > SUMS ? CARRIED : SUMS;
};

// Smallest number of blocks per multiprocessor. Functions that carry nothing are short and memory-bound, and gain from occupancy.
template<class T> RS_FN constexpr int blocks_of() { return sizeof(REAL) == 4 && ResultLayout<T>::CARRIED == 0 ? 7 : 1; }

// Returns true if the sums of a finished cell are finite.
template<class T> RS_FN bool sums_are_finite(const T& result) {
  bool finite = true;
  if constexpr (ResultLayout<T>::SUMS > 0) {
    const REAL* sums = (const REAL*)&result.sums;
    RS_UNROLL for (int k = 0; k < ResultLayout<T>::SUMS; ++k) finite = finite && rs::is_finite(sums[k]);
  }
  return finite;
}

// Sums of a patch are formed in the launch if they fit into shared memory and there are no further calls.
template<class T> RS_FN constexpr bool sums_fit() { return ResultLayout<T>::SUMS > 0 && ResultLayout<T>::SUMS * CELLS * (int)sizeof(REAL) <= SHARED_SUM_BYTES; }

// Sums over the cells of a patch, `[number][512]`, in the order of totals.cu; `lanes` holds 8 values per number. All threads must call it.
template<int SUMS, class V> RS_FN void sum_patch(const Input& p, int n, const V& value, double* lanes) {
  const bool leaf = p.first_child[p.rows[n]] == mesh::LEAF;
  EACH(item, 8 * SUMS) {
    double sum = 0.0;
    for (int line = 0; line < CELLS / 8 && leaf; ++line) sum += (double)value[(item >> 3) * CELLS + (item & 7) + 8 * line];
    lanes[item] = sum;
  }
  launch::barrier();
  EACH(k, SUMS) {
    rs::arr<double, 8> of_cells;
    for (int lane = 0; lane < 8; ++lane) of_cells[lane] = lanes[8 * k + lane];
    p.sums[(rs::i64)n * SUMS + k] = ::nestar_kernels::mesh::order::sum_of_lanes(of_cells);
  }
  launch::barrier();
}

// Stores what the next call reads, or the sums.
template<class T> RS_FN void store_carried(const Input& p, int n, int cell, const T& result, bool done, REAL* sums_of_cells) {
  if constexpr (sums_fit<T>()) {
    if (!p.kept) {
      const REAL* sums = (const REAL*)&result.sums;
      RS_UNROLL for (int k = 0; k < ResultLayout<T>::SUMS; ++k) sums_of_cells[k * CELLS + cell] = sums[k];
      return;
    }
  }
  if constexpr (ResultLayout<T>::KEPT > 0) {
    REAL* kept = p.kept + (rs::i64)n * (ResultLayout<T>::KEPT * CELLS) + cell;
    if (done) {
      const REAL* sums = (const REAL*)&result.sums;
      RS_UNROLL for (int k = 0; k < ResultLayout<T>::SUMS; ++k) kept[k * CELLS] = sums[k];
    } else {
      const REAL* carried = (const REAL*)&result.carried;
      RS_UNROLL for (int c = 0; c < ResultLayout<T>::CARRIED; ++c) kept[c * CELLS] = carried[c];
    }
  }
}

// Accumulates the work of a thread's calls in a patch, to be added once: many threads would contend for the same counter.
struct Work {
  int patch = -1;
  unsigned sum = 0;

  RS_MEMBER void end(const Input& p) const {
    if (sum != 0) launch::atomic_add(p.work + patch, sum);
  }
  template<class S> RS_MEMBER void add(const Input&, int, const ::nestar_kernels::mesh::subcycle::Outcome<S>&) {}
  template<class S, class C, class T>
  RS_MEMBER void add(const Input& p, int n, const ::nestar_kernels::mesh::subcycle::Subcycle<S, C, T>& result) {
    if (n != patch) {
      end(p);
      patch = n;
      sum = 0;
    }
    sum += (unsigned)rs::max(result.work, 0);
  }
};

// Calls the function in a cell, patch n of the launch, up to the allowed number of calls. Returns true if it must be called again.
RS_FN bool call_cell(const F::Parameters& p, unsigned item, int n, int row, REAL* sums_of_cells, Work& work) {
  using namespace ::nestar_kernels::mesh::subcycle;
  const int cell = (int)(item % CELLS);
  bool again = true;
  for (int call = 0; again && call < p.input.calls; ++call) {
    const F::Result result = F::at(p, nullptr, row, cell, n);
    again = result.status == CONTINUE || result.status == RETRY;
    if (result.status == FAILED || (!again && !sums_are_finite(result))) {
      launch::atomic_max(&p.input.round->failed, ~0u - item);
      return false;
    }
    if (result.status != RETRY) {
      if (!write_back<ResultLayout<F::Result>::STATE>(p.input, item, row, cell, (const REAL*)&result.state)) return false;
      p.input.stale[row] = 1;
    }
    store_carried(p.input, n, cell, result, !again, sums_of_cells);
    work.add(p.input, n, result);
  }
  return again;
}

}  // namespace cells

KERNEL_BOUNDS(cells_subcycle, cells::F::Parameters, 128, cells::blocks_of<cells::F::Result>()) {
  using namespace cells;
  typedef ResultLayout<F::Result> Gives;
  SHARED REAL sums_of_cells[sums_fit<F::Result>() ? Gives::SUMS * CELLS : 1];
  SHARED double lanes[8 * Gives::SUMS + 1];
  Work work;
  const int total = p.input.list ? p.input.listed : p.input.count * CELLS;
  for (int block = launch::block(); block * CELLS < total; block += launch::blocks()) {
    EACH(c, CELLS) {
      if (block * CELLS + c >= total) continue;
      const unsigned item = p.input.list ? p.input.list[block * CELLS + c] : (unsigned)(block * CELLS + c);
      const int n = (int)(item / CELLS), row = p.input.rows[n];
      const bool again = call_cell(p, item, n, row, sums_of_cells, work);
      if (again && p.input.next) p.input.next[launch::take_place(&p.input.round->unfinished)] = item;
      else if (again) launch::atomic_max(&p.input.round->unfinished, ~0u - item);
    }
    if constexpr (sums_fit<F::Result>()) {
      if (p.input.kept) continue;
      launch::barrier();
      sum_patch<Gives::SUMS>(p.input, block, sums_of_cells, lanes);
    }
  }
  work.end(p.input);
}

// Sums over the cells of every leaf patch.
KERNEL(cells_subcycle_sums, cells::F::Parameters) {
  using namespace cells;
  typedef ResultLayout<F::Result> Gives;
  SHARED double lanes[8 * Gives::SUMS + 1];
  EACH_ROW(n, p.input) sum_patch<Gives::SUMS>(p.input, n, p.input.kept + (rs::i64)n * (Gives::KEPT * CELLS), lanes);
}
