//! Primordial chemistry: non-equilibrium networks of 6, 9 or 12 species with their heating and cooling, in one cell.
//!
//! Units are chosen so that single precision holds all numbers: time in Myr, density in hydrogen nuclei per cm^3, abundances per hydrogen
//! nucleus, thermal energy per hydrogen nucleus in kelvin. Rates come from tables made on the host ([`rates`], [`Lookup`]); a
//! Rosenbrock method with an analytic Jacobian goes through a step in sub-steps of its own ([`advance`]). Nothing but + - * / and
//! comparisons happens in a cell, so that all devices give the same bits.
//!
//! A sixth, ninth or twelfth species is what the network solves in addition: H, H+, He, He+, He++ and electrons; H-, H2, H2+; D, D+, HD.
mod conditions;
mod energy;
mod equations;
mod ionisation;
mod linear;
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

pub use conditions::{CellConditions, heating_rate, with_dust_heating};
pub use equations::derivatives;
pub use ionisation::equilibrium;
pub use network::{Background, Network, Tolerances};
pub use rates::{H2Cooling, RateChoices, Recombination, ThreeBody};
pub use species::{Abundances, electrons, heat_capacity, renormalised, temperature};
pub use steps::{SubstepClock, SubstepProgress, advance, least_energy};
pub use table::{NODES, OCTAVES, RateTable};
