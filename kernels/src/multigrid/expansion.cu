// Potential around an isolated domain by a multipole expansion, and its tables: device version of multipole.rs. Follows
// moments.cu.

namespace multigrid {

typedef ::nestar_kernels::multigrid::device::ExteriorTableParameters<REAL> Around;
namespace expansion = ::nestar_kernels::multigrid::expansion;

// Evaluates the expansion at a position relative to its centre; derivatives of the latest three powers of x are kept.
RS_FN double expanded(const Around& p, const rs::arr<double, 3>& x) {
  double kept[3][2][POWERS];
  const double square = ::nestar_device::math::sums::sum3<double>(x[0] * x[0], x[1] * x[1], x[2] * x[2]);
  const double inverse = 1.0 / (square > p.nearest ? square : p.nearest);
  const double* term = p.terms;
  double found = 0.0;
  for (int a = 0; a <= p.order; ++a)
    for (int c = 0; c < 2 && a + c <= p.order; ++c)
      for (int b = 0; a + c + b <= p.order; ++b, term += 3) {
        double value = rs::sqrt(inverse);
        if (a + b + c > 0) {
          rs::arr<double, 3> one, two;
          one[0] = a > 0 ? kept[(a + 2) % 3][c][b] : 0.0;
          one[1] = b > 0 ? kept[a % 3][c][b - 1] : 0.0;
          one[2] = c > 0 ? kept[a % 3][0][b] : 0.0;
          two[0] = a > 1 ? kept[(a + 1) % 3][c][b] : 0.0;
          two[1] = b > 1 ? kept[a % 3][c][b - 2] : 0.0;
          two[2] = 0.0;
          value = expansion::next_derivative(inverse, x, one, two, term[1], term[2]);
        }
        kept[a % 3][c][b] = value;
        found = found + term[0] * value;
      }
  return found;
}

}  // namespace multigrid

// Evaluates the expansion.
KERNEL(root_expand, multigrid::Around) {
  using namespace multigrid;
  EACH_CELL(1, n, cell, p.count) {
    const int place = p.first + n + cell;
    const rs::arr<int, 3> at = expansion::exterior_cell(p.cells, place);
    rs::arr<double, 3> x;
    for (int axis = 0; axis < 3; ++axis) x[axis] = moments::coordinate(at[axis], p.cells[axis], p.half[axis]) - p.centre[axis];
    p.values[place] = expanded(p, x);
  }
}

// Fills the tables: values, then spline coefficients.
KERNEL(root_tabulate, multigrid::Around) {
  using namespace multigrid;
  EACH_CELL(1, n, cell, p.count) {
    const rs::arr<int, 3> at = expansion::place_of_entry(p.cells, n + cell);
    const double* value = p.values + at[0];
    const int steps[3] = {at[1], 1, at[2]};
    rs::arr<double, 6> beside;
    for (int axis = 0; axis < 3; ++axis) {
      beside[2 * axis] = value[-steps[axis]];
      beside[2 * axis + 1] = value[steps[axis]];
    }
    p.table[n] = (REAL)*value;
    p.table[p.count + n] = (REAL)expansion::spline_coefficient(*value, beside);
  }
}
