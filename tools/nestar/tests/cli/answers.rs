//! Tests of the output of commands.

use crate::{BLAST, Outcome, Place, SPECIES};
use nestar::Simulation;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

#[test]
fn plots_are_drawn_and_invalid_options_are_errors() {
    let place = Place::with(BLAST);
    place
        .nestar(&["run", "deck.toml", "--set", "time.max_steps=2"])
        .has_status(0);
    let outcome = place.nestar(&["plot", "run", "--field", "pressure", "--width", "300"]);
    outcome.has_status(0);
    assert_eq!(outcome.out, "pressure_000001.png\n");
    let all = "plot run/snapshots/000000.zarr --field density --axis x --max --log --min-value 0.5 --max-value 2 \
        --level 0 --outlines --width 300 --colour-map inferno --title T -o a.png";
    place
        .nestar(&all.split_whitespace().collect::<Vec<_>>())
        .has_status(0);
    for name in ["pressure_000001.png", "a.png"] {
        let bytes = std::fs::read(place.0.join(name)).expect("the picture");
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    }
    let wrong: [(&str, &str); 4] = [
        ("--field presure", "did you mean \"pressure\"?"),
        ("--slice=-3", "slice"),
        ("--slice 0 --projection", "cannot be used with"),
        ("--axis w", "must be x, y or z"),
    ];
    for (options, text) in wrong {
        let arguments = ["plot", "run"].into_iter().chain(options.split(' '));
        let outcome = place.nestar(&arguments.collect::<Vec<_>>());
        outcome.has_status(2).complains(&[text]);
    }
    let nowhere = place.nestar(&["plot", "run", "-o", "no/where.png"]);
    nowhere
        .has_status(1)
        .complains(&["cannot write no/where.png"]);
}

#[test]
fn units_are_printed_and_temperatures_plotted_in_kelvin() {
    let words = "[units]\nlength = \"kpc\"\nmass = \"Msun\"\nvelocity = \"km/s\"\n";
    let place = Place::with(&format!("{BLAST}{words}"));
    let told = [
        "3.0857e21 cm = 1000 pc",
        "velocity 1 km/s",
        "Newton's constant 4.3009e-6",
    ];
    place
        .nestar(&["check", "deck.toml"])
        .has_status(0)
        .prints(&told);
    let run = ["run", "deck.toml", "--set", "time.max_steps=1"];
    place.nestar(&run).has_status(0).tells(&told);
    for field in ["temperature_k", "number_density_cm3"] {
        let plot = ["plot", "run", "--field", field, "--width", "300"];
        place.nestar(&plot).has_status(0);
    }
    let plain = Place::with(BLAST);
    let run = ["run", "deck.toml", "--set", "time.max_steps=1"];
    plain.nestar(&run).has_status(0);
    let plot = ["plot", "run", "--field", "temperature_k"];
    plain
        .nestar(&plot)
        .has_status(2)
        .complains(&["temperature"]);
}

#[test]
fn temperatures_by_a_table_are_plotted_only_with_the_table() {
    let cooling = "[units]\nlength = \"kpc\"\ntime = \"Myr\"\ndensity = \"mH/cm3\"\n[cooling]\ntable = \"table.zarr\"\n";
    let place = Place::with(&format!("{BLAST}{cooling}"));
    let table = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/solar-cooling.zarr"
    );
    let copied = std::process::Command::new("cp")
        .args(["-r", table])
        .arg(place.0.join("table.zarr"))
        .status();
    assert!(copied.expect("cp runs").success());
    let run = ["run", "deck.toml", "--set", "time.max_steps=1"];
    place.nestar(&run).has_status(0);
    let plot = ["plot", "run", "--field", "temperature_k", "--width", "300"];
    place.nestar(&plot).has_status(0);
    std::fs::rename(place.0.join("table.zarr"), place.0.join("gone")).expect("renamed");
    let words = ["there is no field", "temperature_k", "table.zarr"];
    place.nestar(&plot).has_status(2).complains(&words);
}

#[test]
fn particles_are_drawn_as_dots_and_as_densities() {
    let place = Place::with(&format!("{BLAST}{SPECIES}"));
    let run = ["run", "deck.toml", "--set", "time.max_steps=1"];
    place.nestar(&run).has_status(0);
    let plot = |options: &str| {
        let options = options.split(' ').filter(|option| !option.is_empty());
        place.nestar(
            &["plot", "run"]
                .into_iter()
                .chain(options)
                .collect::<Vec<_>>(),
        )
    };
    for (options, name) in [
        (
            "--field particles/dark --projection --log",
            "particles_dark_000001.png",
        ),
        (
            "--field particles/dye --axis x --slice 0.1 --depth 0.3",
            "particles_dye_000001.png",
        ),
        ("--particles dark,dye --dot 4", "density_000001.png"),
        ("--particles all --projection -o all.png", "all.png"),
    ] {
        let outcome = plot(options);
        outcome.has_status(0);
        assert_eq!(outcome.out, format!("{name}\n"));
        let bytes = std::fs::read(place.0.join(name)).expect("the picture");
        assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"));
    }
    for (options, text) in [
        ("--particles dust", "known are dark, dye"),
        ("--field particles/drak", "did you mean \"particles/dark\"?"),
        (
            "--field particles/dark --max",
            "draw a slice or a projection",
        ),
        ("--particles all --depth=-1", "depth -1"),
        ("--projection --depth 1", "cannot be used with"),
        ("--dot 3", "--particles"),
    ] {
        plot(options).has_status(2).complains(&[text]);
    }
    let place = Place::with(BLAST);
    place.nestar(&run).has_status(0);
    let none = place.nestar(&["plot", "run", "--particles", "all"]);
    none.has_status(2)
        .complains(&["the snapshot has no particles"]);
}

/// The arguments are valid if the error is the missing run.
#[test]
fn the_pictures_that_decks_propose_can_be_asked_for() {
    let place = Place::new();
    let mut count = 0;
    for entry in std::fs::read_dir(scenarios()).expect("the folder of scenarios") {
        let Ok(deck) = std::fs::read_to_string(entry.expect("an entry").path()) else {
            continue;
        };
        for line in deck.lines() {
            if let Some(arguments) = line
                .strip_prefix("#   nestar ")
                .filter(|a| a.starts_with("plot "))
            {
                let outcome = place.nestar(&arguments.split(' ').collect::<Vec<_>>());
                let text = "there is nothing with this name";
                outcome.has_status(2).complains(&[text, "out/"]);
                count += 1;
            }
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_failure() {
    let place = Place::new();
    let mut child = place
        .command(&["list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let outcome = Outcome::of(child.wait_with_output().expect("the program ends"));
    outcome.has_status(0);
    assert_eq!(outcome.err, "");
}

#[test]
fn lists_name_every_kind_of_thing() {
    let place = Place::new();
    let cases = [
        ("scenarios", "sedov"),
        ("criteria", "lohner"),
        ("schemes", "muscl-hancock"),
        ("parameters", "max_steps"),
        ("fields", "sound_speed"),
        ("formulas", "atan2(y, x)"),
    ];
    let all = place.nestar(&["list"]).out;
    for (topic, word) in cases {
        let outcome = place.nestar(&["list", topic]);
        outcome.has_status(0);
        assert!(outcome.out.contains(word), "{topic}: {}", outcome.out);
        assert!(
            all.contains(&outcome.out),
            "{topic} is no part of the whole list"
        );
    }
    place
        .nestar(&["list", "schemas"])
        .has_status(2)
        .complains(&["schemes"]);
}

/// Checks that every number of a schema may be an expression, which is a text.
fn numbers_take_expressions(schema: &serde_json::Value) {
    if let Some(kinds) = schema.get("type").filter(|kind| !kind.is_object()) {
        let kinds = kinds.to_string();
        let is_number = kinds.contains("number") || kinds.contains("integer");
        assert!(!is_number || kinds.contains("string"), "{schema}");
    }
    let values = schema
        .as_object()
        .into_iter()
        .flat_map(|keys| keys.values());
    values
        .chain(schema.as_array().into_iter().flatten())
        .for_each(numbers_take_expressions);
}

#[test]
fn the_schema_is_json_and_knows_all_tables() {
    let outcome = Place::new().nestar(&["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&outcome.out).expect("JSON");
    for key in ["scenario", "domain", "mesh", "hydro", "initial", "sedov"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
    assert_eq!(
        schema["properties"]["domain"]["properties"]["cells"]["items"]["multipleOf"],
        8
    );
    let names = schema["properties"]["scenario"]["oneOf"].as_array();
    let names: Vec<&str> = names
        .expect("scenarios")
        .iter()
        .filter_map(|s| s["const"].as_str())
        .collect();
    for name in ["formula", "zarr", "sedov", "sod"] {
        assert!(names.contains(&name), "{names:?}");
    }
    numbers_take_expressions(&schema);
    let inflow = &schema["properties"]["inflow"]["properties"];
    assert!(inflow["z_upper"]["properties"]["density"].is_object());
}

#[test]
fn a_checked_deck_is_a_deck_again() {
    let place = Place::with(BLAST);
    let first = place.nestar(&["check", "deck.toml"]);
    first.has_status(0);
    for text in [
        "# initial hierarchy: 40.0 KiB per patch",
        "#     0         8         4096   320.0 KiB",
        "# memory of fields and tables: ",
        "#      2 ranks: ",
        "# output: about 2 snapshots, at most ",
        "# duration with constant hierarchy and time step",
        "cells/s (measured on CPU",
        "#   2 Fluid",
    ] {
        assert!(first.out.contains(text), "no {text:?} in\n{}", first.out);
    }
    assert!(!place.0.join("run").exists());
    let timed = place.nestar(&["check", "deck.toml", "--rate", "1e6"]);
    // 12 root steps of 8 + 64 patches, with two steps of the finer level each
    let expected = "12 root steps, 8.36e5 cell updates, at 1.00e6 cells/s (--rate) 1s";
    assert!(timed.out.contains(expected), "{}", timed.out);
    place.write("resolved.toml", &first.out);
    let second = place.nestar(&["check", "resolved.toml"]);
    let deck = |text: &str| text.split("\n#").next().map(str::to_string);
    assert_eq!(deck(&first.out), deck(&second.out));
}

#[test]
fn the_order_is_printed_with_sets_systems_and_conditions() {
    let place = Place::with(BLAST);
    let order = place.nestar(&["order", "deck.toml"]);
    order.has_status(0);
    for text in [
        "Advance\n  1 Exchange\n  2 Fluid (if step_accepted)      advance_gas: writes gas (2 halo layers)\n",
        "\n  3 Predict (if step_accepted)\n",
        "\n  1 Restrict  restrict<Gas>: writes gas\n",
    ] {
        assert!(order.out.contains(text), "no {text:?} in\n{}", order.out);
    }
}

#[test]
fn every_shipped_deck_passes_the_check() {
    let place = Place::new();
    let entries = std::fs::read_dir(scenarios()).expect("the folder of scenarios");
    let decks = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .filter(|path| path.file_name().is_some_and(|name| name != "Cargo.toml"));
    let mut count = 0;
    for deck in decks {
        let mut sim = Simulation::from_deck(&deck).unwrap_or_else(|e| panic!("{e}"));
        let cells = sim.engine().settings.domain.cells.map(|n| n.min(16));
        let deck = deck.to_string_lossy();
        // the order of systems needs no hierarchy, so a small root grid suffices
        let small = format!("domain.cells={cells:?}");
        let commands: [&[&str]; 2] = [
            &["order", &deck],
            &["check", &deck, "--set", "mesh.max_level=0", "--set", &small],
        ];
        for command in commands {
            let outcome = place.nestar(command);
            assert_eq!(outcome.status, Some(0), "{command:?}: {}", outcome.err);
        }
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn lists_are_searched_by_words() {
    let place = Place::new();
    let found = place.nestar(&["list", "parameters", "cycles", "GRAVITY"]);
    found.has_status(0).prints(&["[gravity]"]);
    let all = place.nestar(&["list", "parameters"]).out;
    let entries = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(entries(&found.out) < entries(&all) / 4, "{}", found.out);
    assert!(found.out.lines().all(|line| all.contains(line)));
    place
        .nestar(&["list", "parameters", "zzz"])
        .has_status(2)
        .complains(&["nothing contains \"zzz\""]);
}

#[test]
fn decks_of_the_program_run_by_name() {
    let place = Place::new();
    place
        .nestar(&["deck"])
        .has_status(0)
        .prints(&["sedov  ", "A point explosion"]);
    let text = place.nestar(&["deck", "sedov"]);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/sedov.toml");
    assert_eq!(text.out, std::fs::read_to_string(file).expect("a deck"));
    let small = [
        "--set",
        "domain.cells=[16,16,16]",
        "--set",
        "time.max_steps=1",
    ];
    let run = place.nestar(&[&["run", "sedov"][..], &small].concat());
    run.has_status(0).tells(&["done: step 1"]);
    assert!(place.0.join("out/sedov/run.toml").exists());
    for command in [&["run", "sedof"], &["deck", "sedof"], &["check", "sedof"]] {
        place
            .nestar(command)
            .has_status(2)
            .complains(&["`sedof`; did you mean `sedov`?"]);
    }
    // an error in a setting refers to the deck
    let wrong = place.nestar(&["check", "sedov", "--set", "sedov.enrgy=1"]);
    wrong.has_status(2).complains(&["did you mean `energy`?"]);
    // a file has precedence
    place.write("sod", "scenario = \"nothing\"");
    place
        .nestar(&["check", "sod"])
        .has_status(2)
        .complains(&["nothing"]);
}

#[test]
fn a_sweep_runs_all_combinations_and_goes_on() {
    let place = Place::with(super::BLAST);
    let sweep = |more: &[&str]| {
        let fixed = [
            "sweep",
            "deck.toml",
            "--output",
            "all",
            "--set",
            "domain.cells=[16,16,16],[8,8,8]",
        ];
        place.nestar(&[&fixed[..], more].concat())
    };
    let steps = ["--set", "time.max_steps=1,2"];
    let first = sweep(&steps);
    first
        .has_status(0)
        .prints(&["all/sweep.csv: 4 runs, 0 failed"]);
    let table = place.read("all/sweep.csv");
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows.len(), 5, "{table}");
    assert!(
        rows[0].starts_with("run,status,domain.cells,time.max_steps,"),
        "{table}"
    );
    assert!(rows[4].contains(",0,\"[8,8,8]\",2,"), "{table}");
    let again = sweep(&steps);
    again.has_status(0).tells(&["there is nothing to do"]);
    assert_eq!(place.read("all/sweep.csv").lines().count(), 5);
    // a run that fails does not end the sweep
    let failed = sweep(&["--set", "hydro.gamma=0.5,1.4", "--set", "time.max_steps=1"]);
    failed
        .has_status(1)
        .prints(&["4 runs, 2 failed"])
        .tells(&["`hydro.gamma`"]);
    for (set, why) in [
        ("time.max_steps", "must be TABLE.KEY"),
        ("time.max_steps=1,,2", "a value is missing"),
    ] {
        sweep(&["--set", set]).has_status(2).complains(&[why]);
    }
}

#[test]
fn completions_and_the_manual_know_all_commands() {
    let place = Place::new();
    for arguments in [
        &["completions", "bash"][..],
        &["completions", "zsh"],
        &["man"],
    ] {
        let outcome = place.nestar(arguments);
        outcome
            .has_status(0)
            .prints(&["sweep", "resume", "projection"]);
    }
    place.nestar(&["completions", "ksh"]).has_status(2);
}
