//! Tables of which only some subtables are taken.

use nestar_deck::Deck;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
struct Face {
    density: f64,
}

#[test]
fn a_misspelt_subtable_beside_a_used_one_is_an_error() {
    let text = "[inflow.x_lower]\ndensity = 1.0\n[inflow.x_uper]\ndensity = 2.0\n";
    let mut deck = Deck::parse("faces.toml", text).expect("the text is TOML");
    deck.table::<Face>("inflow.x_lower")
        .expect("the table is there");
    deck.table::<Face>("inflow.x_upper")
        .expect("the table has defaults");
    let error = deck.finish().expect_err("the misspelt face is left over");
    let message = error.to_string();
    assert!(message.contains("faces.toml:3:"), "{message}");
    assert!(
        message.contains("unknown table [inflow.x_uper]"),
        "{message}"
    );
    assert!(message.contains("x_upper"), "{message}");
}
