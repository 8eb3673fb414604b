// A ghost cell outside a face of the domain: states of inner cells, one after another, and the face.
template<class R, class S = R, int INNER = 4> struct Ghost {
  const R* inner;
  int stride, axis, side, layer;
  RS_MEMBER S at(int n) const {
    constexpr int COUNT = sizeof(S) / sizeof(R);
    static_assert(sizeof(S) == COUNT * sizeof(R), "a state is made of numbers");
    S state;
    R* member = (R*)&state;
    for (int c = 0; c < COUNT; ++c) member[c] = inner[n * stride + c];
    return state;
  }
};
