// Fills new patches from the coarser level: the twin of prolong_patch in gather.rs and of prolong_faces in staggered.rs. One
// block a patch.

namespace mesh {

typedef parameters::ProlongParameters<REAL> ProlongParameters;

// Component c at `at`, counted from the parent's first cell: a plane of the parent along the component's axis, a cell of the
// parent or of the patch beside it along the others. `otherwise` beyond the domain.
RS_FN REAL coarse_face(const GatherView& v, const int* around, int c, const int* at, REAL otherwise) {
  int d = SELF, q[3];
  for (int a = 0, step = 1; a < 3; ++a, step *= 3) {
    const int beside = a == c % 3 ? 0 : (at[a] >= PATCH) - (at[a] < 0);
    d += beside * step;
    q[a] = at[a] - PATCH * beside;
  }
  return around[d] < 0 ? otherwise : row_of(v.coarse_new, around[d])[c * VALUES + value_at(c, q[0], q[1], q[2])];
}

// The fine value of component c at fast, slow of an even plane of `row`, from the coarse plane on which it lies.
RS_FN REAL fine_face(const GatherView& v, int row, int c, int plane, int fast, int slow) {
  const int* around = v.neighbours + (rs::i64)v.parent[row] * AROUND;
  const int axis = c % 3, b = (c + 1) % 3, e = (c + 2) % 3;
  int at[3];
  for (int a = 0; a < 3; ++a) at[a] = PATCH / 2 * (v.index[(rs::i64)row * 4 + a] & 1);
  at[axis] += plane / 2;
  at[b] += fast / 2;
  at[e] += slow / 2;
  const REAL u = coarse_face(v, around, c, at, REAL(0));
  rs::arr<REAL, 6> near;
  for (int n = 0; n < 4; ++n) {
    const int a = n < 2 ? b : e, step = n % 2 ? 1 : -1;
    at[a] += step;
    near[n] = coarse_face(v, around, c, at, u);
    at[a] -= step;
  }
  near[4] = near[5] = u;
  return ::nestar_kernels::mesh::prolong::fine_value<REAL>(u, offsets_of(u, near), fast & 1, slow & 1, 0);
}

// Fills the faces of a new patch: even planes from the coarse ones or an old patch beyond, then those between.
RS_FN void prolong_faces(const ProlongParameters& p, int row) {
  constexpr int EVEN = PATCH / 2 + 1;
  REAL* out = row_of(p.rows_of_level, row);
  EACH(n, COMPONENTS * EVEN * FACE) {
    const int c = n / (EVEN * FACE), plane = 2 * (n / FACE % EVEN), fast = n % PATCH, slow = n / PATCH % PATCH;
    const int at = c * VALUES + fast * step_along(c, (c + 1) % 3) + slow * step_along(c, (c + 2) % 3);
    const int along = step_along(c, c % 3);
    int beyond = -1;
    if (plane == 0 || plane == PATCH)
      beyond = p.view.neighbours[(rs::i64)row * AROUND + face_direction(2 * (c % 3) + (plane == PATCH))];
    if (beyond >= 0 && !p.fresh[beyond]) out[at + plane * along] = row_of(p.view.level, beyond)[at + (PATCH - plane) * along];
    else out[at + plane * along] = fine_face(p.view, row, c, plane, fast, slow);
  }
  launch::barrier();
  EACH(n, COMPONENTS * (PATCH / 2) * FACE) {
    const int c = n / (PATCH / 2 * FACE), plane = 2 * (n / FACE % (PATCH / 2)) + 1;
    const int along = step_along(c, c % 3);
    REAL* to = out + c * VALUES + plane * along + n % PATCH * step_along(c, (c + 1) % 3) +
               n / PATCH % PATCH * step_along(c, (c + 2) % 3);
    *to = ::nestar_kernels::mesh::means::mean2<REAL>(to[-along], to[along]);
  }
}

// As CoarseBlock::share_out.
RS_FN void share_out(const Refined& from, REAL* out, int set, int side) {
  REAL sum = REAL(0);
  for (int c = field::LEADING; c < COMPONENTS; ++c)
    if (field::set_of(c) == set) sum = sum + out[c * CELLS + of_side(side)];
  const REAL beyond = sum - out[of_side(side)];
  for (int c = field::LEADING; c < COMPONENTS; ++c)
    if (field::set_of(c) == set) out[c * CELLS + of_side(side)] = out[c * CELLS + of_side(side)] - beyond * from.near[c];
}

// As CoarseBlock::kept.
RS_FN REAL kept_of(const Refined& from, const REAL* out, int c) {
  const REAL* u = out + c * CELLS;
  const REAL share = from.near[c];
  REAL low = share, high = share;
  for (int n = 1; n < 7; ++n) {
    low = rs::min(low, from.near[n * COMPONENTS + c]);
    high = rs::max(high, from.near[n * COMPONENTS + c]);
  }
  REAL kept = REAL(1);
  for (int side = 0; side < 8; ++side) {
    const REAL density = out[of_side(side)], deviation = u[of_side(side)] - density * share;
    kept = rs::min(kept, ::nestar_kernels::mesh::prolong::share_kept<REAL>(share, low, high, density, deviation));
  }
  return kept;
}

// As CoarseBlock::hold.
RS_FN void hold(const Refined& from, REAL* out, int c, REAL kept) {
  REAL* u = out + c * CELLS;
  const REAL share = from.near[c];
  for (int side = 0; side < 8 && kept < REAL(1); ++side) {
    const REAL density = out[of_side(side)];
    u[of_side(side)] = density * share + kept * (u[of_side(side)] - density * share);
  }
}

// Shifts the fine states at `out` so that their means are the coarse state, as CoarseBlock::put_means_right.
RS_FN void put_means_right(const Refined& from, REAL* out) {
  EACH_COMPONENT(c) {
    REAL* u = out + c * CELLS;
    const REAL missing = from.own[c] - mean_of_eight(u);
    for (int side = 0; side < 8; ++side) u[of_side(side)] = u[of_side(side)] + missing;
  }
  for (int c = field::LEADING; c < COMPONENTS; ++c)
    if (field::set_of(c) == 0) hold(from, out, c, kept_of(from, out, c));
  for (int set = 1; set <= field::SETS; ++set) {
    for (int side = 0; side < 8; ++side) share_out(from, out, set, side);
    REAL kept = REAL(1);
    for (int c = field::LEADING; c < COMPONENTS; ++c)
      if (field::set_of(c) == set) kept = rs::min(kept, kept_of(from, out, c));
    for (int c = field::LEADING; c < COMPONENTS; ++c)
      if (field::set_of(c) == set) hold(from, out, c, kept);
  }
}

// Fills the eight fine cells of the coarse cell `at` of the parent's neighbourhood, of which the first stands at `out`: their
// means are the coarse state. All take that where one of them would be unphysical.
RS_FN void refine_cell_exactly(const GatherView& v, int parent, const int* at, REAL* out) {
  Refined from;
  coarse_cell(v, parent, at, from);
  REAL state[COMPONENTS];
  for (int side = 0; side < 8; ++side) {
    fine_state(from.near, from.offsets, side, state);
    EACH_COMPONENT(c) out[c * CELLS + of_side(side)] = state[c];
  }
  if (field::LEADING == 0) return;
  put_means_right(from, out);
  bool physical = true;
  for (int side = 0; side < 8; ++side) {
    EACH_COMPONENT(c) state[c] = out[c * CELLS + of_side(side)];
    if constexpr (field::FOLLOWS) {
      field::settle(state);
      EACH_COMPONENT(c) out[c * CELLS + of_side(side)] = state[c];
    }
    physical = physical && field::physical(state);
  }
  for (int side = 0; side < 8 && !physical; ++side)
    EACH_COMPONENT(c) out[c * CELLS + of_side(side)] = from.own[c];
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
