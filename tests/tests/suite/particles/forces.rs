//! Forces on particles: no self-force, and Newton's law between two.

use super::particles;
use bevy_ecs::prelude::*;
use nestar::engine::mesh::Topology;
use nestar::prelude::*;
use nestar::systems::particles::{Particle, SpeciesMap};
use nestar_tests::Stepper;
use nestar_tests::random::Random;

/// Bodies in empty space with refined boxes.
pub(super) const SPACE: &str = r#"
scenario = "formula"

[initial]
density  = "1e-20"
pressure = "1e-20"

[domain]
cells      = [32, 32, 32]
left_edge  = [-1.0, -1.0, -1.0]
right_edge = [1.0, 1.0, 1.0]
boundary   = "outflow"

[time]
end = 1e9

[mesh]
max_level       = 2
regrid_interval = 1000
flag_buffer     = 0

[[mesh.refine]]
criterion = "box"
left      = [-0.49, -0.49, -0.49]
right     = [0.49, 0.49, 0.49]
level     = 1

[[mesh.refine]]
criterion = "box"
left      = [-0.1, -0.1, -0.1]
right     = [0.1, 0.1, 0.1]

[hydro]
frozen = true

[gravity]

[particles]
acceleration = 0.0

[particles.species.star]
mass    = 1e-6
initial = { kind = "bodies", bodies = [] }
"#;

/// The setting for bodies with these positions and velocities.
pub(super) fn bodies(bodies: &[([f64; 3], [f64; 3])]) -> String {
    let body = |(position, velocity): &([f64; 3], [f64; 3])| {
        format!("{{position={position:?}, velocity={velocity:?}}}")
    };
    let bodies: Vec<String> = bodies.iter().map(body).collect();
    let bodies = bodies.join(",");
    format!("particles.species.star.initial.bodies=[{bodies}]")
}

pub(super) fn size(v: [f64; 3]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Width of a cell of a level.
fn width(level: usize) -> f64 {
    2.0 / f64::from(32 << level)
}

/// The acceleration of a body over that by a neighbour of its mass at two cells of its level.
fn felt(star: &Particle) -> f64 {
    size(star.acceleration) / (star.mass / (2.0 * width(star.level)).powi(2))
}

/// Places about faces, edges and corners of the refined boxes.
fn places(random: &mut Random) -> Vec<[f64; 3]> {
    let place = |n: usize| {
        let mut place = [(); 3].map(|()| random.between(-0.3, 0.3));
        for axis in 0..1 + n % 3 {
            place[axis] = random.between(0.3, 0.7);
        }
        place
    };
    (0..3).map(place).collect()
}

#[test]
fn a_particle_at_rest_has_no_self_force() {
    let places = places(&mut Random::new(7));
    for cloud in ["ngp", "cic", "tsc"] {
        let cloud = format!("particles.cloud=\"{cloud}\"");
        // on a uniform mesh all positions are equivalent
        for (levels, most, count) in [
            ("mesh.max_level=0", 1e-12, 1),
            ("mesh.max_level=2", 1e-3, 3),
        ] {
            for &place in places.iter().take(count) {
                let settings = [&*cloud, levels, &bodies(&[(place, [0.0; 3])])];
                let star = particles(&mut Stepper::new(SPACE, &settings), "star").swap_remove(0);
                let felt = felt(&star);
                assert!(felt < most, "{cloud} {levels} {place:?}: {felt:e}");
            }
        }
    }
}

/// The force at the end of each step of each level.
#[derive(Resource, Default)]
struct Felt(Vec<Particle>);

struct Watch;

impl Plugin for Watch {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.world.insert_resource(Felt::default());
        sim.system_in(Advance::Sources, watch);
        Ok(())
    }
}

fn watch(
    topology: Res<Topology>,
    all: Res<SpeciesMap>,
    mut felt: ResMut<Felt>,
) -> Result<(), Error> {
    let star = all.named("star")?.particles(&topology)?;
    felt.0.extend(star);
    Ok(())
}

/// The largest self-forces on a body that moves along a diagonal into all levels and out of them, half a cell of its level per step: at the ends
/// of the steps of its levels, and where all levels meet.
fn felt_on_the_way(settings: &[&str]) -> [f64; 2] {
    let bodies = bodies(&[([-0.63, -0.61, -0.64], [1.0, 0.97, 1.02])]);
    let settings = [settings, &[&bodies]].concat();
    let sim = nestar_tests::build(SPACE, &settings).add(Watch);
    let (mut stepper, mut together) = (Stepper::of(sim.expect("the plugin fits")), 0.0_f64);
    loop {
        let star = particles(&mut stepper, "star").swap_remove(0);
        together = together.max(felt(&star));
        if star.position[0] > 0.6 {
            break;
        }
        stepper.steps(1);
    }
    let stars = &stepper.0.engine().world.resource::<Felt>().0;
    [stars.iter().map(felt).fold(0.0, f64::max), together]
}

#[test]
fn a_lone_particle_flies_straight() {
    let [uniform, _] = felt_on_the_way(&["mesh.max_level=0"]);
    assert!(uniform < 1e-12, "{uniform:e}");
    // a cell of a level per step
    let [alone, together] = felt_on_the_way(&["particles.courant=1.0"]);
    println!("{alone:e} at the ends of steps, {together:e} where levels meet");
    assert!(alone < 2.5e-3, "{alone:e}");
    assert!(together < 5e-4, "{together:e}");
}

/// Pairs at each distance.
const PAIRS: usize = 6;

#[test]
fn two_particles_attract_by_newtons_law() {
    for (cloud, levels, most) in [
        ("cic", &[0, 2][..], [0.035, 0.011, 0.005]),
        ("tsc", &[2], [0.025, 0.009, 0.0045]),
    ] {
        for &level in levels {
            let mut random = Random::new(5);
            for (cells, most) in [4.0, 8.0, 12.0].into_iter().zip(most) {
                let sum: f64 = (0..PAIRS)
                    .map(|_| wrong(&mut random, cloud, level, cells))
                    .sum();
                let rms = (sum / (2 * PAIRS) as f64).sqrt();
                assert!(rms < most, "{cloud}, level {level}, {cells} cells: {rms}");
            }
        }
    }
}

/// Squared errors of the forces on two bodies at the given distance in cells, relative to Newton's law.
fn wrong(random: &mut Random, cloud: &str, level: usize, cells: f64) -> f64 {
    let width = width(level);
    let way = loop {
        let way = [(); 3].map(|()| random.between(-1.0, 1.0));
        if size(way) < 1.0 {
            break way.map(|x| x / size(way));
        }
    };
    let middle = [(); 3].map(|()| width * random.between(0.0, 1.0));
    let at = |side: f64| [0, 1, 2].map(|a| middle[a] + side * way[a] * 0.5 * cells * width);
    let settings = [
        format!("particles.cloud=\"{cloud}\""),
        format!("mesh.max_level={level}"),
        bodies(&[(at(-1.0), [0.0; 3]), (at(1.0), [0.0; 3])]),
    ];
    let settings: Vec<&str> = settings.iter().map(|s| &**s).collect();
    let stars = particles(&mut Stepper::new(SPACE, &settings), "star");
    let error = |(star, sign): (&Particle, f64)| {
        let newton = star.mass / (cells * width).powi(2);
        let wrong = [0, 1, 2].map(|a| star.acceleration[a] / newton - sign * way[a]);
        size(wrong).powi(2)
    };
    stars.iter().zip([1.0, -1.0]).map(error).sum()
}
