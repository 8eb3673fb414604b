//! Taking tables, defaults, overrides, the resolved deck, and the documentation of parameters.

use crate::common::{
    Boundary, Domain, Hydro, Initial, Limiter, Mesh, OneOrTwo, PerLevel, Refine, Side, Top,
};
use nestar_deck::{Deck, TableSchema, describe, schema};

const DECK: &str = r#"
scenario = "sedov"

[hydro]
gamma = 2                       # an integer where a number is wanted
floor = 1e-300
scalars = ["a", "b\"c"]

[domain]
boundary = { x = ["outflow", "reflecting"], y = "outflow" }

[mesh]
max_level = 2
[[mesh.refine]]
criterion = "gradient"
threshold = [0.1, 1e20]
field = "rho"
[[mesh.refine]]
criterion = "always"
[[mesh.refine]]
criterion = "region"
left = [1, 2, 3]

[initial]
density = "1 + sin(x)"
scalar_dye = "x"
"#;

/// Takes every table and returns the resolved deck.
fn take(deck: &mut Deck) -> (Top, Hydro, Domain, Mesh, Initial) {
    let all = (
        deck.root::<Top>().expect("the top"),
        deck.table::<Hydro>("hydro").expect("hydro"),
        deck.table::<Domain>("domain").expect("domain"),
        deck.table::<Mesh>("mesh").expect("mesh"),
        deck.table::<Initial>("initial").expect("initial"),
    );
    deck.finish().expect("nothing is left over");
    all
}

#[test]
fn values_and_defaults() {
    let mut deck = Deck::parse("d.toml", DECK).expect("a deck");
    assert!(
        deck.has("hydro")
            && deck.has("mesh.refine[2].left[1]")
            && !deck.has("gravity")
            && !deck.has("mesh.refine[3]")
    );
    let (top, hydro, domain, mesh, initial) = take(&mut deck);
    assert_eq!(
        top,
        Top {
            scenario: "sedov".to_string(),
            title: None
        }
    );
    assert_eq!(
        (hydro.gamma, hydro.floor, hydro.limiter),
        (2.0, Some(1e-300), Limiter::MonotonizedCentral)
    );
    assert_eq!(domain.cells, [64; 3]);
    let Boundary::Axes(axes) = domain.boundary else {
        panic!("each axis its own")
    };
    assert_eq!(axes.x, OneOrTwo::Each([Side::Outflow, Side::Reflecting]));
    assert_eq!(mesh.refine.len(), 3);
    let threshold = PerLevel::Each(vec![0.1, 1e20]);
    assert_eq!(
        mesh.refine[0],
        Refine::Gradient {
            field: "rho".to_string(),
            threshold
        }
    );
    assert_eq!(
        mesh.refine[2],
        Refine::Region {
            left: [1.0, 2.0, 3.0],
            right: [1.0; 3]
        }
    );
    assert_eq!(initial.scalars["scalar_dye"], "x");
}

#[test]
fn an_absent_table_is_its_defaults() {
    let mut deck = Deck::parse("d.toml", "").expect("an empty deck");
    let (top, hydro, domain, mesh, initial) = take(&mut deck);
    let defaults = (
        Top::default(),
        Hydro::default(),
        Domain::default(),
        Mesh::default(),
        Initial::default(),
    );
    assert_eq!((top, hydro, domain, mesh, initial), defaults);
}

#[test]
fn unused_entries_are_errors() {
    let mut deck = Deck::parse("d.toml", DECK).expect("a deck");
    deck.root::<Top>().expect("the top");
    deck.table::<Hydro>("hydro").expect("hydro");
    let left: Vec<String> = match deck.finish() {
        Ok(()) => Vec::new(),
        Err(error) => error
            .faults()
            .iter()
            .map(|fault| fault.message.clone())
            .collect(),
    };
    let unknown = |name: &str| {
        format!("unknown table [{name}]: no plugin of this program uses it; known are hydro")
    };
    assert_eq!(
        left,
        [unknown("domain"), unknown("mesh"), unknown("initial")]
    );
}

#[test]
fn the_resolved_deck_resolves_to_itself() {
    let mut deck = Deck::parse("d.toml", DECK).expect("a deck");
    let all = take(&mut deck);
    let text = deck.resolved();
    assert!(
        text.starts_with(
            "scenario = \"sedov\"\n\n[hydro]\ngamma = 2.0\nlimiter = \"monotonized-central\"\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("\nfloor = 1e-300\n") && text.contains("threshold = [0.1, 1e20]"),
        "{text}"
    );
    assert!(text.contains("scalars = [\"a\", \"b\\\"c\"]"), "{text}");
    let mut again = Deck::parse("run.toml", &text).expect("a deck");
    assert_eq!(take(&mut again), all);
    assert_eq!(again.resolved(), text);
}

/// A default that follows from other parts of the deck is written for keys that the deck lacks.
#[test]
fn a_resolved_key_does_not_replace_a_given_one() {
    #[nestar_deck::deck]
    struct Part {
        first: Option<f64>,
        second: Option<f64>,
    }
    let mut deck = Deck::parse("d.toml", "[part]\nfirst = 1.0\n").expect("a deck");
    deck.resolve("part.second", 2.0);
    let part: Part = deck.table("part").expect("a table");
    assert_eq!((part.first, part.second), (Some(1.0), None));
    deck.resolve("part.first", 3.0);
    deck.resolve("part.second", 3.0);
    assert_eq!(deck.resolved(), "[part]\nfirst = 1.0\nsecond = 3.0\n");
}

#[test]
fn overrides_change_add_and_replace() {
    let mut deck = Deck::parse("d.toml", DECK).expect("a deck");
    for argument in [
        "hydro.limiter=minmod",
        "hydro.scalars=[\"z\"]",
        "hydro.quiet_steps = 0x10",
        "domain.boundary=outflow",
        "mesh.refine[0].threshold=0.25",
        "initial.density=3",
        "initial.pressure=1 + x",
        "initial.scalar_dust=if(x < 1, 0, 1)",
        "title=true",
        "scenario=\"sod\"",
    ] {
        deck.set(argument).expect(argument);
    }
    let (top, hydro, domain, mesh, initial) = take(&mut deck);
    assert_eq!(
        (top.scenario.as_str(), top.title.as_deref()),
        ("sod", Some("true"))
    );
    assert_eq!(
        (hydro.limiter, hydro.scalars, hydro.quiet_steps),
        (Limiter::Minmod, vec!["z".to_string()], 16)
    );
    assert_eq!(domain.boundary, Boundary::All(Side::Outflow));
    let Refine::Gradient { threshold, .. } = &mesh.refine[0] else {
        panic!("the first is a gradient")
    };
    assert_eq!(*threshold, PerLevel::All(0.25));
    assert_eq!(
        (initial.density.as_str(), initial.pressure.as_str()),
        ("3", "1 + x")
    );
    assert_eq!(initial.scalars["scalar_dust"], "if(x < 1, 0, 1)");
}

#[test]
fn parameters_describe_themselves() {
    let docs = describe::<Hydro>();
    let doc = |key: &str| docs.iter().find(|doc| doc.key == key).expect("a parameter");
    let keys: Vec<&str> = docs.iter().map(|doc| doc.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "gamma",
            "limiter",
            "cooling",
            "scalars",
            "floor",
            "quiet_steps",
            "verbose"
        ]
    );
    let gamma = doc("gamma");
    assert_eq!(
        (gamma.kind.as_str(), gamma.doc.as_str()),
        ("number", "Ratio of specific heats.")
    );
    assert_eq!(gamma.range.as_deref(), Some("above 1 and at most 3"));
    assert_eq!(gamma.default.as_deref(), Some("1.6666666666666667"));
    assert_eq!(doc("cooling").unit.as_deref(), Some("1/time"));
    assert_eq!(
        doc("limiter").allowed[1],
        ("van-leer".to_string(), "Smooth.".to_string())
    );
    assert_eq!(
        doc("limiter").default.as_deref(),
        Some("\"monotonized-central\"")
    );
    assert_eq!(
        (doc("floor").default.as_deref(), doc("floor").required),
        (None, false)
    );
    assert_eq!(doc("quiet_steps").range.as_deref(), Some("at least 0"));
    assert_eq!(TableSchema::of::<Hydro>("hydro").doc(), "Gas dynamics.");
}

#[test]
fn nested_parameters_describe_themselves() {
    let docs: Vec<_> = describe::<Domain>()
        .into_iter()
        .chain(describe::<Mesh>())
        .collect();
    let kind = |key: &str| {
        docs.iter()
            .find(|doc| doc.key == key)
            .map(|doc| doc.kind.clone())
    };
    assert_eq!(kind("cells").as_deref(), Some("3 integers, x y z"));
    assert_eq!(kind("boundary").as_deref(), Some("word or a table"));
    assert_eq!(kind("boundary.x").as_deref(), Some("word or 2 words"));
    assert_eq!(kind("refine").as_deref(), Some("list of tables"));
    let threshold = docs
        .iter()
        .find(|doc| doc.key == "refine[gradient].threshold")
        .expect("a parameter");
    assert_eq!(threshold.kind, "number or a list of numbers");
    assert_eq!(
        (threshold.range.as_deref(), threshold.unit.as_deref()),
        (Some("at least 0"), Some("1/length"))
    );
    assert!(threshold.required);
    let always = docs
        .iter()
        .find(|doc| doc.key == "refine[always].criterion")
        .expect("a parameter");
    assert_eq!(always.doc, "Everywhere.");
}

#[test]
fn one_schema_describes_whole_decks() {
    let tables = [
        TableSchema::of::<Top>(""),
        TableSchema::of::<Hydro>("hydro"),
        TableSchema::of::<Mesh>("mesh"),
    ];
    let schema = schema(&tables);
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["scenario"]["type"], "string");
    assert_eq!(
        schema["properties"]["hydro"]["properties"]["gamma"]["exclusiveMinimum"],
        1.0
    );
    assert!(
        !schema.to_string().contains("$ref"),
        "editors need no resolver"
    );
}

/// Characters and words that damage decks.
const BITS: [&str; 20] = [
    "[", "]", "=", "\"", "'", "{", "}", ".", ",", "\n", "nan", "1e99", "é", "🙂", "\0", "\t", "-",
    "#", "[[", "7",
];

/// Returns the sample deck with some characters replaced, and a random argument.
fn damaged(mut random: impl FnMut(usize) -> usize) -> (String, String) {
    let mut letters: Vec<String> = DECK.chars().map(String::from).collect();
    for _ in 0..1 + random(3) {
        let at = random(letters.len());
        let end = (at + random(3)).min(letters.len());
        letters.splice(at..end, [BITS[random(BITS.len())].to_string()]);
    }
    let argument = (0..random(12))
        .map(|_| letters[random(letters.len())].as_str())
        .collect();
    (letters.concat(), argument)
}

#[test]
fn damaged_decks_are_errors_or_valid() {
    let tables = [
        TableSchema::of::<Top>(""),
        TableSchema::of::<Hydro>("hydro"),
        TableSchema::of::<Domain>("domain"),
        TableSchema::of::<Mesh>("mesh"),
        TableSchema::of::<Initial>("initial"),
    ];
    let mut state = 3u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let (mut refused, mut taken) = (0, 0);
    for _ in 0..3000 {
        let (text, argument) = damaged(&mut random);
        let Ok(mut deck) = Deck::parse("d.toml", &text) else {
            continue;
        };
        let _result = deck.clone().set(&argument);
        if random(4) == 0 {
            let _result = deck.set(&format!("mesh.max_level={argument}"));
        }
        match deck.check(&tables) {
            Err(error) => refused += usize::from(!error.to_string().is_empty()),
            Ok(()) => {
                // a deck that passes the check is taken and resolves to itself
                take(&mut deck);
                let resolved = deck.resolved();
                let mut again = Deck::parse("run.toml", &resolved).expect("a deck");
                take(&mut again);
                assert_eq!(again.resolved(), resolved);
                taken += 1;
            }
        }
    }
    assert!(
        refused > 300 && taken > 100,
        "{refused} decks were refused, {taken} taken"
    );
}
