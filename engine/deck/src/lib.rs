//! Configuration decks and formulas.
//!
//! A *deck* is a TOML text. Each part of the program owns one table, described by a struct. The JSON schema that `schemars`
//! derives from the struct is the only source of documentation, defaults, units, ranges and allowed words. It is used to
//! check decks ([`Deck`]), to list parameters ([`describe`]) and to complete decks in editors ([`schema`]). A *formula*
//! ([`Formula`]) is an expression such as `"1 + 0.1*sin(2*pi*x)"`.
//!
//! ```
//! use nestar_deck::{Deck, deck};
//!
//! /// Waves.
//! #[deck]
//! struct Waves {
//!     /// Ratio of specific heats.
//!     #[key(default = 5.0 / 3.0, above = 1.0, max = 3.0)]
//!     speed: f64,
//! }
//!
//! let mut deck = Deck::parse("sod.toml", "[waves]\nspeed = 0.9\n")?;
//! let error = deck.table::<Waves>("waves").err().map(|error| error.to_string());
//! let expected = "\
//! sod.toml:2:9: `waves.speed` must be above 1 and at most 3, found 0.9
//!  2 | speed = 0.9
//!    |         ^^^";
//! assert_eq!(error.as_deref(), Some(expected));
//!
//! deck.set("waves.speed=1.4")?;
//! assert_eq!(deck.table::<Waves>("waves")?.speed, 1.4);
//! deck.finish()?;
//! assert_eq!(deck.resolved(), "[waves]\nspeed = 1.4\n");
//! # Ok::<(), nestar_deck::DeckError>(())
//! ```

extern crate self as nestar_deck;

mod check;
mod constants;
mod deck;
mod error;
mod formula;
mod overrides;
mod schema;
mod shape;
mod table_file;
mod tree;
pub mod units;

pub use deck::{
    Deck, ExtrapolationAbove, ExtrapolationBelow, Interpolation, TableConfig, TablesConfig,
    TabulatedNumbers,
};
pub use error::{DeckError, Fault, nearest};
pub use formula::{
    CELL_VARIABLES, Curve, DeviceFormula, Extrapolation, FUNCTIONS, Formula, FormulaError,
    FormulaProgram, Op,
};
pub use nestar_deck_macro::deck;
pub use schema::{OpenTable, ParameterDoc, TableSchema, describe, describe_table, merged, schema};
pub use table_file::TableFile;
pub use units::{
    CodeUnits, EXPANSION, Expansion, ShownUnit, UnitSystem, UnitsConfig, formula_units,
};

/// Crates used by code that `#[deck]` generates.
#[doc(hidden)]
pub mod macro_support {
    pub use schemars;
    pub use serde;
}
