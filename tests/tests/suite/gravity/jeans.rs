//! Jeans waves: gas under pressure and its own gravity, stable and unstable.

use nestar_tests::Stepper;
use std::f64::consts::{PI, TAU};

const AMPLITUDE: f64 = 1e-6;

/// A wave of one length along x over `n` cells. An unstable one begins as the mode that grows and goes on for the time in which it grows
/// by e, a stable one at rest and for a period. The logarithm of the amplitude at the end over that at the start.
fn growth(n: usize, unstable: bool, settings: &[&str]) -> f64 {
    let (gamma, pressure) = (5.0 / 3.0, 0.6);
    let sound = TAU * TAU * gamma * pressure;
    // 4 pi G rho is twice or half of what pressure withstands
    let pull = if unstable { 2.0 } else { 0.5 } * sound;
    let rate = (sound - pull).abs().sqrt();
    let (velocity, end) = match unstable {
        true => (-rate / TAU * AMPLITUDE, 1.0 / rate),
        false => (0.0, TAU / rate),
    };
    let text = format!(
        r#"
scenario = "formula"
[initial]
samples = 4
density = "1 + {AMPLITUDE}*cos(2*pi*x)"
pressure = "{pressure}*(1 + {gamma}*{AMPLITUDE}*cos(2*pi*x))"
velocity_x = "{velocity}*sin(2*pi*x)"
[hydro]
gamma = "5/3"
reconstruction = "ppm"
[domain]
cells = [{n}, 8, 8]
right_edge = [1.0, "8/{n}", "8/{n}"]
[time]
end = {end}
[gravity]
constant = {}
"#,
        pull / (4.0 * PI)
    );
    let mut run = Stepper::new(&text, settings);
    let before = amplitude(&mut run);
    run.finish();
    (amplitude(&mut run) / before).ln()
}

/// The part of the density in the wave.
fn amplitude(run: &mut Stepper) -> f64 {
    let (mut sum, mut volume) = (0.0, 0.0);
    run.state().each_leaf_cell(|_, x, v, u| {
        sum += (u[0] - 1.0) * (TAU * x[0]).cos() * v;
        volume += v;
    });
    2.0 * sum / volume
}

#[test]
fn an_unstable_jeans_wave_grows_at_its_rate() {
    let wrong = |n, order: &str| (growth(n, true, &[order]) - 1.0).abs();
    let second = [16, 32, 64].map(|n| wrong(n, "gravity.order=2"));
    let order = |coarse: f64, fine: f64| (coarse / fine).log2();
    assert!(order(second[0], second[1]) > 1.9, "{second:?}");
    assert!(order(second[1], second[2]) > 1.9, "{second:?}");
    assert!(second[2] < 1e-3, "{second:?}");
    let fourth = [16, 64].map(|n| wrong(n, "gravity.order=4"));
    assert!(
        fourth[0] < 0.5 * second[0] && fourth[1] < 0.5 * second[2],
        "{fourth:?}"
    );
}

#[test]
fn a_stable_jeans_wave_returns_after_its_period() {
    let lost = [16, 32].map(|n| growth(n, false, &[]).abs());
    assert!(lost[0] < 1e-2 && lost[1] < 1e-3, "{lost:?}");
}
