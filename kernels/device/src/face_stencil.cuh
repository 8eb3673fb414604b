// States on both sides of a face, in a block `[component][N][N][N]`.
template<class R, class S = R, int REACH = 1> struct FaceStencil {
  const R* above;
  int step;
  RS_MEMBER S at(int n) const {
    constexpr int N = 8 + 2 * REACH, COUNT = sizeof(S) / sizeof(R);
    static_assert(sizeof(S) == COUNT * sizeof(R), "a state is made of numbers");
    const R* from = above + n * step;
    S state;
    R* member = (R*)&state;
    RS_UNROLL for (int c = 0; c < COUNT; ++c) member[c] = from[c * (N * N * N)];
    return state;
  }
};
