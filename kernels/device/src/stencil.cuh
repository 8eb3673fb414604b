// States around a cell, in a block `[component][N][N][N]`.
template<class R, class S = R, int REACH = 1> struct Stencil {
  const R* cell;
  RS_MEMBER S at(int i, int j, int k) const {
    constexpr int N = 8 + 2 * REACH, COUNT = sizeof(S) / sizeof(R);
    static_assert(sizeof(S) == COUNT * sizeof(R), "a state is made of numbers");
    const R* from = cell + i + N * (j + N * k);
    S state;
    R* member = (R*)&state;
    RS_UNROLL for (int c = 0; c < COUNT; ++c) member[c] = from[c * (N * N * N)];
    return state;
  }
};
