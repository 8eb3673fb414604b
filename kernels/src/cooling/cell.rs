//! Cells of gas that heat and cool.

use super::integration::{integrate, net_rate, relaxation_rate};
use super::table::{CoolingTable, RateSlice, rate_slice, temperature_floor};
use crate::hydro::Conserved;
use crate::hydro::eos::{internal_energy, kinetic_energy};
use nestar_device::{Real, device};

/// What cells need besides the rates: between code units and those of the tables.
#[device]
#[derive(Clone, Debug)]
pub struct CoolingModel<R> {
    /// The rates.
    pub curves: CoolingTable<R>,
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
pub struct GasEnvironment<R> {
    /// Mass of metals over that of the gas, in solar units.
    pub metallicity: R,
    /// Heating beside that of the tables.
    pub heating: R,
}

/// Gas after heating and cooling, and energies by volume.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct CoolingResult<R: Real> {
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
fn rates_of<R: Real>(density: R, at: GasEnvironment<R>, p: &CoolingModel<R>) -> RateSlice<R> {
    let further = at.heating * p.heating;
    rate_slice(density * p.nuclei, at.metallicity, further, &p.curves)
}

/// The lowest temperature over mean molecular weight that a cell may have, kelvin.
#[device]
fn floor_of<R: Real>(density: R, c: &RateSlice<R>, p: &CoolingModel<R>) -> R {
    temperature_floor(c, &p.curves).max(p.jeans * density * p.kelvin)
}

/// Gas after a code time `dt`, by the rates of [`Curves`] and not below the floors; density and momentum stay.
#[device]
pub fn integrate_cooling<R: Real>(
    u: Conserved<R>,
    dt: R,
    at: GasEnvironment<R>,
    p: &CoolingModel<R>,
) -> CoolingResult<R> {
    let c = rates_of(u.density, at, p);
    let per_kelvin = u.density / p.kelvin;
    let before = internal_energy(u) / per_kelvin;
    let floor = floor_of(u.density, &c, p);
    let raised = before.max(floor);
    let after = integrate(raised, dt * p.time, floor, &c, &p.curves);
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
    CoolingResult::<R> {
        gas,
        radiated,
        heated,
        floored,
    }
}

/// Whether gas at so low a temperature over mean molecular weight stays at a floor.
#[device]
fn stays_at_floor<R: Real>(theta: R, density: R, c: &RateSlice<R>, p: &CoolingModel<R>) -> bool {
    theta <= 1.000001 * floor_of(density, c, p) && net_rate(theta, c, &p.curves) <= 0.0
}

/// The code time in which a cell's energy would change by itself at its net rate: negative where it cools, infinite where nothing happens or
/// cooling ends at a floor.
#[device]
pub fn net_cooling_time<R: Real>(u: Conserved<R>, at: GasEnvironment<R>, p: &CoolingModel<R>) -> R {
    let c = rates_of(u.density, at, p);
    let theta = internal_energy(u) / u.density * p.kelvin;
    let rate = net_rate(theta, &c, &p.curves) * p.time;
    if rate == 0.0 || stays_at_floor(theta, u.density, &c, p) {
        return R::INFINITY;
    }
    theta / rate
}

/// The code time in which a cell's heat changes by [`relaxation_rate`], in balance too; infinite where there is no rate or cooling ends at a floor.
#[device]
pub fn response_time<R: Real>(u: Conserved<R>, at: GasEnvironment<R>, p: &CoolingModel<R>) -> R {
    let c = rates_of(u.density, at, p);
    let theta = internal_energy(u) / u.density * p.kelvin;
    let rate = relaxation_rate(theta, &c, &p.curves) * p.time;
    if rate == 0.0 || stays_at_floor(theta, u.density, &c, p) {
        return R::INFINITY;
    }
    1.0 / rate
}
