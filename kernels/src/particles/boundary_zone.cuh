// The coarse-fine boundary zone, and block sizes. Include after pages.cuh.

namespace particles {

// Cells of a block along an axis: a patch and its ghost layers.
constexpr int AROUND = 2, SIDE = mesh::PATCH + 2 * AROUND, BLOCK = SIDE * SIDE * SIDE;

// Returns whether a step along an axis leaves the domain.
RS_FN bool is_beyond(const int* near, int axis, int step) { return near[direction_along(axis, step)] == mesh::OUTSIDE; }
RS_FN bool is_wall(unsigned walls, int axis, int step) { return walls >> (2 * axis + (step > 0)) & 1; }

// Boundary zone of a patch, as in the host code. Directions are bits 0 to 26.
struct BoundaryZone {
  unsigned inner, outer;
  int cells;
};

// All threads of a block find the zone together; valid after a barrier. `zone` is in shared memory.
RS_FN void find_zone(BoundaryZone* zone, const args::HierarchyTables& tables, int row, int cells) {
  EACH(n, 1) *zone = BoundaryZone{0, 0, cells};
  launch::barrier();
  const int* near = around(tables, row);
  EACH(d, 27) {
    if (cells == 0 || d == mesh::SELF) continue;
    if (near[d] == mesh::COARSER) launch::atomic_or(&zone->inner, 1u << d);
    else if (near[d] >= 0 && !is_leaf(tables, near[d])) launch::atomic_or(&zone->outer, 1u << d);
  }
}

// Returns whether a cell is within `layers` cells of any of the directions, or outside the patch on that
// side.
RS_FN bool is_near(unsigned directions, int layers, const int* cell) {
  for (unsigned left = directions; left != 0; left &= left - 1) {
    const unsigned lowest = left & (~left + 1u);
    int d = 0;
    while (lowest >> d != 1u) ++d;
    const int step[3] = {d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1};
    bool near = true;
    for (int axis = 0; axis < 3; ++axis) {
      near = near && (step[axis] < 0 ? cell[axis] < layers : step[axis] > 0 ? cell[axis] >= mesh::PATCH - layers : true);
    }
    if (near) return true;
  }
  return false;
}
RS_FN bool is_inner(const BoundaryZone& zone, const int* cell) { return is_near(zone.inner, 2 * zone.cells, cell); }

}  // namespace particles
