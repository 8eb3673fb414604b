//! What the equations of a network are evaluated with.
use super::network::Network;
use super::species::{Abundances, HEI, HEII, HI, temperature};
use super::table::TablePosition;
use crate::cooling::laws::DUST_MAX_TEMPERATURE;
use nestar_device::{Real, device};

/// What is particular to a cell.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct CellConditions<R> {
    /// Hydrogen nuclei per cm^3.
    pub density: R,
    /// Heating in kelvin per Myr and hydrogen nucleus, beside that of photo-ionisation and dust.
    pub heating: R,
    /// Further heating by dust, of gas colder than [`DUST_MAX_TEMPERATURE`].
    pub dust: R,
}

/// The cell with all of its heating at the temperature of a state.
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

/// Heating of a state by photo-ionisation and what else the cell has, kelvin per Myr and hydrogen nucleus.
#[device]
pub fn heating_rate<R: Real>(p: &Network<R>, cell: &CellConditions<R>, s: &Abundances<R>) -> R {
    let mut heat = cell.heating + p.photo[0] * p.photo_heat[0] * s.y[HI];
    heat += p.photo[1] * p.photo_heat[1] * s.y[HEI];
    heat + p.photo[2] * p.photo_heat[2] * s.y[HEII]
}

/// What rates depend on.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct Inputs<R> {
    /// Abundances of all species, electrons and, not used here, the temperature.
    pub v: [R; 13],
    /// Hydrogen nuclei per cm^3.
    pub density: R,
    /// Where the temperature lies in the table.
    pub table_position: TablePosition<R>,
}
