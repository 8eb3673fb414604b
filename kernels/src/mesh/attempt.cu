// Functions that may fail in a cell or want to be called there again: on all cells, or on those of a list. The first field takes the
// states. What a cell hands on to its next call stands in its place of `kept`, and where it is done, what is summed. With a queue a cell is
// called once, and waits in the next list if it is unfinished; without one it is called until it is done.

namespace cells {

// What a function gives.
template<class T> struct Tried;
template<class S> struct Tried<::nestar_kernels::mesh::attempt::Outcome<S>> {
  static constexpr int STATE = sizeof(S) / sizeof(REAL), SUMS = 0, KEPT = 0;
};
template<class S, class C, class T> struct Tried<::nestar_kernels::mesh::attempt::Attempt<S, C, T>> {
  static constexpr int STATE = sizeof(S) / sizeof(REAL), CARRIED = sizeof(C) / sizeof(REAL), SUMS = sizeof(T) / sizeof(REAL);
  static constexpr int KEPT = CARRIED > SUMS ? CARRIED : SUMS;
};

// Whether what a cell that is done gives to be summed is finite.
template<class T> RS_FN bool sums_are_finite(const T& result) {
  bool finite = true;
  if constexpr (Tried<T>::SUMS > 0) {
    const REAL* sums = (const REAL*)&result.sums;
    RS_UNROLL for (int k = 0; k < Tried<T>::SUMS; ++k) finite = finite && rs::is_finite(sums[k]);
  }
  return finite;
}

// Keeps what the next call is given, or what is summed.
template<class T> RS_FN void keep(const Input& p, int n, int cell, const T& result, bool done) {
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

// Counts the work of a call in patch n of the launch.
template<class S> RS_FN void weigh(const Input&, int, const ::nestar_kernels::mesh::attempt::Outcome<S>&) {}
template<class S, class C, class T>
RS_FN void weigh(const Input& p, int n, const ::nestar_kernels::mesh::attempt::Attempt<S, C, T>& result) {
  launch::atomic_add(p.work + n, (unsigned)rs::max(result.work, 0));
}

}  // namespace cells

KERNEL(cells_attempt, cells::F::Parameters) {
  using namespace cells;
  using namespace ::nestar_kernels::mesh::attempt;
  typedef Tried<F::Result> Gives;
  const int total = p.input.list ? p.input.listed : p.input.count * CELLS;
  for (int block = launch::block(); block * CELLS < total; block += launch::blocks()) EACH(c, CELLS) {
      if (block * CELLS + c >= total) continue;
      const unsigned item = p.input.list ? p.input.list[block * CELLS + c] : (unsigned)(block * CELLS + c);
      const int n = (int)(item / CELLS), row = p.input.rows[n], cell = (int)(item % CELLS);
      bool again = true;
      for (int call = 0; again && call < p.input.calls; ++call) {
        const F::Result result = F::at(p, nullptr, row, cell, n);
        again = result.status == UNFINISHED || result.status == WAITING;
        if (result.status == FAILED || (!again && !sums_are_finite(result))) {
          launch::atomic_max(&p.input.round->failed, ~0u - item);
          again = false;
          break;
        }
        if (result.status != WAITING) {
          if (!take<Gives::STATE>(p.input, item, row, cell, (const REAL*)&result.state)) {
            again = false;
            break;
          }
          p.input.stale[row] = 1;
        }
        keep(p.input, n, cell, result, !again);
        weigh(p.input, n, result);
      }
      if (again) p.input.next[launch::atomic_add(&p.input.round->unfinished, 1u)] = item;
    }
}

// Sums what the cells of every leaf patch have given, in the order of totals.cu.
KERNEL(cells_attempt_sums, cells::F::Parameters) {
  using namespace cells;
  typedef Tried<F::Result> Gives;
  SHARED double lanes[8 * Gives::SUMS + 1];
  EACH_ROW(n, p.input) {
    const bool leaf = p.input.first_child[p.input.rows[n]] == mesh::LEAF;
    EACH(item, 8 * Gives::SUMS) {
      const REAL* values = p.input.kept + ((rs::i64)n * Gives::KEPT + (item >> 3)) * CELLS + (item & 7);
      double sum = 0.0;
      for (int line = 0; line < CELLS / 8 && leaf; ++line) sum += (double)values[8 * line];
      lanes[item] = sum;
    }
    launch::barrier();
    EACH(k, Gives::SUMS) {
      rs::arr<double, 8> of_cells;
      for (int lane = 0; lane < 8; ++lane) of_cells[lane] = lanes[8 * k + lane];
      p.input.sums[(rs::i64)n * Gives::SUMS + k] = ::nestar_kernels::mesh::order::sum_of_lanes(of_cells);
    }
    launch::barrier();
  }
}
