//! Tracers advected by the gas.

use super::{bits, particles};
use nestar::Simulation;
use nestar::engine::device::ComputeDevice;
use nestar::engine::mesh::Topology;
use nestar_tests::decks::deck;
use nestar_tests::devices::{SETTING, open};
use nestar_tests::ranks::{on_ranks, run_on_ranks};
use nestar_tests::runs::{digests, quietly_into};
use nestar_tests::{Scratch, Stepper};
use std::collections::BTreeSet;

/// Gas that rotates steadily about the z axis; tracers at several radii, some inside and some outside a finer box.
const WHEEL: &str = r#"
scenario = "formula"

[initial]
density  = "1 + 0.3*x"
pressure = "1"
velocity_x = "-y"
velocity_y = "x"

[domain]
cells      = [16, 16, 16]
left_edge  = [-1.0, -1.0, -1.0]
right_edge = [1.0, 1.0, 1.0]
boundary   = "outflow"

[time]
end = 1.0

[mesh]
max_level       = 1
regrid_interval = 100

[[mesh.refine]]
criterion = "box"
left      = [0.1, -0.4, -0.4]
right     = [0.4, 0.4, 0.4]

[hydro]
frozen = true

[particles.species.dust]
moved_by = "gas"
initial  = { kind = "lattice", points = [8, 8, 8], keep = "x^2 + y^2 < 0.5 && abs(z) < 0.8" }
"#;

/// How far tracers are from where they would be, root mean square, after a step of this length has taken them through a unit of time.
fn error(dt: f64) -> f64 {
    let mut stepper = Stepper::new(WHEEL, &[&format!("time.max_step={dt}")]);
    let before = particles(&mut stepper, "dust");
    stepper.finish();
    let after = particles(&mut stepper, "dust");
    assert_eq!(before.len(), after.len());
    let (sin, cos) = 1.0f64.sin_cos();
    let wrong = before.iter().zip(&after).map(|(a, b)| {
        let [x, y, _] = a.position;
        let right = [cos * x - sin * y, sin * x + cos * y];
        (b.position[0] - right[0]).powi(2) + (b.position[1] - right[1]).powi(2)
    });
    (wrong.sum::<f64>() / before.len() as f64).sqrt()
}

#[test]
fn tracers_follow_the_gas_at_second_order() {
    let [coarse, fine] = [0.1, 0.05].map(error);
    let order = (coarse / fine).log2();
    assert!(
        fine < 1e-3 && order > 1.9 && order < 2.2,
        "{coarse:e} {fine:e} {order}"
    );
}

#[test]
fn tracers_are_identical_on_any_number_of_ranks() {
    let all = |ranks| {
        let settings = ["time.max_steps=5", "time.max_step=0.08"];
        let found = on_ranks(ranks, WHEEL, &settings, |stepper| {
            stepper.steps(5);
            let dust = particles(stepper, "dust");
            dust.iter().map(bits).collect::<Vec<_>>()
        });
        let mut all = found.concat();
        all.sort_unstable();
        all
    };
    assert_eq!(all(1), all(3));
}

#[test]
fn invalid_tracers_are_refused() {
    let refused = |settings: &[&str]| {
        let refused = Simulation::new(deck(WHEEL, settings)).err();
        refused.expect("they are refused").to_string()
    };
    let why = refused(&["particles.species.dust.mass=1.0", "time.max_step=0.1"]);
    assert!(why.contains("has no mass"), "{why}");
    let why = refused(&[]);
    assert!(why.contains("add `time.max_step`"), "{why}");
}

/// Both kinds of tracers in gas that streams through refined boxes which move.
const STREAM: &str = r#"
scenario = "formula"

[initial]
density    = "1 + 0.5*sin(pi*x)*cos(2*pi*y)"
pressure   = "1"
velocity_x = "0.8"
velocity_y = "0.5*sin(pi*x)"
velocity_z = "-0.4"

[domain]
cells      = [32, 16, 16]
left_edge  = [0.0, 0.0, 0.0]
right_edge = [2.0, 1.0, 1.0]
boundary   = "periodic"

[time]
end = 1.0

[mesh]
max_level       = 2
regrid_interval = 1
flag_buffer     = 1

[[mesh.refine]]
criterion = "formula"
when      = "max(abs(x - 0.8 - 2*t), max(abs(y - 0.4), abs(z - 0.5))) < if(level > 0, 0.06, 0.14)"

[particles.species.dust]
moved_by = "gas"
initial  = { kind = "lattice", points = [20, 10, 10] }

[particles.species.dye]
moved_by = "mass-fluxes"
initial  = { kind = "lattice", points = [10, 10, 10] }
"#;

/// Tracers that fly by gas beside stars that fall.
const FALLING: [&str; 2] = [
    "gravity.cycles=2",
    "particles.species.stars={ mass = 0.001, initial = { kind = 'lattice', points = [4, 4, 4] } }",
];

/// Digests of the snapshots of a run, of several if it goes on from its latest one; each on as many ranks, with a device, to a number of steps.
fn stream(parts: &[(usize, &str, u32)], settings: &[&str]) -> Vec<String> {
    let scratch = Scratch::new();
    for (n, (ranks, device, steps)) in parts.iter().enumerate() {
        let (device, steps) = (
            format!("run.device={device}"),
            format!("time.max_steps={steps}"),
        );
        let own = [
            "output.steps=1",
            "output.final=true",
            "run.imbalance=1.01",
            &device,
            &steps,
        ];
        let settings = [&own[..], settings].concat();
        let options = (0..*ranks).map(|_| quietly_into(&scratch.run(), n > 0));
        for ended in run_on_ranks(STREAM, &settings, options.collect()) {
            ended.unwrap_or_else(|e| panic!("{parts:?}, {settings:?}: {e}"));
        }
    }
    let digests = digests(&scratch.run()).into_iter();
    digests.map(|(_, digest)| digest).collect()
}

#[test]
fn tracers_move_identically_on_devices_and_host() {
    if open().is_err() {
        return;
    }
    let shuffle = "particles.shuffle=true";
    // they go from device to device where no entity can follow them
    let [dust, dye] =
        ["dust", "dye"].map(|name| format!("particles.species.{name}.entities=on-demand"));
    // more gas around a patch than shared memory has room for
    let many: Vec<String> = (0..12).map(|n| format!("'s{n}'")).collect();
    let many = format!("hydro.scalars=[{}]", many.join(","));
    // the periodic box without more is that of the test of restarts
    const WALLS: [&str; 2] = ["domain.boundary=reflecting", "gravity.boundary=isolated"];
    let cases: [(usize, &[&str]); 3] = [
        (3, &["run.precision=single", shuffle, &dust, &dye]),
        (2, &["domain.boundary=outflow", &many]),
        (1, &[&FALLING[..], &WALLS].concat()),
    ];
    for (ranks, case) in cases {
        let cpu = stream(&[(1, "cpu", 2)], case);
        assert_eq!(cpu.len(), 2, "{case:?}");
        let device = stream(&[(ranks, "emulated", 2)], case);
        assert_eq!(cpu, device, "{ranks} ranks, {case:?}");
    }
}

#[test]
fn tracers_are_identical_after_a_restart_on_other_devices() {
    if open().is_err() {
        return;
    }
    let whole = stream(&[(1, "cpu", 3)], &[]).pop();
    for (before, then) in [((2, "emulated"), (1, "cpu")), ((1, "cpu"), (2, "emulated"))] {
        let parts = [(before.0, before.1, 1), (then.0, then.1, 3)];
        assert_eq!(whole, stream(&parts, &[]).pop(), "{before:?}, {then:?}");
    }
}

#[test]
fn tracer_kernels_move_and_migrate_tracers_without_the_host() {
    if open().is_err() {
        return;
    }
    let mut stepper = Stepper::new(STREAM, &[SETTING]);
    let launches = |stepper: &mut Stepper| {
        let world = &stepper.0.engine().world;
        let device = world.resource::<ComputeDevice>().device.clone();
        let kernels = device.expect("there is one").counters().kernels;
        ["advect", "jump", "remap", "insert_pages"].map(|name| {
            let name = format!("particles_{name}");
            let own = kernels.iter().filter(|kernel| kernel.name == name);
            own.map(|kernel| kernel.launches).sum::<u64>()
        })
    };
    stepper.steps(1);
    let before = launches(&mut stepper);
    let patches = |stepper: &mut Stepper| {
        let topology = stepper.0.engine().world.resource::<Topology>();
        let of_level = |level| topology.rows(level).iter().map(|&row| topology.index(row));
        of_level(1).chain(of_level(2)).collect::<BTreeSet<_>>()
    };
    let begun = patches(&mut stepper);
    stepper.steps(4);
    assert_ne!(begun, patches(&mut stepper), "patches have come and gone");
    let after = launches(&mut stepper);
    let [advect, jump, remap, insert] = [0, 1, 2, 3].map(|n| after[n] - before[n]);
    assert!(advect > 10 && jump > 10 && remap > 0, "{after:?}");
    // what comes in pages of the host costs two of the one and one of the other
    assert!(4 * insert < remap, "{before:?} {after:?}");
}
