//! Tracers that gas takes along.

use super::{bits, particles};
use nestar::Simulation;
use nestar_tests::Stepper;
use nestar_tests::decks::deck;
use nestar_tests::ranks::on_ranks;

/// Gas that turns about the z axis and stays as it is; tracers at several radii, some in and some beyond a finer box.
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
fn tracers_follow_gas_in_second_order() {
    let [coarse, fine] = [0.1, 0.05].map(error);
    let order = (coarse / fine).log2();
    assert!(
        fine < 1e-3 && order > 1.9 && order < 2.2,
        "{coarse:e} {fine:e} {order}"
    );
}

#[test]
fn tracers_are_the_same_on_ranks() {
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
fn tracers_that_cannot_be_are_refused() {
    let refused = |settings: &[&str]| {
        let refused = Simulation::new(deck(WHEEL, settings)).err();
        refused.expect("they are refused").to_string()
    };
    let why = refused(&["particles.species.dust.mass=1.0", "time.max_step=0.1"]);
    assert!(why.contains("has no mass"), "{why}");
    let why = refused(&[]);
    assert!(why.contains("add `time.max_step`"), "{why}");
}
