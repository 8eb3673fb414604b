//! Heating and cooling of gas by tables: exact solutions between their nodes, and how tables are made.
//!
//! Temperatures over mean molecular weight `theta = T / mu` in kelvin, hydrogen nuclei per cubic centimetre, million years: in
//! these units no precision loses anything.

pub mod cell;
pub mod curves;
pub mod laws;
pub mod tabulate;
pub mod walk;

#[cfg(test)]
mod tests;

pub use cell::{Cooler, Exchanged, Place};
pub use curves::Curves;
pub use tabulate::{Grid, Rates, scale, tabulate};
