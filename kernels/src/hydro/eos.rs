//! Equation of state of the ideal gas: conversion between conserved and primitive variables.
//!
//! In kernels a state is an array of five values: conserved `[density, momentum x, y, z, energy]` (per volume), primitive `[density,
//! velocity x, y, z, pressure]`. In functions of a face the first velocity is the normal one. `gamma` is the ratio of specific heats,
//! larger than one. All in code units.
//!
//! Sums over the three directions use [`sum3`], so that results do not depend on the order of the axes.
use nestar_device::math::{pow, sum3};
use nestar_device::{Lane, Real, device};

/// The conserved state of one cell, per unit volume.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conserved<R: Lane> {
    /// Mass density, larger than zero.
    pub density: R,
    /// Momentum density along x, y, z.
    pub momentum: [R; 3],
    /// Total energy density: internal plus kinetic.
    pub energy: R,
}

/// Returns the gas of a state with one more component after it.
#[device]
pub fn gas_of<R: Lane>(u: [R; 6]) -> Conserved<R> {
    Conserved::<R> {
        density: u[0],
        momentum: [u[1], u[2], u[3]],
        energy: u[4],
    }
}

/// Returns the kinetic energy density `|m|^2 / (2 rho)`.
#[device]
pub fn kinetic_energy<R: Lane>(u: Conserved<R>) -> R {
    let [a, b, c] = u.momentum;
    0.5 * sum3(a * a, b * b, c * c) / u.density
}

/// Returns gas whose velocity has changed by `kick` along x, y, z, at constant internal energy.
#[device]
pub fn apply_kick<R: Real>(u: Conserved<R>, kick: [R; 3]) -> Conserved<R> {
    let m = u.momentum;
    let push = [
        u.density * kick[0],
        u.density * kick[1],
        u.density * kick[2],
    ];
    // change of |m|^2 / (2 rho)
    let work = sum3(
        kick[0] * (m[0] + 0.5 * push[0]),
        kick[1] * (m[1] + 0.5 * push[1]),
        kick[2] * (m[2] + 0.5 * push[2]),
    );
    let mut v = u;
    v.momentum = [m[0] + push[0], m[1] + push[1], m[2] + push[2]];
    v.energy = u.energy + work;
    v
}

/// Returns the internal energy density `E - |m|^2 / (2 rho)`.
#[device]
pub fn internal_energy<R: Lane>(u: Conserved<R>) -> R {
    u.energy - kinetic_energy(u)
}

/// Returns the pressure `(gamma - 1) (E - |m|^2 / (2 rho))` of a conserved state.
#[device]
pub fn pressure<R: Lane>(u: Conserved<R>, gamma: R) -> R {
    (gamma - 1.0) * (u.energy - kinetic_energy(u))
}

/// Returns the adiabatic sound speed `sqrt(gamma p / rho)`.
#[device]
pub fn sound_speed<R: Lane>(density: R, pressure: R, gamma: R) -> R {
    (gamma * pressure / density).sqrt()
}

/// Returns the temperature `p / rho` in units in which the gas constant over the mean molecular weight is one.
#[device]
pub fn temperature<R: Lane>(density: R, pressure: R) -> R {
    pressure / density
}

/// Returns the entropy function `p / rho^gamma`, constant along a streamline outside shocks.
#[device]
pub fn entropy<R: Real>(density: R, pressure: R, gamma: R) -> R {
    pressure / pow(density, gamma)
}

/// Returns the total energy density `p / (gamma - 1) + rho |v|^2 / 2`.
#[device]
pub fn total_energy<R: Lane>(density: R, velocity: [R; 3], pressure: R, gamma: R) -> R {
    let [a, b, c] = velocity;
    pressure * (1.0 / (gamma - 1.0)) + 0.5 * density * sum3(a * a, b * b, c * c)
}

/// Converts conserved to primitive variables.
#[device]
pub fn primitive_from_conserved<R: Lane>(u: &[R; 5], gamma: R) -> [R; 5] {
    let inverse = 1.0 / u[0];
    let a = u[1] * inverse;
    let b = u[2] * inverse;
    let c = u[3] * inverse;
    let kinetic = 0.5 * sum3(u[1] * a, u[2] * b, u[3] * c);
    [u[0], a, b, c, (gamma - 1.0) * (u[4] - kinetic)]
}

/// Returns the primitive variables of gas with the internal energy density `internal`; the total energy is not read.
#[device]
pub fn primitive_from_internal<R: Lane>(u: &[R; 5], internal: R, gamma: R) -> [R; 5] {
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

/// Converts primitive to conserved variables.
#[device]
pub fn conserved_from_primitive<R: Lane>(w: &[R; 5], gamma: R) -> [R; 5] {
    let energy = total_energy(w[0], [w[1], w[2], w[3]], w[4], gamma);
    [w[0], w[0] * w[1], w[0] * w[2], w[0] * w[3], energy]
}

/// Returns the signal rate of a primitive state, the sum over the axes of `(|v_d| + c) / dx_d` (1/time). It is the inverse time step at a
/// Courant number of one (GAMER-2, Schive et al. 2018, eq. 1 in the form for unsplit schemes).
#[device]
pub fn signal_rate<R: Lane>(w: &[R; 5], inverse_dx: &[R; 3], gamma: R) -> R {
    let c = sound_speed(w[0], w[4], gamma);
    sum3(
        (w[1].abs() + c) * inverse_dx[0],
        (w[2].abs() + c) * inverse_dx[1],
        (w[3].abs() + c) * inverse_dx[2],
    )
}

/// Returns the [`signal_rate`] of a conserved state, or -1 if the state is unphysical: density or pressure not positive, or a component not
/// finite.
#[device]
pub fn checked_signal_rate<R: Lane>(u: &[R; 5], inverse_dx: &[R; 3], gamma: R) -> R {
    let w = primitive_from_conserved(u, gamma);
    // an infinite momentum or energy makes the pressure infinite or NaN
    let finite = (w[0] * 0.0 == 0.0) & (w[4] * 0.0 == 0.0);
    let physical = finite & (w[0] > 0.0) & (w[4] > 0.0);
    let rate = signal_rate(&w, inverse_dx, gamma);
    if physical { rate } else { -1.0 }
}

/// Returns the variables that are interpolated between levels: density, velocity, internal energy per volume. They do not depend on gamma;
/// 2 makes its factor exactly 1.
#[device]
pub fn interpolated<R: Lane>(u: &[R; 5]) -> [R; 5] {
    primitive_from_conserved(u, 2.0)
}

/// Returns the conserved state of [`interpolated`] variables.
#[device]
pub fn from_interpolated<R: Lane>(w: &[R; 5]) -> [R; 5] {
    conserved_from_primitive(w, 2.0)
}

/// Repairs a state `u` whose pressure became negative by round-off: takes the internal energy of the [`interpolated`] variables `w`.
/// Density and momentum do not change.
#[device]
pub fn repaired<R: Lane>(u: &[R; 5], w: &[R; 5]) -> [R; 5] {
    let inverse = 1.0 / u[0];
    let kinetic = 0.5
        * sum3(
            u[1] * (u[1] * inverse),
            u[2] * (u[2] * inverse),
            u[3] * (u[3] * inverse),
        );
    [u[0], u[1], u[2], u[3], w[4] + kinetic]
}

/// Returns `true` if a conserved state is finite and has positive density and pressure. The sign of the pressure does not depend on gamma;
/// 2 makes its factor exactly 1.
#[device]
pub fn is_physical<R: Real>(u: &[R; 5]) -> bool {
    let w = primitive_from_conserved(u, 2.0);
    let mut finite = true;
    for c in 0..5 {
        finite = finite && u[c].is_finite();
    }
    u[0] > 0.0 && w[4] > 0.0 && finite
}
