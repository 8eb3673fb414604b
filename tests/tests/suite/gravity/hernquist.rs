//! A Hernquist sphere with six levels (Schive et al. 2018, appendix A): potential and acceleration in 0.075 < r <= 1, volume-weighted.

use super::leaves::{Errors, each_leaf_cell, norm};
use nestar_tests::hernquist::{Gas, Hernquist};
use nestar_tests::{Stepper, build};

/// Levels of 32^3 cells, each in the middle of the coarser one, where the root has 64^3.
const DECK: &str = r#"
scenario = "formula"
[initial]
samples    = 1
density    = "1/(r*(1+r)^3)"
pressure   = "1"
[constants]
n = 64
[domain]
cells = ["n", "n", "n"]
left_edge = [-50, -50, -50]
right_edge = [50, 50, 50]
boundary = "outflow"
[time]
end = 1.0
[mesh]
max_level = 6
flag_buffer = 0
refine = [{ criterion = "threshold", field = "max(max(abs(x), abs(y)), abs(z))", below = true, threshold = [12.5, 6.25, 3.125, 1.5625, 0.78125, 0.390625] }]
[gravity]
"#;

/// Half the length of the box.
const HALF: f64 = 50.0;

/// A run with the sphere, whose cells have its exact mean densities, before the first step.
fn begin(settings: &[&str]) -> Stepper {
    let mut sim = build(DECK, settings);
    let sphere = (Hernquist::default(), [0.0; 3]);
    sim.with(|sim| Gas::put_into(sim, vec![sphere], 1.0));
    Stepper::of(sim)
}

/// Errors of the potential and of the acceleration.
fn errors(settings: &[&str]) -> [Errors; 2] {
    let (sphere, mut errors) = (Hernquist::default(), [Errors::default(), Errors::default()]);
    let outside = sphere.outside(HALF);
    each_leaf_cell(&mut begin(settings), |leaf| {
        let (x, volume) = (leaf.centre, leaf.width.powi(3));
        let r = norm(x);
        if !(0.075..=1.0).contains(&r) {
            return;
        }
        let (exact, missing) = (sphere.potential(r), outside.potential(x));
        let ratio = leaf.potential / (exact - missing);
        errors[0].add((ratio - 1.0).abs(), volume);
        let (exact, missing) = (sphere.acceleration(x), outside.acceleration(x));
        let exact: [f64; 3] = std::array::from_fn(|i| exact[i] - missing[i]);
        let wrong = norm(std::array::from_fn(|i| leaf.acceleration[i] - exact[i]));
        errors[1].add(wrong / norm(exact), volume);
    });
    errors
}

#[test]
fn a_hernquist_sphere_has_the_exact_potential_and_acceleration() {
    let [phi, a] = errors(&[]);
    assert!(phi.mean() < 1.0e-4 && phi.most < 2.1e-4, "{phi:?}");
    assert!(a.mean() < 5.0e-4 && a.most < 4.8e-3, "{a:?}");
    // without the finer levels' part in the coarser ones
    let [one_way, _] = errors(&["gravity.coupling=\"one-way\""]);
    assert!(one_way.mean() > 3.0 * phi.mean(), "{one_way:?}");
}

#[test]
fn a_hernquist_sphere_on_a_multigrid_root_has_the_exact_potential_and_acceleration() {
    let [phi, a] = errors(&["gravity.root=\"multigrid\""]);
    assert!(phi.mean() < 1.0e-4 && phi.most < 2.1e-4, "{phi:?}");
    assert!(a.mean() < 5.0e-4 && a.most < 4.8e-3, "{a:?}");
}

#[test]
#[ignore = "takes half a minute: the convergence of the test above, 64^3 to 128^3 and with wider levels"]
fn a_hernquist_sphere_converges() {
    let [coarse, fine] = ["constants.n=64", "constants.n=128"].map(|n| errors(&[n]));
    let ratio = |n: usize| coarse[n].mean() / fine[n].mean();
    println!(
        "64: {coarse:?}, 128: {fine:?}, ratios {} and {}",
        ratio(0),
        ratio(1)
    );
    assert!(
        ratio(0) > 3.6 && ratio(1) > 3.6,
        "{} {}",
        ratio(0),
        ratio(1)
    );
    let [phi, a] = errors(&["mesh.flag_buffer=8"]);
    println!("wider levels: {phi:?} {a:?}");
    assert!(phi.mean() < 3.9e-5 && a.mean() < 5.3e-4, "{phi:?} {a:?}");
}
