//! The algebra of the stress.

use super::*;

const SIDE: usize = 5;
const WIDTH: [f64; 3] = [0.3, 1.1, 0.7];

/// A rough potential that repeats itself.
fn potential(at: [usize; 3]) -> f64 {
    let n = at.iter().fold(7_u64, |n, x| {
        (n * 31 + (x % SIDE) as u64).wrapping_mul(2_654_435_761) % 1_000_003
    });
    n as f64 / 1_000_003.0
}

fn moved(at: [usize; 3], axis: usize, up: bool) -> [usize; 3] {
    let mut to = at;
    to[axis] = (at[axis] + if up { 1 } else { SIDE - 1 }) % SIDE;
    to
}

/// What flows through the upper face of a cell along `axis`: along it, the next axis, the one after it.
fn flow(at: [usize; 3], axis: usize, pull: f64) -> [f64; 3] {
    let axes = [axis, (axis + 1) % 3, (axis + 2) % 3];
    let around = |at| {
        let side = |n: usize, up| potential(moved(at, axes[n], up));
        [
            potential(at),
            side(1, false),
            side(1, true),
            side(2, false),
            side(2, true),
        ]
    };
    let (low, high) = (around(at), around(moved(at, axis, true)));
    let inverse = axes.map(|axis| 1.0 / WIDTH[axis]);
    [
        pressure(&low, &high, &inverse, pull),
        shear(&low, &high, &inverse, 0),
        shear(&low, &high, &inverse, 1),
    ]
}

#[test]
fn the_divergence_is_the_laplacian_times_the_slope() {
    let pull = 0.3;
    for n in 0..SIDE * SIDE * SIDE {
        let at = [n % SIDE, n / SIDE % SIDE, n / (SIDE * SIDE)];
        let side = |axis, up| potential(moved(at, axis, up));
        let bend = |axis: usize| {
            (side(axis, true) - 2.0 * potential(at) + side(axis, false)) / WIDTH[axis].powi(2)
        };
        let source = bend(0) + bend(1) + bend(2) + pull;
        for component in 0..3 {
            let slope = (side(component, true) - side(component, false)) / (2.0 * WIDTH[component]);
            let net = |axis: usize| {
                let of = |at| flow(at, axis, pull)[(component + 3 - axis) % 3];
                (of(at) - of(moved(at, axis, false))) / WIDTH[axis]
            };
            let found = net(0) + net(1) + net(2);
            assert!((found - source * slope).abs() < 1e-12, "{at:?} {component}");
        }
    }
}
