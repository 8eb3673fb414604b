//! Prints error and cost of every sensible choice of the table `[hydro]` in Markdown, for `docs/choices.md`.
//!
//! ```text
//! cargo run --release -p nestar-tests --example choices -- [WORD]... [SETTING]...
//! ```
//!
//! The rows have all words, such as `vl ppm`. The settings, such as `run.device=cuda` or `domain.cells=[256,256,256]`, apply to the measurement
//! of the speed.

use nestar::kernels::choice::Choice;
use nestar_tests::exact::{Side, shock_tube_mean};
use nestar_tests::norms::{cell_mean, conserved, l1, rms};
use nestar_tests::{Stepper, choices};
use std::f64::consts::TAU;
use std::time::Instant;

/// Sod's tube.
const LEFT: Side = [1.0, 0.0, 1.0];
const RIGHT: Side = [0.125, 0.0, 0.1];
const GAMMA: f64 = 1.4;

/// RMS-L1 error of Sod's tube in 128 cells at `t = 0.25`.
fn sod(settings: &[&str]) -> f64 {
    let text = r#"
        scenario = "formula"
        [initial]
        density = "if(x < 0.5, 1, 0.125)"
        pressure = "if(x < 0.5, 1, 0.1)"
        [domain]
        cells = [128, 8, 8]
        right_edge = [1.0, 0.0625, 0.0625]
        boundary = { x = "outflow", y = "periodic", z = "periodic" }
        [time]
        end = 0.25
        courant = 0.4
        [mesh]
        [hydro]
        gamma = 1.4
    "#;
    let state = Stepper::new(text, settings).finish().state();
    rms(l1(&state, |x, width| {
        let half = 0.5 * width[0];
        let (low, high) = (x[0] - half - 0.5, x[0] + half - 0.5);
        let [density, momentum, energy] = shock_tube_mean(low, high, 0.25, LEFT, RIGHT, GAMMA);
        [density, momentum, 0.0, 0.0, energy]
    }))
}

/// RMS-L1 error of a sound wave of amplitude 1e-6 along x after one period, in 64 cells.
fn sound(settings: &[&str]) -> f64 {
    let text = r#"
        scenario = "formula"
        [initial]
        samples = 3
        density = "1 + 1e-6*sin(2*pi*x)"
        pressure = "0.6*(1 + 1e-6*sin(2*pi*x))^(5/3)"
        velocity_x = "1e-6*sin(2*pi*x)"
        [domain]
        cells = [64, 8, 8]
        right_edge = [1.0, 0.125, 0.125]
        [time]
        end = 1.0
        courant = 0.4
        [mesh]
        [hydro]
    "#;
    let state = Stepper::new(text, settings).finish().state();
    let wave = |x: [f64; 3]| {
        let change = 1e-6 * (TAU * x[0]).sin();
        let pressure = 0.6 * (1.0 + change).powf(5.0 / 3.0);
        conserved([1.0 + change, change, 0.0, 0.0, pressure], 5.0 / 3.0)
    };
    rms(l1(&state, |x, width| cell_mean(wave, x, width)))
}

/// Cell updates per second of a smooth flow with waves in all directions.
fn speed(settings: &[&str]) -> f64 {
    let text = r#"
        scenario = "formula"
        [initial]
        density = "1 + 0.3*sin(2*pi*x)*cos(2*pi*y)"
        pressure = "1 + 0.2*cos(2*pi*z)"
        velocity_x = "0.3*sin(2*pi*y)"
        velocity_y = "0.2*sin(2*pi*z)"
        [domain]
        cells = [64, 64, 64]
        [time]
        end = 100.0
        [mesh]
        [hydro]
    "#;
    const STEPS: usize = 10;
    let mut stepper = Stepper::new(text, settings);
    // compiles kernels and touches all memory
    stepper.steps(2);
    let before = stepper.counters().cell_updates;
    let start = Instant::now();
    stepper.steps(STEPS);
    let elapsed = start.elapsed().as_secs_f64();
    (stepper.counters().cell_updates - before) as f64 / elapsed
}

fn main() {
    let (given, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|word| word.contains('='));
    println!(
        "| scheme | reconstruction | variables | limiter | riemann | sound wave | Sod's tube | double | single |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for method in choices::all() {
        let slopes = match method.limits_slopes() {
            true => [method.variables.word(), method.limiter.word()],
            false => ["–"; 2],
        };
        let [variables, limiter] = slopes;
        let (scheme, reconstruction) = (method.scheme.word(), method.reconstruction.word());
        let row = [
            scheme,
            reconstruction,
            variables,
            limiter,
            method.riemann.word(),
        ];
        if !words.iter().all(|word| row.contains(&word.as_str())) {
            continue;
        }
        let own = choices::settings(&method);
        let mut settings: Vec<&str> = own.iter().map(String::as_str).collect();
        let errors = [sound(&settings), sod(&settings)];
        settings.extend(given.iter().map(String::as_str));
        let speeds = ["run.precision=double", "run.precision=single"].map(|precision| {
            settings.push(precision);
            let found = speed(&settings);
            settings.pop();
            found
        });
        println!(
            "| {} | {:.1e} | {:.4} | {:.2e} | {:.2e} |",
            row.join(" | "),
            errors[0],
            errors[1],
            speeds[0],
            speeds[1]
        );
    }
}
