//! Heating and cooling of gas by tables: exact solutions between their nodes, and how tables are made.
//!
//! Temperatures over mean molecular weight `theta = T / mu` in kelvin, hydrogen nuclei per cubic centimetre, million years: in
//! these units no precision loses anything.

pub mod cell;
pub mod integration;
pub mod laws;
pub mod table;
pub mod tabulate;

#[cfg(test)]
mod tests;

pub use cell::{CoolingModel, CoolingResult, GasEnvironment};
pub use table::CoolingTable;
pub use tabulate::{RateFunctions, TableGrid, scale, tabulate};
