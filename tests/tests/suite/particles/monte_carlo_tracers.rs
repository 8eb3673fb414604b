//! Monte Carlo tracers: they stay distributed like the gas in supersonic turbulence on two levels and under refinement.

use super::{bits, particles};
use nestar::engine::mesh::Topology;
use nestar::systems::fields::Gas;
use nestar_tests::Stepper;
use nestar_tests::ranks::on_ranks;

const DECK: &str = include_str!("../../../../scenarios/tracers-turbulence.toml");

/// The shipped deck on a mesh of half as many cells along each axis.
const SMALL: [&str; 4] = [
    "domain.cells=[16, 16, 16]",
    "particles.species.mass.initial.count=65536",
    "particles.species.paths.initial.count=65536",
    "time.end=0.1",
];

/// Gas at rest whose density varies by a factor of 150, and a mesh that becomes twice as fine behind the first step.
const STEEP: &str = r#"
scenario = "formula"

[initial]
samples  = 4
density  = "exp(1.2*cos(2*pi*x) + 0.8*sin(2*pi*y) + 0.5*cos(2*pi*z))"
pressure = "1"

[domain]
cells      = [8, 8, 8]
left_edge  = [0.0, 0.0, 0.0]
right_edge = [1.0, 1.0, 1.0]
boundary   = "periodic"

[time]
end = 1.0

[mesh]
max_level       = 1
regrid_interval = 1

[[mesh.refine]]
criterion = "formula"
when      = "t > 0"

[particles.species.mass]
moved_by = "mass-fluxes"

[particles.species.mass.initial]
kind     = "random"
count    = 300000
position = ["u0", "u1", "u2"]
keep     = "ln(u3) + 2.5 < 1.2*cos(2*pi*u0) + 0.8*sin(2*pi*u1) + 0.5*cos(2*pi*u2)"
"#;

/// The mass of gas in each of 16^3 cubes, by levels: of whole cells.
fn masses(stepper: &mut Stepper) -> Vec<f64> {
    let world = &stepper.0.engine().world;
    let topology = world.resource::<Topology>();
    let gas = nestar::engine::data::Pool::<Gas>::of(world);
    let mut cubes = vec![0.0; 4096];
    for level in 0..=topology.finest() {
        for &row in topology
            .rows(level)
            .iter()
            .filter(|&&row| topology.is_leaf(row))
        {
            let (values, index) = (
                gas.host::<f64>(level, &[row]).expect("values"),
                topology.index(row),
            );
            for (cell, density) in values[..512].iter().enumerate() {
                let at = [cell % 8, cell / 8 % 8, cell / 64];
                let side = (8 * topology.domain.root[0] as usize) << level;
                let cube = [0, 1, 2].map(|a| (8 * index[a] as usize + at[a]) * 16 / side);
                cubes[cube[0] + 16 * (cube[1] + 16 * cube[2])] +=
                    density * topology.domain.cell_volume(level);
            }
        }
    }
    cubes
}

/// The scatter of counts in cubes, in units of what independent tracers of the mass would have.
fn scatter(stepper: &mut Stepper, species: &str) -> f64 {
    let (masses, mut counts) = (masses(stepper), vec![0.0; 4096]);
    let all = particles(stepper, species);
    for particle in &all {
        let cube = particle.position.map(|x| (x * 16.0) as usize);
        counts[cube[0] + 16 * (cube[1] + 16 * cube[2])] += 1.0;
    }
    let total: f64 = masses.iter().sum();
    let apart = masses.iter().zip(&counts).map(|(mass, count)| {
        let expected = all.len() as f64 * mass / total;
        (count - expected) * (count - expected) / expected
    });
    apart.sum::<f64>() / 4096.0
}

#[test]
fn monte_carlo_tracers_follow_the_mass() {
    let mut stepper = Stepper::new(DECK, &SMALL);
    stepper.finish();
    let densities = masses(&mut stepper);
    let contrast = densities.iter().fold(0.0f64, |a, &b| a.max(b)) * 4096.0;
    let finest = stepper.0.engine().world.resource::<Topology>().finest();
    assert!(contrast > 3.0 && finest == 1, "{contrast} {finest}");
    let [mass, paths] = ["mass", "paths"].map(|name| scatter(&mut stepper, name));
    assert!(
        (0.9..1.1).contains(&mass),
        "{mass}, those of velocities {paths}"
    );
    assert!(paths > 1.5, "{paths}");
}

#[test]
fn monte_carlo_tracers_enter_refined_cells_by_mass() {
    let mut stepper = Stepper::new(STEEP, &[]);
    let levels = |stepper: &mut Stepper| stepper.0.engine().world.resource::<Topology>().finest();
    assert_eq!(levels(&mut stepper), 0);
    stepper.steps(1);
    assert_eq!(levels(&mut stepper), 1);
    // each of the 4096 cells of the finer level by itself: 1 with a deviation of 0.023
    let scatter = scatter(&mut stepper, "mass");
    assert!((0.95..1.05).contains(&scatter), "{scatter}");
}

#[test]
fn monte_carlo_draws_are_identical_on_all_ranks() {
    let all = |ranks| {
        let settings = [
            &SMALL[..],
            &[
                "time.max_steps=4",
                "particles.species.mass.initial.count=8192",
                "particles.species.paths.initial.count=8",
            ],
        ]
        .concat();
        let found = on_ranks(ranks, DECK, &settings, |stepper| {
            stepper.steps(4);
            let tracers = particles(stepper, "mass");
            tracers.iter().map(bits).collect::<Vec<_>>()
        });
        let mut all = found.concat();
        all.sort_unstable();
        all
    };
    let one = all(1);
    assert_eq!(one.len(), 8192);
    assert!(one == all(3));
}
