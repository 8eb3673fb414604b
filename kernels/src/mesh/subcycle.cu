// Functions that may fail in a cell or want to be called there again: on all cells, or on those of a list. The first field takes the
// states. What a cell hands on to its next call stands in its place of `kept`, and where it is done, what is summed. With a queue a cell is
// called once, and waits in the next list if it is unfinished; without one it is called until it is done.

namespace cells {

using ::nestar_kernels::mesh::subcycle::SHARED_SUM_BYTES;

// What a function gives.
template<class T> struct Tried;
template<class S> struct Tried<::nestar_kernels::mesh::subcycle::Outcome<S>> {
  static constexpr int STATE = sizeof(S) / sizeof(REAL), CARRIED = 0, SUMS = 0, KEPT = 0;
};
template<class S, class C, class T> struct Tried<::nestar_kernels::mesh::subcycle::Subcycle<S, C, T>> {
  static constexpr int STATE = sizeof(S) / sizeof(REAL), CARRIED = sizeof(C) / sizeof(REAL), SUMS = sizeof(T) / sizeof(REAL);
  static constexpr int KEPT = CARRIED > SUMS ? CARRIED : SUMS;
};

// Blocks that a multiprocessor takes at least: what carries nothing is short, waits for memory and gains by company.
template<class T> RS_FN constexpr int blocks_of() { return sizeof(REAL) == 4 && Tried<T>::CARRIED == 0 ? 7 : 1; }

// Whether what a cell that is done gives to be summed is finite.
template<class T> RS_FN bool sums_are_finite(const T& result) {
  bool finite = true;
  if constexpr (Tried<T>::SUMS > 0) {
    const REAL* sums = (const REAL*)&result.sums;
    RS_UNROLL for (int k = 0; k < Tried<T>::SUMS; ++k) finite = finite && rs::is_finite(sums[k]);
  }
  return finite;
}

// What the cells of a patch give is summed where they are called, if it fits into shared memory and there are no further calls.
template<class T> RS_FN constexpr bool sums_fit() { return Tried<T>::SUMS > 0 && Tried<T>::SUMS * CELLS * (int)sizeof(REAL) <= SHARED_SUM_BYTES; }

// Sums what the cells of a patch have given, `[number][512]`, in the order of totals.cu; `lanes` has room for 8 of each. All threads call it.
template<int SUMS, class V> RS_FN void sum_up(const Input& p, int n, const V& value, double* lanes) {
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

// Keeps what the next call is given, or what is summed.
template<class T> RS_FN void keep(const Input& p, int n, int cell, const T& result, bool done, REAL* given) {
  if constexpr (sums_fit<T>()) {
    if (!p.kept) {
      const REAL* sums = (const REAL*)&result.sums;
      RS_UNROLL for (int k = 0; k < Tried<T>::SUMS; ++k) given[k * CELLS + cell] = sums[k];
      return;
    }
  }
  if constexpr (Tried<T>::KEPT > 0) {
    REAL* kept = p.kept + (rs::i64)n * (Tried<T>::KEPT * CELLS) + cell;
    if (done) {
      const REAL* sums = (const REAL*)&result.sums;
      RS_UNROLL for (int k = 0; k < Tried<T>::SUMS; ++k) kept[k * CELLS] = sums[k];
    } else {
      const REAL* carried = (const REAL*)&result.carried;
      RS_UNROLL for (int c = 0; c < Tried<T>::CARRIED; ++c) kept[c * CELLS] = carried[c];
    }
  }
}

// The work of calls of a thread in a patch of the launch, added once: many threads would wait for the same place.
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

// Calls the function in a cell, patch n of the launch, as often as the launch may; whether it is to be called again.
RS_FN bool call_cell(const F::Parameters& p, unsigned item, int n, int row, REAL* given, Work& work) {
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
      if (!write_back<Tried<F::Result>::STATE>(p.input, item, row, cell, (const REAL*)&result.state)) return false;
      p.input.stale[row] = 1;
    }
    keep(p.input, n, cell, result, !again, given);
    work.add(p.input, n, result);
  }
  return again;
}

}  // namespace cells

KERNEL_BOUNDS(cells_subcycle, cells::F::Parameters, 128, cells::blocks_of<cells::F::Result>()) {
  using namespace cells;
  typedef Tried<F::Result> Gives;
  SHARED REAL given[sums_fit<F::Result>() ? Gives::SUMS * CELLS : 1];
  SHARED double lanes[8 * Gives::SUMS + 1];
  Work work;
  const int total = p.input.list ? p.input.listed : p.input.count * CELLS;
  for (int block = launch::block(); block * CELLS < total; block += launch::blocks()) {
    EACH(c, CELLS) {
      if (block * CELLS + c >= total) continue;
      const unsigned item = p.input.list ? p.input.list[block * CELLS + c] : (unsigned)(block * CELLS + c);
      const int n = (int)(item / CELLS), row = p.input.rows[n];
      const bool again = call_cell(p, item, n, row, given, work);
      if (again && p.input.next) p.input.next[launch::take_place(&p.input.round->unfinished)] = item;
      else if (again) launch::atomic_max(&p.input.round->unfinished, ~0u - item);
    }
    if constexpr (sums_fit<F::Result>()) {
      if (p.input.kept) continue;
      launch::barrier();
      sum_up<Gives::SUMS>(p.input, block, given, lanes);
    }
  }
  work.end(p.input);
}

// Sums what the cells of every leaf patch have given and kept.
KERNEL(cells_subcycle_sums, cells::F::Parameters) {
  using namespace cells;
  typedef Tried<F::Result> Gives;
  SHARED double lanes[8 * Gives::SUMS + 1];
  EACH_ROW(n, p.input) sum_up<Gives::SUMS>(p.input, n, p.input.kept + (rs::i64)n * (Gives::KEPT * CELLS), lanes);
}
