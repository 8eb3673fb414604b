//! Cell functions of cooling.

use nestar_device::{Place, Real, device};
use nestar_kernels::cooling::cell::{
    self, CoolingModel, CoolingResult, integrate_cooling, net_cooling_time, response_time,
    table_temperature,
};
use nestar_kernels::hydro::Conserved;
use nestar_kernels::hydro::eos::{gas_of, internal_energy};
use nestar_kernels::mesh::subcycle::{DONE, Subcycle};

/// Solar metallicity by mass.
#[device]
pub(super) const SOLAR: f64 = 0.01295;

/// Parameters of a limit or a criterion.
#[device]
#[derive(Clone)]
pub(super) struct CoolingLimit<R> {
    pub cooler: CoolingModel<R>,
    /// Fraction of the time, or number of cells.
    pub of: R,
}

/// Returns the gas and its radiated, heated and floored energies.
#[device]
#[allow(
    clippy::zero_repeat_side_effects,
    reason = "a literal is a call of no effect"
)]
fn given<R: Real>(e: CoolingResult<R>) -> Subcycle<Conserved<R>, [R; 0], [R; 3]> {
    Subcycle::<Conserved<R>, [R; 0], [R; 3]> {
        state: e.gas,
        carried: [0.0; 0],
        sums: [e.radiated, e.heated, e.floored],
        status: DONE,
        work: 1,
    }
}

/// Heating and cooling over a step, exact for the tabulated curve; density and momentum stay constant.
#[device]
pub(super) fn cool<R: Real>(
    u: Conserved<R>,
    at: &Place<R>,
    p: &CoolingModel<R>,
) -> Subcycle<Conserved<R>, [R; 0], [R; 3]> {
    let place = cell::GasEnvironment::<R> {
        metallicity: p.metallicity,
        heating: 0.0,
        weight: p.weight,
    };
    given(integrate_cooling(u, at.dt, place, p))
}

/// As `cool`, with heating by a formula (erg/s per hydrogen nucleus), the metallicity in solar units and the mean
/// molecular weight of the cell.
#[device]
pub(super) fn cool_by<R: Real>(
    u: (Conserved<R>, [R; 3]),
    at: &Place<R>,
    p: &CoolingModel<R>,
) -> Subcycle<Conserved<R>, [R; 0], [R; 3]> {
    let (gas, [heating, metallicity, weight]) = u;
    let place = cell::GasEnvironment::<R> {
        metallicity,
        heating,
        weight,
    };
    given(integrate_cooling(gas, at.dt, place, p))
}

/// Temperature in kelvin, with the mean molecular weight of the cooling table.
#[device]
pub(super) fn table_temperature_k<R: Real>(u: Conserved<R>, p: &CoolingModel<R>) -> R {
    table_temperature(u, p)
}

/// Energy over the absolute net cooling rate of the tables, in code time, without heating by formula; infinite if the
/// rate is 0 and for gas at a floor.
#[device]
pub(super) fn cooling_time<R: Real>(u: Conserved<R>, p: &CoolingModel<R>) -> R {
    let place = cell::GasEnvironment::<R> {
        metallicity: p.metallicity,
        heating: 0.0,
        weight: p.weight,
    };
    net_cooling_time(u, place, p).abs()
}

/// As `cooling_time`, for gas that carries metals.
#[device]
pub(super) fn cooling_time_metal<R: Real>(u: [R; 6], p: &CoolingModel<R>) -> R {
    let place = cell::GasEnvironment::<R> {
        metallicity: metallicity_of(u),
        heating: 0.0,
        weight: p.weight,
    };
    net_cooling_time(gas_of(u), place, p).abs()
}

/// Returns the metallicity in solar units.
#[device]
fn metallicity_of<R: Real>(u: [R; 6]) -> R {
    u[5] / (R::lit(SOLAR) * u[0])
}

/// Fraction of the cooling time or of the thermal response time, whichever is shorter, above the floors.
#[device]
pub(super) fn cooling_step<R: Real>(u: Conserved<R>, p: &CoolingLimit<R>) -> R {
    let place = cell::GasEnvironment::<R> {
        metallicity: p.cooler.metallicity,
        heating: 0.0,
        weight: p.cooler.weight,
    };
    p.of * response_time(u, place, &p.cooler)
}

/// As `cooling_step`, with heating by a formula, the metallicity and the mean molecular weight of the cell.
#[device]
pub(super) fn cooling_step_by<R: Real>(u: (Conserved<R>, [R; 3]), p: &CoolingLimit<R>) -> R {
    let (gas, [heating, metallicity, weight]) = u;
    let place = cell::GasEnvironment::<R> {
        metallicity,
        heating,
        weight,
    };
    p.of * response_time(gas, place, &p.cooler)
}

/// Returns `true` if sound crosses fewer cells than required in a cooling time.
#[device]
fn is_short<R: Real>(u: Conserved<R>, metallicity: R, at: &Place<R>, p: &CoolingLimit<R>) -> bool {
    let place = cell::GasEnvironment::<R> {
        metallicity,
        heating: 0.0,
        weight: p.cooler.weight,
    };
    let time = net_cooling_time(u, place, &p.cooler);
    let sound = (p.cooler.sound * internal_energy(u) / u.density).sqrt();
    let width = at.width[0].max(at.width[1]).max(at.width[2]);
    time < 0.0 && -time * sound < p.of * width
}

/// Cells in which sound crosses fewer than `cooling.length_cells` cells in a cooling time.
#[device]
pub(super) fn cooling_length<R: Real>(u: Conserved<R>, at: &Place<R>, p: &CoolingLimit<R>) -> bool {
    is_short(u, p.cooler.metallicity, at, p)
}

/// As `cooling_length`, for gas that carries metals.
#[device]
pub(super) fn cooling_length_metal<R: Real>(u: [R; 6], at: &Place<R>, p: &CoolingLimit<R>) -> bool {
    is_short(gas_of(u), metallicity_of(u), at, p)
}
