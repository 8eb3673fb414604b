// Acceleration by a potential. Follows ghost_values.cuh.

namespace gravity {

using field::REAL;
using multigrid::Three;
typedef ::nestar_kernels::gravity::SlopeParameters<REAL> SlopeParameters;

RS_FN Three widths(const SlopeParameters& p) { return Three{{(REAL)p.width[0], (REAL)p.width[1], (REAL)p.width[2]}}; }

// Acceleration in a cell of a patch, from its potential and ghost values.
RS_FN Three acceleration(const multigrid::Tile<2>& tile, int cell, const Three& width, bool fourth) {
  const REAL* own = tile.values + multigrid::Tile<2>::of(cell);
  Three a;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    const int stride = multigrid::Tile<2>::stride(axis);
    const rs::arr<REAL, 4> values{{own[-2 * stride], own[-stride], own[stride], own[2 * stride]}};
    a[axis] = -multigrid::stencil::slope<REAL>(values, fourth, REAL(1) / width[axis]);
  }
  return a;
}

}  // namespace gravity
