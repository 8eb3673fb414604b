// Functions of gas with a magnetic field: the twin of Magnetised in law.rs. The text before this file defines State, law(), numbers() and
// riemann(). `speed` is the cleaning speed.

namespace fluid {

// The primitive variable that determines the pressure.
constexpr int PRESSURE = 4;

RS_FN field::REAL pressure_of(field::REAL variable) { return variable; }

constexpr bool HAS_REMAINDER = true;
RS_FN State remainder(const State& u) { return ::nestar_kernels::hydro::magnetic::remainder<field::REAL>(u); }

RS_FN State damped(const State& u, field::REAL factor) {
  State v = u;
  v.d[8] = factor * u.d[8];
  return v;
}

RS_FN State primitive(const State& u) { return ::nestar_kernels::hydro::magnetic::primitive_from_conserved<field::REAL>(u, law().d[0]); }

RS_FN field::REAL checked_signal_rate(const State& u, const rs::arr<field::REAL, 3>& inverse_dx) {
  return ::nestar_kernels::hydro::magnetic::checked_signal_rate<field::REAL>(u, inverse_dx, law().d[0]);
}

RS_FN field::REAL checked_signal_rate_from_internal(const State& u, field::REAL internal, const rs::arr<field::REAL, 3>& inverse_dx) {
  return ::nestar_kernels::hydro::magnetic::checked_signal_rate_from_internal<field::REAL>(u, internal, inverse_dx, law().d[0]);
}

RS_FN State flux_hlle(const State& l, const State& r, field::REAL speed) {
  return ::nestar_kernels::hydro::riemann::magnetic::flux_hlle<field::REAL>(l, r, numbers(speed));
}

RS_FN State flux_smoothed(const State& l, const State& r, field::REAL speed) {
  return ::nestar_kernels::hydro::riemann::magnetic::flux_smoothed<field::REAL>(l, r, numbers(speed));
}

RS_FN State half_step(const State& w, const rs::arr<State, 3>& half, const rs::arr<field::REAL, 3>& rate, field::REAL speed) {
  return ::nestar_kernels::hydro::magnetic::half_step<field::REAL>(w, half, rate, numbers(speed));
}

RS_FN rs::tup<State, State> edges_of(const State& w, const State& h, const State& lower, const State& upper) {
  return ::nestar_kernels::hydro::magnetic::edges<field::REAL>(w, h, lower, upper);
}

RS_FN rs::tup<State, State> traced_edges(const State& w, const State& h, const State& lower, const State& upper, field::REAL rate,
                                         field::REAL speed) {
  return ::nestar_kernels::hydro::magnetic::traced_edges<field::REAL>(w, h, lower, upper, rate, numbers(speed));
}

}  // namespace fluid
