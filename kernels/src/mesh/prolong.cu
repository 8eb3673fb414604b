// Fills new patches from the coarser level: the twin of prolong_patch in gather.rs and of prolong_faces in staggered.rs. One block per
// patch.

namespace mesh {

typedef parameters::ProlongParameters<REAL> ProlongParameters;

// Gives the faces of a coarse cell in a row: `vector` points to the row's values of three components, `cell` to its first fine cell.
struct RowFaces {
  const REAL* vector;
  const int* cell;
  template<int A> RS_MEMBER REAL on(const int* at) const {
    return vector[A * VALUES + value_at(A, cell[0] + at[0], cell[1] + at[1], cell[2] + at[2])];
  }
};

// Fills the even planes of a new patch along axis A, from coarse planes or from an old neighbour.
template<int A> RS_FN void prolong_outer_faces(const ProlongParameters& p, int row, REAL* out) {
  constexpr int EVEN = PATCH / 2 + 1, B = (A + 1) % 3, C = (A + 2) % 3;
  constexpr int along = step_along(A, A), side[4] = {0, step_along(A, B), step_along(A, C), step_along(A, B) + step_along(A, C)};
  const int* coarser = p.view.neighbours + (rs::i64)p.view.parent[row] * AROUND;
  EACH(n, VECTORS * EVEN * QUARTER) {
    const int vector = n / (EVEN * QUARTER), plane = 2 * (n / QUARTER % EVEN), fast = n % 4, slow = n / 4 % 4;
    REAL* to = out + (3 * vector + A) * VALUES + 2 * fast * side[1] + 2 * slow * side[2];
    int neighbour = -1;
    if (plane == 0 || plane == PATCH)
      neighbour = p.view.neighbours[(rs::i64)row * AROUND + face_direction(2 * A + (plane == PATCH))];
    if (neighbour >= 0 && !p.fresh[neighbour]) {
      const REAL* from = row_of(p.view.level, neighbour) + (to - out);
      for (int n = 0; n < 4; ++n) to[plane * along + side[n]] = from[(PATCH - plane) * along + side[n]];
      continue;
    }
    int at[3];
    RS_UNROLL for (int a = 0; a < 3; ++a) at[a] = PATCH / 2 * (p.view.index[(rs::i64)row * 4 + a] & 1);
    at[A] += plane / 2;
    at[B] += fast;
    at[C] += slow;
    const rs::arr<REAL, 4> fine = fine_faces_on<A>(p.view, coarser, vector, at);
    RS_UNROLL for (int n = 0; n < 4; ++n) to[plane * along + side[n]] = fine.d[n];
  }
}

// Fills the planes between them from the even planes of all axes.
template<int A> RS_FN void prolong_inner_faces(const ProlongParameters& p, REAL* out) {
  constexpr int INNER = PATCH / 2 * FACE;
  EACH(n, VECTORS * INNER) {
    REAL* vector = out + n / INNER * 3 * VALUES;
    int at[3], cell[3];
    at[A] = 2 * (n / FACE % (PATCH / 2)) + 1;
    at[(A + 1) % 3] = n % PATCH;
    at[(A + 2) % 3] = n / PATCH % PATCH;
    REAL* to = vector + A * VALUES + value_at(A, at[0], at[1], at[2]);
    RS_UNROLL for (int a = 0; a < 3; ++a) {
      cell[a] = at[a] & ~1;
      at[a] -= cell[a];
    }
    *to = inner_face_from<A>(p.view, at, RowFaces{vector, cell});
  }
}

// Fills the faces of a new patch: first even planes, then from them the faces inside coarse cells.
RS_FN void prolong_faces(const ProlongParameters& p, int row) {
  REAL* out = row_of(p.rows_of_level, row);
  prolong_outer_faces<0>(p, row, out);
  prolong_outer_faces<1>(p, row, out);
  prolong_outer_faces<2>(p, row, out);
  launch::barrier();
  prolong_inner_faces<0>(p, out);
  prolong_inner_faces<1>(p, out);
  prolong_inner_faces<2>(p, out);
}

// See CoarseBlock::normalize_set.
RS_FN void normalize_set(const Refined& from, REAL* out, int set, int side) {
  REAL sum = REAL(0);
  for (int c = field::LEADING; c < COMPONENTS; ++c)
    if (field::set_of(c) == set) sum = sum + out[c * CELLS + child_offset(side)];
  const REAL excess = sum - out[child_offset(side)];
  for (int c = field::LEADING; c < COMPONENTS; ++c)
    if (field::set_of(c) == set) out[c * CELLS + child_offset(side)] = out[c * CELLS + child_offset(side)] - excess * from.near[c];
}

// See CoarseBlock::scalar_factor.
RS_FN REAL scalar_factor(const Refined& from, const REAL* out, int c) {
  const REAL* u = out + c * CELLS;
  const REAL share = from.near[c];
  REAL low = share, high = share;
  for (int n = 1; n < 7; ++n) {
    low = rs::min(low, from.near[n * COMPONENTS + c]);
    high = rs::max(high, from.near[n * COMPONENTS + c]);
  }
  REAL kept = REAL(1);
  for (int side = 0; side < 8; ++side) {
    const REAL density = out[child_offset(side)], deviation = u[child_offset(side)] - density * share;
    kept = rs::min(kept, ::nestar_kernels::mesh::prolong::scalar_limit_factor<REAL>(share, low, high, density, deviation));
  }
  return kept;
}

// See CoarseBlock::limit_scalar.
RS_FN void limit_scalar(const Refined& from, REAL* out, int c, REAL kept) {
  REAL* u = out + c * CELLS;
  const REAL share = from.near[c];
  for (int side = 0; side < 8 && kept < REAL(1); ++side) {
    const REAL density = out[child_offset(side)];
    u[child_offset(side)] = density * share + kept * (u[child_offset(side)] - density * share);
  }
}

// Shifts each component of the fine states at `out` so that component and remainder together have the mean of the coarse ones.
RS_FN void restore_remainders(const Refined& from, REAL* out) {
  REAL kept[COMPONENTS], eight[8 * COMPONENTS];
  EACH_COMPONENT(c) kept[c] = from.own[c];
  field::to_remainder(kept);
  for (int side = 0; side < 8; ++side) {
    REAL* u = eight + side * COMPONENTS;
    EACH_COMPONENT(c) u[c] = out[c * CELLS + child_offset(side)];
    field::to_remainder(u);
  }
  EACH_COMPONENT(c) {
    rs::arr<REAL, 8> values;
    for (int side = 0; side < 8; ++side) values[side] = eight[side * COMPONENTS + c];
    const REAL mean = ::nestar_kernels::mesh::means::mean8<REAL>(values);
    REAL* u = out + c * CELLS;
    for (int side = 0; side < 8; ++side)
      u[child_offset(side)] = ::nestar_kernels::mesh::fluxes::with_kept_remainder<REAL>(u[child_offset(side)], kept[c], mean);
  }
}

// Shifts the fine states at `out` so that their means equal the coarse state, see CoarseBlock::restore_means.
RS_FN void restore_means(const Refined& from, REAL* out) {
  EACH_COMPONENT(c) {
    REAL* u = out + c * CELLS;
    const REAL missing = from.own[c] - mean_of_eight(u);
    for (int side = 0; side < 8; ++side) u[child_offset(side)] = u[child_offset(side)] + missing;
  }
  if constexpr (field::HAS_REMAINDER) restore_remainders(from, out);
  for (int c = field::LEADING; c < COMPONENTS; ++c)
    if (field::set_of(c) == 0) limit_scalar(from, out, c, scalar_factor(from, out, c));
  for (int set = 1; set <= field::SETS; ++set) {
    for (int side = 0; side < 8; ++side) normalize_set(from, out, set, side);
    REAL kept = REAL(1);
    for (int c = field::LEADING; c < COMPONENTS; ++c)
      if (field::set_of(c) == set) kept = rs::min(kept, scalar_factor(from, out, c));
    for (int c = field::LEADING; c < COMPONENTS; ++c)
      if (field::set_of(c) == set) limit_scalar(from, out, c, kept);
  }
}

// Fills the eight fine cells of the coarse cell `at` of the parent's neighbourhood, starting at `out`; their means equal the coarse state.
// All take the coarse state if one of them would be unphysical.
RS_FN void refine_cell_exactly(const GatherView& v, int parent, const int* at, REAL* out) {
  Refined from;
  coarse_cell(v, parent, at, from);
  REAL state[COMPONENTS];
  for (int side = 0; side < 8; ++side) {
    fine_state(from.near, from.offsets, side, state);
    EACH_COMPONENT(c) out[c * CELLS + child_offset(side)] = state[c];
  }
  if (field::LEADING == 0) return;
  restore_means(from, out);
  bool physical = true;
  for (int side = 0; side < 8; ++side) {
    EACH_COMPONENT(c) state[c] = out[c * CELLS + child_offset(side)];
    if constexpr (field::HAS_DEPENDENTS) {
      field::reconcile(state);
      EACH_COMPONENT(c) out[c * CELLS + child_offset(side)] = state[c];
    }
    physical = physical && field::physical(state);
  }
  for (int side = 0; side < 8 && !physical; ++side)
    EACH_COMPONENT(c) out[c * CELLS + child_offset(side)] = from.own[c];
}

// Fills the cells of a new patch.
RS_FN void prolong_cells(const ProlongParameters& p, int row) {
  const int parent = p.view.parent[row];
  const int* index = p.view.index + (rs::i64)row * 4;
  REAL* out = row_of(p.rows_of_level, row);
  EACH(item, CELLS / 8) {
    const int q[3] = {item & 3, item >> 2 & 3, item >> 4};
    int at[3];
    for (int a = 0; a < 3; ++a) at[a] = PATCH + PATCH / 2 * (index[a] & 1) + q[a];
    refine_cell_exactly(p.view, parent, at, out + cell_of(2 * q[0], 2 * q[1], 2 * q[2]));
  }
}

}  // namespace mesh

KERNEL(mesh_prolong, mesh::ProlongParameters) {
  using namespace mesh;
  const int row = p.rows[launch::block()];
  if constexpr (CENTRING == ON_FACES) prolong_faces(p, row);
  else prolong_cells(p, row);
  if (launch::thread() == 0) p.stale[row] = 1;
}
