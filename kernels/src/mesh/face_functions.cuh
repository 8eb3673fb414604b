// Calls functions of the states on both sides of a face (see `FaceFn`). Follows cells.cuh and patch_faces.cuh; the text after this file
// names the function `cells::F`.

namespace cells {

using mesh::FACES;

// Gives the first argument: the states beside a face whose upper cell is x, y, z.
template<class A> struct Beside;
template<class S, int G> struct Beside<const FaceStencil<S, G>&> {
  static constexpr int REACH = G;
  static RS_MEMBER FaceStencil<S, G> of(const REAL* block, int axis, int x, int y, int z) {
    constexpr int N = PATCH + 2 * G;
    return FaceStencil<S, G>{block + (x + G) + N * (y + G + N * (z + G)), axis == 0 ? 1 : axis == 1 ? N : N * N};
  }
};

// Gives another argument: the face, a structure, or number n.
template<class A> struct FaceArgument {
  template<class P> static RS_MEMBER REAL of(const Face&, const P& p, int n) { return p[n]; }
};
template<class T> struct FaceArgument<const T&> {
  template<class P> static RS_MEMBER const P& of(const Face&, const P& p, int) { return p; }
};
template<> struct FaceArgument<const Face&> {
  template<class P> static RS_MEMBER const Face& of(const Face& face, const P&, int) { return face; }
};

// A function of a face and its types.
template<auto F> struct FaceFunction;
template<class T, class S, class... A, T (*F)(S, A...)> struct FaceFunction<F> {
  static constexpr int COUNT = sizeof(T) / sizeof(REAL), REACH = Beside<S>::REACH, MORE = 3 * COUNT * FACES;
  typedef T Result;
  typedef Given<0, A...> Rest;
  typedef ::nestar_kernels::mesh::parameters::FluxParameters<REAL, typename Rest::t> Parameters;
  template<int... I>
  static RS_MEMBER T call(const REAL* block, const Face& face, int axis, int x, int y, int z,
                          const typename Rest::t& parameters, Indices<I...>) {
    return F(Beside<S>::of(block, axis, x, y, z), FaceArgument<A>::of(face, parameters, I - Rest::BEFORE)...);
  }
  static RS_MEMBER T at(const Parameters& p, const REAL* block, int row, int axis, int x, int y, int z) {
    const int* index = p.input.index + (rs::i64)row * 4;
    rs::arr<int, 3> cell{{PATCH * index[0] + x, PATCH * index[1] + y, PATCH * index[2] + z}};
    // patches on both sides of a periodic boundary see the same face
    if (field::kind(axis, 1) == mesh::PERIODIC && cell[axis] == p.input.geometry.cells[axis]) cell[axis] = 0;
    const Face face{::nestar_kernels::mesh::block::place_of<REAL>(p.input.geometry, cell), axis,
                    (REAL)p.input.geometry.width[axis]};
    return call(block, face, axis, x, y, z, p.parameters, typename IndicesTo<(int)sizeof...(A)>::t());
  }
};

}  // namespace cells
