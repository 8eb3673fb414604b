//! Multigrid cycles on the root level: convergence rates, and accuracy of the multipole
//! expansion around an isolated domain.

use super::columns;
use super::leaves::{each_leaf_cell, norm};
use nestar_tests::{Stepper, build};

/// Two clouds of density (1 - (r/0.2)^2)^2, one twice as dense as the other, in an empty box of width 2, on the root level alone: a bit
/// off the middle, or farther.
const CLOUDS: &str = r#"
scenario = "formula"
[constants]
n = 32
at = 0
[initial]
samples  = 4
density  = "1e-12 + max(1 - ((x-at-0.3)^2 + (y+0.8*at)^2 + (z-0.6*at-0.2)^2)/0.04, 0)^2 + 0.5*max(1 - ((x-at+0.35)^2 + (y+0.8*at-0.2)^2 + (z-0.6*at)^2)/0.04, 0)^2"
pressure = "0.01"
[domain]
cells = ["n", "n", "n"]
left_edge = [-1, -1, -1]
right_edge = [1, 1, 1]
boundary = "outflow"
[time]
end = 1.0
[gravity]
root = "multigrid"
"#;

/// Waves of all lengths in a box of 3 x 5 x 7 patches, too long for an expansion of higher order.
const WAVES: &str = r#"
scenario = "formula"
[initial]
density  = "1 + 0.5*sin(2*pi*x/3 + 1)*cos(4*pi*y/5)*sin(2*pi*z/7 + 2) + 3*exp(-((x-1)^2+(y-2.2)^2+(z-3)^2)/0.1)"
pressure = "1"
[domain]
cells = [24, 40, 56]
right_edge = [3, 5, 7]
[time]
end = 1.0
[gravity]
root = "multigrid"
root_cycles = 1
multipole_order = 1
"#;
const OUTFLOW: &str = r#"domain.boundary="outflow""#;
const FFT: &str = r#"gravity.root="fft""#;

/// Residual reduction by cycles over the root level.
fn rate(settings: &[&str]) -> f64 {
    let [before, after] = [2, 4].map(|cycles| {
        let cycles = format!("gravity.root_cycles={cycles}");
        let mut run = Stepper::new(WAVES, &[settings, &[&cycles]].concat());
        let columns = columns(&mut run).into_iter();
        let residual = columns.filter(|(name, _)| name == "gravity_residual_0");
        residual.map(|(_, value)| value).sum::<f64>()
    });
    (after / before).sqrt()
}

#[test]
fn root_level_multigrid_converges_for_any_number_of_patches() {
    for boundary in ["domain.boundary=\"periodic\"", OUTFLOW] {
        let rate = rate(&[boundary]);
        assert!(rate < 0.12, "{boundary}: {rate}");
    }
}

/// The potential in all cells.
fn potential(deck: &str, settings: &[&str]) -> Vec<([f64; 3], f64)> {
    let mut all = Vec::new();
    each_leaf_cell(&mut Stepper::new(deck, settings), |leaf| {
        all.push((leaf.centre, leaf.potential));
    });
    all
}

/// The largest difference of two potentials over the largest value, of cells where `counts` holds.
fn difference(deck: &str, settings: [&[&str]; 2], counts: impl Fn([f64; 3]) -> bool) -> f64 {
    let [ours, right] = settings.map(|settings| potential(deck, settings));
    let pairs = ours.iter().zip(&right).filter(|(ours, _)| counts(ours.0));
    let (mut worst, mut most) = (0.0_f64, 0.0_f64);
    for (ours, right) in pairs {
        worst = worst.max((ours.1 - right.1).abs());
        most = most.max(right.1.abs());
    }
    worst / most
}

#[test]
fn cycles_on_a_periodic_root_leave_no_mean_potential() {
    let all = potential(WAVES, &["gravity.initial_cycles=1"]);
    let mean = all.iter().map(|(_, value)| value).sum::<f64>() / all.len() as f64;
    let most = all
        .iter()
        .fold(0.0_f64, |most, (_, value)| most.max(value.abs()));
    assert!(mean.abs() < 1e-14 * most, "{mean:e} of {most}");
}

/// The largest error of the potential in cells at the faces of an isolated domain, over the largest potential in the domain: of an
/// expansion of so high an order, for clouds so far off the middle.
fn at_faces(order: usize, at: f64) -> f64 {
    let settings = [
        format!("gravity.multipole_order={order}"),
        format!("constants.at={at}"),
    ];
    let [order, at] = settings.each_ref().map(String::as_str);
    let outermost = |x: [f64; 3]| x.iter().any(|x| x.abs() > 0.95);
    difference(CLOUDS, [&[order, at], &[FFT, at]], outermost)
}

/// At order 8 the discretisation error is as large: the expansion is that of continuous space, not of the lattice.
#[test]
fn the_multipole_expansion_converges_with_its_order() {
    for (at, most) in [(0.0, [0.03, 6e-3, 1.6e-3]), (0.15, [0.03, 1.2e-2, 3e-3])] {
        let errors = [2, 4, 8].map(|order| at_faces(order, at));
        let right = errors.iter().zip(most).all(|(error, most)| *error < most);
        assert!(right && errors[0] > 5.0 * errors[2], "{at}: {errors:?}");
    }
}

#[test]
fn a_diverging_multipole_expansion_stops_the_run() {
    let long = [
        "constants.n=16",
        "domain.right_edge=[7, 1, 1]",
        "domain.left_edge=[-7, -1, -1]",
        "initial.density=\"1\"",
        "initial.samples=1",
    ];
    let begun = |order| Stepper::begin(build(CLOUDS, &[&long[..], &[order]].concat()));
    let refused = begun("gravity.multipole_order=4").map(|_| ());
    let why = refused.expect_err("a refusal").to_string();
    let named = ["diverges", "gravity.multipole_order = 4", "\"fft\""];
    assert!(named.iter().all(|word| why.contains(word)), "{why}");
    begun("gravity.multipole_order=1").unwrap_or_else(|e| panic!("{e}"));
}

#[test]
#[ignore = "prints what the expansion is worth by its order"]
fn expansions_of_all_orders() {
    let text = |errors: &[f64]| -> Vec<String> {
        errors.iter().map(|error| format!("{error:.1e}")).collect()
    };
    for at in [0.0, 0.15, 0.25] {
        let errors: Vec<f64> = (1..=12).map(|order| at_faces(order, at)).collect();
        println!("clouds {at}: {:?}", text(&errors));
    }
    let uniform = "initial.density=\"1\"";
    for inner in [2.0, 0.5] {
        let error = |order: usize| {
            let order = format!("gravity.multipole_order={order}");
            let settings = [&[&order, uniform][..], &[FFT, uniform]];
            difference(CLOUDS, settings, |x| norm(x) < inner)
        };
        let errors: Vec<f64> = (1..=12).map(error).collect();
        println!("uniform, r < {inner}: {:?}", text(&errors));
    }
}
