//! Two bodies about each other.

use super::particles;
use nestar::systems::particles::Particle;
use nestar_tests::Stepper;

/// Two bodies of mass 1/2 in an orbit of eccentricity 1/2 whose apocentre they begin at, 20 cells apart.
pub(super) const TWO: &str = r#"
scenario = "formula"

[constants]
axis  = "2/3"
place = "0.5"
speed = 0.5773502691896258

[initial]
density  = "1e-12"
pressure = "1e-14"

[domain]
cells      = [64, 64, 64]
left_edge  = [-1.6, -1.6, -1.6]
right_edge = [1.6, 1.6, 1.6]
boundary   = "outflow"

[hydro]
frozen = true

[time]
end      = 40.0
max_step = 0.0171

[gravity]
coupling = "two-way"

[particles]
cloud = "tsc"

[particles.species.stars]
mass    = 0.5
initial = { kind = "bodies", bodies = [{ position = ["place + 0.013", 0.007, 0.021], velocity = [0, "0.5*speed", 0] }, { position = ["0.013 - place", 0.007, 0.021], velocity = [0, "-0.5*speed", 0] }] }
"#;

/// Energy of the orbit by mass, angular momentum along z, and momentum of two bodies of equal mass.
pub(super) fn orbit(bodies: &[Particle]) -> (f64, f64, f64) {
    let [a, b] = bodies else {
        panic!("two bodies: {bodies:?}");
    };
    let away = [0, 1, 2].map(|n| a.position[n] - b.position[n]);
    let speed = [0, 1, 2].map(|n| a.velocity[n] - b.velocity[n]);
    let square = |v: [f64; 3]| v.iter().map(|x| x * x).sum::<f64>();
    let momentum = [0, 1, 2].map(|n| a.velocity[n] + b.velocity[n]);
    let energy = 0.5 * square(speed) - 1.0 / square(away).sqrt();
    (energy, away[0] * speed[1] - away[1] * speed[0], square(momentum).sqrt())
}

#[test]
fn two_bodies_fall_towards_each_other() {
    let mut stepper = Stepper::new(TWO, &["time.max_steps=20"]);
    let before = orbit(&particles(&mut stepper, "stars"));
    stepper.steps(20);
    let after = orbit(&particles(&mut stepper, "stars"));
    assert!((after.0 / before.0 - 1.0).abs() < 0.01, "{before:?} {after:?}");
    assert!((after.1 / before.1 - 1.0).abs() < 0.01, "{before:?} {after:?}");
    assert!(after.2 < 1e-10, "{after:?}");
}

#[test]
fn ten_orbits() {
    let levels: usize = std::env::var("LEVELS").map_or(0, |l| l.parse().expect("a number"));
    let sweeps = std::env::var("SWEEPS").unwrap_or("2".into());
    let sweeps = format!("gravity.sweeps={sweeps}");
    for (cloud, levels) in [("tsc", levels)] {
        let cloud = format!("particles.cloud={cloud}");
        let levels = format!("mesh.max_level={levels}");
        let boxes = "mesh.refine=[{criterion=\"box\", left=[-0.2,-0.35,-0.35], right=[0.6,0.35,0.35]}]";
        let mut stepper = Stepper::new(TWO, &[&cloud, &levels, boxes, &sweeps, "time.end=100", "mesh.regrid_interval=100"]);
        let before = orbit(&particles(&mut stepper, "stars"));
        for n in 0..10 {
            let (mut least, mut most, mut at) = (f64::INFINITY, 0.0f64, before);
            for _ in 0..200 {
                stepper.steps(1);
                let bodies = particles(&mut stepper, "stars");
                let r: f64 = [0, 1, 2].map(|n| (bodies[0].position[n] - bodies[1].position[n]).powi(2)).iter().sum();
                let r = r.sqrt();
                least = least.min(r);
                if r > most {
                    (most, at) = (r, orbit(&bodies));
                }
            }
            println!("{cloud} {levels} orbit {n} t {:.3} E {:.5} L {:.5} p {:.3e} r {least:.4} {most:.4}", stepper.time(), at.0 / before.0 - 1.0, at.1 / before.1 - 1.0, at.2);
        }
    }
}
