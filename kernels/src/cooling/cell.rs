//! Heating and cooling of a cell of gas.

use super::integration::{integrate, net_rate, relaxation_rate};
use super::table::{CoolingTable, RateSlice, rate_slice, temperature_floor, temperature_of};
use crate::hydro::Conserved;
use crate::hydro::eos::{internal_energy, kinetic_energy};
use nestar_device::{Real, device};

/// Rates and unit conversions for cells.
#[device]
#[derive(Clone, Debug)]
pub struct CoolingModel<R> {
    /// Rate table.
    pub curves: CoolingTable<R>,
    /// Temperature over mean molecular weight, in kelvin, per code energy over code mass.
    pub kelvin: R,
    /// Hydrogen nuclei per cubic centimetre per code density.
    pub nuclei: R,
    /// Million years per code time.
    pub time: R,
    /// Smallest specific energy over density such that the Jeans length is resolved by the requested number of finest cells.
    pub jeans: R,
    /// Kelvin per million years, per erg per second and hydrogen nucleus.
    pub heating: R,
    /// Metallicity of gas without a metallicity field, in solar units.
    pub metallicity: R,
    /// Mean molecular weight if the table is one over temperature; 1 if it is one over temperature over mean molecular weight.
    pub weight: R,
    /// gamma (gamma - 1): the square of the sound speed over the specific energy.
    pub sound: R,
}

/// Properties of a cell that the gas state does not contain.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct GasEnvironment<R> {
    /// Mass fraction of metals, in solar units.
    pub metallicity: R,
    /// Heating in addition to that of the tables, erg per second and hydrogen nucleus.
    pub heating: R,
    /// As [`CoolingModel::weight`].
    pub weight: R,
}

/// Gas after heating and cooling, and exchanged energies per volume.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct CoolingResult<R: Real> {
    /// Gas at the end of the step.
    pub gas: Conserved<R>,
    /// Radiated energy.
    pub radiated: R,
    /// Energy gained by heating.
    pub heated: R,
    /// Energy added by the floors.
    pub floored: R,
}

/// Returns the rates of a cell.
#[device]
fn rates_of<R: Real>(density: R, at: GasEnvironment<R>, p: &CoolingModel<R>) -> RateSlice<R> {
    let extra_heating = at.heating * p.heating;
    rate_slice(density * p.nuclei, at.metallicity, extra_heating, &p.curves)
}

/// Returns the lowest temperature over mean molecular weight that a cell may have, kelvin. `kelvin` is that per code energy over code mass.
#[device]
fn floor_of<R: Real>(density: R, kelvin: R, c: &RateSlice<R>, p: &CoolingModel<R>) -> R {
    temperature_floor(c, &p.curves).max(p.jeans * density * kelvin)
}

/// Returns the temperature of a cell in kelvin, from a table that has temperatures.
#[device]
pub fn table_temperature<R: Real>(u: Conserved<R>, p: &CoolingModel<R>) -> R {
    let c = rate_slice(u.density * p.nuclei, p.metallicity, 0.0, &p.curves);
    temperature_of(internal_energy(u) / u.density * p.kelvin, &c, &p.curves)
}

/// Integrates heating and cooling over a code time `dt`, with the rates of [`CoolingTable`] and at least the floor energy. Density and
/// momentum do not change.
#[device]
pub fn integrate_cooling<R: Real>(
    u: Conserved<R>,
    dt: R,
    at: GasEnvironment<R>,
    p: &CoolingModel<R>,
) -> CoolingResult<R> {
    let c = rates_of(u.density, at, p);
    let kelvin = p.kelvin * at.weight;
    let per_kelvin = u.density / kelvin;
    let before = internal_energy(u) / per_kelvin;
    let floor = floor_of(u.density, kelvin, &c, p);
    let raised = before.max(floor);
    let time = dt * p.time * at.weight;
    let after = integrate(raised, time, floor, &c, &p.curves);
    let mut gas = u;
    gas.energy = u.energy + (after.theta - before) * per_kelvin;
    let mut floored = (raised - before) * per_kelvin;
    // in very cold gas the thermal energy is below the last digit of the total energy
    let kinetic = kinetic_energy(u);
    if gas.energy <= kinetic {
        let saved = kinetic + kinetic * (2.0 * R::EPSILON);
        floored += saved - gas.energy;
        gas.energy = saved;
    }
    let heated = after.heated * per_kelvin;
    // computed from the stored energy, so that the budget closes
    let radiated = heated + floored - (gas.energy - u.energy);
    CoolingResult::<R> {
        gas,
        radiated,
        heated,
        floored,
    }
}

/// Returns `true` if gas at this temperature over mean molecular weight stays at a floor.
#[device]
fn stays_at_floor<R: Real>(theta: R, floor: R, c: &RateSlice<R>, p: &CoolingModel<R>) -> bool {
    theta <= 1.000001 * floor && net_rate(theta, c, &p.curves) <= 0.0
}

/// Returns the code time in which a cell's energy would change by its own amount at the net rate: negative if it cools, infinite if nothing
/// happens or cooling ends at a floor.
#[device]
pub fn net_cooling_time<R: Real>(u: Conserved<R>, at: GasEnvironment<R>, p: &CoolingModel<R>) -> R {
    let c = rates_of(u.density, at, p);
    let kelvin = p.kelvin * at.weight;
    let theta = internal_energy(u) / u.density * kelvin;
    let rate = net_rate(theta, &c, &p.curves) * p.time * at.weight;
    let floor = floor_of(u.density, kelvin, &c, p);
    if rate == 0.0 || stays_at_floor(theta, floor, &c, p) {
        return R::INFINITY;
    }
    theta / rate
}

/// Returns the inverse of [`relaxation_rate`] in code time, finite also in equilibrium; infinite if there is no rate or cooling ends at a
/// floor.
#[device]
pub fn response_time<R: Real>(u: Conserved<R>, at: GasEnvironment<R>, p: &CoolingModel<R>) -> R {
    let c = rates_of(u.density, at, p);
    let kelvin = p.kelvin * at.weight;
    let theta = internal_energy(u) / u.density * kelvin;
    let rate = relaxation_rate(theta, &c, &p.curves) * p.time * at.weight;
    let floor = floor_of(u.density, kelvin, &c, p);
    if rate == 0.0 || stays_at_floor(theta, floor, &c, p) {
        return R::INFINITY;
    }
    1.0 / rate
}
