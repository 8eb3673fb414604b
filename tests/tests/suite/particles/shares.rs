//! Ranks share patches out by their particles.

use super::particles;
use nestar::engine::field::Items;
use nestar::engine::mesh::Topology;
use nestar::systems::particles::AllSpecies;
use nestar_tests::ranks::on_ranks;

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
            .resource::<AllSpecies>()
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

/// What a rank has to do, in patches without particles.
fn cost([patches, held, _]: &[usize; 3], weight: f64) -> f64 {
    *patches as f64 + weight * *held as f64 / 512.0
}

#[test]
fn a_clump_of_particles_shifts_the_cut() {
    let plain = shares(2, &["particles.weight=0", "run.imbalance=1.01"]);
    assert_eq!(
        plain.iter().map(|share| share[0]).collect::<Vec<_>>(),
        [64, 64],
        "by patches"
    );
    assert_eq!(plain[0][1], 20_000, "the clump has one owner: {plain:?}");
    for (ranks, weight) in [(2, 2.0), (2, 20.0), (3, 2.0), (3, 20.0)] {
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
