//! Patches as entities: queries, components read by the engine, and components that follow their patches.

use nestar::Simulation;
use nestar::engine::{Error, comm::Ranks};
use nestar::entities::{
    Commands, Cost, Entity, Level, Observed, Owner, PatchComponent, PatchIndex, PatchRow, Patches,
    Pinned, Topology, With,
};
use nestar::prelude::*;
use nestar::systems::order::{Limit, Ready};
use nestar_tests::decks::{BLAST, deck};
use nestar_tests::ranks::{joined, on_ranks_of, run_with};
use nestar_tests::runs::digests;
use nestar_tests::{Scratch, Stepper};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Compares the patches that a query finds with the tables, before every step of a level.
#[derive(Clone, Default)]
struct Census(Arc<Mutex<Vec<usize>>>);

impl Plugin for Census {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let counts = self.0.clone();
        sim.system_in(
            Limit::Propose,
            move |clock: Res<LevelClock>,
                  topology: Res<Topology>,
                  all: Query<(Entity, &Level, &PatchIndex, &PatchRow, &Owner)>,
                  patches: Patches<(Entity, &PatchRow)>| {
                let mut rows = Vec::new();
                for (entity, level, index, row, owner) in &all {
                    if usize::from(level.0) == clock.level {
                        assert_eq!(topology.index(row.0), index.0);
                        assert_eq!(topology.entity(row.0), entity);
                        assert_eq!(topology.rank(), owner.0 as usize);
                        rows.push(row.0);
                    }
                }
                rows.sort_unstable();
                let mut listed = topology.rows(clock.level).to_vec();
                listed.sort_unstable();
                assert_eq!(rows, listed);
                let ordered = patches.iter().map(|(patch, (entity, row))| {
                    assert_eq!((patch.entity(), patch.row()), (entity, row.0));
                    topology.key(row.0)
                });
                let ordered: Vec<u64> = ordered.collect();
                assert!(ordered.is_sorted() && ordered.len() == rows.len());
                counts.lock().expect("the list is whole").push(rows.len());
            },
        );
        Ok(())
    }
}

fn on_ranks<T: Send>(
    ranks: usize,
    settings: &[&str],
    add: impl Fn(Simulation) -> Result<Simulation, Error> + Sync,
    work: impl Fn(&mut Stepper) -> T + Sync,
) -> Vec<T> {
    let build = |ranks: Ranks| add(Simulation::with_ranks(deck(BLAST, settings), ranks)?);
    on_ranks_of(ranks, build, work)
}

#[test]
fn a_query_finds_the_patches_of_a_level() {
    for ranks in [1, 3] {
        let census = Census::default();
        on_ranks(
            ranks,
            &[],
            |sim| sim.add(census.clone()),
            |stepper| {
                stepper.steps(3);
            },
        );
        let counts = census.0.lock().expect("the list is whole");
        assert!(counts.len() > 10 * ranks && counts.iter().any(|&count| count > 8));
    }
}

/// Components attached to patches when the hierarchy is ready; on a restart only those of the snapshot.
struct Attach<C, F> {
    attaches: bool,
    component: F,
    kind: std::marker::PhantomData<fn() -> C>,
}

fn attach<C: PatchComponent + Clone, F>(attaches: bool, component: F) -> Attach<C, F>
where
    F: Fn(u8, [i32; 3]) -> Option<C> + Clone + Send + Sync + 'static,
{
    let kind = std::marker::PhantomData;
    Attach {
        attaches,
        component,
        kind,
    }
}

impl<C: PatchComponent + Clone, F> Plugin for Attach<C, F>
where
    F: Fn(u8, [i32; 3]) -> Option<C> + Clone + Send + Sync + 'static,
{
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_carried::<C>();
        let (attaches, component) = (self.attaches, self.component.clone());
        sim.system_in(
            Ready::Recompute,
            move |clock: Res<LevelClock>,
                  mut commands: Commands,
                  patches: Query<(Entity, &Level, &PatchIndex)>| {
                for (entity, level, index) in &patches {
                    if attaches
                        && usize::from(level.0) == clock.level
                        && let Some(component) = component(level.0, index.0)
                    {
                        commands.entity(entity).insert(component);
                    }
                }
            },
        );
        Ok(())
    }
}

/// Number of steps of the level that a patch and its ancestors have taken, and a hash of their places.
#[derive(Component, Clone, Copy, Debug, PartialEq)]
struct History(u64);

impl PatchComponent for History {
    const NAME: &'static str = "history";
    const VERSION: u32 = 1;

    fn save(&self) -> Vec<u8> {
        self.0.to_le_bytes().to_vec()
    }

    fn load(bytes: &[u8]) -> Result<Self, String> {
        let bytes = bytes.try_into().map_err(|_| "it must have 8 bytes")?;
        Ok(Self(u64::from_le_bytes(bytes)))
    }

    fn inherited(&self) -> Option<Self> {
        Some(*self)
    }
}

/// Gives half of the root patches a history, which their steps and those of their children change.
struct Histories {
    attaches: bool,
}

impl Plugin for Histories {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let root = |level, index: [i32; 3]| (level == 0 && index[0] < 1).then_some(History(1));
        attach(self.attaches, root).build(sim)?;
        let note = |mut patches: Patches<(&PatchIndex, &mut History), With<Level>>| {
            for (_, (index, mut history)) in patches.iter_mut() {
                let [x, y, z] = index.0.map(|i| i as u64);
                let mixed =
                    (history.0 ^ (x + 64 * y + 4096 * z)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                history.0 = mixed ^ mixed >> 29;
            }
        };
        sim.system_in(Advance::Correct, note);
        Ok(())
    }
}

#[test]
fn components_changed_by_patches_are_identical_on_ranks_and_after_a_restart() {
    let scratch = Scratch::new();
    let run = |name: &str, resume: bool, ranks: usize, steps: usize| {
        let directory = scratch.path().join(name);
        let steps = format!("time.max_steps={steps}");
        let settings = ["run.imbalance=1.01", steps.as_str()];
        let attaches = !resume;
        let add = |sim: Simulation| sim.add(Histories { attaches });
        run_with(&directory, resume, ranks, &settings, add).unwrap_or_else(|e| panic!("{e}"));
        last(&directory)
    };
    let alone = run("alone", false, 1, 6);
    assert_eq!(run("three", false, 3, 6), alone);
    run("parts", false, 3, 3);
    assert_eq!(run("parts", true, 2, 6), alone);
}

/// Refinement that criteria request at the start only.
const FADING: [&str; 4] = [
    "mesh.max_level=1",
    "mesh.refine=[{ criterion = \"formula\", when = \"x < 0.5 - 1e3*t\" }]",
    "domain.cells=[32,32,32]",
    "run.imbalance=1.0",
];

fn last(directory: &Path) -> String {
    digests(directory).pop().expect("the run has snapshots").1
}

fn pins(attaches: bool) -> impl Plugin + Send {
    attach(attaches, |level, index: [i32; 3]| {
        (level == 1 && index[1] == 2).then_some(Pinned::STAYS)
    })
}

/// Patches of level 1 on all ranks, by their place along y.
fn along_y(stepper: &mut Stepper) -> Vec<i32> {
    let topology = stepper.0.engine().world.resource::<Topology>();
    let mut places: Vec<i32> = topology
        .rows(1)
        .iter()
        .map(|&row| topology.index(row)[1])
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

#[test]
fn pinned_patches_stay_refined_and_others_are_removed() {
    let ends = |add: fn(Simulation) -> Result<Simulation, Error>| {
        on_ranks(1, &FADING, add, |stepper| {
            let before = along_y(stepper);
            stepper.steps(3);
            (before, along_y(stepper))
        })
    };
    let all: Vec<i32> = (0..8).collect();
    assert_eq!(ends(Ok), [(all.clone(), vec![])]);
    // octets go and stay whole
    assert_eq!(ends(|sim| sim.add(pins(true))), [(all, vec![2, 3])]);
}

#[test]
fn pinned_patches_are_identical_on_any_number_of_ranks_and_after_a_restart() {
    let scratch = Scratch::new();
    let run = |name: &str, resume: bool, ranks: usize, steps: usize| {
        let directory = scratch.path().join(name);
        let steps = format!("time.max_steps={steps}");
        let settings = [&FADING[..], &[steps.as_str()]].concat();
        let add = |sim: Simulation| sim.add(pins(!resume));
        run_with(&directory, resume, ranks, &settings, add).unwrap_or_else(|e| panic!("{e}"));
        last(&directory)
    };
    let alone = run("alone", false, 1, 6);
    assert_eq!(run("two", false, 2, 6), alone);
    assert_eq!(run("four", false, 4, 6), alone);
    for (first, then) in [(1, 4), (4, 2), (2, 1)] {
        let name = format!("{first}-{then}");
        run(&name, false, first, 1);
        assert_eq!(run(&name, true, then, 6), alone, "{name}");
    }
}

#[test]
fn a_closed_region_is_refined_up_to_its_level_only() {
    let closed = |sim: Simulation| {
        sim.add(attach(true, |level, index: [i32; 3]| {
            let finest = Some(1);
            let stays = false;
            (index[0] < 1 << level).then_some(Pinned { stays, finest })
        }))
    };
    let end = |stepper: &mut Stepper| {
        let fine = |stepper: &mut Stepper| {
            let topology = stepper.0.engine().world.resource::<Topology>();
            let left = |&&row: &&u32| topology.index(row)[0] < 4;
            let rows = topology.rows(2);
            (rows.iter().filter(left).count(), rows.len())
        };
        let before = fine(stepper);
        stepper.steps(4);
        (before, fine(stepper), stepper.state())
    };
    let mut alone = on_ranks(1, &[], closed, end);
    let (before, after, state) = alone.swap_remove(0);
    assert!(before.0 > 0, "the criteria refine the region");
    assert_eq!(after.0, 0);
    assert!(after.1 > 0, "and what is not closed");
    let states = on_ranks(3, &[], closed, |stepper| end(stepper).2);
    assert_eq!(state.difference(&joined(states)), None);
}

/// A static hierarchy, whose patches with small x cost ten times those with large x.
const STATIC: [&str; 4] = [
    "mesh.max_level=1",
    "mesh.refine=[{ criterion = \"sphere\", centre = [0.5, 0.5, 0.5], radius = 0.4, level = 1 }]",
    "domain.cells=[32,32,32]",
    "run.imbalance=1.05",
];

fn cost(level: u8, index: [i32; 3]) -> Option<Cost> {
    (level == 1 && index[0] < 4).then_some(Cost(10.0))
}

/// The cost of the rank's patches of level 1 by position, and by their components.
fn costs(stepper: &mut Stepper) -> (f64, f64) {
    let world = &stepper.0.engine().world;
    let topology = world.resource::<Topology>();
    let mut sums = (0.0, 0.0);
    for &row in topology.rows(1) {
        sums.0 += cost(1, topology.index(row)).map_or(1.0, |cost| cost.0);
        let own = world.get::<Cost>(topology.entity(row));
        sums.1 += own.map_or(1.0, |cost| cost.0);
    }
    sums
}

#[test]
fn patch_costs_move_the_partition_and_follow_their_patches() {
    let costly = |sim: Simulation| sim.add(attach(true, cost));
    let end = |stepper: &mut Stepper| {
        stepper.steps(4);
        (costs(stepper), stepper.state())
    };
    let above = |ends: &[((f64, f64), nestar_tests::State)]| {
        let all: f64 = ends.iter().map(|end| end.0.0).sum();
        let most = ends.iter().map(|end| end.0.0).fold(0.0, f64::max);
        most * ends.len() as f64 / all
    };
    let plain = on_ranks(4, &STATIC, Ok, end);
    let shared = on_ranks(4, &STATIC, costly, end);
    let (plain_above, shared_above) = (above(&plain), above(&shared));
    assert!(
        shared_above < 1.2 && plain_above > 1.4,
        "{shared_above} with costs, {plain_above} without"
    );
    for ((by_place, by_component), _) in shared.iter().map(|end| (end.0, ())) {
        assert_eq!(
            by_place, by_component,
            "the components have moved with the patches"
        );
    }
    let state =
        |ends: Vec<(_, nestar_tests::State)>| joined(ends.into_iter().map(|e| e.1).collect());
    assert_eq!(state(plain).difference(&state(shared)), None);
}

#[test]
fn patch_costs_do_not_change_the_digest_and_survive_a_restart() {
    let scratch = Scratch::new();
    let run = |name: &str, resume: bool, ranks: usize, steps: &str, attaches: bool| {
        let directory = scratch.path().join(name);
        let settings = [&STATIC[..], &[steps]].concat();
        let add = |sim: Simulation| sim.add(attach(attaches, cost));
        run_with(&directory, resume, ranks, &settings, add).unwrap_or_else(|e| panic!("{e}"));
        last(&directory)
    };
    let plain = run("plain", false, 3, "time.max_steps=4", false);
    assert_eq!(run("costly", false, 3, "time.max_steps=4", true), plain);
    run("parts", false, 4, "time.max_steps=2", true);
    assert_eq!(run("parts", true, 3, "time.max_steps=4", false), plain);
    let imbalance = |name: &str| last_value(&scratch.path().join(name), "imbalance");
    assert_ne!(imbalance("plain"), imbalance("costly"));
}

/// The value of a column of `diagnostics.csv` after the last root step.
fn last_value(directory: &Path, column: &str) -> Option<String> {
    let text = std::fs::read_to_string(directory.join("diagnostics.csv")).ok()?;
    let place = text
        .lines()
        .next()?
        .split(',')
        .position(|name| name == column)?;
    Some(text.lines().last()?.split(',').nth(place)?.to_string())
}

#[test]
fn components_read_by_the_engine_must_be_registered() {
    struct Forgotten;
    impl Plugin for Forgotten {
        fn build(&self, sim: &mut Engine) -> Result<(), Error> {
            sim.system_in(
                Ready::Recompute,
                |mut commands: Commands, patches: Query<Entity, With<PatchRow>>| {
                    for patch in &patches {
                        commands.entity(patch).insert(Cost(2.0));
                    }
                },
            );
            Ok(())
        }
    }
    let sim = nestar_tests::build(BLAST, &[]).add(Forgotten);
    let mut sim = sim.unwrap_or_else(|e| panic!("{e}"));
    let made = sim.with(|s| s.finish_setup().and_then(|()| s.initialise()));
    let why = made.expect_err("refused").to_string();
    assert!(
        why.contains("`cost`") && why.contains("sim.register_carried"),
        "{why}"
    );
}

fn observed(attaches: bool) -> impl Plugin + Send {
    attach(attaches, |level, index: [i32; 3]| match (level, index) {
        (0, [1, 0, 1]) => Some(Observed {
            name: "corner".into(),
            ..Observed::default()
        }),
        (1, [1 | 2, 1, 1]) => Some(Observed {
            name: "centre".into(),
            components: vec!["density".into()],
            cell: Some([7, 0, 3]),
        }),
        _ => None,
    })
}

#[test]
fn observed_patches_write_their_series_and_continue_it_after_a_restart() {
    let scratch = Scratch::new();
    let run = |name: &str, resume: bool, ranks: usize, steps: usize| {
        let directory = scratch.path().join(name);
        let steps = format!("time.max_steps={steps}");
        let add = |sim: Simulation| sim.add(observed(!resume));
        run_with(&directory, resume, ranks, &[&steps], add).unwrap_or_else(|e| panic!("{e}"));
        std::fs::read_to_string(directory.join("observed.csv")).expect("there is a series")
    };
    let whole = run("whole", false, 1, 5);
    assert_eq!(run("three", false, 3, 5), whole);
    let lines: Vec<&str> = whole.lines().collect();
    // six components with three quantities each, and the cells of two patches
    assert_eq!(lines.len(), 1 + 5 * (6 * 3 + 2), "{whole}");
    assert!(lines[1].starts_with("1,") && lines[1].contains(",corner,0,1,0,1,density,mean,"));
    assert!(whole.contains(",centre,1,2,1,1,density,cell,"));
    for (first, then) in [(1, 2), (2, 1)] {
        let name = format!("{first}-{then}");
        run(&name, false, first, 3);
        // a run that was killed after its last snapshot has more rows than that, and perhaps half a row
        let path = scratch.path().join(&name).join("observed.csv");
        let text = std::fs::read_to_string(&path).expect("there is a series");
        let more = whole.lines().filter(|line| line.starts_with("4,"));
        let more: String = more.map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, format!("{text}{more}5,0.1,cor")).expect("the file is writable");
        assert_eq!(run(&name, true, then, 5), whole, "{name}");
    }
}

#[test]
fn observing_an_unknown_quantity_is_refused() {
    let refused = |what: Observed| {
        let scratch = Scratch::new();
        let add = |sim: Simulation| {
            let what = what.clone();
            sim.add(attach(true, move |level, _| {
                (level == 0).then(|| what.clone())
            }))
        };
        let settings = ["time.max_steps=1"];
        let run = run_with(&scratch.run(), false, 2, &settings, add);
        run.expect_err("refused").to_string()
    };
    let name = || "probe".to_string();
    let why = refused(Observed {
        name: name(),
        components: vec!["densty".into()],
        cell: None,
    });
    assert!(
        why.contains("no component `densty`") && why.contains("\"density\""),
        "{why}"
    );
    let why = refused(Observed {
        name: name(),
        cell: Some([8, 0, 0]),
        ..Observed::default()
    });
    assert!(why.contains("no cell [8, 0, 0]"), "{why}");
    let why = refused(Observed::default());
    assert!(why.contains("name"), "{why}");
}
