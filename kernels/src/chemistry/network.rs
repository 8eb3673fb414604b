//! Parameters of a network (rates, elements, radiation, tolerances) and the conditions in a cell.

use super::dissociation::dissociation_table;
use super::rates::{H2Cooling, KELVIN_PER_EV, MYR, RateChoices, columns};
use super::species::{Abundances, HEI, HEII, HI, temperature};
use super::table::{RateTable, TablePosition};
use crate::cooling::laws::DUST_MAX_TEMPERATURE;
use nestar_device::{Real, Table, device};

/// A network and its uniform environment, the same in all cells of a run.
#[device]
#[derive(Clone, Debug)]
pub struct Network<R> {
    /// Rates, see [`RateTable`](super::RateTable).
    pub rates: Table<R>,
    /// Rates of the dissociation of H2 at any density; empty without molecules.
    pub dissociation: Table<R>,
    /// Columns of the table of rates.
    pub columns: usize,
    /// `true` if He, H2, H+ and electrons also excite lines of H2.
    pub all_partners: bool,
    /// Helium nuclei per hydrogen nucleus.
    pub helium: R,
    /// Deuterium nuclei per hydrogen nucleus.
    pub deuterium: R,
    /// Rates per Myr of the photo-ionisation of H, He, He+, the photo-detachment of H-, the photo-dissociation of H2 (and HD) and H2+.
    pub photo: [R; 6],
    /// Heat in kelvin of a photo-ionisation of H, He, He+.
    pub photo_heat: [R; 3],
    /// Compton cooling: kelvin per Myr, electron and kelvin above the background's temperature.
    pub compton: R,
    /// Temperature of the microwave background, kelvin.
    pub background: R,
    /// Lowest temperature, kelvin, above 0.
    pub floor: R,
    /// Relative error tolerance of a sub-step.
    pub relative: R,
    /// Abundance below which errors do not matter.
    pub absolute: R,
}

/// Uniform radiation background.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Background {
    /// Rates per second: photo-ionisation of H, He, He+, photo-detachment of H-, photo-dissociation of H2, H2+.
    pub photo: [f64; 6],
    /// Heat in electronvolts of a photo-ionisation of H, He, He+.
    pub heat_ev: [f64; 3],
    /// Redshift of the microwave background for Compton cooling; `None` for no Compton cooling.
    pub redshift: Option<f64>,
}

/// Error tolerances and the temperature floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerances {
    /// Relative error tolerance of a sub-step.
    pub relative: f64,
    /// Abundance per hydrogen nucleus below which errors do not matter.
    pub absolute: f64,
    /// Lowest temperature, kelvin, above 0.
    pub floor_k: f64,
}

impl Default for Tolerances {
    fn default() -> Self {
        Self {
            relative: 1e-2,
            absolute: 1e-8,
            floor_k: 1.0,
        }
    }
}

impl Network<f64> {
    /// Creates a network of 6, 9 or 12 species with these numbers of helium and deuterium nuclei per hydrogen nucleus.
    #[must_use]
    pub fn new(
        species: usize,
        choices: RateChoices,
        [helium, deuterium]: [f64; 2],
        radiation: &Background,
        precision: Tolerances,
    ) -> Self {
        let dissociation = match species {
            6 => Vec::new(),
            _ => dissociation_table(choices),
        };
        Self {
            rates: Table::new(RateTable::new(species, choices).0),
            dissociation: Table::new(dissociation),
            columns: columns(species),
            all_partners: choices.h2_cooling == H2Cooling::GloverAbel08,
            helium,
            deuterium,
            photo: [0.0; 6],
            photo_heat: [0.0; 3],
            compton: 0.0,
            background: CMB_TODAY,
            floor: precision.floor_k,
            relative: precision.relative,
            absolute: precision.absolute,
        }
        .with_radiation(radiation)
    }

    /// Returns the network in another radiation background. It shares the tables of rates.
    #[must_use]
    pub fn with_radiation(&self, radiation: &Background) -> Self {
        let z = radiation.redshift.map(|z| 1.0 + z);
        let z2 = z.unwrap_or(0.0) * z.unwrap_or(0.0);
        Self {
            photo: radiation.photo.map(|rate| rate * MYR),
            photo_heat: radiation.heat_ev.map(|ev| ev * KELVIN_PER_EV),
            compton: COMPTON * z2 * z2,
            background: CMB_TODAY * z.unwrap_or(1.0),
            ..self.clone()
        }
    }
}

/// Temperature of the microwave background today, kelvin.
const CMB_TODAY: f64 = 2.725;
/// 5.65e-36 erg/s (Cen 1992) over Boltzmann's constant, per Myr.
const COMPTON: f64 = 5.65e-36 * MYR / super::rates::BOLTZMANN;

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
