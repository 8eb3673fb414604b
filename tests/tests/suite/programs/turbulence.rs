//! Turbulence driven by random waves.

use super::{driving, stepper};
use nestar::prelude::*;
use nestar_tests::norms::totals;

/// Over many steps the amplitudes have the size and the memory that the deck asks for.
#[test]
fn driving_waves_have_the_correlation_time_of_the_deck() {
    let driving = driving::Driving {
        strength: 2.0,
        memory: 0.3,
        length: 1.0,
        seed: 1,
    };
    let stream = random::Purposes::default().register("driving", driving.seed);
    let stream = stream.unwrap_or_else(|e| panic!("{e}"));
    let mut waves = driving::Waves::default();
    let [mut square, mut product] = [0.0; 2];
    for step in 0..4100 {
        let before = waves.0;
        waves.advance(stream.at_step(step), 0.15, &driving);
        if step >= 100 {
            square += waves.0.iter().map(|a| a * a).sum::<f64>();
            product += waves.0.iter().zip(before).map(|(a, b)| a * b).sum::<f64>();
        }
    }
    // five standard errors of 48000 numbers that depend on each other
    let mean = square / 48000.0;
    assert!((mean / 4.0 - 1.0).abs() < 0.05, "{mean}");
    let correlation = product / square;
    assert!((correlation - exp(-0.5)).abs() < 0.02, "{correlation}");
}

/// Weak waves stir uniform gas: it has the velocities that they have given it, wave by wave, and none along a wave; the energy
/// that comes in is that of the motion.
#[test]
fn weak_solenoidal_driving_has_no_divergence() {
    let text = include_str!("../../../../scenarios/programs/driving.toml");
    let settings = ["mesh.max_level=0", "driving.strength=1e-3"];
    let mut run = stepper(driving::program, text, &settings);
    let before = run.0.with(|sim| totals(sim));
    let mut given = [0.0; 12];
    for _ in 0..20 {
        let start = run.time();
        run.steps(1);
        let dt = run.time() - start;
        let waves = run.0.engine().world.resource::<driving::Waves>().0;
        given = std::array::from_fn(|n| given[n] + dt * waves[n]);
    }
    let (mut across, mut along) = ([0.0; 12], [0.0; 6]);
    run.state().each_leaf_cell(|_, x, volume, u| {
        for axis in 0..3 {
            let phase = std::f64::consts::TAU * x[axis];
            for (side, wave) in [cos(phase), sin(phase)]
                .map(|w| 2.0 * volume * w)
                .iter()
                .enumerate()
            {
                along[2 * axis + side] += wave * u[1 + axis];
                across[4 * axis + side] += wave * u[1 + (axis + 1) % 3];
                across[4 * axis + 2 + side] += wave * u[1 + (axis + 2) % 3];
            }
        }
    });
    let largest = given.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    assert!(largest > 1e-4, "{given:?}");
    for (found, given) in across.iter().zip(given) {
        assert!((found - given).abs() < 2e-3 * largest, "{found} {given}");
    }
    assert!(along.iter().all(|v| v.abs() < 1e-3 * largest), "{along:?}");
    let energy = 0.25 * given.iter().map(|v| v * v).sum::<f64>();
    let gained = run.0.with(|sim| totals(sim))[4] - before[4];
    assert!((gained / energy - 1.0).abs() < 0.01, "{gained} {energy}");
}
