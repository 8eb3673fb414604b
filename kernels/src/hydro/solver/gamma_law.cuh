// Functions of the law of ideal gas: the twin of GammaLaw in law.rs. The text before this file defines State, law() and riemann(). The cleaning speed of magnetised gas is not used.

namespace fluid {

// The primitive variable that determines the pressure.
constexpr int PRESSURE = 4;
typedef rs::arr<field::REAL, 4> WaveBasis;

RS_FN field::REAL pressure_of(field::REAL variable) { return variable; }

RS_FN State primitive(const State& u) { return ::nestar_kernels::hydro::eos::primitive_from_conserved<field::REAL>(u, law().d[0]); }

RS_FN field::REAL checked_signal_rate(const State& u, const rs::arr<field::REAL, 3>& inverse_dx) {
  return ::nestar_kernels::hydro::eos::checked_signal_rate<field::REAL>(u, inverse_dx, law().d[0]);
}

RS_FN field::REAL checked_signal_rate_from_internal(const State& u, field::REAL internal, const rs::arr<field::REAL, 3>& inverse_dx) {
  return ::nestar_kernels::hydro::dual::checked_signal_rate<field::REAL>(u, internal, inverse_dx, law().d[0]);
}

RS_FN State flux_hlle(const State& l, const State& r, field::REAL) {
  return ::nestar_kernels::hydro::riemann::hlle::flux_hlle<field::REAL>(l, r, law().d[0]);
}

RS_FN State flux_smoothed(const State& l, const State& r, field::REAL) {
  return ::nestar_kernels::hydro::riemann::hlle::flux_smoothed<field::REAL>(l, r, law().d[0]);
}

RS_FN State half_step(const State& w, const rs::arr<State, 3>& half, const rs::arr<field::REAL, 3>& rate, field::REAL) {
  return ::nestar_kernels::hydro::hancock::half_step<field::REAL>(w, half, rate, law().d[0]);
}

RS_FN State half_step_along(const State& w, const State& half, field::REAL rate) {
  return ::nestar_kernels::hydro::hancock::half_step_along<field::REAL>(w, half, rate, law().d[0]);
}

RS_FN State corrected(const State& w, const State& change) {
  return ::nestar_kernels::hydro::hancock::corrected<field::REAL>(w, change, law().d[0]);
}

RS_FN State predicted(const State& u, const State& old) {
  return ::nestar_kernels::hydro::hancock::predicted<field::REAL>(u, old, law().d[0]);
}

RS_FN rs::tup<State, State> edges_of(const State& w, const State& h, const State& lower, const State& upper) {
  return ::nestar_kernels::hydro::hancock::edges<field::REAL>(w, h, lower, upper);
}

RS_FN rs::tup<State, State> traced_edges(const State& w, const State& h, const State& lower, const State& upper, field::REAL rate, field::REAL) {
  return ::nestar_kernels::hydro::hancock::traced_edges<field::REAL>(w, h, lower, upper, rate, law().d[0]);
}

RS_FN WaveBasis wave_basis(const State& w) { return ::nestar_kernels::hydro::characteristic::basis<field::REAL>(w, law().d[0]); }

RS_FN State to_waves(const State& dw, const WaveBasis& basis) {
  return ::nestar_kernels::hydro::characteristic::project<field::REAL>(dw, basis);
}

RS_FN State from_waves(const State& waves, const WaveBasis& basis) {
  return ::nestar_kernels::hydro::characteristic::restore<field::REAL>(waves, basis);
}

// Components contain all of each conserved quantity, and nothing is damped.
constexpr bool HAS_REMAINDER = false;
RS_FN State remainder(const State& u) { return u; }
RS_FN State damped(const State& u, field::REAL) { return u; }

}  // namespace fluid
