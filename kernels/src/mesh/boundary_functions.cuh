// Calls `#[device]` functions as boundary rules: in namespace `field`, after its state functions.

typedef ::nestar_device::cell_fn::Place<REAL> Place;

// The position of the ghost cell, with the geometry of CellBlock::geometry.
RS_FN Place place_of(const GhostQuery& at) {
  ::nestar_kernels::mesh::block::LevelGeometry g;
  for (int a = 0; a < 3; ++a) {
    g.left[a] = at.left[a];
    g.right[a] = at.right[a];
    g.cells[a] = at.cells[a];
    g.width[a] = (at.right[a] - at.left[a]) / (double)at.cells[a];
  }
  g.level = at.level;
  g.time = at.time;
  g.dt = 0.0;
  for (int n = 0; n < 2; ++n) g.numbers[n] = 1.0;
  return ::nestar_kernels::mesh::block::place_of<REAL>(g, rs::arr<int, 3>{{at.index[0], at.index[1], at.index[2]}});
}

// Reads argument N after the ghost from bytes: a structure or a number.
template<class T> RS_FN T from_bytes(const rs::u64* parameters, int first) {
  T value;
  for (int n = 0; n < (int)sizeof(T); ++n) ((unsigned char*)&value)[n] = ((const unsigned char*)parameters)[first + n];
  return value;
}
template<class A, int N> struct Argument {
  static RS_MEMBER A of(const GhostQuery&, const rs::u64* parameters) { return from_bytes<A>(parameters, N * (int)sizeof(A)); }
};
template<class P, int N> struct Argument<const P&, N> {
  static RS_MEMBER P of(const GhostQuery&, const rs::u64* parameters) { return from_bytes<P>(parameters, 0); }
};
template<int N> struct Argument<const Place&, N> {
  static RS_MEMBER Place of(const GhostQuery& at, const rs::u64*) { return place_of(at); }
};
template<class... A> struct Before { static constexpr int COUNT = 0; };
template<class... A> struct Before<const Place&, A...> { static constexpr int COUNT = 1; };

template<int... I> struct Counted {};
template<int N, int... I> struct CountedTo : CountedTo<N - 1, N - 1, I...> {};
template<int... I> struct CountedTo<0, I...> { typedef Counted<I...> t; };

// A boundary function and its types.
template<auto F> struct Rule;
template<class T, class S, int N, class... A, T (*F)(::nestar_device::ghost::Ghost<REAL, S, N>, A...)> struct Rule<F> {
  typedef ::nestar_device::ghost::Ghost<REAL, S, N> Ghost;
  template<int... I> static RS_MEMBER T call(const Ghost& ghost, const GhostQuery& at, const rs::u64* parameters, Counted<I...>) {
    return F(ghost, Argument<A, I - Before<A...>::COUNT>::of(at, parameters)...);
  }
  // Turns the state of the nearest inner cell into that of the ghost cell. Returns true if it is physical. Scalars after the function's
  // components keep their mass fraction. A copy of the inner state is not checked again.
  template<int AXIS, int SIDE> static RS_MEMBER bool apply(const GhostQuery& at, const rs::u64* parameters, REAL* u) {
    constexpr int COUNT = sizeof(T) / sizeof(REAL);
    const T state = call(Ghost{at.inner, COMPONENTS, AXIS, SIDE, at.layer}, at, parameters,
                         typename CountedTo<(int)sizeof...(A)>::t());
    const REAL* member = (const REAL*)&state;
    const REAL before = u[0];
    REAL inside[field::HAS_DEPENDENTS ? COMPONENTS : 1];
    if constexpr (field::HAS_DEPENDENTS)
      for (int c = 0; c < COMPONENTS; ++c) inside[c] = u[c];
    bool copied = true;
    for (int c = 0; c < COUNT; ++c) {
      copied = copied && member[c] == u[c];
      u[c] = member[c];
    }
    if (copied) return true;
    if constexpr (field::HAS_DEPENDENTS) update_dependents(inside, u);
    bool sound = true;
    for (int c = 0; c < COMPONENTS; ++c) {
      if (LEADING > 0 && c >= LEADING && c >= COUNT && u[0] != before) u[c] = u[c] / before * u[0];
      sound = sound && rs::is_finite(u[c]);
    }
    return sound && physical(u);
  }
};
