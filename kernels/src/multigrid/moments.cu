// Moments of a right-hand side on the root level: device version of moments.rs. Follows coarse.cu.

namespace multigrid {

typedef ::nestar_kernels::multigrid::device::MomentsParameters<REAL> Moments;
namespace moments = ::nestar_kernels::multigrid::moments;

constexpr int POWERS = 13, MOMENTS = 455;

// Sums terms times `count` powers of the coordinates of a patch along an axis.
RS_FN void sum_powers(const Moments& p, int row, int axis, rs::arr<double, 8>& terms, double* out, int count) {
  double at[PATCH];
  for (int n = 0; n < PATCH; ++n)
    at[n] = moments::coordinate(PATCH * p.index[(rs::i64)row * 4 + axis] + n, p.cells[axis], p.half[axis]);
  for (int power = 0; power < count; ++power) {
    out[power] = moments::sum_of_line(terms);
    for (int n = 0; n < PATCH; ++n) terms[n] = terms[n] * at[n];
  }
}

// Source of the moments; without a factor its absolute value.
RS_FN double moments_of(const Moments& p, int row, int cell) {
  const REAL source = source_at(p.source, row, cell);
  const double value = (double)(p.tau ? source + p.tau[(rs::i64)row * CELLS + cell] : source);
  return p.factor == 0.0 ? rs::abs(value) : value;
}

// Sums over lines along x, then over planes.
RS_FN void sum_planes(const Moments& p, int row, double* lines, double* planes) {
  EACH(n, PATCH * PATCH) {
    rs::arr<double, 8> terms;
    for (int i = 0; i < PATCH; ++i) terms[i] = moments_of(p, row, PATCH * n + i);
    sum_powers(p, row, 0, terms, lines + n * POWERS, p.order + 1);
  }
  launch::barrier();
  EACH(n, PATCH * (p.order + 1)) {
    const int z = n % PATCH, a = n / PATCH;
    rs::arr<double, 8> terms;
    for (int i = 0; i < PATCH; ++i) terms[i] = lines[(PATCH * z + i) * POWERS + a];
    sum_powers(p, row, 1, terms, planes + (z * POWERS + a) * POWERS, p.order - a + 1);
  }
  launch::barrier();
}

}  // namespace multigrid

// Without a factor the bits of the largest sum of absolute values over a patch, otherwise the fixed-point sums of all
// moments after it. A block first sums several patches by itself, because atomic additions of all blocks to one address
// are slow.
PATCH_KERNEL(root_moments, multigrid::Moments) {
  using namespace multigrid;
  SHARED double lines[PATCH * PATCH * POWERS], planes[PATCH * POWERS * POWERS];
  SHARED rs::u64 sums[MOMENTS];
  rs::u64 largest = 0;
  EACH(n, MOMENTS) sums[n] = 0;
  for (int patch = launch::block() * p.each; patch < (launch::block() + 1) * p.each && patch < p.count; ++patch) {
    const int row = p.rows[patch];
    sum_planes(p, row, lines, planes);
    EACH(n, (p.order + 1) * (p.order + 1)) {
      const int a = n % (p.order + 1), b = n / (p.order + 1);
      if (a + b > p.order) continue;
      rs::arr<double, 8> terms;
      for (int i = 0; i < PATCH; ++i) terms[i] = planes[(i * POWERS + a) * POWERS + b];
      double found[POWERS];
      sum_powers(p, row, 2, terms, found, p.order - a - b + 1);
      const int first = moments::first_moment(p.order, a, b);
      for (int c = 0; c <= p.order - a - b; ++c) {
        const rs::u64 bits = rs::to_bits(rs::abs(found[c]));
        largest = bits > largest ? bits : largest;
        sums[first + c] += (rs::u64)(rs::i64)(found[c] * p.factor);
      }
    }
  }
  if (p.factor == 0.0) {
    const rs::u64 most = launch::largest_word_of_block(largest);
    if (launch::thread() == 0) launch::atomic_max(p.words, most);
    return;
  }
  launch::barrier();
  EACH(n, MOMENTS) if (sums[n] != 0) launch::atomic_add(p.words + 1 + n, sums[n]);
}

// Subtracts the mean from the values.
PATCH_KERNEL(root_shift, multigrid::Moments) {
  using namespace multigrid;
  const int row = p.rows[launch::block()];
  EACH(cell, CELLS) ((REAL*)p.source.density)[(rs::i64)row * CELLS + cell] = source_at(p.source, row, cell);
}
