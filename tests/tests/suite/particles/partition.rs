//! Patches are partitioned among ranks by their particles.

use super::determinism::CLUMP;
use super::{bits, particles};
use nestar::engine::data::ParticleSet;
use nestar::engine::mesh::Topology;
use nestar::systems::particles::SpeciesMap;
use nestar_tests::Scratch;
use nestar_tests::ranks::{joined, on_ranks, run_on_ranks};
use nestar_tests::runs::{digests, quietly_into};

/// Particles at rest, all in a corner of a refined box, without any force.
const CORNER: &str = r#"
scenario = "formula"

[initial]
density  = "1"
pressure = "1"

[domain]
cells = [32, 32, 32]

[time]
end      = 1.0
max_step = 0.001

[mesh]
max_level       = 1
regrid_interval = 1
flag_buffer     = 0

[[mesh.refine]]
criterion = "box"
left      = [0.0, 0.0, 0.0]
right     = [0.99, 0.49, 0.49]

[hydro]
frozen = true

[particles.species.dark]
mass    = 0.0
initial = { kind = "random", count = 20000, position = ["0.45*u0", "0.45*u1", "0.45*u2"] }
"#;

/// By rank: patches of level 1, particles in them, and the most particles of eight siblings.
fn shares(ranks: usize, settings: &[&str]) -> Vec<[usize; 3]> {
    on_ranks(ranks, CORNER, settings, |stepper| {
        stepper.steps(3);
        let all = particles(stepper, "dark").len();
        let world = &stepper.0.engine().world;
        let topology = world.resource::<Topology>();
        let species = world
            .resource::<SpeciesMap>()
            .named("dark")
            .expect("it is there");
        let rows = topology.rows(1);
        let octets = rows
            .chunks(8)
            .map(|octet| octet.iter().map(|&row| species.count(row)).sum());
        let held: usize = rows.iter().map(|&row| species.count(row)).sum();
        assert_eq!(held, all, "all are on level 1");
        [rows.len(), held, octets.max().unwrap_or(0)]
    })
}

/// The work of a rank, in patches without particles.
fn cost([patches, held, _]: &[usize; 3], weight: f64) -> f64 {
    *patches as f64 + weight * *held as f64 / 512.0
}

#[test]
fn a_clump_of_particles_shifts_the_partition() {
    let plain = shares(2, &["particles.weight=0", "run.imbalance=1.01"]);
    assert_eq!(
        plain.iter().map(|share| share[0]).collect::<Vec<_>>(),
        [64, 64],
        "by patches"
    );
    assert_eq!(plain[0][1], 20_000, "the clump has one owner: {plain:?}");
    for (ranks, weight) in [(2, 20.0), (3, 2.0)] {
        let settings = [&format!("particles.weight={weight}"), "run.imbalance=1.01"];
        let found = shares(ranks, &settings);
        let sum = |n: usize| found.iter().map(|share| share[n]).sum::<usize>();
        assert_eq!([sum(0), sum(1)], [128, 20_000], "{found:?}");
        let costs = found.iter().map(|share| cost(share, weight));
        let (most, all) = costs.fold((0.0f64, 0.0), |(most, all), cost| {
            (most.max(cost), all + cost)
        });
        // octets are kept whole
        let octets = found.iter().map(|share| cost(&[8, share[2], 0], weight));
        let octet = octets.fold(0.0, f64::max);
        assert!(
            most <= all / ranks as f64 + octet,
            "weight {weight}: {found:?}"
        );
        assert!(
            found[0][0] < plain[0][0] && found[0][1] < 20_000,
            "weight {weight}: {found:?}"
        );
    }
}

/// Settings for a clump of particles that moves through a uniform box and is a quarter of it wide.
const QUARTER: [&str; 4] = [
    "mesh={}",
    "particles.weight=10",
    r#"particles.species.dark.initial={ kind = "random", count = 20000, position = ["u0", "0.48*u1", "0.48*u2"], velocity = ["1", "9", "5*u1"] }"#,
    "time.max_step=0.01",
];

#[test]
fn the_root_grid_is_partitioned_by_particle_counts() {
    let found = |ranks: usize| {
        let parts = on_ranks(ranks, CORNER, &QUARTER, |stepper| {
            stepper.steps(4);
            let work = stepper.counters().work;
            let dark: Vec<_> = particles(stepper, "dark").iter().map(bits).collect();
            (work.imbalance(ranks), dark, stepper.state())
        });
        let busiest: Vec<f64> = parts.iter().map(|part| part.0).collect();
        assert!(busiest.iter().all(|other| *other == busiest[0]));
        let mut dark: Vec<_> = parts.iter().flat_map(|part| part.1.clone()).collect();
        dark.sort_unstable();
        let states = parts.into_iter().map(|part| part.2).collect();
        (busiest[0], dark, joined(states))
    };
    let (_, dark, state) = found(1);
    // sixteen patches have all particles and nearly all work
    for (ranks, most) in [(2, 0.1), (3, 0.25)] {
        let (imbalance, theirs, other) = found(ranks);
        assert!(imbalance < most, "{imbalance} on {ranks} ranks");
        assert!(theirs == dark, "{ranks} ranks");
        assert_eq!(state.difference(&other), None);
    }
}

#[test]
fn a_resumed_run_partitions_the_root_grid_by_particle_counts() {
    let scratch = Scratch::new();
    let run = |name: &str, ranks: usize, resume: bool, steps: usize| {
        let steps = format!("time.max_steps={steps}");
        let settings = [&QUARTER[..], &["output.final=true", &steps]].concat();
        let options = (0..ranks).map(|_| quietly_into(&scratch.path().join(name), resume));
        for ended in run_on_ranks(CORNER, &settings, options.collect()) {
            ended.unwrap_or_else(|e| panic!("{e}"));
        }
        let directory = scratch.path().join(name);
        let text = std::fs::read_to_string(directory.join("diagnostics.csv")).expect("it is there");
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        let place = lines[0].iter().position(|name| *name == "imbalance");
        let imbalance = lines
            .last()
            .map(|line| line[place.expect("the column")].to_string());
        (
            imbalance,
            digests(&directory).pop().map(|(_, digest)| digest),
        )
    };
    let (_, whole) = run("whole", 1, false, 2);
    run("parts", 1, false, 1);
    let (imbalance, digest) = run("parts", 2, true, 2);
    assert_eq!(digest, whole);
    let imbalance: f64 = imbalance.expect("a line").parse().expect("a number");
    assert!((0.0..0.1).contains(&imbalance), "{imbalance}");
}

#[test]
fn root_patches_migrate_beneath_finer_levels_with_their_particles() {
    let settings = [
        "particles.weight=50",
        "run.imbalance=1.0",
        "time.max_steps=4",
    ];
    let cuts = on_ranks(3, CLUMP, &settings, |stepper| {
        [0; 4].map(|_| {
            stepper.steps(1);
            let topology = stepper.0.engine().world.resource::<Topology>();
            topology.partition().starts(0).to_vec()
        })
    });
    let moved = cuts[0].windows(2).filter(|two| two[0] != two[1]).count();
    assert!(moved > 0, "{cuts:?}");
    let digest = |ranks: usize, device: &str| {
        let scratch = Scratch::new();
        let device = format!("run.device={device}");
        let settings = [&settings[..], &["output.final=true", &device]].concat();
        let options = (0..ranks).map(|_| quietly_into(&scratch.run(), false));
        for ended in run_on_ranks(CLUMP, &settings, options.collect()) {
            ended.unwrap_or_else(|e| panic!("{e}"));
        }
        digests(&scratch.run()).pop().map(|(_, digest)| digest)
    };
    let alone = digest(1, "cpu");
    let emulated = crate::device_runs::emulation().then_some((2, "emulated"));
    for (ranks, device) in [(3, "cpu")].into_iter().chain(emulated) {
        assert_eq!(digest(ranks, device), alone, "{ranks} ranks, {device}");
    }
}
