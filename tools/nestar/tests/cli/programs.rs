//! Tests of programs with additional physics, which have the complete command line.

use crate::{Outcome, Place};
use std::path::Path;
use std::process::Command;

const DECK: &str = r#"
scenario = "blast"
[radiation]
coldest = 0.02
[domain]
cells = [16, 16, 16]
[time]
max_steps = 3
[mesh]
max_level = 1
[output]
directory = "run"
"#;

/// Runs the example `cooling`.
fn cooling(place: &Place, arguments: &[&str]) -> Outcome {
    example("cooling", place, arguments)
}

/// Examples that `cargo xtask test` builds before the tests, one a line. Every example that a test starts is listed there.
const EXAMPLES: &str = include_str!("examples.txt");

/// Runs an example, which is built in the folder of the command.
fn example(name: &str, place: &Place, arguments: &[&str]) -> Outcome {
    let listed = EXAMPLES.lines().any(|line| line == name);
    assert!(
        listed,
        "add `{name}` to tools/nestar/tests/cli/examples.txt"
    );
    let folder = Path::new(env!("CARGO_BIN_EXE_nestar")).parent();
    let program = folder.expect("a folder").join("examples").join(name);
    let mut command = Command::new(&program);
    let output = command.current_dir(&place.0).args(arguments).output();
    Outcome::of(output.unwrap_or_else(|e| {
        panic!(
            "{}: {e}; `cargo build --release --workspace --example {name}` makes it",
            program.display()
        )
    }))
}

#[test]
fn a_user_program_has_the_complete_command_line() {
    let place = Place::with(DECK);
    let run = cooling(&place, &["run", "deck.toml", "--set", "time.max_steps=1"]);
    run.has_status(0).tells(&[
        "cooling 0.1.0",
        "nestar 0.1.0",
        "deck deck.toml",
        "done: step 1",
    ]);
    cooling(&place, &["run", "deck.toml", "--resume"])
        .has_status(0)
        .tells(&["done: step 3"]);
    let provenance = place.read("run/provenance.json");
    assert!(
        provenance.contains("\"program\": \"cooling\""),
        "{provenance}"
    );
    assert!(provenance.contains("\"program_commit\""), "{provenance}");
    assert!(place.read("run/diagnostics.csv").contains("total_radiated"));
    assert!(place.read("run/run.toml").contains("coldest = 0.02"));
    for (arguments, texts) in [
        (
            &["check", "deck.toml", "--rate", "1e6"][..],
            &["[radiation]", "cools_fast"][..],
        ),
        (
            &["list"],
            &[
                "plugins",
                "Radiative cooling",
                "coldest",
                "(length/time)**2; above 0; default 0.05",
            ],
        ),
        (&["schema"], &["\"cooling\"", "\"coldest\""]),
        (
            &["order", "deck.toml"],
            &["limit cooling", "criterion cools_fast"],
        ),
        (
            &[
                "verify",
                "deck.toml",
                "run",
                "--devices",
                "cpu,cpu",
                "--cells",
                "8",
            ],
            &["equal", "intact"],
        ),
        (&["plan", "deck.toml", "--ranks", "2"], &["2"]),
        (&["digest", "run"], &["run/snapshots/000002.zarr"]),
        (&["--version"], &["cooling 0.1.0", "nestar 0.1.0"]),
    ] {
        let outcome = cooling(&place, arguments);
        outcome.has_status(0);
        for text in texts {
            assert!(
                outcome.out.contains(text),
                "{arguments:?}: no {text:?} in\n{}",
                outcome.out
            );
        }
    }
    place
        .nestar(&["run", "deck.toml"])
        .has_status(2)
        .complains(&[
            "deck.toml:3:2: unknown table [radiation]: no plugin of this program uses it",
        ]);
    let wrong = cooling(
        &place,
        &["run", "deck.toml", "--set", "radiation.rates=[1]"],
    );
    wrong
        .has_status(2)
        .complains(&["`radiation.rates` must be 2 or more numbers"]);
}

/// Replaces each white space by one blank.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn lists_and_checks_show_what_plugins_register() {
    let place = Place::with(DECK);
    let shown: [(&str, &[&str], &[&str]); 5] = [
        (
            "cooling",
            &["list", "plugins"],
            &[
                "radiation Radiative cooling",
                "field radiated",
                "initial nothing",
                "limit cooling A fraction of the cooling time. (gas; time)",
                "criterion cools_fast Refines cells whose cooling time is shorter than the sound-crossing time of about eight cells. (gas)",
            ],
        ),
        (
            "cooling",
            &["check", "deck.toml", "--rate", "1e6"],
            &[
                "# registered by radiation # field radiated",
                "# limit cooling A fraction",
            ],
        ),
        (
            "burning",
            &["list"],
            &[
                "scalar fuel Mass fraction, 0 to 1; default 1.",
                "split source react Advances both reactions by a step",
                "column fuel Mass of unburnt fuel. (gas; mass)",
                "derived field heat_left Heat per mass that can still be released. (gas; length**2/time**2)",
            ],
        ),
        (
            "atmosphere",
            &["list"],
            &[
                "boundary hydrostatic Gas in hydrostatic balance with the nearest cell of the domain",
                "periodic | outflow | reflecting | diode | inflow | hydrostatic",
            ],
        ),
        (
            "atmosphere",
            &["schema"],
            &["\"const\": \"hydrostatic\"", "Gas in hydrostatic balance"],
        ),
    ];
    for (program, arguments, texts) in shown {
        let outcome = example(program, &place, arguments);
        outcome.has_status(0);
        let found = words(&outcome.out);
        for text in texts {
            let missing = format!("{program} {arguments:?}: no {text:?} in\n{}", outcome.out);
            assert!(found.contains(text), "{missing}");
        }
    }
}

#[test]
fn fields_of_plugins_are_drawn() {
    let deck = DECK.replace("[radiation]\ncoldest = 0.02", "[sweeps]");
    let place = Place::with(&deck);
    let listed = example("potential", &place, &["list", "fields"]);
    assert!(
        words(&listed.out).contains("of plugins potential"),
        "{}",
        listed.out
    );
    example("potential", &place, &["run", "deck.toml"]).has_status(0);
    let drawn = example(
        "potential",
        &place,
        &["plot", "run", "--field", "potential"],
    );
    drawn.has_status(0);
    let picture = std::fs::read(place.0.join(drawn.out.trim())).expect("the picture");
    assert!(picture.starts_with(b"\x89PNG"));
    example(
        "potential",
        &place,
        &["plot", "run", "--field", "potentail"],
    )
    .has_status(2)
    .complains(&["potentail", "potential"]);
}

#[test]
fn fields_that_a_plugin_derives_are_drawn_and_refine() {
    let deck = include_str!("../../../../scenarios/programs/burning.toml");
    let place = Place::with(deck);
    let small = [
        "--set",
        "domain.cells=[16, 16, 8]",
        "--set",
        "time.max_steps=2",
    ];
    let run = ["run", "deck.toml", "--output", "run", "--quiet"];
    example("burning", &place, &[&run[..], &small].concat()).has_status(0);
    let draw = [
        "plot",
        "run",
        "--field",
        "heat_left",
        "--output",
        "heat.png",
    ];
    example("burning", &place, &draw).has_status(0);
    assert!(place.0.join("heat.png").exists());
    // a program without the plugin does not have the field
    place.nestar(&draw).has_status(2).complains(&["heat_left"]);
    let misspelt = "mesh.refine[1].field=heat_lef";
    let wrong = [&run[..], &["--set", misspelt]].concat();
    example("burning", &place, &wrong)
        .has_status(2)
        .complains(&["heat_lef", "heat_left"]);
}

#[test]
fn a_crate_is_made_once_and_with_a_name_of_a_crate() {
    let place = Place::new();
    let made = place.nestar(&["new", "my-run"]);
    made.has_status(0);
    assert!(
        made.out.contains("cargo run --release -- run my-run.toml"),
        "{}",
        made.out
    );
    assert!(
        place
            .read("my-run/Cargo.toml")
            .contains("name = \"my-run\"")
    );
    assert!(
        place
            .read("my-run/src/main.rs")
            .contains("include_str!(\"../my-run.toml\")")
    );
    let guide = place.read("my-run/README.md");
    let command = "cargo run --release -- check my-run.toml";
    assert!(
        guide.starts_with("# my-run\n") && guide.contains(command),
        "{guide}"
    );
    assert!(
        !guide.contains("NAME") && !guide.contains("NESTAR"),
        "{guide}"
    );
    // the crate has the build settings of Nestar
    assert!(place.read("my-run/Cargo.lock").contains("name = \"zarrs\""));
    assert!(
        place
            .read("my-run/.cargo/config.toml")
            .contains("rustflags")
    );
    // its deck needs the plugin of the program
    place
        .nestar(&["check", "my-run/my-run.toml"])
        .has_status(2)
        .complains(&["unknown table [drag]"]);
    place
        .nestar(&["new", "my-run"])
        .has_status(2)
        .complains(&["my-run already exists"]);
    place
        .nestar(&["new", "2-runs"])
        .has_status(2)
        .complains(&["not a valid crate name"]);
    let nowhere = place.nestar(&["new", "other", "--nestar", "nowhere"]);
    nowhere
        .has_status(2)
        .complains(&["no checkout of Nestar in", "--nestar"]);
}
