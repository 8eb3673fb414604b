// A #[device] function of one cell's state applied to every cell of patches. One block a patch. The text behind this file
// is `MESH_MAP(function)`.

namespace mesh {

typedef parameters::Map<REAL> Map;

template<int... I> struct Indices {};
template<int N, int... I> struct IndicesTo : IndicesTo<N - 1, N - 1, I...> {};
template<int... I> struct IndicesTo<0, I...> { typedef Indices<I...> t; };

// Applies F to the state S, whose members in order are the components from 0 on.
template<auto F> struct CellMap;
template<class S, class... A, S (*F)(S, A...)> struct CellMap<F> {
  static constexpr int STATE = sizeof(S) / sizeof(REAL);
  static_assert(sizeof(S) == STATE * sizeof(REAL) && STATE <= COMPONENTS, "a state is made of components");
  template<int... I> static RS_MEMBER S call(const S& state, const Map& p, Indices<I...>) {
    return F(state, (REAL)p.values[I]...);
  }
  static RS_MEMBER void apply(REAL* cell, const Map& p) {
    S state;
    REAL* member = (REAL*)&state;
    RS_UNROLL for (int c = 0; c < STATE; ++c) member[c] = cell[c * CELLS];
    state = call(state, p, typename IndicesTo<(int)sizeof...(A)>::t());
    RS_UNROLL for (int c = 0; c < STATE; ++c) cell[c * CELLS] = member[c];
  }
};

}  // namespace mesh

#define MESH_MAP(function)                                                                     \
  KERNEL(mesh_map, mesh::Map) {                                                                \
    const int row = p.rows[launch::block()];                                                   \
    EACH(cell, mesh::CELLS) mesh::CellMap<&function>::apply(mesh::row_of(p.level, row) + cell, p); \
    if (launch::thread() == 0) p.stale[row] = 1;                                               \
  }
