// Gathers ghost cells: the twin of gather.rs. Follows interpolate.cuh.
//
// A cell's value comes from a patch of its level, by interpolation from a coarser neighbour, or from a boundary rule. Most patches need
// only the first. The other cases are functions that are not inlined, so that kernels keep their registers.

namespace mesh {

// Returns the sector, as in a table of 27, of cell x, y, z of a block with G ghost layers.
template<int G> RS_FN int sector_of(int x, int y, int z) {
  return 9 * ((z + PATCH - G) / PATCH) + 3 * ((y + PATCH - G) / PATCH) + (x + PATCH - G) / PATCH;
}

// Calls `finish` for every cell that a patch of this level holds.
template<int G, class Finish> RS_FN void copy_level(REAL* block, const GatherView& v, int row, Finish finish) {
  constexpr int N = PATCH + 2 * G;
  const int* around = v.neighbours + (rs::i64)row * AROUND;
  EACH(cell, N * N * N) {
    const int x = cell % N, y = cell / N % N, z = cell / (N * N);
    const int from = around[sector_of<G>(x, y, z)];
    if (from < 0) continue;
    const REAL* source = row_of(v.level, from) + cell_of(x - G, y - G, z - G);
    REAL u[COMPONENTS];
    EACH_COMPONENT(c) u[c] = source[c * CELLS];
    finish(block, cell, u);
  }
}

// Loads cells of a gathered block whose first cell is `first`.
template<int N> struct BlockCells {
  const REAL* block;
  const int* first;
  RS_MEMBER void operator()(const int* cell, REAL* u) const {
    const int from = cell[0] - first[0] + N * (cell[1] - first[1] + N * (cell[2] - first[2]));
    for (int c = 0; c < COMPONENTS; ++c) u[c] = block[c * (N * N * N) + from];
  }
};

// Fills the cells outside the domain of a block of conserved values.
template<int G> RS_NOINLINE void fill_outside(REAL* block, const GatherView& v, int row) {
  constexpr int N = PATCH + 2 * G;
  const int* around = v.neighbours + (rs::i64)row * AROUND;
  const int* index = v.index + (rs::i64)row * 4;
  const int cells[3] = {v.domain_cells[0], v.domain_cells[1], v.domain_cells[2]};
  EACH(cell, N * N * N) {
    const int x = cell % N, y = cell / N % N, z = cell / (N * N);
    if (around[sector_of<G>(x, y, z)] != OUTSIDE) continue;
    const int first[3] = {PATCH * index[0] - G, PATCH * index[1] - G, PATCH * index[2] - G};
    const int at[3] = {first[0] + x, first[1] + y, first[2] + z};
    int inside[3] = {at[0], at[1], at[2]};
    const int walls = source_of(v, cells, inside);
    const BlockCells<N> load{block, first};
    REAL u[COMPONENTS];
    load(inside, u);
    apply_rules<typename Further<BlockCells<N>>::t>(v, index[3], cells, at, inside, walls, u, load);
    for (int c = 0; c < COMPONENTS; ++c) block[c * (N * N * N) + cell] = u[c];
  }
}

// Gathers a patch at a wall: first the conserved values for the rules, then `finish` for every cell.
template<int G, class Finish> RS_NOINLINE void gather_at_wall(REAL* block, const GatherView& v, int row, Finish finish) {
  constexpr int N = PATCH + 2 * G;
  copy_level<G>(block, v, row, Store<N>());
  if (v.neighbours[(rs::i64)row * AROUND + 27] & HAS_COARSER) interpolate<G>(block, v, row, Store<N>());
  launch::barrier();
  fill_outside<G>(block, v, row);
  launch::barrier();
  EACH(cell, N * N * N) {
    REAL u[COMPONENTS];
    EACH_COMPONENT(c) u[c] = block[c * (N * N * N) + cell];
    finish(block, cell, u);
  }
}

// Gathers row `row` with G ghost layers: calls finish(block, cell, u) for each cell of the (8 + 2 G)^3 block with its conserved state u.
// The last call for a cell counts.
//
// `finish` may write only its own cell of the block and must capture by value. At walls the block holds conserved values
// `[component][N][N][N]` in between, so it must be large enough. `work`, if given, has INTERPOLATION_WORK<G> unused values. Ends with a
// barrier.
template<int G, class Finish>
RS_FN void gather(REAL* block, const GatherView& v, int row, Finish finish, REAL* work = nullptr) {
  const int codes = v.neighbours[(rs::i64)row * AROUND + 27];
  if (field::BOUNDED && codes & HAS_OUTSIDE) {
    gather_at_wall<G>(block, v, row, finish);
  } else {
    copy_level<G>(block, v, row, finish);
    if (codes & HAS_COARSER) {
      const bool beside_walls = field::BOUNDED && v.neighbours[(rs::i64)v.parent[row] * AROUND + 27] & HAS_OUTSIDE;
      if (work && !beside_walls) interpolate_shared<G>(block, v, row, finish, work);
      else interpolate<G>(block, v, row, finish);
    }
  }
  launch::barrier();
}

}  // namespace mesh
