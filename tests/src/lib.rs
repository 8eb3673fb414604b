//! Shared parts of the integration tests: small decks, runs with and without files, states that compare bitwise, norms.

pub mod choices;
pub mod decks;
pub mod devices;
pub mod evrard;
pub mod ewald;
pub mod exact;
pub mod gauss;
pub mod golden;
pub mod hernquist;
pub mod jeans;
pub mod norms;
pub mod probe;
pub mod random;
pub mod ranks;
pub mod runs;
pub mod state;

pub use decks::{Deck, build};
pub use runs::{Scratch, Stepper};
pub use state::{Patch, State};
