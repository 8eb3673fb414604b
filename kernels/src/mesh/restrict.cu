// Averages of fine values onto coarse ones: the twin of restrict.rs. One block an octet.

namespace mesh {

// Mean of the fine values of component c, of which the first stands at `source`, that one coarse value stands for.
RS_FN REAL mean_at(const REAL* source, int c) {
  if constexpr (CENTRING == IN_CELLS) {
    rs::arr<REAL, 8> eight;
    RS_UNROLL for (int s = 0; s < 8; ++s)
      eight[s] = source[(s & 1) + PATCH * (s >> 1 & 1) + PATCH * PATCH * (s >> 2)];
    return ::nestar_kernels::mesh::restrict::mean8<REAL>(eight);
  } else if constexpr (CENTRING == ON_FACES) {
    const int b = step_along(c, (c + 1) % 3), e = step_along(c, (c + 2) % 3);
    return ::nestar_kernels::mesh::fluxes::mean4<REAL>(rs::arr<REAL, 4>{{source[0], source[b], source[e], source[b + e]}});
  } else {
    return ::nestar_kernels::mesh::restrict::mean2<REAL>(source[0], source[step_along(c, c % 3)]);
  }
}

}  // namespace mesh

KERNEL(mesh_restrict, mesh::parameters::Restrict<mesh::REAL>) {
  using namespace mesh;
  const int first = p.rows[8 * launch::block()] & ~7;
  const int parent = p.parent[first];
  REAL* out = row_of(p.coarse, parent);
  for (int group = 0; group < GROUPS; ++group) {
    const int nx = PATCH + staggered(group, 0), ny = PATCH + staggered(group, 1);
    EACH(n, VALUES) {
      const int x = n % nx, y = n / nx % ny, z = n / (nx * ny);
      // on the plane between two children the upper one
      const int upper[3] = {x >= PATCH / 2, y >= PATCH / 2, z >= PATCH / 2};
      const REAL* source = row_of(p.fine, first + upper[0] + 2 * upper[1] + 4 * upper[2]) +
                           value_at(group, 2 * x - PATCH * upper[0], 2 * y - PATCH * upper[1], 2 * z - PATCH * upper[2]);
      REAL u[COMPONENTS];
      EACH_COMPONENT(c) if (c % GROUPS == group) u[c] = mean_at(source + c * VALUES, c);
      if (CENTRING != IN_CELLS || field::physical(u)) {
        EACH_COMPONENT(c) if (c % GROUPS == group) out[c * VALUES + n] = u[c];
      }
    }
  }
  if (launch::thread() == 0) p.stale[parent] = 1;
}

// Sets the faces that belong to a patch beyond them to its values: the twin of share_faces in staggered.rs. One block a patch.
KERNEL(mesh_share, mesh::parameters::Share<mesh::REAL>) {
  using namespace mesh;
  const int row = p.rows[launch::block()];
  REAL* own = row_of(p.level, row);
  for (int face = 0; face < 6; ++face) {
    const int axis = face / 2, side = face % 2;
    const int beyond = p.neighbours[(rs::i64)row * AROUND + face_direction(face)];
    if (beyond < 0) continue;
    const bool refined = p.first_child[row] != LEAF, beyond_refined = p.first_child[beyond] != LEAF;
    if (!::nestar_kernels::mesh::staggered::belongs_beyond((unsigned)side, refined, beyond_refined)) continue;
    const REAL* theirs = row_of(p.level, beyond);
    EACH(n, COMPONENTS / 3 * FACE) {
      const int c = n / FACE * 3 + axis, b = (axis + 1) % 3, e = (axis + 2) % 3;
      const int at = c * VALUES + n % PATCH * step_along(c, b) + n / PATCH % PATCH * step_along(c, e);
      const int across = PATCH * step_along(c, axis);
      own[at + side * across] = theirs[at + (1 - side) * across];
    }
    if (launch::thread() == 0) p.stale[row] = 1;
  }
}
