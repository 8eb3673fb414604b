//! Other shapes of tables: lists with several owners, flattened enums, types with their own conditions.

use crate::common::{Jeans, Mode, OpenMesh, Shapes, Source, SourceKind, Tiles};
use nestar_deck::{Deck, TableSchema, describe_table, merged, schema};

fn criteria() -> [TableSchema; 3] {
    [
        TableSchema::of::<OpenMesh>("mesh"),
        TableSchema::variant::<Jeans>("mesh.refine", "criterion", "jeans"),
        TableSchema::variant::<Tiles>("mesh.refine", "criterion", "tiles"),
    ]
}

#[test]
fn elements_of_a_list_belong_to_several_owners() {
    let text =
        "[[mesh.refine]]\ncriterion = 'jeans'\n[[mesh.refine]]\ncells = 7\ncriterion = 'jeans'\n";
    let mut deck = Deck::parse("d.toml", text).expect("a deck");
    deck.set("mesh.refine[1].within=0").expect("well formed");
    deck.check(&criteria()).expect("in order");
    let mesh: OpenMesh = deck.table("mesh").expect("the mesh");
    assert_eq!(mesh.refine[1]["criterion"], "jeans");
    let second: Jeans = deck
        .variant("mesh.refine[1]", "criterion")
        .expect("the second");
    assert_eq!(
        second,
        Jeans {
            cells: 7.0,
            within: "0".to_string()
        }
    );
    let first: Jeans = deck
        .variant("mesh.refine[0]", "criterion")
        .expect("the first");
    assert_eq!(first, Jeans::default());
    deck.finish().expect("nothing is left over");
    let resolved = "[[mesh.refine]]\ncriterion = \"jeans\"\ncells = 4.0\nwithin = \"1\"\n\n\
                    [[mesh.refine]]\ncriterion = \"jeans\"\ncells = 7.0\nwithin = \"0\"\n";
    assert_eq!(deck.resolved(), resolved);
}

#[test]
fn mistakes_in_elements_of_several_owners() {
    let wrong =
        "[[mesh.refine]]\ncriterion = 'jeans'\ncells = 0\n[[mesh.refine]]\ncriterion = 'jens'\n";
    let mut deck = Deck::parse("d.toml", wrong).expect("a deck");
    let error = deck.check(&criteria()).expect_err("two mistakes");
    let messages: Vec<&str> = error
        .faults()
        .iter()
        .map(|fault| fault.message.as_str())
        .collect();
    assert_eq!(
        messages,
        [
            "`mesh.refine[0].cells` must be at least 1, found 0",
            "`mesh.refine[1].criterion` must be one of \"jeans\", \"tiles\", found \"jens\"; did you mean \"jeans\"?",
        ]
    );
    let error = deck
        .variant::<Jeans>("mesh.refine[0]", "criterion")
        .expect_err("out of range");
    assert_eq!((error.faults()[0].line, error.faults().len()), (Some(3), 1));
}

#[test]
fn elements_of_several_owners_describe_themselves() {
    let docs = describe_table(&merged(&criteria())[0]);
    let keys: Vec<&str> = docs.iter().map(|doc| doc.key.as_str()).collect();
    let jeans = [
        "refine[jeans].criterion",
        "refine[jeans].cells",
        "refine[jeans].within",
    ];
    assert_eq!(keys[0], "refine");
    assert_eq!(keys[1..4], jeans);
    assert_eq!(
        keys[4..],
        ["refine[tiles].criterion", "refine[tiles].count"]
    );
    assert_eq!(docs[1].doc, "Resolve the Jeans length.");
    let items = &schema(&criteria())["properties"]["mesh"]["properties"]["refine"]["items"];
    assert_eq!(
        items["oneOf"][1]["properties"]["criterion"]["const"],
        "tiles"
    );
}

#[test]
fn conditions_of_a_type_itself_point_at_the_key() {
    let mut deck = Deck::parse("d.toml", "[tiles]\ncount = 3\n").expect("a deck");
    let error = deck.table::<Tiles>("tiles").expect_err("an odd number");
    assert_eq!(
        error.to_string(),
        "d.toml:2:9: `tiles.count`: 3 is odd\n 2 | count = 3\n   |         ^"
    );
}

#[test]
fn flattened_untagged_and_unlike_values() {
    let text = "[shapes]\npair = [1, 'a']\nmode = { law = { index = 2 } }\n\
                [[shapes.sources]]\nkind = 'point'\nat = [1, 2, 3]\nrate = 5\n[[shapes.sources]]\nkind = 'uniform'\n";
    let mut deck = Deck::parse("d.toml", text).expect("a deck");
    let shapes: Shapes = deck.table("shapes").expect("in order");
    assert_eq!(
        (shapes.pair, shapes.mode),
        ((1.0, "a".to_string()), Some(Mode::Law { index: 2.0 }))
    );
    let first = Source {
        rate: 5.0,
        kind: SourceKind::Point {
            at: [1.0, 2.0, 3.0],
        },
    };
    assert_eq!(
        shapes.sources,
        [
            first,
            Source {
                rate: 0.0,
                kind: SourceKind::Uniform
            }
        ]
    );
    let resolved = deck.resolved();
    let mut again = Deck::parse("run.toml", &resolved).expect("a deck");
    again.table::<Shapes>("shapes").expect("in order");
    assert_eq!(again.resolved(), resolved);
}

#[test]
fn mistakes_in_other_shapes() {
    for (value, message) in [
        (
            "sources=[{ kind = 'uniform', at = [1, 2, 3] }]",
            "unknown key `at` in [shapes.sources[0]]; known are kind, rate",
        ),
        (
            "sources=[{ kind = 'point' }]",
            "`shapes.sources[0]`: missing key `at` (3 numbers)",
        ),
        ("mode=on", "`shapes.mode` must be \"off\", found \"on\""),
        (
            "mode.law.index=x",
            "`shapes.mode.law.index` must be a number, found the text \"x\": unknown name `x`; known are pi, e",
        ),
    ] {
        let mut deck = Deck::parse("d.toml", "").expect("a deck");
        deck.set(&format!("shapes.{value}")).expect("well formed");
        let error = deck.table::<Shapes>("shapes").expect_err(value);
        assert_eq!(error.faults()[0].message, message, "{value}");
    }
}
