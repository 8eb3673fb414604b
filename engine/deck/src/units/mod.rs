//! Code units: the table `[units]`, unit words such as `kpc`, and physical constants.
//!
//! This is the only folder of the engine with names of physical quantities; they are only used as units.

pub mod cgs;
mod code;
mod config;
mod quantity;
mod solve;
mod words;

pub use code::CodeUnits;
pub use config::{Size, UnitsConfig};
pub(crate) use words::is_word;
pub use words::words;

/// Name of the table in decks.
pub(crate) const UNITS: &str = "units";
