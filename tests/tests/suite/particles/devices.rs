//! Particles on devices of one and of several ranks: bitwise equal to the host, in snapshots and in global sums.

use super::criteria::{CLOUDS, CRITERIA};
use super::determinism::CLUMP;
use bevy_ecs::prelude::Mut;
use nestar::engine::data::ParticleSet;
use nestar::engine::device::ComputeDevice;
use nestar::engine::mesh::Topology;
use nestar::systems::particles::{Species, SpeciesMap};
use nestar_tests::devices::open;
use nestar_tests::ranks::run_on_ranks;
use nestar_tests::runs::{digests, quietly_into};
use nestar_tests::{Scratch, Stepper};
use std::collections::BTreeMap;
use std::path::Path;

/// The digests of snapshots by their names.
type Snapshots = Vec<(String, String)>;
/// Columns of diagnostics by name.
type Columns = BTreeMap<String, Vec<String>>;

/// The columns of particles in a run's diagnostics.
fn sums(directory: &Path) -> Columns {
    let text = std::fs::read_to_string(directory.join("diagnostics.csv")).expect("a file");
    let mut lines = text.lines().map(|line| line.split(','));
    let names = lines.next().expect("names").enumerate();
    let whose = |name: &str| ["particles_", "dark_", "stars_"].map(|own| name.starts_with(own));
    let own = names.filter(|(_, name)| whose(name).contains(&true));
    let column = |n: usize| {
        let values = lines.clone().filter_map(|mut line| line.nth(n));
        values.map(String::from).collect()
    };
    own.map(|(n, name)| (name.to_string(), column(n))).collect()
}

/// Snapshots and sums of a run on as many ranks, each with a device.
fn run(deck: &str, (ranks, device): (usize, &str), settings: &[&str]) -> (Snapshots, Columns) {
    let scratch = Scratch::new();
    let device = format!("run.device={device}");
    let own = ["output.steps=1", "output.final=true", &device];
    let settings = [&own[..], settings].concat();
    let options = (0..ranks).map(|_| quietly_into(&scratch.run(), false));
    for ended in run_on_ranks(deck, &settings, options.collect()) {
        ended.unwrap_or_else(|e| panic!("{device}, {ranks} ranks: {e}"));
    }
    (digests(&scratch.run()), sums(&scratch.run()))
}

/// Compares devices of as many ranks with one rank's host; the columns.
fn same(deck: &str, ranks: usize, settings: &[&str]) -> Columns {
    let cpu = run(deck, (1, "cpu"), settings);
    assert!(cpu.0.len() > 1 && cpu.1.len() >= 15, "{cpu:?}");
    let device = run(deck, (ranks, "emulated"), settings);
    assert_eq!(cpu, device, "{ranks} ranks, {settings:?}");
    cpu.1
}

const OPEN: &str = "domain.boundary=outflow";
const SOON: &str = "time.max_steps=2";
/// The partition follows the cost.
const EVEN: &str = "run.imbalance=1.01";

#[test]
fn particles_move_identically_on_devices_and_host() {
    if open().is_err() {
        return;
    }
    // a periodic box is that of the other tests; on several ranks there are the other clouds too
    let cases: [&[&str]; 2] = [
        &[
            OPEN,
            "run.precision=single",
            "particles.cloud=ngp",
            "run.audit=false",
            // the first particles leave
            "time.max_steps=3",
        ],
        &[
            "domain.boundary=reflecting",
            "gravity.boundary=isolated",
            "particles.zone=0",
            "run.audit=false",
        ],
    ];
    for case in cases {
        let columns = same(CLUMP, 1, &[&[SOON, EVEN], case].concat());
        let lost: f64 = columns["dark_lost"]
            .last()
            .expect("rows")
            .parse()
            .expect("a number");
        assert_eq!(lost > 0.0, case.contains(&OPEN), "{case:?}: {lost}");
    }
}

/// Compaction in several batches with little memory, on two levels and on three.
#[test]
fn device_particles_are_compacted_in_batches() {
    if open().is_err() {
        return;
    }
    let turns = "particles.shuffle=true";
    same(CLUMP, 1, &[SOON, turns]);
    let settings = [SOON, turns, "mesh.max_level=1", "run.precision=single"];
    same(CLUMP, 1, &[&settings[..], &["run.audit=false"]].concat());
}

#[test]
fn the_order_of_particles_on_a_device_does_not_matter() {
    if open().is_err() {
        return;
    }
    let mut stepper = Stepper::new(CLUMP, &["run.device=emulated", "run.audit=false"]);
    stepper.steps(1);
    let world = &mut stepper.0.engine().world;
    world.resource_scope(|world, mut species: Mut<SpeciesMap>| {
        let (topology, dark) = (world.resource::<Topology>(), &mut species.0[0]);
        assert!(dark.is_on_device());
        let rows = dark.occupied_rows(topology);
        let places = |dark: &Species| dark.identities(&rows).expect("they are read").concat();
        let mut before = places(dark);
        dark.shuffle().expect("the device does");
        let mut after = places(dark);
        let moved = before.iter().zip(&after).filter(|(a, b)| a != b);
        assert!(moved.count() > 10, "{before:?} {after:?}");
        before.sort_unstable();
        after.sort_unstable();
        assert_eq!(before, after);
    });
}

#[test]
fn the_partition_between_devices_does_not_matter() {
    if open().is_err() {
        return;
    }
    let swift = "particles.courant=1.0";
    // what no entity can follow goes from device to device
    let [dark, stars] =
        ["dark", "stars"].map(|name| format!("particles.species.{name}.entities=on-demand"));
    let cases: [(usize, &[&str]); 3] = [
        (3, &["particles.cloud=ngp", &dark, &stars]),
        (
            2,
            &[
                "run.precision=single",
                "particles.zone=1",
                "particles.shuffle=true",
                swift,
                &dark,
            ],
        ),
        (2, &["particles.cloud=tsc", OPEN, "run.audit=true"]),
    ];
    for (ranks, case) in cases {
        let settings = [&[SOON, EVEN, "run.audit=false"], case].concat();
        same(CLUMP, ranks, &settings);
    }
}

#[test]
fn particle_criteria_refine_identically_on_devices() {
    if open().is_err() {
        return;
    }
    let kept = "particles.refine.kept_per_patch=[20,9]";
    let both = "particles.refine.mass_per_cell=[0.006]";
    let falling = [SOON, EVEN, "run.audit=false", "hydro.frozen=false"];
    // each criterion once, and each company on some of them
    let others = [
        (3, &[kept][..]),
        (1, &[both, kept]),
        (2, &["run.audit=true"]),
        (3, &[kept]),
    ];
    for (criteria, (ranks, more)) in CRITERIA.into_iter().zip(others) {
        let settings = [&falling[..], criteria, more].concat();
        let [cpu, device] = [(1, "cpu"), (ranks, "emulated")].map(|on| run(CLOUDS, on, &settings));
        assert!(cpu.0.len() > 1);
        assert_eq!(cpu, device, "{ranks} ranks, {settings:?}");
    }
}

#[test]
fn a_restart_on_other_devices_is_identical() {
    if open().is_err() {
        return;
    }
    let go = |scratch: &Scratch, (ranks, device): (usize, &str), resume: bool, steps: usize| {
        let settings = [
            "output.final=true".to_string(),
            format!("run.device={device}"),
            format!("time.max_steps={steps}"),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let options = (0..ranks).map(|_| quietly_into(&scratch.run(), resume));
        for ended in run_on_ranks(CLUMP, &settings, options.collect()) {
            ended.unwrap_or_else(|e| panic!("{device}, {ranks} ranks: {e}"));
        }
        digests(&scratch.run()).pop().map(|(_, digest)| digest)
    };
    let whole = go(&Scratch::new(), (1, "cpu"), false, 2);
    for (before, then) in [((3, "emulated"), (1, "cpu")), ((1, "cpu"), (2, "emulated"))] {
        let parts = Scratch::new();
        go(&parts, before, false, 1);
        assert_eq!(
            whole,
            go(&parts, then, true, 2),
            "{before:?}, then {then:?}"
        );
    }
}

#[test]
fn copies_of_many_patches_wait_once_for_a_device() {
    if open().is_err() {
        return;
    }
    let mut stepper = Stepper::new(CLUMP, &["run.device=emulated", "run.precision=single"]);
    stepper.steps(1);
    let world = &stepper.0.engine().world;
    let (topology, all) = (world.resource::<Topology>(), world.resource::<SpeciesMap>());
    let species = &all.0[0];
    let levels = 0..=topology.finest();
    let rows = levels.flat_map(|level| topology.rows(level).iter().copied());
    let rows: Vec<u32> = rows.filter(|&row| species.count(row) > 0).collect();
    let device = world.resource::<ComputeDevice>().device.clone();
    let device = device.expect("the deck has asked for it");
    let before = device.counters();
    let copies = species.copy_all(&rows).expect("the device works");
    let after = device.counters();
    assert!(species.is_on_device() && rows.len() > 20);
    assert_eq!(after.synchronisations - before.synchronisations, 1);
    assert!(after.launches - before.launches < rows.len() as u64);
    for (&row, copy) in rows.iter().zip(copies) {
        assert_eq!(
            species.copy(row).expect("the device works"),
            copy,
            "row {row}"
        );
    }
}
