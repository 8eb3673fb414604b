// Interpolates from the coarser level: the twin of prolong.rs and of the interpolation in gather.rs. Follows boundary.cuh.

namespace mesh {

// Returns the row that holds cell x, y, z of the parent's neighbourhood of 24^3 cells; `around` is the parent's table.
RS_FN int coarse_row(const int* around, int x, int y, int z) { return around[9 * (z >> 3) + 3 * (y >> 3) + (x >> 3)]; }
RS_FN int cell_of(int x, int y, int z) { return (x & 7) + PATCH * ((y & 7) + PATCH * (z & 7)); }

// Offset from the first of eight fine cells to child `side`, and the mean of the eight values starting at `u`.
RS_FN constexpr int child_offset(int side) { return (side & 1) + PATCH * (side >> 1 & 1) + PATCH * PATCH * (side >> 2); }
RS_FN REAL mean_of_eight(const REAL* u) {
  rs::arr<REAL, 8> eight;
  RS_UNROLL for (int side = 0; side < 8; ++side) eight[side] = u[child_offset(side)];
  return ::nestar_kernels::mesh::means::mean8<REAL>(eight);
}

// Interpolates a component of a coarse cell in time.
RS_FN REAL blended(const GatherView& v, int row, int offset) {
  return ::nestar_kernels::mesh::prolong::between<REAL>(row_of(v.coarse_old, row)[offset],
                                                        row_of(v.coarse_new, row)[offset], (REAL)v.weight);
}

// Loads cells of the coarser level around a patch whose first cell is `first`.
struct ParentCells {
  const GatherView& v;
  const int* around;
  const int* first;
  RS_MEMBER void operator()(const int* cell, REAL* u) const {
    const int x = cell[0] - first[0], y = cell[1] - first[1], z = cell[2] - first[2];
    const int row = coarse_row(around, x, y, z);
    for (int c = 0; c < COMPONENTS; ++c) u[c] = blended(v, row, c * CELLS + cell_of(x, y, z));
  }
};

// Returns the state of the coarse cell at x, y, z of the parent's neighbourhood, also outside the domain.
RS_NOINLINE void coarse_state(const GatherView& v, int parent, int x, int y, int z, REAL* u) {
  const int* around = v.neighbours + (rs::i64)parent * AROUND;
  const int* index = v.index + (rs::i64)parent * 4;
  const int row = coarse_row(around, x, y, z);
  if (row >= 0) {
    for (int c = 0; c < COMPONENTS; ++c) u[c] = blended(v, row, c * CELLS + cell_of(x, y, z));
    return;
  }
  const int cells[3] = {v.domain_cells[0] / 2, v.domain_cells[1] / 2, v.domain_cells[2] / 2};
  const int first[3] = {PATCH * index[0] - PATCH, PATCH * index[1] - PATCH, PATCH * index[2] - PATCH};
  const int at[3] = {first[0] + x, first[1] + y, first[2] + z};
  int inside[3] = {at[0], at[1], at[2]};
  const int walls = source_of(v, cells, inside);
  const ParentCells load{v, around, first};
  load(inside, u);
  apply_rules<Further<ParentCells>::t>(v, index[3], cells, at, inside, walls, u, load);
}

typedef rs::arr<REAL, 3> Offsets;

RS_FN Offsets offsets_of(REAL u, const rs::arr<REAL, 6>& near) {
  return ::nestar_kernels::mesh::prolong::fine_offsets<REAL>(u, near, (unsigned)field::LIMITER);
}

// Loads a coarse cell and its six neighbours, `near[7][COMPONENTS]`, if all lie inside the domain.
RS_FN void states_inside(const GatherView& v, int parent, const int* at, REAL* near) {
  const int* around = v.neighbours + (rs::i64)parent * AROUND;
  RS_UNROLL for (int n = 0; n < 7; ++n) {
    const int x = at[0] + (n == 2) - (n == 1), y = at[1] + (n == 4) - (n == 3), z = at[2] + (n == 6) - (n == 5);
    const int row = coarse_row(around, x, y, z), cell = cell_of(x, y, z);
    EACH_COMPONENT(c) near[n * COMPONENTS + c] = blended(v, row, c * CELLS + cell);
  }
}

// The same if some of them may lie outside.
RS_NOINLINE void states_near_walls(const GatherView& v, int parent, int x, int y, int z, REAL* near) {
  coarse_state(v, parent, x, y, z, near);
  for (int n = 0; n < 6; ++n) {
    const int step = n & 1 ? 1 : -1;
    coarse_state(v, parent, x + (n >> 1 == 0 ? step : 0), y + (n >> 1 == 1 ? step : 0), z + (n >> 1 == 2 ? step : 0),
                 near + (n + 1) * COMPONENTS);
  }
}

RS_FN rs::arr<REAL, 6> neighbours_of(const REAL* near, int c) {
  rs::arr<REAL, 6> six;
  RS_UNROLL for (int n = 0; n < 6; ++n) six[n] = near[(n + 1) * COMPONENTS + c];
  return six;
}

// Computes the state of fine cell `side` of a coarse cell with primitive variables `w` and offsets `o`.
RS_FN void fine_state(const REAL* w, const Offsets* o, int side, REAL* state) {
  EACH_COMPONENT(c)
    state[c] = ::nestar_kernels::mesh::prolong::fine_value<REAL>(w[c], o[c], side & 1, side >> 1 & 1, side >> 2);
  field::to_conserved(state);
}

// Data from which the fine cells of a coarse cell are computed.
struct Refined {
  REAL own[COMPONENTS];          // the coarse state
  REAL near[7 * COMPONENTS];     // primitive variables
  Offsets offsets[COMPONENTS];
};

// Loads coarse cell `at` of the parent's neighbourhood of 24^3 cells and computes its offsets.
RS_FN void coarse_cell(const GatherView& v, int parent, const int* at, Refined& cell) {
  if (field::BOUNDED && v.neighbours[(rs::i64)parent * AROUND + 27] & HAS_OUTSIDE)
    states_near_walls(v, parent, at[0], at[1], at[2], cell.near);
  else states_inside(v, parent, at, cell.near);
  EACH_COMPONENT(c) cell.own[c] = cell.near[c];
  RS_UNROLL for (int n = 0; n < 7; ++n) field::to_primitive(cell.near + n * COMPONENTS);
  EACH_COMPONENT(c) cell.offsets[c] = offsets_of(cell.near[c], neighbours_of(cell.near, c));
}

// Calls put(side, state) for the eight fine cells of the coarse cell `at`. All take the coarse state if one of them would be unphysical.
template<class Put> RS_FN void refine_cell(const GatherView& v, int parent, const int* at, Put put) {
  Refined cell;
  coarse_cell(v, parent, at, cell);
  REAL state[COMPONENTS];
  bool physical = true;
  for (int side = 0; side < 8 && physical; ++side) {
    fine_state(cell.near, cell.offsets, side, state);
    physical = field::physical(state);
  }
  for (int side = 0; side < 8; ++side) {
    if (physical) {
      fine_state(cell.near, cell.offsets, side, state);
    } else {
      EACH_COMPONENT(c) state[c] = cell.own[c];
    }
    put(side, state);
  }
}

// Enumerates the coarse cells for the ghosts of a patch: position in the parent's neighbourhood of 24^3 cells and in the fine block, and
// the sector of the ghosts.
template<int G> struct CoarseCells {
  static constexpr int N = PATCH + 2 * G, REACH = (G + 1) / 2, M = PATCH / 2 + 2 * REACH, COUNT = M * M * M;

  // Computes the position in the parent's neighbourhood; `index` is the patch's. Returns the sector, as in a table of 27.
  static RS_MEMBER int place(int item, const int* index, int* at) {
    const int q[3] = {item % M, item / M % M, item / (M * M)};
    int sector = 0;
    RS_UNROLL for (int a = 2; a >= 0; --a) {
      at[a] = PATCH + PATCH / 2 * (index[a] & 1) + q[a] - REACH;
      sector = 3 * sector + (q[a] < REACH ? 0 : q[a] < REACH + PATCH / 2 ? 1 : 2);
    }
    return sector;
  }

  // Returns the position of fine cell `side` in the block, or -1 if it is not part of it. With an odd number of layers only half of the
  // outermost coarse cells is used.
  static RS_MEMBER int fine(int item, int side) {
    const int x = 2 * (item % M - REACH) + (side & 1) + G, y = 2 * (item / M % M - REACH) + (side >> 1 & 1) + G;
    const int z = 2 * (item / (M * M) - REACH) + (side >> 2) + G;
    return x < 0 || y < 0 || z < 0 || x >= N || y >= N || z >= N ? -1 : x + N * (y + N * z);
  }
};

// Fills the ghost cells next to coarser patches; each thread processes one coarse cell.
template<int G, class Finish> RS_NOINLINE void interpolate(REAL* block, const GatherView& v, int row, Finish finish) {
  typedef CoarseCells<G> Coarse;
  const int parent = v.parent[row];
  const int* around = v.neighbours + (rs::i64)row * AROUND;
  EACH(item, Coarse::COUNT) {
    int at[3];
    if (around[Coarse::place(item, v.index + (rs::i64)row * 4, at)] != COARSER) continue;
    refine_cell(v, parent, at, [&](int side, const REAL* u) {
      const int cell = Coarse::fine(item, side);
      if (cell >= 0) finish(block, cell, u);
    });
  }
}

// Layout of the coarse cells and one layer around them, whose primitive variables and offsets `interpolate_shared` keeps in a work space of
// VALUES values: `[component][AROUND_THEM]`, then `[component][3][COUNT]`.
template<int G> struct SharedCells {
  typedef CoarseCells<G> Coarse;
  static constexpr int M = Coarse::M + 2, AROUND_THEM = M * M * M, OFFSETS = COMPONENTS * AROUND_THEM;
  static constexpr int VALUES = OFFSETS + 3 * COMPONENTS * Coarse::COUNT;

  static RS_MEMBER int step(int n) { return n >> 1 == 0 ? 1 : n >> 1 == 1 ? M : M * M; }

  // Returns the position of coarse cell `item`, and the coarse cell x, y, z steps from the first, or -1 outside.
  static RS_MEMBER int place(int item) {
    return item % Coarse::M + 1 + M * (item / Coarse::M % Coarse::M + 1 + M * (item / (Coarse::M * Coarse::M) + 1));
  }
  static RS_MEMBER int item(int x, int y, int z) {
    const bool in = (unsigned)x < (unsigned)Coarse::M && (unsigned)y < (unsigned)Coarse::M && (unsigned)z < (unsigned)Coarse::M;
    return in ? x + Coarse::M * (y + Coarse::M * z) : -1;
  }

  // Returns true if the cell at position q or one of its neighbours is wanted.
  template<class Bits> static RS_MEMBER bool reads(const Bits& wanted, const int* q) {
    const int x = q[0] - 1, y = q[1] - 1, z = q[2] - 1;
    return wanted.has(item(x, y, z)) || wanted.has(item(x - 1, y, z)) || wanted.has(item(x + 1, y, z)) ||
           wanted.has(item(x, y - 1, z)) || wanted.has(item(x, y + 1, z)) || wanted.has(item(x, y, z - 1)) ||
           wanted.has(item(x, y, z + 1));
  }
};

// Size in values of the work space for interpolation in shared memory.
template<int G> constexpr int INTERPOLATION_WORK = SharedCells<G>::VALUES;

// A bit for each coarse cell.
template<int G> struct CellBits {
  static constexpr int WORDS = (CoarseCells<G>::COUNT + 31) / 32;
  unsigned words[WORDS];
  RS_MEMBER bool has(int item) const { return item >= 0 && words[item / 32] >> item % 32 & 1; }
  RS_MEMBER void add(int item) { launch::atomic_or(words + item / 32, 1u << (item % 32)); }
};

// Finds the coarse cells whose fine cells are ghosts to interpolate; ends with a barrier.
template<int G> RS_FN void find_wanted(const GatherView& v, int row, CellBits<G>& wanted, CellBits<G>& unphysical) {
  const int* around = v.neighbours + (rs::i64)row * AROUND;
  EACH(n, CellBits<G>::WORDS) wanted.words[n] = unphysical.words[n] = 0;
  launch::barrier();
  EACH(item, CoarseCells<G>::COUNT) {
    int at[3];
    if (around[CoarseCells<G>::place(item, v.index + (rs::i64)row * 4, at)] == COARSER) wanted.add(item);
  }
  launch::barrier();
}

// Computes the primitive variables of wanted coarse cells and their neighbours, one cell per thread; ends with a barrier.
template<int G> RS_FN void primitives_shared(const GatherView& v, int row, const CellBits<G>& wanted, REAL* work) {
  typedef SharedCells<G> Shared;
  constexpr int M = Shared::M;
  const int* index = v.index + (rs::i64)row * 4;
  const int* coarser = v.neighbours + (rs::i64)v.parent[row] * AROUND;
  EACH(n, Shared::AROUND_THEM) {
    const int q[3] = {n % M, n / M % M, n / (M * M)};
    if (!Shared::reads(wanted, q)) continue;
    int at[3];
    RS_UNROLL for (int a = 0; a < 3; ++a) at[a] = PATCH + PATCH / 2 * (index[a] & 1) + q[a] - 1 - CoarseCells<G>::REACH;
    const int from = coarse_row(coarser, at[0], at[1], at[2]), cell = cell_of(at[0], at[1], at[2]);
    REAL w[COMPONENTS];
    EACH_COMPONENT(c) w[c] = blended(v, from, c * CELLS + cell);
    field::to_primitive(w);
    EACH_COMPONENT(c) work[c * Shared::AROUND_THEM + n] = w[c];
  }
  launch::barrier();
}

// Computes the offsets of wanted coarse cells, one component of a cell per thread; ends with a barrier.
template<int G> RS_FN void offsets_shared(const CellBits<G>& wanted, REAL* work) {
  typedef SharedCells<G> Shared;
  constexpr int COUNT = CoarseCells<G>::COUNT;
  EACH(n, COUNT * COMPONENTS) {
    const int item = n % COUNT, c = n / COUNT;
    if (!wanted.has(item)) continue;
    const REAL* w = work + c * Shared::AROUND_THEM + Shared::place(item);
    rs::arr<REAL, 6> near;
    RS_UNROLL for (int f = 0; f < 6; ++f) near[f] = w[f & 1 ? Shared::step(f) : -Shared::step(f)];
    const Offsets o = offsets_of(*w, near);
    RS_UNROLL for (int a = 0; a < 3; ++a) work[Shared::OFFSETS + (3 * c + a) * COUNT + item] = o[a];
  }
  launch::barrier();
}

// Computes the state of fine cell `side` of coarse cell `item`.
template<int G> RS_FN void fine_state_shared(const REAL* work, int item, int side, REAL* state) {
  typedef SharedCells<G> Shared;
  constexpr int COUNT = CoarseCells<G>::COUNT;
  EACH_COMPONENT(c) {
    const REAL* o = work + Shared::OFFSETS + 3 * c * COUNT + item;
    state[c] = ::nestar_kernels::mesh::prolong::fine_value<REAL>(work[c * Shared::AROUND_THEM + Shared::place(item)],
                                                                 Offsets{{o[0], o[COUNT], o[2 * COUNT]}}, side & 1,
                                                                 side >> 1 & 1, side >> 2);
  }
  field::to_conserved(state);
}

// Does the same as `interpolate` in three parallel loops: over coarse cells, over their components, over fine cells. A patch has few ghosts
// to interpolate, each with a long chain of operations. Not for patches next to walls.
template<int G, class Finish>
RS_NOINLINE void interpolate_shared(REAL* block, const GatherView& v, int row, Finish finish, REAL* work) {
  typedef CoarseCells<G> Coarse;
  constexpr int COUNT = Coarse::COUNT;
  SHARED CellBits<G> wanted, unphysical;
  find_wanted<G>(v, row, wanted, unphysical);
  primitives_shared<G>(v, row, wanted, work);
  offsets_shared<G>(wanted, work);
  bool any = false;
  EACH(n, COUNT * 8) {
    const int item = n % COUNT, side = n / COUNT;
    if (!wanted.has(item)) continue;
    REAL state[COMPONENTS];
    fine_state_shared<G>(work, item, side, state);
    if (!field::physical(state)) {
      unphysical.add(item);
      any = true;
    }
    const int cell = Coarse::fine(item, side);
    if (cell >= 0) finish(block, cell, state);
  }
  if (!launch::any_of_block(any)) return;
  // all eight take the coarse state if one of them is unphysical
  const int* coarser = v.neighbours + (rs::i64)v.parent[row] * AROUND;
  EACH(n, COUNT * 8) {
    const int item = n % COUNT, side = n / COUNT, cell = Coarse::fine(item, side);
    if (cell < 0 || !unphysical.has(item)) continue;
    int at[3];
    Coarse::place(item, v.index + (rs::i64)row * 4, at);
    const int from = coarse_row(coarser, at[0], at[1], at[2]);
    REAL state[COMPONENTS];
    EACH_COMPONENT(c) state[c] = blended(v, from, c * CELLS + cell_of(at[0], at[1], at[2]));
    finish(block, cell, state);
  }
}

}  // namespace mesh
