//! Heating rates that decks give as a number or a formula.

use super::quantities::compile;
use nestar_deck::{Deck, DeckError};
use nestar_engine::data::criteria::{CellQuantity, NamedQuantity};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// Deserialises a number or a formula to text, for `#[serde(deserialize_with)]`.
///
/// # Errors
/// The value is neither.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a number or a formula")]
    enum NumberOrFormula {
        Number(f64),
        Formula(String),
    }
    Ok(match NumberOrFormula::deserialize(from)? {
        NumberOrFormula::Number(number) => format!("{number:?}"),
        NumberOrFormula::Formula(text) => text,
    })
}

/// Returns the schema of such a key, for `#[schemars(schema_with)]`.
pub(crate) fn number_or_formula(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["number", "string"] })
}

/// Compiles the heating rate `text` at `key` of the deck: a number or a formula of `names`. Also returns its value if
/// it is constant.
///
/// # Errors
/// The formula is invalid or has an unknown name; the error has the position.
pub(crate) fn heating(
    deck: &Deck,
    key: &str,
    text: &str,
    names: Vec<(String, NamedQuantity)>,
) -> Result<(CellQuantity, Option<f64>), DeckError> {
    // a number needs no names, which might clash with constants of the deck
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
