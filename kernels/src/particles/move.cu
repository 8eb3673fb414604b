// The first half of a step of particles, and where they go: the twin of drift.rs of the species. Follows stacks.cuh.

namespace particles {

// What a step reads of a particle. It is loaded at once, before anything that depends on a part of it, so that the loads overlap.
struct Particle {
  Place place[3];
  REAL velocity[3], acceleration[3];
};

RS_FN Particle particle(const Columns& from, i64 n) {
  Particle particle;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    particle.place[axis] = from.place(axis, n);
    particle.velocity[axis] = from.number(VELOCITY + axis, n);
    particle.acceleration[axis] = from.number(ACCELERATION + axis, n);
  }
  return particle;
}

// Where a particle is after its step: in the patch in direction `d`, unless it waits, has left the box, or has no finite place.
struct Went {
  int d;
  bool waits, out, lost;
  u64 place[3];
  REAL velocity[3];
};

// Whether a step along an axis leaves the domain.
RS_FN bool is_beyond(const int* near, int axis, int step) { return near[direction_along(axis, step)] == mesh::OUTSIDE; }
RS_FN bool reflects(const given::Move& p, int axis, bool upper) { return p.walls >> (2 * axis + upper) & 1; }

// Whether a place is in the outermost cell before a face that lets particles out.
RS_FN bool is_outermost(const given::Move& p, const int* near, int axis, u64 place) {
  const unsigned cell = (unsigned)(place >> 61);
  if (cell != 0 && cell != 7) return false;
  return !reflects(p, axis, cell == 7) && is_beyond(near, axis, cell == 7 ? 1 : -1);
}

RS_FN Went advance(const given::Move& p, const int* near, const Particle& particle) {
  Went went{mesh::SELF, false, false, false, {}, {}};
  int step[3] = {0, 0, 0};
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    const u64 place = whole(particle.place[axis]);
    went.place[axis] = place;
    went.velocity[axis] = particle.velocity[axis];
    REAL after = motion::kicked<REAL>(particle.velocity[axis], particle.acceleration[axis], (REAL)p.half);
    const double by = (double)(after * (REAL)p.rate[axis]);
    if (!(rs::abs(by) < 1.0)) {
      went.lost = true;
      continue;
    }
    const auto to = motion::moved(place, by, BITS);
    u64 there = to._0;
    step[axis] = to._1;
    if (step[axis] != 0 && is_beyond(near, axis, step[axis])) {
      if (reflects(p, axis, step[axis] > 0)) {
        there = whole(kept(~there));
        after = -after;
        step[axis] = 0;
      } else {
        went.out = true;
      }
    }
    went.out = went.out || (step[axis] == 0 && is_outermost(p, near, axis, there));
    went.place[axis] = there;
    went.velocity[axis] = after;
  }
  if (went.lost || went.out) return went;
  went.d = direction(step);
  if (p.own && near[went.d] >= 0 && !is_leaf(p.from.tables, near[went.d])) {
    // it stays as it was: the finer level moves it
    went.waits = true;
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
      went.place[axis] = whole(particle.place[axis]);
      went.velocity[axis] = particle.velocity[axis];
    }
  }
  return went;
}

// A place among cursors, the stack, and how the place in the patch changes on the way: not, or to that in the parent.
struct Home {
  i64 cursor;
  int stack, parent_of;
};

// What goes to other ranks' patches stands with what goes elsewhere, row by row.
constexpr int LEAVES = 3;
RS_FN Home home_in_row(const given::Move& p, int list, int row, int stack) {
  return Home{list * (p.rows + 1) + row, is_own(p.from.tables, row) ? stack : LEAVES, -1};
}
RS_FN Home elsewhere(const given::Move& p) { return Home{p.rows, LEAVES, -1}; }

// The home of particles of a row that go in a direction.
RS_FN Home home(const given::Move& p, int row, int d) {
  if (d == mesh::SELF) return home_in_row(p, p.stay[0], row, p.stay[1]);
  const given::Tables& tables = p.from.tables;
  const int beside = around(tables, row)[d];
  if (beside >= 0) return is_leaf(tables, beside) ? (p.own ? home_in_row(p, 0, beside, 0) : home_in_row(p, 1, beside, 2)) : elsewhere(p);
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
  Home found = home_in_row(p, 1, coarse, 2);
  found.parent_of = sides;
  return found;
}

// Of a particle that goes into a patch with children: the child that contains it, if it is a leaf and held.
RS_FN Home home_in_child(const given::Move& p, int row, Went& went) {
  const given::Tables& tables = p.from.tables;
  const int beside = around(tables, row)[went.d];
  u64 within[3];
  int child = tables.first_child[beside];
  if (child < 0) return elsewhere(p);
  for (int axis = 0; axis < 3; ++axis) {
    const auto in = motion::in_child(went.place[axis]);
    within[axis] = in._0;
    child += (int)in._1 << axis;
  }
  if (!is_leaf(tables, child)) return elsewhere(p);
  for (int axis = 0; axis < 3; ++axis) went.place[axis] = within[axis];
  return home_in_row(p, 0, child, 0);
}

// Particles of a chunk go to one of 28 homes together: those in a direction, and those that wait. Who goes into a patch with children goes alone.
constexpr int KEYS = 28, WAITS = 27, ALONE = 28, GONE = 29;

RS_FN int key_of(const given::Move& p, const int* near, const Went& went) {
  if (went.lost || went.out) return GONE;
  if (went.waits) return WAITS;
  const int beside = near[went.d];
  return !p.own && beside >= 0 && !is_leaf(p.from.tables, beside) ? ALONE : went.d;
}

RS_FN Home home_of(const given::Move& p, int row, int key) { return key == WAITS ? home_in_row(p, 1, row, 1) : home(p, row, key); }

// Which launch deals particles that go to a home, if their patch has its turn then: see given::Move::what.
RS_FN int dealt_in(const given::Move& p, const Home& home, unsigned turn) {
  if (home.stack == LEAVES) return given::LEAVE;
  return p.free_from != nullptr && p.free_from[home.cursor] > turn ? given::ASIDE : given::DEAL;
}
// The turn of a patch.
RS_FN unsigned turn_of(const given::Move& p, int row) {
  const unsigned turn = p.free_from != nullptr ? p.free_from[p.list * (p.rows + 1) + row] : 0;
  return turn > p.turn ? turn : p.turn;
}

RS_FN unsigned take_place(unsigned* counter, bool is_common) {
  return is_common ? launch::take_place(counter) : launch::atomic_add(counter, 1u);
}

// Puts a particle of a row to its place `at` in its home.
RS_FN void put(const given::Move& p, const Columns& from, i64 n, const Home& home, const Went& went, const REAL* acceleration, unsigned at, int row) {
  const Columns to = columns(p.to[home.stack]);
  // all loads come before the stores, which the compiler must take for stores to the same place
  const u64 id = from.id(n);
  for (int c = MASS; c < p.from.numbers; ++c) to.number(c, at) = from.number(c, n);
  to.id(at) = id;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
    u64 place = went.place[axis];
    if (home.parent_of >= 0) place = motion::in_parent(place, (unsigned)(home.parent_of >> axis & 1));
    to.place(axis, at) = kept(place);
    to.number(VELOCITY + axis, at) = went.velocity[axis];
    to.number(ACCELERATION + axis, at) = acceleration[axis];
  }
  if (home.cursor == p.rows) p.tags[at - p.tagged] = (u64)row * 64 + (p.own ? 0 : 32) + went.d;
}

// Finds the particles of a piece whose keys say so.
RS_FN void find(const given::Move& p, const Chunk& chunk, const bool* says_so, unsigned short* found, unsigned* number) {
  // some keys at once, since most of the time goes into waiting for them
  constexpr int SOME = 4;
  for (int begin = launch::thread(); begin < chunk.count; begin += SOME * launch::threads()) {
    int keys[SOME];
    RS_UNROLL for (int s = 0; s < SOME; ++s) {
      const int k = begin + s * launch::threads();
      keys[s] = k < chunk.count ? p.keys[chunk.first + k] : GONE;
    }
    RS_UNROLL for (int s = 0; s < SOME; ++s) {
      if (keys[s] < KEYS && says_so[keys[s]]) found[launch::atomic_add(number, 1u)] = (unsigned short)(begin + s * launch::threads());
    }
  }
}

// The child in which a particle lies.
RS_FN int child_of(const Columns& from, i64 n) {
  int child = 0;
  RS_UNROLL for (int axis = 0; axis < 3; ++axis) child |= (int)motion::in_child(whole(from.place(axis, n)))._1 << axis;
  return child;
}
RS_FN i64 take_place_in_child(const Columns& from, i64 n, const unsigned* first, unsigned* counts) {
  const int child = child_of(from, n);
  return (i64)first[child] + launch::atomic_add(&counts[child], 1u);
}

}  // namespace particles

// How many particles each patch gets, and where among these each one goes.
KERNEL_BOUNDS(particles_count, particles::given::Move, 256, 6) {
  using namespace particles;
  SHARED unsigned counts[KEYS], first[KEYS];
  SHARED unsigned short place_in[CHUNK];
  SHARED unsigned char key_in[CHUNK];
  const Chunk chunk = particles::chunk(p.from);
  const Columns from = columns(p.from.stack);
  const int* near = around(p.from.tables, chunk.row);
  EACH(key, KEYS) counts[key] = 0;
  launch::barrier();
  EACH(k, chunk.count) {
    const i64 n = chunk.first + k;
    Went went = advance(p, near, particle(from, n));
    const int key = key_of(p, near, went);
    p.keys[n] = key_in[k] = (unsigned char)key;
    if (went.lost) {
      launch::atomic_max(p.lost + 2, from.id(n) + 1);
    } else if (went.out) {
      const u64 units = p.from.masses ? cloud::units_of<REAL>(from.number(MASS, n), p.scale) : cloud::units_of<double>(p.mass, p.scale);
      const i64 place = (i64)launch::atomic_add(p.lost, (u64)1);
      if (place < p.room) p.gone[place] = from.id(n);
      launch::atomic_add(p.lost + 1, units);
    } else if (key == ALONE) {
      p.places[n] = launch::atomic_add(p.cursors + home_in_child(p, chunk.row, went).cursor, 1u);
    } else {
      place_in[k] = (unsigned short)take_place(&counts[key], key == mesh::SELF);
    }
  }
  launch::barrier();
  EACH(key, KEYS) if (counts[key] > 0) first[key] = launch::atomic_add(p.cursors + home_of(p, chunk.row, key).cursor, counts[key]);
  launch::barrier();
  EACH(k, chunk.count) if (key_in[k] < KEYS) p.places[chunk.first + k] = first[key_in[k]] + place_in[k];
}

// Puts them there: `cursors` says where those of each patch begin.
KERNEL_BOUNDS(particles_deal, particles::given::Move, 256, 6) {
  using namespace particles;
  SHARED Home homes[KEYS];
  SHARED unsigned first[KEYS];
  SHARED bool is_dealt[KEYS];
  const Chunk chunk = particles::chunk(p.from);
  const Columns from = columns(p.from.stack);
  const int* near = around(p.from.tables, chunk.row);
  EACH(key, KEYS) {
    homes[key] = home_of(p, chunk.row, key);
    first[key] = p.cursors[homes[key].cursor];
    is_dealt[key] = dealt_in(p, homes[key], p.turn) == p.what;
  }
  launch::barrier();
  EACH(k, chunk.count) {
    const i64 n = chunk.first + k;
    const Particle particle = particles::particle(from, n);
    const int key = p.keys[n];
    const unsigned place = p.places[n];
    if (key == GONE) continue;
    Went went = advance(p, near, particle);
    const Home home = key == ALONE ? home_in_child(p, chunk.row, went) : homes[key];
    if (key == ALONE ? dealt_in(p, home, p.turn) != p.what : !is_dealt[key]) continue;
    const unsigned at = (key == ALONE ? p.cursors[home.cursor] : first[key]) + place;
    put(p, from, n, home, went, particle.acceleration, at, chunk.row);
  }
}

// Puts those aside whose places are not free yet, if there is room. Those that go to children are none of them: these are dealt to before.
KERNEL(particles_aside, particles::given::Move) {
  using namespace particles;
  SHARED Home homes[KEYS];
  SHARED unsigned first[KEYS];
  SHARED bool is_aside[KEYS], some_are;
  SHARED unsigned short found[CHUNK];
  SHARED unsigned number;
  SHARED i64 before;
  const Chunk chunk = particles::chunk(p.from);
  const Columns from = columns(p.from.stack);
  if (launch::thread() == 0) {
    some_are = false;
    number = 0;
  }
  launch::barrier();
  EACH(key, KEYS) {
    homes[key] = home_of(p, chunk.row, key);
    first[key] = p.cursors[homes[key].cursor];
    is_aside[key] = dealt_in(p, homes[key], turn_of(p, chunk.row)) == given::ASIDE;
    if (is_aside[key]) some_are = true;
  }
  launch::barrier();
  if (!some_are) return;
  find(p, chunk, is_aside, found, &number);
  launch::barrier();
  if (launch::thread() == 0) before = (i64)launch::atomic_add(p.aside, (u64)number);
  launch::barrier();
  EACH(k, (int)number) {
    const i64 n = chunk.first + found[k], aside = before + k;
    if (aside >= p.room) continue;
    const int key = p.keys[n];
    const Particle particle = particles::particle(from, n);
    p.tags[aside] = (u64)homes[key].stack << 32 | (first[key] + p.places[n]);
    put(p, from, n, homes[key], advance(p, around(p.from.tables, chunk.row), particle), particle.acceleration, (unsigned)aside, chunk.row);
  }
}

// Puts those to their places that were set aside.
KERNEL(particles_put, particles::given::Put) {
  using namespace particles;
  const Columns from = columns(p.from);
  for (i64 k = (i64)launch::block() * launch::threads() + launch::thread(); k < p.count; k += (i64)launch::blocks() * launch::threads())
    copy(from, k, columns(p.to[p.tags[k] >> 32]), (unsigned)p.tags[k], p.numbers);
}

// Puts particles of a piece to another stack as they are, or counts how many each patch gets.
KERNEL(particles_shift, particles::given::Shift) {
  using namespace particles;
  SHARED unsigned counts[8], first[8];
  const unsigned* piece = p.pieces + 4 * (i64)launch::block();
  const int way = (int)piece[1], count = (int)piece[3];
  const bool beneath = way == given::BENEATH;
  const Columns from = columns(p.from), to = columns(p.to);
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
    const i64 at = beneath ? take_place_in_child(from, n, first, counts) : (i64)first[0] + k;
    copy(from, n, to, at, p.numbers);
    if (way == given::STAY) continue;
    RS_UNROLL for (int axis = 0; axis < 3; ++axis) {
      u64 place = whole(from.place(axis, n));
      if (beneath) place = motion::in_child(place)._0;
      else place = motion::in_parent(place, (unsigned)(way >> axis & 1));
      to.place(axis, at) = kept(place);
    }
  }
}
