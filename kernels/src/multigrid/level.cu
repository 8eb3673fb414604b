// Relaxation and residual of a level: device version of level.rs. Follows ghost_values.cuh.

namespace multigrid {

RS_FN REAL rhs(const Level& p, int row, int cell) {
  const REAL source = source_at(p.source, row, cell);
  return p.tau ? source + p.tau[(rs::i64)row * CELLS + cell] : source;
}

RS_FN REAL laplacian(const Tile<1>& tile, int cell, const Three& weights) {
  return stencil::laplacian<REAL>(tile.values[Tile<1>::of(cell)], tile.around(cell), weights);
}

RS_FN REAL residual(const Level& p, const Tile<1>& tile, int row, int cell) {
  return rhs(p, row, cell) - laplacian(tile, cell, weights_of(p));
}

// Negative diagonal of the Laplacian in a cell of a row beside mirrored faces.
RS_FN REAL diagonal_beside(const Three& weights, int faces, int cell) {
  int at[3];
  place<PATCH>(cell, at);
  const int same = mirrors::mirrors_beside(faces, rs::arr<int, 3>{{PATCH, PATCH, PATCH}}, rs::arr<int, 3>{{at[0], at[1], at[2]}});
  return stencil::diagonal<REAL>(weights, same, same, REAL(0));
}

// Fine cell on side `side` (bits z y x) of cell n of 4^3 of a fine row.
RS_FN int eight(int n, int side) {
  const int x = 2 * (n % HALF), y = 2 * (n / HALF % HALF), z = 2 * (n / (HALF * HALF));
  return x + (side & 1) + PATCH * (y + (side >> 1 & 1) + PATCH * (z + (side >> 2)));
}

// Change of the coarser level at a position relative to the first cell of a patch.
RS_FN REAL change_at(const Change& p, int row, int* to) {
  const int parent = p.view.parent[row];
  for (int axis = 0; axis < 3; ++axis) to[axis] += HALF * (p.view.index[(rs::i64)row * 4 + axis] & 1);
  const int number = p.view.index[(rs::i64)parent * 4 + 3];
  if (p.exterior_after.mirrored != 0) reflect<PATCH>(mirrors_beside(p.exterior_after, p.view.index, number, parent), to);
  const int beside = row_at(p.view.neighbours, parent, to);
  if (beside < 0) {
    return exterior_value(p.exterior_after, p.view.index, number, parent, to) - exterior_value(p.exterior_before, p.view.index, number, parent, to);
  }
  const rs::i64 n = (rs::i64)beside * CELLS + cell_at(to);
  return p.after[n] - p.before[n];
}

}  // namespace multigrid

PATCH_KERNEL(level_relax, multigrid::Level) {
  using namespace multigrid;
  SHARED Tile<1> tile;
  const int row = p.rows[launch::block()];
  fill_before(tile, p, row, p.colour);
  const Three weights = weights_of(p);
  const REAL whole = stencil::diagonal<REAL>(weights, 0, 0, REAL(0));
  const int faces = mirrors_beside(p.exterior, p.view.index, p.view.index[(rs::i64)row * 4 + 3], row);
  EACH(i, CELLS / 2) {
    const int cell = coloured<PATCH>(i, p.colour);
    const REAL u = tile.values[Tile<1>::of(cell)];
    ((REAL*)p.view.level)[(rs::i64)row * CELLS + cell] =
        stencil::relaxed<REAL>(u, laplacian(tile, cell, weights), rhs(p, row, cell),
                               faces == 0 ? whole : diagonal_beside(weights, faces, cell), (REAL)p.omega);
  }
}

PATCH_KERNEL(level_restrict_residual, multigrid::Level) {
  using namespace multigrid;
  SHARED Tile<1> tile;
  SHARED REAL residuals[CELLS];
  const int row = p.rows[launch::block()];
  fill(tile, p.view, p.exterior, row);
  EACH(cell, CELLS) residuals[cell] = residual(p, tile, row, cell);
  launch::barrier();
  EACH(cell, HALF * HALF * HALF) {
    rs::arr<REAL, 8> values;
    RS_UNROLL for (int side = 0; side < 8; ++side) values[side] = residuals[eight(cell, side)];
    const rs::i64 to = (rs::i64)row * (HALF * HALF * HALF) + cell;
    p.residual[to] = ::nestar_kernels::mesh::means::mean8<REAL>(values);
    p.correction[to] = REAL(0);
  }
}

// Largest residual in leaves or in all patches, and largest right-hand side of the level.
PATCH_KERNEL(level_largest_residual, multigrid::Largest) {
  using namespace multigrid;
  SHARED Tile<1> tile;
  const int row = p.level.rows[launch::block()];
  const bool counts = p.covered || p.level.view.first_child[row] == mesh::LEAF;
  if (counts) fill(tile, p.level.view, p.level.exterior, row);
  REAL found[2] = {REAL(0), REAL(0)};
  EACH(cell, CELLS) {
    if (counts) found[0] = larger(found[0], rs::abs(residual(p.level, tile, row, cell)));
    found[1] = larger(found[1], rs::abs(source_at(p.level.source, row, cell)));
  }
  for (int n = 0; n < 2; ++n) {
    const REAL largest = launch::largest_of_block(found[n]);
    if (launch::thread() == 0) launch::store_largest<REAL>((rs::lim<REAL>::U*)(p.largest + n), largest);
  }
}

PATCH_KERNEL(level_add_change, multigrid::Change) {
  using namespace multigrid;
  SHARED REAL changes[WIDE * WIDE * WIDE];
  const int row = p.rows[launch::block()];
  EACH(i, WIDE * WIDE * WIDE) {
    int to[3];
    wide_place(i, to);
    changes[i] = change_at(p, row, to);
  }
  launch::barrier();
  EACH(cell, CELLS) {
    const rs::i64 at = (rs::i64)row * CELLS + cell;
    p.to[at] = p.from[at] + (REAL)p.factor * stencil::trilinear<REAL>(octant(changes, cell));
  }
}

// Copies rows, and adds the change of the same level in another field if there is one.
PATCH_KERNEL(level_copy, multigrid::Change) {
  using namespace multigrid;
  const rs::i64 first = (rs::i64)p.rows[launch::block()] * CELLS;
  EACH(cell, CELLS) {
    const rs::i64 at = first + cell;
    p.to[at] = p.after ? p.from[at] + (p.after[at] - p.before[at]) : p.from[at];
  }
}
