//! The command line from outside: exit statuses, messages, files.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A small adaptive blast wave: 2 levels, 12 root steps.
const BLAST: &str = r#"
scenario = "formula"

[initial]
density  = "1"
pressure = "if(r < 0.2, 10, 0.1)"

[domain]
cells      = [16, 16, 16]
left_edge  = [-0.5, -0.5, -0.5]
right_edge = [0.5, 0.5, 0.5]

[time]
end       = 1.0
max_steps = 12

[mesh]
max_level       = 1
regrid_interval = 2
[[mesh.refine]]
criterion = "gradient"
field     = "pressure"
threshold = 0.3

[output]
directory = "run"
"#;

/// A directory of a test's own, removed at its end, in which the program runs.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nestar-cli-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    /// A place with the deck `deck.toml`.
    fn with(deck: &str) -> Self {
        let place = Self::new();
        place.write("deck.toml", deck);
        place
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a file in the temporary directory");
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nestar"));
        command.current_dir(&self.0).args(arguments);
        command
    }

    /// Runs the program to its end.
    fn nestar(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(
            self.command(arguments)
                .output()
                .expect("the program starts"),
        )
    }

    /// The digest of the latest snapshot of a run.
    fn digest(&self, run: &str) -> String {
        let outcome = self.nestar(&["digest", run]);
        outcome.has_status(0);
        let digest = outcome.out.split_whitespace().next().unwrap_or_default();
        assert_eq!(digest.len(), 64, "{}", outcome.out);
        digest.to_string()
    }

    /// Names of the snapshots of a run, half-written ones included.
    fn snapshots(&self, run: &str) -> Vec<String> {
        let folder = self.0.join(run).join("snapshots");
        let entries = std::fs::read_dir(&folder).expect("the run has snapshots");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into()
            })
            .collect();
        names.sort();
        names
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a finished program said.
struct Outcome {
    status: Option<i32>,
    out: String,
    err: String,
}

impl Outcome {
    fn of(output: Output) -> Self {
        Self {
            status: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into(),
            err: String::from_utf8_lossy(&output.stderr).into(),
        }
    }

    #[track_caller]
    fn has_status(&self, status: i32) -> &Self {
        assert_eq!(self.status, Some(status), "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    fn complains(&self, texts: &[&str]) -> &Self {
        let is_error = |line: &str| line.starts_with("error: ");
        assert_eq!(
            self.err.lines().filter(|l| is_error(l)).count(),
            1,
            "{}",
            self.err
        );
        self.tells(texts)
    }

    #[track_caller]
    fn tells(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(self.err.contains(text), "no {text:?} in\n{}", self.err);
        }
        self
    }
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

#[test]
fn a_run_leaves_its_files_and_says_what_it_did() {
    let place = Place::with(BLAST);
    let outcome = place.nestar(&["run", "deck.toml"]);
    outcome.has_status(0).tells(&[
        "nestar 0.",
        "deck deck.toml",
        "device: CPU",
        "precision: double",
        "320.0 KiB for the fields of the root grid (8 patches)",
        "done: step 12",
    ]);
    assert_eq!(place.snapshots("run"), ["000000.zarr", "000001.zarr"]);
    let log = place.read("run/run.log");
    let steps: Vec<&str> = log.lines().filter(|l| l.starts_with("step ")).collect();
    assert_eq!(steps.len(), 12, "{log}");
    assert!(
        steps[0].contains("(courant)") && steps[0].contains("patches 8 "),
        "{log}"
    );
    assert!(log.contains("done: step 12"), "{log}");
    // a header and one row per root step
    assert_eq!(place.read("run/diagnostics.csv").lines().count(), 13);
    assert!(place.read("run/run.toml").contains("max_steps = 12"));
}

#[test]
fn a_quiet_run_says_nothing_and_logs_where_it_is_told() {
    let place = Place::with(BLAST);
    let arguments = [
        "run",
        "deck.toml",
        "--quiet",
        "--log",
        "here.log",
        "--output",
        "there",
    ];
    let outcome = place.nestar(&arguments);
    outcome.has_status(0);
    assert_eq!((&*outcome.out, &*outcome.err), ("", ""));
    assert!(place.read("here.log").contains("step 12 "));
    assert!(place.0.join("there/snapshots").is_dir());
    assert!(!place.0.join("there/run.log").exists() && !place.0.join("run").exists());
}

#[test]
fn a_second_run_moves_the_first_one_aside() {
    let place = Place::with(BLAST);
    place
        .nestar(&["run", "deck.toml", "--set", "time.max_steps=1"])
        .has_status(0);
    let second = place.nestar(&["run", "deck.toml", "--set", "time.max_steps=2"]);
    second
        .has_status(0)
        .tells(&["an earlier run was moved to run.1"]);
    assert!(place.read("run.1/run.toml").contains("max_steps = 1"));
    assert!(place.read("run/run.toml").contains("max_steps = 2"));
    assert!(!place.read("run/run.log").contains("done: step 1,"));
}

#[test]
fn one_digest_for_any_number_of_threads() {
    let place = Place::with(BLAST);
    for threads in ["1", "2"] {
        let arguments = [
            "run",
            "deck.toml",
            "--threads",
            threads,
            "--output",
            threads,
            "--audit",
        ];
        let outcome = place.nestar(&arguments);
        outcome
            .has_status(0)
            .tells(&[&format!("threads: {threads},")]);
    }
    assert_eq!(place.digest("1"), place.digest("2"));
}

#[test]
fn resuming_where_nothing_is_starts_from_the_beginning_and_says_so() {
    let place = Place::with(BLAST);
    let outcome = place.nestar(&["run", "deck.toml", "--resume", "--set", "time.max_steps=1"]);
    outcome
        .has_status(0)
        .tells(&["no snapshot in run: starts from the beginning"]);
}

/// Waits until `done`, or panics after a time that no machine needs.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "waited too long for {what}"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(unix)]
fn terminate(child: &Child) {
    let id = child.id().to_string();
    let status = Command::new("kill").args(["-TERM", &id]).status();
    assert!(status.expect("kill is there").success());
}

#[cfg(unix)]
#[test]
fn a_terminated_run_is_resumed_to_the_digest_of_an_uninterrupted_one() {
    let place = Place::with(BLAST);
    let more = ["--set", "time.max_steps=60"];
    let run =
        |output: &'static str| [&["run", "deck.toml", "--output", output][..], &more].concat();
    place.nestar(&run("whole")).has_status(0);
    let mut command = place.command(&run("cut"));
    let child = command
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let diagnostics = place.0.join("cut/diagnostics.csv");
    let rows = || std::fs::read_to_string(&diagnostics).map_or(0, |text| text.lines().count());
    wait_until("three root steps", || rows() > 3);
    terminate(&child);
    let outcome = Outcome::of(child.wait_with_output().expect("the program ends"));
    let command = "nestar run deck.toml --output cut --set time.max_steps=60 --resume";
    outcome
        .has_status(3)
        .tells(&["interrupted at step", command]);
    assert_eq!(place.snapshots("cut"), ["000000.zarr", "000001.zarr"]);
    place.nestar(&["info", "cut"]).has_status(0);
    let resumed = place.nestar(&[&run("cut")[..], &["--resume", "--threads", "1"]].concat());
    resumed
        .has_status(0)
        .tells(&["continues from cut/snapshots/000001.zarr"]);
    assert_eq!(place.digest("cut"), place.digest("whole"));
    assert_eq!(rows(), 61);
    let log = place.read("cut/run.log");
    assert!(
        log.contains("interrupted at step") && log.contains("done: step 60"),
        "{log}"
    );
}

#[test]
fn a_misspelt_key_is_refused_with_its_line_and_the_nearest_name() {
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
fn all_mistakes_of_a_deck_are_told_at_once() {
    let deck = BLAST
        .replace("end       = 1.0", "end = -1.0")
        .replace("[output]", "[hydra]\ngamma = 2\n\n[output]")
        .replace("\"formula\"", "\"sedof\"");
    let place = Place::with(&deck);
    for command in ["run", "check", "order"] {
        let outcome = place.nestar(&[command, "deck.toml", "--set", "hydro.gamma=0.5"]);
        outcome.has_status(2).complains(&[
            "deck.toml:14:7: `time.end` must be at least 0 (time), found -1.0",
            "unknown table [hydra]; did you mean `hydro`?",
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
fn a_table_of_a_face_without_inflow_is_refused() {
    let deck = format!("{BLAST}\n[inflow.y_upper]\ndensity = \"1\"\npressure = \"1\"\n");
    let outcome = Place::with(&deck).nestar(&["check", "deck.toml"]);
    outcome
        .has_status(2)
        .complains(&["the face y_upper is no inflow face"]);
    let faces = "domain.boundary = { x = \"inflow\", y = \"periodic\", z = \"periodic\" }";
    let outcome = Place::with(BLAST).nestar(&["check", "deck.toml", "--set", faces]);
    outcome
        .has_status(2)
        .complains(&["[inflow.x_lower] is missing", "[inflow.x_upper] is missing"]);
}

#[test]
fn what_the_arguments_get_wrong_is_told_with_status_2() {
    let place = Place::with(BLAST);
    let cases: [(&[&str], &str); 7] = [
        (
            &["run", "dekc.toml"],
            "there is no such file; did you mean deck.toml?",
        ),
        (&["run", "."], "is a directory"),
        (&["run", "deck.toml", "--set", "time.end"], "--set time.end"),
        (&["run", "deck.toml", "--device", "cuda"], "run.device"),
        (&["run", "deck.toml", "--threads", "-1"], "--threads"),
        (&["run"], "<DECK>"),
        (&["rum", "deck.toml"], "run"),
    ];
    for (arguments, text) in cases {
        place.nestar(arguments).has_status(2).complains(&[text]);
    }
}

#[test]
fn a_formula_that_yields_nan_ends_the_run_with_its_place() {
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
fn what_is_no_snapshot_is_refused() {
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
fn a_damaged_snapshot_is_told_with_status_1() {
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
fn pictures_are_drawn_and_wrong_options_refused() {
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
        ("--axis w", "it is x, y or z"),
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

#[test]
fn the_schema_is_json_and_knows_all_tables() {
    let outcome = Place::new().nestar(&["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&outcome.out).expect("JSON");
    for key in ["scenario", "domain", "mesh", "hydro", "initial", "sedov"] {
        assert!(schema["properties"][key].is_object(), "{key}");
    }
    let inflow = &schema["properties"]["inflow"]["properties"];
    assert!(inflow["z_upper"]["properties"]["density"].is_object());
}

#[test]
fn a_checked_deck_is_a_deck_again() {
    let place = Place::with(BLAST);
    let first = place.nestar(&["check", "deck.toml"]);
    first.has_status(0);
    for text in [
        "# initial hierarchy: 40.0 KiB a patch",
        "#     0         8         4096   320.0 KiB",
        "#   3 Fluid",
    ] {
        assert!(first.out.contains(text), "no {text:?} in\n{}", first.out);
    }
    assert!(!place.0.join("run").exists());
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
    let expected = "Advance\n  1 Exchange\n  2 Predict\n  3 Fluid\n      fluid\n  4 Deposit  (if step_stands)\n";
    assert!(order.out.contains(expected), "{}", order.out);
    assert!(
        order.out.contains("  1 Restrict\n      restrict<Gas>\n"),
        "{}",
        order.out
    );
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
        // order reads and assembles all of the deck; check would build its hierarchy besides
        let outcome = place.nestar(&["order", &deck.to_string_lossy()]);
        assert_eq!(
            outcome.status,
            Some(0),
            "{}: {}",
            deck.display(),
            outcome.err
        );
        count += 1;
    }
    assert!(count > 0);
}
