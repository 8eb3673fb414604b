//! Particles beside reflecting faces feel the mirror images of all particles.

use super::forces::{SPACE, bodies, size};
use super::particles;
use nestar::systems::particles::Particle;
use nestar_tests::Stepper;

/// The quarter of the box with x > 0 and y < 0, between two mirrors.
const QUARTER: [&str; 4] = [
    "domain.cells=[16, 16, 32]",
    "domain.left_edge=[0, -1, -1]",
    "domain.right_edge=[1, 0, 1]",
    "domain.boundary={ x = [\"reflecting\", \"outflow\"], y = [\"outflow\", \"reflecting\"], z = \"outflow\" }",
];

/// Positions and velocities in the quarter. The first body flies through a mirror, and the second rests at one.
const BODIES: [([f64; 3], [f64; 3]); 5] = [
    ([0.011, -0.062, 0.043], [-1.0, 0.1, 0.0]),
    ([0.067, -0.004, -0.031], [0.0; 3]),
    ([0.017, -0.013, 0.3], [0.0, 0.3, 0.2]),
    ([0.53, -0.21, 0.13], [0.1, 0.2, -0.3]),
    ([0.08, -0.73, -0.6], [0.0; 3]),
];

/// Returns the bodies and their mirror images.
fn with_images() -> Vec<([f64; 3], [f64; 3])> {
    let image = |side: [f64; 3], (x, v): ([f64; 3], [f64; 3])| {
        (
            [0, 1, 2].map(|axis| side[axis] * x[axis]),
            [0, 1, 2].map(|axis| side[axis] * v[axis]),
        )
    };
    let sides = [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]];
    let all = |[x, y]: [f64; 2]| BODIES.map(|body| image([x, y, 1.0], body));
    sides.into_iter().flat_map(all).collect()
}

/// Returns the particles of the quarter after some steps, in the order of z.
fn stars(settings: &[&str], bodies: &str, steps: usize) -> Vec<Particle> {
    let mut run = Stepper::new(SPACE, &[settings, &[bodies]].concat());
    run.steps(steps);
    let mut stars = particles(&mut run, "star");
    stars.retain(|star| star.position[0] > 0.0 && star.position[1] < 0.0);
    stars.sort_by(|a, b| a.position[2].total_cmp(&b.position[2]));
    stars
}

/// Returns the largest differences of positions, and of accelerations relative to the largest one, between the quarter
/// and the whole box.
fn differences(settings: &[&str], steps: usize) -> [f64; 2] {
    let part = stars(&[settings, &QUARTER].concat(), &bodies(&BODIES), steps);
    let whole = stars(settings, &bodies(&with_images()), steps);
    assert_eq!([part.len(), whole.len()], [BODIES.len(); 2]);
    let apart = |a: [f64; 3], b: [f64; 3]| size([0, 1, 2].map(|axis| a[axis] - b[axis]));
    let (mut moved, mut felt, mut most) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (a, b) in part.iter().zip(&whole) {
        moved = moved.max(apart(a.position, b.position));
        felt = felt.max(apart(a.acceleration, b.acceleration));
        most = most.max(size(b.acceleration));
    }
    [moved, felt / most]
}

#[test]
fn particles_beside_mirrors_move_as_in_the_whole_box() {
    for cloud in ["cic", "tsc"] {
        let cloud = format!("particles.cloud=\"{cloud}\"");
        let settings = [
            &*cloud,
            "run.precision=double",
            "gravity.cycles=8",
            "gravity.initial_cycles=10",
        ];
        for (levels, steps, most) in [(0, 2, 1e-9), (2, 2, 1e-6)] {
            let levels = format!("mesh.max_level={levels}");
            let [moved, felt] = differences(&[&settings[..], &[&levels]].concat(), steps);
            assert!(
                moved < most && felt < most,
                "{cloud} {levels} {steps}: {moved:e} {felt:e}"
            );
        }
    }
}
