//! `nestar deck`: the decks inside the program.

use super::{CommandError, INVALID_INPUT, print};
use clap::Args;
use nestar_deck::nearest;
use nestar_scenarios::{DECKS, ShippedDeck};
use std::fmt::Write as _;

/// Arguments of `nestar deck`.
#[derive(Args)]
pub struct DeckNameArgs {
    /// Name of a deck; default: list all
    name: Option<String>,
}

/// Prints a deck, or lists the names.
pub fn deck(arguments: &DeckNameArgs) -> Result<(), CommandError> {
    match &arguments.name {
        Some(name) => {
            let found = find(name).map_err(|why| CommandError::new(INVALID_INPUT, why))?;
            print(found.text)
        }
        None => print(&names()),
    }
}

/// Returns the deck of this name.
///
/// # Errors
/// There is none; the message has the nearest name.
pub fn find(name: &str) -> Result<&'static ShippedDeck, String> {
    ShippedDeck::find(name).ok_or_else(|| {
        let near = nearest(name, DECKS.iter().map(|deck| deck.name));
        let hint = near.map_or(";".into(), |near| format!("; did you mean `{near}`?"));
        format!("there is no file and no deck of the program with the name `{name}`{hint} `nestar deck` lists all")
    })
}

fn names() -> String {
    let mut text = String::new();
    for deck in &DECKS {
        // writing to a string cannot fail
        let _ = writeln!(text, "{:22} {}", deck.name, deck.title());
    }
    text
}
