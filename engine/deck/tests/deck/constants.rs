//! Named constants, and expressions in place of numbers.

use nestar_deck::{CodeUnits, Deck, TableSchema, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A cloud.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Cloud {
    /// Ratio of specific heats.
    #[schemars(extend("exclusiveMinimum" = 1.0))]
    gamma: f64,
    /// Cells.
    cells: [u32; 3],
    /// One width, or one per axis.
    width: Width,
    /// A formula.
    density: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Width {
    One(f64),
    Each(Vec<f64>),
}

impl Default for Cloud {
    fn default() -> Self {
        Cloud {
            gamma: 1.4,
            cells: [8; 3],
            width: Width::One(1.0),
            density: "1".into(),
        }
    }
}

const DECK: &str = r#"
[constants]
r0     = 0.25
n      = 4
radius = "2*r0 + sqrt(n)*0"
[cloud]
gamma   = "5/3"
cells   = ["8*n", 16, "2^n"]
width   = ["radius", 3, "-r0"]
density = "if(x < radius, n, 1)"
"#;

#[test]
fn numbers_may_be_expressions_of_constants() {
    let mut deck = Deck::parse("cloud.toml", DECK).unwrap();
    let cloud: Cloud = deck.table("cloud").unwrap();
    assert_eq!(cloud.gamma, 5.0 / 3.0);
    assert_eq!(cloud.cells, [32, 16, 16]);
    assert_eq!(cloud.width, Width::Each(vec![0.5, 3.0, -0.25]));
    let density = deck
        .formula("cloud.density", &cloud.density, &["x"])
        .unwrap();
    assert_eq!([0.49, 0.51].map(|x| density.eval(&[x])), [4.0, 1.0]);
    deck.finish().unwrap();
    deck.check(&[TableSchema::of::<Cloud>("cloud")]).unwrap();

    // a resolved deck is a deck
    let mut again = Deck::parse("run.toml", &deck.resolved()).unwrap();
    again.table::<Cloud>("cloud").unwrap();
    assert_eq!(again.resolved(), deck.resolved());
}

#[test]
fn overrides_change_constants_and_may_be_expressions() {
    let mut deck = Deck::parse("cloud.toml", DECK).unwrap();
    for change in [
        "constants.r0=1.5",
        "cloud.gamma=1 + 1/n",
        "cloud.cells[1]=n*n",
        "cloud.width=r0/3",
    ] {
        deck.set(change).unwrap();
    }
    let cloud: Cloud = deck.table("cloud").unwrap();
    assert_eq!((cloud.gamma, cloud.cells[1]), (1.25, 16));
    assert_eq!(cloud.width, Width::One(0.5));
    assert_eq!(deck.constants()[2], ("radius".to_string(), 3.0));
}

/// Returns the messages of a deck in which some lines are replaced.
fn refused(from: &str, to: &str) -> String {
    let text = DECK.replace(from, to);
    assert_ne!(text, DECK);
    let deck = Deck::parse("cloud.toml", &text).and_then(|mut deck| {
        deck.check(&[TableSchema::of::<Cloud>("cloud")])?;
        let cloud: Cloud = deck.table("cloud")?;
        deck.formula("cloud.density", &cloud.density, &["x"])
    });
    deck.map_or_else(|error| error.to_string(), |_| "nothing is wrong".into())
}

#[test]
fn errors_have_their_location() {
    let cases = [
        (
            "\"5/3\"",
            "\"5/m\"",
            "cloud.toml:7:14: `cloud.gamma` must be a number, found the text \"5/m\": unknown name `m`; known are r0, n, radius, pi, e\n 7 | gamma   = \"5/m\"\n   |              ^",
        ),
        (
            "\"5/3\"",
            "\"3/n\"",
            "cloud.toml:7:11: `cloud.gamma` must be above 1, found 0.75",
        ),
        (
            "\"5/3\"",
            "\"1/0\"",
            "`cloud.gamma` must be a finite number, found inf",
        ),
        (
            "\"2^n\"",
            "\"10/n\"",
            "`cloud.cells[2]` must be an integer, found 2.5",
        ),
        (
            "\"-r0\"",
            "\"-r0 +\"",
            "the formula ends where a value is expected",
        ),
        (
            "n      = 4",
            "n      = \"2*radius\"",
            "cloud.toml:4:13: `constants.n` must be a number or an expression, found the text \"2*radius\": unknown name `radius`",
        ),
        (
            "n      = 4",
            "n      = \"0/0\"",
            "`constants.n` must be a finite number, found NaN",
        ),
        (
            "n      = 4",
            "n      = [4]",
            "`constants.n` must be a number or an expression, found a list of 1",
        ),
        (
            "n      = 4",
            "n      = 4\nsqrt = 1",
            "cloud.toml:5:1: `constants.sqrt`: the name of a constant must consist of letters",
        ),
        (
            "n      = 4",
            "n      = 4\npi = 3",
            "`constants.pi`: the name of a constant must",
        ),
        (
            "n      = 4",
            "n      = 4\n\"a b\" = 3",
            "`constants.a b`: the name of a constant must",
        ),
        (
            "n      = 4",
            "n      = 4\nx = 3",
            "cloud.toml:5:5: `cloud.density` has a variable named `x`; rename the constant",
        ),
        (
            "[constants]\n",
            "[constants.more]\n",
            "`constants.more` must be a number or an expression, found a table",
        ),
    ];
    for (from, to, wanted) in cases {
        let found = refused(from, to);
        assert!(found.contains(wanted), "{to}:\n{found}");
        assert_eq!(found.matches("cloud.toml:").count(), 1, "{to}:\n{found}");
    }
}

/// Constants may have units that a plugin defines after the deck is read, and other constants may use them.
#[test]
fn constants_wait_for_units_that_a_plugin_defines() {
    let text = "[constants]\nr0 = \"3 kpc\"\nd = \"2*r0\"\nn = 4\n";
    let mut deck = Deck::parse("deck", text).expect("a deck");
    let why = deck.require_constants().expect_err("no units").to_string();
    assert!(why.contains("deck:2:6") && why.contains("[units]"), "{why}");
    let names = |deck: &Deck| {
        deck.constants()
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&deck), ["n"]);
    let units = CodeUnits {
        length_cgs: 3.085_677_581_491_367e21,
        ..CodeUnits::default()
    };
    deck.define_units("box", units).expect("valid constants");
    let found: Vec<f64> = deck.constants().iter().map(|(_, value)| *value).collect();
    assert!(
        (found[0] - 3.0).abs() < 1e-12 && (found[1] - 6.0).abs() < 1e-12,
        "{found:?}"
    );
    assert_eq!(names(&deck), ["r0", "d", "n"]);
}

#[test]
fn editors_accept_what_decks_do() {
    let json = schema(&[TableSchema::of::<Cloud>("cloud")]);
    let gamma = &json["properties"]["cloud"]["properties"]["gamma"];
    assert_eq!(gamma["type"], serde_json::json!(["number", "string"]));
    assert!(json["properties"]["constants"].is_object());
}
