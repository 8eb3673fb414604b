// Signal rates of changed patches, the largest rate of a level, the cells that need first-order fluxes, and the means of a field on faces.

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
        rate = fluid::checked_signal_rate_from_internal(state, u[fluid::GAS * CELLS + cell], inverse_dx);
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

#if FACE_FIELD
namespace rates {

// Returns true if gas with a new field at the same total energy would have no pressure, or take its pressure from the internal energy.
RS_FN bool loses_pressure(const fluid::State& now, const REAL* u, int cell) {
  if constexpr (fluid::DUAL) {
    const rs::arr<REAL, 2> thresholds{{REAL(0), fluid::thresholds().d[3]}};
    const REAL energy = fluid::hydro::dual::reconciled_energy<REAL>(fluid::with_energy(now), u[fluid::GAS * CELLS + cell],
                                                                    fluid::remainder(now).d[fluid::PRESSURE], thresholds);
    return energy != now.d[fluid::PRESSURE];
  }
  return !::nestar_kernels::hydro::transport::is_physical<REAL>(now);
}

}  // namespace rates

// Gives the cells of rows the means of the field over their faces, at the same total energy. A row with a cell that would lose its pressure is
// left as it is, and counted. One block per row.
KERNEL(update_cell_fields, rates::parameters::CellFieldParameters<field::REAL>) {
  using namespace rates;
  namespace transport = ::nestar_kernels::hydro::transport;
  const int n = launch::block(), row = p.rows[n];
  REAL* u = mesh::row_of(p.gas, row);
  const REAL* faces = p.faces + (rs::i64)row * (3 * mesh::FACES);
  bool lost = false;
  for (int pass = 0; pass < 2; ++pass) {
    EACH(cell, CELLS) {
      const fluid::Three means{{fluid::mean_field(faces, 0, cell), fluid::mean_field(faces, 1, cell), fluid::mean_field(faces, 2, cell)}};
      const fluid::State now = transport::with_field<REAL>(fluid::load_state(u, CELLS, cell), means);
      if (pass == 0) lost = lost || rates::loses_pressure(now, u, cell);
      else RS_UNROLL for (int v = 4; v < 8; ++v) u[v * CELLS + cell] = now.d[v];
    }
    if (pass == 0) {
      lost = launch::any_of_block(lost);
      if (launch::thread() == 0) {
        p.left[n] = lost;
        p.stale[row] = 1;
      }
      if (lost) return;
    }
  }
}

// Finds the largest divergence of the field times the smallest cell width, and the largest field on a face; infinity for what is not a number.
// One block per row.
KERNEL(face_extremes, rates::parameters::ExtremesParameters<field::REAL>) {
  using namespace rates;
  const REAL* faces = p.faces + (rs::i64)p.rows[launch::block()] * (3 * mesh::FACES);
  double divergence = 0, strength = 0;
  EACH(cell, CELLS) {
    double through[3];
    for (int d = 0; d < 3; ++d) {
      const rs::arr<REAL, 2> both = fluid::both_faces(faces, d, cell);
      through[d] = ((double)both.d[1] - (double)both.d[0]) * p.part[d];
    }
    const double found = rs::abs((through[0] + through[1]) + through[2]);
    divergence = found <= divergence ? divergence : found < rs::lim<double>::INFINITY_() ? found : rs::lim<double>::INFINITY_();
  }
  EACH(n, 3 * mesh::FACES) {
    const double found = rs::abs((double)faces[n]);
    strength = found <= strength ? strength : found < rs::lim<double>::INFINITY_() ? found : rs::lim<double>::INFINITY_();
  }
  divergence = launch::largest_of_block(divergence);
  strength = launch::largest_of_block(strength);
  if (launch::thread() == 0) {
    launch::store_largest<double>((rs::u64*)p.largest, divergence);
    launch::store_largest<double>((rs::u64*)p.largest + 1, strength);
  }
}
#endif
