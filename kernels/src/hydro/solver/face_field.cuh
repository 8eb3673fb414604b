// Functions of gas with a magnetic field on faces: the twin of WithFaceField in law.rs. The text before this file defines State, law() and
// riemann(). The magnetic functions take a cleaning variable and a cleaning speed, which are 0.

namespace fluid {

typedef rs::arr<field::REAL, 9> Cleaned;
RS_FN Cleaned cleaned(const State& u) { return ::nestar_kernels::hydro::transport::with_cleaning<field::REAL>(u); }
RS_FN State uncleaned(const Cleaned& u) { return ::nestar_kernels::hydro::transport::without_cleaning<field::REAL>(u); }

// The primitive variable that determines the pressure.
constexpr int PRESSURE = 4;

RS_FN field::REAL pressure_of(field::REAL variable) { return variable; }

constexpr bool HAS_REMAINDER = true;
RS_FN State remainder(const State& u) { return ::nestar_kernels::hydro::transport::remainder<field::REAL>(u); }

RS_FN State damped(const State& u, field::REAL) { return u; }

RS_FN State primitive(const State& u) {
  return uncleaned(::nestar_kernels::hydro::magnetic::primitive_from_conserved<field::REAL>(cleaned(u), law().d[0]));
}

RS_FN field::REAL checked_signal_rate(const State& u, const rs::arr<field::REAL, 3>& inverse_dx) {
  return ::nestar_kernels::hydro::magnetic::checked_signal_rate<field::REAL>(cleaned(u), inverse_dx, law().d[0]);
}

RS_FN field::REAL checked_signal_rate_from_internal(const State& u, field::REAL internal, const rs::arr<field::REAL, 3>& inverse_dx) {
  return ::nestar_kernels::hydro::magnetic::checked_signal_rate_from_internal<field::REAL>(cleaned(u), internal, inverse_dx, law().d[0]);
}

RS_FN State flux_hlle(const State& l, const State& r, field::REAL) {
  return uncleaned(::nestar_kernels::hydro::riemann::magnetic::flux_hlle<field::REAL>(cleaned(l), cleaned(r), numbers()));
}

RS_FN State flux_smoothed(const State& l, const State& r, field::REAL) {
  return uncleaned(::nestar_kernels::hydro::riemann::magnetic::flux_smoothed<field::REAL>(cleaned(l), cleaned(r), numbers()));
}

RS_FN State half_step(const State& w, const rs::arr<State, 3>& half, const rs::arr<field::REAL, 3>& rate, field::REAL) {
  const rs::arr<Cleaned, 3> all{{cleaned(half.d[0]), cleaned(half.d[1]), cleaned(half.d[2])}};
  return uncleaned(::nestar_kernels::hydro::magnetic::half_step<field::REAL>(cleaned(w), all, rate, numbers()));
}

RS_FN rs::tup<State, State> both_uncleaned(const rs::tup<Cleaned, Cleaned>& both) {
  return rs::tup<State, State>{uncleaned(both._0), uncleaned(both._1)};
}

RS_FN rs::tup<State, State> edges_of(const State& w, const State& h, const State& lower, const State& upper) {
  return both_uncleaned(
      ::nestar_kernels::hydro::magnetic::edges<field::REAL>(cleaned(w), cleaned(h), cleaned(lower), cleaned(upper)));
}

RS_FN rs::tup<State, State> traced_edges(const State& w, const State& h, const State& lower, const State& upper, field::REAL rate,
                                         field::REAL) {
  return both_uncleaned(::nestar_kernels::hydro::magnetic::traced_edges<field::REAL>(cleaned(w), cleaned(h), cleaned(lower),
                                                                                     cleaned(upper), rate, numbers()));
}

}  // namespace fluid
