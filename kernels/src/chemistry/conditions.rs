//! Input of the network's equations.
use super::network::Network;
use super::species::{Abundances, HEI, HEII, HI, temperature};
use super::table::TablePosition;
use crate::cooling::laws::DUST_MAX_TEMPERATURE;
use nestar_device::{Real, device};

/// Conditions in a cell.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct CellConditions<R> {
    /// Hydrogen nuclei per cm^3.
    pub density: R,
    /// Heating in kelvin per Myr and hydrogen nucleus, without photo-ionisation and dust.
    pub heating: R,
    /// Additional dust heating of gas colder than [`DUST_MAX_TEMPERATURE`].
    pub dust: R,
}

/// Returns the conditions with dust heating included if the state is cold enough.
#[device]
pub fn with_dust_heating<R: Real, const S: usize>(
    cell: &CellConditions<R>,
    s: &Abundances<R>,
) -> CellConditions<R> {
    let mut warm = *cell;
    if temperature::<R, S>(s) < R::lit(DUST_MAX_TEMPERATURE) {
        warm.heating = cell.heating + cell.dust;
    }
    warm
}

/// Returns the heating of a state by photo-ionisation and by the cell's other sources, kelvin per Myr and hydrogen nucleus.
#[device]
pub fn heating_rate<R: Real>(p: &Network<R>, cell: &CellConditions<R>, s: &Abundances<R>) -> R {
    let mut heat = cell.heating + p.photo[0] * p.photo_heat[0] * s.y[HI];
    heat += p.photo[1] * p.photo_heat[1] * s.y[HEI];
    heat + p.photo[2] * p.photo_heat[2] * s.y[HEII]
}

/// Variables that rates depend on.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct Inputs<R> {
    /// Abundances of all species, the electrons, and the temperature (not used here).
    pub v: [R; 13],
    /// Hydrogen nuclei per cm^3.
    pub density: R,
    /// Position of the temperature in the rate table.
    pub table_position: TablePosition<R>,
}
