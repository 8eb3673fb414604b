// The force of gravity as the divergence of a stress: the twin of stress.rs.

namespace gravity {

namespace stress = ::nestar_kernels::gravity::stress;
typedef stress::Flow<REAL> Flow;
typedef stress::Loan<REAL> Loan;
typedef stress::Settle<REAL> Settle;
typedef ::nestar_kernels::hydro::eos::Conserved<REAL> Conserved;
typedef rs::arr<REAL, 5> Cross;

// A cell, which may stand one beyond the patch, and those beside it across an axis.
RS_FN Cross cross(const multigrid::Edged& tile, const int* at, int axis) {
  const int a = 2 * ((axis + 1) % 3), b = 2 * ((axis + 2) % 3);
  return Cross{{tile.own(at), tile.beside(at, axis, a), tile.beside(at, axis, a + 1), tile.beside(at, axis, b),
                tile.beside(at, axis, b + 1)}};
}

// What flows of component c through face f of those normal to an axis; `widths` has one over the width along each axis.
RS_FN REAL through(const Flow& p, const multigrid::Edged& tile, const Three& widths, int axis, int f, int c) {
  const int wide = axis == 0 ? 9 : 8, deep = axis == 1 ? 9 : 8;
  int high[3] = {f % wide, f / wide % deep, f / (wide * deep)}, low[3] = {high[0], high[1], high[2]};
  low[axis] -= 1;
  const Cross below = cross(tile, low, axis), above = cross(tile, high, axis);
  const Three inverse{{widths[axis], widths[(axis + 1) % 3], widths[(axis + 2) % 3]}};
  const int turn = (c - axis + 3) % 3;
  const REAL found = turn == 0 ? stress::pressure<REAL>(below, above, inverse, (REAL)p.pull)
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

// Adds what flows through faces to the momentum that gas is owed, and hands it to the registers.
// It holds more values at a time than other kernels of a level.
KERNEL_BOUNDS(gravity_stress, gravity::Flow, 256, 4) {
  using namespace gravity;
  SHARED multigrid::Edged tile;
  SHARED REAL flux[3 * mesh::FACES];
  const int row = p.rows[launch::block()];
  const Three width{{(REAL)p.width[0], (REAL)p.width[1], (REAL)p.width[2]}};
  const Three rate{{(REAL)p.rate[0], (REAL)p.rate[1], (REAL)p.rate[2]}};
  const Three inverse{{(REAL)(1.0 / p.width[0]), (REAL)(1.0 / p.width[1]), (REAL)(1.0 / p.width[2])}};
  multigrid::fill_edged(tile, p.view, p.exterior, p.source, width, row);
  for (int c = 0; c < 3; ++c) {
    EACH(f, 3 * mesh::FACES) flux[f] = through(p, tile, inverse, f / mesh::FACES, f % mesh::FACES, c);
    launch::barrier();
    REAL* push = (REAL*)p.push + ((rs::i64)row * 3 + c) * mesh::CELLS;
    EACH(cell, mesh::CELLS) push[cell] = mesh::advanced(push[cell], flux, mesh::FACES, cell, rate);
    if (p.adds) mesh::store_registers<true, 3>(p.registers, row, c, flux, mesh::FACES, (REAL)p.dt);
    else mesh::store_registers<false, 3>(p.registers, row, c, flux, mesh::FACES);
    launch::barrier();
  }
}

// Kicks gas as a loan.
PATCH_KERNEL(gravity_lend, gravity::Loan) {
  using namespace gravity;
  SHARED multigrid::Tile<2> tile;
  const int row = p.fall.rows[launch::block()];
  const Three width = widths(p.fall);
  multigrid::fill_for_slopes(tile, p.fall.view, p.fall.exterior, p.fall.source, width, row);
  EACH(cell, mesh::CELLS) {
    const Three a = acceleration(tile, cell, width, p.fall.fourth);
    REAL* u = (REAL*)p.gas + (rs::i64)row * (p.components * mesh::CELLS) + cell;
    REAL* push = (REAL*)p.push + (rs::i64)row * (3 * mesh::CELLS) + cell;
    const Conserved before = state(u), after = ::nestar_kernels::gravity::kicked<REAL>(before, a, (REAL)p.dt);
    for (int axis = 0; axis < 3; ++axis) push[axis * mesh::CELLS] = before.momentum[axis] - after.momentum[axis];
    store(u, after, after.energy);
    if (p.due) ((REAL*)p.due)[(rs::i64)row * mesh::CELLS + cell] = before.energy - after.energy;
  }
}

// Gives gas what it is owed.
PATCH_KERNEL(gravity_settle, gravity::Settle) {
  using namespace gravity;
  const int row = p.rows[launch::block()];
  EACH(cell, mesh::CELLS) {
    REAL* u = (REAL*)p.gas + (rs::i64)row * (p.components * mesh::CELLS) + cell;
    REAL* push = (REAL*)p.push + (rs::i64)row * (3 * mesh::CELLS) + cell;
    const rs::arr<REAL, 3> owed{{push[0], push[mesh::CELLS], push[2 * mesh::CELLS]}};
    const Conserved before = state(u), after = stress::given<REAL>(before, owed);
    REAL energy = after.energy;
    if (p.due) {
      REAL* due = (REAL*)p.due + (rs::i64)row * mesh::CELLS + cell;
      energy = ::nestar_kernels::gravity::work::settled<REAL>(before, after, *due);
      if (p.internal) u[5 * mesh::CELLS] = u[5 * mesh::CELLS] + (energy - after.energy);
      *due = REAL(0);
    }
    store(u, after, energy);
    for (int axis = 0; axis < 3; ++axis) push[axis * mesh::CELLS] = REAL(0);
  }
}
