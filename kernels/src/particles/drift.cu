// Kick, drift and redistribution, as in the host code. Include after pages.cuh.

namespace particles {

// Data of a particle for a step. All loads come first, so that they overlap.
struct Particle {
  Offset offset[3];
  REAL velocity[3], acceleration[3];
};

RS_FN Particle particle(const PageView& from, i64 n) {
  Particle particle;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    particle.offset[axis] = from.offset(axis, n);
    particle.velocity[axis] = from.number(VELOCITY + axis, n);
    particle.acceleration[axis] = from.number(ACCELERATION + axis, n);
  }
  return particle;
}

// Result of the drift. The particle is in the neighbour patch `d`, is deferred, has left the domain, or has
// no finite position.
struct DriftOutcome {
  int d;
  bool deferred, out, lost;
  u64 offset[3];
  REAL velocity[3];
};

RS_FN bool reflects(const args::DriftParameters& p, int axis, bool upper) { return p.walls >> (2 * axis + upper) & 1; }

RS_FN DriftOutcome advance(const args::DriftParameters& p, const int* near, const Particle& particle) {
  DriftOutcome outcome{mesh::SELF, false, false, false, {}, {}};
  int step[3] = {0, 0, 0};
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    const u64 offset = widen(particle.offset[axis]);
    outcome.offset[axis] = offset;
    outcome.velocity[axis] = particle.velocity[axis];
    REAL after = motion::kicked<REAL>(particle.velocity[axis], particle.acceleration[axis], (REAL)p.half);
    const double by = (double)(after * (REAL)p.rate[axis]);
    if (!(rs::abs(by) < 1.0)) {
      outcome.lost = true;
      continue;
    }
    const auto to = motion::moved(offset, by, BITS);
    u64 there = to._0;
    step[axis] = to._1;
    if (step[axis] != 0 && is_beyond(near, axis, step[axis])) {
      if (reflects(p, axis, step[axis] > 0)) {
        there = widen(narrow(~there));
        after = -after;
        step[axis] = 0;
      } else {
        outcome.out = true;
      }
    }
    outcome.offset[axis] = there;
    outcome.velocity[axis] = after;
  }
  if (outcome.lost || outcome.out) return outcome;
  outcome.d = direction(step);
  if (p.own && near[outcome.d] >= 0 && !is_leaf(p.from.tables, near[outcome.d])) {
    // unchanged: the finer level moves the particle
    outcome.deferred = true;
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
      outcome.offset[axis] = widen(particle.offset[axis]);
      outcome.velocity[axis] = particle.velocity[axis];
    }
  }
  return outcome;
}

// Index of the cursor, page array, and the child number if the offset is converted to the parent, else -1.
struct Destination {
  i64 cursor;
  int page_array, parent_of;
};

// Page array of outgoing particles.
constexpr int OUTGOING = 3;
RS_FN Destination destination_in_row(const args::DriftParameters& p, int list, int row, int page_array) {
  return Destination{list * (p.rows + 1) + row, is_own(p.from.tables, row) ? page_array : OUTGOING, -1};
}
RS_FN Destination elsewhere(const args::DriftParameters& p) { return Destination{p.rows, OUTGOING, -1}; }

// Returns the destination of particles of a row in a direction.
RS_FN Destination destination(const args::DriftParameters& p, int row, int d) {
  if (d == mesh::SELF) return destination_in_row(p, p.stay[0], row, p.stay[1]);
  const args::HierarchyTables& tables = p.from.tables;
  const int beside = around(tables, row)[d];
  if (beside >= 0) return is_leaf(tables, beside) ? (p.own ? destination_in_row(p, 0, beside, 0) : destination_in_row(p, 1, beside, 2)) : elsewhere(p);
  if (beside != mesh::COARSER || !p.own) return elsewhere(p);
  const int step[3] = {d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1};
  int far[3], sides = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const int half = side_of(tables, row, axis) + step[axis];
    far[axis] = half >> 1;
    sides |= (half & 1) << axis;
  }
  const int coarse = around(tables, tables.parent[row])[direction(far)];
  if (coarse < 0 || !is_leaf(tables, coarse)) return elsewhere(p);
  Destination found = destination_in_row(p, 1, coarse, 2);
  found.parent_of = sides;
  return found;
}

// Returns the destination in the child that contains the particle, if it is a stored leaf.
RS_FN Destination destination_in_child(const args::DriftParameters& p, int row, DriftOutcome& outcome) {
  const args::HierarchyTables& tables = p.from.tables;
  const int beside = around(tables, row)[outcome.d];
  u64 within[3];
  int child = tables.first_child[beside];
  if (child < 0) return elsewhere(p);
  for (int axis = 0; axis < 3; ++axis) {
    const auto in = motion::in_child(outcome.offset[axis]);
    within[axis] = in._0;
    child += (int)in._1 << axis;
  }
  if (!is_leaf(tables, child)) return elsewhere(p);
  for (int axis = 0; axis < 3; ++axis) outcome.offset[axis] = within[axis];
  return destination_in_row(p, 0, child, 0);
}

// Particles of a chunk share 28 destinations: 27 directions, and deferred particles. Particles that enter a
// refined patch are handled one by one.
constexpr int KEYS = 28, DEFERRED = 27, SINGLE = 28, DISCARDED = 29;

RS_FN int key_of(const args::DriftParameters& p, const int* near, const DriftOutcome& outcome) {
  if (outcome.lost || outcome.out) return DISCARDED;
  if (outcome.deferred) return DEFERRED;
  const int beside = near[outcome.d];
  return !p.own && beside >= 0 && !is_leaf(p.from.tables, beside) ? SINGLE : outcome.d;
}

RS_FN Destination destination_of(const args::DriftParameters& p, int row, int key) { return key == DEFERRED ? destination_in_row(p, 1, row, 1) : destination(p, row, key); }

// Returns the pass that writes particles with this destination: see args::DriftParameters::what.
RS_FN int pass_of(const args::DriftParameters& p, const Destination& destination, unsigned batch) {
  if (destination.page_array == OUTGOING) return args::SEND;
  return p.free_from_batch != nullptr && p.free_from_batch[destination.cursor] > batch ? args::STAGE : args::SCATTER;
}
// Returns the batch of a patch.
RS_FN unsigned batch_of(const args::DriftParameters& p, int row) {
  const unsigned batch = p.free_from_batch != nullptr ? p.free_from_batch[p.list * (p.rows + 1) + row] : 0;
  return batch > p.batch ? batch : p.batch;
}

RS_FN unsigned reserve_slot(unsigned* counter, bool is_common) {
  return is_common ? launch::take_place(counter) : launch::atomic_add(counter, 1u);
}

// Writes a particle to position `at` of its destination.
RS_FN void put(const args::DriftParameters& p, const PageView& from, i64 n, const Destination& destination, const DriftOutcome& outcome, const REAL* acceleration, unsigned at, int row) {
  const PageView to = page_view(p.to[destination.page_array]);
  // all loads come before the stores, which may alias
  const u64 id = from.id(n);
  for (int c = MASS; c < p.from.numbers; ++c) to.number(c, at) = from.number(c, n);
  to.id(at) = id;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    u64 offset = outcome.offset[axis];
    if (destination.parent_of >= 0) offset = motion::in_parent(offset, (unsigned)(destination.parent_of >> axis & 1));
    to.offset(axis, at) = narrow(offset);
    to.number(VELOCITY + axis, at) = outcome.velocity[axis];
    to.number(ACCELERATION + axis, at) = acceleration[axis];
  }
  if (destination.cursor == p.rows) p.tags[at - p.tagged] = (u64)row * 64 + (p.own ? 0 : 32) + outcome.d;
}

// Finds the particles of a chunk with wanted keys.
RS_FN void find(const args::DriftParameters& p, const Chunk& chunk, const bool* is_wanted, unsigned short* found, unsigned* number) {
  // several keys at once, to hide latency
  constexpr int SOME = 4;
  for (int begin = launch::thread(); begin < chunk.count; begin += SOME * launch::threads()) {
    int keys[SOME];
    RS_UNROLL for (int s = 0; s < SOME; ++s) {
      const int k = begin + s * launch::threads();
      keys[s] = k < chunk.count ? p.keys[chunk.first + k] : DISCARDED;
    }
    RS_UNROLL for (int s = 0; s < SOME; ++s) {
      if (keys[s] < KEYS && is_wanted[keys[s]]) found[launch::atomic_add(number, 1u)] = (unsigned short)(begin + s * launch::threads());
    }
  }
}

// Returns the child that contains a particle.
RS_FN int child_of(const PageView& from, i64 n) {
  int child = 0;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) child |= (int)motion::in_child(widen(from.offset(axis, n)))._1 << axis;
  return child;
}
RS_FN i64 reserve_slot_in_child(const PageView& from, i64 n, const unsigned* first, unsigned* counts) {
  const int child = child_of(from, n);
  return (i64)first[child] + launch::atomic_add(&counts[child], 1u);
}

}  // namespace particles

// Counts the particles per destination patch, and assigns positions among them.
KERNEL_BOUNDS(particles_count, particles::args::DriftParameters, 256, 6) {
  using namespace particles;
  SHARED unsigned counts[KEYS], first[KEYS];
  SHARED unsigned short place_in[CHUNK];
  SHARED unsigned char key_in[CHUNK];
  const Chunk chunk = particles::chunk(p.from);
  const PageView from = page_view(p.from.page_array);
  const int* near = around(p.from.tables, chunk.row);
  EACH(key, KEYS) counts[key] = 0;
  launch::barrier();
  EACH(k, chunk.count) {
    const i64 n = chunk.first + k;
    DriftOutcome outcome = advance(p, near, particle(from, n));
    const int key = key_of(p, near, outcome);
    p.keys[n] = key_in[k] = (unsigned char)key;
    if (outcome.lost) {
      launch::atomic_max(p.lost + 2, from.id(n) + 1);
    } else if (outcome.out) {
      const u64 quanta = p.from.masses ? cloud::quanta_of<REAL>(from.number(MASS, n), p.quanta_per_mass) : cloud::quanta_of<double>(p.mass, p.quanta_per_mass);
      const i64 place = (i64)launch::atomic_add(p.lost, (u64)1);
      if (place < p.room) p.escaped[place] = from.id(n);
      launch::atomic_add(p.lost + 1, quanta);
    } else if (key == SINGLE) {
      p.positions[n] = launch::atomic_add(p.cursors + destination_in_child(p, chunk.row, outcome).cursor, 1u);
    } else {
      place_in[k] = (unsigned short)reserve_slot(&counts[key], key == mesh::SELF);
    }
  }
  launch::barrier();
  EACH(key, KEYS) if (counts[key] > 0) first[key] = launch::atomic_add(p.cursors + destination_of(p, chunk.row, key).cursor, counts[key]);
  launch::barrier();
  EACH(k, chunk.count) if (key_in[k] < KEYS) p.positions[chunk.first + k] = first[key_in[k]] + place_in[k];
}

// Scatters the particles: `cursors` holds the first position of each patch.
KERNEL_BOUNDS(particles_scatter, particles::args::DriftParameters, 256, 6) {
  using namespace particles;
  SHARED Destination destinations[KEYS];
  SHARED unsigned first[KEYS];
  SHARED bool is_in_pass[KEYS];
  const Chunk chunk = particles::chunk(p.from);
  const PageView from = page_view(p.from.page_array);
  const int* near = around(p.from.tables, chunk.row);
  EACH(key, KEYS) {
    destinations[key] = destination_of(p, chunk.row, key);
    first[key] = p.cursors[destinations[key].cursor];
    is_in_pass[key] = pass_of(p, destinations[key], p.batch) == p.what;
  }
  launch::barrier();
  EACH(k, chunk.count) {
    const i64 n = chunk.first + k;
    const Particle particle = particles::particle(from, n);
    const int key = p.keys[n];
    const unsigned place = p.positions[n];
    if (key == DISCARDED) continue;
    DriftOutcome outcome = advance(p, near, particle);
    const Destination destination = key == SINGLE ? destination_in_child(p, chunk.row, outcome) : destinations[key];
    if (key == SINGLE ? pass_of(p, destination, p.batch) != p.what : !is_in_pass[key]) continue;
    const unsigned at = (key == SINGLE ? p.cursors[destination.cursor] : first[key]) + place;
    put(p, from, n, destination, outcome, particle.acceleration, at, chunk.row);
  }
}

// Stages particles whose rows are not free yet, up to the capacity. Particles that enter children are never
// staged, since their rows are written first.
KERNEL(particles_stage, particles::args::DriftParameters) {
  using namespace particles;
  SHARED Destination destinations[KEYS];
  SHARED unsigned first[KEYS];
  SHARED bool is_staged[KEYS], some_are;
  SHARED unsigned short found[CHUNK];
  SHARED unsigned number;
  SHARED i64 before;
  const Chunk chunk = particles::chunk(p.from);
  const PageView from = page_view(p.from.page_array);
  if (launch::thread() == 0) {
    some_are = false;
    number = 0;
  }
  launch::barrier();
  EACH(key, KEYS) {
    destinations[key] = destination_of(p, chunk.row, key);
    first[key] = p.cursors[destinations[key].cursor];
    is_staged[key] = pass_of(p, destinations[key], batch_of(p, chunk.row)) == args::STAGE;
    if (is_staged[key]) some_are = true;
  }
  launch::barrier();
  if (!some_are) return;
  find(p, chunk, is_staged, found, &number);
  launch::barrier();
  if (launch::thread() == 0) before = (i64)launch::atomic_add(p.staged, (u64)number);
  launch::barrier();
  EACH(k, (int)number) {
    const i64 n = chunk.first + found[k], staged = before + k;
    if (staged >= p.room) continue;
    const int key = p.keys[n];
    const Particle particle = particles::particle(from, n);
    p.tags[staged] = (u64)destinations[key].page_array << 32 | (first[key] + p.positions[n]);
    put(p, from, n, destinations[key], advance(p, around(p.from.tables, chunk.row), particle), particle.acceleration, (unsigned)staged, chunk.row);
  }
}

// Moves staged particles to their rows.
KERNEL(particles_place_staged, particles::args::PlaceStagedParameters) {
  using namespace particles;
  const PageView from = page_view(p.from);
  for (i64 k = (i64)launch::block() * launch::threads() + launch::thread(); k < p.count; k += (i64)launch::blocks() * launch::threads())
    copy(from, k, page_view(p.to[p.tags[k] >> 32]), (unsigned)p.tags[k], p.numbers);
}

// Moves particles of a chunk unchanged to another page array, or counts them per patch.
KERNEL(particles_remap, particles::args::RemapParameters) {
  using namespace particles;
  SHARED unsigned counts[8], first[8];
  const unsigned* piece = p.pieces + 4 * (i64)launch::block();
  const int way = (int)piece[1], count = (int)piece[3];
  const bool beneath = way == args::TO_CHILDREN;
  const PageView from = page_view(p.from), to = page_view(p.to);
  EACH(child, 8) counts[child] = child == 0 && !beneath ? count : 0;
  launch::barrier();
  if (beneath) EACH(k, count) launch::atomic_add(&counts[child_of(from, piece[2] + k)], 1u);
  launch::barrier();
  EACH(child, 8) {
    if (counts[child] > 0) first[child] = launch::atomic_add(p.cursors + piece[0] + child, counts[child]);
    counts[child] = 0;
  }
  launch::barrier();
  if (p.to.page == 0) return;
  EACH(k, count) {
    const i64 n = (i64)piece[2] + k;
    const i64 at = beneath ? reserve_slot_in_child(from, n, first, counts) : (i64)first[0] + k;
    copy(from, n, to, at, p.numbers);
    if (way == args::SAME_PATCH) continue;
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
      u64 offset = widen(from.offset(axis, n));
      if (beneath) offset = motion::in_child(offset)._0;
      else offset = motion::in_parent(offset, (unsigned)(way >> axis & 1));
      to.offset(axis, at) = narrow(offset);
    }
  }
}
