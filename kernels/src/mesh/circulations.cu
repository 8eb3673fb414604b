// Circulation registers along coarse-fine edges: the twin of correct_faces in circulations.rs and of the engine's registers. Follows
// circulations.cuh and fluxes.cu.

namespace mesh {

// Returns the time-integrated fine minus coarse circulation along the edge of component c at `at`, which has index `to` on the surface of
// `row`; 0 if no refined patch touches the edge.
RS_FN REAL circulation_mismatch(const CorrectionParameters& p, int row, int c, const rs::arr<int, 3>& at, int to) {
  const int* around = p.neighbours + (rs::i64)row * AROUND;
  for (int n = 0; n < 3; ++n) {
    // without a neighbour, the step leads to the row itself, a leaf
    const rs::arr<int, 3> step = circulations::step_beside(n, c, at);
    const int beside = around[SELF + step[0] + 3 * step[1] + 9 * step[2]];
    if (beside < 0 || p.first_child[beside] < 0) continue;
    const circulations::EdgeInChild edge = circulations::edge_in_child(c, at, step);
    const rs::i64 fine = (rs::i64)p.fine_slot[p.first_child[beside] + edge.child] * (COMPONENTS * FINE_SURFACE) +
                         circulations::index_on_surface(PATCH / 2, c, edge.at);
    return ::nestar_kernels::mesh::fluxes::flux_mismatch<REAL>(
        p.coarse[(rs::i64)p.coarse_slot[row] * (COMPONENTS * SURFACE) + to], p.reference[fine], p.change[fine], (REAL)p.dt);
  }
  return REAL(0);
}

// Returns the values on the edges of component c of a vector at `at` and one place further along an axis; 0 inside the patch.
RS_FN rs::arr<REAL, 2> edge_pair(const REAL* surface, int c, const rs::arr<int, 3>& at, int axis) {
  rs::arr<int, 3> place = at;
  rs::arr<REAL, 2> pair;
  for (int n = 0; n < 2; ++n) {
    const int from = circulations::index_on_surface(PATCH, c, place);
    pair[n] = from < 0 ? REAL(0) : surface[from];
    place[axis] += 1;
  }
  return pair;
}

// Returns face n of component c of a vector, with value u, after the change by circulations along the edges of the surface.
RS_FN REAL corrected_face(const CorrectionParameters& p, const REAL* surface, int c, int n, REAL u) {
  const int b = (c + 1) % 3, e = (c + 2) % 3;
  const int x = PATCH + (c == 0), y = PATCH + (c == 1);
  const rs::arr<int, 3> at{{n % x, n / x % y, n / (x * y)}};
  const rs::arr<REAL, 2> rate{{(REAL)p.inverse_width[b], (REAL)p.inverse_width[e]}};
  return circulations::circulated<REAL>(u, edge_pair(surface, b, at, e), edge_pair(surface, e, at, b), rate);
}

}  // namespace mesh

// Gives every leaf patch beside a refined one a coarse-side register.
KERNEL(mesh_assign_coarse_edges, mesh::parameters::AssignParameters) {
  using namespace mesh;
  EACH(i, ASSIGN_CHUNK) {
    const int n = launch::block() * ASSIGN_CHUNK + i;
    if (n >= p.count) continue;
    const rs::i64 row = p.rows[n];
    bool beside = false;
    for (int d = 0; d < 27 && p.first_child[row] == LEAF; ++d) {
      const int neighbour = p.neighbours[row * AROUND + d];
      beside = beside || (circulations::touches_edges(d) && neighbour >= 0 && p.first_child[neighbour] >= 0);
    }
    p.coarse_slot[row] = beside ? (int)launch::atomic_add(&p.counts->coarse, 1u) : -1;
    if (beside) p.corrected[launch::atomic_add(&p.counts->corrected, 1u)] = (int)row;
    if (p.clear) p.fine_slot[row] = -1;
  }
}

// Gives every patch beside a coarser one a fine-side register.
KERNEL(mesh_assign_fine_edges, mesh::parameters::AssignParameters) {
  using namespace mesh;
  EACH(i, ASSIGN_CHUNK) {
    const int n = launch::block() * ASSIGN_CHUNK + i;
    if (n >= p.count) continue;
    const rs::i64 row = p.rows[n];
    bool beside = false;
    for (int d = 0; d < 27; ++d) beside = beside || (circulations::touches_edges(d) && p.neighbours[row * AROUND + d] == COARSER);
    p.fine_slot[row] = beside ? (int)launch::atomic_add(&p.counts->fine, 1u) : -1;
  }
}

// Changes the faces of leaf patches beside refined ones by the fine minus coarse circulations along their edges. One block per patch.
KERNEL(mesh_correct_faces, mesh::CorrectionParameters) {
  using namespace mesh;
  SHARED REAL surface[3 * SURFACE];
  const int row = p.rows[launch::block()];
  for (int vector = 0; vector < COMPONENTS; vector += 3) {
    EACH(n, 3 * EDGES) {
      const int c = vector + n / EDGES;
      const rs::arr<int, 3> at = edge_place<PATCH>(c, n % EDGES);
      const int to = circulations::index_on_surface(PATCH, c, at);
      if (to >= 0) surface[to - vector * SURFACE] = circulation_mismatch(p, row, c, at, to);
    }
    launch::barrier();
    REAL* faces = row_of(p.level, row) + vector * VALUES;
    EACH(n, 3 * VALUES) faces[n] = corrected_face(p, surface, n / VALUES, n % VALUES, faces[n]);
    launch::barrier();
  }
  if (launch::thread() == 0) p.stale[row] = 1;
}
