//! Cells of gas that heat and cool.

use super::curves::{Chosen, Curves, chosen, lowest};
use super::walk::{net_rate, pace, walk};
use crate::hydro::Conserved;
use crate::hydro::eos::{internal_energy, kinetic_energy};
use nestar_device::{Real, device};

/// What cells need besides the rates: between code units and those of the tables.
#[device]
#[derive(Clone, Debug)]
pub struct Cooler<R> {
    /// The rates.
    pub curves: Curves<R>,
    /// Temperature over mean molecular weight, in kelvin, in a code energy by code mass.
    pub kelvin: R,
    /// Hydrogen nuclei per cubic centimetre in a code density.
    pub nuclei: R,
    /// Million years in a code time.
    pub time: R,
    /// Lowest energy by mass, over density: so that the Jeans length has as many cells of the finest level as wanted.
    pub jeans: R,
    /// Kelvin per million years in an erg per second and hydrogen nucleus.
    pub heating: R,
    /// Metallicity of gas that carries none, in solar units.
    pub metallicity: R,
    /// gamma (gamma - 1): times energy by mass, the square of the speed of sound.
    pub sound: R,
}

/// Metallicity and heating of a cell, in solar units, and in erg per second and hydrogen nucleus.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct Place<R> {
    /// Mass of metals over that of the gas, in solar units.
    pub metallicity: R,
    /// Heating beside that of the tables.
    pub heating: R,
}

/// Gas after heating and cooling, and energies by volume.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct Exchanged<R: Real> {
    /// The gas.
    pub gas: Conserved<R>,
    /// Energy that has been radiated.
    pub radiated: R,
    /// Energy that heating has given.
    pub heated: R,
    /// Energy that the floors have given.
    pub floored: R,
}

/// The rates of a cell.
#[device]
fn rates_of<R: Real>(density: R, at: Place<R>, p: &Cooler<R>) -> Chosen<R> {
    let further = at.heating * p.heating;
    chosen(density * p.nuclei, at.metallicity, further, &p.curves)
}

/// The lowest temperature over mean molecular weight that a cell may have, kelvin.
#[device]
fn floor_of<R: Real>(density: R, c: &Chosen<R>, p: &Cooler<R>) -> R {
    lowest(c, &p.curves).max(p.jeans * density * p.kelvin)
}

/// Gas after a code time `dt`, by the rates of [`Curves`] and not below the floors; density and momentum stay.
#[device]
pub fn exchanged<R: Real>(u: Conserved<R>, dt: R, at: Place<R>, p: &Cooler<R>) -> Exchanged<R> {
    let c = rates_of(u.density, at, p);
    let per_kelvin = u.density / p.kelvin;
    let before = internal_energy(u) / per_kelvin;
    let floor = floor_of(u.density, &c, p);
    let raised = before.max(floor);
    let after = walk(raised, dt * p.time, floor, &c, &p.curves);
    let mut gas = u;
    gas.energy = u.energy + (after.theta - before) * per_kelvin;
    let mut floored = (raised - before) * per_kelvin;
    // gas so cold beside its motion that its heat is lost in the energy's last digit
    let kinetic = kinetic_energy(u);
    if gas.energy <= kinetic {
        let saved = kinetic + kinetic * (2.0 * R::EPSILON);
        floored += saved - gas.energy;
        gas.energy = saved;
    }
    let heated = after.heated * per_kelvin;
    // what is stored decides, so that the sums close
    let radiated = heated + floored - (gas.energy - u.energy);
    Exchanged::<R> {
        gas,
        radiated,
        heated,
        floored,
    }
}

/// Whether gas at so low a temperature over mean molecular weight stays at a floor.
#[device]
fn rests<R: Real>(theta: R, density: R, c: &Chosen<R>, p: &Cooler<R>) -> bool {
    theta <= 1.000001 * floor_of(density, c, p) && net_rate(theta, c, &p.curves) <= 0.0
}

/// The code time in which a cell's energy would change by itself at its net rate: negative where it cools, infinite where nothing happens or
/// cooling ends at a floor.
#[device]
pub fn exchange_time<R: Real>(u: Conserved<R>, at: Place<R>, p: &Cooler<R>) -> R {
    let c = rates_of(u.density, at, p);
    let theta = internal_energy(u) / u.density * p.kelvin;
    let rate = net_rate(theta, &c, &p.curves) * p.time;
    if rate == 0.0 || rests(theta, u.density, &c, p) {
        return R::INFINITY;
    }
    theta / rate
}

/// The code time in which a cell's heat changes by [`pace`], in balance too; infinite where there is no rate or cooling ends at a floor.
#[device]
pub fn response_time<R: Real>(u: Conserved<R>, at: Place<R>, p: &Cooler<R>) -> R {
    let c = rates_of(u.density, at, p);
    let theta = internal_energy(u) / u.density * p.kelvin;
    let rate = pace(theta, &c, &p.curves) * p.time;
    if rate == 0.0 || rests(theta, u.density, &c, p) {
        return R::INFINITY;
    }
    1.0 / rate
}
