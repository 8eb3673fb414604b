// Functions of gas without energy: the twin of Barotropic in law.rs. The text before this file defines State, thermal() and riemann(). The cleaning
// speed of magnetised gas is not used.

namespace fluid {

// The primitive variable that determines the pressure.
constexpr int PRESSURE = 0;
typedef rs::arr<field::REAL, 2> WaveBasis;

RS_FN field::REAL pressure_of(field::REAL variable) { return thermal(variable).d[0]; }

RS_FN State primitive(const State& u) { return ::nestar_kernels::hydro::barotropic::primitive_from_conserved<field::REAL>(u); }

RS_FN field::REAL checked_signal_rate(const State& u, const rs::arr<field::REAL, 3>& inverse_dx) {
  return ::nestar_kernels::hydro::barotropic::checked_signal_rate<field::REAL>(u, thermal(u.d[0]), inverse_dx);
}

// There is no internal energy.
RS_FN field::REAL checked_signal_rate_from_internal(const State& u, field::REAL, const rs::arr<field::REAL, 3>& inverse_dx) {
  return checked_signal_rate(u, inverse_dx);
}

RS_FN State flux_hlle(const State& l, const State& r, field::REAL) {
  return ::nestar_kernels::hydro::riemann::barotropic::flux_hlle<field::REAL>(l, r, thermal(l.d[0]), thermal(r.d[0]));
}

RS_FN State flux_smoothed(const State& l, const State& r, field::REAL) {
  return ::nestar_kernels::hydro::riemann::barotropic::flux_smoothed<field::REAL>(l, r, thermal(l.d[0]), thermal(r.d[0]));
}

RS_FN State half_step(const State& w, const rs::arr<State, 3>& half, const rs::arr<field::REAL, 3>& rate, field::REAL) {
  return ::nestar_kernels::hydro::barotropic::half_step<field::REAL>(w, half, rate, thermal(w.d[0]).d[1]);
}

RS_FN State half_step_along(const State& w, const State& half, field::REAL rate) {
  return ::nestar_kernels::hydro::barotropic::half_step_along<field::REAL>(w, half, rate, thermal(w.d[0]).d[1]);
}

RS_FN State corrected(const State& w, const State& change) {
  return ::nestar_kernels::hydro::barotropic::corrected<field::REAL>(w, change);
}

RS_FN State predicted(const State& u, const State& old) {
  return ::nestar_kernels::hydro::barotropic::predicted<field::REAL>(u, old);
}

RS_FN rs::tup<State, State> edges_of(const State& w, const State& h, const State& lower, const State& upper) {
  return ::nestar_kernels::hydro::barotropic::edges<field::REAL>(w, h, lower, upper);
}

RS_FN rs::tup<State, State> traced_edges(const State& w, const State& h, const State& lower, const State& upper, field::REAL rate, field::REAL) {
  return ::nestar_kernels::hydro::barotropic::traced_edges<field::REAL>(w, h, lower, upper, rate, thermal(w.d[0]).d[1]);
}

RS_FN WaveBasis wave_basis(const State& w) {
  return ::nestar_kernels::hydro::barotropic::basis<field::REAL>(w.d[0], thermal(w.d[0]).d[1]);
}

RS_FN State to_waves(const State& dw, const WaveBasis& basis) {
  return ::nestar_kernels::hydro::barotropic::project<field::REAL>(dw, basis);
}

RS_FN State from_waves(const State& waves, const WaveBasis& basis) {
  return ::nestar_kernels::hydro::barotropic::restore<field::REAL>(waves, basis);
}

// Components contain all of each conserved quantity, and nothing is damped.
constexpr bool HAS_REMAINDER = false;
RS_FN State remainder(const State& u) { return u; }
RS_FN State damped(const State& u, field::REAL) { return u; }

}  // namespace fluid
