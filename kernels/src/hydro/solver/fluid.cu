// The step of a patch on the device: the twin of march.rs. One block advances one patch.
//
// Each cell's primitive state, edge states and each face's flux are computed once and handed over in the scratch, which is
// shared memory, or global memory where the method needs more than there is. The text before this file gives namespace
// `fluid`: GHOSTS, HALF_STEP, PARABOLIC, LIMITER, RIEMANN, gamma(), theta(), KEEP_INPUT, IN_SHARED, THREADS, MIN_BLOCKS.

namespace fluid {

using field::REAL;
using mesh::CELLS;
using mesh::COMPONENTS;
using mesh::FACE;
using mesh::PATCH;
namespace hydro = ::nestar_kernels::hydro;
typedef rs::arr<REAL, 5> State;
typedef rs::arr<REAL, 3> Three;

constexpr int GAS = 5;
// Faces normal to one axis: nine layers of 64.
constexpr int FACES = (PATCH + 1) * FACE;
// Layers of ghost cells that the reconstruction reads, the width and the cells of its block.
constexpr int REACH = HALF_STEP ? GHOSTS : GHOSTS - 1;
constexpr int WIDTH = PATCH + 2 * REACH;
constexpr int BLOCK = WIDTH * WIDTH * WIDTH;
// Width and cells of the block that is gathered.
constexpr int INPUT_WIDTH = PATCH + 2 * GHOSTS;
constexpr int INPUT = INPUT_WIDTH * INPUT_WIDTH * INPUT_WIDTH;
// Values of the scratch: primitive variables; then the states on the lower and on the upper side of all faces, where the
// conserved input of the van Leer predictor stood, unless first-order fluxes still need that.
constexpr int EDGES = 3 * GAS * FACES;
constexpr int INPUT_VALUES = HALF_STEP ? 0 : COMPONENTS * INPUT;
constexpr int EDGES_AT = COMPONENTS * BLOCK + (KEEP_INPUT ? INPUT_VALUES : 0);
constexpr int AFTER_EDGES = EDGES_AT + 2 * EDGES;
constexpr int AFTER_INPUT = COMPONENTS * BLOCK + INPUT_VALUES;
constexpr int SCRATCH = AFTER_EDGES > AFTER_INPUT ? AFTER_EDGES : AFTER_INPUT;

typedef ::nestar_kernels::hydro::solver::device::StepParameters<REAL> Step;

// ---- places

// Index of the face with coordinate n (0 to 8) along axis D; the other coordinates are a cell's.
template<int D> RS_FN int face_index(int i, int j, int k) {
  return D == 0 ? i + 9 * (j + 8 * k) : D == 1 ? i + 8 * (j + 9 * k) : i + 8 * (j + 8 * k);
}
// From the lower face of a cell to its upper one.
template<int D> constexpr int TO_UPPER = D == 0 ? 1 : D == 1 ? 8 : 64;
// Component of density, normal momentum, the two tangential ones and energy.
template<int D> RS_FN int component(int v) { return v == 0 ? 0 : v == 4 ? 4 : 1 + (D + v - 1) % 3; }
template<int D> constexpr int STEP = D == 0 ? 1 : D == 1 ? WIDTH : WIDTH * WIDTH;

RS_FN bool inside(int i) { return (unsigned)i < (unsigned)PATCH; }

RS_FN Three three(const rs::arr<double, 3>& x) { return Three{{(REAL)x[0], (REAL)x[1], (REAL)x[2]}}; }

// ---- from conserved to primitive variables

RS_FN State load5(const REAL* block, int stride, int at) {
  State u;
  RS_UNROLL for (int v = 0; v < GAS; ++v) u.d[v] = block[v * stride + at];
  return u;
}

// Stores the primitive variables of a gathered cell.
struct Primitives {
  RS_MEMBER void operator()(REAL* block, int cell, const REAL* u) const {
    const State w = hydro::eos::primitive_from_conserved<REAL>(State{{u[0], u[1], u[2], u[3], u[4]}}, gamma());
    RS_UNROLL for (int v = 0; v < GAS; ++v) block[v * INPUT + cell] = w.d[v];
    RS_UNROLL for (int c = GAS; c < COMPONENTS; ++c) block[c * INPUT + cell] = u[c] / u[0];
  }
};

// Stores the conserved variables of a gathered cell.
struct Conserved {
  RS_MEMBER void operator()(REAL* block, int cell, const REAL* u) const {
    RS_UNROLL for (int c = 0; c < COMPONENTS; ++c) block[c * INPUT + cell] = u[c];
  }
};

// ---- fluxes

RS_FN State riemann(const State& l, const State& r) {
  if constexpr (RIEMANN == 0) return hydro::riemann::hllc::flux_hllc<REAL>(l, r, gamma());
  else if constexpr (RIEMANN == 1) return hydro::riemann::hlle::flux_hlle<REAL>(l, r, gamma());
  else return hydro::riemann::exact::flux_exact<REAL>(l, r, gamma());
}

// A state with its velocity turned so that the normal component comes first.
template<int D> RS_FN State turned(const State& w) {
  return State{{w.d[0], w.d[component<D>(1)], w.d[component<D>(2)], w.d[component<D>(3)], w.d[4]}};
}

// ---- the predictor of the van Leer scheme

RS_FN State input_primitive(const REAL* input, int at) {
  return hydro::eos::primitive_from_conserved<REAL>(load5(input, INPUT, at), gamma());
}

// Donor-cell fluxes through the two faces of a cell normal to axis D, in the order of components.
template<int D>
RS_FN void donor_fluxes(const REAL* input, int at, const State& here, REAL* below, REAL* above) {
  constexpr int step = D == 0 ? 1 : D == 1 ? INPUT_WIDTH : INPUT_WIDTH * INPUT_WIDTH;
  const State mine = turned<D>(here);
  const State low = riemann(turned<D>(input_primitive(input, at - step)), mine);
  const State high = riemann(mine, turned<D>(input_primitive(input, at + step)));
  RS_UNROLL for (int v = 0; v < GAS; ++v) {
    below[component<D>(v)] = low.d[v];
    above[component<D>(v)] = high.d[v];
  }
  for (int c = GAS; c < COMPONENTS; ++c) {
    const REAL* x = input + c * INPUT;
    const REAL mid = x[at] / input[at];
    below[c] = hydro::riemann::flux_of_scalar<REAL>(low.d[0], x[at - step] / input[at - step], mid);
    above[c] = hydro::riemann::flux_of_scalar<REAL>(high.d[0], mid, x[at + step] / input[at + step]);
  }
}

// Primitive variables of a cell half a step later by donor-cell fluxes; a cell that becomes unphysical keeps what it had.
RS_FN void predict_cell(const REAL* input, REAL* block, int cell, const Three& half_rate) {
  const int i = cell % WIDTH, j = cell / WIDTH % WIDTH, k = cell / (WIDTH * WIDTH);
  if (inside(i - REACH) + inside(j - REACH) + inside(k - REACH) < 2) return;
  const int at = (i + 1) + INPUT_WIDTH * ((j + 1) + INPUT_WIDTH * (k + 1));
  const State old = input_primitive(input, at);
  REAL below[3][COMPONENTS], above[3][COMPONENTS];
  donor_fluxes<0>(input, at, old, below[0], above[0]);
  donor_fluxes<1>(input, at, old, below[1], above[1]);
  donor_fluxes<2>(input, at, old, below[2], above[2]);
  REAL u[COMPONENTS];
  RS_UNROLL for (int c = 0; c < COMPONENTS; ++c)
    u[c] = hydro::hancock::advanced<REAL>(input[c * INPUT + at], Three{{below[0][c], below[1][c], below[2][c]}},
                                          Three{{above[0][c], above[1][c], above[2][c]}}, half_rate);
  const State w = hydro::eos::primitive_from_conserved<REAL>(State{{u[0], u[1], u[2], u[3], u[4]}}, gamma());
  const bool sane = w.d[0] > REAL(0) && w.d[4] > REAL(0);
  RS_UNROLL for (int v = 0; v < GAS; ++v) block[v * BLOCK + cell] = sane ? w.d[v] : old.d[v];
  for (int c = GAS; c < COMPONENTS; ++c)
    block[c * BLOCK + cell] = sane ? u[c] / u[0] : input[c * INPUT + at] / input[at];
}

// ---- states at the faces of a cell

// Distances from the average to the edges along axis D of one variable.
template<int D> RS_FN void distances(const REAL* w, int at, REAL& lower, REAL& upper) {
  constexpr int s = STEP<D>;
  if constexpr (PARABOLIC) {
    const State five{{w[at - 2 * s], w[at - s], w[at], w[at + s], w[at + 2 * s]}};
    const auto edges = hydro::ppm::limited_parabola<REAL, LIMITER>(five, theta());
    lower = edges._0;
    upper = edges._1;
  } else {
    lower = upper = hydro::limiter::half_slope<REAL, LIMITER>(w[at] - w[at - s], w[at + s] - w[at], theta());
  }
}

template<int D> RS_FN void distances5(const REAL* block, int at, State& lower, State& upper) {
  RS_UNROLL for (int v = 0; v < GAS; ++v) distances<D>(block + v * BLOCK, at, lower.d[v], upper.d[v]);
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

// Stores the edge states of cell (i, j, k) along axis D: its upper one on the lower side of the face above it, its lower one
// on the upper side of the face below it.
template<int D>
RS_FN void store_edges(REAL* left, REAL* right, int i, int j, int k, const State& w, const State& h,
                       const State& lower, const State& upper) {
  const auto both = hydro::hancock::edges<REAL>(w, h, lower, upper);
  const int n = D == 0 ? i : D == 1 ? j : k, f = face_index<D>(i, j, k);
  RS_UNROLL for (int v = 0; v < GAS; ++v) {
    if (n >= 0) right[(D * GAS + v) * FACES + f] = both._0.d[v];
    if (n < PATCH) left[(D * GAS + v) * FACES + f + TO_UPPER<D>] = both._1.d[v];
  }
}

// Edge states of one of the 10^3 cells of the patch and the layer around it.
RS_FN void cell_edges(const REAL* block, REAL* left, REAL* right, int cell, const Three& rate) {
  const int i = cell % 10 - 1, j = cell / 10 % 10 - 1, k = cell / 100 - 1;
  const bool x = inside(j) && inside(k), y = inside(i) && inside(k), z = inside(i) && inside(j);
  if (!x && !y && !z) return;
  const int at = (i + REACH) + WIDTH * ((j + REACH) + WIDTH * (k + REACH));
  const State w = load5(block, BLOCK, at);
  State lower[3], upper[3], h = w;
  if (HALF_STEP || x) distances5<0>(block, at, lower[0], upper[0]);
  if (HALF_STEP || y) distances5<1>(block, at, lower[1], upper[1]);
  if (HALF_STEP || z) distances5<2>(block, at, lower[2], upper[2]);
  if constexpr (HALF_STEP) {
    const rs::arr<State, 3> half{{halves(lower[0], upper[0]), halves(lower[1], upper[1]), halves(lower[2], upper[2])}};
    h = hydro::hancock::half_step<REAL>(w, half, rate, gamma());
  }
  if (x) store_edges<0>(left, right, i, j, k, w, h, lower[0], upper[0]);
  if (y) store_edges<1>(left, right, i, j, k, w, h, lower[1], upper[1]);
  if (z) store_edges<2>(left, right, i, j, k, w, h, lower[2], upper[2]);
}

// The same for the concentration of a scalar, with `left` and `right` of one variable an axis.
RS_FN void scalar_edges(const REAL* block, int c, REAL* left, REAL* right, int cell, const Three& rate) {
  const int i = cell % 10 - 1, j = cell / 10 % 10 - 1, k = cell / 100 - 1;
  const bool x = inside(j) && inside(k), y = inside(i) && inside(k), z = inside(i) && inside(j);
  if (!x && !y && !z) return;
  const int at = (i + REACH) + WIDTH * ((j + REACH) + WIDTH * (k + REACH));
  const REAL* q = block + c * BLOCK;
  REAL lower[3], upper[3], h = q[at];
  if (HALF_STEP || x) distances<0>(q, at, lower[0], upper[0]);
  if (HALF_STEP || y) distances<1>(q, at, lower[1], upper[1]);
  if (HALF_STEP || z) distances<2>(q, at, lower[2], upper[2]);
  if constexpr (HALF_STEP) {
    const Three velocity{{block[BLOCK + at], block[2 * BLOCK + at], block[3 * BLOCK + at]}};
    Three half;
    RS_UNROLL for (int d = 0; d < 3; ++d) half.d[d] = PARABOLIC ? REAL(0.5) * (lower[d] + upper[d]) : lower[d];
    h = hydro::hancock::half_step_scalar<REAL>(h, velocity, half, rate);
  }
  const int f[3] = {face_index<0>(i, j, k), face_index<1>(i, j, k), face_index<2>(i, j, k)};
  const int n[3] = {i, j, k}, to_upper[3] = {TO_UPPER<0>, TO_UPPER<1>, TO_UPPER<2>};
  const bool wanted[3] = {x, y, z};
  RS_UNROLL for (int d = 0; d < 3; ++d) {
    if (wanted[d] && n[d] >= 0) right[d * FACES + f[d]] = h - lower[d];
    if (wanted[d] && n[d] < PATCH) left[d * FACES + f[d] + to_upper[d]] = h + upper[d];
  }
}

// ---- first-order fluxes at mended cells (mend.rs)

// Whether one of the two cells beside face f of axis D is among the flagged ones, 10^3 bits; `at` becomes the place of the
// upper cell in the patch.
template<int D> RS_FN bool touches(const unsigned* cells, int f, int* at) {
  at[0] = D == 0 ? f % 9 : f % 8;
  at[1] = D == 0 ? f / 9 % 8 : D == 1 ? f / 8 % 9 : f / 8 % 8;
  at[2] = D == 0 ? f / 72 : D == 1 ? f / 72 : f / 64;
  const int above = (at[0] + 1) + 10 * ((at[1] + 1) + 10 * (at[2] + 1));
  const int below = above - (D == 0 ? 1 : D == 1 ? 10 : 100);
  return (cells[above / 32] >> above % 32 & 1) || (cells[below / 32] >> below % 32 & 1);
}

// Primitive variables of a cell of the patch at the beginning of the step.
RS_FN State cell_average(const REAL* block, const REAL* input, const int* at, int D, int back) {
  int c[3] = {at[0], at[1], at[2]};
  c[D] -= back;
  if constexpr (HALF_STEP) return load5(block, BLOCK, (c[0] + REACH) + WIDTH * ((c[1] + REACH) + WIDTH * (c[2] + REACH)));
  else return input_primitive(input, (c[0] + GHOSTS) + INPUT_WIDTH * ((c[1] + GHOSTS) + INPUT_WIDTH * (c[2] + GHOSTS)));
}

RS_FN REAL concentration(const REAL* block, const REAL* input, int component, const int* at, int D, int back) {
  int c[3] = {at[0], at[1], at[2]};
  c[D] -= back;
  if constexpr (HALF_STEP) {
    return block[component * BLOCK + (c[0] + REACH) + WIDTH * ((c[1] + REACH) + WIDTH * (c[2] + REACH))];
  } else {
    const int i = (c[0] + GHOSTS) + INPUT_WIDTH * ((c[1] + GHOSTS) + INPUT_WIDTH * (c[2] + GHOSTS));
    return input[component * INPUT + i] / input[i];
  }
}

// ---- faces and cells

// The flux through one face; it replaces the state on the lower side.
template<int D>
RS_FN void face_flux(const REAL* block, const REAL* input, REAL* left, const REAL* right, int f, const unsigned* mended) {
  State l, r;
  int at[3];
  if (mended && touches<D>(mended, f, at)) {
    l = hydro::riemann::hlle::flux_hlle<REAL>(turned<D>(cell_average(block, input, at, D, 1)),
                                              turned<D>(cell_average(block, input, at, D, 0)), gamma());
  } else {
    RS_UNROLL for (int v = 0; v < GAS; ++v) {
      l.d[v] = left[(D * GAS + component<D>(v)) * FACES + f];
      r.d[v] = right[(D * GAS + component<D>(v)) * FACES + f];
    }
    l = riemann(l, r);
  }
  RS_UNROLL for (int v = 0; v < GAS; ++v) left[(D * GAS + component<D>(v)) * FACES + f] = l.d[v];
}

template<int D>
RS_FN void scalar_flux(const REAL* block, const REAL* input, int c, const REAL* mass, REAL* left, const REAL* right, int f,
                       const unsigned* mended) {
  REAL l = left[D * FACES + f], r = right[D * FACES + f];
  int at[3];
  if (mended && touches<D>(mended, f, at)) {
    l = concentration(block, input, c, at, D, 1);
    r = concentration(block, input, c, at, D, 0);
  }
  left[D * FACES + f] = hydro::riemann::flux_of_scalar<REAL>(mass[D * GAS * FACES + f], l, r);
}

// One component of a cell after the step; `flux` of three axes, `pitch` values apart.
RS_FN REAL advanced(REAL u, const REAL* flux, int pitch, int cell, const Three& rate) {
  const int i = cell % 8, j = cell / 8 % 8, k = cell / 64;
  const REAL* x = flux + face_index<0>(i, j, k);
  const REAL* y = flux + pitch + face_index<1>(i, j, k);
  const REAL* z = flux + 2 * pitch + face_index<2>(i, j, k);
  return hydro::hancock::advanced<REAL>(u, Three{{x[0], y[0], z[0]}},
                                        Three{{x[TO_UPPER<0>], y[TO_UPPER<1>], z[TO_UPPER<2>]}}, rate);
}

RS_FN void mark_unphysical(unsigned* mask, int cell) { launch::atomic_or(mask + cell / 32, 1u << (cell % 32)); }

// Value of component plane `flux` (one axis) on face `face` of the patch at place (slow, fast).
RS_FN REAL on_face(const REAL* flux, int face, int slow, int fast) {
  const int n = face % 2 * PATCH;
  const int f = face < 2 ? face_index<0>(n, fast, slow) : face < 4 ? face_index<1>(fast, n, slow) : face_index<2>(fast, slow, n);
  return flux[f];
}

// Hands the fluxes of component c through the patch's own faces to its registers.
RS_FN void store_registers(const mesh::Registers& to, int row, int c, const REAL* flux, int pitch) {
  if (!to.coarse_slot && !to.fine_slot) return;
  for (int face = 0; face < 6; ++face) {
    const int coarse = to.coarse_slot ? to.coarse_slot[row * 6 + face] : -1;
    const int fine = to.fine_slot ? to.fine_slot[row * 6 + face] : -1;
    const REAL* of_axis = flux + face / 2 * pitch;
    if (coarse >= 0)
      EACH(n, FACE) to.coarse_flux[((rs::i64)coarse * COMPONENTS + c) * FACE + n] = on_face(of_axis, face, n / 8, n % 8);
    if (fine >= 0) EACH(n, mesh::QUARTER) {
        const int fast = 2 * (n % 4), slow = 2 * (n / 4);
        const rs::arr<REAL, 4> four{{on_face(of_axis, face, slow, fast), on_face(of_axis, face, slow, fast + 1),
                                     on_face(of_axis, face, slow + 1, fast), on_face(of_axis, face, slow + 1, fast + 1)}};
        to.attempt[((rs::i64)fine * COMPONENTS + c) * mesh::QUARTER + n] =
            ::nestar_kernels::mesh::fluxes::mean4<REAL>(four);
      }
  }
}

// Collects the cells that take first-order fluxes in a patch and in the layer beyond each of its faces; whether there are any.
RS_FN bool collect_mended(const Step& p, int row, unsigned* cells) {
  EACH(n, 32) cells[n] = 0;
  launch::barrier();
  bool any = false;
  EACH(n, 7 * CELLS) {
    const int source = n / CELLS, cell = n % CELLS, face = source - 1;
    constexpr int direction[6] = {12, 14, 10, 16, 4, 22};
    const int from = source == 0 ? row : p.view.neighbours[row * mesh::AROUND + direction[face]];
    if (from >= 0 && p.first_order[from * 16 + cell / 32] >> cell % 32 & 1) {
      int at[3] = {cell % 8, cell / 8 % 8, cell / 64};
      if (source) at[face / 2] += face % 2 ? 8 : -8;
      if (at[0] >= -1 && at[1] >= -1 && at[2] >= -1 && at[0] <= 8 && at[1] <= 8 && at[2] <= 8) {
        const int bit = (at[0] + 1) + 10 * ((at[1] + 1) + 10 * (at[2] + 1));
        launch::atomic_or(cells + bit / 32, 1u << (bit % 32));
        any = true;
      }
    }
  }
  return launch::any_of_block(any);
}

// ---- the patch

// From the state at the beginning of the step to primitive variables to reconstruct. What lies behind the gathered block is
// free to work in.
RS_FN void prepare(const Step& p, int row, REAL* block, REAL* input, const Three& rate) {
  constexpr int used = COMPONENTS * INPUT + (HALF_STEP ? 0 : COMPONENTS * BLOCK);
  constexpr bool room = SCRATCH - used >= mesh::INTERPOLATION_WORK<GHOSTS>;
  REAL* work = room ? block + used : nullptr;
  if constexpr (HALF_STEP) {
    mesh::gather<GHOSTS>(block, p.view, row, Primitives(), work);
  } else {
    mesh::gather<GHOSTS>(input, p.view, row, Conserved(), work);
    const Three half{{REAL(0.5) * rate.d[0], REAL(0.5) * rate.d[1], REAL(0.5) * rate.d[2]}};
    EACH(cell, BLOCK) predict_cell(input, block, cell, half);
    launch::barrier();
  }
}

// The new gas of the patch; returns the largest signal rate among the cells of this thread.
RS_FN REAL update_gas(const Step& p, int row, const REAL* flux, const Three& rate, unsigned* mask) {
  const REAL* u = mesh::row_of(p.view.level, row);
  REAL* out = mesh::row_of(p.next, row);
  const Three inverse_dx = three(p.inverse_dx);
  REAL largest = REAL(0);
  EACH(cell, CELLS) {
    State now;
    RS_UNROLL for (int v = 0; v < GAS; ++v) {
      now.d[v] = advanced(u[v * CELLS + cell], flux + v * FACES, GAS * FACES, cell, rate);
      out[v * CELLS + cell] = now.d[v];
    }
    const REAL signal = hydro::eos::checked_signal_rate<REAL>(now, inverse_dx, gamma());
    if (!(signal >= REAL(0))) mark_unphysical(mask, cell);
    largest = rs::max(largest, signal);
  }
  for (int v = 0; v < GAS; ++v) store_registers(p.registers, row, v, flux + v * FACES, GAS * FACES);
  return largest;
}

// The scalars of the patch, one after the other; `left` holds the fluxes of the gas, `right` is free.
RS_FN void advance_scalars(const Step& p, int row, const REAL* block, const REAL* input, const REAL* left, REAL* right,
                           const Three& rate, const unsigned* mended, unsigned* mask) {
  REAL *lower = right, *upper = right + 3 * FACES;
  for (int c = GAS; c < COMPONENTS; ++c) {
    launch::barrier();
    EACH(cell, 1000) scalar_edges(block, c, lower, upper, cell, rate);
    launch::barrier();
    EACH(f, FACES) scalar_flux<0>(block, input, c, left, lower, upper, f, mended);
    EACH(f, FACES) scalar_flux<1>(block, input, c, left, lower, upper, f, mended);
    EACH(f, FACES) scalar_flux<2>(block, input, c, left, lower, upper, f, mended);
    launch::barrier();
    const REAL* u = mesh::row_of(p.view.level, row) + c * CELLS;
    REAL* out = mesh::row_of(p.next, row) + c * CELLS;
    EACH(cell, CELLS) {
      const REAL now = advanced(u[cell], lower, FACES, cell, rate);
      out[cell] = now;
      if (!(now * REAL(0) == REAL(0))) mark_unphysical(mask, cell);
    }
    store_registers(p.registers, row, c, lower, FACES);
  }
}

// What the patch tells the level: its signal rate and its unphysical cells.
RS_FN void conclude(const Step& p, int row, REAL rate, const unsigned* mask) {
  const REAL largest = launch::largest_of_block(rate);
  EACH(n, 16) p.unphysical[row * 16 + n] = mask[n];
  if (launch::thread() == 0) {
    p.rates[row] = largest;
    p.stale[row] = 0;
    typedef rs::lim<REAL>::U U;
    U* level = (U*)&p.status->largest_rate;
    // most patches need not bother the one word that all share
    if (rs::to_bits(largest) > *(volatile U*)level) launch::store_largest<REAL>(level, largest);
    unsigned bad = 0;
    for (int n = 0; n < 16; ++n) bad |= mask[n];
    if (bad) launch::atomic_add(&p.status->unphysical, 1u);
  }
  launch::barrier();
}

RS_FN void advance_patch(const Step& p, int row, REAL* scratch, unsigned* mask, const unsigned* mended) {
  REAL *block = scratch, *input = scratch + COMPONENTS * BLOCK;
  REAL *left = scratch + EDGES_AT, *right = left + EDGES;
  const Three rate = three(p.rate);
  EACH(n, 16) mask[n] = 0;
  prepare(p, row, block, input, rate);
  if constexpr (!HALF_STEP && !KEEP_INPUT) {
    // the edges overwrite the input
    launch::barrier();
  }
  EACH(cell, 1000) cell_edges(block, left, right, cell, rate);
  launch::barrier();
  EACH(f, FACES) face_flux<0>(block, input, left, right, f, mended);
  EACH(f, FACES) face_flux<1>(block, input, left, right, f, mended);
  EACH(f, FACES) face_flux<2>(block, input, left, right, f, mended);
  launch::barrier();
  const REAL largest = update_gas(p, row, left, rate, mask);
  if constexpr (COMPONENTS > GAS) advance_scalars(p, row, block, input, left, right, rate, mended, mask);
  launch::barrier();
  conclude(p, row, largest, mask);
}

}  // namespace fluid

// Advances patches into the next bank.
KERNEL_BOUNDS(fluid_step, fluid::Step, fluid::THREADS, fluid::MIN_BLOCKS) {
  SHARED unsigned mask[16];
  fluid::REAL* scratch;
  // known when compiled: generic addresses cost a tenth of the speed
  if constexpr (fluid::IN_SHARED) scratch = launch::shared<fluid::REAL>();
  else scratch = p.scratch + (rs::i64)launch::block() * fluid::SCRATCH;
  for (int n = launch::block(); n < p.count; n += launch::blocks()) {
    const int row = p.rows[n];
    if constexpr (fluid::KEEP_INPUT) {
      SHARED unsigned mended[32];
      if (fluid::collect_mended(p, row, mended)) fluid::advance_patch(p, row, scratch, mask, mended);
      launch::barrier();
    } else {
      fluid::advance_patch(p, row, scratch, mask, nullptr);
    }
  }
}
