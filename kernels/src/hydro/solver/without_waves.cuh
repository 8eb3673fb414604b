// Stands for the predictor, for states that fluxes across correct, and for the characteristic variables of laws with a magnetic field, which are
// refused with all of them.

namespace fluid {

typedef int WaveBasis;
RS_FN State predicted(const State&, const State& old) { return old; }
RS_FN State half_step_along(const State& w, const State&, field::REAL) { return w; }
RS_FN State corrected(const State& w, const State&) { return w; }
RS_FN WaveBasis wave_basis(const State&) { return 0; }
RS_FN State to_waves(const State& dw, WaveBasis) { return dw; }
RS_FN State from_waves(const State& waves, WaveBasis) { return waves; }

}  // namespace fluid
