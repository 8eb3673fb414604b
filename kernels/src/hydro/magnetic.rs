//! Ideal magnetohydrodynamics with cell-centred magnetic fields and divergence cleaning (GLM; Dedner et al. 2002, J. Comput. Phys. 175,
//! 645).
//!
//! A state is an array of nine values: conserved `[density, momentum x, y, z, energy, field x, y, z, cleaning]`, primitive `[density,
//! velocity x, y, z, pressure, field x, y, z, cleaning]`. In functions of a face the first velocity and the first field are the normal ones.
//! The component `energy` holds the thermal and kinetic energy, so that sources of the gas need not know the field. Fluxes, averages and
//! corrections conserve the total energy; [`remainder`] adds the magnetic energy to it. The magnetic permeability is 1.
//!
//! The cleaning variable `psi` is the potential of Dedner et al. divided by the cleaning speed `c_h` (Tricco, Price & Bate 2016, J. Comput.
//! Phys. 322, 326), so that it has the unit of the field and keeps its meaning when the speed changes: `dB/dt = ... - c_h grad psi`,
//! `dpsi/dt = -c_h div B`, damped in each stage of a step.
use super::eos;
use crate::choice::choices;
use nestar_device::math::{exp, sum3};
use nestar_device::{Lane, Real, device};

choices! {
    /// Treatment of the divergence of the magnetic field.
    pub enum MagneticMethod;
    /// Fields on cell faces, whose divergence stays zero to round-off (constrained transport; Evans & Hawley 1988; Gardiner & Stone 2005).
    ConstrainedTransport = "ct";
    /// Fields at cell centres; errors of the divergence move away and are damped (GLM; Dedner et al. 2002).
    Glm = "glm";
}

impl MagneticMethod {
    /// Returns the number of components of the field in a cell: the field, and with GLM the cleaning variable.
    #[must_use]
    pub const fn components(self) -> usize {
        match self {
            MagneticMethod::ConstrainedTransport => 3,
            MagneticMethod::Glm => 4,
        }
    }
}

/// Cleaning of the divergence in a step of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cleaning {
    /// Cleaning speed (length/time).
    pub speed: f64,
    /// Factor of the cleaning variable in each stage of the step, at most 1.
    pub damping: f64,
}

impl Cleaning {
    /// Damping rate in units of the cleaning speed over the smallest cell width (Mignone & Tzeferacos 2010, J. Comput. Phys. 229, 2117, sec.
    /// 3.1, whose optimum is 0.1 to 0.2).
    const DAMPING: f64 = 0.18;

    /// Returns the cleaning of a step `dt` of a level with the largest signal rate `rate` and cells of these widths. The speed is the largest
    /// one that the Courant condition allows.
    #[must_use]
    pub fn of(rate: f64, width: [f64; 3], dt: f64) -> Self {
        let [x, y, z] = width.map(|w| 1.0 / w);
        let speed = rate / sum3(x, y, z);
        let damping = exp(-Self::DAMPING * speed * dt * x.max(y).max(z));
        Self { speed, damping }
    }
}

/// Returns the density of the magnetic energy of a field, `B^2 / 2`.
#[device]
pub fn magnetic_energy<R: Lane>(b: &[R; 3]) -> R {
    0.5 * sum3(b[0] * b[0], b[1] * b[1], b[2] * b[2])
}

/// Returns the part of each conserved quantity that its component does not contain: the magnetic energy.
#[device]
pub fn remainder<R: Lane>(u: &[R; 9]) -> [R; 9] {
    let energy = magnetic_energy(&[u[5], u[6], u[7]]);
    [0.0, 0.0, 0.0, 0.0, energy, 0.0, 0.0, 0.0, 0.0]
}

/// Converts conserved to primitive variables.
#[device]
pub fn primitive_from_conserved<R: Lane>(u: &[R; 9], gamma: R) -> [R; 9] {
    let w = eos::primitive_from_conserved(&[u[0], u[1], u[2], u[3], u[4]], gamma);
    [w[0], w[1], w[2], w[3], w[4], u[5], u[6], u[7], u[8]]
}

/// Converts primitive to conserved variables.
#[device]
pub fn conserved_from_primitive<R: Lane>(w: &[R; 9], gamma: R) -> [R; 9] {
    let u = eos::conserved_from_primitive(&[w[0], w[1], w[2], w[3], w[4]], gamma);
    [u[0], u[1], u[2], u[3], u[4], w[5], w[6], w[7], w[8]]
}

/// Returns the variables that are interpolated between levels, see [`eos::interpolated`].
#[device]
pub fn interpolated<R: Lane>(u: &[R; 9]) -> [R; 9] {
    primitive_from_conserved(u, 2.0)
}

/// Returns the conserved state of [`interpolated`] variables.
#[device]
pub fn from_interpolated<R: Lane>(w: &[R; 9]) -> [R; 9] {
    conserved_from_primitive(w, 2.0)
}

/// Repairs a state `u` whose pressure became negative, see [`eos::repaired`].
#[device]
pub fn repaired<R: Lane>(u: &[R; 9], w: &[R; 9]) -> [R; 9] {
    let gas = eos::repaired(
        &[u[0], u[1], u[2], u[3], u[4]],
        &[w[0], w[1], w[2], w[3], w[4]],
    );
    [
        gas[0], gas[1], gas[2], gas[3], gas[4], u[5], u[6], u[7], u[8],
    ]
}

/// Returns `true` if a conserved state is finite and has positive density and pressure.
#[device]
pub fn is_physical<R: Real>(u: &[R; 9]) -> bool {
    let mut finite = true;
    for c in 5..9 {
        finite = finite && u[c].is_finite();
    }
    eos::is_physical(&[u[0], u[1], u[2], u[3], u[4]]) && finite
}

/// Returns the speed of fast magnetosonic waves along an axis with the field component `along`; `across` is the square of the field across
/// the axis.
///
/// The root of `(a^2 - b^2)^2 + 4 a^2 b_t^2` does not cancel.
#[device]
pub fn fast_speed<R: Lane>(density: R, pressure: R, along: R, across: R, gamma: R) -> R {
    let inverse = 1.0 / density;
    let a2 = gamma * pressure * inverse;
    let t2 = across * inverse;
    let b2 = along * along * inverse + t2;
    let d = a2 - b2;
    let root = (d * d + 4.0 * a2 * t2).sqrt();
    (0.5 * ((a2 + b2) + root)).sqrt()
}

/// Returns the signal rate of a primitive state, the sum over the axes of `(|v_d| + c_fast,d) / dx_d`, or -1 if the state is unphysical:
/// density or pressure not positive, or a component not finite.
#[device]
fn checked_rate<R: Lane>(w: &[R; 9], inverse_dx: &[R; 3], gamma: R) -> R {
    let x2 = w[5] * w[5];
    let y2 = w[6] * w[6];
    let z2 = w[7] * w[7];
    let rate = sum3(
        (w[1].abs() + fast_speed(w[0], w[4], w[5], y2 + z2, gamma)) * inverse_dx[0],
        (w[2].abs() + fast_speed(w[0], w[4], w[6], z2 + x2, gamma)) * inverse_dx[1],
        (w[3].abs() + fast_speed(w[0], w[4], w[7], x2 + y2, gamma)) * inverse_dx[2],
    );
    // NaN if a component is not finite
    let zero = (w[0] * 0.0 + w[4] * 0.0) + (sum3(x2 * 0.0, y2 * 0.0, z2 * 0.0) + w[8] * 0.0);
    let physical = (zero == 0.0) & (w[0] > 0.0) & (w[4] > 0.0);
    if physical { rate } else { -1.0 }
}

/// Returns the signal rate of a conserved state, the sum over the axes of `(|v_d| + c_fast,d) / dx_d`, or -1 if the state is unphysical:
/// density or pressure not positive, or a component not finite.
#[device]
pub fn checked_signal_rate<R: Lane>(u: &[R; 9], inverse_dx: &[R; 3], gamma: R) -> R {
    checked_rate(&primitive_from_conserved(u, gamma), inverse_dx, gamma)
}

/// Returns [`checked_signal_rate`] for gas with the internal energy density `internal`.
#[device]
pub fn checked_signal_rate_from_internal<R: Lane>(
    u: &[R; 9],
    internal: R,
    inverse_dx: &[R; 3],
    gamma: R,
) -> R {
    let w = eos::primitive_from_internal(&[u[0], u[1], u[2], u[3], u[4]], internal, gamma);
    let rate = checked_rate(
        &[w[0], w[1], w[2], w[3], w[4], u[5], u[6], u[7], u[8]],
        inverse_dx,
        gamma,
    );
    // the pressure does not depend on these
    let zero = sum3(w[1] * 0.0, w[2] * 0.0, w[3] * 0.0) + u[4] * 0.0;
    if zero == 0.0 { rate } else { -1.0 }
}

// ---- half steps and edges, as in hancock.rs

/// Returns `rate A(w) x`, the change of the primitive state `w` along one axis by the differences `x`. Velocity and field along the axis come
/// first; `volume` is one over the density, `law` holds the ratio of specific heats and the cleaning speed. Terms with the divergence of the
/// field are left out: its errors move with the gas (Powell et al. 1999, J. Comput. Phys. 154, 284).
#[device]
fn flux_jacobian_times<R: Lane>(
    w: &[R; 9],
    volume: R,
    x: &[R; 9],
    rate: R,
    law: &[R; 2],
) -> [R; 9] {
    let push = x[4] + (w[6] * x[6] + w[7] * x[7]);
    let pull = w[5] * volume;
    [
        rate * (w[1] * x[0] + w[0] * x[1]),
        rate * (w[1] * x[1] + volume * push),
        rate * (w[1] * x[2] - pull * x[6]),
        rate * (w[1] * x[3] - pull * x[7]),
        rate * (w[1] * x[4] + law[0] * w[4] * x[1]),
        rate * (w[1] * x[5] + law[1] * x[8]),
        rate * ((w[1] * x[6] + w[6] * x[1]) - w[5] * x[2]),
        rate * ((w[1] * x[7] + w[7] * x[1]) - w[5] * x[3]),
        rate * (law[1] * x[5]),
    ]
}

/// Returns the state `w` with the axis y first.
#[device]
fn from_y<R: Lane>(w: &[R; 9]) -> [R; 9] {
    [w[0], w[2], w[3], w[1], w[4], w[6], w[7], w[5], w[8]]
}

/// Returns the state `w` with the axis z first.
#[device]
fn from_z<R: Lane>(w: &[R; 9]) -> [R; 9] {
    [w[0], w[3], w[1], w[2], w[4], w[7], w[5], w[6], w[8]]
}

/// Returns the primitive state half a step later, see [`hancock::half_step`](super::hancock::half_step); `law` holds the ratio of specific
/// heats and the cleaning speed.
#[device]
pub fn half_step<R: Lane>(w: &[R; 9], half: &[[R; 9]; 3], rate: &[R; 3], law: &[R; 2]) -> [R; 9] {
    let [x, y, z] = *half;
    let volume = 1.0 / w[0];
    let a = flux_jacobian_times(w, volume, &x, rate[0], law);
    let b = flux_jacobian_times(&from_y(w), volume, &from_y(&y), rate[1], law);
    let c = flux_jacobian_times(&from_z(w), volume, &from_z(&z), rate[2], law);
    [
        w[0] - sum3(a[0], b[0], c[0]),
        w[1] - sum3(a[1], b[3], c[2]),
        w[2] - sum3(a[2], b[1], c[3]),
        w[3] - sum3(a[3], b[2], c[1]),
        w[4] - sum3(a[4], b[4], c[4]),
        w[5] - sum3(a[5], b[7], c[6]),
        w[6] - sum3(a[6], b[5], c[7]),
        w[7] - sum3(a[7], b[6], c[5]),
        w[8] - sum3(a[8], b[8], c[8]),
    ]
}

/// Returns the primitive states at the lower and upper faces of a cell along one axis, see [`hancock::edges`](super::hancock::edges).
#[device]
pub fn edges<R: Lane>(w: &[R; 9], h: &[R; 9], lower: &[R; 9], upper: &[R; 9]) -> ([R; 9], [R; 9]) {
    let mut low = [0.0; 9];
    let mut high = [0.0; 9];
    for v in 0..9 {
        low[v] = h[v] - lower[v];
        high[v] = h[v] + upper[v];
    }
    let sane = (low[0] > 0.0) & (low[4] > 0.0) & (high[0] > 0.0) & (high[4] > 0.0);
    let below = if sane { low } else { *w };
    let above = if sane { high } else { *w };
    (below, above)
}

/// Returns the [`edges`] of a parabola, averaged over the domain of dependence of each face, as
/// [`hancock::traced_edges`](super::hancock::traced_edges).
#[device]
pub fn traced_edges<R: Lane>(
    w: &[R; 9],
    h: &[R; 9],
    lower: &[R; 9],
    upper: &[R; 9],
    rate: R,
    law: &[R; 2],
) -> ([R; 9], [R; 9]) {
    let volume = 1.0 / w[0];
    let mut bent = [0.0; 9];
    for v in 0..9 {
        bent[v] = 1.5 * (lower[v] - upper[v]);
    }
    let q = flux_jacobian_times(w, volume, &bent, rate, law);
    let q2 = flux_jacobian_times(w, volume, &q, 0.6666666666666666 * rate, law);
    let mut below = [0.0; 9];
    let mut above = [0.0; 9];
    for v in 0..9 {
        below[v] = lower[v] + (q2[v] + q[v]);
        above[v] = upper[v] - (q2[v] - q[v]);
    }
    edges(w, h, &below, &above)
}
