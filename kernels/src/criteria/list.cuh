// Evaluates a list of derived inputs or criteria with one gather and one launch. Follows cells.cuh. Then, in namespace `cells`, the list is
// defined:
//
//   struct List {
//     static constexpr int KEPT                                         number of values that are read around cells
//     static void keep(const Spot& at, const REAL* u, REAL* numbers)    computes them from the state u[component]
//     static bool marks(const Spot& at, const REAL* u, const REAL* around)   true if any criterion holds
//   };
//
// In `marks` the components of the cell's state are CELLS apart, starting at `u`, and the kept values LIST_BLOCK apart, starting at
// `around`.

namespace cells {

constexpr int LIST_GHOSTS = 2, LIST_WIDTH = PATCH + 2 * LIST_GHOSTS, LIST_BLOCK = LIST_WIDTH * LIST_WIDTH * LIST_WIDTH;

// A cell of the level; x, y, z count from the domain's lower edges.
struct Spot {
  const Input& input;
  int x, y, z;
};

// Returns the cell x, y, z of a patch.
RS_FN Spot spot(const Input& p, int row, int x, int y, int z) {
  const int* index = p.index + (rs::i64)row * 4;
  return Spot{p, PATCH * index[0] + x, PATCH * index[1] + y, PATCH * index[2] + z};
}

template<class R> RS_FN ::nestar_device::cell_fn::Place<R> place(const Spot& at) {
  return ::nestar_kernels::mesh::block::place_of<R>(at.input.geometry, rs::arr<int, 3>{{at.x, at.y, at.z}});
}

// Reports a fault if a number is NaN.
RS_FN void check(const Spot& at, REAL number, unsigned code) {
  if (number == number) return;
  const rs::arr<double, 3> centre = place<double>(at).centre;
  launch::leave_fault(at.input.view.fault, code, centre.d, at.input.view.time);
}

// Gives the first argument of a function: the values of its state, its stencil, or the place.
template<class S> struct Leading {
  static RS_MEMBER S of(const Spot&, const REAL* numbers) {
    constexpr int COUNT = sizeof(S) / sizeof(REAL);
    static_assert(sizeof(S) == COUNT * sizeof(REAL), "a state is made of numbers");
    S state;
    REAL* member = (REAL*)&state;
    RS_UNROLL for (int c = 0; c < COUNT; ++c) member[c] = numbers[c];
    return state;
  }
};
template<class S> struct Leading<const Stencil<S, LIST_GHOSTS>&> {
  static RS_MEMBER Stencil<S, LIST_GHOSTS> of(const Spot&, const REAL* around) { return Stencil<S, LIST_GHOSTS>{around}; }
};
template<class R> struct Leading<const ::nestar_device::cell_fn::Place<R>&> {
  static RS_MEMBER ::nestar_device::cell_fn::Place<R> of(const Spot& at, const REAL*) { return place<R>(at); }
};

// Gives another argument: parameter n, the structure of parameters, or the place.
template<class A> struct Parameter {
  template<class P> static RS_MEMBER A of(const Spot&, const P& parameters, int n) { return (A)parameters[n]; }
};
template<class T> struct Parameter<const T&> {
  template<class P> static RS_MEMBER const P& of(const Spot&, const P& parameters, int) { return parameters; }
};
template<class R> struct Parameter<const ::nestar_device::cell_fn::Place<R>&> {
  template<class P> static RS_MEMBER ::nestar_device::cell_fn::Place<R> of(const Spot& at, const P&, int) { return place<R>(at); }
};

// Calls a function of a cell with its parameters.
template<auto F> struct Call;
template<class T, class S, class... A, T (*F)(S, A...)> struct Call<F> {
  template<int BEFORE, class P, int... I>
  static RS_MEMBER T with(const Spot& at, const REAL* numbers, const P& parameters, Indices<I...>) {
    return F(Leading<S>::of(at, numbers), Parameter<A>::of(at, parameters, I - BEFORE)...);
  }
  // with a structure of parameters
  static RS_MEMBER T by(const Spot& at, const REAL* numbers, const void* parameters) {
    typedef Given<0, A...> Rest;
    return with<Rest::BEFORE>(at, numbers, *(const typename Rest::t*)parameters, typename IndicesTo<(int)sizeof...(A)>::t());
  }
  template<class... P> static RS_MEMBER T of(const Spot& at, const REAL* numbers, P... parameters) {
    const double values[] = {parameters..., 0.0};
    return with<(int)(sizeof...(A) - sizeof...(P))>(at, numbers, values, typename IndicesTo<(int)sizeof...(A)>::t());
  }
};

// Stores the kept values of a cell during a gather.
template<class L> struct Keep {
  const Input& p;
  int row;
  RS_MEMBER void operator()(REAL* block, int c, const REAL* u) const {
    constexpr int W = LIST_WIDTH, G = LIST_GHOSTS;
    REAL numbers[L::KEPT > 0 ? L::KEPT : 1];
    // `u` may overlap the destination
    L::keep(spot(p, row, c % W - G, c / W % W - G, c / (W * W) - G), u, numbers);
    RS_UNROLL for (int n = 0; n < L::KEPT; ++n) block[n * LIST_BLOCK + c] = numbers[n];
  }
};

// Reads the arguments of a function of a state and of derived inputs, optionally followed by values carried from call to call.
template<class T> struct OfList;
template<class S, class N> struct OfList<rs::tup<S, N>> {
  static RS_MEMBER rs::tup<S, N> of(const Spot& at, const REAL* numbers, const Cell& cell) {
    return rs::tup<S, N>{state_of<S>(cell, 0), Leading<N>::of(at, numbers)};
  }
};
template<class S, class N, class C> struct OfList<rs::tup<S, N, C>> {
  static RS_MEMBER rs::tup<S, N, C> of(const Spot& at, const REAL* numbers, const Cell& cell) {
    return rs::tup<S, N, C>{state_of<S>(cell, 0), Leading<N>::of(at, numbers), state_of<C>(cell, 2)};
  }
};

// Computes the derived inputs of a list in a cell. Returns the cell.
template<class L> RS_FN Spot keep_numbers(const Input& p, int row, int cell, REAL* numbers) {
  REAL u[mesh::COMPONENTS];
  const REAL* from = p.fields[0] + (rs::i64)row * (p.components[0] * CELLS) + cell;
  for (int c = 0; c < mesh::COMPONENTS; ++c) u[c] = from[c * CELLS];
  const Spot here = spot(p, row, cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH));
  L::keep(here, u, numbers);
  return here;
}

// A function of the state in a cell and of a list's derived inputs.
template<auto F, class L> struct WithInputs;
template<class T, class U, class... A, T (*F)(U, A...), class L> struct WithInputs<F, L> {
  static constexpr int REACH = 0, MORE = 0;
  typedef T Result;
  typedef Given<0, A...> Rest;
  typedef ::nestar_kernels::mesh::parameters::CellParameters<REAL, typename Rest::t> Parameters;
  template<int... I>
  static RS_MEMBER T call(const Cell& at, const U& states, const typename Rest::t& parameters, Indices<I...>) {
    return F(states, Argument<A>::of(at, parameters, I - Rest::BEFORE)...);
  }
  static RS_MEMBER T at(const Parameters& p, const REAL*, int row, int cell, int n = 0) {
    REAL numbers[L::KEPT];
    const Spot here = keep_numbers<L>(p.input, row, cell, numbers);
    const Cell place{p.input, nullptr, row, cell, n};
    return call(place, OfList<U>::of(here, numbers, place), p.parameters, typename IndicesTo<(int)sizeof...(A)>::t());
  }
};

// A list of criteria as a function of one cell.
template<class L> struct ListFunction {
  typedef ::nestar_kernels::mesh::parameters::CellParameters<REAL, rs::arr<REAL, 0>> Parameters;
  typedef bool Result;
  // at a wall the block holds the state while it is gathered
  static constexpr int WIDEST = field::BOUNDED && mesh::COMPONENTS > L::KEPT ? mesh::COMPONENTS : L::KEPT;
  template<bool IN_SHARED> static RS_MEMBER REAL* around(const Input& p, int row) {
    return surroundings<L::KEPT == 0 ? 0 : LIST_GHOSTS, WIDEST * LIST_BLOCK, IN_SHARED>(p, row, Keep<L>{p, row});
  }
  static RS_MEMBER bool at(const Parameters& p, const REAL* block, int row, int cell) {
    const int x = cell % PATCH, y = cell / PATCH % PATCH, z = cell / (PATCH * PATCH);
    const REAL* u = p.input.fields[0] + (rs::i64)row * (p.input.components[0] * CELLS) + cell;
    const int c = x + LIST_GHOSTS + LIST_WIDTH * (y + LIST_GHOSTS + LIST_WIDTH * (z + LIST_GHOSTS));
    return L::marks(spot(p.input, row, x, y, z), u, L::KEPT == 0 ? nullptr : block + c);
  }
};

}  // namespace cells
