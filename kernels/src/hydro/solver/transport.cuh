// Constrained transport of a field on faces: the twin of transport.rs. Follows states.cuh and circulations.cuh.

#if FACE_FIELD
namespace fluid {

// Values on the edges of a patch.
constexpr int ELECTRIC = 3 * mesh::EDGES;
// Edges at positions -1 to 9 along each axis.
constexpr int AROUND_EDGES = PATCH + 3;
constexpr int OLD_EDGES = AROUND_EDGES * AROUND_EDGES * AROUND_EDGES;

RS_FN REAL gathered_face(const REAL* faces, int c, const int* at) {
  constexpr int N = PATCH + 2 * GHOSTS;
  const int x = N + (c == 0), y = N + (c == 1);
  return faces[c * GATHERED + (at[0] + GHOSTS) + x * ((at[1] + GHOSTS) + y * (at[2] + GHOSTS))];
}

RS_FN int old_edge(int c, const int* at) { return c * OLD_EDGES + (at[0] + 1) + AROUND_EDGES * ((at[1] + 1) + AROUND_EDGES * (at[2] + 1)); }

// Index of a face in an array of faces, without its axis.
RS_FN int face_at(int c, const int* at) {
  return c == 0 ? face_index<0>(at[0], at[1], at[2]) : c == 1 ? face_index<1>(at[0], at[1], at[2]) : face_index<2>(at[0], at[1], at[2]);
}

// Index of one of the 10^3 cells.
RS_FN int layered(const int* at) { return (at[0] + 1) + 10 * ((at[1] + 1) + 10 * (at[2] + 1)); }

// Returns the electric field on an edge from the velocities and fields before the step.
RS_FN REAL mean_electric(const REAL* faces, const REAL* block, int c, const int* at) {
  const int a = (c + 1) % 3, b = (c + 2) % 3;
  rs::arr<rs::arr<REAL, 4>, 2> velocity;
  for (int n = 0; n < 4; ++n) {
    int cell[3] = {at[0], at[1], at[2]};
    cell[a] -= 1 - (n & 1);
    cell[b] -= 1 - (n >> 1);
    const int from = (cell[0] + REACH) + WIDTH * ((cell[1] + REACH) + WIDTH * (cell[2] + REACH));
    velocity.d[0].d[n] = block[(1 + a) * BLOCK + from];
    velocity.d[1].d[n] = block[(1 + b) * BLOCK + from];
  }
  int below_a[3] = {at[0], at[1], at[2]}, below_b[3] = {at[0], at[1], at[2]};
  below_a[a] -= 1;
  below_b[b] -= 1;
  return hydro::transport::mean_electric_field<REAL>(velocity, rs::arr<REAL, 2>{{gathered_face(faces, a, below_b), gathered_face(faces, a, at)}},
                                                     rs::arr<REAL, 2>{{gathered_face(faces, b, below_a), gathered_face(faces, b, at)}});
}

// Returns the field on a face after the circulation of electric fields; electric(c, at) gives those on edges.
template<class Electric> RS_FN REAL circulated_face(REAL u, int c, const int* at, const Three& rate, const Electric& electric) {
  const int a = (c + 1) % 3, b = (c + 2) % 3;
  int above_a[3] = {at[0], at[1], at[2]}, above_b[3] = {at[0], at[1], at[2]};
  above_a[a] += 1;
  above_b[b] += 1;
  return ::nestar_kernels::mesh::circulations::circulated<REAL>(u, rs::arr<REAL, 2>{{electric(a, at), electric(a, above_b)}},
                                                                rs::arr<REAL, 2>{{electric(b, at), electric(b, above_a)}},
                                                                rs::arr<REAL, 2>{{rate.d[a], rate.d[b]}});
}

struct OldElectric {
  const REAL* values;
  RS_MEMBER REAL operator()(int c, const int* at) const { return values[old_edge(c, at)]; }
};

struct NewElectric {
  const REAL* values;
  RS_MEMBER REAL operator()(int c, const int* at) const { return values[c * mesh::EDGES + mesh::edge_index(c, rs::arr<int, 3>{{at[0], at[1], at[2]}})]; }
};

// Advances the field on all faces by half a step; `work` holds electric fields meanwhile.
RS_FN void begin_transport(const REAL* faces, const REAL* block, REAL* half, REAL* work, const Three& rate) {
  EACH(n, 3 * OLD_EDGES) {
    const int c = n / OLD_EDGES, m = n % OLD_EDGES;
    const int at[3] = {m % AROUND_EDGES - 1, m / AROUND_EDGES % AROUND_EDGES - 1, m / (AROUND_EDGES * AROUND_EDGES) - 1};
    if (at[c] <= PATCH) work[n] = mean_electric(faces, block, c, at);
  }
  launch::barrier();
  const Three half_rate{{REAL(0.5) * rate.d[0], REAL(0.5) * rate.d[1], REAL(0.5) * rate.d[2]}};
  EACH(n, 3 * FACES) {
    constexpr int W = PATCH + 2 * ACROSS, L = PATCH + 1;
    const int c = n / FACES, f = n % FACES;
    const int at[3] = {c == 0 ? f % L : f % W - ACROSS, c == 0 ? f / L % W - ACROSS : c == 1 ? f / W % L : f / W % W - ACROSS,
                       c == 2 ? f / (W * W) : f / (L * W) - ACROSS};
    half[n] = circulated_face(gathered_face(faces, c, at), c, at, half_rate, OldElectric{work});
  }
  launch::barrier();
}

// Returns the electric field on an edge of the patch from the fluxes through the faces and the electric fields in the cells at it.
RS_FN REAL contact_electric(const REAL* flux, const REAL* in_cells, int c, const int* at) {
  const int a = (c + 1) % 3, b = (c + 2) % 3;
  int below_a[3] = {at[0], at[1], at[2]}, below_b[3] = {at[0], at[1], at[2]}, below_both[3] = {at[0], at[1], at[2]};
  below_a[a] -= 1;
  below_b[b] -= 1;
  below_both[a] -= 1;
  below_both[b] -= 1;
  const REAL *of_a = flux + a * GAS * FACES, *of_b = flux + b * GAS * FACES;
  const int a0 = face_at(a, below_b), a1 = face_at(a, at), b0 = face_at(b, below_a), b1 = face_at(b, at);
  typedef rs::arr<REAL, 2> Two;
  return hydro::transport::contact_electric_field<REAL>(
      Two{{-of_a[(5 + b) * FACES + a0], -of_a[(5 + b) * FACES + a1]}}, Two{{of_b[(5 + a) * FACES + b0], of_b[(5 + a) * FACES + b1]}},
      Two{{of_a[a0], of_a[a1]}}, Two{{of_b[b0], of_b[b1]}},
      rs::arr<REAL, 4>{{in_cells[c * LAYERED + layered(below_both)], in_cells[c * LAYERED + layered(below_b)],
                        in_cells[c * LAYERED + layered(below_a)], in_cells[c * LAYERED + layered(at)]}});
}

// Computes the electric fields on the edges of the patch, at `work`, and after them the new field on its faces, which it stores in the next
// bank; the electric fields go to the circulation registers.
RS_FN void transport(const Step& p, int row, const REAL* faces, const REAL* field, const REAL* flux, REAL* work, const Three& rate) {
  EACH(n, ELECTRIC) {
    const int c = n / mesh::EDGES;
    const rs::arr<int, 3> place = mesh::edge_place<PATCH>(c, n % mesh::EDGES);
    const int at[3] = {place.d[0], place.d[1], place.d[2]};
    work[n] = contact_electric(flux, field + 3 * FACES, c, at);
  }
  launch::barrier();
  EACH(n, 3 * mesh::FACES) {
    const int c = n / mesh::FACES, m = n % mesh::FACES, x = PATCH + (c == 0), y = PATCH + (c == 1);
    const int at[3] = {m % x, m / x % y, m / (x * y)};
    const REAL b = circulated_face(gathered_face(faces, c, at), c, at, rate, NewElectric{work});
    work[ELECTRIC + n] = b;
    p.field.next[(rs::i64)row * (3 * mesh::FACES) + n] = b;
  }
  mesh::store_circulations<3>(p.field.registers, row, work, mesh::EDGES);
  launch::barrier();
}

// Returns the field along axis d on the lower and the upper face of a cell; `field` is a row of a field on faces.
RS_FN rs::arr<REAL, 2> both_faces(const REAL* field, int d, int cell) {
  const int i = cell % PATCH, j = cell / PATCH % PATCH, k = cell / (PATCH * PATCH), x = PATCH + (d == 0), y = PATCH + (d == 1);
  const REAL* below = field + d * mesh::FACES + i + x * (j + y * k);
  return rs::arr<REAL, 2>{{below[0], below[d == 0 ? 1 : d == 1 ? x : x * y]}};
}

// Returns the mean of these two.
RS_FN REAL mean_field(const REAL* field, int d, int cell) {
  const rs::arr<REAL, 2> both = both_faces(field, d, cell);
  return ::nestar_kernels::mesh::means::mean2<REAL>(both.d[0], both.d[1]);
}

}  // namespace fluid
#endif
