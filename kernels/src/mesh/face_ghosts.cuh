// Interpolates faces between levels and gathers faces with those of ghost cells: the twin of coarse_faces.rs, fine_faces.rs and
// face_ghosts.rs. Follows gather.cuh.

namespace mesh {

// Number of values of a component in a block with G ghost layers.
template<int G> constexpr int FACE_BLOCK = (PATCH + 2 * G) * (PATCH + 2 * G) * (PATCH + 2 * G + 1);

// The same for the field of the text, in cells or on faces.
template<int G> constexpr int BLOCK = CENTRING == ON_FACES ? FACE_BLOCK<G> : (PATCH + 2 * G) * (PATCH + 2 * G) * (PATCH + 2 * G);

// Vectors of a field on faces.
constexpr int VECTORS = COMPONENTS / 3;

// Returns 1 for a place above the parent's planes (along the axis A of the component) or cells, -1 below, else 0.
template<int A> RS_FN int beyond_parent(int axis, int at) { return (at >= PATCH + (axis == A)) - (at < 0); }

// Returns the component of axis A of a vector at `at`, interpolated in time: planes along the component's axis and cells along the others,
// counted from the parent's first. `around` is the parent's table. Returns `otherwise` outside the domain.
template<int A> RS_FN REAL coarse_face(const GatherView& v, const int* around, int vector, const int* at, REAL otherwise) {
  int d = SELF, q[3];
  RS_UNROLL for (int a = 0; a < 3; ++a) {
    const int beside = beyond_parent<A>(a, at[a]);
    d += beside * (a == 0 ? 1 : a == 1 ? 3 : 9);
    q[a] = at[a] - PATCH * beside;
  }
  return around[d] < 0 ? otherwise : blended(v, around[d], (3 * vector + A) * VALUES + value_at(A, q[0], q[1], q[2]));
}

// Returns the four fine faces of the coarse face `place` of axis A. The axis after the face's own is fastest.
template<int A> RS_FN rs::arr<REAL, 4> fine_faces_on(const GatherView& v, const int* around, int vector, const int* place) {
  int at[3] = {place[0], place[1], place[2]};
  const REAL u = coarse_face<A>(v, around, vector, at, REAL(0));
  rs::arr<REAL, 6> near;
  RS_UNROLL for (int n = 0; n < 4; ++n) {
    const int a = (A + (n < 2 ? 1 : 2)) % 3, step = n % 2 ? 1 : -1;
    at[a] += step;
    near.d[n] = coarse_face<A>(v, around, vector, at, u);
    at[a] -= step;
  }
  near.d[4] = near.d[5] = u;
  const Offsets o = offsets_of(u, near);
  rs::arr<REAL, 4> fine;
  RS_UNROLL for (int n = 0; n < 4; ++n) fine.d[n] = ::nestar_kernels::mesh::prolong::fine_value<REAL>(u, o, n & 1, n >> 1, 0);
  return fine;
}

// Returns the cell width along one axis over that along another.
RS_FN REAL width_ratio(const GatherView& v, int axis, int other) {
  return ::nestar_kernels::mesh::fine_faces::width_ratio<REAL>(v.right[axis] - v.left[axis], v.domain_cells[axis],
                                                               v.right[other] - v.left[other], v.domain_cells[other]);
}

// Returns the eight outer fine faces of axis B on which the inner face of axis A at `at` depends; outer.on<axis>(at) gives outer faces.
template<int A, int B, class Outer> RS_FN rs::arr<REAL, 8> outer_faces(const int* at, const Outer& outer) {
  rs::arr<REAL, 8> faces;
  RS_UNROLL for (int n = 0; n < 8; ++n) {
    int from[3] = {at[0], at[1], at[2]};
    from[B] = 2 * (n & 1);
    from[A] = n >> 1 & 1;
    from[3 - A - B] ^= n >> 2;
    faces.d[n] = outer.template on<B>(from);
  }
  return faces;
}

// Returns the fine face of axis A at `at` inside a coarse cell, see inner_face_from.
template<int A, class Outer> RS_FN REAL inner_face_from(const GatherView& v, const int* at, const Outer& outer) {
  constexpr int B = (A + 1) % 3, C = (A + 2) % 3;
  int from[3] = {at[0], at[1], at[2]};
  rs::arr<REAL, 2> own, ratios{{width_ratio(v, A, B), width_ratio(v, A, C)}};
  RS_UNROLL for (int n = 0; n < 2; ++n) {
    from[A] = 2 * n;
    own.d[n] = outer.template on<A>(from);
  }
  return ::nestar_kernels::mesh::fine_faces::inner_face<REAL>(own, outer_faces<A, B>(at, outer), outer_faces<A, C>(at, outer), ratios);
}

// Lengths along x and y of a component of axis A in a block with G ghost layers.
template<int G, int A> constexpr int ALONG_X = PATCH + 2 * G + (A == 0);
template<int G, int A> constexpr int ALONG_Y = PATCH + 2 * G + (A == 1);

// Index in a block of a face of axis A of a vector.
template<int G, int A> RS_FN int index_in_block(int vector, const int* at) {
  return (3 * vector + A) * FACE_BLOCK<G> + at[0] + ALONG_X<G, A> * (at[1] + ALONG_Y<G, A> * at[2]);
}

// Sets `at` to the position in a block of face n of axis A.
template<int G, int A> RS_FN void place_in_block(int n, int* at) {
  at[0] = n % ALONG_X<G, A>;
  at[1] = n / ALONG_X<G, A> % ALONG_Y<G, A>;
  at[2] = n / (ALONG_X<G, A> * ALONG_Y<G, A>);
}

// Outer faces of a coarse cell: `[axis][plane][4]`. The axis after the face's own is fastest.
constexpr int OUTER = 24;
// Coarse cells that are interpolated together.
constexpr int TOGETHER = 128;

// Gives the outer faces of a coarse cell; the planes along their axis are 0 and 2.
struct OuterFaces {
  const REAL* faces;
  template<int A> RS_MEMBER REAL on(const int* at) const { return faces[8 * A + 2 * at[A] + 2 * at[(A + 2) % 3] + at[(A + 1) % 3]]; }
};

// Finds a coarse cell in a coarser patch that holds ghost cells of `row`: its position counted from the parent's first, and the one of its
// first fine cell in the block. Returns false if `item` is none.
template<int G> RS_FN bool coarse_cell(const GatherView& v, int row, int item, int* cell, int* first) {
  typedef CoarseCells<G> Coarse;
  if (item >= Coarse::COUNT) return false;
  if (v.neighbours[(rs::i64)row * AROUND + Coarse::place(item, v.index + (rs::i64)row * 4, cell)] != COARSER) return false;
  const int q[3] = {item % Coarse::M, item / Coarse::M % Coarse::M, item / (Coarse::M * Coarse::M)};
  RS_UNROLL for (int a = 0; a < 3; ++a) {
    cell[a] -= PATCH;
    first[a] = 2 * (q[a] - Coarse::REACH) + G;
  }
  return true;
}

// Stores a face of axis A of a coarse cell in the block, if it lies there; `at` is its position in the cell.
template<int G, int A> RS_FN void store_face(REAL* block, int vector, const int* first, const int* at, REAL value) {
  constexpr int N = PATCH + 2 * G;
  int place[3];
  bool inside = true;
  RS_UNROLL for (int a = 0; a < 3; ++a) {
    place[a] = first[a] + at[a];
    inside = inside && place[a] >= 0 && place[a] < N + (a == A);
  }
  if (inside) block[index_in_block<G, A>(vector, place)] = value;
}

// Interpolates the faces of axis A in the planes of coarse faces, for coarse cells from `item` on.
template<int G, int A> RS_FN void interpolate_outer(REAL* block, REAL* outer, const GatherView& v, int row, int vector, int item) {
  const int* coarser = v.neighbours + (rs::i64)v.parent[row] * AROUND;
  EACH(n, 2 * TOGETHER) {
    int cell[3], first[3];
    const int plane = n / TOGETHER, slot = n % TOGETHER;
    if (!coarse_cell<G>(v, row, item + slot, cell, first)) continue;
    cell[A] += plane;
    const rs::arr<REAL, 4> fine = fine_faces_on<A>(v, coarser, vector, cell);
    RS_UNROLL for (int f = 0; f < 4; ++f) {
      int at[3];
      at[A] = 2 * plane;
      at[(A + 1) % 3] = f % 2;
      at[(A + 2) % 3] = f / 2;
      outer[slot * OUTER + 8 * A + 4 * plane + f] = fine.d[f];
      store_face<G, A>(block, vector, first, at, fine.d[f]);
    }
  }
}

// Interpolates the faces of axis A inside the same coarse cells.
template<int G, int A> RS_FN void interpolate_inner(REAL* block, const REAL* outer, const GatherView& v, int row, int vector, int item) {
  EACH(n, 4 * TOGETHER) {
    int cell[3], first[3], at[3];
    const int f = n / TOGETHER, slot = n % TOGETHER;
    if (!coarse_cell<G>(v, row, item + slot, cell, first)) continue;
    at[A] = 1;
    at[(A + 1) % 3] = f % 2;
    at[(A + 2) % 3] = f / 2;
    store_face<G, A>(block, vector, first, at, inner_face_from<A>(v, at, OuterFaces{outer + slot * OUTER}));
  }
}

// Interpolates the faces of ghost cells in coarser patches. Neighbouring cells write the same bits to the faces between them. Ends with a
// barrier.
template<int G> RS_NOINLINE void interpolate_faces(REAL* block, const GatherView& v, int row) {
  SHARED REAL outer[TOGETHER * OUTER];
  for (int vector = 0; vector < VECTORS; ++vector)
    for (int item = 0; item < CoarseCells<G>::COUNT; item += TOGETHER) {
      interpolate_outer<G, 0>(block, outer, v, row, vector, item);
      interpolate_outer<G, 1>(block, outer, v, row, vector, item);
      interpolate_outer<G, 2>(block, outer, v, row, vector, item);
      launch::barrier();
      interpolate_inner<G, 0>(block, outer, v, row, vector, item);
      interpolate_inner<G, 1>(block, outer, v, row, vector, item);
      interpolate_inner<G, 2>(block, outer, v, row, vector, item);
      launch::barrier();
    }
}

// Copies the faces of axis A that patches of this level hold.
template<int G, int A> RS_FN void copy_faces(REAL* block, const GatherView& v, int row) {
  constexpr int N = PATCH + 2 * G;
  const int* around = v.neighbours + (rs::i64)row * AROUND;
  EACH(n, FACE_BLOCK<G>) {
    int cell[3];
    place_in_block<G, A>(n, cell);
    // the cells above and below the face
    int side = 0, from = cell[A] < N ? around[sector_of<G>(cell[0], cell[1], cell[2])] : COARSER;
    if (from < 0 && cell[A] > 0) {
      side = 1;
      cell[A] -= 1;
      from = around[sector_of<G>(cell[0], cell[1], cell[2])];
    }
    if (from < 0) continue;
    int within[3];
    RS_UNROLL for (int a = 0; a < 3; ++a) within[a] = (cell[a] - G) & (PATCH - 1);
    within[A] += side;
    const REAL* values = row_of(v.level, from) + A * VALUES + value_at(A, within[0], within[1], within[2]);
    for (int vector = 0; vector < VECTORS; ++vector) block[(3 * vector + A) * FACE_BLOCK<G> + n] = values[3 * vector * VALUES];
  }
}

// Moves a place outside the domain to the one that gives its value, along one axis, see source_along. Returns 0 inside, else 1, or -1 if
// the value changes its sign.
RS_FN int move_inside(const GatherView& v, int c, int axis, int* place) {
  const int on_axis = c % 3 == axis, last = v.domain_cells[axis] - 1 + on_axis;
  const int side = *place < 0 ? 0 : *place > last ? 1 : -1;
  if (side < 0 || field::kind(axis, side) == PERIODIC) return 0;
  if (field::kind(axis, side) != REFLECTING) {
    *place = side * last;
    return 1;
  }
  *place = side == 0 ? on_axis - 1 - *place : 2 * last + 1 - on_axis - *place;
  return field::normal(axis) >> c & 1 ? -1 : 1;
}

// Returns the value of component c (of axis A) on the face `asked` by the rules of the faces of the domain that it lies beyond, see by_rules.
template<int A> RS_FN REAL by_rules(const GatherView& v, const int* index, int c, const int* asked, REAL near) {
  int rules = 0;
  REAL values[3] = {near, near, near};
  const int cells[3] = {v.domain_cells[0], v.domain_cells[1], v.domain_cells[2]};
  for (int a = 0; a < 3; ++a) {
    const int last = cells[a] - 1 + (a == A), side = asked[a] < 0 ? 0 : asked[a] > last ? 1 : -1;
    if (side < 0 || field::kind(a, side) != RULE) continue;
    double centre[3];
    for (int n = 0; n < 3; ++n)
      centre[n] = n == A ? ::nestar_kernels::mesh::block::face_position(asked[n], cells[n], v.left[n], v.right[n])
                         : cell_centre(asked[n], cells[n], v.left[n], v.right[n]);
    REAL state[COMPONENTS];
    for (int n = 0; n < COMPONENTS; ++n) state[n] = near;
    const int layer = side == 0 ? -1 - asked[a] : asked[a] - last - 1;
    const field::GhostQuery asks{v.left.d, v.right.d, cells, index[3], asked, centre, nullptr, v.time, layer};
    field::ghost(a, side, asks, state, v.fault);
    values[rules++] = state[c];
  }
  if (rules < 2) return values[0];
  return ::nestar_kernels::mesh::boundary::mean_of_rules<REAL>(values[0], values[1], values[2], rules == 3);
}

// Fills the faces of axis A outside the domain.
template<int G, int A> RS_FN void fill_faces_outside(REAL* block, const GatherView& v, int row) {
  const int* index = v.index + (rs::i64)row * 4;
  EACH(n, FACE_BLOCK<G>) {
    int at[3];
    place_in_block<G, A>(n, at);
    for (int vector = 0; vector < VECTORS; ++vector) {
      int from[3], asked[3], sign = 1;
      bool outside = false;
      RS_UNROLL for (int a = 0; a < 3; ++a) {
        const int first = PATCH * index[a] - G, own = first + at[a];
        int place = own;
        const int moved = move_inside(v, 3 * vector + A, a, &place);
        if (moved != 0) {
          outside = true;
          sign *= moved;
        }
        const bool mirrored = moved != 0 && field::kind(a, own < 0 ? 0 : 1) == REFLECTING;
        const bool periodic = moved == 0 && field::kind(a, 1) == PERIODIC;
        asked[a] = mirrored ? place : periodic ? wrapped(own, v.domain_cells[a]) : own;
        from[a] = place - first;
      }
      if (!outside) continue;
      const REAL near = block[index_in_block<G, A>(vector, from)];
      const REAL value = by_rules<A>(v, index, 3 * vector + A, asked, near);
      block[index_in_block<G, A>(vector, at)] = sign < 0 ? -value : value;
    }
  }
}

// Gathers the faces of row `row` and of G layers of ghost cells, `[component][FACE_BLOCK<G>]`. Ends with a barrier.
template<int G> RS_FN void gather_faces(REAL* block, const GatherView& v, int row) {
  const int codes = v.neighbours[(rs::i64)row * AROUND + 27];
  if (codes & HAS_COARSER) {
    interpolate_faces<G>(block, v, row);
  }
  copy_faces<G, 0>(block, v, row);
  copy_faces<G, 1>(block, v, row);
  copy_faces<G, 2>(block, v, row);
  launch::barrier();
  if (field::BOUNDED && codes & HAS_OUTSIDE) {
    fill_faces_outside<G, 0>(block, v, row);
    fill_faces_outside<G, 1>(block, v, row);
    fill_faces_outside<G, 2>(block, v, row);
    launch::barrier();
  }
}

}  // namespace mesh
