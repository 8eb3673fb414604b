// Face states of a patch on the device: primitive variables, predictor, reconstruction.
//
// Primitive states and fluxes are computed once and stored in the scratch. So are states at faces, if all of it fits into shared memory; else
// both cells of a face compute theirs (AT_FACES). The text before this file defines in namespace `fluid`: State, of GAS variables; GHOSTS, HALF_STEP, PREDICTOR, STAGED,
// CORRECTED, true if first fluxes correct the states at the faces across (corner transport upwind); PARABOLIC, EXTREMA, FLATTEN, WENO, half_slope(),
// KEEP_INPUT, CELLS_IN_SHARED, FLUXES_IN_SHARED, MASS_FLUXES, THREADS, MIN_BLOCKS; CONSTANT, true if there are no slopes; WAVES, true if slopes are limited in
// characteristic variables; CURE, true if shocks are detected; UNCORRECTED, the component whose
// fluxes are not corrected between levels, or -1; the macro FACE_FIELD, 1 if components 5 to 7 are the means of a field on faces; and DUAL, true
// if the internal energy is the component after those, with thresholds().

namespace fluid {

using field::REAL;
using mesh::CELLS;
using mesh::COMPONENTS;
using mesh::FACE;
using mesh::PATCH;
namespace hydro = ::nestar_kernels::hydro;
typedef rs::arr<REAL, 3> Three;
typedef rs::arr<REAL, 5> Five;

constexpr int FIRST_SCALAR = GAS + DUAL;
// Layers of cells across a face, beyond the patch, that have fluxes, and the faces normal to one axis.
constexpr int ACROSS = FACE_FIELD ? 1 : 0;
constexpr int FACES = mesh::FACES_WITH<ACROSS>;
template<int D> RS_FN int face_index(int i, int j, int k) { return mesh::face_index<D, ACROSS>(i, j, k); }
template<int D> constexpr int TO_UPPER = mesh::TO_UPPER<D, ACROSS>;
// Ghost layers that the reconstruction reads; width and cells of its block.
constexpr int REACH = PREDICTOR ? GHOSTS - 1 : GHOSTS;
constexpr int WIDTH = PATCH + 2 * REACH;
constexpr int BLOCK = WIDTH * WIDTH * WIDTH;
// Width and cells of the gathered block.
constexpr int INPUT_WIDTH = PATCH + 2 * GHOSTS;
constexpr int INPUT = INPUT_WIDTH * INPUT_WIDTH * INPUT_WIDTH;
// States at faces are computed where they are needed, from the cells. Else they are stored for all faces.
constexpr bool AT_FACES = FACE_FIELD || CORRECTED || !FLUXES_IN_SHARED;
// Faces normal to one axis that have first fluxes: those of one layer of cells across, too.
constexpr int FIRST_FACES = mesh::FACES_WITH<1>;
// Values of a component of a gathered row of a field on faces, ghost cells included.
constexpr int GATHERED = INPUT_WIDTH * INPUT_WIDTH * (INPUT_WIDTH + 1);
// Cells of the patch and one layer around it.
constexpr int LAYERED = 1000;
// Layout of the scratch in values: the block; the conserved input of the van Leer predictor; a field on faces after half a step; the states of
// the 10^3 cells after half a step, if states at faces follow from them; the first fluxes, if they correct these states. Then, or in global memory, the fluxes and as much work space: the
// states on the lower and upper sides of all faces, if they are stored. These overwrite the input, unless first-order fluxes need it.
constexpr int EDGES = 3 * GAS * FACES;
constexpr int INPUT_VALUES = PREDICTOR ? COMPONENTS * INPUT : 0;
constexpr int FIELD_AT = COMPONENTS * BLOCK + (KEEP_INPUT || AT_FACES ? INPUT_VALUES : 0);
constexpr int STATES_AT = FIELD_AT + (FACE_FIELD ? 3 * FACES : 0);
constexpr int FIRST_AT = STATES_AT + (AT_FACES && HALF_STEP ? GAS * LAYERED : 0);
constexpr int EDGES_AT = FIRST_AT + (CORRECTED ? 3 * GAS * FIRST_FACES : 0);
// Values for the cells, and for all.
constexpr int OF_CELLS = COMPONENTS * BLOCK + INPUT_VALUES > EDGES_AT ? COMPONENTS * BLOCK + INPUT_VALUES : EDGES_AT;
constexpr int SCRATCH = EDGES_AT + 2 * EDGES > OF_CELLS ? EDGES_AT + 2 * EDGES : OF_CELLS;

// The parts of the scratch.
struct Scratch {
  REAL *block, *input, *field, *states, *first;
  // The fluxes, or before them the states on the lower sides of faces; the states on the upper sides, or work space.
  REAL *left, *right;
};

typedef ::nestar_kernels::hydro::solver::device::StepParameters<REAL> Step;

// ---- positions

// Component of variable v of a state in the order of a face normal to axis D: the velocities and the magnetic field are rotated.
template<int D> RS_FN int component(int v) { return v >= 1 && v <= 3 ? 1 + (D + v - 1) % 3 : v >= 5 && v <= 7 ? 5 + (D + v - 5) % 3 : v; }
// Sets `at` to the position in the patch of the cell above face f of axis D, in an array of faces with A layers of cells across.
template<int D, int A = ACROSS> RS_FN void face_place(int f, int* at) {
  constexpr int W = PATCH + 2 * A, L = PATCH + 1;
  at[0] = D == 0 ? f % L : f % W - A;
  at[1] = D == 0 ? f / L % W - A : D == 1 ? f / W % L : f / W % W - A;
  at[2] = D == 2 ? f / (W * W) : f / (L * W) - A;
}
template<int D> constexpr int STEP = D == 0 ? 1 : D == 1 ? WIDTH : WIDTH * WIDTH;

// First component of the field; in the order of a face, the one along its normal.
constexpr int FIRST_OF_FIELD = 5;

RS_FN bool inside(int i) { return (unsigned)i < (unsigned)PATCH; }

// Returns true if a position across a face has fluxes.
RS_FN bool across(int i) { return (unsigned)(i + ACROSS) < (unsigned)(PATCH + 2 * ACROSS); }

RS_FN Three three(const rs::arr<double, 3>& x) { return Three{{(REAL)x[0], (REAL)x[1], (REAL)x[2]}}; }

// ---- from conserved to primitive variables

RS_FN State load_state(const REAL* block, int stride, int at) {
  State u;
  RS_UNROLL for (int v = 0; v < GAS; ++v) u.d[v] = block[v * stride + at];
  return u;
}

// The first five variables of a gas with an energy, as all laws with dual energy have one, and the state with these and the other ones of w.
RS_FN Five with_energy(const State& w) {
  Five five;
  RS_UNROLL for (int v = 0; v < 5; ++v) five.d[v] = w.d[v < GAS ? v : 0];
  return five;
}
RS_FN State of_law(const Five& five, State w) {
  RS_UNROLL for (int v = 0; v < GAS && v < 5; ++v) w.d[v] = five.d[v];
  return w;
}
RS_FN REAL gamma() { return law().d[0]; }

// Stores the primitive variables of a gathered cell.
struct PrimitivePass {
  RS_MEMBER void operator()(REAL* block, int cell, const REAL* u) const {
    State w;
    RS_UNROLL for (int v = 0; v < GAS; ++v) w.d[v] = u[v];
    if constexpr (DUAL) w = of_law(hydro::eos::primitive_from_internal<REAL>(with_energy(w), u[FIRST_SCALAR - 1], gamma()), w);
    else w = primitive(w);
    RS_UNROLL for (int v = 0; v < GAS; ++v) block[v * INPUT + cell] = w.d[v];
    RS_UNROLL for (int c = FIRST_SCALAR; c < COMPONENTS; ++c) block[c * INPUT + cell] = u[c] / u[0];
  }
};

// Stores the conserved variables of a gathered cell.
struct Conserved {
  RS_MEMBER void operator()(REAL* block, int cell, const REAL* u) const {
    RS_UNROLL for (int c = 0; c < COMPONENTS; ++c) block[c * INPUT + cell] = u[c];
  }
};

// ---- fluxes

// Returns a state with the velocity and the magnetic field rotated so that the normal component comes first.
template<int D> RS_FN State rotated(const State& w) {
  State turned;
  RS_UNROLL for (int v = 0; v < GAS; ++v) turned.d[v] = w.d[component<D>(v)];
  return turned;
}

// ---- cells in shocks (passes/shocks.rs)

// Masks of the 10^3 cells of a patch and one layer around it: for each axis the cells whose faces normal to it take HLLE fluxes, then for
// each axis the cells with a slow shock along it. One more word is not zero if there are any such cells.
constexpr int SHOCK_WORDS = 32;
constexpr int SLOW_SHOCKS = 3 * SHOCK_WORDS;
constexpr int ANY_SHOCK = 6 * SHOCK_WORDS;

// Primitive variables of the block: density, velocity along an axis, pressure.
struct BlockCells {
  const REAL* block;
  RS_MEMBER Three operator()(int at, int axis) const { return Three{{block[at], block[(1 + axis) * BLOCK + at], pressure(at)}}; }
  RS_MEMBER REAL pressure(int at) const { return pressure_of(block[PRESSURE * BLOCK + at]); }
};

RS_FN bool in_layer(const int* cell) {
  constexpr unsigned width = PATCH + 2;
  return (unsigned)cell[0] < width && (unsigned)cell[1] < width && (unsigned)cell[2] < width;
}

// Returns true if the pressure varies so little around a cell that `shock_along` finds no shock along any axis. It reads what the edge
// states need as well, so that the values are loaded once if nothing is written in between.
template<class Cells> RS_FN bool is_smooth(const Cells& cells, int at, int width) {
  const int steps[3] = {1, width, width * width};
  REAL low = cells.pressure(at), high = low;
  RS_UNROLL for (int d = 0; d < 3; ++d) {
    const REAL below = cells.pressure(at - steps[d]), above = cells.pressure(at + steps[d]);
    low = rs::min(rs::min(below, above), low);
    high = rs::max(rs::max(below, above), high);
  }
  return !(high - low > REAL(0.5) * low);
}

// Marks cell `at` of a block of `width` cells along an axis, whose place among the 10^3 cells is `cell`, if it is in a shock. Returns the
// axes of slow shocks in it, one bit each.
template<class Cells> RS_FN unsigned mark_shocks(const Cells& cells, const int* cell, int at, int width, unsigned* shocks) {
  const int steps[3] = {1, width, width * width};
  REAL found[3];
  RS_UNROLL for (int d = 0; d < 3; ++d) {
    const Three below = cells(at - steps[d], d), here = cells(at, d), above = cells(at + steps[d], d);
    found[d] = hydro::shock::shock_along<REAL>(rs::arr<REAL, 2>{{below.d[0], above.d[0]}}, rs::arr<REAL, 2>{{below.d[1], above.d[1]}},
                                               Three{{below.d[2], here.d[2], above.d[2]}});
  }
  if (!(rs::max(rs::max(found[0], found[1]), found[2]) > REAL(0))) return 0;
  launch::atomic_or(shocks + ANY_SHOCK, 1u);
  const int bit = cell[0] + 10 * (cell[1] + 10 * cell[2]);
  unsigned* word = shocks + bit / 32;
  unsigned slow = 0;
  RS_UNROLL for (int d = 0; d < 3; ++d) {
    if (hydro::shock::damped<REAL>(found[d], found[(d + 1) % 3], found[(d + 2) % 3]) > REAL(0))
      launch::atomic_or(word + d * SHOCK_WORDS, 1u << (bit % 32));
    if (!(found[d] > REAL(1))) continue;
    launch::atomic_or(word + SLOW_SHOCKS + d * SHOCK_WORDS, 1u << (bit % 32));
    slow |= 1u << d;
  }
  return slow;
}

// Returns the axes of slow shocks in a marked cell, one bit each.
RS_FN unsigned slow_axes(const unsigned* shocks, const int* cell) {
  if (!shocks[ANY_SHOCK]) return 0;
  const int bit = cell[0] + 10 * (cell[1] + 10 * cell[2]);
  unsigned slow = 0;
  RS_UNROLL for (int d = 0; d < 3; ++d) slow |= (shocks[SLOW_SHOCKS + d * SHOCK_WORDS + bit / 32] >> bit % 32 & 1) << d;
  return slow;
}

// ---- the predictor of the van Leer scheme

// Primitive variables of the conserved input.
struct InputCells {
  const REAL* input;
  RS_MEMBER Three operator()(int at, int axis) const {
    const State w = primitive(load_state(input, INPUT, at));
    return Three{{w.d[0], w.d[1 + axis], pressure_of(w.d[PRESSURE])}};
  }
  RS_MEMBER REAL pressure(int at) const { return operator()(at, 0).d[2]; }
};

static_assert(!PREDICTOR || (!DUAL && UNCORRECTED < 0), "the predictor knows neither dual energy nor magnetic fields");

RS_FN State input_primitive(const REAL* input, int at) {
  return primitive(load_state(input, INPUT, at));
}

// Donor-cell fluxes through the two faces of a cell normal to axis D, in the order of components.
template<int D>
RS_FN void donor_fluxes(const REAL* input, int at, const State& here, REAL* below, REAL* above) {
  constexpr int step = D == 0 ? 1 : D == 1 ? INPUT_WIDTH : INPUT_WIDTH * INPUT_WIDTH;
  const State mine = rotated<D>(here);
  const State low = riemann(rotated<D>(input_primitive(input, at - step)), mine, REAL(0));
  const State high = riemann(mine, rotated<D>(input_primitive(input, at + step)), REAL(0));
  RS_UNROLL for (int v = 0; v < GAS; ++v) {
    below[component<D>(v)] = low.d[v];
    above[component<D>(v)] = high.d[v];
  }
}

// Computes the gas of a cell half a step later by donor-cell fluxes, and the mass fractions of its scalars at the current time. A cell that
// would become unphysical is not changed.
RS_FN void predict_cell(const REAL* input, REAL* block, int cell, const Three& half_rate, unsigned* shocks) {
  const int i = cell % WIDTH, j = cell / WIDTH % WIDTH, k = cell / (WIDTH * WIDTH);
  const int at = (i + 1) + INPUT_WIDTH * ((j + 1) + INPUT_WIDTH * (k + 1));
  for (int c = GAS; c < COMPONENTS; ++c) block[c * BLOCK + cell] = input[c * INPUT + at] / input[at];
  if (inside(i - REACH) + inside(j - REACH) + inside(k - REACH) < 2) return;
  const State old = input_primitive(input, at);
  const int place[3] = {i - REACH + 1, j - REACH + 1, k - REACH + 1};
  const bool marked = CURE && in_layer(place) && !is_smooth(InputCells{input}, at, INPUT_WIDTH);
  REAL below[3][GAS], above[3][GAS];
  donor_fluxes<0>(input, at, old, below[0], above[0]);
  donor_fluxes<1>(input, at, old, below[1], above[1]);
  donor_fluxes<2>(input, at, old, below[2], above[2]);
  State u;
  RS_UNROLL for (int c = 0; c < GAS; ++c)
    u.d[c] = ::nestar_kernels::mesh::fluxes::advanced<REAL>(input[c * INPUT + at], Three{{below[0][c], below[1][c], below[2][c]}},
                                          Three{{above[0][c], above[1][c], above[2][c]}}, half_rate);
  const State next = predicted(u, old);
  RS_UNROLL for (int v = 0; v < GAS; ++v) block[v * BLOCK + cell] = next.d[v];
  if (marked) mark_shocks(InputCells{input}, place, at, INPUT_WIDTH, shocks);
}

// ---- states at the faces of a cell

// Values of five consecutive cells along axis D.
template<int D> RS_FN Five five(const REAL* w, int at) {
  constexpr int s = STEP<D>;
  return Five{{w[at - 2 * s], w[at - s], w[at], w[at + s], w[at + 2 * s]}};
}

// Returns the factor for the distances to the edges along axis D in strong shocks and in converging cold gas.
template<int D> RS_FN REAL flattening_factors(const REAL* block, int at) {
  const REAL* v = block + (1 + D) * BLOCK + at;
  REAL left = REAL(1);
  if constexpr (FLATTEN) {
    Five p = five<D>(block + PRESSURE * BLOCK, at);
    RS_UNROLL for (int n = 0; n < 5; ++n) p.d[n] = pressure_of(p.d[n]);
    left = hydro::ppm::flattening<REAL>(p, rs::arr<REAL, 2>{{v[-STEP<D>], v[STEP<D>]}});
  }
  if constexpr (DUAL) {
    const REAL* p = block + PRESSURE * BLOCK + at;
    left = left * hydro::dual::slope_factor<REAL>(Three{{p[-STEP<D>], p[0], p[STEP<D>]}},
                                                 rs::arr<REAL, 2>{{v[-STEP<D>], v[STEP<D>]}}, block[at], gamma());
  }
  return left;
}

// Returns half the limited difference of one variable across a cell along axis D.
template<int D> RS_FN REAL half_slope_at(const REAL* w, int at) {
  if constexpr (CONSTANT) return REAL(0);
  else return half_slope(w[at] - w[at - STEP<D>], w[at + STEP<D>] - w[at]);
}

// Computes the distances from the average to the edges of one variable along axis D.
template<int D, bool SCALAR> RS_FN void distances(const REAL* w, int at, REAL left, REAL& lower, REAL& upper) {
  constexpr int s = STEP<D>;
  if constexpr (PARABOLIC) {
    // as in reconstruct.rs
    rs::tup<REAL, REAL> edges;
    if constexpr (SCALAR) edges = hydro::ppm::bounded_parabola<REAL>(five<D>(w, at));
    else if constexpr (WENO) edges = hydro::weno::weno_z<REAL>(five<D>(w, at));
    else if constexpr (EXTREMA) edges = hydro::ppm::parabola<REAL>(five<D>(w, at));
    else
      edges = hydro::ppm::limited_parabola<REAL>(five<D>(w, at),
                                                 Three{{half_slope_at<D>(w, at - s), half_slope_at<D>(w, at), half_slope_at<D>(w, at + s)}});
    lower = left * edges._0;
    upper = left * edges._1;
  } else {
    lower = upper = half_slope_at<D>(w, at);
    if constexpr (FLATTEN || DUAL) lower = upper = left * lower;
  }
}

// Returns half the differences of the gas across a cell along axis D, limited in characteristic variables.
template<int D> RS_FN State half_slopes_of_waves(const REAL* block, int at) {
  const State here = rotated<D>(load_state(block, BLOCK, at));
  State below = rotated<D>(load_state(block, BLOCK, at - STEP<D>)), above = rotated<D>(load_state(block, BLOCK, at + STEP<D>));
  const WaveBasis basis = wave_basis(here);
  RS_UNROLL for (int v = 0; v < GAS; ++v) {
    below.d[v] = here.d[v] - below.d[v];
    above.d[v] = above.d[v] - here.d[v];
  }
  below = to_waves(below, basis);
  above = to_waves(above, basis);
  RS_UNROLL for (int v = 0; v < GAS; ++v) below.d[v] = half_slope(below.d[v], above.d[v]);
  const State turned = from_waves(below, basis);
  State half;
  RS_UNROLL for (int v = 0; v < GAS; ++v) half.d[component<D>(v)] = turned.d[v];
  return half;
}

template<int D> RS_FN void distances_of_gas(const REAL* block, int at, State& lower, State& upper) {
  const REAL left = flattening_factors<D>(block, at);
  if constexpr (WAVES && PARABOLIC) {
    const State before = half_slopes_of_waves<D>(block, at - STEP<D>), here = half_slopes_of_waves<D>(block, at),
                after = half_slopes_of_waves<D>(block, at + STEP<D>);
    RS_UNROLL for (int v = 0; v < GAS; ++v) {
      const auto edges = hydro::ppm::limited_parabola<REAL>(five<D>(block + v * BLOCK, at), Three{{before.d[v], here.d[v], after.d[v]}});
      lower.d[v] = left * edges._0;
      upper.d[v] = left * edges._1;
    }
  } else if constexpr (WAVES) {
    lower = half_slopes_of_waves<D>(block, at);
    if constexpr (FLATTEN || DUAL) RS_UNROLL for (int v = 0; v < GAS; ++v) lower.d[v] = left * lower.d[v];
    upper = lower;
  } else {
    RS_UNROLL for (int v = 0; v < GAS; ++v) distances<D, false>(block + v * BLOCK, at, left, lower.d[v], upper.d[v]);
  }
}

RS_FN State halves(const State& lower, const State& upper) {
  if constexpr (PARABOLIC) {
    State half;
    RS_UNROLL for (int v = 0; v < GAS; ++v) half.d[v] = REAL(0.5) * (lower.d[v] + upper.d[v]);
    return half;
  } else {
    return lower;
  }
}

// Returns the states of a cell at its lower and upper face along axis D, in the order of a face.
template<int D>
RS_FN rs::tup<State, State> both_edges(const State& w, const State& h, const State& lower, const State& upper, const Three& rate,
                                       REAL speed) {
  const State turned_w = rotated<D>(w), below = rotated<D>(lower), above = rotated<D>(upper);
  State turned_h = rotated<D>(h);
  if constexpr (CORRECTED) turned_h = half_step_along(turned_w, halves(below, above), rate.d[D]);
  return PARABOLIC && (HALF_STEP || CORRECTED) ? traced_edges(turned_w, turned_h, below, above, rate.d[D], speed)
                                : edges_of(turned_w, turned_h, below, above);
}

// Stores the edge states of cell (i, j, k) along axis D: the upper one on the lower side of the face above, the lower one on the upper side
// of the face below.
template<int D>
RS_FN void store_edges(const Scratch& s, int i, int j, int k, const State& w, const State& h, const State& lower, const State& upper,
                       const Three& rate, REAL speed) {
  const auto both = both_edges<D>(w, h, lower, upper, rate, speed);
  const int n = D == 0 ? i : D == 1 ? j : k, f = face_index<D>(i, j, k);
  RS_UNROLL for (int v = 0; v < GAS; ++v) {
    const int at = (D * GAS + component<D>(v)) * FACES + f;
    if (n >= 0) s.right[at] = both._0.d[v];
    if (n < PATCH) s.left[at + TO_UPPER<D>] = both._1.d[v];
  }
}

// Reduces the slopes along the axes of slow shocks to first order.
RS_FN void flatten(unsigned slow, State* lower, State* upper) {
  RS_UNROLL for (int d = 0; d < 3; ++d) {
    if (!(slow >> d & 1)) continue;
    RS_UNROLL for (int v = 0; v < GAS; ++v) lower[d].d[v] = upper[d].d[v] = REAL(0);
  }
}

// Index in the block of a cell by its position in the patch, and among the 10^3 cells.
RS_FN int in_block(const int* at) { return (at[0] + REACH) + WIDTH * ((at[1] + REACH) + WIDTH * (at[2] + REACH)); }
RS_FN int layered(const int* at) { return (at[0] + 1) + 10 * ((at[1] + 1) + 10 * (at[2] + 1)); }

// Returns the state of the cell at position `at` at its lower or upper face along axis D, in the order of a face. `shocks` is null if there
// are none.
template<int D, bool UPPER>
RS_FN State edge_state(const Scratch& s, const int* at, const Three& rate, REAL speed, const unsigned* shocks) {
  const int place = in_block(at);
  const State w = load_state(s.block, BLOCK, place);
  State lower, upper, h = w;
  distances_of_gas<D>(s.block, place, lower, upper);
  if (CURE && shocks) {
    const int cell[3] = {at[0] + 1, at[1] + 1, at[2] + 1};
    if (slow_axes(shocks, cell) >> D & 1) RS_UNROLL for (int v = 0; v < GAS; ++v) lower.d[v] = upper.d[v] = REAL(0);
  }
  if constexpr (HALF_STEP) h = load_state(s.states, LAYERED, layered(at));
  const auto both = both_edges<D>(w, h, lower, upper, rate, speed);
  return UPPER ? both._1 : both._0;
}

// Computes the states on both sides of a face of axis D, in the order of a face; `at` is the position of the upper cell.
template<int D>
RS_FN void edge_states(const Scratch& s, const int* at, const Three& rate, REAL speed, const unsigned* shocks, State& l, State& r) {
  int below[3] = {at[0], at[1], at[2]};
  below[D] -= 1;
  l = edge_state<D, true>(s, below, rate, speed, shocks);
  r = edge_state<D, false>(s, at, rate, speed, shocks);
}

// Computes the first flux through face f of axis D. It is that of the Riemann solver everywhere.
template<int D> RS_FN void first_flux(const Scratch& s, int f, const Three& rate, const unsigned* shocks) {
  int at[3];
  face_place<D, 1>(f, at);
  State l, r;
  edge_states<D>(s, at, rate, REAL(0), shocks, l, r);
  const State flux = riemann(l, r, REAL(0));
  RS_UNROLL for (int v = 0; v < GAS; ++v) s.first[(D * GAS + component<D>(v)) * FIRST_FACES + f] = flux.d[v];
}

// Returns state w of the cell at position `at` at a face of axis D after half a step of the first fluxes along the other axes.
template<int D> RS_FN State corrected_across(const Scratch& s, const int* at, const State& w, const Three& rate) {
  typedef rs::arr<REAL, 2> Two;
  constexpr int A = (D + 1) % 3, B = (D + 2) % 3;
  const REAL* a = s.first + A * GAS * FIRST_FACES + mesh::face_index<A, 1>(at[0], at[1], at[2]);
  const REAL* b = s.first + B * GAS * FIRST_FACES + mesh::face_index<B, 1>(at[0], at[1], at[2]);
  State change;
  RS_UNROLL for (int v = 0; v < GAS; ++v) {
    const int below = component<D>(v) * FIRST_FACES;
    change.d[v] = hydro::hancock::transverse_change<REAL>(Two{{a[below], b[below]}}, Two{{a[below + mesh::TO_UPPER<A, 1>], b[below + mesh::TO_UPPER<B, 1>]}},
                                                          Two{{rate.d[A], rate.d[B]}});
  }
  return corrected(w, change);
}

// Computes the state half a step later of one of the 10^3 cells of the patch and the layer around it, and stores it or the states at the faces
// of the cell. It marks the cell in `shocks`, unless the predictor has done so.
RS_FN void cell_states(const Scratch& s, int cell, const Three& rate, REAL speed, unsigned* shocks) {
  const REAL* block = s.block;
  const int i = cell % 10 - 1, j = cell / 10 % 10 - 1, k = cell / 100 - 1;
  const bool x = across(j) && across(k), y = across(i) && across(k), z = across(i) && across(j);
  // first fluxes need the shocks in all of these cells
  if (!CORRECTED && !x && !y && !z) return;
  const int at = (i + REACH) + WIDTH * ((j + REACH) + WIDTH * (k + REACH));
  const bool marked = CURE && !PREDICTOR && !is_smooth(BlockCells{block}, at, WIDTH);
  const State w = load_state(block, BLOCK, at);
  State lower[3], upper[3], h = w;
  if (HALF_STEP || (!AT_FACES && x)) distances_of_gas<0>(block, at, lower[0], upper[0]);
  if (HALF_STEP || (!AT_FACES && y)) distances_of_gas<1>(block, at, lower[1], upper[1]);
  if (HALF_STEP || (!AT_FACES && z)) distances_of_gas<2>(block, at, lower[2], upper[2]);
  if constexpr (CURE) {
    const int place[3] = {i + 1, j + 1, k + 1};
    unsigned slow = 0;
    if constexpr (PREDICTOR) slow = slow_axes(shocks, place);
    else if (marked) slow = mark_shocks(BlockCells{block}, place, at, WIDTH, shocks);
    if (slow) flatten(slow, lower, upper);
  }
  if constexpr (HALF_STEP) {
    const rs::arr<State, 3> half{{halves(lower[0], upper[0]), halves(lower[1], upper[1]), halves(lower[2], upper[2])}};
    h = half_step(w, half, rate, speed);
  }
  if constexpr (!AT_FACES) {
    if (x) store_edges<0>(s, i, j, k, w, h, lower[0], upper[0], rate, speed);
    if (y) store_edges<1>(s, i, j, k, w, h, lower[1], upper[1], rate, speed);
    if (z) store_edges<2>(s, i, j, k, w, h, lower[2], upper[2], rate, speed);
  } else if constexpr (HALF_STEP) {
    RS_UNROLL for (int v = 0; v < GAS; ++v) s.states[v * LAYERED + cell] = h.d[v];
  }
}

// Computes the same for the mass fraction of a scalar, with `left` and `right` for one variable per axis, always half a step later.
RS_FN void scalar_edges(const REAL* block, int c, REAL* left, REAL* right, int cell, const Three& rate) {
  const int i = cell % 10 - 1, j = cell / 10 % 10 - 1, k = cell / 100 - 1;
  const bool x = across(j) && across(k), y = across(i) && across(k), z = across(i) && across(j);
  if (!x && !y && !z) return;
  const int at = (i + REACH) + WIDTH * ((j + REACH) + WIDTH * (k + REACH));
  const REAL* q = block + c * BLOCK;
  REAL lower[3], upper[3];
  distances<0, true>(q, at, flattening_factors<0>(block, at), lower[0], upper[0]);
  distances<1, true>(q, at, flattening_factors<1>(block, at), lower[1], upper[1]);
  distances<2, true>(q, at, flattening_factors<2>(block, at), lower[2], upper[2]);
  const Three velocity{{block[BLOCK + at], block[2 * BLOCK + at], block[3 * BLOCK + at]}};
  Three half;
  RS_UNROLL for (int d = 0; d < 3; ++d) half.d[d] = PARABOLIC ? REAL(0.5) * (lower[d] + upper[d]) : lower[d];
  const REAL h = hydro::hancock::half_step_scalar<REAL>(q[at], velocity, half, rate);
  const rs::arr<REAL, 6> near{{q[at - STEP<0>], q[at + STEP<0>], q[at - STEP<1>], q[at + STEP<1>], q[at - STEP<2>],
                               q[at + STEP<2>]}};
  const rs::arr<REAL, 2> range = hydro::hancock::range_around<REAL>(q[at], near);
  const int f[3] = {face_index<0>(i, j, k), face_index<1>(i, j, k), face_index<2>(i, j, k)};
  const int n[3] = {i, j, k}, to_upper[3] = {TO_UPPER<0>, TO_UPPER<1>, TO_UPPER<2>};
  const bool wanted[3] = {x, y, z};
  RS_UNROLL for (int d = 0; d < 3; ++d) {
    if (!wanted[d]) continue;
    rs::tup<REAL, REAL> both{h - lower[d], h + upper[d]};
    if constexpr (PARABOLIC) both = hydro::hancock::traced_scalar<REAL>(h, lower[d], upper[d], velocity.d[d], rate.d[d]);
    both = hydro::hancock::bounded<REAL>(both, range);
    if (n[d] >= 0) right[d * FACES + f[d]] = both._0;
    if (n[d] < PATCH) left[d * FACES + f[d] + to_upper[d]] = both._1;
  }
}

}  // namespace fluid
