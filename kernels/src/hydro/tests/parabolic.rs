//! Benefits of parabolas: smooth waves, fine structure behind a shock, and slow shocks.
use super::sample::Random;
use super::tube::{Ends, Tube};
use super::tubes::conserved;
use crate::hydro::limiter::half_monotonized_central;
use crate::hydro::riemann::exact::sample;
use crate::hydro::riemann::hllc::flux_hllc;
use crate::hydro::{FluidMethod, Reconstruction, Scheme, eos, hancock};
use std::f64::consts::TAU;

const GAMMA: f64 = 1.4;
const COURANTS: [f64; 2] = [0.4, 0.8];

fn method(scheme: Scheme, reconstruction: Reconstruction) -> FluidMethod {
    FluidMethod {
        scheme,
        reconstruction,
        ..FluidMethod::default()
    }
}

const PPM: (Scheme, Reconstruction) = (Scheme::MusclHancock, Reconstruction::Ppm);
const PLM: (Scheme, Reconstruction) = (Scheme::MusclHancock, Reconstruction::Plm);

/// RMS over the conserved variables of the L1 change of a sound wave of amplitude 1e-6 that crosses the box once.
fn sound_wave((scheme, reconstruction): (Scheme, Reconstruction), n: usize, courant: f64) -> f64 {
    let dx = 1.0 / n as f64;
    let cell = |i: usize| {
        let phase = |x: f64| 1e-6 * (TAU * x * dx).cos() / (TAU * dx);
        // average of the sine; c = 1, and the wave of a linear system in conserved variables
        let s = phase(i as f64) - phase(i as f64 + 1.0);
        let energy = (1.0 / GAMMA + s) / (GAMMA - 1.0);
        [1.0 + s, s, 0.0, 0.0, energy, 0.0]
    };
    let start: Vec<[f64; 6]> = (0..n).map(cell).collect();
    let method = method(scheme, reconstruction);
    let mut tube = Tube::new(method, 0, Ends::Periodic, dx, start.clone());
    tube.run(1.0, courant);
    let error = |v: usize| -> f64 {
        let pairs = tube.cells.iter().zip(&start);
        pairs.map(|(a, b)| dx * (a[v] - b[v]).abs()).sum()
    };
    (0..5).map(|v| error(v).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn a_sound_wave_keeps_its_peaks() {
    for courant in COURANTS {
        let [coarse, fine] = [32, 64].map(|n| sound_wave(PPM, n, courant));
        println!("sound wave, ppm, C = {courant}: {coarse:e} {fine:e}");
        assert!(fine <= 6e-9 && fine < 0.25 * coarse, "{coarse:e} {fine:e}");
    }
}

/// Two receding streams (Toro 2009, table 4.1, test 2): L1 error of the density with 128 cells at time 0.12.
#[test]
fn parting_streams_leave_the_right_hole() {
    let (l, r, n, end) = ([1.0, -2.0, 0.4], [1.0, 2.0, 0.4], 128, 0.12);
    let dx = 1.0 / n as f64;
    let cell = |i: usize| conserved(if i < n / 2 { l } else { r }, 0.0);
    for courant in COURANTS {
        let start = (0..n).map(cell).collect();
        let mut tube = Tube::new(method(PPM.0, PPM.1), 0, Ends::Outflow, dx, start);
        tube.run(end, courant);
        let exact = |i: usize| {
            let at = |s: usize| (i as f64 + (s as f64 + 0.5) / 64.0) * dx - 0.5;
            let density = |s: usize| sample(&l, &r, at(s) / end, GAMMA).0[0];
            (0..64).map(density).sum::<f64>() / 64.0
        };
        let error: f64 = (0..n)
            .map(|i| dx * (tube.cells[i][0] - exact(i)).abs())
            .sum();
        println!("Toro 2, ppm, C = {courant}: {error:e}");
        assert!(error <= 4.5e-3 && tube.first_order_cells == 0, "{error:e}");
    }
}

/// A Mach 3 shock about to run into a sinusoidal density (Shu & Osher 1989, J. Comput. Phys. 83, 32), on [-5, 5].
fn shu_osher(n: usize) -> Vec<[f64; 6]> {
    let dx = 10.0 / n as f64;
    let cell = |i: usize| {
        let (a, b) = (i as f64 * dx - 5.0, (i + 1) as f64 * dx - 5.0);
        if 0.5 * (a + b) < -4.0 {
            conserved([3.857143, 2.629369, 10.33333], 0.0)
        } else {
            let mean = ((5.0 * a).cos() - (5.0 * b).cos()) / (5.0 * dx);
            conserved([1.0 + 0.2 * mean, 0.0, 1.0], 0.0)
        }
    };
    (0..n).map(cell).collect()
}

/// Advances `cells` to time `end` by PLM in one dimension, cheap enough for many cells.
fn advanced_by_plm(mut cells: Vec<[f64; 6]>, dx: f64, end: f64) -> Vec<[f64; 6]> {
    let (n, mut time) = (cells.len(), 0.0);
    while time < end {
        let gas =
            |u: &[f64; 6]| eos::primitive_from_conserved(&[u[0], u[1], u[2], u[3], u[4]], GAMMA);
        let w: Vec<[f64; 5]> = cells.iter().map(gas).collect();
        let speed = |w: &[f64; 5]| w[1].abs() + eos::sound_speed(w[0], w[4], GAMMA);
        let dt = (0.8 * dx / w.iter().map(speed).fold(0.0, f64::max)).min(end - time);
        let edges: Vec<_> = (0..n)
            .map(|i| {
                let (a, b) = (w[i.saturating_sub(1)], w[(i + 1).min(n - 1)]);
                let half: [f64; 5] = std::array::from_fn(|v| {
                    half_monotonized_central(w[i][v] - a[v], b[v] - w[i][v], 0.0)
                });
                let halves = [half, [0.0; 5], [0.0; 5]];
                let h = hancock::half_step(&w[i], &halves, &[dt / dx, 0.0, 0.0], GAMMA);
                hancock::edges(&w[i], &h, &half, &half)
            })
            .collect();
        let flux = |i: usize| flux_hllc(&edges[i.max(1) - 1].1, &edges[i.min(n - 1)].0, GAMMA);
        let fluxes: Vec<[f64; 5]> = (0..=n).map(flux).collect();
        for i in 0..n {
            (0..5).for_each(|v| cells[i][v] -= dt / dx * (fluxes[i + 1][v] - fluxes[i][v]));
        }
        time += dt;
    }
    cells
}

#[test]
fn fine_structure_behind_a_shock_survives() {
    const END: f64 = 1.8;
    let fine = advanced_by_plm(shu_osher(3200), 10.0 / 3200.0, END);
    let mean = |c: &[[f64; 6]]| c.iter().map(|u| u[0]).sum::<f64>() / 8.0;
    let reference: Vec<f64> = fine.chunks(8).map(mean).collect();
    let error = |of: (Scheme, Reconstruction), courant| {
        let mut tube = Tube::new(method(of.0, of.1), 0, Ends::Outflow, 0.025, shu_osher(400));
        tube.run(END, courant);
        let pairs = tube.cells.iter().zip(&reference);
        pairs.map(|(u, exact)| (u[0] - exact).abs()).sum::<f64>() / reference.iter().sum::<f64>()
    };
    let plm = error(PLM, 0.8);
    for courant in COURANTS {
        let ppm = error(PPM, courant);
        println!("Shu-Osher, C = {courant}: relative L1 {ppm:e} (plm, C = 0.8: {plm:e})");
        assert!(ppm <= 0.010 && ppm < 0.6 * plm, "{ppm:e}, plm {plm:e}");
    }
}

/// Relative RMS error of the density more than four cells away from a Mach 7 shock that moves with `speed` times the sound
/// speed ahead of it through 60 of 100 cells.
fn slow_shock(method: FluidMethod, speed: f64, courant: f64) -> f64 {
    let (n, mach2) = (104, 49.0);
    let pressure = 1.0 + 2.0 * GAMMA / (GAMMA + 1.0) * (mach2 - 1.0);
    let ratio = (GAMMA + 1.0) * mach2 / ((GAMMA - 1.0) * mach2 + 2.0);
    let ahead = [GAMMA, speed - 7.0, 1.0];
    let behind = [GAMMA * ratio, speed - 7.0 / ratio, pressure];
    let start = if speed > 0.0 { 20 } else { 80 };
    let cell = |i: usize| conserved(if i < start { behind } else { ahead }, 0.0);
    let cells = (0..n).map(cell).collect();
    let mut tube = Tube::new(method, 0, Ends::Outflow, 0.01, cells);
    tube.run(0.6 / speed.abs(), courant);
    let shock = start as f64 + 60.0 * speed.signum();
    let far = (0..n).filter(|i| (*i as f64 + 0.5 - shock).abs() > 4.0);
    let errors: Vec<f64> = far
        .map(|i| {
            let exact = if (i as f64) < shock { behind } else { ahead };
            tube.cells[i][0] / exact[0] - 1.0
        })
        .collect();
    (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt()
}

#[test]
fn slow_shocks_ring_little() {
    let of = |(scheme, reconstruction)| method(scheme, reconstruction);
    let staged = (Scheme::Rk2, Reconstruction::WenoZ);
    for speed in [0.3, -0.3] {
        let error = slow_shock(of(PPM), speed, 0.4);
        println!("Mach 7 at {speed} c: relative RMS {error:e}");
        assert!(error <= 0.006, "{speed}: {error:e}");
        for choice in [PLM, staged] {
            let plain = slow_shock(of(choice), speed, 0.4);
            let flattening = Some(true);
            let flattened = FluidMethod {
                flattening,
                ..of(choice)
            };
            let flattened = slow_shock(flattened, speed, 0.4);
            println!("Mach 7 at {speed} c, {choice:?}: {plain:e}, flattened {flattened:e}");
            assert!(
                flattened < 0.8 * plain,
                "{choice:?}: {plain:e}, {flattened:e}"
            );
        }
    }
}

/// Weighted edges are mirrored with the values, of fifth order in smooth flow, and finite for the smallest differences.
#[test]
fn weighted_edges_are_symmetric_and_accurate() {
    use crate::hydro::weno::weno_z;
    let mut random = Random(11);
    for _ in 0..1000 {
        let exponent = random.between(-320.0, 300.0);
        let w: [f64; 5] = std::array::from_fn(|_| 10f64.powf(exponent) * random.between(-1.0, 1.0));
        let (lower, upper) = weno_z(&w);
        let (mirrored_lower, mirrored_upper) = weno_z(&[w[4], w[3], w[2], w[1], w[0]]);
        assert!(
            lower == -mirrored_upper && upper == -mirrored_lower,
            "{w:?}"
        );
        assert!(lower.is_finite() && upper.is_finite(), "{w:?}");
    }
    // cell averages of the exponential function
    let error = |h: f64| {
        let mean = |n: f64| (((n + 0.5) * h).exp() - ((n - 0.5) * h).exp()) / h;
        let w = [-2.0, -1.0, 0.0, 1.0, 2.0].map(mean);
        (w[2] + weno_z(&w).1 - (0.5 * h).exp()).abs()
    };
    let order = (error(0.2) / error(0.1)).log2();
    assert!(
        order > 4.8 && error(0.1) < 1e-6,
        "order {order}, {}",
        error(0.1)
    );
}
