// Step of a patch on the device: the twin of march.rs. Each block advances one patch, from the face states of states.cuh to fluxes and the
// new gas.

namespace fluid {

// ---- first-order fluxes at flagged cells (first_order.rs)

// Returns true if one of the two cells next to a face normal to axis D is flagged (10^3 bits); `at` is the position of the upper cell.
template<int D> RS_FN bool touches(const unsigned* cells, const int* at) {
  const int above = layered(at);
  const int below = above - (D == 0 ? 1 : D == 1 ? 10 : 100);
  return (cells[above / 32] >> above % 32 & 1) || (cells[below / 32] >> below % 32 & 1);
}

// Returns the primitive variables of a cell at the beginning of the step.
RS_FN State cell_average(const REAL* block, const REAL* input, const int* at, int D, int back) {
  int c[3] = {at[0], at[1], at[2]};
  c[D] -= back;
  if constexpr (!PREDICTOR) return load_state(block, BLOCK, in_block(c));
  else return input_primitive(input, (c[0] + GHOSTS) + INPUT_WIDTH * ((c[1] + GHOSTS) + INPUT_WIDTH * (c[2] + GHOSTS)));
}

RS_FN REAL concentration(const REAL* block, int component, const int* at, int D, int back) {
  int c[3] = {at[0], at[1], at[2]};
  c[D] -= back;
  return block[component * BLOCK + in_block(c)];
}

// ---- faces and cells

// Loads or computes the states on both sides of face f of axis D, in the order of a face; `at` is the position of the upper cell.
template<int D>
RS_FN void face_states(const Scratch& s, int f, const int* at, const Three& rate, REAL speed, const unsigned* shocks, State& l, State& r) {
  if constexpr (AT_FACES) {
    edge_states<D>(s, at, rate, speed, shocks, l, r);
    if constexpr (CORRECTED) {
      int below[3] = {at[0], at[1], at[2]};
      below[D] -= 1;
      l = corrected_across<D>(s, below, l, rate);
      r = corrected_across<D>(s, at, r, rate);
    }
    // the normal field is that on the face
    if constexpr (FACE_FIELD) l.d[FIRST_OF_FIELD] = r.d[FIRST_OF_FIELD] = s.field[D * FACES + f];
  } else {
    RS_UNROLL for (int v = 0; v < GAS; ++v) {
      l.d[v] = s.left[(D * GAS + component<D>(v)) * FACES + f];
      r.d[v] = s.right[(D * GAS + component<D>(v)) * FACES + f];
    }
  }
}

// Computes the flux through one face and stores it in place of the lower state. Faces in `shocks` (null for none) take HLLE fluxes, smoothed
// ones if they are normal to a slow shock. Velocity, internal energy and its flux replace the first components of the upper state.
template<int D>
RS_FN void face_flux(const Scratch& s, int f, const Three& rate, REAL speed, const unsigned* flagged, const unsigned* shocks) {
  State l, r, flux;
  int at[3];
  face_place<D>(f, at);
  if (flagged && touches<D>(flagged, at)) {
    l = rotated<D>(cell_average(s.block, s.input, at, D, 1));
    r = rotated<D>(cell_average(s.block, s.input, at, D, 0));
    flux = flux_hlle(l, r, speed);
  } else {
    face_states<D>(s, f, at, rate, speed, shocks, l, r);
    if (CURE && shocks && touches<D>(shocks + D * SHOCK_WORDS, at)) {
      if (touches<D>(shocks + SLOW_SHOCKS + D * SHOCK_WORDS, at)) flux = flux_smoothed(l, r, speed);
      else flux = flux_hlle(l, r, speed);
    } else {
      flux = riemann(l, r, speed);
    }
  }
  RS_UNROLL for (int v = 0; v < GAS; ++v) s.left[(D * GAS + component<D>(v)) * FACES + f] = flux.d[v];
  if constexpr (DUAL) {
    typedef rs::arr<REAL, 2> Two;
    const Two both = hydro::dual::upwind_state<REAL>(flux.d[0], Two{{l.d[0], l.d[PRESSURE]}}, Two{{r.d[0], r.d[PRESSURE]}}, gamma());
    REAL* to = s.right + D * GAS * FACES + f;
    to[0] = both.d[0];
    to[FACES] = both.d[1];
    to[2 * FACES] = both.d[0] * both.d[1];
  }
}

// Computes the flux of scalar c through one face in place of its mass fraction on the lower side. `sums` holds the sums of its set on both
// sides of all faces.
template<int D>
RS_FN void scalar_flux(const REAL* block, int c, const REAL* mass, REAL* left, const REAL* right, int f, const REAL* sums,
                       const unsigned* flagged) {
  REAL l = left[D * FACES + f], r = right[D * FACES + f];
  int at[3];
  face_place<D>(f, at);
  if (flagged && touches<D>(flagged, at)) {
    l = concentration(block, c, at, D, 1);
    r = concentration(block, c, at, D, 0);
  } else if (field::set_of(c)) {
    l = hydro::riemann::normalized_fraction<REAL>(l, sums[D * FACES + f]);
    r = hydro::riemann::normalized_fraction<REAL>(r, sums[(3 + D) * FACES + f]);
  }
  left[D * FACES + f] = hydro::riemann::flux_of_scalar<REAL>(mass[D * GAS * FACES + f], l, r);
}

// Words of the mask of a patch: those of its unphysical cells, then the number of cells in which the internal energy replaced the total one.
constexpr int UNPHYSICAL_WORDS = 16;
constexpr int REPLACED = UNPHYSICAL_WORDS;

RS_FN void mark_unphysical(unsigned* mask, int cell) { launch::atomic_or(mask + cell / 32, 1u << (cell % 32)); }

// Collects the cells with first-order fluxes in a patch and in the layer outside each of its faces, with a field on faces those at its edges and
// corners, too. Returns true if there are any.
RS_FN bool collect_flagged(const Step& p, int row, unsigned* cells) {
  EACH(n, 32) cells[n] = 0;
  launch::barrier();
  bool any = false;
  // electric fields on edges depend on the cells of all neighbours
  constexpr int DIRECTIONS = FACE_FIELD ? 27 : 7;
  EACH(n, DIRECTIONS * CELLS) {
    const int source = n / CELLS, cell = n % CELLS;
    constexpr int beside_faces[7] = {mesh::SELF, 12, 14, 10, 16, 4, 22};
    const int d = FACE_FIELD ? source : beside_faces[source % 7];
    const int from = d == mesh::SELF ? row : p.view.neighbours[row * mesh::AROUND + d];
    if (from >= 0 && p.first_order[from * 16 + cell / 32] >> cell % 32 & 1) {
      const int at[3] = {cell % 8 + 8 * (d % 3 - 1), cell / 8 % 8 + 8 * (d / 3 % 3 - 1), cell / 64 + 8 * (d / 9 - 1)};
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

// Computes the primitive variables at the beginning of the step. Memory after the gathered block is used as work space.
RS_FN void prepare(const Step& p, int row, const Scratch& s, const Three& rate, unsigned* shocks) {
  constexpr int used = COMPONENTS * INPUT + (PREDICTOR ? COMPONENTS * BLOCK : 0);
  constexpr int size = CELLS_IN_SHARED && !FLUXES_IN_SHARED ? OF_CELLS : SCRATCH;
  constexpr bool room = size - used >= mesh::INTERPOLATION_WORK<GHOSTS>;
  REAL* work = room ? s.block + used : nullptr;
  if constexpr (!PREDICTOR) {
    mesh::gather<GHOSTS>(s.block, p.view, row, PrimitivePass(), work);
  } else {
    mesh::gather<GHOSTS>(s.input, p.view, row, Conserved(), work);
    const Three half{{REAL(0.5) * rate.d[0], REAL(0.5) * rate.d[1], REAL(0.5) * rate.d[2]}};
    EACH(cell, BLOCK) predict_cell(s.input, s.block, cell, half, shocks);
    launch::barrier();
  }
}

// Returns the index in an array of faces of face f of a row of a field on faces.
template<int D> RS_FN int in_array(int f) {
  int at[3];
  face_place<D, 0>(f, at);
  return face_index<D>(at[0], at[1], at[2]);
}

// Stores the mass fluxes of the patch.
RS_FN void store_mass_fluxes(const Step& p, int row, const REAL* flux) {
  REAL* out = p.mass + (rs::i64)row * (3 * mesh::FACES);
  const REAL* earlier = p.mass_before + (rs::i64)row * (3 * mesh::FACES);
  EACH(f, 3 * mesh::FACES) {
    const int axis = f / mesh::FACES, n = f % mesh::FACES;
    const REAL value = flux[axis * (GAS * FACES) + (axis == 0 ? in_array<0>(n) : axis == 1 ? in_array<1>(n) : in_array<2>(n))];
    if constexpr (STAGED) out[f] = ::nestar_kernels::mesh::fluxes::with_share<REAL>(p.mass_before ? earlier[f] : REAL(0), value, (REAL)p.share);
    else out[f] = value;
  }
}

// Velocity and internal energy at the lower or upper face of a cell along each axis.
typedef rs::arr<rs::arr<REAL, 2>, 3> AtFaces;
RS_FN AtFaces at_faces(const REAL* faces, int i, int j, int k, bool upper) {
  const int f[3] = {face_index<0>(i, j, k) + (upper ? TO_UPPER<0> : 0),
                    GAS * FACES + face_index<1>(i, j, k) + (upper ? TO_UPPER<1> : 0),
                    2 * GAS * FACES + face_index<2>(i, j, k) + (upper ? TO_UPPER<2> : 0)};
  AtFaces found;
  RS_UNROLL for (int d = 0; d < 3; ++d) found.d[d] = rs::arr<REAL, 2>{{faces[f[d]], faces[f[d] + FACES]}};
  return found;
}

RS_FN Three velocity_at(const REAL* block, int at) { return Three{{block[BLOCK + at], block[2 * BLOCK + at], block[3 * BLOCK + at]}}; }

// Returns 1 if the flow converges in a velocity jump along axis D.
template<int D> RS_FN REAL compression_jump_along(const REAL* block, int at) {
  return hydro::dual::compression_jump<REAL>(five<D>(block + (1 + D) * BLOCK, at), block[at], block[PRESSURE * BLOCK + at], gamma(), thresholds().d[2]);
}

// Returns component v of a cell after a stage of a step; `x` is the result of the fluxes.
RS_FN REAL staged(const Step& p, int row, int v, int cell, REAL x) {
  if constexpr (STAGED) {
    if (p.before) return ::nestar_kernels::mesh::fluxes::staged<REAL>(mesh::row_of(p.before, row)[v * CELLS + cell], x, (REAL)p.weight);
  }
  return x;
}

// Returns the gas of a cell after a stage of a step; `old` is the state that the stage read, `x` the result of the fluxes.
RS_FN State staged_gas(const Step& p, int row, int cell, const State& old, const State& x) {
  namespace fluxes = ::nestar_kernels::mesh::fluxes;
  State now = x, kept = old;
  if constexpr (HAS_REMAINDER) kept = remainder(old);
  if constexpr (STAGED) {
    if (p.before) {
      const REAL weight = (REAL)p.weight;
      const State before = load_state(mesh::row_of(p.before, row), CELLS, cell);
      RS_UNROLL for (int v = 0; v < GAS; ++v) now.d[v] = fluxes::staged<REAL>(before.d[v], x.d[v], weight);
      if constexpr (HAS_REMAINDER) {
        const State of_before = remainder(before);
        RS_UNROLL for (int v = 0; v < GAS; ++v) kept.d[v] = fluxes::staged<REAL>(of_before.d[v], kept.d[v], weight);
      }
    }
  }
  if constexpr (HAS_REMAINDER) {
    const State own = remainder(now);
    RS_UNROLL for (int v = 0; v < GAS; ++v) now.d[v] = fluxes::with_kept_remainder<REAL>(now.d[v], kept.d[v], own.d[v]);
  }
  return now;
}

// Returns total and internal energy of a cell after the step; `now` is the result of the fluxes, `internal` the value before.
RS_FN rs::arr<REAL, 2> energies(const Step& p, int row, const REAL* block, const REAL* faces, int cell, REAL internal, const State& now,
                                const Three& rate) {
  const int i = cell % PATCH, j = cell / PATCH % PATCH, k = cell / (PATCH * PATCH);
  const REAL advanced = hydro::dual::advanced<REAL>(internal, at_faces(faces, i, j, k, false), at_faces(faces, i, j, k, true), rate,
                                                    gamma());
  const REAL next = staged(p, row, GAS, cell, advanced);
  const int at = (i + REACH) + WIDTH * ((j + REACH) + WIDTH * (k + REACH));
  const rs::arr<Three, 6> near{{velocity_at(block, at - STEP<0>), velocity_at(block, at + STEP<0>), velocity_at(block, at - STEP<1>),
                                velocity_at(block, at + STEP<1>), velocity_at(block, at - STEP<2>),
                                velocity_at(block, at + STEP<2>)}};
  const REAL step = hydro::dual::max_velocity_change_squared<REAL>(velocity_at(block, at), near);
  const REAL meeting = rs::max(rs::max(compression_jump_along<0>(block, at), compression_jump_along<1>(block, at)),
                                   compression_jump_along<2>(block, at));
  REAL magnetic = REAL(0);
  if constexpr (HAS_REMAINDER) magnetic = remainder(now).d[PRESSURE];
  return hydro::dual::reconcile_energies<REAL>(with_energy(now), next, magnetic, step, meeting, thresholds());
}

// Place of the energies that cells gain where the internal energy replaces the total one: after the values at faces of `face_flux`.
constexpr int GAINS = 3 * FACES;

// Reports these cells of the patch to the level.
RS_FN void report_gains(const Step& p, int row, REAL* gains, const unsigned* mask) {
  launch::barrier();
  const unsigned cells = mask[REPLACED];
  for (int half = cells ? CELLS / 2 : 0; half > 0; half /= 2) {
    EACH(n, half) gains[n] = gains[n] + gains[n + half];
    launch::barrier();
  }
  if (launch::thread() == 0) {
    p.gains[row] = cells ? gains[0] : REAL(0);
    p.replaced[row] = cells;
    if (cells) launch::atomic_add(&p.status->replaced, (rs::u64)cells);
  }
}

// Stores the fluxes of component c in the registers of the patch.
RS_FN void register_fluxes(const Step& p, int row, int c, const REAL* flux, int pitch) {
  if constexpr (STAGED) mesh::store_shares<ACROSS>(p.registers, p.earlier, row, c, flux, pitch, (REAL)p.share);
  else mesh::store_registers<false, COMPONENTS, ACROSS>(p.registers, row, c, flux, pitch);
}

// Computes the new gas of the patch, and stores the fluxes in the registers; those that are not corrected between levels become 0. `field` is
// the new field on faces, if there is one. Returns the largest signal rate among the cells of this thread.
RS_FN REAL update_gas(const Step& p, int row, const REAL* block, const REAL* field, REAL* flux, REAL* faces, const Three& rate,
                      unsigned* mask) {
  [[maybe_unused]] REAL* gains = faces + GAINS;
  const REAL* u = mesh::row_of(p.view.level, row);
  REAL* out = mesh::row_of(p.next, row);
  const Three inverse_dx = three(p.inverse_dx);
  REAL largest = REAL(0);
  EACH(cell, CELLS) {
    const State old = load_state(u, CELLS, cell);
    State now;
    RS_UNROLL for (int v = 0; v < GAS; ++v) now.d[v] = mesh::advanced<ACROSS>(old.d[v], flux + v * FACES, GAS * FACES, cell, rate);
#if FACE_FIELD
    RS_UNROLL for (int d = 0; d < 3; ++d) now.d[5 + d] = mean_field(field, d, cell);
#endif
    now = staged_gas(p, row, cell, old, damped(now, (REAL)p.damping));
    RS_UNROLL for (int v = 0; v < GAS; ++v) out[v * CELLS + cell] = now.d[v];
    REAL signal;
    if constexpr (DUAL) {
      const auto both = energies(p, row, block, faces, cell, u[GAS * CELLS + cell], now, rate);
      // in place of upper states that are not in use
      gains[cell] = both.d[0] - now.d[PRESSURE];
      if (gains[cell] != REAL(0)) launch::atomic_add(mask + REPLACED, 1u);
      out[PRESSURE * CELLS + cell] = now.d[PRESSURE] = both.d[0];
      out[GAS * CELLS + cell] = both.d[1];
      signal = checked_signal_rate_from_internal(now, both.d[1], inverse_dx);
    } else {
      signal = checked_signal_rate(now, inverse_dx);
    }
    if (!(signal >= REAL(0))) mark_unphysical(mask, cell);
    largest = rs::max(largest, signal);
  }
  if constexpr (UNCORRECTED >= 0) {
    launch::barrier();
    EACH(f, 3 * FACES) flux[(f / FACES * GAS + UNCORRECTED) * FACES + f % FACES] = REAL(0);
    launch::barrier();
  }
  for (int v = 0; v < GAS; ++v) register_fluxes(p, row, v, flux + v * FACES, GAS * FACES);
  if constexpr (DUAL) {
    register_fluxes(p, row, GAS, faces + 2 * FACES, GAS * FACES);
    report_gains(p, row, gains, mask);
  }
  return largest;
}

// Advances scalar c with the edge states in `lower` and `upper`.
RS_FN void advance_scalar(const Step& p, int row, int c, const REAL* block, const REAL* mass, REAL* lower, const REAL* upper,
                          const REAL* sums, const Three& rate, const unsigned* flagged, unsigned* mask) {
  EACH(f, FACES) scalar_flux<0>(block, c, mass, lower, upper, f, sums, flagged);
  EACH(f, FACES) scalar_flux<1>(block, c, mass, lower, upper, f, sums, flagged);
  EACH(f, FACES) scalar_flux<2>(block, c, mass, lower, upper, f, sums, flagged);
  launch::barrier();
  const REAL* u = mesh::row_of(p.view.level, row) + c * CELLS;
  REAL* out = mesh::row_of(p.next, row) + c * CELLS;
  EACH(cell, CELLS) {
    const REAL now = staged(p, row, c, cell, mesh::advanced<ACROSS>(u[cell], lower, FACES, cell, rate));
    out[cell] = now;
    if (!(now * REAL(0) == REAL(0))) mark_unphysical(mask, cell);
  }
  register_fluxes(p, row, c, lower, FACES);
}

// Advances the scalars of the patch one by one, set by set; `left` holds the fluxes of the gas, `right` is work space.
RS_FN void advance_scalars(const Step& p, int row, const REAL* block, const REAL* left, REAL* right, const Three& rate,
                           const Three& of_edges, const unsigned* flagged, unsigned* mask) {
  constexpr int SIDES = 6 * FACES;
  REAL *lower = right, *upper = right + 3 * FACES, *sums = right + SIDES;
  for (int set = 0; set <= field::SETS; ++set) {
    EACH(f, set ? SIDES : 0) sums[f] = REAL(0);
    // mass fractions of a set are computed twice: for their sum, and to be divided by it
    for (int n = set ? 0 : COMPONENTS; n < 2 * COMPONENTS; ++n) {
      const int c = n % COMPONENTS;
      if (c < FIRST_SCALAR || field::set_of(c) != set) continue;
      launch::barrier();
      EACH(cell, LAYERED) scalar_edges(block, c, lower, upper, cell, of_edges);
      launch::barrier();
      if (n < COMPONENTS) {
        EACH(f, SIDES) sums[f] = sums[f] + right[f];
      } else {
        advance_scalar(p, row, c, block, left, lower, upper, sums, rate, flagged, mask);
      }
    }
  }
}

// Reports the patch's signal rate and unphysical cells to the level.
RS_FN void report(const Step& p, int row, REAL rate, const unsigned* mask) {
  const REAL largest = launch::largest_of_block(rate);
  EACH(n, UNPHYSICAL_WORDS) p.unphysical[row * UNPHYSICAL_WORDS + n] = mask[n];
  if (launch::thread() == 0) {
    p.rates[row] = largest;
    p.stale[row] = 0;
    typedef rs::lim<REAL>::U U;
    U* level = (U*)&p.status->largest_rate;
    // avoids contention, because most patches do not raise the maximum
    if (rs::to_bits(largest) > *(volatile U*)level) launch::store_largest<REAL>(level, largest);
    unsigned bad = 0;
    for (int n = 0; n < UNPHYSICAL_WORDS; ++n) bad |= mask[n];
    if (bad) launch::atomic_add(&p.status->unphysical, 1u);
  }
  launch::barrier();
}

RS_FN void advance_patch(const Step& p, int row, const REAL* gathered, const Scratch& s, unsigned* mask, const unsigned* flagged) {
  SHARED unsigned shocks[CURE ? ANY_SHOCK + 1 : 1];
  const Three rate = three(p.rate);
  // states at the faces are those at the beginning of a stage
  const Three of_edges = STAGED ? Three{{REAL(0), REAL(0), REAL(0)}} : rate;
  const REAL speed = (REAL)p.cleaning_speed;
  EACH(n, UNPHYSICAL_WORDS + 1) mask[n] = 0;
  EACH(n, CURE ? ANY_SHOCK + 1 : 0) shocks[n] = 0;
  prepare(p, row, s, rate, shocks);
  if constexpr (PREDICTOR && !KEEP_INPUT && !AT_FACES) {
    // the edges overwrite the input
    launch::barrier();
  }
#if FACE_FIELD
  begin_transport(gathered, s, rate);
#endif
  EACH(cell, LAYERED) cell_states(s, cell, of_edges, speed, shocks);
  launch::barrier();
  const unsigned* damped = CURE && shocks[ANY_SHOCK] ? shocks : nullptr;
  if constexpr (CORRECTED) {
    EACH(f, FIRST_FACES) first_flux<0>(s, f, of_edges, damped);
    EACH(f, FIRST_FACES) first_flux<1>(s, f, of_edges, damped);
    EACH(f, FIRST_FACES) first_flux<2>(s, f, of_edges, damped);
    launch::barrier();
  }
  EACH(f, FACES) face_flux<0>(s, f, of_edges, speed, flagged, damped);
  EACH(f, FACES) face_flux<1>(s, f, of_edges, speed, flagged, damped);
  EACH(f, FACES) face_flux<2>(s, f, of_edges, speed, flagged, damped);
  launch::barrier();
#if FACE_FIELD
  transport(p, row, gathered, s, rate, flagged);
#endif
  // the new field stands in place of the states
  const REAL largest = update_gas(p, row, s.block, s.states, s.left, s.right, rate, mask);
  if constexpr (MASS_FLUXES) store_mass_fluxes(p, row, s.left);
  if constexpr (DUAL && COMPONENTS > FIRST_SCALAR) {
    // scalars overwrite the upper states
    launch::barrier();
  }
  if constexpr (COMPONENTS > FIRST_SCALAR) advance_scalars(p, row, s.block, s.left, s.right, rate, of_edges, flagged, mask);
  launch::barrier();
  report(p, row, largest, mask);
}

}  // namespace fluid

// Advances patches into the next bank.
KERNEL_BOUNDS(fluid_step, fluid::Step, fluid::THREADS, fluid::MIN_BLOCKS) {
  using namespace fluid;
  SHARED unsigned mask[UNPHYSICAL_WORDS + 1];
  Scratch s;
  // constant at compile time, because generic addresses cost a tenth of the speed
  if constexpr (CELLS_IN_SHARED) s.block = launch::shared<REAL>();
  else s.block = p.scratch + (rs::i64)launch::block() * SCRATCH;
  if constexpr (CELLS_IN_SHARED == FLUXES_IN_SHARED) s.left = s.block + EDGES_AT;
  else s.left = p.scratch + (rs::i64)launch::block() * (2 * EDGES);
  s.input = s.block + COMPONENTS * BLOCK;
  s.field = s.block + FIELD_AT;
  s.states = s.block + STATES_AT;
  s.first = s.block + FIRST_AT;
  s.right = s.left + EDGES;
  for (int n = launch::block(); n < p.count; n += launch::blocks()) {
    const int row = p.rows[n];
    const REAL* gathered = p.field.gathered + (rs::i64)n * (3 * GATHERED);
    if constexpr (KEEP_INPUT) {
      SHARED unsigned flagged[32];
      if (collect_flagged(p, row, flagged)) advance_patch(p, row, gathered, s, mask, flagged);
      launch::barrier();
    } else {
      advance_patch(p, row, gathered, s, mask, nullptr);
    }
  }
}
