//! Dual energy: the internal energy of the gas beside its total energy, for gas so cold that its pressure drowns in the round-off
//! and truncation errors of `E - |m|^2 / (2 rho)`.
//!
//! The internal energy is advanced by its own equation, `de/dt + div (e v) = -p div v`, from the states at faces that the Riemann
//! solver has resolved (as Bryan et al. 2014, ApJS 211, 19, sec. 6.1). It is the energy and not the entropy (Schive et al. 2018,
//! sec. 2.2) that is carried: a contact keeps its pressure to round-off where cells mix, and no power of the density is needed.
//! All steps take the pressure from it, and so see no noise. After each step [`reconcile_energies`] makes both agree.
use super::eos;
use nestar_device::math::sum3;
use nestar_device::{Lane, Real, device};

/// Where the internal energy is taken from its own equation: thresholds of [`reconcile_energies`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualEnergy {
    /// Where `E - E_kin` is less than so much of the kinetic energy `E_kin`; 0 or more.
    pub kinetic: f64,
    /// Or less than so much of `rho dv^2`, with the largest change `dv` of the velocity to one of the six neighbours; 0 or more.
    pub gradient: f64,
    /// Except where the velocity jumps: where it changes by more than this part of its change over four cells within two, and
    /// faster than sound; 0.5 (a straight line) to 1.
    pub jump: f64,
}

impl Default for DualEnergy {
    fn default() -> Self {
        DualEnergy {
            kinetic: 3e-2,
            gradient: 0.2,
            jump: 0.6,
        }
    }
}

impl DualEnergy {
    /// The thresholds in the order of the fields.
    #[must_use]
    pub fn thresholds<R: Lane>(&self) -> [R; 3] {
        [self.kinetic, self.gradient, self.jump].map(R::lit)
    }
}

/// Primitive variables of gas with the internal energy density `internal`.
#[device]
pub fn primitive<R: Lane>(u: &[R; 5], internal: R, gamma: R) -> [R; 5] {
    let inverse = 1.0 / u[0];
    let pressure = (gamma - 1.0) * internal;
    [
        u[0],
        u[1] * inverse,
        u[2] * inverse,
        u[3] * inverse,
        pressure,
    ]
}

/// [`eos::checked_signal_rate`] of gas with the internal energy density `internal`.
#[device]
pub fn checked_signal_rate<R: Lane>(u: &[R; 5], internal: R, inverse_dx: &[R; 3], gamma: R) -> R {
    let w = primitive(u, internal, gamma);
    // what is not finite makes a NaN of this
    let zero = (w[0] * 0.0 + w[4] * 0.0) + (sum3(w[1] * 0.0, w[2] * 0.0, w[3] * 0.0) + u[4] * 0.0);
    let physical = (zero == 0.0) & (w[0] > 0.0) & (w[4] > 0.0);
    let rate = eos::signal_rate(&w, inverse_dx, gamma);
    if physical { rate } else { -1.0 }
}

/// Velocity and internal energy density at a face: those of the side that mass comes from, whose `[density, pressure]` are `left` or
/// `right`.
#[device]
pub fn upwind_state<R: Lane>(mass_flux: R, left: &[R; 2], right: &[R; 2], gamma: R) -> [R; 2] {
    let forth = mass_flux > 0.0;
    let back = mass_flux < 0.0;
    let density = if forth { left[0] } else { right[0] };
    let beyond = if back {
        right[1]
    } else {
        0.5 * (left[1] + right[1])
    };
    let pressure = if forth { left[1] } else { beyond };
    [mass_flux / density, pressure * (1.0 / (gamma - 1.0))]
}

/// The internal energy density after a step, from `internal`: what is carried through the faces, less the work of the pressure.
/// `below` and `above` hold `[velocity, internal energy]` of the lower and upper faces along each axis, `rate[d] = dt / dx_d`.
///
/// The work is of second order. Gas that expands much in one step does no more of it than leaves the energy positive.
#[device]
pub fn advanced<R: Lane>(
    internal: R,
    below: &[[R; 2]; 3],
    above: &[[R; 2]; 3],
    rate: &[R; 3],
    gamma: R,
) -> R {
    let mut flow = [0.0; 3];
    let mut spread = [0.0; 3];
    let mut work = [0.0; 3];
    for d in 0..3 {
        let (low, high) = (below[d], above[d]);
        flow[d] = rate[d] * (high[0] * high[1] - low[0] * low[1]);
        spread[d] = rate[d] * (high[0] - low[0]);
        work[d] = spread[d] * (low[1] + high[1]);
    }
    let carried = internal - sum3(flow[0], flow[1], flow[2]);
    let done = (0.5 * (gamma - 1.0)) * sum3(work[0], work[1], work[2]);
    let expansion = (gamma - 1.0) * sum3(spread[0], spread[1], spread[2]).max(0.0);
    (carried - done).max(carried / (1.0 + 2.0 * expansion))
}

/// The square of the largest change of the velocity to one of the neighbours `near`, x-, x+, y-, y+, z-, z+.
#[device]
pub fn max_velocity_change_squared<R: Lane>(v: &[R; 3], near: &[[R; 3]; 6]) -> R {
    let mut largest = 0.0 * v[0];
    for n in 0..6 {
        let a = near[n][0] - v[0];
        let b = near[n][1] - v[1];
        let c = near[n][2] - v[2];
        largest = largest.max(sum3(a * a, b * b, c * c));
    }
    largest
}

/// 1 where gas meets in a jump of the velocity along an axis, else 0; `v`: the velocity along the axis in five consecutive cells,
/// `density` and `pressure`: of the middle one.
#[device]
pub fn compression_jump<R: Lane>(v: &[R; 5], density: R, pressure: R, gamma: R, jump: R) -> R {
    let near = v[1] - v[3];
    let sudden = (near > 0.0) & (near > jump * (v[4] - v[0]).abs());
    if sudden & (near * near * density > gamma * pressure) {
        1.0
    } else {
        0.0
    }
}

/// What is left of the slopes along an axis: nothing where gas meets, faster than sound, in a cell whose pressure is three times those
/// beside it; 1 elsewhere. A cold collapse onto one cell would keep its shock in there. `p`: pressures of three consecutive cells,
/// `v`: the velocity along the axis in the first and the last, `density`: of the middle one.
#[device]
pub fn slope_factor<R: Lane>(p: &[R; 3], v: &[R; 2], density: R, gamma: R) -> R {
    let near = v[0] - v[1];
    let towers = (near > 0.0) & (p[1] > 3.0 * p[0].max(p[2]));
    if towers & (near * near * density > gamma * p[1]) {
        0.0
    } else {
        1.0
    }
}

/// Total and internal energy density of gas of which both have been advanced, made to agree: the internal energy rules where `E - E_kin`
/// is small ([`DualEnergy`], `thresholds` in its order), the total energy elsewhere. Where the velocity jumps (`meeting` above 0) the
/// larger of both internal energies is right. `step`: as of [`max_velocity_change_squared`].
#[device]
pub fn reconcile_energies<R: Lane>(
    u: &[R; 5],
    internal: R,
    step: R,
    meeting: R,
    thresholds: &[R; 3],
) -> [R; 2] {
    let inverse = 1.0 / u[0];
    let kinetic = 0.5
        * sum3(
            u[1] * (u[1] * inverse),
            u[2] * (u[2] * inverse),
            u[3] * (u[3] * inverse),
        );
    let rest = u[4] - kinetic;
    let small = (rest < thresholds[0] * kinetic) | (rest < thresholds[1] * (u[0] * step));
    let heated = (meeting > 0.0) & (rest > internal);
    let told = if heated { 0.0 } else { internal };
    if small & (told > 0.0) {
        [kinetic + internal, internal]
    } else {
        [u[4], rest]
    }
}

/// Gas with its internal energy as component 5, after an average, a correction or an interpolation of both energies: the total energy
/// follows from the internal one where `E - E_kin` is less than `kinetic` of the kinetic energy. Elsewhere both stay, until the
/// next step tells which is right.
#[device]
pub fn reconciled<R: Lane>(u: &[R; 6], kinetic: R) -> [R; 6] {
    let inverse = 1.0 / u[0];
    let own = 0.5
        * sum3(
            u[1] * (u[1] * inverse),
            u[2] * (u[2] * inverse),
            u[3] * (u[3] * inverse),
        );
    let cold = (u[4] - own < kinetic * own) & (u[5] > 0.0);
    let energy = if cold { own + u[5] } else { u[4] };
    [u[0], u[1], u[2], u[3], energy, u[5]]
}

/// Gas with its internal energy as component 5, of which something has changed some components: the internal energy changes as
/// `E - E_kin` does, and where it has been changed but the total energy has not, that follows it. A change within the round-off of
/// `E`, by what has changed the momentum, is none.
#[device]
pub fn with_dependents<R: Real>(before: &[R; 6], after: &[R; 6]) -> [R; 6] {
    let [a, b, c] = [before[1], before[2], before[3]];
    let [d, e, f] = [after[1], after[2], after[3]];
    let old = 0.5 * sum3(a * a, b * b, c * c) / before[0];
    let new = 0.5 * sum3(d * d, e * e, f * f) / after[0];
    let gained = (after[4] - before[4]) - (new - old);
    // the rounding of both energies by what pushes the gas
    let noise = 8.0 * R::EPSILON * (after[4].abs() + before[4].abs());
    let pushed = a != d || b != e || c != f || before[0] != after[0];
    let lost = pushed && gained.abs() <= noise;
    let mut u = *after;
    // who gives the internal energy knows it
    if after[5] != before[5] {
        if after[4] == before[4] {
            u[4] = before[4] + ((after[5] - before[5]) + (new - old));
        }
    } else if !lost {
        u[5] = before[5] + gained;
    }
    u
}

/// Whether density and internal energy are positive and all components finite.
#[device]
pub fn is_physical<R: Real>(u: &[R; 6]) -> bool {
    let mut finite = true;
    for c in 0..6 {
        finite = finite && u[c].is_finite();
    }
    u[0] > 0.0 && u[5] > 0.0 && finite
}

/// The variables that are interpolated between levels: density, velocity, internal energy, twice.
#[device]
pub fn interpolated<R: Lane>(u: &[R; 6]) -> [R; 6] {
    let w = primitive(&[u[0], u[1], u[2], u[3], u[4]], u[5], 2.0);
    [w[0], w[1], w[2], w[3], u[5], u[5]]
}

/// The conserved state of [`interpolated`] variables.
#[device]
pub fn from_interpolated<R: Lane>(w: &[R; 6]) -> [R; 6] {
    let u = eos::from_interpolated(&[w[0], w[1], w[2], w[3], w[5]]);
    [u[0], u[1], u[2], u[3], u[4], w[5]]
}

/// The state `u` of which round-off made the internal energy negative, with that of the [`interpolated`] variables `w`.
#[device]
pub fn repaired<R: Lane>(u: &[R; 6], w: &[R; 6]) -> [R; 6] {
    let v = eos::repaired(
        &[u[0], u[1], u[2], u[3], u[4]],
        &[w[0], w[1], w[2], w[3], w[5]],
    );
    [v[0], v[1], v[2], v[3], v[4], w[5]]
}
