// Constrained transport of a field on faces: the twin of transport.rs. Follows states.cuh and circulations.cuh. Along an edge of axis C, A and B
// are the next two axes in cyclic order.

#if FACE_FIELD
namespace fluid {

// Values on the edges of a patch.
constexpr int ELECTRIC = 3 * mesh::EDGES;
// Edges at positions -1 to 9 along each axis.
constexpr int AROUND_EDGES = PATCH + 3;
constexpr int OLD_EDGES = AROUND_EDGES * AROUND_EDGES * AROUND_EDGES;

static_assert(ELECTRIC <= 3 * FACES && 3 * mesh::FACES <= GAS * LAYERED && 3 * OLD_EDGES <= GAS * LAYERED, "work space of the transport");

// A position in the patch.
struct Place {
  int at[3];
};

RS_FN Place place(const rs::arr<int, 3>& at) { return Place{{at.d[0], at.d[1], at.d[2]}}; }

// Returns the position `steps` cells further along axis D.
template<int D> RS_FN Place moved(Place place, int steps) {
  place.at[D] += steps;
  return place;
}

// Returns the field on the lower face normal to axis D of a cell, among the gathered faces.
template<int D> RS_FN REAL gathered_face(const REAL* faces, const Place& place) {
  constexpr int N = PATCH + 2 * GHOSTS, X = N + (D == 0), Y = N + (D == 1);
  return faces[D * GATHERED + (place.at[0] + GHOSTS) + X * ((place.at[1] + GHOSTS) + Y * (place.at[2] + GHOSTS))];
}

template<int C> RS_FN int old_edge(const Place& place) {
  return C * OLD_EDGES + (place.at[0] + 1) + AROUND_EDGES * ((place.at[1] + 1) + AROUND_EDGES * (place.at[2] + 1));
}

// Index of the lower face of a cell normal to axis D in an array of faces, without its axis.
template<int D> RS_FN int face_at(const Place& place) { return face_index<D>(place.at[0], place.at[1], place.at[2]); }

// Returns component v of the velocity of the four cells at an edge.
template<int C> RS_FN rs::arr<REAL, 4> velocities(const REAL* block, int v, const Place& place) {
  constexpr int A = (C + 1) % 3, B = (C + 2) % 3;
  const REAL* at = block + (1 + v) * BLOCK + in_block(place.at);
  return rs::arr<REAL, 4>{{at[-STEP<A> - STEP<B>], at[-STEP<B>], at[-STEP<A>], at[0]}};
}

// Returns the electric field on an edge from the velocities and fields before the step.
template<int C> RS_FN REAL mean_electric(const REAL* faces, const REAL* block, const Place& place) {
  constexpr int A = (C + 1) % 3, B = (C + 2) % 3;
  typedef rs::arr<REAL, 2> Two;
  return hydro::transport::mean_electric_field<REAL>(
      rs::arr<rs::arr<REAL, 4>, 2>{{velocities<C>(block, A, place), velocities<C>(block, B, place)}},
      Two{{gathered_face<A>(faces, moved<B>(place, -1)), gathered_face<A>(faces, place)}},
      Two{{gathered_face<B>(faces, moved<A>(place, -1)), gathered_face<B>(faces, place)}});
}

// Returns the field on a face normal to axis C after the circulation of electric fields, which `electric` returns for edges.
template<int C, class Electric> RS_FN REAL circulated_face(REAL u, const Place& place, const Three& rate, const Electric& electric) {
  constexpr int A = (C + 1) % 3, B = (C + 2) % 3;
  typedef rs::arr<REAL, 2> Two;
  return ::nestar_kernels::mesh::circulations::circulated<REAL>(
      u, Two{{electric.template on<A>(place), electric.template on<A>(moved<B>(place, 1))}},
      Two{{electric.template on<B>(place), electric.template on<B>(moved<A>(place, 1))}}, Two{{rate.d[A], rate.d[B]}});
}

struct OldElectric {
  const REAL* values;
  template<int C> RS_MEMBER REAL on(const Place& place) const { return values[old_edge<C>(place)]; }
};

struct NewElectric {
  const REAL* values;
  template<int C> RS_MEMBER REAL on(const Place& place) const {
    return values[C * mesh::EDGES + mesh::edge_index(C, rs::arr<int, 3>{{place.at[0], place.at[1], place.at[2]}})];
  }
};

template<int C> RS_FN void old_electric(const REAL* faces, const REAL* block, REAL* electric) {
  EACH(n, OLD_EDGES) {
    const Place place{{n % AROUND_EDGES - 1, n / AROUND_EDGES % AROUND_EDGES - 1, n / (AROUND_EDGES * AROUND_EDGES) - 1}};
    if (place.at[C] <= PATCH) electric[C * OLD_EDGES + n] = mean_electric<C>(faces, block, place);
  }
}

template<int C> RS_FN void half_field(const REAL* faces, REAL* field, const REAL* electric, const Three& half_rate) {
  EACH(f, FACES) {
    Place place;
    face_place<C>(f, place.at);
    field[C * FACES + f] = circulated_face<C>(gathered_face<C>(faces, place), place, half_rate, OldElectric{electric});
  }
}

// Advances the field on all faces by half a step. Electric fields stand in place of the states meanwhile.
RS_FN void begin_transport(const REAL* faces, const Scratch& s, const Three& rate) {
  old_electric<0>(faces, s.block, s.states);
  old_electric<1>(faces, s.block, s.states);
  old_electric<2>(faces, s.block, s.states);
  launch::barrier();
  const Three half_rate{{REAL(0.5) * rate.d[0], REAL(0.5) * rate.d[1], REAL(0.5) * rate.d[2]}};
  half_field<0>(faces, s.field, s.states, half_rate);
  half_field<1>(faces, s.field, s.states, half_rate);
  half_field<2>(faces, s.field, s.states, half_rate);
  launch::barrier();
}

// Returns the electric field along axis C in a cell after half a step, or before the step in the cells `flagged`.
template<int C> RS_FN REAL electric_in_cell(const Scratch& s, const Place& place, const unsigned* flagged) {
  constexpr int A = (C + 1) % 3, B = (C + 2) % 3;
  const int cell = layered(place.at);
  const bool before = flagged && (flagged[cell / 32] >> cell % 32 & 1);
  const REAL* w = before ? s.block + in_block(place.at) : s.states + cell;
  const int stride = before ? BLOCK : LAYERED;
  typedef rs::arr<REAL, 2> Two;
  return hydro::transport::electric_field_along<REAL>(Two{{w[(1 + A) * stride], w[(1 + B) * stride]}},
                                                      Two{{w[(FIRST_OF_FIELD + A) * stride], w[(FIRST_OF_FIELD + B) * stride]}});
}

// Returns the electric field on an edge of the patch from the fluxes through the faces and the electric fields in the cells at it.
template<int C> RS_FN REAL contact_electric(const Scratch& s, const Place& place, const Three& rate, const unsigned* flagged) {
  constexpr int A = (C + 1) % 3, B = (C + 2) % 3;
  const Place below_a = moved<A>(place, -1), below_b = moved<B>(place, -1), below_both = moved<A>(below_b, -1);
  const REAL *of_a = s.left + A * GAS * FACES, *of_b = s.left + B * GAS * FACES;
  const REAL *b_of_a = of_a + (FIRST_OF_FIELD + B) * FACES, *a_of_b = of_b + (FIRST_OF_FIELD + A) * FACES;
  const REAL* at = s.block + in_block(place.at);
  const int a0 = face_at<A>(below_b), a1 = face_at<A>(place), b0 = face_at<B>(below_a), b1 = face_at<B>(place);
  typedef rs::arr<REAL, 2> Two;
  return hydro::transport::contact_electric_field<REAL>(
      Two{{-b_of_a[a0], -b_of_a[a1]}}, Two{{a_of_b[b0], a_of_b[b1]}}, Two{{rate.d[A] * of_a[a0], rate.d[A] * of_a[a1]}},
      Two{{rate.d[B] * of_b[b0], rate.d[B] * of_b[b1]}},
      rs::arr<REAL, 4>{{electric_in_cell<C>(s, below_both, flagged), electric_in_cell<C>(s, below_b, flagged),
                        electric_in_cell<C>(s, below_a, flagged), electric_in_cell<C>(s, place, flagged)}},
      rs::arr<REAL, 4>{{at[-STEP<A> - STEP<B>], at[-STEP<B>], at[-STEP<A>], at[0]}});
}

template<int C> RS_FN void new_electric(const Scratch& s, REAL* electric, const Three& rate, const unsigned* flagged) {
  EACH(n, mesh::EDGES) electric[C * mesh::EDGES + n] = contact_electric<C>(s, place(mesh::edge_place<PATCH>(C, n)), rate, flagged);
}

template<int C> RS_FN void new_field(const REAL* faces, const REAL* electric, REAL* field, REAL* next, const Three& rate) {
  EACH(n, mesh::FACES) {
    Place place;
    face_place<C, 0>(n, place.at);
    const REAL b = circulated_face<C>(gathered_face<C>(faces, place), place, rate, NewElectric{electric});
    field[C * mesh::FACES + n] = b;
    next[C * mesh::FACES + n] = b;
  }
}

// Computes the electric fields on the edges of the patch, in place of the field after half a step, and then the new field on its faces, in
// place of the states and in the next bank. The electric fields go to the circulation registers.
RS_FN void transport(const Step& p, int row, const REAL* faces, const Scratch& s, const Three& rate, const unsigned* flagged) {
  REAL* electric = s.field;
  new_electric<0>(s, electric, rate, flagged);
  new_electric<1>(s, electric, rate, flagged);
  new_electric<2>(s, electric, rate, flagged);
  launch::barrier();
  REAL* next = p.field.next + (rs::i64)row * (3 * mesh::FACES);
  new_field<0>(faces, electric, s.states, next, rate);
  new_field<1>(faces, electric, s.states, next, rate);
  new_field<2>(faces, electric, s.states, next, rate);
  mesh::store_circulations<3>(p.field.registers, row, electric, mesh::EDGES);
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
