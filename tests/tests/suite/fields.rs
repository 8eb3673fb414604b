//! Plugin fields unlike the gas: on faces, with banks of their own, saved or recomputed.

use nestar::Simulation;
use nestar::engine::comm::Ranks;
use nestar::engine::data::{Element, Field, FieldSpec, Precision, Prolong, Restrict};
use nestar::engine::mesh::{Domain, Topology};
use nestar::engine::run::RunOptions;
use nestar::kernels::mesh::Centring;
use nestar::prelude::*;
use nestar::snapshot::Snapshot;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::devices;
use nestar_tests::ranks::{joined, on_ranks_of, run_on_ranks_of};
use nestar_tests::runs::{digests, quietly_into};
use nestar_tests::{Patch, Scratch, State, Stepper};
use std::collections::BTreeSet;

/// Vectors on faces: any numbers.
struct Flow;
/// Vectors on edges, recomputed in each step where no means of finer ones exist.
struct Swirl;
/// A value computed by a step from two scratch banks.
struct Wave;
/// Not saved: a value that a step leaves for the next one.
struct Notes;

macro_rules! fields {
    ($($field:ident $name:literal $components:literal),+) => {
        $(impl Field for $field {
            const NAME: &'static str = $name;
        })+
    };
}
fields!(Flow "flow" 3, Swirl "swirl" 3, Wave "wave" 1, Notes "notes" 1);

/// Registers the fields and the systems that fill and change them.
struct Extras;

impl Plugin for Extras {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.register_field::<Flow>(FieldSpec::faces(["flow_x", "flow_y", "flow_z"]))?;
        sim.register_field::<Swirl>(FieldSpec {
            centring: Centring::Edge,
            prolong: Prolong::None,
            ..FieldSpec::faces(["swirl_x", "swirl_y", "swirl_z"])
        })?;
        sim.system_in(Initialise::State, fill_flow);
        sim.system_in(Advance::Sources, change_flow);
        sim.system_in(Advance::Sources, change_swirl);
        let wave = FieldSpec::cells(&["wave"]);
        sim.register_field::<Wave>(FieldSpec { banks: 3, ..wave })?;
        sim.register_field::<Notes>(FieldSpec {
            prolong: Prolong::None,
            restrict: Restrict::None,
            stored: false,
            ..FieldSpec::cells(&["notes"])
        })?;
        sim.system_in(Initialise::State, fill);
        sim.system_in(Advance::Sources, change);
        Ok(())
    }
}

/// A number in 0..1 that belongs to a place of a level.
fn number(level: usize, component: usize, place: [i64; 3]) -> f64 {
    let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
    for part in [level as i64, component as i64, place[0], place[1], place[2]] {
        bits = (bits ^ part as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits ^= bits >> 29;
    }
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Values of a field as a function of level, component and position on the level, periodic in the domain.
type Rule<'a, R> = &'a dyn Fn(usize, [i64; 3], R) -> R;

/// Changes the values of a level, each by its component, its place and itself.
fn each<F: Field, R: Element>(
    field: &mut Write<F>,
    topology: &Topology,
    rule: Rule<R>,
) -> Result<(), Error> {
    let view = field.own();
    let (centring, level) = (view.spec().centring, view.level());
    let (rows, length) = (view.rows().to_vec(), view.spec().row_values());
    let mut values = view.host::<R>(&rows)?;
    let cells = topology.domain.cells(level);
    for (values, &row) in values.chunks_exact_mut(length).zip(&rows) {
        let origin = topology.origin(row);
        for (c, values) in values.chunks_exact_mut(centring.values()).enumerate() {
            let [x, y, _] = centring.lengths(c, [8; 3]);
            for (n, value) in values.iter_mut().enumerate() {
                let within = [n % x, n / x % y, n / (x * y)];
                let place = [0, 1, 2].map(|a| (origin[a] + within[a] as i32).rem_euclid(cells[a]));
                *value = rule(c, place.map(i64::from), *value);
            }
        }
    }
    Ok(field.store(&rows, &values)?)
}

/// Calls `$of::<R>` for the precision of `$field`.
macro_rules! in_precision {
    ($field:expr, $of:ident($($argument:expr),+)) => {
        match $field.precision() {
            Precision::Single => $of::<f32>($($argument),+),
            Precision::Double => $of::<f64>($($argument),+),
        }
    };
}

fn fill_flow(topology: Res<Topology>, mut flow: Write<Flow>) -> Result<(), Error> {
    fn of<R: Element>(topology: &Topology, flow: &mut Write<Flow>) -> Result<(), Error> {
        let level = flow.own().level();
        let value = |c: usize, place, _| R::lit(number(level, c, place) - 0.5);
        each::<Flow, R>(flow, topology, &value)
    }
    in_precision!(flow, of(&topology, &mut flow))
}

fn change_flow(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut flow: Write<Flow>,
) -> Result<(), Error> {
    fn of<R: Element>(
        topology: &Topology,
        clock: &LevelClock,
        flow: &mut Write<Flow>,
    ) -> Result<(), Error> {
        let (level, dt) = (clock.level, R::lit(clock.dt));
        // a level differs from what the finer one makes of it
        let value =
            |c: usize, place, value: R| value + dt * R::lit(number(level, c + 3, place) - 0.5);
        each::<Flow, R>(flow, topology, &value)
    }
    in_precision!(flow, of(&topology, &clock, &mut flow))
}

fn change_swirl(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut swirl: Write<Swirl>,
) -> Result<(), Error> {
    fn of<R: Element>(
        topology: &Topology,
        clock: &LevelClock,
        swirl: &mut Write<Swirl>,
    ) -> Result<(), Error> {
        let (level, time) = (clock.level, R::lit(clock.time));
        let value = |c: usize, place, _| time + R::lit(number(level, c + 8, place));
        each::<Swirl, R>(swirl, topology, &value)
    }
    in_precision!(swirl, of(&topology, &clock, &mut swirl))
}

fn fill(topology: Res<Topology>, mut wave: Write<Wave>) -> Result<(), Error> {
    fn of<R: Element>(topology: &Topology, wave: &mut Write<Wave>) -> Result<(), Error> {
        let level = wave.own().level();
        let value = |_, place, _| R::lit(number(level, 7, place));
        each::<Wave, R>(wave, topology, &value)
    }
    in_precision!(wave, of(&topology, &mut wave))
}

fn change(
    topology: Res<Topology>,
    clock: Res<LevelClock>,
    mut wave: Write<Wave>,
    mut notes: Write<Notes>,
) -> Result<(), Error> {
    in_precision!(wave, change_of(&topology, &clock, &mut wave, &mut notes))
}

fn change_of<R: Element>(
    topology: &Topology,
    clock: &LevelClock,
    wave: &mut Write<Wave>,
    notes: &mut Write<Notes>,
) -> Result<(), Error> {
    let dt = R::lit(clock.dt);
    let view = wave.own();
    if view.is_on_device() {
        let twice = |_, _, value: R| (value + value) - (value + dt);
        each::<Wave, R>(wave, topology, &twice)?;
    } else {
        let scratch = [0, 1].map(|n| view.scratch::<R>(n));
        let mut values = Vec::new();
        for &row in view.rows() {
            // SAFETY: rows are set one by one, each in its own bank.
            let [twice, later] = scratch.map(|bank| unsafe { bank.row_mut(row) });
            for (n, &present) in view.row::<R>(row).iter().enumerate() {
                twice[n] = present + present;
                later[n] = present + dt;
                values.push(twice[n] - later[n]);
            }
        }
        let rows = view.rows().to_vec();
        wave.store(&rows, &values)?;
    }
    each::<Notes, R>(notes, topology, &|_, _, value| value + dt)
}

fn build(settings: &[&str], ranks: Ranks) -> Result<Simulation, Error> {
    Simulation::with_ranks(deck(BLAST, settings), ranks)?.add(Extras)
}

fn stepper(settings: &[&str]) -> Stepper {
    Stepper::of(build(settings, Ranks::default()).unwrap_or_else(|e| panic!("{e}")))
}

/// Offset of the flow's components in the values of a patch: after the gas and a scalar.
const FLOW: usize = 6 * 512;

/// Values of a side of a patch: component `axis` of the flow on its first or last plane.
fn plane(patch: &Patch, axis: usize, upper: bool) -> Vec<u64> {
    let values = &patch.values[FLOW + axis * 576..][..576];
    let at = |n: usize| {
        let mut place = [0; 3];
        place[axis] = 8 * usize::from(upper);
        place[(axis + 1) % 3] = n % 8;
        place[(axis + 2) % 3] = n / 8;
        values[Centring::Face.index(axis, place)].to_bits()
    };
    (0..64).map(at).collect()
}

/// Checks that patches are bitwise equal on shared faces; returns the number of shared sides.
fn check_faces(state: &State) -> usize {
    let mut shared = 0;
    for (level, patches) in state.levels.iter().enumerate() {
        let count = |domain: &Domain, axis: usize| domain.root[axis] << level;
        for (index, patch) in patches {
            for axis in 0..3 {
                let mut beyond = *index;
                beyond[axis] = (beyond[axis] + 1) % count(&state.domain, axis);
                if let Some(next) = patches.get(&beyond) {
                    let same = plane(patch, axis, true) == plane(next, axis, false);
                    assert!(
                        same,
                        "level {level}: {index:?} and {beyond:?} differ along {axis}"
                    );
                    shared += 1;
                }
            }
        }
    }
    shared
}

/// Refines and removes patches in every step, around a ball that flies across the box.
const BUSY: &[&str] = &[
    HALF,
    "mesh.regrid_interval=1",
    "mesh.flag_buffer=0",
    "mesh.refine=[{ criterion = \"formula\", when = \"(x-0.3-12*t)^2 + (y-0.55)^2 + (z-0.47)^2 < 0.0225\" }]",
];

/// Steps of the comparisons.
const STEPS: usize = 3;

#[test]
fn shared_faces_stay_identical_through_refinement_and_derefinement() {
    for single in [false, true] {
        let precision = format!(
            "run.precision=\"{}\"",
            if single { "single" } else { "double" }
        );
        let mut settings = BUSY.to_vec();
        settings.push(&precision);
        let mut stepper = stepper(&settings);
        let places = |state: &State| -> BTreeSet<(usize, [i32; 3])> {
            let of_level = |(level, patches): (usize, _)| {
                let patches: &std::collections::BTreeMap<[i32; 3], Patch> = patches;
                patches
                    .keys()
                    .map(|index| (level, *index))
                    .collect::<Vec<_>>()
            };
            state.levels.iter().enumerate().flat_map(of_level).collect()
        };
        let mut before = stepper.state();
        assert!(check_faces(&before) > 0);
        let (mut made, mut removed) = (0, 0);
        for _ in 0..60 {
            let now = stepper.steps(1).state();
            assert!(check_faces(&now) > 0);
            made += places(&now).difference(&places(&before)).count();
            removed += places(&before).difference(&places(&now)).count();
            before = now;
            if made > 0 && removed > 0 {
                break;
            }
        }
        assert!(
            made > 0 && removed > 0,
            "{made} patches made, {removed} removed"
        );
    }
}

/// The state after some steps on the given number of ranks.
fn on(ranks: usize, device: &str, precision: &str) -> State {
    let settings = [BUSY, &[device, precision]].concat();
    joined(on_ranks_of(
        ranks,
        |ranks| build(&settings, ranks),
        |stepper| stepper.steps(STEPS).state(),
    ))
}

#[test]
fn plugin_fields_are_identical_on_ranks_and_devices() {
    let emulated = devices::open();
    for single in [false, true] {
        let precision = ["run.precision=double", "run.precision=single"][usize::from(single)];
        let alone = on(1, "run.device=cpu", precision);
        assert!(check_faces(&alone) > 0);
        let same = |ranks, device| {
            let difference = alone.difference(&on(ranks, device, precision));
            assert_eq!(difference, None, "{ranks} ranks, {device}, {precision}");
        };
        same(4, "run.device=cpu");
        match &emulated {
            Err(why) => println!("skipped: {why}"),
            Ok(_) => [1, 3]
                .iter()
                .for_each(|&ranks| same(ranks, "run.device=emulated")),
        }
    }
}

/// Runs on `ranks` ranks into a directory.
fn run(scratch: &Scratch, ranks: usize, resume: bool, settings: &[&str]) {
    let options = |_| -> RunOptions { quietly_into(&scratch.run(), resume) };
    let all = [BUSY, &["output.steps=1"], settings].concat();
    let results = run_on_ranks_of(
        |ranks| build(&all, ranks),
        (0..ranks).map(options).collect(),
    );
    for result in results {
        result.unwrap_or_else(|e| panic!("{e}"));
    }
}

/// The data saved by a complete run on the given number of ranks.
fn whole(ranks: usize) -> (Scratch, Vec<(String, String)>) {
    let scratch = Scratch::new();
    run(&scratch, ranks, false, &["time.max_steps=4"]);
    let stored = digests(&scratch.run());
    assert!(stored.len() > 1, "{stored:?}");
    (scratch, stored)
}

#[test]
fn plugin_fields_are_saved_and_restored_on_any_number_of_ranks() {
    let (alone, of_one) = whole(1);
    let snapshot = alone.run().join("snapshots/000001.zarr");
    let snapshot = Snapshot::open(&snapshot).expect("a snapshot");
    let field = |name: &str| {
        let field = snapshot.fields(1).into_iter().find(|f| f.name == name);
        field.map(|field| (field.dimensions.join(" "), field.shape.clone()))
    };
    assert_eq!(field("flow_x"), Some(("z y x_face".into(), vec![8, 8, 9])));
    assert_eq!(field("flow_z"), Some(("z_face y x".into(), vec![9, 8, 8])));
    assert_eq!(field("wave"), Some(("z y x".into(), vec![8, 8, 8])));
    assert_eq!(field("notes"), None);
    for (before, after) in [(2, 3), (4, 2)] {
        let parts = Scratch::new();
        run(&parts, before, false, &["time.max_steps=2"]);
        run(&parts, after, true, &["time.max_steps=4"]);
        assert_eq!(
            &digests(&parts.run()),
            &of_one,
            "{before}, then {after} ranks"
        );
    }
}
