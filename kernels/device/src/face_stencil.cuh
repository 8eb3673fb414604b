// States on both sides of a face, in a block `[component][N][N][N]`.
template<class R, class S = R, int REACH = 1> struct FaceStencil {
  const R* above;
  int step;
  RS_MEMBER S at(int n) const { return state_at(n * step); }
  // State i cells along the next axis and j cells along the last axis from cell n.
  RS_MEMBER S around(int n, int i, int j) const {
    const int next = step_after(step), last = step_after(next);
    return state_at(n * step + i * next + j * last);
  }
  static RS_MEMBER int step_after(int of) {
    constexpr int N = 8 + 2 * REACH;
    return of == N * N ? 1 : N * of;
  }
  RS_MEMBER S state_at(int offset) const {
    constexpr int N = 8 + 2 * REACH, COUNT = sizeof(S) / sizeof(R);
    static_assert(sizeof(S) == COUNT * sizeof(R), "a state is made of numbers");
    const R* from = above + offset;
    S state;
    R* member = (R*)&state;
    RS_UNROLL for (int c = 0; c < COUNT; ++c) member[c] = from[c * (N * N * N)];
    return state;
  }
};
