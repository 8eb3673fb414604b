//! Phases beside the steps of single levels: `Ready`, `Split`, `Regrid`, `Aligned`.

use nestar::Simulation;
use nestar::engine::Error;
use nestar::engine::comm::Ranks;
use nestar::engine::mesh::{Levels, NewRows, Topology};
use nestar::engine::step::AlignedLevels;
use nestar::prelude::*;
use nestar::systems::order::{Aligned, Ready, Regrid};
use nestar_tests::decks::{BLAST, deck};
use nestar_tests::ranks::{joined, on_ranks_of, run_with};
use nestar_tests::runs::digests;
use nestar_tests::{Scratch, Stepper};
use std::sync::{Arc, Mutex};

type Log<T> = Arc<Mutex<Vec<T>>>;

fn taken<T>(log: &Log<T>) -> Vec<T> {
    std::mem::take(&mut *log.lock().expect("the log is whole"))
}

fn with(plugin: impl Plugin + Send, settings: &[&str]) -> Stepper {
    let sim = nestar_tests::build(BLAST, settings).add(plugin);
    Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")))
}

/// Cooling by a rate.
#[device]
fn cool<R: Real>(u: Conserved<R>, rate: R, dt: R) -> Conserved<R> {
    let kinetic = kinetic_energy(u);
    let mut v = u;
    v.energy = kinetic + (u.energy - kinetic) * exp(-rate * dt);
    v
}

/// Cools the gas in half steps, and notes level, begin and end of each.
#[derive(Clone, Default)]
struct Cooling(Log<(usize, f64, f64)>);

impl Plugin for Cooling {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let log = self.0.clone();
        sim.system_in(
            Split::Sources,
            move |clock: Res<LevelClock>, rows: LevelRows, mut gas: Write<Gas>| {
                let span = (clock.level, clock.time, clock.end);
                log.lock().expect("the log is whole").push(span);
                gas.update::<cool>(&rows, (), &[0.5, clock.dt]);
            },
        );
        Ok(())
    }
}

#[test]
fn split_sources_take_half_a_step_before_and_after_each_step() {
    let cooling = Cooling::default();
    let mut stepper = with(cooling.clone(), &[]);
    stepper.steps(3);
    let spans = taken(&cooling.0);
    let steps = stepper.counters();
    assert_eq!(steps.retried_steps, 0);
    assert_eq!(spans.len() as u64, 2 * steps.level_steps);
    for level in 0..3 {
        let of: Vec<_> = spans.iter().filter(|span| span.0 == level).collect();
        for pair in of.as_chunks::<2>().0 {
            let [(_, begin, middle), (_, next, end)] = pair;
            assert_eq!(middle, next);
            let (first, second) = (middle - begin, end - middle);
            assert!(
                first > 0.0 && (first - second).abs() < 1e-9 * first,
                "{pair:?}"
            );
        }
        assert!(
            of.windows(2).all(|w| w[0].2 == w[1].1),
            "no gap and no overlap"
        );
        let time = stepper.0.engine().world.resource::<Levels>().time(level);
        assert_eq!(of.last().map(|span| span.2), Some(time));
    }
}

/// Gas torn apart so hard that steps are taken again.
const HARD: &[&str] = &[
    "initial.density=if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.05, 10, 0.01)",
    "initial.pressure=if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.002, 1e4, 1e-4)",
    "initial.velocity_x=if(x < 0.5, -20, 20)",
    "initial.velocity_y=if(y < 0.3, -15, 15)",
    "hydro.reconstruction=ppm",
    "time.courant=0.9",
];

#[test]
fn split_sources_wait_for_a_step_that_was_rejected() {
    let cooling = Cooling::default();
    let settings = [HARD, &["mesh.max_level=0", "domain.cells=[32,32,32]"]].concat();
    let mut stepper = with(cooling.clone(), &settings);
    stepper.steps(8);
    let spans = taken(&cooling.0);
    assert!(
        spans.windows(2).all(|w| w[0].2 == w[1].1),
        "no time twice: {spans:?}"
    );
    let time = stepper.time();
    assert!(spans.last().is_some_and(|span| span.2 >= time));
    println!("{} steps again", stepper.counters().retried_steps);
}

#[test]
fn split_sources_are_identical_on_ranks_and_after_a_restart() {
    let mut alone = with(Cooling::default(), &[]);
    let alone = alone.steps(3).state();
    let build = |ranks: Ranks| {
        Simulation::with_ranks(deck(BLAST, &[]), ranks).and_then(|sim| sim.add(Cooling::default()))
    };
    let states = on_ranks_of(3, build, |stepper| stepper.steps(3).state());
    assert_eq!(alone.difference(&joined(states)), None);
    if crate::device_runs::emulation() {
        let mut device = with(Cooling::default(), &["run.device=emulated"]);
        assert_eq!(alone.difference(&device.steps(3).state()), None);
    }
    let scratch = Scratch::new();
    let (whole, parts) = (scratch.path().join("whole"), scratch.path().join("parts"));
    let cooled = |sim: Simulation| sim.add(Cooling::default());
    let run = |directory: &std::path::Path, resume: bool, settings: &[&str]| {
        run_with(directory, resume, 1, settings, cooled).unwrap_or_else(|e| panic!("{e}"));
    };
    run(&whole, false, &["time.max_steps=4"]);
    run(&parts, false, &["time.max_steps=2"]);
    run(&parts, true, &["time.max_steps=4"]);
    let last = |directory| digests(directory).pop().map(|(_, digest)| digest);
    assert_eq!(last(&whole), last(&parts));
}

/// Notes the density in the middle of new patches, behind each regrid.
#[derive(Clone, Default)]
struct Births(Log<Vec<f64>>);

impl Plugin for Births {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let log = self.0.clone();
        let note = move |new: Res<NewRows>, gas: Read<Gas>| -> Result<(), Error> {
            let values = gas.own_on(new.level).host::<f64>(&new.rows)?;
            let patches = values.chunks_exact(gas.own().components() * 512);
            let density = patches.map(|values| values[512 / 2]).collect();
            log.lock().expect("the log is whole").push(density);
            Ok(())
        };
        sim.system_in(Regrid::Complete, note);
        Ok(())
    }
}

#[test]
fn new_patches_are_completed_once_they_have_values() {
    let births = Births::default();
    let grows =
        "mesh.refine=[{ criterion = 'formula', when = 'abs(x - 0.25) < 0.05 || t > 0.004' }]";
    let settings = ["mesh.max_level=1", "mesh.regrid_interval=1", grows];
    let mut stepper = with(births.clone(), &settings);
    let patches = |stepper: &mut Stepper| stepper.0.engine().world.resource::<Topology>().count(1);
    let (before, mut new) = (patches(&mut stepper), 0);
    assert!(before > 0 && taken(&births.0).is_empty(), "{before}");
    for _ in 0..20 {
        let grown = patches(&mut stepper);
        stepper.steps(1);
        let noted = taken(&births.0).concat();
        // also where the regrid changes nothing
        assert_eq!(noted.len(), patches(&mut stepper) - grown);
        assert!(noted.iter().all(|&density| density > 0.0), "{noted:?}");
        new += noted.len();
        if new > 0 && noted.is_empty() {
            return;
        }
    }
    panic!("{new} new patches beside {before}");
}

/// Records the levels that are prepared, and those that are synchronised.
#[derive(Clone, Default)]
struct Watch {
    ready: Log<usize>,
    /// The coarsest and the finest level, the times of all levels.
    aligned: Log<(usize, usize, Vec<f64>)>,
}

impl Plugin for Watch {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let Self { ready, aligned } = self.clone();
        sim.system_in(Ready::Recompute, move |clock: Res<LevelClock>| {
            ready.lock().expect("the log is whole").push(clock.level);
        });
        sim.system_in(
            Aligned::Solve,
            move |levels: Res<AlignedLevels>, clocks: Res<Levels>| {
                let times = (0..=2).map(|level| clocks.time(level)).collect();
                let entry = (levels.coarsest, levels.finest, times);
                aligned.lock().expect("the log is whole").push(entry);
            },
        );
        Ok(())
    }
}

#[test]
fn synchronised_levels_are_processed_once() {
    let watch = Watch::default();
    let mut stepper = with(watch.clone(), &["time.levels=halved"]);
    assert_eq!(taken(&watch.ready), [0, 1, 2]);
    assert!(
        taken(&watch.aligned).is_empty(),
        "nothing was synchronised yet"
    );
    stepper.steps(1);
    let entries = taken(&watch.aligned);
    let coarsest: Vec<usize> = entries.iter().map(|entry| entry.0).collect();
    assert_eq!(coarsest, [2, 1, 2, 0]);
    for (coarsest, finest, times) in &entries {
        assert_eq!(*finest, 2);
        assert!(
            times[*coarsest..].iter().all(|time| *time == times[2]),
            "{times:?}"
        );
        assert!(
            times[..*coarsest].iter().all(|time| *time > times[2]),
            "{times:?}"
        );
    }
    assert!(taken(&watch.ready).is_empty());
}

#[test]
fn a_restored_hierarchy_runs_ready_and_read_only_phases_change_no_bit() {
    let scratch = Scratch::new();
    let (plain, watched) = (scratch.path().join("plain"), scratch.path().join("watched"));
    let watch = Watch::default();
    let add = |sim: Simulation| sim.add(watch.clone());
    let settings = [["time.max_steps=2"], ["time.max_steps=4"]];
    run_with(&plain, false, 1, &settings[1], Ok).unwrap_or_else(|e| panic!("{e}"));
    run_with(&watched, false, 1, &settings[0], add).unwrap_or_else(|e| panic!("{e}"));
    taken(&watch.ready);
    run_with(&watched, true, 1, &settings[1], add).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(taken(&watch.ready), [0, 1, 2]);
    let last = |directory| digests(directory).pop().map(|(_, digest)| digest);
    assert_eq!(last(&plain), last(&watched));
}
