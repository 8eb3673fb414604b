//! Heating and cooling of gas from tables: exact integration between nodes, and tabulation.
//!
//! Units are kelvin for temperatures over mean molecular weight `theta = T / mu`, hydrogen nuclei per cubic centimetre, and million years.
//! They fit into single precision.

pub mod cell;
pub mod integration;
pub mod laws;
pub mod table;
pub mod tabulate;

#[cfg(test)]
mod tests;

pub use cell::{CoolingModel, CoolingResult, GasEnvironment};
pub use table::CoolingTable;
pub use tabulate::{RateFunctions, TableGrid, TableNodes, scale, tabulate};
