//! Tests of programs with physics of their own.

use crate::app::App;
use crate::scratch::Scratch;
use nestar_deck::Deck;
use nestar_engine::Error;
use nestar_engine::comm::{Ranks, ThreadRank};
use nestar_engine::device::{Device, DeviceKind};
use nestar_engine::run::{RunOptions, Silent};
use nestar_snapshot::{Snapshot, SnapshotError, digest, latest};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs `deck` with `settings` (`table.key=value`) for some root steps: on the CPU with one rank; with four; and with a restart after the
/// first step, where there is a C++ compiler on emulated devices, which compute as GPUs do: from two ranks without a queue of unfinished cells
/// to one with two threads. All must end with the same bits in everything that a snapshot keeps. In both precisions, unless a setting
/// names `run.precision`.
///
/// # Errors
/// The deck or a run fails; two of the runs differ, by name.
pub fn same_bits(app: &App, deck: &str, settings: &[&str], steps: u64) -> Result<(), Error> {
    let mut precisions = vec!["run.precision=single", "run.precision=double"];
    if let Some(own) = settings.iter().find(|s| s.starts_with("run.precision=")) {
        precisions = vec![*own];
    }
    let (device, restart) = match Device::open(DeviceKind::Emulated) {
        Ok(_) => ("emulated", "a restart from two emulated devices on one"),
        Err(_) => ("cpu", "a restart from two ranks on one"),
    };
    let parts = [
        (device, 2, 1, "run.queue=false"),
        (device, 1, steps, "run.threads=2"),
    ];
    for precision in precisions {
        let settings = [settings, &[precision]].concat();
        let end = |parts: &[Part]| end(app, deck, &settings, parts);
        let alone = end(&[("cpu", 1, steps, ONE)])?;
        let others = [
            ("four ranks", end(&[("cpu", 4, steps, ONE)])?),
            (restart, end(&parts)?),
        ];
        if let Some((place, _)) = others.iter().find(|(_, found)| *found != alone) {
            return Err(Error::Setup(format!(
                "{precision}: one rank on the CPU and {place} end with other bits; what is computed must not depend on the order of \
                 patches, on what other ranks hold, or on state that is in no field and no `sim.state`"
            )));
        }
    }
    Ok(())
}

/// A part of a run: device, ranks, the root step that it ends at, and a setting.
type Part<'a> = (&'a str, usize, u64, &'a str);

/// One thread a rank, as all have where nothing else is set.
const ONE: &str = "run.threads=1";

/// The digest after a run in parts.
fn end(app: &App, deck: &str, settings: &[&str], parts: &[Part]) -> Result<String, Error> {
    let scratch = Scratch::new()?;
    for (n, (device, ranks, step, more)) in parts.iter().enumerate() {
        let mut deck = Deck::parse("deck", deck)?;
        let own = [
            format!("run.device={device}"),
            ONE.into(),
            format!("time.max_steps={step}"),
            "output.final=true".into(),
            more.to_string(),
        ];
        let settings = settings.iter().copied();
        for setting in settings.chain(own.iter().map(String::as_str)) {
            deck.set(setting)?;
        }
        run(app, &deck, *ranks, scratch.path(), n > 0)?;
    }
    let unread = |error: SnapshotError| Error::Snapshot(error.to_string());
    let found = latest(scratch.path()).map_err(unread)?;
    let (_, path) = found.ok_or_else(|| Error::Setup("the run has left no snapshot".into()))?;
    let snapshot = Snapshot::open(&path).map_err(unread)?;
    digest(&snapshot).map_err(unread)
}

/// Runs on so many ranks; the error of the first that has one.
fn run(app: &App, deck: &Deck, size: usize, directory: &Path, resume: bool) -> Result<(), Error> {
    let rank = |ranks: Ranks| {
        let options = RunOptions {
            output: Some(directory.to_path_buf()),
            resume,
            stop: Arc::new(AtomicBool::new(false)),
            observer: Box::new(Silent),
            build: app.build_info(),
        };
        let sim = app.simulation_on(deck.clone(), ranks.clone());
        let result = sim.and_then(|mut sim| sim.run_with(options));
        if let Err(error) = &result {
            ranks.communicator().abort(&error.to_string());
        }
        result.map(|_| ())
    };
    let connected = ThreadRank::connect(size).into_iter().map(Ranks::new);
    std::thread::scope(|scope| {
        let started: Vec<_> = connected.map(|ranks| scope.spawn(|| rank(ranks))).collect();
        let gone = |_| Err(Error::Setup("a rank has panicked".into()));
        started
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(gone))
    })
}
