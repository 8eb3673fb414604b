//! A particle does not feel itself.

use super::particles;
use bevy_ecs::prelude::*;
use nestar::engine::mesh::Topology;
use nestar::prelude::*;
use nestar::systems::particles::{AllSpecies, Particle};
use nestar_tests::Stepper;

/// A lone body on its way through refined boxes in empty space.
const ALONE: &str = r#"
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
cloud        = "cic"
acceleration = 0.0

[particles.species.star]
mass    = 1e-6
initial = { kind = "bodies", bodies = [{ position = [-0.83, -0.81, -0.84], velocity = [1.0, 0.97, 1.02] }] }
"#;

/// What is felt at the end of each step of each level.
#[derive(Resource, Default)]
struct Felt(Vec<(usize, Particle)>);

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
    clock: Res<LevelClock>,
    all: Res<AllSpecies>,
    mut felt: ResMut<Felt>,
) -> Result<(), Error> {
    let star = all.named("star")?.particles(&topology)?;
    felt.0.extend(star.into_iter().map(|star| (clock.level, star)));
    Ok(())
}

/// The largest acceleration that it has on its way, over that by a neighbour at two cells of its level, by level; and how much its velocity
/// has changed.
fn felt(settings: &[&str], steps: usize) -> (Vec<f64>, f64) {
    let sim = nestar_tests::build(ALONE, settings).add(Watch);
    let mut stepper = Stepper::of(sim.expect("the plugin fits"));
    let first = particles(&mut stepper, "star")[0];
    for _ in 0..steps {
        if !particles(&mut stepper, "star").is_empty() {
            stepper.steps(1);
        }
    }
    let felt = &stepper.0.engine().world.resource::<Felt>().0;
    let mut most = vec![0.0f64; 3];
    let size = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    for (level, star) in felt {
        let width = 2.0 / f64::from(32 << star.level);
        let unit = star.mass / (2.0 * width).powi(2);
        let force = size(star.acceleration) / unit;
        if force > 1e-3 && std::env::var("SHOW").is_ok() {
            println!("{level} {} {:.3?} {force:.3e}", star.level, star.position.map(|x| (x + 1.0) * 16.0));
        }
        most[star.level] = most[star.level].max(force);
    }
    let last = felt.last().map_or(first, |(_, star)| *star);
    let change = [0, 1, 2].map(|axis| (last.velocity[axis] / first.velocity[axis] - 1.0).abs());
    (most, change.into_iter().fold(0.0, f64::max))
}

#[test]
fn a_lone_particle_flies_straight() {
    for cloud in ["cic", "tsc"] {
        let cloud = format!("particles.cloud={cloud}");
        let (uniform, _) = felt(&[&cloud, "mesh.max_level=0"], 60);
        assert!(uniform[0] < 1e-12, "{cloud}: {uniform:?}");
        let settings: Vec<String> = std::env::var("SET").unwrap_or_default().split(';').map(String::from).collect();
        let settings: Vec<&str> = settings.iter().map(|s| &**s).filter(|s| !s.is_empty()).collect();
        for way in ["[1.0, 0.97, 1.02]", "[1.0, 0.83, 0.84]"] {
            let bodies = format!(
                "particles.species.star.initial.bodies=[{{position=[-0.83,-0.81,-0.84], velocity={way}}}]"
            );
            let (most, change) = felt(&[&settings[..], &[&cloud, &bodies]].concat(), 100);
            println!("{cloud} {way}: {most:.3?} {change:e}");
        }
    }
}
