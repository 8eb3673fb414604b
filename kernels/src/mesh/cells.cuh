// Functions of one cell, as `CellFn` describes them, on the cells of patches. Follows view.cuh; the text behind this file
// names the function as `cells::F`, then come kernels of map.cu, reduce.cu or mark.cu. One block a patch.

namespace cells {

using field::REAL;
using mesh::CELLS;
using mesh::PATCH;
typedef ::nestar_device::cell_fn::Place<REAL> Place;

// What follows the state: the place, then a structure or numbers.
template<class... A> struct Given { typedef rs::arr<REAL, sizeof...(A)> t; };
template<class P> struct Given<const P&> { typedef P t; };
template<> struct Given<const Place&> { typedef rs::arr<REAL, 0> t; };
template<class P> struct Given<const Place&, const P&> { typedef P t; };
template<class... A> struct Given<const Place&, REAL, A...> { typedef rs::arr<REAL, 1 + sizeof...(A)> t; };

// An argument: a number, or the place, or the structure.
template<class A> struct Argument {
  template<class P> static RS_MEMBER REAL of(const Place&, const P& p, int n) { return p[n]; }
};
template<class T> struct Argument<const T&> {
  template<class P> static RS_MEMBER const P& of(const Place&, const P& p, int) { return p; }
};
template<> struct Argument<const Place&> {
  template<class P> static RS_MEMBER const Place& of(const Place& at, const P&, int) { return at; }
};
// Arguments before the first number.
template<class... A> constexpr int BEFORE = 0;
template<class... A> constexpr int BEFORE<const Place&, A...> = 1;

// A state of the leading components of field n.
template<class S, class P> RS_FN S state_of(const P& p, int n, int row, int cell) {
  constexpr int COUNT = sizeof(S) / sizeof(REAL);
  static_assert(sizeof(S) == COUNT * sizeof(REAL), "a state is made of numbers");
  const REAL* from = p.fields[n] + (rs::i64)row * (p.components[n] * CELLS) + cell;
  S state;
  REAL* member = (REAL*)&state;
  RS_UNROLL for (int c = 0; c < COUNT; ++c) member[c] = from[c * CELLS];
  return state;
}

// The state that a function reads: of one field, or a tuple of several.
template<class S> struct States {
  template<class P> static RS_MEMBER S of(const P& p, int row, int cell) { return state_of<S>(p, 0, row, cell); }
};
template<class A, class B> struct States<rs::tup<A, B>> {
  template<class P> static RS_MEMBER rs::tup<A, B> of(const P& p, int row, int cell) {
    return rs::tup<A, B>{state_of<A>(p, 0, row, cell), state_of<B>(p, 1, row, cell)};
  }
};
template<class A, class B, class C> struct States<rs::tup<A, B, C>> {
  template<class P> static RS_MEMBER rs::tup<A, B, C> of(const P& p, int row, int cell) {
    return rs::tup<A, B, C>{state_of<A>(p, 0, row, cell), state_of<B>(p, 1, row, cell), state_of<C>(p, 2, row, cell)};
  }
};
template<class A, class B, class C, class D> struct States<rs::tup<A, B, C, D>> {
  template<class P> static RS_MEMBER rs::tup<A, B, C, D> of(const P& p, int row, int cell) {
    return rs::tup<A, B, C, D>{state_of<A>(p, 0, row, cell), state_of<B>(p, 1, row, cell),
                               state_of<C>(p, 2, row, cell), state_of<D>(p, 3, row, cell)};
  }
};

template<int... I> struct Indices {};
template<int N, int... I> struct IndicesTo : IndicesTo<N - 1, N - 1, I...> {};
template<int... I> struct IndicesTo<0, I...> { typedef Indices<I...> t; };

// The place of a cell.
template<class P> RS_FN Place place(const P& p, int row, int cell) {
  const int* index = p.index + (rs::i64)row * 4;
  return ::nestar_kernels::mesh::block::cell_place<REAL>(p.geometry, rs::arr<int, 3>{{index[0], index[1], index[2]}}, cell);
}

// A function of one cell with its types.
template<auto F> struct Function;
template<class T, class S, class... A, T (*F)(S, A...)> struct Function<F> {
  typedef T Result;
  typedef typename Given<A...>::t P;
  typedef ::nestar_kernels::mesh::parameters::Cells<REAL, P> Parameters;
  template<int... I> static RS_MEMBER T call(const S& state, const Place& at, const P& given, Indices<I...>) {
    return F(state, Argument<A>::of(at, given, I - BEFORE<A...>)...);
  }
  static RS_MEMBER T at(const Parameters& p, int row, int cell) {
    return call(States<S>::of(p.input, row, cell), place(p.input, row, cell), p.given, typename IndicesTo<(int)sizeof...(A)>::t());
  }
};

}  // namespace cells
