// Faces of a patch's cells: layout of fluxes, conservative update, registers. Follows view.cuh.

namespace mesh {

// Faces normal to one axis: nine layers of 64. Arrays of faces may have those of `A` more layers of cells around the patch, across the axis.
template<int A> constexpr int FACES_WITH = (PATCH + 1) * (PATCH + 2 * A) * (PATCH + 2 * A);
constexpr int FACES = FACES_WITH<0>;

// Index of the face with coordinate n (0 to 8) along axis D; the other coordinates are those of a cell.
template<int D, int A = 0> RS_FN int face_index(int i, int j, int k) {
  constexpr int W = PATCH + 2 * A, L = PATCH + 1;
  return D == 0 ? i + L * ((j + A) + W * (k + A)) : D == 1 ? (i + A) + W * (j + L * (k + A)) : (i + A) + W * ((j + A) + W * k);
}
// Offset from the lower face of a cell to its upper face.
template<int D, int A = 0> constexpr int TO_UPPER = D == 0 ? 1 : D == 1 ? PATCH + 2 * A : (PATCH + 2 * A) * (PATCH + 2 * A);

// Returns a component of a cell after the step; `flux` holds three axes, `pitch` values apart.
template<int A = 0> RS_FN REAL advanced(REAL u, const REAL* flux, int pitch, int cell, const rs::arr<REAL, 3>& rate) {
  const int i = cell % 8, j = cell / 8 % 8, k = cell / 64;
  const REAL* x = flux + face_index<0, A>(i, j, k);
  const REAL* y = flux + pitch + face_index<1, A>(i, j, k);
  const REAL* z = flux + 2 * pitch + face_index<2, A>(i, j, k);
  return ::nestar_kernels::mesh::fluxes::advanced<REAL>(
      u, rs::arr<REAL, 3>{{x[0], y[0], z[0]}}, rs::arr<REAL, 3>{{x[TO_UPPER<0, A>], y[TO_UPPER<1, A>], z[TO_UPPER<2, A>]}}, rate);
}

// Value of a component's fluxes (one axis) on face `face` of the patch at transverse position (slow, fast).
template<int A = 0> RS_FN REAL on_face(const REAL* flux, int face, int slow, int fast) {
  const int n = face % 2 * PATCH;
  const int f = face < 2 ? face_index<0, A>(n, fast, slow) : face < 4 ? face_index<1, A>(fast, n, slow) : face_index<2, A>(fast, slow, n);
  return flux[f];
}

// Stores the fluxes of component c of COUNT through the patch's faces in its registers, or adds them; fine fluxes are then multiplied by
// `dt`.
template<bool ADDS, int COUNT = COMPONENTS, int A = 0>
RS_FN void store_registers(const FluxRegisterView& to, int row, int c, const REAL* flux, int pitch, REAL dt = REAL(0)) {
  if (!to.coarse_slot && !to.fine_slot) return;
  for (int face = 0; face < 6; ++face) {
    const int coarse = to.coarse_slot ? to.coarse_slot[row * 6 + face] : -1;
    const int fine = to.fine_slot ? to.fine_slot[row * 6 + face] : -1;
    const REAL* of_axis = flux + face / 2 * pitch;
    if (coarse >= 0) EACH(n, FACE) {
        REAL* at = to.coarse_flux + ((rs::i64)coarse * COUNT + c) * FACE + n;
        const REAL value = on_face<A>(of_axis, face, n / 8, n % 8);
        *at = ADDS ? *at + value : value;
      }
    if (fine >= 0) EACH(n, QUARTER) {
        const int fast = 2 * (n % 4), slow = 2 * (n / 4);
        const rs::arr<REAL, 4> four{{on_face<A>(of_axis, face, slow, fast), on_face<A>(of_axis, face, slow, fast + 1),
                                     on_face<A>(of_axis, face, slow + 1, fast), on_face<A>(of_axis, face, slow + 1, fast + 1)}};
        REAL* at = to.attempt + ((rs::i64)fine * COUNT + c) * QUARTER + n;
        const REAL value = ::nestar_kernels::mesh::fluxes::mean4<REAL>(four);
        *at = ADDS ? *at + dt * value : value;
      }
  }
}

// Stores the share of a stage in the fluxes of component c in the registers `to`; `earlier` holds those of the stages before, if any.
template<int A = 0>
RS_FN void store_shares(const FluxRegisterView& to, const FluxRegisterView& earlier, int row, int c, const REAL* flux, int pitch, REAL share) {
  namespace fluxes = ::nestar_kernels::mesh::fluxes;
  if (!to.coarse_slot && !to.fine_slot) return;
  for (int face = 0; face < 6; ++face) {
    const int coarse = to.coarse_slot ? to.coarse_slot[row * 6 + face] : -1;
    const int fine = to.fine_slot ? to.fine_slot[row * 6 + face] : -1;
    const REAL* of_axis = flux + face / 2 * pitch;
    if (coarse >= 0) EACH(n, FACE) {
        const rs::i64 at = ((rs::i64)coarse * COMPONENTS + c) * FACE + n;
        const REAL before = earlier.coarse_flux ? earlier.coarse_flux[at] : REAL(0);
        to.coarse_flux[at] = fluxes::with_share<REAL>(before, on_face<A>(of_axis, face, n / 8, n % 8), share);
      }
    if (fine >= 0) EACH(n, QUARTER) {
        const int fast = 2 * (n % 4), slow = 2 * (n / 4);
        const rs::arr<REAL, 4> four{{on_face<A>(of_axis, face, slow, fast), on_face<A>(of_axis, face, slow, fast + 1),
                                     on_face<A>(of_axis, face, slow + 1, fast), on_face<A>(of_axis, face, slow + 1, fast + 1)}};
        const rs::i64 at = ((rs::i64)fine * COMPONENTS + c) * QUARTER + n;
        const REAL before = earlier.attempt ? earlier.attempt[at] : REAL(0);
        to.attempt[at] = fluxes::with_share<REAL>(before, fluxes::mean4<REAL>(four), share);
      }
  }
}

}  // namespace mesh
