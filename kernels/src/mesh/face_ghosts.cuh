// Interpolates faces between levels and gathers faces with those of ghost cells: the twin of coarse_faces.rs, fine_faces.rs and
// face_ghosts.rs. Follows gather.cuh.

namespace mesh {

// Number of values of a component in a block with G ghost layers.
template<int G> constexpr int FACE_BLOCK = (PATCH + 2 * G) * (PATCH + 2 * G) * (PATCH + 2 * G + 1);

// The same for the field of the text, in cells or on faces.
template<int G> constexpr int BLOCK = CENTRING == ON_FACES ? FACE_BLOCK<G> : (PATCH + 2 * G) * (PATCH + 2 * G) * (PATCH + 2 * G);

// Returns 1 for a place above the parent's planes (along the component's axis) or cells, -1 below, else 0.
RS_FN int beyond_parent(int c, int axis, int at) { return (at >= PATCH + (axis == c % 3)) - (at < 0); }

// Returns component c at `at`, interpolated in time: planes along the component's axis and cells along the others, counted from the
// parent's first. `around` is the parent's table. Returns `otherwise` outside the domain.
RS_FN REAL coarse_face(const GatherView& v, const int* around, int c, const int* at, REAL otherwise) {
  int d = SELF, q[3];
  for (int a = 0, step = 1; a < 3; ++a, step *= 3) {
    const int beside = beyond_parent(c, a, at[a]);
    d += beside * step;
    q[a] = at[a] - PATCH * beside;
  }
  return around[d] < 0 ? otherwise : blended(v, around[d], c * VALUES + value_at(c, q[0], q[1], q[2]));
}

// Returns the four fine faces of the coarse face `at` of component c. The axis after the face's own is fastest.
RS_FN rs::arr<REAL, 4> fine_faces_on(const GatherView& v, const int* around, int c, const int* place) {
  int at[3] = {place[0], place[1], place[2]};
  const REAL u = coarse_face(v, around, c, at, REAL(0));
  rs::arr<REAL, 6> near;
  for (int n = 0; n < 4; ++n) {
    const int a = (c + (n < 2 ? 1 : 2)) % 3, step = n % 2 ? 1 : -1;
    at[a] += step;
    near[n] = coarse_face(v, around, c, at, u);
    at[a] -= step;
  }
  near[4] = near[5] = u;
  const Offsets o = offsets_of(u, near);
  rs::arr<REAL, 4> fine;
  for (int n = 0; n < 4; ++n) fine[n] = ::nestar_kernels::mesh::prolong::fine_value<REAL>(u, o, n & 1, n >> 1, 0);
  return fine;
}

// Returns the cell width along one axis over that along another.
RS_FN REAL width_ratio(const GatherView& v, int axis, int other) {
  return ::nestar_kernels::mesh::fine_faces::width_ratio<REAL>(v.right[axis] - v.left[axis], v.domain_cells[axis],
                                                               v.right[other] - v.left[other], v.domain_cells[other]);
}

// Returns the eight outer fine faces normal to axis `normal` on which the inner face of axis c at `at` depends.
template<class Outer> RS_FN rs::arr<REAL, 8> outer_faces(int c, int normal, const int* at, const Outer& outer) {
  rs::arr<REAL, 8> faces;
  for (int n = 0; n < 8; ++n) {
    int from[3] = {at[0], at[1], at[2]};
    from[normal] = 2 * (n & 1);
    from[c] = n >> 1 & 1;
    from[3 - c - normal] ^= n >> 2;
    faces[n] = outer(normal, from);
  }
  return faces;
}

// Returns the fine face of axis c at `at` inside a coarse cell, see inner_face_from. outer(c, at) gives the outer ones.
template<class Outer> RS_FN REAL inner_face_from(const GatherView& v, int c, const int* at, const Outer& outer) {
  const int b = (c + 1) % 3, e = (c + 2) % 3;
  int from[3] = {at[0], at[1], at[2]};
  rs::arr<REAL, 2> own, ratios{{width_ratio(v, c, b), width_ratio(v, c, e)}};
  for (int n = 0; n < 2; ++n) {
    from[c] = 2 * n;
    own[n] = outer(c, from);
  }
  return ::nestar_kernels::mesh::fine_faces::inner_face<REAL>(own, outer_faces(c, b, at, outer), outer_faces(c, e, at, outer),
                                                              ratios);
}

// Index of a value among those of component c in a block with G ghost layers.
template<int G> RS_FN int index_in_block(int c, const int* at) {
  constexpr int N = PATCH + 2 * G;
  const int x = N + (c % 3 == 0), y = N + (c % 3 == 1);
  return at[0] + x * (at[1] + y * at[2]);
}

// Position in a block of value n of component c.
template<int G> RS_FN void place_in_block(int c, int n, int* at) {
  constexpr int N = PATCH + 2 * G;
  const int x = N + (c % 3 == 0), y = N + (c % 3 == 1);
  at[0] = n % x;
  at[1] = n / x % y;
  at[2] = n / (x * y);
}

// Index of a fine face among those of a component in a coarse cell, and the position of face n.
RS_FN int index_in_cell(int c, const int* at) { return 4 * at[c] + 2 * at[(c + 2) % 3] + at[(c + 1) % 3]; }
RS_FN void place_in_cell(int c, int n, int* at) {
  at[c] = n / 4;
  at[(c + 1) % 3] = n % 2;
  at[(c + 2) % 3] = n / 2 % 2;
}

// Gives the faces of a coarse cell, `[axis][12]`.
struct CellFaces {
  const REAL* faces;
  RS_MEMBER REAL operator()(int c, const int* at) const { return faces[12 * c + index_in_cell(c, at)]; }
};

// Computes the fine faces of the coarse cell `cell`, counted from the parent's first, for a vector of the field.
template<int G> RS_NOINLINE void fine_faces_of(const GatherView& v, const int* around, int vector, const int* cell, REAL* faces) {
  for (int c = 0; c < 3; ++c)
    for (int plane = 0; plane < 2; ++plane) {
      int at[3] = {cell[0], cell[1], cell[2]};
      at[c] += plane;
      const rs::arr<REAL, 4> fine = fine_faces_on(v, around, 3 * vector + c, at);
      for (int n = 0; n < 4; ++n) faces[12 * c + 8 * plane + n] = fine.d[n];
    }
  for (int c = 0; c < 3; ++c)
    for (int n = 4; n < 8; ++n) {
      int at[3];
      place_in_cell(c, n, at);
      faces[12 * c + n] = inner_face_from(v, c, at, CellFaces{faces});
    }
}

// Interpolates the faces of ghost cells in coarser patches; each thread processes a vector of a coarse cell. Neighbouring cells write the
// same bits to the faces between them.
template<int G> RS_NOINLINE void interpolate_faces(REAL* block, const GatherView& v, int row) {
  typedef CoarseCells<G> Coarse;
  constexpr int N = PATCH + 2 * G;
  const int* around = v.neighbours + (rs::i64)row * AROUND;
  const int* coarser = v.neighbours + (rs::i64)v.parent[row] * AROUND;
  EACH(n, Coarse::COUNT * (COMPONENTS / 3)) {
    const int item = n % Coarse::COUNT, vector = n / Coarse::COUNT;
    int cell[3];
    if (around[Coarse::place(item, v.index + (rs::i64)row * 4, cell)] != COARSER) continue;
    const int q[3] = {item % Coarse::M, item / Coarse::M % Coarse::M, item / (Coarse::M * Coarse::M)};
    for (int a = 0; a < 3; ++a) cell[a] -= PATCH;
    REAL faces[36];
    fine_faces_of<G>(v, coarser, vector, cell, faces);
    for (int face = 0; face < 36; ++face) {
      const int axis = face / 12, c = 3 * vector + axis;
      int at[3];
      bool inside = true;
      place_in_cell(axis, face % 12, at);
      for (int a = 0; a < 3; ++a) {
        at[a] += 2 * (q[a] - Coarse::REACH) + G;
        inside = inside && at[a] >= 0 && at[a] < N + (a == axis);
      }
      if (inside) block[c * FACE_BLOCK<G> + index_in_block<G>(c, at)] = faces[face];
    }
  }
}

// Copies the faces that patches of this level hold.
template<int G> RS_FN void copy_faces(REAL* block, const GatherView& v, int row) {
  constexpr int N = PATCH + 2 * G;
  const int* around = v.neighbours + (rs::i64)row * AROUND;
  EACH(n, COMPONENTS * FACE_BLOCK<G>) {
    const int c = n / FACE_BLOCK<G>;
    int at[3];
    place_in_block<G>(c, n % FACE_BLOCK<G>, at);
    // the cells on both sides of the face
    for (int side = 0; side < 2; ++side) {
      int cell[3] = {at[0], at[1], at[2]};
      cell[c % 3] -= side;
      if (cell[c % 3] < 0 || cell[c % 3] >= N) continue;
      const int from = around[sector_of<G>(cell[0], cell[1], cell[2])];
      if (from < 0) continue;
      int within[3];
      for (int a = 0; a < 3; ++a) within[a] = (cell[a] - G) & (PATCH - 1);
      within[c % 3] += side;
      block[n] = row_of(v.level, from)[c * VALUES + value_at(c, within[0], within[1], within[2])];
      break;
    }
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

// Fills the faces outside the domain.
template<int G> RS_NOINLINE void fill_faces_outside(REAL* block, const GatherView& v, int row) {
  const int* index = v.index + (rs::i64)row * 4;
  EACH(n, COMPONENTS * FACE_BLOCK<G>) {
    const int c = n / FACE_BLOCK<G>;
    int at[3], sign = 1;
    bool outside = false;
    place_in_block<G>(c, n % FACE_BLOCK<G>, at);
    for (int a = 0; a < 3; ++a) {
      const int first = PATCH * index[a] - G;
      int place = first + at[a];
      const int moved = move_inside(v, c, a, &place);
      if (moved == 0) continue;
      outside = true;
      sign *= moved;
      at[a] = place - first;
    }
    if (!outside) continue;
    const REAL value = block[c * FACE_BLOCK<G> + index_in_block<G>(c, at)];
    block[n] = sign < 0 ? -value : value;
  }
}

// Gathers the faces of row `row` and of G layers of ghost cells, `[component][FACE_BLOCK<G>]`. Ends with a barrier.
template<int G> RS_FN void gather_faces(REAL* block, const GatherView& v, int row) {
  const int codes = v.neighbours[(rs::i64)row * AROUND + 27];
  if (codes & HAS_COARSER) {
    interpolate_faces<G>(block, v, row);
    launch::barrier();
  }
  copy_faces<G>(block, v, row);
  launch::barrier();
  if (field::BOUNDED && codes & HAS_OUTSIDE) {
    fill_faces_outside<G>(block, v, row);
    launch::barrier();
  }
}

}  // namespace mesh
