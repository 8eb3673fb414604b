//! Tests of errors and their messages.

use crate::{BLAST, Place, SPECIES};

#[test]
fn a_misspelt_key_is_an_error_with_its_line_and_the_nearest_name() {
    let place = Place::with(&BLAST.replace("max_steps = 12", "max_step = 0\nmax_stepps = 12"));
    let outcome = place.nestar(&["run", "deck.toml"]);
    outcome.has_status(2).complains(&[
        "deck.toml:16:1:",
        "unknown key `max_stepps` in [time]; did you mean `max_steps`?",
        " 16 | max_stepps = 12",
    ]);
    assert!(!place.0.join("run").exists());
}

#[test]
fn all_errors_of_a_deck_are_reported_at_once() {
    let deck = BLAST
        .replace("end       = 1.0", "end = -1.0")
        .replace("[output]", "[hydra]\ngamma = 2\n\n[output]")
        .replace("\"formula\"", "\"sedof\"");
    let place = Place::with(&deck);
    for command in ["run", "check", "order"] {
        let outcome = place.nestar(&[command, "deck.toml", "--set", "hydro.gamma=0.5"]);
        outcome.has_status(2).complains(&[
            "deck.toml:14:7: `time.end` must be at least 0 (time), found -1.0",
            "unknown table [hydra]: no plugin of this program uses it; did you mean `hydro`?",
            "--set hydro.gamma=0.5: `hydro.gamma` must be above 1 and at most 3, found 0.5",
            "\"sedof\"",
            "did you mean \"sedov\"?",
        ]);
        assert!(
            !outcome.err.contains("unknown table [initial]"),
            "{}",
            outcome.err
        );
    }
}

#[test]
fn a_table_of_a_face_without_inflow_is_an_error() {
    let deck = format!("{BLAST}\n[inflow.y_upper]\ndensity = \"1\"\npressure = \"1\"\n");
    let outcome = Place::with(&deck).nestar(&["check", "deck.toml"]);
    outcome
        .has_status(2)
        .complains(&["the face y_upper is not an inflow face"]);
    let faces = "domain.boundary = { x = \"inflow\", y = \"periodic\", z = \"periodic\" }";
    let outcome = Place::with(BLAST).nestar(&["check", "deck.toml", "--set", faces]);
    outcome
        .has_status(2)
        .complains(&["[inflow.x_lower] is missing", "[inflow.x_upper] is missing"]);
}

#[test]
fn invalid_arguments_are_errors_with_status_2() {
    let place = Place::with(BLAST);
    let cases: [(&[&str], &str); 7] = [
        (
            &["run", "dekc.toml"],
            "no such file; did you mean deck.toml?",
        ),
        (&["run", "."], "is a directory"),
        (&["run", "deck.toml", "--set", "time.end"], "--set time.end"),
        (&["run", "deck.toml", "--device", "gpu"], "run.device"),
        (&["run", "deck.toml", "--threads", "-1"], "--threads"),
        (&["run"], "<DECK>"),
        (&["rum", "deck.toml"], "run"),
    ];
    for (arguments, text) in cases {
        place.nestar(arguments).has_status(2).complains(&[text]);
    }
}

#[test]
fn a_formula_that_yields_nan_ends_the_run_with_its_position() {
    let place = Place::with(&BLAST.replace("if(r < 0.2, 10, 0.1)", "sqrt(x)"));
    for command in ["run", "check"] {
        let outcome = place.nestar(&[command, "deck.toml"]);
        outcome
            .has_status(2)
            .complains(&["unphysical at (x, y, z) = [-0.", "pressure NaN"]);
    }
    assert!(!place.0.join("run/snapshots").exists());
}

#[test]
fn a_path_without_a_snapshot_is_an_error() {
    let place = Place::new();
    std::fs::create_dir_all(place.0.join("foreign.zarr")).expect("a directory");
    place.write(
        "foreign.zarr/zarr.json",
        r#"{"zarr_format":3,"node_type":"group","attributes":{}}"#,
    );
    std::fs::create_dir_all(place.0.join("empty/snapshots")).expect("a directory");
    for command in ["info", "digest", "plot"] {
        let cases = [
            ("foreign.zarr", "is not a Nestar snapshot"),
            ("nowhere", "there is nothing with this name"),
            ("empty", "no complete snapshot yet"),
        ];
        for (path, text) in cases {
            place
                .nestar(&[command, path])
                .has_status(2)
                .complains(&[text, path]);
        }
    }
}

#[test]
fn a_damaged_snapshot_is_an_error_with_status_1() {
    let place = Place::with(BLAST);
    place
        .nestar(&["run", "deck.toml", "--set", "time.max_steps=1"])
        .has_status(0);
    place.write(
        "run/snapshots/000001.zarr/zarr.json",
        "{\"zarr_format\": 3,",
    );
    place
        .nestar(&["info", "run"])
        .has_status(1)
        .complains(&["is damaged"]);
    let resumed = place.nestar(&["run", "deck.toml", "--resume"]);
    resumed.has_status(1).complains(&["is damaged"]);
}

#[test]
fn a_store_is_verified_byte_by_byte() {
    let place = Place::with(BLAST);
    place
        .nestar(&["run", "deck.toml", "--set", "time.max_steps=1"])
        .has_status(0);
    let whole = place.nestar(&["verify", "run"]);
    whole.has_status(0);
    assert_eq!(whole.out.matches("intact").count(), 2, "{}", whole.out);
    let file = "run/snapshots/000001.zarr/level_0/density/zarr.json";
    let text = place.read(file);
    place.write(file, &text.replacen("float64", "float32", 1));
    place
        .nestar(&["verify", "run"])
        .has_status(1)
        .complains(&[file, "checksum"]);
    place
        .nestar(&["verify", "run/snapshots/000000.zarr"])
        .has_status(0);
    place.write(file, &text);
    let file = "run/snapshots/000001.zarr/zarr.json";
    let text = place.read(file);
    place.write(file, &text.replacen("\"step\":1", "\"step\":9", 1));
    for command in ["info", "digest", "verify"] {
        place
            .nestar(&[command, "run"])
            .has_status(1)
            .complains(&["zarr.json", "checksum"]);
    }
    let resumed = place.nestar(&["run", "deck.toml", "--resume"]);
    resumed.has_status(1).complains(&["zarr.json", "checksum"]);
}

#[test]
fn a_root_grid_larger_than_memory_is_an_error_before_allocation() {
    let place = Place::with(BLAST);
    let scalars: Vec<String> = (0..59).map(|n| format!("\"s{n}\"")).collect();
    let scalars = format!("hydro.scalars=[{}]", scalars.join(","));
    let cells = "domain.cells=[4096, 4096, 2048]";
    let changes = ["deck.toml", "--set", cells, "--set", &scalars];
    let run = place.nestar(&[&["run"][..], &changes].concat());
    run.has_status(4).complains(&[
        "the fields need 32.",
        "TiB, this machine has",
        "fewer domain.cells",
    ]);
    let check = place.nestar(&[&["check"][..], &changes].concat());
    check.has_status(0);
    assert!(
        check
            .out
            .contains("# a run would not start (no level fits): too little memory"),
        "{}",
        check.out
    );
}

#[test]
fn particles_larger_than_memory_are_an_error_before_allocation() {
    let place = Place::with(&format!("{BLAST}{SPECIES}"));
    let check = place.nestar(&["check", "deck.toml"]);
    check.has_status(0).prints(&[
        "# memory of particles/dark: ",
        " for at most 512 particles",
        " for at most 64 particles",
        "# memory of fields, tables and particles: ",
    ]);
    assert!(!check.out.contains("would not start"), "{}", check.out);
    let run = ["run", "deck.toml", "--set", "time.max_steps=1"];
    let begun = place.nestar(&run);
    begun.has_status(0).tells(&["memory of particles/dark: "]);
    let points = "particles.species.dark.initial.points=[4096, 4096, 4096]";
    // the number of particles is that of the snapshot
    let later = ["deck.toml", "--set", points, "--set", "time.max_steps=2"];
    let resumed = place.nestar(&[&["run", "--resume"][..], &later].concat());
    resumed.has_status(0).tells(&[" for at most 512 particles"]);
    let later = ["deck.toml", "--set", points, "--set", "time.max_steps=3"];
    let from = place.nestar(&[&["run", "--from", "run", "--output", "other"][..], &later].concat());
    from.has_status(0).tells(&[" for at most 512 particles"]);
    let many = ["deck.toml", "--set", points, "--set", "time.max_steps=1"];
    let check = place.nestar(&[&["check"][..], &many].concat());
    let text = "# a run would not start (no level fits): too little memory";
    check
        .has_status(0)
        .prints(&[text, "the fields and particles need"]);
    let run = [&["run", "--output", "many"][..], &many].concat();
    let text = [
        "the fields and particles need",
        "TiB of it for particles), this machine has",
    ];
    place.nestar(&run).has_status(4).complains(&text);
    let limited = [&run[..], &["--set", "run.memory_limit=100"]].concat();
    let text = ["the fields and particles need", "run.memory_limit allows"];
    place.nestar(&limited).has_status(4).complains(&text);
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_continues_without_a_log_that_cannot_be_written() {
    let place = Place::with(BLAST);
    let outcome = place.nestar(&["run", "deck.toml", "--log", "/dev/full"]);
    outcome
        .has_status(0)
        .tells(&["warning: cannot write the log /dev/full", "done: step 12"]);
    assert_eq!(outcome.err.matches("warning").count(), 1, "{}", outcome.err);
}

#[test]
fn a_snapshot_of_another_domain_is_not_continued() {
    let place = Place::with(BLAST);
    place
        .nestar(&["run", "deck.toml", "--set", "time.max_steps=1"])
        .has_status(0);
    let other = [
        "run",
        "deck.toml",
        "--resume",
        "--set",
        "domain.cells=[24, 16, 16]",
    ];
    place
        .nestar(&other)
        .has_status(2)
        .complains(&["000001.zarr"]);
    assert_eq!(place.snapshots("run"), ["000000.zarr", "000001.zarr"]);
}

#[test]
fn a_run_does_not_start_from_a_state_behind_its_end() {
    let place = Place::with(BLAST);
    let four = ["run", "deck.toml", "--set", "time.max_steps=4"];
    place.nestar(&four).has_status(0);
    for (change, told) in [
        ("time.end=1e-9", "`time.end` = 1e-9; set a later end"),
        (
            "time.max_steps=4",
            "is at root step 4, and `time.max_steps` = 4 ends the run",
        ),
    ] {
        let from = [
            "run",
            "deck.toml",
            "--from",
            "run",
            "--output",
            "next",
            "--set",
            change,
        ];
        place.nestar(&from).has_status(2).complains(&[told]);
        assert!(!place.0.join("next/snapshots").exists());
        let resume = ["run", "deck.toml", "--resume", "--set", change];
        let told = ["note: there is nothing to do: the state is at", told];
        place.nestar(&resume).has_status(0).tells(&told);
    }
    assert_eq!(place.snapshots("run"), ["000000.zarr", "000001.zarr"]);
}

#[test]
fn intervals_that_the_time_cannot_resolve_are_refused_by_key() {
    let place = Place::with(&BLAST.replace("max_steps = 12", "max_steps = 0"));
    for (change, told) in [
        (
            "output.interval=1e-20",
            "`output.interval` = 1e-20 is too short to advance the time 1e0",
        ),
        (
            "output.interval=1e-7",
            "asks for 1.0e7 snapshots until `time.end` = 1e0",
        ),
        (
            "time.max_step=1e-17",
            "`time.max_step` = 1e-17 is too short to advance",
        ),
    ] {
        for command in ["run", "check"] {
            let outcome = place.nestar(&[command, "deck.toml", "--set", change]);
            outcome
                .has_status(2)
                .complains(&[&format!("--set {change}: "), told]);
        }
        assert!(!place.0.join("run").exists());
    }
    for changes in [
        &["output.steps=1", "time.max_step=1e-9"][..],
        &["output.interval=1e-9", "time.max_steps=2000000"],
    ] {
        let sets = changes.iter().flat_map(|change| ["--set", change]);
        let arguments: Vec<&str> = ["check", "deck.toml"].into_iter().chain(sets).collect();
        let key = changes[0].split('=').next().unwrap_or_default();
        let told = ["more than 1e6", key];
        place.nestar(&arguments).has_status(2).complains(&told);
    }
    // few steps cannot write many snapshots
    let changes = |steps| ["--set", "output.interval=1e-20", "--set", steps];
    let few = [
        &["run", "deck.toml", "--output", "few"][..],
        &changes("time.max_steps=2"),
    ]
    .concat();
    place.nestar(&few).has_status(0);
    // but a later time may have no such interval
    let late = ["run", "deck.toml", "--set", "time.max_steps=2"];
    place.nestar(&late).has_status(0);
    let resumed = [
        &["run", "deck.toml", "--resume"][..],
        &changes("time.max_steps=4"),
    ]
    .concat();
    let told = ["`output.interval` = 1e-20 is too short to advance the time"];
    place.nestar(&resumed).has_status(2).complains(&told);
}

#[test]
fn a_restart_asks_for_all_changes_in_one_message() {
    let place = Place::with(&BLAST.replace("max_steps = 12", "max_steps = 1"));
    place.nestar(&["run", "deck.toml"]).has_status(0);
    let changes = [
        "hydro.gamma = 1.4 (was 1.66",
        "it lacks `scalar_dye`",
        "24, 16, 16",
    ];
    let other = BLAST.replace(
        "[output]",
        "[hydro]\ngamma = 1.4\nscalars = [\"dye\"]\n[output]",
    );
    place.write("other.toml", &other);
    let cells = ["--set", "domain.cells=[24, 16, 16]"];
    let resume = place.nestar(&[&["run", "other.toml", "--resume"][..], &cells].concat());
    resume.has_status(2).complains(&changes);
}

#[test]
fn a_damaged_array_document_beside_a_sound_root_is_told() {
    let place = Place::with(&BLAST.replace("max_steps = 12", "max_steps = 1"));
    place.nestar(&["run", "deck.toml"]).has_status(0);
    let document = "run/snapshots/000001.zarr/level_0/density/zarr.json";
    let sound = place.read(document);
    place.write(document, &sound.replace("float64", "float32"));
    let resume = ["run", "deck.toml", "--resume", "--set", "time.max_steps=2"];
    for command in [&["digest", "run"][..], &resume] {
        let told = ["level_0/density/zarr.json", "its checksum is not"];
        place.nestar(command).has_status(1).complains(&told);
    }
    place.write(document, &sound);
    place.nestar(&["digest", "run"]).has_status(0);
}
