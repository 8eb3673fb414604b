// Calls functions of one particle (see `ParticleFn`) on the particles of a list. Follows pages.cuh. The text after this file names the
// function `particles::F`; then follow the kernels of function_update.cu, function_reduce.cu or function_collect.cu.

namespace particles {

namespace functions = ::nestar_kernels::particles::functions;
typedef ::nestar_device::particle_fn::ParticlePlace<REAL> Place;
typedef functions::FunctionInput<REAL> Input;

// A particle of a patch.
struct Particle {
  const Input& input;
  int row;
  i64 n;
};

RS_FN REAL number_of(const Particle& at, int k) {
  const int column = at.input.columns[k];
  return column < 0 ? at.input.mass : page_view(at.input.from.page_array).number(column, at.n);
}

// Reads a state: a number, a structure of numbers, or a tuple of them.
template<class S> RS_FN S state_of(const Particle& at) {
  constexpr int COUNT = sizeof(S) / sizeof(REAL);
  static_assert(sizeof(S) == COUNT * sizeof(REAL), "a state is made of numbers");
  S state;
  REAL* member = (REAL*)&state;
  RS_UNROLL for (int k = 0; k < COUNT; ++k) member[k] = number_of(at, k);
  return state;
}

RS_FN Place place(const Particle& at) {
  const PageView from = page_view(at.input.from.page_array);
  const int* index = at.input.from.tables.index + 4 * (i64)at.row;
  rs::arr<u64, 3> offset;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) offset[axis] = widen(from.offset(axis, at.n));
  return functions::particle_place<REAL>(at.input.level, from.id(at.n), offset, rs::arr<int, 3>{{index[0], index[1], index[2]}});
}

// Gives the first argument: the state or the place.
template<class S> struct First {
  static RS_MEMBER S of(const Particle& at) { return state_of<S>(at); }
};
template<class S> struct First<const S&> : First<S> {};
template<> struct First<const Place&> {
  static RS_MEMBER Place of(const Particle& at) { return place(at); }
};

// Gives another argument: number k, the place, or a structure.
template<class A> struct Argument;
template<> struct Argument<REAL> {
  template<class P> static RS_MEMBER REAL of(const Particle&, const P& p, int k) { return p[k]; }
};
template<class T> struct Argument<const T&> {
  template<class P> static RS_MEMBER const P& of(const Particle&, const P& p, int) { return p; }
};
template<> struct Argument<const Place&> {
  template<class P> static RS_MEMBER Place of(const Particle& at, const P&, int) { return place(at); }
};

// Type of the parameters after the place: a structure or numbers. `BEFORE` is the number of arguments before them.
template<class... A> struct Given {
  typedef rs::arr<REAL, sizeof...(A)> t;
  static constexpr int BEFORE = 0;
};
template<class P> struct Given<const P&> {
  typedef P t;
  static constexpr int BEFORE = 0;
};
template<class... A> struct Given<const Place&, A...> {
  typedef typename Given<A...>::t t;
  static constexpr int BEFORE = 1;
};
template<> struct Given<const Place&> {
  typedef rs::arr<REAL, 0> t;
  static constexpr int BEFORE = 1;
};

template<int... I> struct Indices {};
template<int N, int... I> struct IndicesTo : IndicesTo<N - 1, N - 1, I...> {};
template<int... I> struct IndicesTo<0, I...> { typedef Indices<I...> t; };

// A function of one particle and its types.
template<auto F> struct Function;
template<class T, class S, class... A, T (*F)(S, A...)> struct Function<F> {
  typedef T Result;
  typedef Given<A...> Rest;
  typedef functions::FunctionParameters<REAL, typename Rest::t> Parameters;
  template<int... I> static RS_MEMBER T call(const Particle& at, const typename Rest::t& parameters, Indices<I...>) {
    return F(First<S>::of(at), Argument<A>::of(at, parameters, I - Rest::BEFORE)...);
  }
  static RS_MEMBER T at(const Parameters& p, int row, i64 n) {
    return call(Particle{p.input, row, n}, p.parameters, typename IndicesTo<(int)sizeof...(A)>::t());
  }
};

}  // namespace particles
