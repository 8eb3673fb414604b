//! Spheres of particles and gas stay in equilibrium.

use super::particles;
use nestar::systems::particles::Particle;
use nestar_tests::{State, Stepper};

/// A moving Plummer sphere of mass and radius 1, a tenth of it gas.
const BALL: &str = r#"
scenario = "spheres"

[spheres.ball]
velocity       = [0.05, 0.0, 0.0]
particles.dark = { kind = "plummer", mass = 0.9, radius = 1.0 }
gas            = { profile = { kind = "plummer", mass = 0.1, radius = 1.0 }, radius = 5.0 }
truncation     = 7.5

[ambient]
density  = 1e-6
pressure = 1e-6

[domain]
cells      = [32, 32, 32]
left_edge  = [-8.0, -8.0, -8.0]
right_edge = [8.0, 8.0, 8.0]
boundary   = "outflow"

[time]
end = 2.5

[mesh]
max_level   = 1
flag_buffer = 0
refine      = [{ criterion = "sphere", centre = [0.0, 0.0, 0.0], radius = 2.0 }]

[hydro]
gamma   = "5/3"
scalars = ["ball"]

[gravity]

[particles.species.dark]
initial = { kind = "sphere", sphere = "ball", component = "dark", count = 20000, seed = 1 }
"#;

/// Twice the kinetic energy over the virial of the accelerations, and the radius that holds half of the particles; about their centre.
fn shape(particles: &[Particle]) -> (f64, f64) {
    let count = particles.len() as f64;
    let mean = |of: fn(&Particle) -> [f64; 3]| {
        let sum = |axis| particles.iter().map(|p| of(p)[axis]).sum::<f64>();
        [0, 1, 2].map(|axis| sum(axis) / count)
    };
    let (centre, motion) = (mean(|p| p.position), mean(|p| p.velocity));
    let (mut kinetic, mut virial, mut radii) = (0.0, 0.0, Vec::new());
    for p in particles {
        let x = [0, 1, 2].map(|a| p.position[a] - centre[a]);
        let v = [0, 1, 2].map(|a| p.velocity[a] - motion[a]);
        kinetic += v.iter().map(|v| v * v).sum::<f64>();
        virial -= x
            .iter()
            .zip(p.acceleration)
            .map(|(x, a)| x * a)
            .sum::<f64>();
        radii.push(x.iter().map(|x| x * x).sum::<f64>().sqrt());
    }
    radii.sort_by(f64::total_cmp);
    (kinetic / virial, radii[radii.len() / 2])
}

/// Mass of the gas of the ball, its momentum along x, and its largest density.
fn gas(state: &State) -> (f64, f64, f64) {
    let mut found = (0.0, 0.0, 0.0f64);
    state.each_leaf_cell(|_, _, volume, u| {
        found.0 += u[5] * volume;
        found.1 += u[1] * volume;
        found.2 = found.2.max(u[0]);
    });
    found
}

#[test]
fn spheres_of_particles_and_gas_stay_in_equilibrium() {
    let mut stepper = Stepper::new(BALL, &[]);
    let (virial, half) = shape(&particles(&mut stepper, "dark"));
    let (mass, momentum, density) = gas(&stepper.state());
    println!("{virial} {half} {mass} {momentum} {density}");
    // of the profiles, cut off; the cells round the force off
    assert!((virial - 1.0).abs() < 0.05, "{virial}");
    assert!((half - 1.27).abs() < 0.03, "{half}");
    assert!(
        (mass / (0.1 * (1.0f64 + 0.04).powf(-1.5)) - 1.0).abs() < 0.01,
        "{mass}"
    );
    assert!((momentum / (0.05 * mass) - 1.0).abs() < 1e-3, "{momentum}");
    stepper.finish();
    let (later, wider) = shape(&particles(&mut stepper, "dark"));
    let (_, _, thinner) = gas(&stepper.state());
    println!("{later} {wider} {thinner}");
    assert!((later - 1.0).abs() < 0.03, "{later}");
    assert!((wider / half - 1.0).abs() < 0.03, "{wider} {half}");
    assert!((thinner / density - 1.0).abs() < 0.1, "{thinner} {density}");
}
