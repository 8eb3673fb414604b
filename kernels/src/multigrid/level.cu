// A level with its unknowns: the twin of level.rs. Follows star.cuh.

namespace multigrid {

RS_FN REAL laplacian(const Level& p, int row, int cell) {
  rs::arr<REAL, 6> values;
  const int missing = around<PATCH>(p.view.level, p.view.neighbours, row, cell, values);
  if (missing)
    for (int face = 0; face < 6; ++face)
      if (missing >> face & 1) values[face] = through(p.view, row, cell, face);
  return stencil::laplacian<REAL>(p.view.level[(rs::i64)row * CELLS + cell], values, weights_of(p));
}

RS_FN REAL rhs(const Level& p, int row, int cell) {
  return source_at(p.source, row, cell) + p.lag[(rs::i64)row * CELLS + cell];
}

RS_FN REAL residual(const Level& p, int row, int cell) { return rhs(p, row, cell) - laplacian(p, row, cell); }

// The eight fine cells in cell n of 4^3 of a fine row, by their sides as bits z y x.
RS_FN int eight(int n, int side) {
  const int x = 2 * (n % HALF), y = 2 * (n / HALF % HALF), z = 2 * (n / (HALF * HALF));
  return x + (side & 1) + PATCH * (y + (side >> 1 & 1) + PATCH * (z + (side >> 2)));
}

// Whether a cell of the root level stands at a face of an isolated domain.
RS_FN bool at_domain_face(const View& v, int row, int cell) {
  if (v.index[(rs::i64)row * 4 + 3] > 0) return false;
  int at[3];
  place<PATCH>(cell, at);
  for (int face = 0; face < 6; ++face)
    if (at[face / 2] == (face % 2 == 0 ? 0 : PATCH - 1) &&
        v.neighbours[(rs::i64)row * AROUND + mesh::face_direction(face)] == mesh::OUTSIDE)
      return true;
  return false;
}

// The interpolated change of the coarser level in a cell.
RS_FN REAL interpolated(const Change& p, int row, int cell) {
  int at[3], own[3];
  place<PATCH>(cell, at);
  coarse_place(p.view, row, at, own);
  const int* neighbours = p.view.neighbours + (rs::i64)p.view.parent[row] * AROUND;
  rs::arr<REAL, 8> values;
  RS_UNROLL for (int bits = 0; bits < 8; ++bits) {
    int to[3];
    for (int axis = 0; axis < 3; ++axis) to[axis] = own[axis] + (bits >> axis & 1) * (at[axis] % 2 == 1 ? 1 : -1);
    // beyond the domain the change is that of the nearest cell
    for (int axis = 0; axis < 3; ++axis) {
      int step[3] = {0, 0, 0};
      step[axis] = floor_div(to[axis], PATCH);
      if (neighbours[direction(step[0], step[1], step[2])] < 0) to[axis] = to[axis] < 0 ? 0 : PATCH - 1;
    }
    const int beside = neighbours[direction(floor_div(to[0], PATCH), floor_div(to[1], PATCH), floor_div(to[2], PATCH))];
    const rs::i64 n = (rs::i64)beside * CELLS + cell_at(to);
    values[bits] = p.after[n] - p.before[n];
  }
  return stencil::trilinear<REAL>(values);
}

}  // namespace multigrid

KERNEL(level_relax, multigrid::Level) {
  using namespace multigrid;
  const Three weights = weights_of(p);
  const REAL whole = stencil::diagonal<REAL>(weights, 0, REAL(0));
  EACH_COLOURED(PATCH, n, cell, p.count, p.colour) {
    const int row = p.rows[n];
    REAL* u = (REAL*)p.view.level + (rs::i64)row * CELLS + cell;
    *u = stencil::relaxed<REAL>(*u, laplacian(p, row, cell), rhs(p, row, cell), whole, REAL(1));
  }
}

KERNEL(level_restrict_residual, multigrid::Level) {
  using namespace multigrid;
  EACH_CELL(HALF, n, cell, p.count) {
    const int row = p.rows[n];
    rs::arr<REAL, 8> values;
    for (int side = 0; side < 8; ++side) values[side] = residual(p, row, eight(cell, side));
    const rs::i64 to = (rs::i64)row * (HALF * HALF * HALF) + cell;
    p.residual[to] = ::nestar_kernels::mesh::means::mean8<REAL>(values);
    p.correction[to] = REAL(0);
  }
}

// The largest residual in leaves, and the largest right-hand side there.
KERNEL(level_largest_residual, multigrid::Largest) {
  using namespace multigrid;
  REAL found[2] = {REAL(0), REAL(0)};
  EACH_CELL(PATCH, n, cell, p.level.count) {
    const int row = p.level.rows[n];
    if (p.level.view.first_child[row] != mesh::LEAF || at_domain_face(p.level.view, row, cell)) continue;
    found[0] = rs::max(found[0], rs::abs(residual(p.level, row, cell)));
    found[1] = rs::max(found[1], rs::abs(source_at(p.level.source, row, cell)));
  }
  for (int n = 0; n < 2; ++n) {
    const REAL largest = launch::largest_of_block(found[n]);
    if (launch::thread() == 0) launch::store_largest<REAL>((rs::lim<REAL>::U*)(p.largest + n), largest);
  }
}

KERNEL(level_add_change, multigrid::Change) {
  using namespace multigrid;
  EACH_CELL(PATCH, n, cell, p.count) {
    const int row = p.rows[n];
    const rs::i64 at = (rs::i64)row * CELLS + cell;
    p.to[at] = p.from[at] + (REAL)p.factor * interpolated(p, row, cell);
  }
}

KERNEL(level_keep, multigrid::Change) {
  using namespace multigrid;
  EACH_CELL(PATCH, n, cell, p.count) {
    const rs::i64 at = (rs::i64)p.rows[n] * CELLS + cell;
    p.to[at] = p.from[at];
  }
}
