//! Golden error messages of overrides, of checks across keys, and of formulas in decks.

use crate::common::Hydro;
use nestar_deck::{Deck, DeckError};

#[track_caller]
fn message(error: DeckError) -> String {
    assert_eq!(error.faults().len(), 1, "{error}");
    error.faults()[0].message.clone()
}

const OVERRIDES: &[(&str, &str)] = &[
    ("hydro.gamma", "`=` is missing; write table.key=value"),
    ("=3", "the key is missing; write table.key=value"),
    (
        "hydro.gamma=",
        "the value is missing; write table.key=\"\" for an empty text",
    ),
    (
        "hydro..x=3",
        "`hydro..x` is not a key; write table.key=value or table.list[0].key=value",
    ),
    (
        "mesh.refine[x]=3",
        "`mesh.refine[x]` is not a key; write table.key=value or table.list[0].key=value",
    ),
    (
        "hydro.gamma=[1",
        "the value is malformed: unclosed array, expected `]`",
    ),
    ("hydro.gamma.x=1", "`x` needs a table, found a number"),
    (
        "mesh.refine.field=1",
        "`field` is in a list; select an element with [0], [1], …",
    ),
    (
        "mesh.refine[1].field=1",
        "there is no element [1]: the list has 1 (counted from 0)",
    ),
    ("hydro[0]=1", "element [0] needs a list, found a table"),
];

#[test]
fn overrides() {
    let text = "[hydro]\ngamma = 1.4\n[[mesh.refine]]\ncriterion = 'always'\n";
    for &(argument, expected) in OVERRIDES {
        let mut deck = Deck::parse("d.toml", text).expect("a deck");
        let error = deck.set(argument).expect_err(argument);
        assert_eq!(error.faults()[0].origin, format!("--set {argument}"));
        assert_eq!(message(error), expected, "{argument}");
    }
    let mut deck = Deck::parse("d.toml", text).expect("a deck");
    deck.set("hydro.gamma = 0.1").expect("well formed");
    let error = deck
        .table::<Hydro>("hydro")
        .expect_err("out of range")
        .to_string();
    let expected = "--set hydro.gamma = 0.1: `hydro.gamma` must be above 1 and at most 3, found 0.1\n  \
                    | hydro.gamma = 0.1\n  |               ^^^";
    assert_eq!(error, expected);
}

#[test]
fn conditions_across_keys_have_a_location() {
    let deck = Deck::parse(
        "d.toml",
        "[mesh]\nmax_level = 3\n[[mesh.refine]]\ncriterion = 'always'\n",
    )
    .expect("a deck");
    let location = |path: &str| {
        let error = deck.error_at(path, "no");
        (error.faults()[0].line, error.faults()[0].column)
    };
    assert_eq!(location("mesh.max_level"), (Some(2), Some(13)));
    assert_eq!(location("mesh.refine[0].criterion"), (Some(4), Some(13)));
    assert_eq!(location("mesh.refine[0].threshold[2]"), (Some(3), Some(1)));
    assert_eq!(location("mesh.interval"), (Some(1), Some(2)));
    assert_eq!(location("hydro.gamma"), (None, None));
    let error = deck.unknown_word_at("scenario", "sedo", &["sod", "sedov"]);
    assert_eq!(
        message(error),
        "`scenario` must be one of \"sod\", \"sedov\", found \"sedo\"; did you mean \"sedov\"?"
    );
    let error = deck
        .unknown_key_at("mesh.max_level", &["min_level"])
        .to_string();
    assert_eq!(
        error.lines().next(),
        Some("d.toml:2:1: unknown key `max_level` in [mesh]; did you mean `min_level`?")
    );
}

#[test]
fn formulas_point_into_their_text() {
    let text = "[initial]\ndensity = \"1 + sn(x)\"\npressure = \"\\u0031 + q\"\n";
    let deck = Deck::parse("d.toml", text).expect("a deck");
    let error = deck
        .formula("initial.density", "1 + sn(x)", &["x"])
        .expect_err("no sn");
    assert_eq!(
        error.to_string(),
        "d.toml:2:16: `initial.density`: unknown function `sn`; did you mean `ln`?\n 2 | density = \"1 + sn(x)\"\n   \
         |                ^^",
    );
    let error = deck
        .formula("initial.pressure", "1 + q", &["x"])
        .expect_err("no q");
    assert_eq!(
        error.to_string(),
        "d.toml:3:12: `initial.pressure`: unknown name `q`; known are x, pi, e (column 5)\n \
         3 | pressure = \"\\u0031 + q\"\n   |            ^^^^^^^^^^^^",
    );
    let error = deck
        .formula("initial.velocity", "1 +", &["x"])
        .expect_err("unfinished");
    assert_eq!(
        message(error),
        "`initial.velocity`: the formula ends where a value is expected (column 4 of \"1 +\")"
    );
}
