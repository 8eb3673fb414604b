// Acceleration of gas by a potential: device version of mod.rs. Follows the kernels of the solver and slopes.cuh.

namespace gravity {

typedef ::nestar_kernels::gravity::KickParameters<REAL> KickParameters;
typedef ::nestar_kernels::gravity::AccelerationParameters<REAL> AccelerationParameters;
typedef ::nestar_kernels::gravity::energy_by_flux::FluxWorkParameters<REAL> FluxWorkParameters;
namespace energy_by_flux = ::nestar_kernels::gravity::energy_by_flux;

}  // namespace gravity

PATCH_KERNEL(gravity_kick, gravity::KickParameters) {
  using namespace gravity;
  SHARED multigrid::Tile<2> tile;
  const int row = p.slope.rows[launch::block()];
  const Three width = widths(p.slope);
  multigrid::fill_for_slopes(tile, p.slope.view, p.slope.exterior, p.slope.source, width, row);
  EACH(cell, mesh::CELLS) {
    const Three a = acceleration(tile, cell, width, p.slope.fourth);
    REAL* u = (REAL*)p.gas + (rs::i64)row * (p.components * mesh::CELLS) + cell;
    if (!p.energy) {
      for (int axis = 0; axis < 3; ++axis) {
        REAL* momentum = u + (1 + axis) * mesh::CELLS;
        *momentum = ::nestar_kernels::gravity::pushed<REAL>(*momentum, u[0], a[axis], (REAL)p.dt);
      }
      continue;
    }
    ::nestar_kernels::hydro::eos::Conserved<REAL> before;
    REAL* member = (REAL*)&before;
    for (int c = 0; c < 5; ++c) member[c] = u[c * mesh::CELLS];
    const auto after = ::nestar_kernels::gravity::kicked<REAL>(before, a, (REAL)p.dt);
    const REAL* value = (const REAL*)&after;
    for (int c = 1; c < 4; ++c) u[c * mesh::CELLS] = value[c];
    REAL* pending_energy = (REAL*)p.pending_energy + (rs::i64)row * mesh::CELLS + cell;
    if (p.stage == 1) *pending_energy = before.energy - after.energy;
    REAL energy = after.energy;
    if (p.stage == 2) energy = energy_by_flux::energy_after_kick<REAL>(before, after, *pending_energy);
    u[4 * mesh::CELLS] = energy;
  }
}

// Adds the acceleration in the cells of a row.
PATCH_KERNEL(gravity_accelerate, gravity::AccelerationParameters) {
  using namespace gravity;
  SHARED multigrid::Tile<2> tile;
  const int row = p.slope.rows[launch::block()];
  const Three width = widths(p.slope);
  multigrid::fill_for_slopes(tile, p.slope.view, p.slope.exterior, p.slope.source, width, row);
  EACH(cell, mesh::CELLS) {
    const Three a = acceleration(tile, cell, width, p.slope.fourth);
    REAL* out = (REAL*)p.out + ((rs::i64)row * p.components + p.first) * mesh::CELLS + cell;
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) out[axis * mesh::CELLS] = out[axis * mesh::CELLS] + (REAL)p.factor * a[axis];
  }
}

// Adds the flux work to the pending energy: device version of energy_by_flux.rs.
PATCH_KERNEL(gravity_flux_work, gravity::FluxWorkParameters) {
  using namespace gravity;
  SHARED multigrid::Tile<1> tile;
  const int row = p.rows[launch::block()];
  multigrid::fill(tile, p.view, p.exterior, row);
  const REAL* mass = p.mass + (rs::i64)row * (3 * mesh::FACES);
  const Three rates{{(REAL)p.rates[0], (REAL)p.rates[1], (REAL)p.rates[2]}};
  EACH(cell, mesh::CELLS) {
    const int i = cell % 8, j = cell / 8 % 8, k = cell / 64;
    const REAL* x = mass + mesh::face_index<0>(i, j, k);
    const REAL* y = mass + mesh::FACES + mesh::face_index<1>(i, j, k);
    const REAL* z = mass + 2 * mesh::FACES + mesh::face_index<2>(i, j, k);
    const Three below{{x[0], y[0], z[0]}}, above{{x[mesh::TO_UPPER<0>], y[mesh::TO_UPPER<1>], z[mesh::TO_UPPER<2>]}};
    const REAL own = tile.values[multigrid::Tile<1>::of(cell)];
    REAL* pending_energy = (REAL*)p.pending_energy + (rs::i64)row * mesh::CELLS + cell;
    *pending_energy = *pending_energy + energy_by_flux::flux_work<REAL>(own, tile.around(cell), below, above, rates);
  }
}

// Largest acceleration over the cell width.
PATCH_KERNEL(gravity_largest_rate, gravity::SlopeParameters) {
  using namespace gravity;
  SHARED multigrid::Tile<2> tile;
  const int row = p.rows[launch::block()];
  const Three width = widths(p);
  multigrid::fill_for_slopes(tile, p.view, p.exterior, p.source, width, row);
  Three most{{REAL(0), REAL(0), REAL(0)}};
  EACH(cell, mesh::CELLS) {
    const Three a = acceleration(tile, cell, width, p.fourth);
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) most[axis] = multigrid::larger(most[axis], rs::abs(a[axis]));
  }
  REAL found = REAL(0);
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) found = multigrid::larger(found, most[axis] / width[axis]);
  const REAL largest = launch::largest_of_block(found);
  if (launch::thread() == 0) launch::store_largest<REAL>((rs::lim<REAL>::U*)p.largest, largest);
}
