//! Primordial chemistry: non-equilibrium networks of 6, 9 or 12 species with heating and cooling, in one cell.
//!
//! Units are chosen such that all numbers fit into single precision: time in Myr, density in hydrogen nuclei per cm^3, abundances per
//! hydrogen nucleus, thermal energy per hydrogen nucleus in kelvin. Rates come from tables made on the host ([`rates`], [`RateTable`]). A
//! Rosenbrock method with an analytic Jacobian sub-cycles each cell ([`advance`]). Cells use only + - * / and comparisons, so that all
//! devices give the same bits.
//!
//! The networks solve for H, H+, He, He+, He++ and electrons (6 species), in addition for H-, H2, H2+ (9 species), and for D, D+, HD (12
//! species).
mod dissociation;
mod energy;
mod equations;
mod ionisation;
mod network;
pub mod rates;
mod reactions;
mod rodas;
pub mod species;
mod steps;
mod table;
mod terms;
#[cfg(test)]
mod tests;

pub use equations::derivatives;
pub use ionisation::{equilibrium, equilibrium_at};
pub use network::{
    Background, CellConditions, Network, Tolerances, heating_rate, with_dust_heating,
};
pub use rates::{H2Cooling, RateChoices, Recombination, ThreeBody};
pub use species::{Abundances, electrons, heat_capacity, renormalised, temperature};
pub use steps::{SubstepClock, SubstepProgress, advance, least_energy};
pub use table::{NODES, OCTAVES, RateTable};
