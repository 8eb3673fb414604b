// A patch with the values through its faces and beyond its edges: the twin of edges.rs. Follows ghost_values.cuh.

namespace multigrid {

// The place across one face, or across two.
RS_FN void across(int face, int* at) { at[face / 2] = face % 2 == 0 ? -1 : PATCH; }
RS_FN int direction_through(int face, int other) {
  int step[3] = {0, 0, 0};
  step[face / 2] = face % 2 == 0 ? -1 : 1;
  step[other / 2] = other % 2 == 0 ? -1 : 1;
  return direction(step[0], step[1], step[2]);
}

// The value in a cell of the patch beside a row.
RS_FN REAL value_beside(const GatherView& v, const Source& source, REAL width, int row, int beside, int cell) {
  const REAL value = v.level[(rs::i64)beside * CELLS + cell];
  const bool covered = v.first_child[beside] != mesh::LEAF && v.first_child[row] == mesh::LEAF;
  return covered ? value - stencil::lift<REAL>(source_at(source, beside, cell), width) : value;
}

// The coarse cell around a place, as seen from the parent of a row.
RS_FN void coarse_around(const GatherView& v, int row, const int* at, int* to) {
  for (int axis = 0; axis < 3; ++axis) to[axis] = HALF * (v.index[(rs::i64)row * 4 + axis] & 1) + floor_div(at[axis], 2);
}

// The value at a place beyond a face of the patch beside a row, beyond which the level has no patch.
RS_FN REAL through_another(const GatherView& v, const Exterior& e, int row, int beside, const int* at, int face) {
  const int axis = face / 2, up = face % 2 == 0 ? -1 : 1;
  int middle[3], one[3] = {at[0], at[1], at[2]}, two[3] = {at[0], at[1], at[2]};
  coarse_around(v, row, at, middle);
  const auto values = plane_values(below(v, e, row), v.parent[row], middle, axis);
  const REAL plane = stencil::in_plane<REAL>(values, at[(axis + 1) % 3] & 1, at[(axis + 2) % 3] & 1);
  one[axis] -= up;
  two[axis] -= 2 * up;
  const REAL* own = v.level + (rs::i64)beside * CELLS;
  return stencil::through_face<REAL>(plane, rs::arr<REAL, 2>{{own[cell_at(one)], own[cell_at(two)]}});
}

// The value at a place that no patch of the level touches but across an edge along an axis.
RS_FN REAL in_corner(const GatherView& v, const Exterior& e, int row, const int* at, int along) {
  Three planes;
  for (int n = 0; n < 3; ++n) {
    int middle[3];
    coarse_around(v, row, at, middle);
    middle[along] += n - 1;
    const auto values = plane_values(below(v, e, row), v.parent[row], middle, along);
    planes[n] = stencil::in_plane<REAL>(values, at[(along + 1) % 3] & 1, at[(along + 2) % 3] & 1);
  }
  return ::nestar_kernels::multigrid::edges::across_planes<REAL>(planes, at[along] & 1);
}

// The value at a place beyond the edge between two faces, seen across the normal from the plane through the first.
RS_NOINLINE REAL beyond_edge(const GatherView& v, const Exterior& e, const Source& source, const Three& width, int row, int face, int other, const int* at) {
  const int* beside = v.neighbours + (rs::i64)row * AROUND;
  const int both = beside[direction_through(face, other)];
  if (both >= 0) return value_beside(v, source, width[other / 2], row, both, cell_at(at));
  if (v.index[(rs::i64)row * 4 + 3] == 0) return outside(e, v.index, 0, row, at);
  const int first = beside[mesh::face_direction(face)], second = beside[mesh::face_direction(other)];
  if (first >= 0) return through_another(v, e, row, first, at, other);
  if (second >= 0) return through_another(v, e, row, second, at, face);
  return in_corner(v, e, row, at, 3 - face / 2 - other / 2);
}

// A patch with what stands through its faces and beyond its edges, for shared memory.
struct Edged {
  Tile<1> tile;
  // By face, by the four faces beside it, lower axes first as they follow the face's, and along the edge.
  REAL rims[6 * 4 * PATCH];

  // The rim beside `other` of the plane through `face`.
  static RS_MEMBER int rim(int face, int other) {
    const int turn = (other / 2 - face / 2 + 3) % 3 - 1;
    return (4 * face + 2 * turn + other % 2) * PATCH;
  }
  // The value in a cell beside one in a plane normal to an axis, through `other`; the plane may stand one beyond the patch.
  RS_MEMBER REAL beside(const int* at, int axis, int other) const {
    const int there = at[other / 2] + (other % 2 == 0 ? -1 : 1);
    const bool out = at[axis] < 0 || at[axis] >= PATCH;
    if (out && (there < 0 || there >= PATCH)) return rims[rim(2 * axis + (at[axis] > 0), other) + at[3 - axis - other / 2]];
    int to[3] = {at[0], at[1], at[2]};
    to[other / 2] = there;
    return own(to);
  }
  RS_MEMBER REAL own(const int* at) const {
    return tile.values[at[0] + 1 + Tile<1>::SIDE * (at[1] + 1 + Tile<1>::SIDE * (at[2] + 1))];
  }
};

// Ends with a barrier.
RS_FN void fill_edged(Edged& to, const GatherView& v, const Exterior& e, const Source& source, const Three& width, int row) {
  fill_inside(to.tile, v, row);
  EACH(i, 6 * PATCH * PATCH) {
    const int face = i / (PATCH * PATCH), cell = at_face(face, i % (PATCH * PATCH));
    const int beside = v.neighbours[(rs::i64)row * AROUND + mesh::face_direction(face)];
    const int far = (PATCH - 1) * power(PATCH, face / 2);
    to.tile.values[Tile<1>::beyond(cell, face, 1)] = beside >= 0
        ? value_beside(v, source, width[face / 2], row, beside, face % 2 == 0 ? cell + far : cell - far)
        : through(v, e, row, cell, face);
  }
  EACH(i, 6 * 4 * PATCH) {
    const int face = i / (4 * PATCH), beside = i / PATCH % 4;
    const int other = 2 * ((face / 2 + 1 + beside / 2) % 3) + beside % 2;
    int at[3];
    across(face, at);
    across(other, at);
    at[3 - face / 2 - other / 2] = i % PATCH;
    to.rims[i] = beyond_edge(v, e, source, width, row, face, other, at);
  }
  launch::barrier();
}

}  // namespace multigrid
