//! Fluxes of viscosity and heat conduction through a face, and their limits of the time step.
//!
//! Gradients are of second order: along the normal the difference of the cells beside the face, across it the mean of the central
//! differences on both sides. The density at a face is the harmonic mean, so that thin gas beside dense gas does not shorten the step.

use nestar_device::math::{pow, sum3};
use nestar_device::{Face, FaceStencil, Place, Real, Stencil, device};
use nestar_kernels::hydro::Conserved;
use nestar_kernels::hydro::eos::primitive_from_internal;
use nestar_kernels::hydro::eos::{internal_energy, signal_rate};
use nestar_kernels::hydro::magnetic::checked_signal_rate;

/// Gas with its internal energy, of the dual-energy formalism.
#[device]
#[derive(Clone, Copy)]
pub struct DualGas<R: Real> {
    /// The gas.
    pub gas: Conserved<R>,
    /// Internal energy density.
    pub internal: R,
}

/// Gas with its magnetic field.
#[device]
#[derive(Clone, Copy)]
pub struct MagneticGas<R: Real> {
    /// The gas.
    pub gas: Conserved<R>,
    /// Magnetic field along x, y, z.
    pub field: [R; 3],
}

/// Returns the components of a vector along the axis `n` and the two axes that follow it in the order x, y, z, x, y.
#[device]
fn turned<R: Real>(v: [R; 3], n: i32) -> [R; 3] {
    if n == 0 {
        v
    } else if n == 1 {
        [v[1], v[2], v[0]]
    } else {
        [v[2], v[0], v[1]]
    }
}

/// Returns the components along x, y, z of a vector of [`turned`] components.
#[device]
fn turned_back<R: Real>(v: [R; 3], n: i32) -> [R; 3] {
    if n == 0 {
        v
    } else if n == 1 {
        [v[2], v[0], v[1]]
    } else {
        [v[1], v[2], v[0]]
    }
}

/// Returns the velocity of gas, with [`turned`] components.
#[device]
fn velocity<R: Real>(u: Conserved<R>, n: i32) -> [R; 3] {
    let inverse = 1.0 / u.density;
    let m = turned(u.momentum, n);
    [m[0] * inverse, m[1] * inverse, m[2] * inverse]
}

/// Returns the gradient of a velocity across the normal, the mean of the central differences on both sides of the face. The velocities are
/// those of the lower and the upper neighbour below the face, then above it.
#[device]
fn gradient_across<R: Real>(v: [R; 4], width: R) -> R {
    (0.25 / width) * ((v[1] - v[0]) + (v[3] - v[2]))
}

/// Viscous fluxes of momentum and energy, `-tau` and `-v tau`.
#[device]
pub fn viscous_flux<R: Real>(
    u: &FaceStencil<R, Conserved<R>>,
    face: &Face<R>,
    kinematic: R,
) -> Conserved<R> {
    let n = face.axis;
    let width = turned(face.above.width, n);
    let (a, b) = (
        velocity(u.around(-1, -1, 0), n),
        velocity(u.around(-1, 1, 0), n),
    );
    let (c, d) = (
        velocity(u.around(0, -1, 0), n),
        velocity(u.around(0, 1, 0), n),
    );
    let next = [
        gradient_across([a[0], b[0], c[0], d[0]], width[1]),
        gradient_across([a[1], b[1], c[1], d[1]], width[1]),
    ];
    let (a, b) = (
        velocity(u.around(-1, 0, -1), n),
        velocity(u.around(-1, 0, 1), n),
    );
    let (c, d) = (
        velocity(u.around(0, 0, -1), n),
        velocity(u.around(0, 0, 1), n),
    );
    let last = [
        gradient_across([a[0], b[0], c[0], d[0]], width[2]),
        gradient_across([a[2], b[2], c[2], d[2]], width[2]),
    ];
    let (below, above) = (u.at(-1), u.at(0));
    let (v, w) = (velocity(below, n), velocity(above, n));
    let inverse = 1.0 / width[0];
    let stretch = (w[0] - v[0]) * inverse;
    let divergence = sum3(stretch, next[1], last[1]);
    let viscosity = 2.0 * kinematic / (1.0 / below.density + 1.0 / above.density);
    let flux = [
        -(viscosity * (2.0 * (stretch - divergence / 3.0))),
        -(viscosity * ((w[1] - v[1]) * inverse + next[0])),
        -(viscosity * ((w[2] - v[2]) * inverse + last[0])),
    ];
    let work = sum3(
        (v[0] + w[0]) * flux[0],
        (v[1] + w[1]) * flux[1],
        (v[2] + w[2]) * flux[2],
    );
    Conserved {
        density: 0.0 * viscosity,
        momentum: turned_back(flux, n),
        energy: 0.5 * work,
    }
}

/// Conductivity `(constant + per_density * density) T^power` of gas with the ratio of specific heats `gamma`.
#[device]
#[derive(Clone, Copy)]
pub struct Conductivity<R> {
    /// Part that does not depend on the density.
    pub constant: R,
    /// Part that is proportional to the density.
    pub per_density: R,
    /// Power of the temperature.
    pub power: R,
    /// Ratio of specific heats.
    pub gamma: R,
}

/// Returns the mean of a power of two temperatures.
#[device]
fn mean_power<R: Real>(a: R, b: R, power: R) -> R {
    if power == 0.0 {
        1.0
    } else {
        0.5 * (pow(a, power) + pow(b, power))
    }
}

/// Returns the flux of heat between two cells with these densities and internal energy densities: `-kappa grad T`.
#[device]
fn heat_between<R: Real>(
    density: [R; 2],
    internal: [R; 2],
    width: R,
    kappa: &Conductivity<R>,
) -> R {
    let factor = kappa.gamma - 1.0;
    let (inverse_below, inverse_above) = (1.0 / density[0], 1.0 / density[1]);
    let below = factor * (internal[0] * inverse_below);
    let above = factor * (internal[1] * inverse_above);
    let at_face = kappa.constant + 2.0 * kappa.per_density / (inverse_below + inverse_above);
    at_face * mean_power(below, above, kappa.power) * (below - above) / width
}

/// Conductive flux of energy, `-kappa grad T`.
#[device]
pub fn heat_flux<R: Real>(
    u: &FaceStencil<R, Conserved<R>>,
    face: &Face<R>,
    kappa: &Conductivity<R>,
) -> Conserved<R> {
    let (below, above) = (u.at(-1), u.at(0));
    let heat = heat_between(
        [below.density, above.density],
        [internal_energy(below), internal_energy(above)],
        face.width,
        kappa,
    );
    let zero = 0.0 * below.density;
    Conserved {
        density: zero,
        momentum: [zero, zero, zero],
        energy: heat,
    }
}

/// Viscosity and conductivity.
#[device]
pub struct Transport<R> {
    /// Kinematic viscosity.
    pub kinematic: R,
    /// Conductivity.
    pub conductivity: Conductivity<R>,
}

/// Viscous fluxes of momentum and energy, with the conductive flux of energy.
#[device]
pub fn viscous_and_heat_flux<R: Real>(
    u: &FaceStencil<R, Conserved<R>>,
    face: &Face<R>,
    p: &Transport<R>,
) -> Conserved<R> {
    let mut flux = viscous_flux(u, face, p.kinematic);
    let heat = heat_flux(u, face, &p.conductivity);
    flux.energy += heat.energy;
    flux
}

/// Conductive flux of both energies of the dual-energy formalism; the temperature is that of the internal energy.
#[device]
pub fn dual_heat_flux<R: Real>(
    u: &FaceStencil<R, DualGas<R>>,
    face: &Face<R>,
    kappa: &Conductivity<R>,
) -> DualGas<R> {
    let (below, above) = (u.at(-1), u.at(0));
    let heat = heat_between(
        [below.gas.density, above.gas.density],
        [below.internal, above.internal],
        face.width,
        kappa,
    );
    let zero = 0.0 * below.internal;
    let gas = Conserved {
        density: zero,
        momentum: [zero, zero, zero],
        energy: heat,
    };
    DualGas {
        gas,
        internal: heat,
    }
}

/// Returns the internal energy density of gas; the round-off of cold gas may make it negative: it is 0 then.
#[device]
fn warm_energy<R: Real>(u: Conserved<R>) -> R {
    internal_energy(u).max(0.0 * u.density)
}

/// Returns the rate at which signals cross a cell, the inverse of the step for a Courant number of 1.
#[device]
fn crossing_rate<R: Real>(u: Conserved<R>, internal: R, width: [R; 3], gamma: R) -> R {
    let m = u.momentum;
    let state = [u.density, m[0], m[1], m[2], u.energy];
    let w = primitive_from_internal(&state, internal, gamma);
    let inverse = [1.0 / width[0], 1.0 / width[1], 1.0 / width[2]];
    signal_rate(&w, &inverse, gamma)
}

/// Returns the same for gas with a magnetic field, with fast waves in place of sound; 0 if the pressure is not positive.
#[device]
fn magnetic_crossing_rate<R: Real>(u: MagneticGas<R>, width: [R; 3], gamma: R) -> R {
    let (gas, b) = (u.gas, u.field);
    let m = gas.momentum;
    let none = 0.0 * gas.density;
    let state = [
        gas.density,
        m[0],
        m[1],
        m[2],
        gas.energy,
        b[0],
        b[1],
        b[2],
        none,
    ];
    let inverse = [1.0 / width[0], 1.0 / width[1], 1.0 / width[2]];
    checked_signal_rate(&state, &inverse, gamma).max(none)
}

/// Returns the density at a face, the harmonic mean of both sides, over the density of one side.
#[device]
fn face_density<R: Real>(density: R, beyond: R) -> R {
    2.0 / (1.0 + density / beyond)
}

/// Returns the rate at which momentum diffuses out of a cell. With the harmonic mean of the density at the faces, that of uniform gas
/// holds for any density.
#[device]
fn viscous_rate<R: Real>(kinematic: R, w: [R; 3]) -> R {
    let sum = sum3(
        1.0 / (w[0] * w[0]),
        1.0 / (w[1] * w[1]),
        1.0 / (w[2] * w[2]),
    );
    8.0 * kinematic / 3.0 * sum
}

/// Step in which signals and the diffusion of momentum together leave a cell less than once, times the Courant number.
#[device]
pub fn viscous_limit<R: Real>(
    u: Conserved<R>,
    at: &Place<R>,
    kinematic: R,
    gamma: R,
    courant: R,
) -> R {
    let w = at.width;
    courant / (crossing_rate(u, warm_energy(u), w, gamma) + viscous_rate(kinematic, w))
}

/// As [`viscous_limit`], with the sound speed of the internal energy.
#[device]
pub fn dual_viscous_limit<R: Real>(
    u: DualGas<R>,
    at: &Place<R>,
    kinematic: R,
    gamma: R,
    courant: R,
) -> R {
    let w = at.width;
    courant / (crossing_rate(u.gas, u.internal, w, gamma) + viscous_rate(kinematic, w))
}

/// As [`viscous_limit`], for gas with a magnetic field.
#[device]
pub fn magnetic_viscous_limit<R: Real>(
    u: MagneticGas<R>,
    at: &Place<R>,
    kinematic: R,
    gamma: R,
    courant: R,
) -> R {
    let w = at.width;
    courant / (magnetic_crossing_rate(u, w, gamma) + viscous_rate(kinematic, w))
}

/// Returns the rate at which a cell loses heat through a face of unit width to a cell beyond it. Both are given by density and internal
/// energy density.
#[device]
fn heat_rate<R: Real>(here: [R; 2], beyond: [R; 2], kappa: &Conductivity<R>) -> R {
    let factor = kappa.gamma - 1.0;
    let even = kappa.per_density * face_density(here[0], beyond[0]);
    let temperature = factor * here[1] / here[0];
    let other = factor * beyond[1] / beyond[0];
    factor * (even + kappa.constant / here[0]) * mean_power(temperature, other, kappa.power)
}

/// Conductivity and Courant number.
#[device]
pub struct HeatLimit<R> {
    /// Conductivity.
    pub kappa: Conductivity<R>,
    /// Courant number.
    pub courant: R,
}

/// Returns the rate at which a cell loses heat to its neighbours below and above it along x, y, z.
#[device]
fn conductive_rate<R: Real>(
    here: [R; 2],
    near: &[[R; 2]; 6],
    w: [R; 3],
    kappa: &Conductivity<R>,
) -> R {
    let x = heat_rate(here, near[0], kappa) + heat_rate(here, near[1], kappa);
    let y = heat_rate(here, near[2], kappa) + heat_rate(here, near[3], kappa);
    let z = heat_rate(here, near[4], kappa) + heat_rate(here, near[5], kappa);
    sum3(x / (w[0] * w[0]), y / (w[1] * w[1]), z / (w[2] * w[2]))
}

/// Returns density and internal energy density of gas.
#[device]
fn thermal<R: Real>(u: Conserved<R>) -> [R; 2] {
    [u.density, warm_energy(u)]
}

/// Returns density and internal energy density of gas with two energies.
#[device]
fn dual_thermal<R: Real>(u: DualGas<R>) -> [R; 2] {
    [u.gas.density, u.internal]
}

/// Step in which signals and the diffusion of heat together leave a cell less than once, times the Courant number.
#[device]
pub fn conductive_limit<R: Real>(
    u: &Stencil<R, Conserved<R>>,
    at: &Place<R>,
    p: &HeatLimit<R>,
) -> R {
    let (gas, w) = (u.at(0, 0, 0), at.width);
    let here = thermal(gas);
    let near = [
        thermal(u.at(-1, 0, 0)),
        thermal(u.at(1, 0, 0)),
        thermal(u.at(0, -1, 0)),
        thermal(u.at(0, 1, 0)),
        thermal(u.at(0, 0, -1)),
        thermal(u.at(0, 0, 1)),
    ];
    let heat = conductive_rate(here, &near, w, &p.kappa);
    p.courant / (crossing_rate(gas, here[1], w, p.kappa.gamma) + heat)
}

/// As [`conductive_limit`], with the temperature of the internal energy.
#[device]
pub fn dual_conductive_limit<R: Real>(
    u: &Stencil<R, DualGas<R>>,
    at: &Place<R>,
    p: &HeatLimit<R>,
) -> R {
    let (both, w) = (u.at(0, 0, 0), at.width);
    let near = [
        dual_thermal(u.at(-1, 0, 0)),
        dual_thermal(u.at(1, 0, 0)),
        dual_thermal(u.at(0, -1, 0)),
        dual_thermal(u.at(0, 1, 0)),
        dual_thermal(u.at(0, 0, -1)),
        dual_thermal(u.at(0, 0, 1)),
    ];
    let heat = conductive_rate(dual_thermal(both), &near, w, &p.kappa);
    p.courant / (crossing_rate(both.gas, both.internal, w, p.kappa.gamma) + heat)
}

/// As [`conductive_limit`], for gas with a magnetic field.
#[device]
pub fn magnetic_conductive_limit<R: Real>(
    u: &Stencil<R, MagneticGas<R>>,
    at: &Place<R>,
    p: &HeatLimit<R>,
) -> R {
    let (here, w) = (u.at(0, 0, 0), at.width);
    let near = [
        thermal(u.at(-1, 0, 0).gas),
        thermal(u.at(1, 0, 0).gas),
        thermal(u.at(0, -1, 0).gas),
        thermal(u.at(0, 1, 0).gas),
        thermal(u.at(0, 0, -1).gas),
        thermal(u.at(0, 0, 1).gas),
    ];
    let heat = conductive_rate(thermal(here.gas), &near, w, &p.kappa);
    p.courant / (magnetic_crossing_rate(here, w, p.kappa.gamma) + heat)
}
