//! A radiative supernova remnant: the octant of `cooling-blast.toml` until shell formation, against Kim & Ostriker (2015).

use crate::cooling::energies;
use nestar_tests::Stepper;
use nestar_tests::norms::totals;

const REMNANT: &str = include_str!("../../../scenarios/cooling-blast.toml");
const TABLE: &str = concat!(
    "cooling.table=",
    env!("CARGO_MANIFEST_DIR"),
    "/../scenarios/solar-cooling.zarr"
);

/// Cells of 1.5 pc, 15 in the radius of the shell when it forms, which is the end.
const COARSE: [&str; 5] = [
    TABLE,
    "domain.cells=[16,16,16]",
    "constants.size=48",
    "mesh.max_level=1",
    "time.end=t_sf",
];

/// A code mass in that of the sun.
const SUNS: f64 = 4.916_838e31 / 1.988_41e33;
/// The supernova's energy in the octant, in code units.
const EXPLOSION: f64 = 1e51 / 4.916_838e41 / 8.0;

/// What is left of the explosion when the shell forms, and the momentum along an axis that the octant has.
fn remnant(settings: &[&str]) -> ([f64; 2], Stepper) {
    let mut run = Stepper::new(REMNANT, &[&COARSE[..], settings].concat());
    let before = energies(&mut run)[0];
    run.finish();
    assert!(run.state().counts()[1] > 0, "nothing is refined");
    let [gas, radiated, heated, floored] = energies(&mut run);
    let error = (gas + radiated - heated - floored) / before - 1.0;
    assert!(error.abs() < 1e-12, "{settings:?}: {error:e}");
    let [x, y, z] = run.0.with(|sim| [1, 2, 3].map(|c| totals(sim)[c]));
    for other in [y, z] {
        assert!((other / x - 1.0).abs() < 1e-12, "{x} {y} {z}");
    }
    ([1.0 + (gas - before) / EXPLOSION, x], run)
}

#[test]
fn a_remnant_has_its_momentum_when_the_shell_forms() {
    let ([left, along], mut run) = remnant(&[]);
    // all of the sphere moves outwards with 16 times the momentum of an octant along an axis
    let momentum = 16.0 * along * SUNS / 2.17e5;
    let mut radial = 0.0;
    run.state().each_leaf_cell(|_, x, volume, u| {
        let r = (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]).sqrt();
        radial += volume * (u[1] * x[0] + u[2] * x[1] + u[3] * x[2]) / r;
    });
    let ratio = radial / (2.0 * along);
    println!("momentum {momentum:.3} of 2.17e5 suns km/s, energy left {left:.3}, ratio {ratio:.4}");
    // 0.93 and 0.65 with cells of 0.03 pc in one dimension
    assert!((momentum - 0.90).abs() < 0.02, "{momentum}");
    assert!((left - 0.52).abs() < 0.02, "{left}");
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
}

#[test]
fn a_remnant_without_metals_keeps_its_energy_longer() {
    let ([left, along], _) = remnant(&["cooling.metallicity=0"]);
    let momentum = 16.0 * along * SUNS / 2.17e5;
    println!("momentum {momentum:.3} of 2.17e5 suns km/s, energy left {left:.3}");
    assert!((momentum - 1.03).abs() < 0.02, "{momentum}");
    assert!(left > 0.97, "{left}");
}
