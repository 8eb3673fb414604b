//! Heating that decks give by a number or a formula, for all that heats gas.

use super::quantities::compile;
use nestar_deck::{Deck, DeckError};
use nestar_engine::data::criteria::{CellQuantity, NamedQuantity};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// The text of a key that is a number or a formula, for `#[serde(deserialize_with)]`.
///
/// # Errors
/// It is neither.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a number or a formula")]
    enum Given {
        Number(f64),
        Formula(String),
    }
    Ok(match Given::deserialize(from)? {
        Given::Number(number) => format!("{number:?}"),
        Given::Formula(text) => text,
    })
}

/// What such a key may be, for `#[schemars(schema_with)]`.
pub(crate) fn number_or_formula(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["number", "string"] })
}

/// The heating that `text` at `key` of the deck means, a number or a formula of `names`, and its value where that is the same everywhere and always.
///
/// # Errors
/// A mistake in the formula or an unknown name, at its place.
pub(crate) fn heating(
    deck: &Deck,
    key: &str,
    text: &str,
    names: Vec<(String, NamedQuantity)>,
) -> Result<(CellQuantity, Option<f64>), DeckError> {
    // a number needs no names, which constants of the deck might have too
    let names = match text.trim().parse::<f64>() {
        Ok(_) => Vec::new(),
        Err(_) => names,
    };
    let number = compile(deck, key, text, names)?;
    let constant = match &number {
        CellQuantity::Formula(formula, ..) => formula.constant(),
        CellQuantity::Named(_) => None,
    };
    Ok((number, constant))
}
