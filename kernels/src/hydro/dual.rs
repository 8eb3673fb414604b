//! Dual energy: carries the internal energy in addition to the total energy. In cold gas the pressure from `E - |m|^2 / (2 rho)` is lost in
//! round-off and truncation errors, in strongly magnetised gas in truncation errors of the magnetic energy.
//!
//! Functions of `N` components take those of the law and after them the internal energy: 6 without a magnetic field, 9 with one on cell
//! faces, 10 with one at cell centres. `E` is the thermal and kinetic energy, component 4, also with a field.
//!
//! The internal energy obeys `de/dt + div (e v) = -p div v`, advanced with the face states of the Riemann solver (as in Bryan et al. 2014,
//! ApJS 211, 19, sec. 6.1). Energy is carried rather than entropy (Schive et al. 2018, sec. 2.2): a contact keeps its pressure to round-off
//! when cells mix, and no power of the density is needed. All steps take the pressure from the internal energy. After each step
//! [`reconcile_energies`] makes both energies agree.
use super::eos::{self, primitive_from_internal};
use super::magnetic::magnetic_energy;
use nestar_device::math::sum3;
use nestar_device::{Lane, Real, device};

/// Thresholds that decide where the internal energy is taken from its own equation, see [`reconcile_energies`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualEnergy {
    /// Largest `E - E_kin` relative to the kinetic energy `E_kin`; 0 or more.
    pub kinetic: f64,
    /// Largest `E - E_kin` relative to `rho dv^2`, where `dv` is the largest velocity difference to one of the six neighbours; 0 or more.
    pub gradient: f64,
    /// Threshold of a velocity jump, in which the other thresholds do not apply: the part of the velocity change over four cells that
    /// occurs within two, faster than sound; 0.5 (a straight line) to 1.
    pub jump: f64,
    /// Largest `E - E_kin` relative to the magnetic energy; 0 or more. Unused without a magnetic field.
    pub magnetic: f64,
}

impl Default for DualEnergy {
    fn default() -> Self {
        DualEnergy {
            kinetic: 3e-2,
            gradient: 0.2,
            jump: 0.6,
            magnetic: 1e-3,
        }
    }
}

impl DualEnergy {
    /// Returns thresholds for gas with a magnetic field, in which the total energy is used wherever it gives a pressure: the field needs the
    /// internal energy where it dominates, not in all gas that moves fast.
    #[must_use]
    pub fn with_field() -> Self {
        DualEnergy {
            kinetic: 1e-3,
            gradient: 1e-3,
            ..Self::default()
        }
    }

    /// Returns the thresholds in the order of the fields.
    #[must_use]
    pub fn thresholds<R: Lane>(&self) -> [R; 4] {
        [self.kinetic, self.gradient, self.jump, self.magnetic].map(R::lit)
    }
}

/// Returns [`eos::checked_signal_rate`] for gas with the internal energy density `internal`.
#[device]
pub fn checked_signal_rate<R: Lane>(u: &[R; 5], internal: R, inverse_dx: &[R; 3], gamma: R) -> R {
    let w = primitive_from_internal(u, internal, gamma);
    // NaN if a component is not finite
    let zero = (w[0] * 0.0 + w[4] * 0.0) + (sum3(w[1] * 0.0, w[2] * 0.0, w[3] * 0.0) + u[4] * 0.0);
    let physical = (zero == 0.0) & (w[0] > 0.0) & (w[4] > 0.0);
    let rate = eos::signal_rate(&w, inverse_dx, gamma);
    if physical { rate } else { -1.0 }
}

/// Returns velocity and internal energy density at a face from the upwind side; `left` and `right` are `[density, pressure]`.
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

/// Returns the internal energy density after a step: `internal` minus the divergence of its flux and the work of the pressure.
///
/// `below` and `above` hold `[velocity, internal energy]` at the lower and upper faces along each axis, and `rate[d] = dt / dx_d`. The work
/// is of second order. It is limited in strong expansions, so that the energy stays positive.
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

/// Returns the square of the largest velocity difference to one of the neighbours `near` (x-, x+, y-, y+, z-, z+).
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

/// Returns 1 if the flow converges supersonically in a velocity jump along an axis, else 0.
///
/// `v` is the velocity along the axis in five consecutive cells; `density` and `pressure` belong to the middle one.
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

/// Returns the factor for the slopes along an axis: 0 if the flow converges supersonically in a cell with three times the pressure of its
/// neighbours, else 1.
///
/// Otherwise a cold collapse onto one cell would trap its shock there. `p` are the pressures of three consecutive cells, `v` the velocities
/// along the axis in the first and the last, `density` belongs to the middle one.
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

/// Makes total and internal energy density agree after both have been advanced; returns both.
///
/// The internal energy is used where `E - E_kin` is small ([`DualEnergy`], `thresholds` in its order), the total energy elsewhere. In
/// velocity jumps (`meeting` above 0) the larger internal energy is used. `step` is the result of [`max_velocity_change_squared`],
/// `magnetic` the magnetic energy density, 0 without a field.
#[device]
pub fn reconcile_energies<R: Lane>(
    u: &[R; 5],
    internal: R,
    magnetic: R,
    step: R,
    meeting: R,
    thresholds: &[R; 4],
) -> [R; 2] {
    let inverse = 1.0 / u[0];
    let kinetic = 0.5
        * sum3(
            u[1] * (u[1] * inverse),
            u[2] * (u[2] * inverse),
            u[3] * (u[3] * inverse),
        );
    let rest = u[4] - kinetic;
    let cold = (rest < thresholds[0] * kinetic) | (rest < thresholds[1] * (u[0] * step));
    let small = cold | (rest < thresholds[3] * magnetic);
    let heated = (meeting > 0.0) & (rest > internal);
    let told = if heated { 0.0 } else { internal };
    if small & (told > 0.0) {
        [kinetic + internal, internal]
    } else {
        [u[4], rest]
    }
}

/// Returns the first five of `N` components.
#[device]
fn gas_of<R: Lane, const N: usize>(u: &[R; N]) -> [R; 5] {
    [u[0], u[1], u[2], u[3], u[4]]
}

/// Returns `u` with the first five components `gas` and the internal energy `internal`.
#[device]
fn with_energies<R: Lane, const N: usize>(u: &[R; N], gas: &[R; 5], internal: R) -> [R; N] {
    let mut v = *u;
    for c in 0..5 {
        v[c] = gas[c];
    }
    v[N - 1] = internal;
    v
}

/// Returns the magnetic energy density of `N` components, 0 without a field.
#[device]
fn field_energy<R: Lane, const N: usize>(u: &[R; N]) -> R {
    let mut field = [0.0; 3];
    if N > 6 {
        for d in 0..3 {
            field[d] = u[5 + d];
        }
    }
    magnetic_energy(&field)
}

/// Returns the total energy density of gas with the internal energy `internal` after an average, correction or interpolation of both
/// energies, see [`reconciled`]. `magnetic` is the magnetic energy density, 0 without a field.
#[device]
pub fn reconciled_energy<R: Lane>(u: &[R; 5], internal: R, magnetic: R, thresholds: &[R; 2]) -> R {
    let inverse = 1.0 / u[0];
    let own = 0.5
        * sum3(
            u[1] * (u[1] * inverse),
            u[2] * (u[2] * inverse),
            u[3] * (u[3] * inverse),
        );
    let rest = u[4] - own;
    let small = (rest < thresholds[0] * own) | (rest < thresholds[1] * magnetic);
    if small & (internal > 0.0) {
        own + internal
    } else {
        u[4]
    }
}

/// Returns gas of `N` components after an average, correction or interpolation of both energies.
///
/// The total energy is recomputed from the internal one if `E - E_kin` is less than the first of `thresholds` times the kinetic energy, or
/// less than the second times the magnetic energy. Elsewhere both remain until the next step.
#[device]
pub fn reconciled<R: Lane, const N: usize>(u: &[R; N], thresholds: &[R; 2]) -> [R; N] {
    let mut v = *u;
    v[4] = reconciled_energy(&gas_of(u), u[N - 1], field_energy(u), thresholds);
    v
}

/// Returns gas of `N` components after a change of some of them.
///
/// The internal energy changes as `E - E_kin` does. If only the internal energy was changed, the total energy follows. A change within the
/// round-off of `E`, caused by a change of momentum, is ignored.
#[device]
pub fn with_dependents<R: Real, const N: usize>(before: &[R; N], after: &[R; N]) -> [R; N] {
    let [a, b, c] = [before[1], before[2], before[3]];
    let [d, e, f] = [after[1], after[2], after[3]];
    let old = 0.5 * sum3(a * a, b * b, c * c) / before[0];
    let new = 0.5 * sum3(d * d, e * e, f * f) / after[0];
    let gained = (after[4] - before[4]) - (new - old);
    // rounding of both energies by a change of momentum
    let noise = 8.0 * R::EPSILON * (after[4].abs() + before[4].abs());
    let pushed = a != d || b != e || c != f || before[0] != after[0];
    let lost = pushed && gained.abs() <= noise;
    let mut u = *after;
    // an explicit change of the internal energy has priority
    if after[N - 1] != before[N - 1] {
        if after[4] == before[4] {
            u[4] = before[4] + ((after[N - 1] - before[N - 1]) + (new - old));
        }
    } else if !lost {
        u[N - 1] = before[N - 1] + gained;
    }
    u
}

/// Returns `true` if density and internal energy are positive and all components finite.
#[device]
pub fn is_physical<R: Real, const N: usize>(u: &[R; N]) -> bool {
    let mut finite = true;
    for c in 0..N {
        finite = finite && u[c].is_finite();
    }
    u[0] > 0.0 && u[N - 1] > 0.0 && finite
}

/// Returns the variables that are interpolated between levels: density, velocity, internal energy, the field, internal energy.
#[device]
pub fn interpolated<R: Lane, const N: usize>(u: &[R; N]) -> [R; N] {
    let internal = u[N - 1];
    let w = primitive_from_internal(&gas_of(u), internal, 2.0);
    with_energies(u, &[w[0], w[1], w[2], w[3], internal], internal)
}

/// Returns the conserved state of [`interpolated`] variables.
#[device]
pub fn from_interpolated<R: Lane, const N: usize>(w: &[R; N]) -> [R; N] {
    let internal = w[N - 1];
    let u = eos::from_interpolated(&[w[0], w[1], w[2], w[3], internal]);
    with_energies(w, &u, internal)
}

/// Repairs a state `u` whose internal energy became negative by round-off: takes the internal energy of the [`interpolated`] variables `w`.
#[device]
pub fn repaired<R: Lane, const N: usize>(u: &[R; N], w: &[R; N]) -> [R; N] {
    let internal = w[N - 1];
    let v = eos::repaired(&gas_of(u), &[w[0], w[1], w[2], w[3], internal]);
    with_energies(u, &v, internal)
}

/// Returns the part of each conserved quantity that its component does not contain, see [`magnetic::remainder`](super::magnetic::remainder).
#[device]
pub fn remainder<R: Lane, const N: usize>(u: &[R; N]) -> [R; N] {
    let mut part = [0.0; N];
    part[4] = field_energy(u);
    part
}
