// Moments of a right-hand side on the root level, and what its solver needs of the host: the twin of moments.rs. Follows coarse.cu.

namespace multigrid {

typedef ::nestar_kernels::multigrid::device::Moments<REAL> Moments;
typedef ::nestar_kernels::multigrid::device::Numbers<REAL> Numbers;
namespace moments = ::nestar_kernels::multigrid::moments;

constexpr int POWERS = 13;

// The sums of terms times so many powers of the coordinates of a patch along an axis.
RS_FN void sum_powers(const Moments& p, int row, int axis, rs::arr<double, 8>& terms, double* out, int count) {
  double at[PATCH];
  for (int n = 0; n < PATCH; ++n)
    at[n] = moments::coordinate(PATCH * p.index[(rs::i64)row * 4 + axis] + n, p.cells[axis], p.half[axis]);
  for (int power = 0; power < count; ++power) {
    out[power] = moments::sum_of_line(terms);
    for (int n = 0; n < PATCH; ++n) terms[n] = terms[n] * at[n];
  }
}

RS_FN double moments_of(const Moments& p, int row, int cell) {
  const REAL source = source_at(p.source, row, cell);
  return (double)(p.lag ? source + p.lag[(rs::i64)row * CELLS + cell] : source);
}

}  // namespace multigrid

// Without a factor the bits of the largest moment of a patch, else the sums of all moments as whole numbers behind it.
PATCH_KERNEL(root_moments, multigrid::Moments) {
  using namespace multigrid;
  SHARED double lines[PATCH * PATCH * POWERS], planes[PATCH * POWERS * POWERS];
  const int row = p.rows[launch::block()], order = p.order;
  EACH(n, PATCH * PATCH) {
    rs::arr<double, 8> terms;
    for (int i = 0; i < PATCH; ++i) terms[i] = moments_of(p, row, PATCH * n + i);
    sum_powers(p, row, 0, terms, lines + n * POWERS, order + 1);
  }
  launch::barrier();
  EACH(n, PATCH * (order + 1)) {
    const int z = n % PATCH, a = n / PATCH;
    rs::arr<double, 8> terms;
    for (int i = 0; i < PATCH; ++i) terms[i] = lines[(PATCH * z + i) * POWERS + a];
    sum_powers(p, row, 1, terms, planes + (z * POWERS + a) * POWERS, order - a + 1);
  }
  launch::barrier();
  rs::u64 largest = 0;
  EACH(n, (order + 1) * (order + 1)) {
    const int a = n % (order + 1), b = n / (order + 1);
    if (a + b > order) continue;
    rs::arr<double, 8> terms;
    for (int i = 0; i < PATCH; ++i) terms[i] = planes[(i * POWERS + a) * POWERS + b];
    double found[POWERS];
    sum_powers(p, row, 2, terms, found, order - a - b + 1);
    const int first = moments::first_moment(order, a, b);
    for (int c = 0; c <= order - a - b; ++c) {
      const rs::u64 bits = rs::to_bits(rs::abs(found[c]));
      largest = bits > largest ? bits : largest;
      if (p.factor != 0.0) launch::atomic_add(p.words + 1 + first + c, (rs::u64)(rs::i64)(found[c] * p.factor));
    }
  }
  if (p.factor == 0.0) {
    const rs::u64 most = launch::largest_word_of_block(largest);
    if (launch::thread() == 0) launch::atomic_max(p.words, most);
  }
}

// Takes the mean away from what the right-hand side stands for.
PATCH_KERNEL(root_shift, multigrid::Moments) {
  using namespace multigrid;
  const int row = p.rows[launch::block()];
  EACH(cell, CELLS) ((REAL*)p.source.density)[(rs::i64)row * CELLS + cell] = source_at(p.source, row, cell);
}

// Numbers of rows of one cell, for the host and from it.
KERNEL(root_gather, multigrid::Numbers) {
  EACH_CELL(1, n, cell, p.count) p.numbers[n] = (double)p.values[p.rows[n] + cell];
}
KERNEL(root_scatter, multigrid::Numbers) {
  EACH_CELL(1, n, cell, p.count) p.values[p.rows[n] + cell] = (multigrid::REAL)p.numbers[n];
}
