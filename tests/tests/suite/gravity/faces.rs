//! Levels that touch the faces, edges and corners of an isolated domain: a compact cloud with a known potential near a corner.

use super::leaves::{Errors, each_leaf_cell, norm};
use super::{columns, stored};
use crate::device_runs::emulation;
use nestar::Simulation;
use nestar::engine::ranks::Ranks;
use nestar_tests::decks::deck;
use nestar_tests::ranks::{joined, on_ranks_of};
use nestar_tests::runs::{digests, quietly_into};
use nestar_tests::{Scratch, State, Stepper, build};
use std::f64::consts::PI;

/// A cloud of density (1 - (r/0.5)^2)^2 about (0.4, 0.35, 0.3) in a box from -1 to 1; what `where` is below is refined twice.
const CLOUD: &str = r#"
scenario = "formula"
[constants]
n = 16
[initial]
samples  = 4
density  = "1e-9 + max(1 - ((x-0.4)^2 + (y-0.35)^2 + (z-0.3)^2)/0.25, 0)^2"
pressure = "0.01"
[domain]
cells = ["n", "n", "n"]
left_edge = [-1, -1, -1]
right_edge = [1, 1, 1]
boundary = "outflow"
[time]
end = 1.0
[mesh]
max_level = 2
flag_buffer = 0
refine = [{ criterion = "threshold", field = "WHERE", below = true, threshold = [0.9, 0.6] }]
[gravity]
initial_cycles = 8
"#;

/// Everything is refined.
const EVERYWHERE: &str = "0";
/// Levels touch three faces, three edges and the corner between them.
const CORNER: &str = "max(max(1 - x, 1 - y), 1 - z) - 0.7";
/// Levels touch nothing.
const INSIDE: &str = "max(max(abs(x - 0.375), abs(y - 0.375)), abs(z - 0.375))*1.2";

fn cloud(refined: &str) -> String {
    CLOUD.replace("WHERE", refined)
}

/// Potential and acceleration of the cloud.
fn exact(x: [f64; 3]) -> (f64, [f64; 3]) {
    let d = [x[0] - 0.4, x[1] - 0.35, x[2] - 0.3];
    let (r, radius) = (norm(d), 0.5_f64);
    let s = (r / radius).min(1.0);
    let inside = 1.0 / 3.0 - 2.0 * s.powi(2) / 5.0 + s.powi(4) / 7.0;
    let mass = 4.0 * PI * (s * radius).powi(3) * inside;
    let above = 4.0 * PI * radius.powi(2) / 6.0 * (1.0 - s * s).powi(3);
    (-mass / r - above, d.map(|d| -mass * d / r.powi(3)))
}

/// Errors of potential and acceleration in all leaf cells of the finest level over the largest values, and the finest level's number.
fn errors(refined: &str, settings: &[&str]) -> [Errors; 2] {
    let mut errors = [Errors::default(), Errors::default()];
    let mut run = Stepper::new(&cloud(refined), settings);
    println!("{:?}", columns(&mut run).iter().filter(|c| c.0.starts_with("gravity") || c.0.starts_with("patches")).collect::<Vec<_>>());
    let mut worst = ([0.0; 3], 0.0, 0.0);
    each_leaf_cell(&mut run, |x, width, phi, a| {
        let (right, slope) = exact(x);
        errors[0].add((phi / right - 1.0).abs(), width.powi(3));
        let wrong = norm(std::array::from_fn(|i| a[i] - slope[i])) / 2.0;
        if wrong > worst.2 { worst = (x, width, wrong); }
        errors[1].add(wrong, width.powi(3));
    });
    println!("{refined} {settings:?}: {errors:?} worst {worst:?} means {:e} {:e}", errors[0].mean(), errors[1].mean());
    errors
}

#[test]
fn levels_at_faces_of_the_domain_have_the_exact_potential() {
    for refined in [INSIDE, CORNER, EVERYWHERE] {
        errors(refined, &[]);
        for cycles in 1..8 {
            let mut run = Stepper::new(&cloud(refined), &[&format!("gravity.initial_cycles={cycles}")]);
            println!("{cycles} {:?}", columns(&mut run).iter().filter(|c| c.0.starts_with("gravity")).map(|c| c.1).collect::<Vec<_>>());
        }
    }
}
