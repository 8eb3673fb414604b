//! Tests of resumed runs on several processes: they have the digest of one rank, also after failures.

use crate::Case;
use crate::launcher::{Job, Launcher};
use crate::place::{PROGRAM, Place};
use std::process::Command;
use std::time::{Duration, Instant};

/// Deck of a blast wave with two adaptive levels.
const BLAST: &str = r#"
scenario = "formula"

[initial]
density    = "1 + 0.2*sin(2*pi*x)*cos(2*pi*y)"
pressure   = "if((x-0.4)^2 + (y-0.55)^2 + (z-0.47)^2 < 0.0121, 10, 0.1)"
velocity_x = "0.3"

[domain]
cells = [16, 16, 16]

[time]
end       = 1.0
max_steps = 12

[mesh]
max_level       = 2
regrid_interval = 2
[[mesh.refine]]
criterion = "gradient"
field     = "pressure"
threshold = 0.4

[output]
directory = "run"
steps     = 1

[run]
threads = 1
device  = "cpu"
"#;

/// Decks with gas, gravity and particles on three levels; with tracers; with species out of equilibrium.
const DECKS: [(&str, &str); 3] = [
    (
        "cluster-merger",
        include_str!("../../../../scenarios/cluster-merger.toml"),
    ),
    (
        "tracers",
        include_str!("../../../../scenarios/tracers.toml"),
    ),
    (
        "primordial-cooling",
        include_str!("../../../../scenarios/primordial-cooling.toml"),
    ),
];

/// The tests.
pub fn cases() -> Vec<Case> {
    let case = |name: &str, work: fn(&Launcher)| Case::new(format!("directory::{name}"), work);
    vec![
        case("one_digest_for_any_number_of_ranks", digests),
        case("a_run_is_resumed_on_another_number_of_ranks", resumed),
        case("particles_tracers_and_species_are_resumed", resumed_decks),
        case("a_signal_to_one_rank_stops_all", signalled),
        case("a_terminated_job_is_resumed", terminated),
        case("a_killed_rank_ends_the_job_which_is_resumed", killed),
        case("a_rank_that_cannot_write_ends_all", spoiled),
    ]
}

/// Returns the arguments of a run of `steps` steps.
fn run<'a>(directory: &'a str, steps: &'a str) -> Vec<&'a str> {
    let fixed = ["run", "deck.toml", "--quiet", "--output", directory];
    [&fixed[..], &["--set", steps]].concat()
}

const SHORT: &str = "time.max_steps=3";

/// Resumes the run `cut` on `ranks` ranks for two more steps, and checks that its digest is that of an uninterrupted run on
/// one rank.
fn resume(launcher: &Launcher, place: &Place, ranks: usize) {
    let steps = place.steps("cut") + 2;
    let most = format!("time.max_steps={steps}");
    let arguments = [&run("cut", &most)[..], &["--resume"]].concat();
    let outcome = launcher.run(&place.0, ranks, PROGRAM, &arguments);
    outcome.has_status(0);
    assert_eq!(place.steps("cut"), steps);
    let (all, whole) = (place.names("cut"), place.snapshots("cut"));
    assert_eq!(all, whole, "nothing half written");
    let only_the_last = ["--set", "output.steps=0", "--set", "output.initial=false"];
    let arguments = [&run("whole", &most)[..], &only_the_last].concat();
    launcher.run(&place.0, 1, PROGRAM, &arguments).has_status(0);
    assert_eq!(place.digest("cut"), place.digest("whole"));
}

fn digests(launcher: &Launcher) {
    let place = Place::new("digests", BLAST);
    let digest = |ranks: usize| {
        let name = ranks.to_string();
        let outcome = launcher.run(&place.0, ranks, PROGRAM, &run(&name, SHORT));
        outcome.has_status(0);
        assert_eq!(place.snapshots(&name).len(), 4);
        place.digest(&name)
    };
    let alone = digest(1);
    for ranks in [2, 3, 4, 7, 8] {
        assert_eq!(digest(ranks), alone, "{ranks} ranks");
    }
}

fn resumed(launcher: &Launcher) {
    let place = Place::new("resumed", BLAST);
    let outcome = launcher.run(&place.0, 3, PROGRAM, &run("cut", SHORT));
    outcome.has_status(0);
    resume(launcher, &place, 4);
}

fn resumed_decks(launcher: &Launcher) {
    for (name, deck) in DECKS {
        let place = Place::new(name, deck);
        let first = run("cut", "time.max_steps=1");
        launcher.run(&place.0, 3, PROGRAM, &first).has_status(0);
        resume(launcher, &place, 2);
    }
}

/// Starts ranks that write their process ids, and waits for some root steps.
fn under_way(launcher: &Launcher, place: &Place, ranks: usize) -> Job {
    let words = run("cut", "time.max_steps=100000").join(" ");
    // variables of MPICH and Open MPI
    let rank = "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}";
    let script = format!("echo $$ > process.{rank}; exec {PROGRAM} {words}");
    let ranks = ranks.to_string();
    let job = launcher.begin(&place.0, &["-n", &ranks, "sh", "-c", &script]);
    place.wait_for_steps("cut", 3);
    job
}

/// Sends a signal to a process.
fn send(signal: &str, process: &str) {
    let status = Command::new("kill").args([signal, process.trim()]).status();
    assert!(status.expect("kill is there").success());
}

/// Sends a signal to a rank.
fn send_to_rank(signal: &str, place: &Place, rank: usize) {
    let process = std::fs::read_to_string(place.0.join(format!("process.{rank}")));
    send(signal, &process.expect("the rank has noted it"));
}

fn signalled(launcher: &Launcher) {
    for (signal, rank) in [("-USR1", 2), ("-TERM", 0)] {
        let place = Place::new("signalled", BLAST);
        let job = under_way(launcher, &place, 3);
        send_to_rank(signal, &place, rank);
        job.end().has_status(3);
        let steps = place.steps("cut");
        assert_eq!(place.snapshots("cut").len(), steps + 1, "{signal}");
        if rank == 2 {
            resume(launcher, &place, 2);
        }
    }
}

/// Launchers differ in their reaction to SIGTERM, but the run can always be resumed.
fn terminated(launcher: &Launcher) {
    let place = Place::new("terminated", BLAST);
    let job = under_way(launcher, &place, 3);
    send("-TERM", &job.process());
    let outcome = job.end();
    assert_ne!(outcome.status, Some(0), "{}", outcome.err);
    assert!(!place.snapshots("cut").is_empty());
    resume(launcher, &place, 3);
}

fn killed(launcher: &Launcher) {
    let place = Place::new("killed", BLAST);
    let job = under_way(launcher, &place, 3);
    let start = Instant::now();
    send_to_rank("-KILL", &place, 1);
    let outcome = job.end();
    assert_ne!(outcome.status, Some(0), "{}", outcome.err);
    assert!(start.elapsed() < Duration::from_secs(30), "{}", outcome.err);
    assert!(
        !place.digest("cut").is_empty(),
        "what has its name is whole"
    );
    resume(launcher, &place, 2);
}

/// A level of two shards, the second of which is written by the middle rank. Its link to the run directory is redirected
/// after a step, as if its disk were full.
fn spoiled(launcher: &Launcher) {
    let place = Place::new("spoiled", BLAST);
    let link = place.0.join("link");
    let lead = |name: &str| {
        let target = place.0.join(name);
        std::fs::create_dir_all(&target).expect("can be made");
        // the file does not exist at first
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(target, &link).expect("can be linked");
    };
    lead("cut");
    let large = ["mesh.max_level=0", "domain.cells=[104, 80, 80]"];
    let large = large.into_iter().flat_map(|change| ["--set", change]);
    let rank = |output| {
        let run = run(output, "time.max_steps=100000");
        ["-n", "1", PROGRAM]
            .into_iter()
            .chain(run)
            .chain(large.clone())
    };
    let ranks = ["cut", "link", "cut"].map(|output| rank(output).collect::<Vec<_>>());
    let job = launcher.begin(&place.0, &ranks.join(&":"));
    place.wait_for_steps("cut", 1);
    // snapshots are written asynchronously: the first may take longer than a step
    place.wait_for_snapshot("cut");
    lead("elsewhere");
    let start = Instant::now();
    let outcome = job.end();
    outcome
        .has_status(1)
        .complains(&["error: rank 1 failed: cannot ", "link", ".zarr.partial"]);
    assert!(start.elapsed() < Duration::from_secs(60), "{}", outcome.err);
    assert!(
        !place.digest("cut").is_empty(),
        "what has its name is whole"
    );
    assert_eq!(
        place.names("cut"),
        place.snapshots("cut"),
        "nothing half written"
    );
}
