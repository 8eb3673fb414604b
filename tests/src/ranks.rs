//! One simulation over several ranks, which are threads of the test.

use crate::decks::{BLAST, Deck, deck};
use crate::runs::quietly_into;
use crate::{State, Stepper};
use nestar::Simulation;
use nestar::engine::Error;
use nestar::engine::comm::{Ranks, ThreadRank};
use nestar::engine::run::{RunOptions, RunSummary};
use std::path::Path;

/// Ends the other ranks when the one that holds it panics.
struct Guard(Ranks);

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.communicator().abort("a rank of the test panicked");
        }
    }
}

/// Builds the initial state of a deck on `size` ranks and calls `work` on each; returns the results by rank.
///
/// # Panics
/// If the deck is wrong, or `work` panics on any rank.
pub fn on_ranks<T: Send>(
    size: usize,
    text: &str,
    settings: &[&str],
    work: impl Fn(&mut Stepper) -> T + Sync,
) -> Vec<T> {
    let build = |ranks: Ranks| Simulation::with_ranks(deck(text, settings), ranks);
    on_ranks_of(size, build, work)
}

/// As [`on_ranks`], for simulations made by `build`.
///
/// # Panics
/// If `build` fails or `work` panics on any rank.
pub fn on_ranks_of<T: Send>(
    size: usize,
    build: impl Fn(Ranks) -> Result<Simulation, Error> + Sync,
    work: impl Fn(&mut Stepper) -> T + Sync,
) -> Vec<T> {
    std::thread::scope(|scope| {
        let start = |threads: ThreadRank| {
            let (build, work) = (&build, &work);
            scope.spawn(move || {
                let ranks = Ranks::new(threads);
                let _guard = Guard(ranks.clone());
                let mut stepper = Stepper::of(build(ranks).unwrap_or_else(|e| panic!("{e}")));
                work(&mut stepper)
            })
        };
        let started: Vec<_> = ThreadRank::connect(size).into_iter().map(start).collect();
        let ended = started.into_iter().map(|thread| thread.join());
        ended
            .map(|result| result.expect("no rank panics"))
            .collect()
    })
}

/// Runs a deck on one rank per element of `options`; returns the results by rank.
///
/// # Panics
/// If the deck is wrong, or a rank panics.
pub fn run_on_ranks(
    text: &str,
    settings: &[&str],
    options: Vec<RunOptions>,
) -> Vec<Result<RunSummary, Error>> {
    run_decks_on_ranks(|_| deck(text, settings), options)
}

/// As [`run_on_ranks`], with a deck for each rank.
///
/// # Panics
/// If a deck is wrong, or a rank panics.
pub fn run_decks_on_ranks(
    deck_of: impl Fn(usize) -> Deck + Sync,
    options: Vec<RunOptions>,
) -> Vec<Result<RunSummary, Error>> {
    run_on_ranks_of(
        |ranks| Simulation::with_ranks(deck_of(ranks.rank()), ranks),
        options,
    )
}

/// As [`run_on_ranks`], for simulations made by `build`.
///
/// # Panics
/// If `build` fails, or a rank panics.
pub fn run_on_ranks_of(
    build: impl Fn(Ranks) -> Result<Simulation, Error> + Sync,
    options: Vec<RunOptions>,
) -> Vec<Result<RunSummary, Error>> {
    std::thread::scope(|scope| {
        let connected = ThreadRank::connect(options.len()).into_iter();
        let build = &build;
        let start = |(threads, options): (ThreadRank, RunOptions)| {
            scope.spawn(move || {
                let ranks = Ranks::new(threads);
                let _guard = Guard(ranks.clone());
                let sim = build(ranks.clone());
                let result = sim.unwrap_or_else(|e| panic!("{e}")).run_with(options);
                if let Err(error) = &result {
                    ranks.communicator().abort(&error.to_string());
                }
                result
            })
        };
        let started: Vec<_> = connected.zip(options).map(start).collect();
        let ended = started.into_iter().map(|thread| thread.join());
        ended
            .map(|result| result.expect("no rank panics"))
            .collect()
    })
}

/// Runs [`BLAST`] with `settings` into `directory` on `ranks` ranks, with a snapshot at the end; `add` adds plugins.
///
/// # Errors
/// As the engine's run.
///
/// # Panics
/// If the deck is wrong, or a rank panics.
pub fn run_with(
    directory: &Path,
    resume: bool,
    ranks: usize,
    settings: &[&str],
    add: impl Fn(Simulation) -> Result<Simulation, Error> + Sync,
) -> Result<RunSummary, Error> {
    let settings = [&["output.final=true"], settings].concat();
    let build = |ranks: Ranks| add(Simulation::with_ranks(deck(BLAST, &settings), ranks)?);
    let options = (0..ranks).map(|_| quietly_into(directory, resume));
    let mut results = run_on_ranks_of(build, options.collect());
    results.swap_remove(0)
}

/// The state of all ranks together.
///
/// # Panics
/// If a patch is on two ranks, or the ranks' clocks differ.
#[must_use]
pub fn joined(states: Vec<State>) -> State {
    let mut states = states.into_iter();
    let mut all = states.next().expect("there is a rank");
    for state in states {
        assert_eq!(all.clocks, state.clocks);
        all.components = all.components.max(state.components);
        for (level, patches) in all.levels.iter_mut().zip(state.levels) {
            for (index, patch) in patches {
                let twin = level.insert(index, patch);
                assert!(twin.is_none(), "the patch {index:?} is on two ranks");
            }
        }
    }
    all
}
