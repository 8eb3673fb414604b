//! The force between two single-cell masses against Ewald sums, and their self-force.

use super::leaves::{each_leaf_cell, norm};
use nestar_tests::Stepper;
use nestar_tests::ewald::Ewald;

/// Bodies of a cell of the finest level each at `+-place` along an axis in a periodic box of width 1.
const BODIES: &str = include_str!("../../../../scenarios/point-masses.toml");

/// Relative error of the force on either body; their distance is `cells` cells of the finest of `levels` levels.
fn error(levels: u32, cells: u32) -> f64 {
    let width = 1.0 / f64::from(32 << levels);
    let apart = f64::from(cells) * width;
    let settings = [
        format!("constants.levels={levels}"),
        format!("constants.apart={apart}"),
        "gravity.initial_cycles=8".to_string(),
    ];
    let mut run = Stepper::new(BODIES, &settings.each_ref().map(String::as_str));
    let place = ((apart / (2.0 * width)).floor() + 0.5) * width;
    let right = Ewald::new(1.0).pull([2.0 * place, 0.0, 0.0]).acceleration[0];
    let mut worst = 0.0_f64;
    each_leaf_cell(&mut run, |leaf| {
        let (x, a) = (leaf.centre, leaf.acceleration);
        for side in [-1.0, 1.0] {
            let from = [x[0] - side * place, x[1] - 0.5 * width, x[2] - 0.5 * width];
            if norm(from) < 0.1 * width {
                let wrong = norm([a[0] - side * right, a[1], a[2]]);
                worst = worst.max(wrong / right.abs());
            }
        }
    });
    worst
}

/// Figure 15 of the paper on GAMER (Schive, Tsai & Chiueh 2010) has such a test.
#[test]
fn two_cells_attract_each_other_as_point_masses() {
    for levels in [0, 1, 3] {
        let errors = [5, 9, 13].map(|cells| error(levels, cells));
        let most = if levels == 0 {
            [0.029, 0.0104, 0.0065]
        } else {
            [0.029, 0.0094, 0.0049]
        };
        assert!(
            errors.iter().zip(most).all(|(e, most)| *e < most),
            "{levels} levels: {errors:?}"
        );
    }
}

/// Two clouds of density (1 - (r/0.2)^2)^2 off the centre of an isolated box, in levels that follow the density.
const CLOUDS: &str = r#"
scenario = "formula"
[initial]
samples  = 4
density  = "1e-9 + max(1 - ((x-0.3)^2 + (y-0.25)^2 + (z+0.1)^2)/0.04, 0)^2 + 2*max(1 - ((x+0.35)^2 + (y+0.05)^2 + (z-0.3)^2)/0.04, 0)^2"
pressure = "0.01"
[domain]
cells = [32, 32, 32]
left_edge = [-1, -1, -1]
right_edge = [1, 1, 1]
boundary = "outflow"
[time]
end = 1.0
[mesh]
max_level = 2
flag_buffer = 4
refine = [{ criterion = "threshold", field = "density", threshold = [1e-6, 0.3] }]
[gravity]
initial_cycles = 12
"#;

/// Net force and torque over the sums of their parts.
fn net(settings: &[&str]) -> [f64; 2] {
    let mut run = Stepper::new(CLOUDS, settings);
    let (mut force, mut forces, mut torque, mut torques) = ([0.0; 3], 0.0, [0.0; 3], 0.0);
    each_leaf_cell(&mut run, |leaf| {
        let mass = leaf.density * leaf.width.powi(3);
        let (x, f) = (leaf.centre, leaf.acceleration.map(|a| mass * a));
        let turn = [0, 1, 2].map(|i| {
            let (j, k) = ((i + 1) % 3, (i + 2) % 3);
            x[j] * f[k] - x[k] * f[j]
        });
        for axis in 0..3 {
            force[axis] += f[axis];
            torque[axis] += turn[axis];
        }
        forces += norm(f);
        torques += norm(turn);
    });
    [norm(force) / forces, norm(torque) / torques]
}

#[test]
fn isolated_cells_have_no_self_force() {
    let [force, _] = net(&["mesh.max_level=0"]);
    assert!(force < 1e-14, "{force:e}");
    let [force, torque] = net(&[]);
    assert!(force < 1e-5 && torque < 1e-5, "{force:e} {torque:e}");
}
