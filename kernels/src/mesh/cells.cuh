// Calls functions of one cell (see `CellFn`) on the cells of patches. Follows gather.cuh. The text after this file names the function
// `cells::F` and its gather `cells::around`; then follow the kernels of map.cu, reduce.cu, mark.cu, conserve.cu or window.cu. Each block
// processes one patch at a time.

namespace cells {

using field::REAL;
using mesh::CELLS;
using mesh::PATCH;
typedef ::nestar_device::cell_fn::Place<REAL> Place;
typedef ::nestar_device::cell_fn::Face<REAL> Face;
template<class S, int G> using Stencil = ::nestar_device::cell_fn::Stencil<REAL, S, G>;
template<class S, int G> using FaceStencil = ::nestar_device::cell_fn::FaceStencil<REAL, S, G>;
typedef ::nestar_kernels::mesh::parameters::CellInput<REAL> Input;

// A cell of a patch. `around` points to the gathered block if the function reads neighbours; `n` is the index of the patch in the launch.
struct Cell {
  const Input& input;
  const REAL* around;
  int row, cell, n;
};

// Reads a state from the leading components of field `field`. In the first field the chosen components are read, and a negative number
// means 0. Values carried from call to call are a field whose rows are those of the launch.
template<class S> RS_FN S state_of(const Cell& at, int field) {
  const Input& p = at.input;
  constexpr int COUNT = sizeof(S) / sizeof(REAL);
  static_assert(sizeof(S) == COUNT * sizeof(REAL), "a state is made of numbers");
  const int row = field > 0 && field == p.carried ? at.n : at.row;
  const REAL* from = p.fields[field] + (rs::i64)row * (p.components[field] * CELLS) + at.cell;
  S state;
  REAL* member = (REAL*)&state;
  RS_UNROLL for (int c = 0; c < COUNT; ++c) {
    const int number = field == 0 ? p.chosen[c] : c;
    member[c] = number < 0 ? (REAL)0 : from[number * CELLS];
  }
  return state;
}

// Reads the states of a function in a cell: of field N, or a tuple of fields from N on.
template<class S, int N> struct States {
  static RS_MEMBER S of(const Cell& at) { return state_of<S>(at, N); }
};
template<class A, class B, int N> struct States<rs::tup<A, B>, N> {
  static RS_MEMBER rs::tup<A, B> of(const Cell& at) {
    return rs::tup<A, B>{state_of<A>(at, N), state_of<B>(at, N + 1)};
  }
};
template<class A, class B, class C, int N> struct States<rs::tup<A, B, C>, N> {
  static RS_MEMBER rs::tup<A, B, C> of(const Cell& at) {
    return rs::tup<A, B, C>{state_of<A>(at, N), state_of<B>(at, N + 1), state_of<C>(at, N + 2)};
  }
};
template<class A, class B, class C, class D, int N> struct States<rs::tup<A, B, C, D>, N> {
  static RS_MEMBER rs::tup<A, B, C, D> of(const Cell& at) {
    return rs::tup<A, B, C, D>{state_of<A>(at, N), state_of<B>(at, N + 1), state_of<C>(at, N + 2), state_of<D>(at, N + 3)};
  }
};

RS_FN Place place(const Cell& at) {
  const int* index = at.input.index + (rs::i64)at.row * 4;
  return ::nestar_kernels::mesh::block::cell_place<REAL>(at.input.geometry, rs::arr<int, 3>{{index[0], index[1], index[2]}},
                                                         at.cell);
}

// Gives the first argument: the state in the cell, its stencil, or the place.
template<class A> struct First {
  static constexpr int REACH = 0;
  static RS_MEMBER A of(const Cell& at) { return States<A, 0>::of(at); }
};
template<class S, int G> struct First<const Stencil<S, G>&> {
  static constexpr int REACH = G;
  static RS_MEMBER Stencil<S, G> of(const Cell& at) {
    constexpr int N = PATCH + 2 * G;
    const int cell = at.cell;
    return Stencil<S, G>{at.around + (cell % 8 + G) + N * (cell / 8 % 8 + G + N * (cell / 64 + G))};
  }
};
template<class T, rs::usize N> struct First<const rs::arr<T, N>&> : First<rs::arr<T, N>> {};
template<> struct First<const Place&> {
  static constexpr int REACH = 0;
  static RS_MEMBER Place of(const Cell& at) { return place(at); }
};

// Gives another argument: states of further fields, the place, a structure, or number n.
template<class A> struct Argument {
  template<class P> static RS_MEMBER A of(const Cell& at, const P&, int) { return States<A, 1>::of(at); }
};
template<> struct Argument<REAL> {
  template<class P> static RS_MEMBER REAL of(const Cell&, const P& p, int n) { return p[n]; }
};
template<class T> struct Argument<const T&> {
  template<class P> static RS_MEMBER const P& of(const Cell&, const P& p, int) { return p; }
};
template<> struct Argument<const Place&> {
  template<class P> static RS_MEMBER Place of(const Cell& at, const P&, int) { return place(at); }
};

// Type of the parameters after the states and the place: a structure or numbers. `BEFORE` is the number of arguments before them.
template<int N, class... A> struct Given { typedef rs::arr<REAL, sizeof...(A)> t; static constexpr int BEFORE = N; };
template<int N, class P> struct Given<N, const P&> { typedef P t; static constexpr int BEFORE = N; };
template<int N, class... A> struct Given<N, REAL, A...> {
  typedef rs::arr<REAL, 1 + sizeof...(A)> t;
  static constexpr int BEFORE = N;
};
template<int N, class... A> struct Given<N, const Place&, A...> : Given<N + 1, A...> {};
template<int N> struct Given<N, const Place&> : Given<N + 1> {};
template<int N, class... A> struct Given<N, const Face&, A...> : Given<N + 1, A...> {};
template<int N> struct Given<N, const Face&> : Given<N + 1> {};
template<int N, class S, class... A> struct Given<N, S, A...> : Given<N + 1, A...> {};

template<int... I> struct Indices {};
template<int N, int... I> struct IndicesTo : IndicesTo<N - 1, N - 1, I...> {};
template<int... I> struct IndicesTo<0, I...> { typedef Indices<I...> t; };

// Gathers a patch with G ghost layers into a block of VALUES values, in shared memory or in `blocks`. `keep` stores the state of each cell.
// Ends with a barrier.
template<int G, int VALUES, bool IN_SHARED, class K> RS_FN REAL* surroundings(const Input& p, int row, const K& keep) {
  if constexpr (G == 0) {
    return nullptr;
  } else {
    REAL* block;
    // constant at compile time, because generic addresses are slower
    if constexpr (IN_SHARED) block = launch::shared<REAL>();
    else block = p.blocks + (rs::i64)launch::block() * VALUES;
    launch::barrier();
    if constexpr (mesh::CENTRING == mesh::ON_FACES) mesh::gather_faces<G>(block, p.view, row);
    else mesh::gather<G>(block, p.view, row, keep);
    return block;
  }
}

// Gathers all components of the first field, `[component][N][N][N]`, with room for F::MORE values after them.
template<class F, bool IN_SHARED> RS_FN REAL* states_around(const Input& p, int row) {
  constexpr int N = PATCH + 2 * F::REACH;
  return surroundings<F::REACH, mesh::COMPONENTS * mesh::BLOCK<F::REACH> + F::MORE, IN_SHARED>(p, row, mesh::Store<N>());
}

// A function of one cell and its types.
template<auto F> struct Function;
template<class T, class S, class... A, T (*F)(S, A...)> struct Function<F> {
  static constexpr int REACH = First<S>::REACH, MORE = 0;
  typedef T Result;
  typedef Given<0, A...> Rest;
  typedef ::nestar_kernels::mesh::parameters::CellParameters<REAL, typename Rest::t> Parameters;
  template<int... I> static RS_MEMBER T call(const Cell& at, const typename Rest::t& parameters, Indices<I...>) {
    return F(First<S>::of(at), Argument<A>::of(at, parameters, I - Rest::BEFORE)...);
  }
  static RS_MEMBER T at(const Parameters& p, const REAL* around, int row, int cell, int n = 0) {
    return call(Cell{p.input, around, row, cell, n}, p.parameters, typename IndicesTo<(int)sizeof...(A)>::t());
  }
};

// Writes COUNT values to the chosen components of a cell of the first field, if the new state is physical. Otherwise records cell `item` of
// the launch in `round`, leaves the state, and returns false. All loads precede the stores, because a load after a store would wait for it.
template<int COUNT> RS_FN bool write_back(const Input& p, unsigned item, int row, int cell, const REAL* values) {
  REAL* to = p.fields[0] + (rs::i64)row * (mesh::COMPONENTS * CELLS) + cell;
  if constexpr (field::LEADING > 0) {
    REAL u[mesh::COMPONENTS];
    RS_UNROLL for (int c = 0; c < mesh::COMPONENTS; ++c) {
      u[c] = to[c * CELLS];
      // indices are constant at compile time, so that the state stays in registers
      RS_UNROLL for (int v = 0; v < COUNT; ++v) u[c] = p.chosen[v] == c ? values[v] : u[c];
    }
    if constexpr (field::HAS_DEPENDENTS) {
      REAL old[mesh::COMPONENTS];
      for (int c = 0; c < mesh::COMPONENTS; ++c) old[c] = to[c * CELLS];
      field::update_dependents(old, u);
    }
    if (!field::physical(u)) {
      launch::atomic_max(&p.round->failed, ~0u - item);
      return false;
    }
    RS_UNROLL for (int v = 0; v < COUNT; ++v)
      if (p.chosen[v] >= 0) to[p.chosen[v] * CELLS] = values[v];
    if constexpr (field::HAS_DEPENDENTS)
      for (int c = 0; c < field::LEADING; ++c) to[c * CELLS] = u[c];
  } else {
    RS_UNROLL for (int v = 0; v < COUNT; ++v)
      if (p.chosen[v] >= 0) to[p.chosen[v] * CELLS] = values[v];
  }
  return true;
}

// Replaces the function if only the gathered states are wanted, G layers around a patch.
template<int G> struct Window {
  static constexpr int REACH = G, MORE = 0;
  typedef ::nestar_kernels::mesh::parameters::CellParameters<REAL, rs::arr<REAL, 0>> Parameters;
};

}  // namespace cells

// Loops over the rows that this block processes; n is the index in the launch.
#define EACH_ROW(n, input) for (int n = launch::block(); n < (input).count; n += launch::blocks())
