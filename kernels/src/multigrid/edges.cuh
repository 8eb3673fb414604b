// A patch with the values outside its faces and edges: device version of edges.rs. Follows ghost_values.cuh.

namespace multigrid {

// Sets a coordinate to the position outside a face; called twice for an edge.
RS_FN void across(int face, int* at) { at[face / 2] = face % 2 == 0 ? -1 : PATCH; }
RS_FN int direction_through(int face, int other) {
  int step[3] = {0, 0, 0};
  step[face / 2] = face % 2 == 0 ? -1 : 1;
  step[other / 2] = other % 2 == 0 ? -1 : 1;
  return direction(step[0], step[1], step[2]);
}

// Value of a cell of the patch beside a row.
RS_FN REAL value_beside(const GatherView& v, const Source& source, REAL width, int row, int beside, int cell) {
  const REAL value = v.level[(rs::i64)beside * CELLS + cell];
  const bool covered = v.first_child[beside] != mesh::LEAF && v.first_child[row] == mesh::LEAF;
  return covered ? value - stencil::average_excess<REAL>(source_at(source, beside, cell), width) : value;
}

// Value outside a face of a row, beside a cell at the face.
RS_FN REAL value_outside(const GatherView& v, const Exterior& e, const Source& source, const Three& width, int row, int cell, int face) {
  const int beside = v.neighbours[(rs::i64)row * AROUND + mesh::face_direction(face)];
  const int far = (PATCH - 1) * power(PATCH, face / 2);
  return beside >= 0 ? value_beside(v, source, width[face / 2], row, beside, face % 2 == 0 ? cell + far : cell - far)
                     : face_ghost(v, e, row, cell, face);
}

// Coarse cell that contains a position, relative to the parent of a row.
RS_FN void coarse_around(const GatherView& v, int row, const int* at, int* to) {
  for (int axis = 0; axis < 3; ++axis) to[axis] = HALF * (v.index[(rs::i64)row * 4 + axis] & 1) + floor_div(at[axis], 2);
}

// Ghost value outside a face of the patch beside a row, where the level has no patch.
RS_FN REAL ghost_beside_patch(const GatherView& v, const Exterior& e, int row, int beside, const int* at, int face) {
  const int axis = face / 2, up = face % 2 == 0 ? -1 : 1;
  int middle[3], one[3] = {at[0], at[1], at[2]}, two[3] = {at[0], at[1], at[2]};
  coarse_around(v, row, at, middle);
  const auto values = plane_values(coarser_level(v, e, row), v.parent[row], middle, axis);
  const REAL plane = stencil::interpolate_in_plane<REAL>(values, at[(axis + 1) % 3] & 1, at[(axis + 2) % 3] & 1);
  one[axis] -= up;
  two[axis] -= 2 * up;
  const REAL* own = v.level + (rs::i64)beside * CELLS;
  return stencil::laplacian_ghost<REAL>(plane, rs::arr<REAL, 2>{{own[cell_at(one)], own[cell_at(two)]}});
}

// Value at a position that a patch of the level touches only across an edge.
RS_FN REAL corner_ghost(const GatherView& v, const Exterior& e, int row, const int* at, int along) {
  Three planes;
  for (int n = 0; n < 3; ++n) {
    int middle[3];
    coarse_around(v, row, at, middle);
    middle[along] += n - 1;
    const auto values = plane_values(coarser_level(v, e, row), v.parent[row], middle, along);
    planes[n] = stencil::interpolate_in_plane<REAL>(values, at[(along + 1) % 3] & 1, at[(along + 2) % 3] & 1);
  }
  return ::nestar_kernels::multigrid::edges::across_planes<REAL>(planes, at[along] & 1);
}

// Value outside the edge between two faces, as a neighbour in the plane outside the first.
RS_NOINLINE REAL edge_ghost(const GatherView& v, const Exterior& e, const Source& source, const Three& width, int row, int face, int other, const int* at) {
  const int* beside = v.neighbours + (rs::i64)row * AROUND;
  const int both = beside[direction_through(face, other)];
  if (both >= 0) return value_beside(v, source, width[other / 2], row, both, cell_at(at));
  const int mirrors = mirrors_beside(e, v.index, v.index[(rs::i64)row * 4 + 3], row) & (1 << face | 1 << other);
  if (mirrors) {
    int to[3] = {at[0], at[1], at[2]};
    for (int axis = 0; axis < 3; ++axis) to[axis] = to[axis] < 0 ? 0 : to[axis] >= PATCH ? PATCH - 1 : to[axis];
    const int cell = cell_at(to), left = (1 << face | 1 << other) & ~mirrors;
    if (left == 0) return v.level[(rs::i64)row * CELLS + cell];
    return value_outside(v, e, source, width, row, cell, left == 1 << face ? face : other);
  }
  if (v.index[(rs::i64)row * 4 + 3] == 0) return exterior_value(e, v.index, 0, row, at);
  const int first = beside[mesh::face_direction(face)], second = beside[mesh::face_direction(other)];
  if (first >= 0) return ghost_beside_patch(v, e, row, first, at, other);
  if (second >= 0) return ghost_beside_patch(v, e, row, second, at, face);
  return corner_ghost(v, e, row, at, 3 - face / 2 - other / 2);
}

// A patch with the values outside its faces and edges, for shared memory.
struct EdgeTile {
  Tile<1> tile;
  // Values outside edges: by face, by the four faces beside it (the next axis first, lower before upper), and along the
  // edge.
  REAL rims[6 * 4 * PATCH];

  // Index of the values beside `other` in the plane outside `face`.
  static RS_MEMBER int rim(int face, int other) {
    const int turn = (other / 2 - face / 2 + 3) % 3 - 1;
    return (4 * face + 2 * turn + other % 2) * PATCH;
  }
  // Neighbour through `other` of a cell in a plane normal to an axis; the plane may be one outside the patch.
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
RS_FN void fill_edge_tile(EdgeTile& to, const GatherView& v, const Exterior& e, const Source& source, const Three& width, int row) {
  fill_inside(to.tile, v, row);
  EACH(i, 6 * PATCH * PATCH) {
    const int face = i / (PATCH * PATCH), cell = at_face(face, i % (PATCH * PATCH));
    to.tile.values[Tile<1>::ghost(cell, face, 1)] = value_outside(v, e, source, width, row, cell, face);
  }
  EACH(i, 6 * 4 * PATCH) {
    const int face = i / (4 * PATCH), beside = i / PATCH % 4;
    const int other = 2 * ((face / 2 + 1 + beside / 2) % 3) + beside % 2;
    int at[3];
    across(face, at);
    across(other, at);
    at[3 - face / 2 - other / 2] = i % PATCH;
    to.rims[i] = edge_ghost(v, e, source, width, row, face, other, at);
  }
  launch::barrier();
}

}  // namespace multigrid
