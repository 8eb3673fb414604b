//! Jeans waves: gas under pressure and its own gravity, stable and unstable.

use nestar_tests::Stepper;
use std::f64::consts::{PI, TAU};

const AMPLITUDE: f64 = 1e-6;

/// Runs a wave with the given numbers of wavelengths along the axes of a box of `cells` cubic cells, one unit long in x. An
/// unstable wave starts as the growing mode and runs for one e-folding time, a stable one starts at rest and runs for a period.
/// Returns the logarithm of the ratio of the final to the initial amplitude.
fn growth(cells: [u32; 3], waves: [f64; 3], unstable: bool, settings: &[&str]) -> f64 {
    let (gamma, pressure) = (5.0 / 3.0, 0.6);
    let wave = waves.map(|n| TAU * n);
    let square = wave.iter().map(|k| k * k).sum::<f64>();
    let sound = square * gamma * pressure;
    // 4 pi G rho is twice or half of what pressure withstands
    let pull = if unstable { 2.0 } else { 0.5 } * sound;
    let rate = (sound - pull).abs().sqrt();
    let (size, end) = match unstable {
        true => (-rate / square * AMPLITUDE, 1.0 / rate),
        false => (0.0, TAU / rate),
    };
    let velocity = wave.map(|k| size * k);
    let [nx, ny, nz] = cells;
    let text = format!(
        r#"
scenario = "formula"
[constants]
kx = {:?}
ky = {:?}
kz = {:?}
[initial]
samples = 4
density = "1 + {AMPLITUDE}*cos(kx*x + ky*y + kz*z)"
pressure = "{pressure}*(1 + {gamma}*{AMPLITUDE}*cos(kx*x + ky*y + kz*z))"
velocity_x = "{}*sin(kx*x + ky*y + kz*z)"
velocity_y = "{}*sin(kx*x + ky*y + kz*z)"
velocity_z = "{}*sin(kx*x + ky*y + kz*z)"
[hydro]
gamma = "5/3"
reconstruction = "ppm"
[domain]
cells = [{nx}, {ny}, {nz}]
right_edge = [1.0, "{ny}/{nx}", "{nz}/{nx}"]
[time]
end = {end}
[gravity]
constant = {}
"#,
        wave[0],
        wave[1],
        wave[2],
        velocity[0],
        velocity[1],
        velocity[2],
        pull / (4.0 * PI)
    );
    let mut run = Stepper::new(&text, settings);
    let before = amplitude(&mut run, wave);
    run.finish();
    (amplitude(&mut run, wave) / before).ln()
}

/// The part of the density in the wave.
fn amplitude(run: &mut Stepper, wave: [f64; 3]) -> f64 {
    let (mut sum, mut volume) = (0.0, 0.0);
    run.state().each_leaf_cell(|_, x, v, u| {
        let phase: f64 = wave.iter().zip(x).map(|(k, x)| k * x).sum();
        sum += (u[0] - 1.0) * phase.cos() * v;
        volume += v;
    });
    2.0 * sum / volume
}

/// Along x over `n` cells.
pub(super) fn along_x(n: u32, unstable: bool, settings: &[&str]) -> f64 {
    growth([n, 8, 8], [1.0, 0.0, 0.0], unstable, settings)
}

/// Waves oblique to all axes, of 16/sqrt(3) and 32/sqrt(3) cells, and one of unequal parts.
#[test]
fn oblique_jeans_waves_grow_and_oscillate_at_the_exact_rates() {
    let cube = |n, waves| (growth([n; 3], waves, true, &[]) - 1.0).abs();
    let found = [16, 32].map(|n| cube(n, [1.0, 1.0, 1.0]));
    assert!(found[0] / found[1] > 3.5 && found[1] < 4e-3, "{found:?}");
    let other = cube(32, [2.0, -1.0, 0.0]);
    assert!(other < 1e-3, "{other}");
}

#[test]
fn an_unstable_jeans_wave_grows_at_its_rate() {
    let wrong = |n, order: &str| (along_x(n, true, &[order]) - 1.0).abs();
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
    let lost = [16, 32].map(|n| along_x(n, false, &[]).abs());
    assert!(lost[0] < 1e-2 && lost[1] < 1e-3, "{lost:?}");
}
