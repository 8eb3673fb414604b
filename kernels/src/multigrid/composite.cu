// Transfer between a level and the next coarser one: device version of composite.rs. Follows level.cu.

namespace multigrid {

// Returns the child and its cell of 4^3 for a cell of a row whose first child is `first`.
RS_FN int child_of(int first, int cell, int& n) {
  int at[3];
  place<PATCH>(cell, at);
  n = at[0] % HALF + HALF * (at[1] % HALF + HALF * (at[2] % HALF));
  return first + at[0] / HALF + 2 * (at[1] / HALF) + 4 * (at[2] / HALF);
}

RS_FN rs::arr<REAL, 8> fine_values(const Pair& p, int child, int n) {
  rs::arr<REAL, 8> values;
  RS_UNROLL for (int side = 0; side < 8; ++side) values[side] = p.fine[(rs::i64)child * CELLS + eight(n, side)];
  return values;
}

// Coarse difference through a face minus the mean of the fine ones, both for the coarse width.
RS_FN REAL mismatch_through(const Pair& p, int row, int cell, int face, int beside) {
  const int axis = face / 2, far = (PATCH - 1) * power(PATCH, axis);
  const int covered = face % 2 == 0 ? cell + far : cell - far;
  const REAL* bank = p.coarse.view.level;
  REAL upward;
  if (p.differences) {
    upward = p.differences[(rs::i64)beside * (3 * CELLS) + axis * CELLS + covered];
  } else {
    int n;
    const int child = child_of(p.coarse.view.first_child[beside], covered, n);
    upward = stencil::difference<REAL>(fine_values(p, child, n), (rs::u64)axis);
  }
  int at[3];
  place<PATCH>(cell, at);
  const REAL plane = stencil::mean_in_plane<REAL>(plane_values(present(p.coarse.view, p.coarse.exterior, row), row, at, axis));
  return stencil::flux_mismatch<REAL>(bank[(rs::i64)row * CELLS + cell], plane, bank[(rs::i64)beside * CELLS + covered],
                                 face % 2 == 0 ? -upward : upward);
}

RS_FN REAL mismatch(const Pair& p, int row, int cell) {
  int at[3];
  place<PATCH>(cell, at);
  const Three weights = weights_of(p.coarse);
  Three axes{{REAL(0), REAL(0), REAL(0)}};
  for (int face = 0; face < 6; ++face) {
    const int axis = face / 2;
    const int beside = p.coarse.view.neighbours[(rs::i64)row * AROUND + mesh::face_direction(face)];
    if (at[axis] != (face % 2 == 0 ? 0 : PATCH - 1) || beside < 0 || p.coarse.view.first_child[beside] == mesh::LEAF)
      continue;
    axes[axis] = axes[axis] + weights[axis] * mismatch_through(p, row, cell, face, beside);
  }
  return ::nestar_device::math::sums::sum3<REAL>(axes[0], axes[1], axes[2]);
}

}  // namespace multigrid

namespace multigrid {

// Index of a cell of the parent of own octet `n` of the fine level, its child and the cell of 4^3 there.
RS_FN rs::i64 parent_cell(const Pair& p, int n, int cell, int& row, int& child, int& fine) {
  const int first = p.fine_rows[8 * n] & ~7;
  row = p.coarse.view.parent[first];
  child = child_of(first, cell, fine);
  return (rs::i64)row * CELLS + cell;
}

}  // namespace multigrid

// Sets parents of own octets of the fine level to the averages of its potential.
KERNEL(composite_restrict_solution, multigrid::Pair) {
  using namespace multigrid;
  EACH_CELL(PATCH, n, cell, p.octets) {
    int row, child, fine;
    const rs::i64 at = parent_cell(p, n, cell, row, child, fine);
    const auto values = fine_values(p, child, fine);
    ((REAL*)p.coarse.view.level)[at] = ::nestar_kernels::mesh::means::mean8<REAL>(values);
    if (p.differences)
      for (int axis = 0; axis < 3; ++axis)
        ((REAL*)p.differences)[(rs::i64)row * (3 * CELLS) + axis * CELLS + cell] = stencil::difference<REAL>(values, (rs::u64)axis);
  }
}

// Stores the restricted residual of the fine level in tau.
KERNEL(composite_restrict_residual, multigrid::Pair) {
  using namespace multigrid;
  EACH_CELL(PATCH, n, cell, p.octets) {
    int row, child, fine;
    const rs::i64 at = parent_cell(p, n, cell, row, child, fine);
    ((REAL*)p.coarse.tau)[at] = p.residual[(rs::i64)child * (HALF * HALF * HALF) + fine];
  }
}

PATCH_KERNEL(composite_tau, multigrid::Pair) {
  using namespace multigrid;
  SHARED Tile<1> tile;
  const int row = p.coarse.rows[launch::block()];
  REAL* tau = (REAL*)p.coarse.tau + (rs::i64)row * CELLS;
  if (p.coarse.view.first_child[row] == mesh::LEAF) {
    EACH(cell, CELLS) tau[cell] = mismatch(p, row, cell);
    return;
  }
  fill(tile, p.coarse.view, p.coarse.exterior, row);
  const Three weights = weights_of(p.coarse);
  EACH(cell, CELLS) tau[cell] = (laplacian(tile, cell, weights) + tau[cell]) - source_at(p.coarse.source, row, cell);
}
