//! Fluxes of viscosity and heat conduction through a face, and their limits of the time step.
//!
//! Gradients are of second order: along the normal the difference of the cells beside the face, across it the mean of the central
//! differences on both sides. The density at a face is the harmonic mean, so that thin gas beside dense gas keeps a step of its own.

use nestar_device::math::sum3;
use nestar_device::{Face, FaceStencil, Place, Real, Stencil, device};
use nestar_kernels::hydro::Conserved;
use nestar_kernels::hydro::eos::{internal_energy, kinetic_energy};

/// Gas with its internal energy, of the dual-energy formalism.
#[device]
#[derive(Clone, Copy)]
pub struct DualGas<R: Real> {
    /// The gas.
    pub gas: Conserved<R>,
    /// Internal energy density.
    pub internal: R,
}

/// Returns the differences of the velocities along axes `n` and `t` between two cells.
#[device]
fn velocity_changes<R: Real>(from: Conserved<R>, to: Conserved<R>, n: i32, t: i32) -> [R; 2] {
    let (before, after) = (1.0 / from.density, 1.0 / to.density);
    let (a, b) = (from.momentum, to.momentum);
    [
        b[n as usize] * after - a[n as usize] * before,
        b[t as usize] * after - a[t as usize] * before,
    ]
}

/// Returns the gradients along the axis `t` across the normal `n` of the velocities along `n` and `t`, from the cells beside both sides of
/// the face: the lower and the upper neighbour along `t` on either side.
#[device]
fn gradients_across<R: Real>(
    below: [Conserved<R>; 2],
    above: [Conserved<R>; 2],
    n: i32,
    t: i32,
    width: R,
) -> [R; 2] {
    let first = velocity_changes(below[0], below[1], n, t);
    let second = velocity_changes(above[0], above[1], n, t);
    // two central differences over two cells, and their mean
    let scale = 0.25 / width;
    [
        scale * (first[0] + second[0]),
        scale * (first[1] + second[1]),
    ]
}

/// Viscous fluxes of momentum and energy, `-tau` and `-v tau`.
#[device]
pub fn viscous_flux<R: Real>(
    u: &FaceStencil<R, Conserved<R>>,
    face: &Face<R>,
    kinematic: R,
) -> Conserved<R> {
    let n = face.axis;
    let (t, s) = ((n + 1) % 3, (n + 2) % 3);
    let width = face.above.width;
    let along_t = gradients_across(
        [u.around(-1, -1, 0), u.around(-1, 1, 0)],
        [u.around(0, -1, 0), u.around(0, 1, 0)],
        n,
        t,
        width[t as usize],
    );
    let along_s = gradients_across(
        [u.around(-1, 0, -1), u.around(-1, 0, 1)],
        [u.around(0, 0, -1), u.around(0, 0, 1)],
        n,
        s,
        width[s as usize],
    );
    let (below, above) = (u.at(-1), u.at(0));
    let (inverse_below, inverse_above) = (1.0 / below.density, 1.0 / above.density);
    let viscosity = 2.0 * kinematic / (inverse_below + inverse_above);
    let (a, b) = (below.momentum, above.momentum);
    let mut jump = [0.0; 3];
    let mut twice = [0.0; 3];
    for c in 0..3 {
        let (v, w) = (a[c] * inverse_below, b[c] * inverse_above);
        jump[c] = (w - v) / face.width;
        twice[c] = v + w;
    }
    let stretch = jump[n as usize];
    let divergence = sum3(stretch, along_t[1], along_s[1]);
    let mut flux = [0.0; 3];
    flux[n as usize] = -(viscosity * (2.0 * (stretch - divergence / 3.0)));
    flux[t as usize] = -(viscosity * (jump[t as usize] + along_t[0]));
    flux[s as usize] = -(viscosity * (jump[s as usize] + along_s[0]));
    Conserved {
        density: 0.0 * viscosity,
        momentum: flux,
        energy: 0.5 * sum3(twice[0] * flux[0], twice[1] * flux[1], twice[2] * flux[2]),
    }
}

/// Returns the flux of heat between two cells with these densities and internal energy densities: `-kappa grad T`.
#[device]
fn heat_between<R: Real>(
    density: [R; 2],
    internal: [R; 2],
    width: R,
    kappa: [R; 2],
    gamma: R,
) -> R {
    let (below, above) = (1.0 / density[0], 1.0 / density[1]);
    let conductivity = kappa[0] + 2.0 * kappa[1] / (below + above);
    let drop = (gamma - 1.0) * (internal[0] * below - internal[1] * above);
    conductivity * drop / width
}

/// Conductive flux of energy, `-kappa grad T` with `kappa = conductivity + per_density * density`.
#[device]
pub fn heat_flux<R: Real>(
    u: &FaceStencil<R, Conserved<R>>,
    face: &Face<R>,
    conductivity: R,
    per_density: R,
    gamma: R,
) -> Conserved<R> {
    let (below, above) = (u.at(-1), u.at(0));
    let heat = heat_between(
        [below.density, above.density],
        [internal_energy(below), internal_energy(above)],
        face.width,
        [conductivity, per_density],
        gamma,
    );
    let zero = 0.0 * below.density;
    Conserved {
        density: zero,
        momentum: [zero, zero, zero],
        energy: heat,
    }
}

/// Viscous fluxes of momentum and energy, with the conductive flux of energy.
#[device]
pub fn viscous_and_heat_flux<R: Real>(
    u: &FaceStencil<R, Conserved<R>>,
    face: &Face<R>,
    kinematic: R,
    conductivity: R,
    per_density: R,
    gamma: R,
) -> Conserved<R> {
    let mut flux = viscous_flux(u, face, kinematic);
    let heat = heat_flux(u, face, conductivity, per_density, gamma);
    flux.energy = flux.energy + heat.energy;
    flux
}

/// Conductive flux of both energies of the dual-energy formalism; the temperature is that of the internal energy.
#[device]
pub fn dual_heat_flux<R: Real>(
    u: &FaceStencil<R, DualGas<R>>,
    face: &Face<R>,
    conductivity: R,
    per_density: R,
    gamma: R,
) -> DualGas<R> {
    let (below, above) = (u.at(-1), u.at(0));
    let heat = heat_between(
        [below.gas.density, above.gas.density],
        [below.internal, above.internal],
        face.width,
        [conductivity, per_density],
        gamma,
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

/// Returns the rate at which signals cross a cell, the inverse of the step for a Courant number of 1.
#[device]
fn signal_rate<R: Real>(u: Conserved<R>, width: [R; 3], gamma: R) -> R {
    let internal = (u.energy - kinetic_energy(u)).max(0.0 * u.density);
    let inverse = 1.0 / u.density;
    let sound = (gamma * (gamma - 1.0) * internal * inverse).sqrt();
    let m = u.momentum;
    sum3(
        ((m[0] * inverse).abs() + sound) / width[0],
        ((m[1] * inverse).abs() + sound) / width[1],
        ((m[2] * inverse).abs() + sound) / width[2],
    )
}

/// Returns the sum over the two faces along an axis of the harmonic mean of the density, over the density of the cell.
#[device]
fn face_densities<R: Real>(below: R, density: R, above: R) -> R {
    2.0 / (1.0 + density / below) + 2.0 / (1.0 + density / above)
}

/// Returns the rate at which a cell loses a quantity through its faces by diffusion: `even` is a diffusivity with the density at the faces,
/// `uneven` one that does not depend on it.
#[device]
fn diffusion_rate<R: Real>(u: &Stencil<R, Conserved<R>>, width: [R; 3], even: R, uneven: R) -> R {
    let density = u.at(0, 0, 0).density;
    let other = 2.0 * uneven / density;
    let x = even * face_densities(u.at(-1, 0, 0).density, density, u.at(1, 0, 0).density) + other;
    let y = even * face_densities(u.at(0, -1, 0).density, density, u.at(0, 1, 0).density) + other;
    let z = even * face_densities(u.at(0, 0, -1).density, density, u.at(0, 0, 1).density) + other;
    sum3(
        x / (width[0] * width[0]),
        y / (width[1] * width[1]),
        z / (width[2] * width[2]),
    )
}

/// Step in which signals and the diffusion of momentum together leave a cell less than once, times the Courant number.
#[device]
pub fn viscous_limit<R: Real>(
    u: &Stencil<R, Conserved<R>>,
    at: &Place<R>,
    kinematic: R,
    gamma: R,
    courant: R,
) -> R {
    let even = 4.0 * kinematic / 3.0;
    let rate = diffusion_rate(u, at.width, even, 0.0 * even);
    courant / (signal_rate(u.at(0, 0, 0), at.width, gamma) + rate)
}

/// Step in which signals and the diffusion of heat together leave a cell less than once, times the Courant number.
#[device]
pub fn conductive_limit<R: Real>(
    u: &Stencil<R, Conserved<R>>,
    at: &Place<R>,
    conductivity: R,
    per_density: R,
    gamma: R,
    courant: R,
) -> R {
    let factor = gamma - 1.0;
    let rate = diffusion_rate(u, at.width, factor * per_density, factor * conductivity);
    courant / (signal_rate(u.at(0, 0, 0), at.width, gamma) + rate)
}
