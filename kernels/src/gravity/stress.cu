// Gravitational force as the divergence of a stress: device version of stress.rs.

namespace gravity {

namespace stress = ::nestar_kernels::gravity::stress;
typedef stress::StressParameters<REAL> StressParameters;
typedef stress::ImpulsePrediction<REAL> ImpulsePrediction;
typedef stress::ImpulseCorrection<REAL> ImpulseCorrection;
typedef ::nestar_kernels::hydro::eos::Conserved<REAL> Conserved;
typedef rs::arr<REAL, 5> Cross;

// A cell, possibly one outside the patch, and its neighbours across an axis.
RS_FN Cross cross(const multigrid::EdgeTile& tile, const int* at, int axis) {
  const int a = 2 * ((axis + 1) % 3), b = 2 * ((axis + 2) % 3);
  return Cross{{tile.own(at), tile.beside(at, axis, a), tile.beside(at, axis, a + 1), tile.beside(at, axis, b),
                tile.beside(at, axis, b + 1)}};
}

// Flux of component c through face f of those normal to an axis; `widths` has the inverse cell width along each axis.
RS_FN REAL through(const StressParameters& p, const multigrid::EdgeTile& tile, const Three& widths, int axis, int f, int c) {
  const int wide = axis == 0 ? 9 : 8, deep = axis == 1 ? 9 : 8;
  int high[3] = {f % wide, f / wide % deep, f / (wide * deep)}, low[3] = {high[0], high[1], high[2]};
  low[axis] -= 1;
  const Cross below = cross(tile, low, axis), above = cross(tile, high, axis);
  const Three inverse{{widths[axis], widths[(axis + 1) % 3], widths[(axis + 2) % 3]}};
  const int turn = (c - axis + 3) % 3;
  const REAL found = turn == 0 ? stress::pressure<REAL>(below, above, inverse, (REAL)p.mean_source)
                               : stress::shear<REAL>(below, above, inverse, turn - 1);
  return (REAL)p.scale * found;
}

RS_FN Conserved state(const REAL* u) {
  Conserved now;
  REAL* member = (REAL*)&now;
  for (int c = 0; c < 5; ++c) member[c] = u[c * mesh::CELLS];
  return now;
}
RS_FN void store(REAL* u, const Conserved& after, REAL energy) {
  const REAL* member = (const REAL*)&after;
  for (int c = 1; c < 4; ++c) u[c * mesh::CELLS] = member[c];
  u[4 * mesh::CELLS] = energy;
}

}  // namespace gravity

// Adds the momentum fluxes to the pending impulse and to the registers. It needs more registers than other kernels of a
// level.
KERNEL_BOUNDS(gravity_stress, gravity::StressParameters, 256, 4) {
  using namespace gravity;
  SHARED multigrid::EdgeTile tile;
  SHARED REAL flux[3 * mesh::FACES];
  const int row = p.rows[launch::block()];
  const Three width{{(REAL)p.width[0], (REAL)p.width[1], (REAL)p.width[2]}};
  const Three rate{{(REAL)p.rate[0], (REAL)p.rate[1], (REAL)p.rate[2]}};
  const Three inverse{{(REAL)(1.0 / p.width[0]), (REAL)(1.0 / p.width[1]), (REAL)(1.0 / p.width[2])}};
  multigrid::fill_edge_tile(tile, p.view, p.exterior, p.source, width, row);
  for (int c = 0; c < 3; ++c) {
    EACH(f, 3 * mesh::FACES) flux[f] = through(p, tile, inverse, f / mesh::FACES, f % mesh::FACES, c);
    launch::barrier();
    REAL* impulse = (REAL*)p.impulse + ((rs::i64)row * 3 + c) * mesh::CELLS;
    EACH(cell, mesh::CELLS) impulse[cell] = mesh::advanced(impulse[cell], flux, mesh::FACES, cell, rate);
    if (p.adds) mesh::store_registers<true, 3>(p.registers, row, c, flux, mesh::FACES, (REAL)p.dt);
    else mesh::store_registers<false, 3>(p.registers, row, c, flux, mesh::FACES);
    launch::barrier();
  }
}

// Kicks gas and subtracts the kick from the pending impulse.
PATCH_KERNEL(gravity_predict_impulse, gravity::ImpulsePrediction) {
  using namespace gravity;
  SHARED multigrid::Tile<2> tile;
  const int row = p.slope.rows[launch::block()];
  const Three width = widths(p.slope);
  multigrid::fill_for_slopes(tile, p.slope.view, p.slope.exterior, p.slope.source, width, row);
  EACH(cell, mesh::CELLS) {
    const Three a = acceleration(tile, cell, width, p.slope.fourth);
    REAL* u = (REAL*)p.gas + (rs::i64)row * (p.components * mesh::CELLS) + cell;
    REAL* impulse = (REAL*)p.impulse + (rs::i64)row * (3 * mesh::CELLS) + cell;
    const Conserved before = state(u), after = ::nestar_kernels::gravity::kicked<REAL>(before, a, (REAL)p.dt);
    for (int axis = 0; axis < 3; ++axis) impulse[axis * mesh::CELLS] = before.momentum[axis] - after.momentum[axis];
    store(u, after, after.energy);
    if (p.pending_energy) ((REAL*)p.pending_energy)[(rs::i64)row * mesh::CELLS + cell] = before.energy - after.energy;
  }
}

// Adds the pending impulse to the gas.
PATCH_KERNEL(gravity_correct_impulse, gravity::ImpulseCorrection) {
  using namespace gravity;
  const int row = p.rows[launch::block()];
  EACH(cell, mesh::CELLS) {
    REAL* u = (REAL*)p.gas + (rs::i64)row * (p.components * mesh::CELLS) + cell;
    REAL* impulse = (REAL*)p.impulse + (rs::i64)row * (3 * mesh::CELLS) + cell;
    const rs::arr<REAL, 3> pending{{impulse[0], impulse[mesh::CELLS], impulse[2 * mesh::CELLS]}};
    const Conserved before = state(u), after = stress::with_impulse<REAL>(before, pending);
    REAL energy = after.energy;
    if (p.pending_energy) {
      REAL* pending_energy = (REAL*)p.pending_energy + (rs::i64)row * mesh::CELLS + cell;
      energy = ::nestar_kernels::gravity::energy_by_flux::energy_after_kick<REAL>(before, after, *pending_energy);
      *pending_energy = REAL(0);
    }
    store(u, after, energy);
    for (int axis = 0; axis < 3; ++axis) impulse[axis * mesh::CELLS] = REAL(0);
  }
}
