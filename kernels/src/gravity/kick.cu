// What gas feels of a potential: the twin of mod.rs. Follows the kernels of the solver.

namespace gravity {

using field::REAL;
using multigrid::Three;
typedef ::nestar_kernels::gravity::Fall<REAL> Fall;
typedef ::nestar_kernels::gravity::Kick<REAL> Kick;

RS_FN Three acceleration(const Fall& p, int row, int cell) {
  Three a;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    const REAL width = (REAL)p.width[axis];
    const multigrid::Slopes slopes{p.view, p.source, width, axis};
    a[axis] = -multigrid::stencil::slope<REAL>(slopes.along(row, cell), p.fourth, REAL(1) / width);
  }
  return a;
}

}  // namespace gravity

KERNEL(gravity_kick, gravity::Kick) {
  using namespace gravity;
  EACH_CELL(mesh::PATCH, n, cell, p.fall.count) {
    const int row = p.fall.rows[n];
    const Three a = acceleration(p.fall, row, cell);
    REAL* u = (REAL*)p.gas + (rs::i64)row * (p.components * mesh::CELLS) + cell;
    ::nestar_kernels::hydro::eos::Conserved<REAL> before;
    REAL* member = (REAL*)&before;
    for (int c = 0; c < 5; ++c) member[c] = u[c * mesh::CELLS];
    const auto after = ::nestar_kernels::gravity::kicked<REAL>(before, a, (REAL)p.dt);
    const REAL* value = (const REAL*)&after;
    for (int c = 1; c < 5; ++c) u[c * mesh::CELLS] = value[c];
  }
}

// The largest acceleration over the width of a cell.
KERNEL(gravity_fall, gravity::Fall) {
  using namespace gravity;
  REAL found = REAL(0);
  EACH_CELL(mesh::PATCH, n, cell, p.count) {
    const Three a = acceleration(p, p.rows[n], cell);
    for (int axis = 0; axis < 3; ++axis) found = rs::max(found, rs::abs(a[axis] / (REAL)p.width[axis]));
  }
  const REAL largest = launch::largest_of_block(found);
  if (launch::thread() == 0) launch::store_largest<REAL>((rs::lim<REAL>::U*)p.largest, largest);
}
