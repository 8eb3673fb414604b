//! Every shipped deck, at reduced size, against stored totals and digests.

use nestar::Simulation;
use nestar::engine::run::{RunOptions, Silent};
use nestar_deck::Deck;
use nestar_tests::norms::totals;
use nestar_tests::runs::digests;
use nestar_tests::{Scratch, State, golden};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The shipped decks, by name.
pub fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let entries = std::fs::read_dir(folder).expect("the decks are there");
    let mut decks: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .filter(|path| !path.ends_with("Cargo.toml"))
        .collect();
    decks.sort();
    decks
}

fn read(path: &Path, settings: &[String]) -> Simulation {
    let mut deck = Deck::read(path).unwrap_or_else(|e| panic!("{e}"));
    for setting in settings {
        deck.set(setting)
            .unwrap_or_else(|e| panic!("{setting}: {e}"));
    }
    Simulation::new(deck).unwrap_or_else(|e| panic!("{e}"))
}

/// A deck with at most `cells` cells along an axis, two refined levels and three steps.
pub fn reduced(path: &Path, cells: u32) -> Simulation {
    reduced_to(path, cells, 3)
}

fn reduced_to(path: &Path, cells: u32, steps: u64) -> Simulation {
    let mut whole = read(path, &[]);
    let settings = &whole.engine().settings;
    let cells = settings.domain.cells.map(|n| n.min(cells));
    let max_level = settings.mesh.max_level.min(2);
    let settings = [
        format!("domain.cells={cells:?}"),
        format!("mesh.max_level={max_level}"),
        format!("time.max_steps={steps}"),
        "output.initial=false".into(),
        "output.interval=0.0".into(),
        "output.steps=0".into(),
        "run.threads=1".into(),
        "run.audit=true".into(),
    ];
    read(path, &settings)
}

/// Most cells along an axis of the decks that run.
const CELLS: u32 = 16;

/// Runs a reduced deck and returns its patches, conserved totals and digest as text. The run is interrupted after its first step and
/// resumed, except when golden texts are written: so the stored digests also show that no restart changes a bit.
fn line(path: &Path) -> String {
    let scratch = Scratch::new();
    let run = |sim: &mut Simulation, resume: bool| {
        let summary = sim.run_with(RunOptions {
            output: Some(scratch.run()),
            resume,
            stop: Arc::new(AtomicBool::new(false)),
            snapshot: Arc::default(),
            observer: Box::new(Silent),
            build: nestar::App::default().build_info(),
        });
        summary.unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let mut sim = reduced_to(path, CELLS, 2);
    // a deck may end where it begins
    let steps = if sim.engine().settings.time.end > 0.0 {
        2
    } else {
        0
    };
    let interrupted = steps > 0 && !golden::are_written();
    if interrupted {
        assert_eq!(run(&mut reduced_to(path, CELLS, 1), false).step, 1);
    }
    let summary = run(&mut sim, interrupted);
    assert_eq!(summary.step, steps, "{}", path.display());
    let state = sim.with(|s| State::of(s));
    state
        .physical()
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let totals: Vec<String> = sim
        .with(|s| totals(s))
        .iter()
        .map(|t| format!("{t:.12e}"))
        .collect();
    let name = path
        .file_name()
        .expect("a deck has a name")
        .to_string_lossy();
    let digest = digests(&scratch.run())
        .pop()
        .expect("the final state is written")
        .1;
    format!(
        "{name}\n  patches {:?}\n  totals {}\n  digest {digest}\n",
        state.counts(),
        totals.join(" ")
    )
}

#[test]
fn every_shipped_deck_gives_the_stored_totals_and_digest_after_a_restart() {
    let decks = shipped();
    assert!(decks.len() >= 12, "the decks are found: {decks:?}");
    let found: String = decks.iter().map(|path| line(path)).collect();
    golden::compare("decks.txt", &found);
}
