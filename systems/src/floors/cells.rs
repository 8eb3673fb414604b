//! Cell functions of the floors.

use nestar_device::{Real, device};
use nestar_kernels::hydro::Conserved;
use nestar_kernels::hydro::eos::{gas_of, internal_energy};
use nestar_kernels::mesh::subcycle::{DONE, Subcycle};

/// Names of the sums, in their order.
pub(super) const GAINS: [&str; 8] = [
    "density_mass",
    "density_momentum_x",
    "density_momentum_y",
    "density_momentum_z",
    "density_energy",
    "temperature_energy",
    "pressure_energy",
    "jeans_energy",
];

/// Parameters of the floors.
#[device]
#[derive(Clone, Copy)]
pub(super) struct FloorValues<R> {
    /// Lowest density.
    pub density: R,
    /// Lowest pressure over density.
    pub temperature: R,
    /// Lowest pressure.
    pub pressure: R,
    /// Lowest pressure over the square of the density.
    pub jeans: R,
    /// Internal energy over pressure, `1 / (gamma - 1)`.
    pub energy: R,
}

/// Gas above the floors, with what they have added.
#[device]
#[derive(Clone, Copy)]
struct FlooredGas<R: Real> {
    gas: Conserved<R>,
    internal: R,
    gains: [R; 8],
}

/// Raises the total energy by the same amount as the internal one; returns the gain as stored.
#[device]
fn raise<R: Real>(before: FlooredGas<R>, least: R, number: usize) -> FlooredGas<R> {
    let mut after = before;
    if before.internal < least {
        let energy = before.gas.energy + (least - before.internal);
        after.gas.energy = energy;
        after.internal = least;
        after.gains[number] = energy - before.gas.energy;
    }
    after
}

/// Adds mass at constant velocity and temperature, then internal energy.
#[device]
fn floored<R: Real>(
    u: Conserved<R>,
    internal: R,
    temperature: R,
    p: &FloorValues<R>,
) -> FlooredGas<R> {
    let mut gas = u;
    let mut heat = internal;
    let mut gains = [0.0; 8];
    if u.density < p.density {
        let ratio = p.density / u.density;
        let [x, y, z] = u.momentum;
        gas.density = p.density;
        gas.momentum = [x * ratio, y * ratio, z * ratio];
        gas.energy = u.energy * ratio;
        heat = internal * ratio;
        gains[0] = gas.density - u.density;
        gains[1] = gas.momentum[0] - x;
        gains[2] = gas.momentum[1] - y;
        gains[3] = gas.momentum[2] - z;
        gains[4] = gas.energy - u.energy;
    }
    let dense = FlooredGas::<R> {
        gas,
        internal: heat,
        gains,
    };
    let rho = gas.density;
    let warm = raise(dense, p.energy * (temperature * rho), 5);
    let pressed = raise(warm, p.energy * p.pressure, 6);
    raise(pressed, p.energy * (p.jeans * (rho * rho)), 7)
}

/// Returns the gas with its gains.
#[device]
#[allow(
    clippy::zero_repeat_side_effects,
    reason = "a literal is a call of no effect"
)]
fn of_gas<R: Real>(f: FlooredGas<R>) -> Subcycle<Conserved<R>, [R; 0], [R; 8]> {
    Subcycle::<Conserved<R>, [R; 0], [R; 8]> {
        state: f.gas,
        carried: [0.0; 0],
        sums: f.gains,
        status: DONE,
        work: 1,
    }
}

/// Returns the gas and its internal energy with its gains.
#[device]
#[allow(
    clippy::zero_repeat_side_effects,
    reason = "a literal is a call of no effect"
)]
fn of_both<R: Real>(f: FlooredGas<R>) -> Subcycle<[R; 6], [R; 0], [R; 8]> {
    let m = f.gas.momentum;
    let state = [f.gas.density, m[0], m[1], m[2], f.gas.energy, f.internal];
    Subcycle::<[R; 6], [R; 0], [R; 8]> {
        state,
        carried: [0.0; 0],
        sums: f.gains,
        status: DONE,
        work: 1,
    }
}

/// Floors of the gas.
#[device]
pub(super) fn floor_gas<R: Real>(
    u: Conserved<R>,
    p: &FloorValues<R>,
) -> Subcycle<Conserved<R>, [R; 0], [R; 8]> {
    of_gas(floored(u, internal_energy(u), p.temperature, p))
}

/// As `floor_gas`, with the pressure over the density at the lowest temperature.
#[device]
pub(super) fn floor_gas_by<R: Real>(
    u: (Conserved<R>, [R; 1]),
    p: &FloorValues<R>,
) -> Subcycle<Conserved<R>, [R; 0], [R; 8]> {
    let (gas, [temperature]) = u;
    of_gas(floored(gas, internal_energy(gas), temperature, p))
}

/// Floors of gas with two energies.
#[device]
pub(super) fn floor_both<R: Real>(
    u: [R; 6],
    p: &FloorValues<R>,
) -> Subcycle<[R; 6], [R; 0], [R; 8]> {
    of_both(floored(gas_of(u), u[5], p.temperature, p))
}

/// As `floor_both`, with the pressure over the density at the lowest temperature.
#[device]
pub(super) fn floor_both_by<R: Real>(
    u: ([R; 6], [R; 1]),
    p: &FloorValues<R>,
) -> Subcycle<[R; 6], [R; 0], [R; 8]> {
    let (both, [temperature]) = u;
    of_both(floored(gas_of(both), both[5], temperature, p))
}

/// Scalar of gas that the density floor is about to raise, at a constant mass fraction. The state is the density and
/// the scalar.
#[device]
#[allow(
    clippy::zero_repeat_side_effects,
    reason = "a literal is a call of no effect"
)]
pub(super) fn floor_scalar<R: Real>(u: [R; 2], density: R) -> Subcycle<[R; 2], [R; 0], [R; 1]> {
    let mut scalar = u[1];
    if u[0] < density {
        scalar = u[1] * (density / u[0]);
    }
    Subcycle::<[R; 2], [R; 0], [R; 1]> {
        state: [u[0], scalar],
        carried: [0.0; 0],
        sums: [scalar - u[1]],
        status: DONE,
        work: 1,
    }
}

/// Mass fraction of a scalar that the density floor has raised. The state is the density before and the scalar.
#[device]
pub(super) fn floored_fraction<R: Real>(u: [R; 2], least: R) -> R {
    u[1] / u[0].max(least)
}

/// Density above its floor.
#[device]
pub(super) fn floored_density<R: Real>(density: R, least: R) -> R {
    density.max(least)
}
