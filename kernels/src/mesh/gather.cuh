// Ghost cells on the device: the twin of gather.rs and boundary.rs. Follows view.cuh.
//
// A cell's value comes from a patch of its level, by interpolation where the neighbour is coarser, or by the rules beyond
// the faces of the domain. Most patches need the first alone; the rest stands in functions of its own that are not
// inlined, so that the kernels around a gather keep their registers.

#if RS_DEVICE
#define RS_NOINLINE static __device__ __noinline__
#define EACH_COMPONENT(c) _Pragma("unroll (mesh::UNROLLED)") for (int c = 0; c < mesh::COMPONENTS; ++c)
#else
#define RS_NOINLINE static __attribute__((noinline, unused))
#define EACH_COMPONENT(c) for (int c = 0; c < mesh::COMPONENTS; ++c)
#endif

namespace mesh {

// Long lists of components are looped over: their states do not fit into registers.
constexpr int UNROLLED = COMPONENTS <= 8 ? COMPONENTS : 1;
// What stands beyond a face, as FaceRule.
constexpr int PERIODIC = 0, OUTFLOW = 1, REFLECTING = 2, RULE = 3;

// Stores the components of a cell in a block of N^3 cells, `[component][N][N][N]`.
template<int N> struct Store {
  RS_MEMBER void operator()(REAL* block, int cell, const REAL* u) const {
    EACH_COMPONENT(c) block[c * (N * N * N) + cell] = u[c];
  }
};

// ---- beyond the domain

using ::nestar_kernels::mesh::block::cell_centre;

// The side of `axis` (0 or 1) beyond whose face a cell lies, or -1: inside, or the axis is periodic.
RS_FN int side_beyond(int i, int cells, int axis) {
  const int side = i < 0 ? 0 : i >= cells ? 1 : -1;
  return side < 0 || field::kind(axis, side) == PERIODIC ? -1 : side;
}

RS_FN int wrapped(int i, int cells) { return (i % cells + cells) % cells; }

// Centre of a cell that rules are asked about.
RS_FN rs::arr<double, 3> centre_of(const View& v, const int* cells, const int* asked) {
  rs::arr<double, 3> centre;
  for (int a = 0; a < 3; ++a) centre[a] = cell_centre(asked[a], cells[a], v.left[a], v.right[a]);
  return centre;
}

// Takes cell `at` of a level with `cells` cells into the domain: to the cell that it takes its state from, see
// Boundaries::fill. Returns the axes of walls as bits.
RS_NOINLINE int source_of(const View& v, const int* cells, int* at) {
  int side[3], asked[3], walls = 0, more = 0;
  for (int a = 0; a < 3; ++a) {
    side[a] = side_beyond(at[a], cells[a], a);
    asked[a] = side[a] < 0 ? wrapped(at[a], cells[a]) : at[a];
    if (side[a] >= 0 && field::kind(a, side[a]) == REFLECTING) more |= 1 << a;
  }
  do {
    for (int a = 0; a < 3; ++a)
      if (more >> a & 1) asked[a] = side[a] == 0 ? -1 - at[a] : 2 * cells[a] - 1 - at[a];
    walls |= more;
    more = 0;
    const rs::arr<double, 3> centre = centre_of(v, cells, asked);
    for (int a = 0; a < 3; ++a)
      if (side[a] >= 0 && !(walls >> a & 1) && field::kind(a, side[a]) == RULE &&
          field::wall(a, side[a], centre.d, v.time, v.fault))
        more |= 1 << a;
  } while (more);
  for (int a = 0; a < 3; ++a)
    if (side[a] >= 0) at[a] = walls >> a & 1 ? asked[a] : side[a] * (cells[a] - 1);
  return walls;
}

// Turns the state `u` of the cell `inside`, as found by source_of, into that of the cell `at` beyond the domain.
RS_NOINLINE void apply_rules(const View& v, const int* cells, const int* at, const int* inside, int walls, REAL* u) {
  int asked[3], rules = 0;
  REAL given[3][COMPONENTS];
  for (int a = 0; a < 3; ++a) {
    const bool beyond = side_beyond(at[a], cells[a], a) >= 0;
    asked[a] = !beyond ? wrapped(at[a], cells[a]) : walls >> a & 1 ? inside[a] : at[a];
  }
  for (int a = 0; a < 3; ++a) {
    const int side = side_beyond(at[a], cells[a], a);
    if (side < 0 || walls >> a & 1 || field::kind(a, side) != RULE) continue;
    const rs::arr<double, 3> centre = centre_of(v, cells, asked);
    for (int c = 0; c < COMPONENTS; ++c) given[rules][c] = u[c];
    field::beyond(a, side, centre.d, v.time, given[rules++], v.fault);
  }
  for (int c = 0; c < COMPONENTS; ++c) {
    if (rules == 1) u[c] = given[0][c];
    if (rules > 1)
      u[c] = ::nestar_kernels::mesh::boundary::mean_of_rules<REAL>(given[0][c], given[1][c], given[rules - 1][c], rules == 3);
    for (int a = 0; a < 3; ++a)
      if (walls >> a & 1 && field::normal(a) >> c & 1) u[c] = -u[c];
  }
}

// ---- from the coarser level

// The patch around `parent`, by its table, that holds the cell at x, y, z of the parent's neighbourhood of 24^3 cells.
RS_FN int coarse_row(const int* around, int x, int y, int z) { return around[9 * (z >> 3) + 3 * (y >> 3) + (x >> 3)]; }
RS_FN int cell_of(int x, int y, int z) { return (x & 7) + PATCH * ((y & 7) + PATCH * (z & 7)); }

// A component of a coarse cell, interpolated in time.
RS_FN REAL blended(const View& v, int row, int offset) {
  return ::nestar_kernels::mesh::prolong::between<REAL>(row_of(v.coarse_old, row)[offset],
                                                        row_of(v.coarse_new, row)[offset], (REAL)v.weight);
}

// The state of the coarse cell at x, y, z of the parent's neighbourhood, also beyond the domain.
RS_NOINLINE void coarse_state(const View& v, int parent, int x, int y, int z, REAL* u) {
  const int* around = v.neighbours + (rs::i64)parent * AROUND;
  const int* index = v.index + (rs::i64)parent * 4;
  int row = coarse_row(around, x, y, z);
  if (row >= 0) {
    for (int c = 0; c < COMPONENTS; ++c) u[c] = blended(v, row, c * CELLS + cell_of(x, y, z));
    return;
  }
  const int cells[3] = {v.domain_cells[0] / 2, v.domain_cells[1] / 2, v.domain_cells[2] / 2};
  const int first[3] = {PATCH * index[0] - PATCH, PATCH * index[1] - PATCH, PATCH * index[2] - PATCH};
  const int at[3] = {first[0] + x, first[1] + y, first[2] + z};
  int inside[3] = {at[0], at[1], at[2]};
  const int walls = source_of(v, cells, inside);
  for (int a = 0; a < 3; ++a) inside[a] -= first[a];
  row = coarse_row(around, inside[0], inside[1], inside[2]);
  for (int c = 0; c < COMPONENTS; ++c)
    u[c] = blended(v, row, c * CELLS + cell_of(inside[0], inside[1], inside[2]));
  for (int a = 0; a < 3; ++a) inside[a] += first[a];
  apply_rules(v, cells, at, inside, walls, u);
}

typedef rs::arr<REAL, 3> Offsets;

RS_FN Offsets offsets_of(REAL u, const rs::arr<REAL, 6>& near) {
  return ::nestar_kernels::mesh::prolong::fine_offsets<REAL>(u, near, (unsigned)field::LIMITER);
}

// State and offsets of a coarse cell where it and its six neighbours lie inside the domain.
RS_FN void slopes_inside(const View& v, int parent, const int* at, REAL* u, Offsets* o) {
  const int* around = v.neighbours + (rs::i64)parent * AROUND;
  int row[7], cell[7];
  RS_UNROLL for (int n = 0; n < 7; ++n) {
    const int x = at[0] + (n == 2) - (n == 1), y = at[1] + (n == 4) - (n == 3), z = at[2] + (n == 6) - (n == 5);
    row[n] = coarse_row(around, x, y, z);
    cell[n] = cell_of(x, y, z);
  }
  EACH_COMPONENT(c) {
    rs::arr<REAL, 6> near;
    RS_UNROLL for (int n = 0; n < 6; ++n) near[n] = blended(v, row[n + 1], c * CELLS + cell[n + 1]);
    u[c] = blended(v, row[0], c * CELLS + cell[0]);
    o[c] = offsets_of(u[c], near);
  }
}

// The same where some of them may lie beyond: `near` takes the seven states.
RS_NOINLINE void states_around(const View& v, int parent, int x, int y, int z, REAL* near) {
  coarse_state(v, parent, x, y, z, near);
  for (int n = 0; n < 6; ++n) {
    const int step = n & 1 ? 1 : -1;
    coarse_state(v, parent, x + (n >> 1 == 0 ? step : 0), y + (n >> 1 == 1 ? step : 0), z + (n >> 1 == 2 ? step : 0),
                 near + (n + 1) * COMPONENTS);
  }
}

RS_FN void slopes_beside_walls(const View& v, int parent, const int* at, REAL* u, Offsets* o) {
  REAL near[7 * COMPONENTS];
  states_around(v, parent, at[0], at[1], at[2], near);
  EACH_COMPONENT(c) {
    rs::arr<REAL, 6> six;
    RS_UNROLL for (int n = 0; n < 6; ++n) six[n] = near[(n + 1) * COMPONENTS + c];
    u[c] = near[c];
    o[c] = offsets_of(u[c], six);
  }
}

RS_FN void fine_state(const REAL* u, const Offsets* o, int side, REAL* state) {
  EACH_COMPONENT(c)
    state[c] = ::nestar_kernels::mesh::prolong::fine_value<REAL>(u[c], o[c], side & 1, side >> 1 & 1, side >> 2);
}

// Calls put(side, state) for the eight fine cells of the coarse cell `at` of the parent's neighbourhood of 24^3 cells;
// all take the coarse state where one of them would be unphysical.
template<class Put> RS_FN void refine_cell(const View& v, int parent, const int* at, Put put) {
  REAL u[COMPONENTS], state[COMPONENTS];
  Offsets o[COMPONENTS];
  if (field::BOUNDED && v.neighbours[(rs::i64)parent * AROUND + 27] & HAS_OUTSIDE)
    slopes_beside_walls(v, parent, at, u, o);
  else slopes_inside(v, parent, at, u, o);
  bool physical = true;
  for (int side = 0; side < 8 && physical; ++side) {
    fine_state(u, o, side, state);
    physical = field::physical(state);
  }
  if (!physical) {
    EACH_COMPONENT(c) o[c] = Offsets{{REAL(0), REAL(0), REAL(0)}};
  }
  for (int side = 0; side < 8; ++side) {
    fine_state(u, o, side, state);
    put(side, state);
  }
}

// The coarse cells that the ghosts of a patch are made from: place in the parent's neighbourhood of 24^3 cells and in the
// fine block, and the sector of the ghosts.
template<int G> struct CoarseCells {
  static constexpr int N = PATCH + 2 * G, REACH = (G + 1) / 2, M = PATCH / 2 + 2 * REACH, COUNT = M * M * M;

  // Place in the parent's neighbourhood; `index` is the patch's. Returns the sector, as in a table of 27.
  static RS_MEMBER int place(int item, const int* index, int* at) {
    const int q[3] = {item % M, item / M % M, item / (M * M)};
    int sector = 0;
    RS_UNROLL for (int a = 2; a >= 0; --a) {
      at[a] = PATCH + PATCH / 2 * (index[a] & 1) + q[a] - REACH;
      sector = 3 * sector + (q[a] < REACH ? 0 : q[a] < REACH + PATCH / 2 ? 1 : 2);
    }
    return sector;
  }

  // The fine cell `side` of a coarse cell in the block, or -1: with an odd number of layers only half of the outermost
  // coarse cells is used.
  static RS_MEMBER int fine(int item, int side) {
    const int x = 2 * (item % M - REACH) + (side & 1) + G, y = 2 * (item / M % M - REACH) + (side >> 1 & 1) + G;
    const int z = 2 * (item / (M * M) - REACH) + (side >> 2) + G;
    return x < 0 || y < 0 || z < 0 || x >= N || y >= N || z >= N ? -1 : x + N * (y + N * z);
  }
};

// Values of the work space with which `interpolate` shares out a coarse cell's components among threads.
template<int G> constexpr int INTERPOLATION_WORK = 4 * COMPONENTS * CoarseCells<G>::COUNT;

// Fills the ghost cells with a coarser neighbour, a coarse cell a thread.
template<int G, class Finish> RS_NOINLINE void interpolate(REAL* block, const View& v, int row, Finish finish) {
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

// State and offsets of one component of a coarse cell; it and its six neighbours lie inside the domain.
RS_FN void slopes_of_component(const View& v, int parent, const int* at, int c, REAL* u, Offsets* o) {
  const int* around = v.neighbours + (rs::i64)parent * AROUND;
  REAL value[7];
  RS_UNROLL for (int n = 0; n < 7; ++n) {
    const int x = at[0] + (n == 2) - (n == 1), y = at[1] + (n == 4) - (n == 3), z = at[2] + (n == 6) - (n == 5);
    value[n] = blended(v, coarse_row(around, x, y, z), c * CELLS + cell_of(x, y, z));
  }
  *u = value[0];
  *o = offsets_of(value[0], rs::arr<REAL, 6>{{value[1], value[2], value[3], value[4], value[5], value[6]}});
}

// State and offsets of the coarse cells, `work[component][4][COUNT]`, a component of a cell a thread.
template<int G> RS_FN void slopes_shared(const View& v, int row, REAL* work) {
  typedef CoarseCells<G> Coarse;
  constexpr int COUNT = Coarse::COUNT;
  const int parent = v.parent[row];
  const int* around = v.neighbours + (rs::i64)row * AROUND;
  EACH(n, COUNT * COMPONENTS) {
    const int item = n % COUNT, c = n / COUNT;
    int at[3];
    if (around[Coarse::place(item, v.index + (rs::i64)row * 4, at)] != COARSER) continue;
    Offsets o;
    slopes_of_component(v, parent, at, c, work + 4 * c * COUNT + item, &o);
    RS_UNROLL for (int a = 0; a < 3; ++a) work[(4 * c + 1 + a) * COUNT + item] = o[a];
  }
}

// Fine cell `side` of the coarse cell that stands at `work`; with FLAT the coarse state, by offsets of zero as in `refine_cell`.
template<int COUNT, bool FLAT> RS_FN void fine_state_shared(const REAL* work, int side, REAL* state) {
  EACH_COMPONENT(c) {
    const REAL* w = work + 4 * c * COUNT;
    const Offsets o = FLAT ? Offsets{{REAL(0), REAL(0), REAL(0)}} : Offsets{{w[COUNT], w[2 * COUNT], w[3 * COUNT]}};
    state[c] = ::nestar_kernels::mesh::prolong::fine_value<REAL>(w[0], o, side & 1, side >> 1 & 1, side >> 2);
  }
}

// The same as `interpolate`, a component of a coarse cell and then a fine cell a thread: a patch has few ghosts to
// interpolate, and the way to one of them is long. Away from walls only.
template<int G, class Finish>
RS_NOINLINE void interpolate_shared(REAL* block, const View& v, int row, Finish finish, REAL* work) {
  typedef CoarseCells<G> Coarse;
  constexpr int COUNT = Coarse::COUNT;
  SHARED unsigned unphysical[(COUNT + 31) / 32];
  const int* around = v.neighbours + (rs::i64)row * AROUND;
  const int* index = v.index + (rs::i64)row * 4;
  EACH(n, (COUNT + 31) / 32) unphysical[n] = 0;
  slopes_shared<G>(v, row, work);
  launch::barrier();
  bool any = false;
  EACH(n, COUNT * 8) {
    const int item = n % COUNT, side = n / COUNT;
    int at[3];
    if (around[Coarse::place(item, index, at)] != COARSER) continue;
    REAL state[COMPONENTS];
    fine_state_shared<COUNT, false>(work + item, side, state);
    if (!field::physical(state)) {
      launch::atomic_or(unphysical + item / 32, 1u << (item % 32));
      any = true;
    }
    const int cell = Coarse::fine(item, side);
    if (cell >= 0) finish(block, cell, state);
  }
  if (!launch::any_of_block(any)) return;
  // all eight take the coarse state where one of them is unphysical
  EACH(n, COUNT * 8) {
    const int item = n % COUNT, side = n / COUNT, cell = Coarse::fine(item, side);
    if (cell < 0 || !(unphysical[item / 32] >> item % 32 & 1)) continue;
    REAL state[COMPONENTS];
    fine_state_shared<COUNT, true>(work + item, side, state);
    finish(block, cell, state);
  }
}

// ---- the gather

// The sector, as in a table of 27, of cell x, y, z of a block with G layers of ghosts.
template<int G> RS_FN int sector_of(int x, int y, int z) {
  return 9 * ((z + PATCH - G) / PATCH) + 3 * ((y + PATCH - G) / PATCH) + (x + PATCH - G) / PATCH;
}

// Finishes every cell of which a patch of this level holds the value.
template<int G, class Finish> RS_FN void copy_level(REAL* block, const View& v, int row, Finish finish) {
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

// Fills the cells beyond the domain of a block that holds conserved values.
template<int G> RS_NOINLINE void fill_beyond(REAL* block, const View& v, int row) {
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
    const int from = inside[0] - first[0] + N * (inside[1] - first[1] + N * (inside[2] - first[2]));
    REAL u[COMPONENTS];
    for (int c = 0; c < COMPONENTS; ++c) u[c] = block[c * (N * N * N) + from];
    apply_rules(v, cells, at, inside, walls, u);
    for (int c = 0; c < COMPONENTS; ++c) block[c * (N * N * N) + cell] = u[c];
  }
}

// The gather of a patch at a wall: conserved values first, which the rules work on, then every cell is finished.
template<int G, class Finish> RS_NOINLINE void gather_at_wall(REAL* block, const View& v, int row, Finish finish) {
  constexpr int N = PATCH + 2 * G;
  copy_level<G>(block, v, row, Store<N>());
  if (v.neighbours[(rs::i64)row * AROUND + 27] & HAS_COARSER) interpolate<G>(block, v, row, Store<N>());
  launch::barrier();
  fill_beyond<G>(block, v, row);
  launch::barrier();
  EACH(cell, N * N * N) {
    REAL u[COMPONENTS];
    EACH_COMPONENT(c) u[c] = block[c * (N * N * N) + cell];
    finish(block, cell, u);
  }
}

// Gathers row `row` with G layers of ghost cells: calls finish(block, cell, u) for each cell of the (8 + 2 G)^3 block, u
// being its conserved state; the last call for a cell holds. `finish` may write its own cell of the block only; at walls
// the block holds conserved values `[component][N][N][N]` meanwhile, so it must have room for them. Let `finish` capture
// by value. `work`, if there is any, has INTERPOLATION_WORK<G> values and is free. Ends with a barrier.
template<int G, class Finish>
RS_FN void gather(REAL* block, const View& v, int row, Finish finish, REAL* work = nullptr) {
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
