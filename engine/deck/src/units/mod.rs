//! Code units: the table `[units]`, words such as `kpc`, and constants of nature in code units.
//!
//! This folder alone of the engine has words of physics: they are what people call sizes, and nothing here acts on them.

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

/// The table's name in decks.
pub(crate) const UNITS: &str = "units";
