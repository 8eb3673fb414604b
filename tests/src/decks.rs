//! Decks in texts, and simulations of them.

use crate::devices;
use nestar::Simulation;
pub use nestar_deck::Deck;

/// Settings of all tests: the CPU even where there is a GPU, one thread (tests run side by side), the audit on, no snapshots.
const COMMON: [&str; 5] = [
    "run.device=cpu",
    "run.threads=1",
    "run.audit=true",
    "output.initial=false",
    "output.final=false",
];

/// Parses `text` as a deck, and applies the common settings and then `settings` (`table.key=value`).
///
/// # Panics
/// If the text is not a valid deck.
#[must_use]
pub fn deck(text: &str, settings: &[&str]) -> Deck {
    let mut deck = Deck::parse("test", text).unwrap_or_else(|e| panic!("{e}"));
    for setting in COMMON.iter().chain(settings) {
        deck.set(&devices::chosen(setting))
            .unwrap_or_else(|e| panic!("{setting}: {e}"));
    }
    deck
}

/// Builds a simulation of the deck that [`deck`] makes.
///
/// # Panics
/// If the deck is wrong.
#[must_use]
pub fn build(text: &str, settings: &[&str]) -> Simulation {
    Simulation::new(deck(text, settings)).unwrap_or_else(|e| panic!("{e}"))
}

/// A blast in a periodic unit cube of 16^3 root cells with two refined levels that follow it, off-centre, with a flow
/// across the box and a passive scalar: every part of the core has work.
pub const BLAST: &str = r#"
scenario = "formula"
[initial]
density    = "1 + 0.2*sin(2*pi*x)*cos(2*pi*y)"
pressure   = "if((x-0.4)^2 + (y-0.55)^2 + (z-0.47)^2 < 0.0121, 10, 0.1)"
velocity_x = "0.3"
velocity_y = "-0.2 + 0.1*sin(2*pi*z)"
velocity_z = "0.15"
scalars    = { dye = "if(x < 0.5, 1, 0.25)" }
[domain]
cells = [16, 16, 16]
[time]
end = 1.0
[mesh]
max_level = 2
regrid_interval = 2
flag_buffer = 2
refine = [
    { criterion = "gradient", field = "pressure", threshold = 0.4 },
    { criterion = "sphere", centre = [0.4, 0.55, 0.47], radius = 0.15, level = 1 },
]
[hydro]
scalars = ["dye"]
"#;

/// [`BLAST`] with half as many cells along z: a setting for comparisons that need levels and ranks, but no size.
pub const HALF: &str = "domain.cells=[16,16,8]";

/// A blast at the centre of a cube around the origin, symmetric under all reflections and exchanges of axes.
pub const SYMMETRIC: &str = r#"
scenario = "formula"
[initial]
density  = "1"
pressure = "if(r < 0.14, 10, 0.1)"
[domain]
cells      = [16, 16, 16]
left_edge  = [-0.5, -0.5, -0.5]
right_edge = [0.5, 0.5, 0.5]
boundary   = "outflow"
[time]
end = 1.0
[mesh]
max_level = 2
regrid_interval = 2
flag_buffer = 2
refine = [{ criterion = "gradient", field = "pressure", threshold = 0.3 }]
[hydro]
"#;
