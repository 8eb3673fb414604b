// Signal rates of changed patches, the largest rate of a level, and the cells that need first-order fluxes.

namespace rates {

using field::REAL;
namespace parameters = ::nestar_kernels::hydro::solver::device;
using mesh::CELLS;

// Rows per block.
constexpr int ROWS = 16;

}  // namespace rates

// Recomputes the signal rates of stale rows, or of all (infinite if a cell is unphysical), and finds the level's largest.
KERNEL(signal_rates, rates::parameters::RateParameters<field::REAL>) {
  using namespace rates;
  const auto inverse_dx = fluid::three(p.inverse_dx);
  const int first = launch::block() * ROWS, last = first + ROWS < p.count ? first + ROWS : p.count;
  for (int n = first; n < last; ++n) {
    const int row = p.rows[n];
    if (!p.all && !p.stale[row]) continue;
    const REAL* u = mesh::row_of(p.level, row);
    REAL largest = REAL(0);
    EACH(cell, CELLS) {
      const auto state = fluid::load_state(u, CELLS, cell);
      REAL rate;
      if constexpr (fluid::DUAL)
        rate = fluid::hydro::dual::checked_signal_rate<REAL>(fluid::with_energy(state), u[fluid::GAS * CELLS + cell], inverse_dx, fluid::gamma());
      else rate = fluid::checked_signal_rate(state, inverse_dx);
      largest = rs::max(largest, rate >= REAL(0) ? rate : rs::lim<REAL>::INFINITY_());
    }
    largest = launch::largest_of_block(largest);
    if (launch::thread() == 0) {
      p.rates[row] = largest;
      p.stale[row] = 0;
    }
    // all threads have read the stale flag
    launch::barrier();
  }
  launch::barrier();
  REAL largest = REAL(0);
  EACH(n, last - first) largest = rs::max(largest, p.rates[p.rows[first + n]]);
  largest = launch::largest_of_block(largest);
  if (launch::thread() == 0) launch::store_largest<REAL>((rs::lim<REAL>::U*)&p.status->largest_rate, largest);
}

// Adds the currently unphysical cells to those with first-order fluxes, and counts both.
KERNEL(collect_first_order, rates::parameters::CollectParameters) {
  for (int n = launch::block(); n < p.count; n += launch::blocks()) {
    const int row = p.rows[n];
    EACH(w, 16) {
      const unsigned bad = p.unphysical[row * 16 + w];
      const unsigned all = bad | (p.fresh ? 0u : p.first_order[row * 16 + w]);
      p.first_order[row * 16 + w] = all;
      unsigned bits = all, cells = 0;
      for (; bits; bits &= bits - 1) ++cells;
      if (cells) launch::atomic_add(&p.status->first_order, cells);
      if (bad) launch::atomic_add(&p.status->unphysical, 1u);
    }
  }
}
