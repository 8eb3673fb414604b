// What refinement criteria read on the device, and the criteria that look at more than one cell: the twin of mod.rs.
// Follows the gather of the mesh.

namespace criteria {

using field::REAL;
using mesh::CELLS;
using mesh::COMPONENTS;
using mesh::PATCH;
namespace cell = ::nestar_kernels::criteria::cell;
typedef ::nestar_kernels::criteria::device::FlagLevel Level;

// A patch with two layers of ghost cells.
constexpr int GHOSTS = 2, WIDTH = PATCH + 2 * GHOSTS, BLOCK = WIDTH * WIDTH * WIDTH;

// A cell of the level: x, y, z count from the domain's lower edges.
struct Place {
  const mesh::View& view;
  const Level& level;
  int x, y, z;
  RS_MEMBER double centre(int axis) const {
    const int i = axis == 0 ? x : axis == 1 ? y : z;
    return mesh::cell_centre(i, view.domain_cells[axis], view.left[axis], view.right[axis]);
  }
  RS_MEMBER rs::arr<double, 3> centre() const { return rs::arr<double, 3>{{centre(0), centre(1), centre(2)}}; }
  RS_MEMBER rs::arr<double, 3> widths() const { return level.widths; }
  RS_MEMBER double radius() const {
    const rs::arr<double, 3> c = centre();
    return rs::sqrt(::nestar_device::math::sums::sum3<double>(c[0] * c[0], c[1] * c[1], c[2] * c[2]));
  }
  // Leaves the fault of a formula that is not a number here.
  RS_MEMBER void check(REAL value, unsigned* fault, unsigned code) const {
    if (value == value) return;
    const rs::arr<double, 3> c = centre();
    launch::leave_fault(fault, code, c.d, view.time);
  }
};

typedef rs::arr<REAL, 2> Two;
typedef rs::arr<REAL, 4> Four;
typedef rs::arr<REAL, 3> Three;

// The values `step` behind and ahead of a cell of a field.
RS_FN Two pair(const REAL* f, int step) { return Two{{f[-step], f[step]}}; }
// The values one cell away along both of two axes.
RS_FN Four corners(const REAL* f, int a, int b) { return Four{{f[-a - b], f[a - b], f[b - a], f[a + b]}}; }

// `f` is a field at the cell asked for.
RS_FN REAL relative_gradient(const REAL* f) {
  return cell::relative_gradient<REAL>(*f, pair(f, 1), pair(f, WIDTH), pair(f, WIDTH * WIDTH));
}

RS_FN REAL lohner_error(const REAL* f, REAL filter) {
  constexpr int X = 1, Y = WIDTH, Z = WIDTH * WIDTH;
  return cell::lohner_error<REAL>(*f, pair(f, 2 * X), pair(f, 2 * Y), pair(f, 2 * Z), corners(f, X, Y),
                                  corners(f, X, Z), corners(f, Y, Z), filter);
}

// `x`, `y`, `z` are the components of the velocity at the cell.
RS_FN REAL relative_vorticity(const REAL* x, const REAL* y, const REAL* z, const Level& l) {
  constexpr int X = 1, Y = WIDTH, Z = WIDTH * WIDTH;
  const Two along_x = {{y[X] - y[-X], z[X] - z[-X]}};
  const Two along_y = {{x[Y] - x[-Y], z[Y] - z[-Y]}};
  const Two along_z = {{x[Z] - x[-Z], y[Z] - y[-Z]}};
  const Three widths = {{(REAL)l.widths[0], (REAL)l.widths[1], (REAL)l.widths[2]}};
  return cell::relative_vorticity<REAL>(Three{{*x, *y, *z}}, along_x, along_y, along_z, widths);
}

}  // namespace criteria
