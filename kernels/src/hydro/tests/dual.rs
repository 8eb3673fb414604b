//! Dual energy: cold gas keeps its pressure; hot gas and shocks are the same as without it.
use super::riemann::TORO;
use super::tube::{Ends, Tube};
use crate::hydro::eos::{conserved_from_primitive, pressure};
use crate::hydro::riemann::exact::sample;
use crate::hydro::{Conserved, DualEnergy, FluidMethod, HydroReal, Reconstruction, RiemannSolver};
use crate::hydro::{dual, magnetic};

const GAMMA: f64 = 1.4;
const COURANT: f64 = 0.4;

fn method(dual: bool) -> FluidMethod {
    FluidMethod {
        dual: dual.then(DualEnergy::default),
        ..FluidMethod::default()
    }
}

/// Returns a cell of a tube with this density, velocity and pressure.
fn cell<R: HydroReal>([density, velocity, pressure]: [f64; 3]) -> [R; 6] {
    let [a, b, c, d, e] = conserved_from_primitive(&[density, velocity, 0.0, 0.0, pressure], GAMMA);
    [a, b, c, d, e, pressure / (GAMMA - 1.0)].map(R::lit)
}

/// Returns the pressure from the total and from the internal energy.
fn pressures<R: HydroReal>(u: &[R; 6]) -> [f64; 2] {
    let [density, a, b, c, energy, internal] = *u;
    let momentum = [a, b, c];
    let seen = pressure(
        Conserved {
            density,
            momentum,
            energy,
        },
        R::lit(GAMMA),
    );
    [seen.to_f64(), (GAMMA - 1.0) * internal.to_f64()]
}

/// Returns the errors of the pressure (from both energies) after a contact with a density ratio of ten has crossed the periodic tube at a
/// Mach number.
fn carried<R: HydroReal>(method: FluidMethod, mach: f64) -> [f64; 2] {
    const N: usize = 64;
    let velocity = mach * GAMMA.sqrt();
    let state = |i: usize| {
        let density = if i.abs_diff(N / 2) < N / 4 { 10.0 } else { 1.0 };
        cell::<R>([density, velocity, 1.0])
    };
    let cells = (0..N).map(state).collect();
    let mut tube = Tube::new(method, 0, Ends::Periodic, 1.0 / N as f64, cells);
    tube.run(1.0 / velocity, COURANT);
    let mut worst = [0.0f64; 2];
    for u in &tube.cells {
        for (worst, p) in worst.iter_mut().zip(pressures(u)) {
            *worst = worst.max((p - 1.0).abs());
        }
    }
    worst
}

#[test]
fn a_carried_contact_keeps_its_pressure() {
    for mach in [100.0, 300.0] {
        let single = carried::<f32>(method(true), mach);
        let double = carried::<f64>(method(true), mach);
        println!("Mach {mach}: f32 {single:?} f64 {double:?}");
        // the pressure from the total energy has its round-off once
        assert!(
            single[1] < 3e-5 && single[0] < 5e-7 * mach * mach,
            "{mach}: {single:?}"
        );
        assert!(double[1] < 1e-12 && double[0] < 1e-8, "{mach}: {double:?}");
    }
    let without = carried::<f32>(method(false), 100.0);
    assert!(without[0] > 0.01, "{without:?}");
}

/// Returns the tube of TORO number `n` on [-0.5, 0.5].
fn toro(method: FluidMethod, n: usize, x0: f64, end: f64) -> Tube<f64> {
    const N: usize = 128;
    let (l, r, ..) = TORO[n];
    let state = |i: usize| {
        let left = (i as f64 + 0.5) / N as f64 - 0.5 < x0;
        cell(if left { l } else { r })
    };
    let cells = (0..N).map(state).collect();
    let mut tube = Tube::new(method, 0, Ends::Outflow, 1.0 / N as f64, cells);
    tube.run(end, COURANT);
    tube
}

/// Returns the mean relative errors of density and pressure from the exact solution.
fn errors(tube: &Tube<f64>, n: usize, x0: f64, end: f64) -> [f64; 2] {
    let (l, r, ..) = TORO[n];
    let count = tube.cells.len() as f64;
    let mut found = [0.0; 2];
    for (i, u) in tube.cells.iter().enumerate() {
        let x = (i as f64 + 0.5) / count - 0.5;
        let exact = sample(&l, &r, (x - x0) / end, GAMMA).0;
        found[0] += (u[0] / exact[0] - 1.0).abs() / count;
        found[1] += (pressures(u)[0] / exact[2] - 1.0).abs() / count;
    }
    found
}

#[test]
fn shock_tubes_are_as_without_it() {
    // Sod's, a blast of 1000 to 0.01, a collision of hot streams
    for (n, x0, end) in [(0, 0.0, 0.25), (2, 0.0, 0.012), (3, -0.1, 0.035)] {
        let [with, without] =
            [true, false].map(|dual| errors(&toro(method(dual), n, x0, end), n, x0, end));
        println!("{n}: {with:?} {without:?}");
        for v in 0..2 {
            assert!(
                with[v] < 1.05 * without[v] + 2e-4,
                "{n}: {with:?} {without:?}"
            );
        }
    }
}

/// Returns the relative errors of the mean density and pressure behind the shocks of two cold streams that collide at a Mach number each.
fn collision<R: HydroReal>(method: FluidMethod, mach: f64, place: f64) -> [f64; 2] {
    const N: usize = 128;
    let (pressure, speed) = (1.0 / GAMMA, mach);
    let state = |i: usize| {
        let left = i as f64 + 0.5 + place < N as f64 / 2.0;
        cell::<R>([1.0, if left { speed } else { -speed }, pressure])
    };
    let cells = (0..N).map(state).collect();
    let mut tube = Tube::new(method, 0, Ends::Outflow, 1.0 / N as f64, cells);
    let k = (GAMMA + 1.0) / 4.0 * mach;
    let shock = k + (k * k + 1.0).sqrt();
    let behind = pressure * (1.0 + 2.0 * GAMMA / (GAMMA + 1.0) * (shock * shock - 1.0));
    let density = (GAMMA + 1.0) * shock * shock / ((GAMMA - 1.0) * shock * shock + 2.0);
    let end = 0.3 / (shock - mach);
    tube.run(end, COURANT);
    // between the shocks, without the wall heating in the middle
    let inside = |i: usize| (6..24).contains(&i.abs_diff(N / 2));
    let (mut sums, mut count) = ([0.0; 2], 0.0);
    for (_, u) in tube.cells.iter().enumerate().filter(|(i, _)| inside(*i)) {
        sums[0] += u[0].to_f64();
        sums[1] += pressures(u)[0];
        count += 1.0;
    }
    [
        sums[0] / count / density - 1.0,
        sums[1] / count / behind - 1.0,
    ]
}

#[test]
fn strong_shocks_heat_the_gas_behind_them() {
    let right = |errors: [f64; 2]| errors.iter().all(|e| e.abs() < 0.015);
    for (mach, place) in [(2.0, 0.0), (30.0, 0.5), (300.0, 0.0), (300.0, 0.5)] {
        let found = collision::<f64>(method(true), mach, place);
        println!("Mach {mach} at {place}: {found:?}");
        assert!(right(found), "{mach} {place}: {found:?}");
    }
    for (mach, place) in [(2.0, 0.5), (300.0, 0.5)] {
        let found = collision::<f32>(method(true), mach, place);
        assert!(right(found), "{mach} {place}, f32: {found:?}");
    }
}

/// Returns the largest relative change of p / rho^gamma in a smooth wave that compresses cold gas, v = sin 2 pi x, before it steepens.
fn adiabat(method: FluidMethod, n: usize) -> f64 {
    let start = 1e-8;
    let state = |i: usize| {
        let x = (i as f64 + 0.5) / n as f64;
        cell::<f64>([1.0, (2.0 * std::f64::consts::PI * x).sin(), start])
    };
    let cells = (0..n).map(state).collect();
    let mut tube = Tube::new(method, 0, Ends::Periodic, 1.0 / n as f64, cells);
    tube.run(0.08, COURANT);
    let entropy = |u: &[f64; 6]| pressures(u)[1] / u[0].powf(GAMMA) / start - 1.0;
    let changes = tube.cells.iter().map(|u| entropy(u).abs());
    changes.fold(0.0, f64::max)
}

#[test]
fn cold_gas_keeps_its_adiabat() {
    let [coarse, fine] = [64, 128].map(|n| adiabat(method(true), n));
    println!("{coarse} {fine}");
    assert!(fine < 2e-3 && fine < 0.5 * coarse, "{coarse} {fine}");
    let ppm = FluidMethod {
        reconstruction: Reconstruction::Ppm,
        ..method(true)
    };
    assert!(adiabat(ppm, 64) < 1.2 * coarse);
}

/// Cold streams collide in the middle of a cell or on a face; the shocks must leave it.
#[test]
fn a_collapse_onto_one_cell_makes_its_shocks() {
    const N: usize = 128;
    let width = |place: f64| {
        let state = |i: usize| {
            let x = (i as f64 + 0.5 + place) / N as f64;
            cell::<f64>([1.0, (2.0 * std::f64::consts::PI * x).sin(), 1e-8])
        };
        let cells = (0..N).map(state).collect();
        let mut tube = Tube::new(method(true), 0, Ends::Periodic, 1.0 / N as f64, cells);
        tube.run(0.4, COURANT);
        tube.cells.iter().filter(|u| pressures(u)[1] > 1e-2).count()
    };
    let widths = [0.0, 0.25, 0.5].map(width);
    println!("{widths:?}");
    assert!(widths.iter().all(|n| (20..30).contains(n)), "{widths:?}");
}

#[test]
fn the_exact_solver_and_first_order_fluxes_carry_it_too() {
    let exact = FluidMethod {
        riemann: RiemannSolver::Exact,
        ..method(true)
    };
    assert!(carried::<f64>(exact, 30.0)[1] < 1e-12);
}

/// Cold gas `[density, momentum, energy, internal energy]` at rest or moving.
fn state(velocity: f64, internal: f64) -> [f64; 6] {
    [
        2.0,
        2.0 * velocity,
        0.0,
        0.0,
        velocity * velocity + internal,
        internal,
    ]
}

#[test]
fn what_changes_the_energy_changes_the_internal_energy() {
    let before = state(1e3, 1.0);
    let mut heated = before;
    heated[4] += 0.25;
    assert_eq!(dual::with_dependents(&before, &heated)[5], 1.25);
    // a change of 1e-3 of the velocity is within the round-off of the total energy
    let mut pushed = before;
    pushed[1] *= 1.001;
    pushed[4] += pushed[1] * pushed[1] / 4.0 - before[1] * before[1] / 4.0 + 1e-10;
    assert_eq!(dual::with_dependents(&before, &pushed)[5], 1.0);
    pushed[4] += 0.5;
    assert!((dual::with_dependents(&before, &pushed)[5] - 1.5).abs() < 1e-8);
    let mut given = heated;
    given[5] = 3.0;
    assert_eq!(dual::with_dependents(&before, &given), given);
    let mut cooled = before;
    cooled[5] = 0.5;
    assert_eq!(dual::with_dependents(&before, &cooled)[4], before[4] - 0.5);
}

#[test]
fn averages_keep_what_they_tell() {
    // subgrid motion of 1e-3 of the kinetic energy does not heat cold gas
    let mut cold = state(1e3, 1.0);
    cold[4] += 1e3;
    let settled = dual::reconciled(&cold, &[3e-2, 1e-3]);
    assert_eq!((settled[4], settled[5]), (1e6 + 1.0, 1.0));
    let hot = state(1.0, 4.0);
    assert_eq!(dual::reconciled(&hot, &[3e-2, 1e-3]), hot);
    let w = dual::interpolated(&cold);
    assert_eq!(dual::from_interpolated(&w)[5], 1.0);
}

/// Gas at rest `[density, momentum, energy, field, internal energy]` of constrained transport, with a magnetic energy of 5000.
fn magnetised(thermal: f64, internal: f64) -> [f64; 9] {
    [2.0, 0.0, 0.0, 0.0, thermal, 60.0, 80.0, 0.0, internal]
}

/// Inserts the cleaning variable.
fn with_cleaning(u: &[f64; 9]) -> [f64; 10] {
    let [a, b, c, d, e, x, y, z, internal] = *u;
    [a, b, c, d, e, x, y, z, 0.25, internal]
}

/// An average that leaves less than a thousandth of the magnetic energy takes the internal energy; where more is left both remain. The field
/// never changes.
#[test]
fn averages_of_strongly_magnetised_gas_keep_their_pressure() {
    let thresholds = [3e-2, 1e-3];
    for (thermal, expected) in [(-7.0, 1.0), (4.9, 1.0), (5.1, 5.1)] {
        let u = magnetised(thermal, 1.0);
        let settled = dual::reconciled(&u, &thresholds);
        assert_eq!(settled, magnetised(expected, 1.0));
        let settled = dual::reconciled(&with_cleaning(&u), &thresholds);
        assert_eq!(settled, with_cleaning(&magnetised(expected, 1.0)));
    }
    let u = magnetised(-7.0, 1.0);
    assert!(dual::is_physical(&u) && !dual::is_physical(&magnetised(7.0, -1.0)));
    assert_eq!(dual::remainder(&u)[4], 5000.0);
    assert_eq!(dual::remainder(&with_cleaning(&u))[4], 5000.0);
    let w = dual::interpolated(&with_cleaning(&u));
    let settled = with_cleaning(&magnetised(1.0, 1.0));
    assert_eq!(dual::from_interpolated(&w), settled);
    let spoilt = with_cleaning(&magnetised(4.0, -1.0));
    assert_eq!(dual::repaired(&spoilt, &w), settled);
    let mut heated = u;
    heated[4] += 0.25;
    assert_eq!(dual::with_dependents(&u, &heated)[8], 1.25);
}

/// Without kinetic energy the threshold of the magnetic energy decides, except in velocity jumps, where more heat wins.
#[test]
fn the_internal_energy_is_taken_where_the_magnetic_energy_dominates() {
    let thresholds = DualEnergy::default().thresholds::<f64>();
    let chosen = |thermal: f64, magnetic: f64, meeting: f64| {
        let u = [2.0, 0.0, 0.0, 0.0, thermal];
        dual::reconcile_energies(&u, 1.0, magnetic, 0.0, meeting, &thresholds)
    };
    assert_eq!(chosen(4.9, 5000.0, 0.0), [1.0, 1.0]);
    assert_eq!(chosen(-3.0, 5000.0, 0.0), [1.0, 1.0]);
    assert_eq!(chosen(5.1, 5000.0, 0.0), [5.1, 5.1]);
    assert_eq!(chosen(4.9, 5000.0, 1.0), [4.9, 4.9]);
    assert_eq!(chosen(4.9, 0.0, 0.0), [4.9, 4.9]);
}

/// The signal rate with both energies is that of the same gas with one, and knows the field.
#[test]
fn the_signal_rate_takes_the_pressure_from_the_internal_energy() {
    let u = magnetised(7.0, 7.0);
    let [a, b, c, d, e, x, y, z, _] = u;
    let own = [a, b, c, d, e, x, y, z, 0.25];
    let inverse = [3.0, 4.0, 5.0];
    let rate = |u: &[f64; 9], internal| {
        magnetic::checked_signal_rate_from_internal(u, internal, &inverse, GAMMA)
    };
    assert_eq!(
        rate(&own, 7.0),
        magnetic::checked_signal_rate(&own, &inverse, GAMMA)
    );
    let mut lost = own;
    lost[4] = -3.0;
    assert_eq!(rate(&lost, 7.0), rate(&own, 7.0));
    assert_eq!(rate(&own, -1.0), -1.0);
    lost[4] = f64::NAN;
    assert_eq!(rate(&lost, 7.0), -1.0);
}

#[test]
fn either_energy_is_chosen_where_it_is_right() {
    let thresholds = DualEnergy::default().thresholds::<f64>();
    let chosen = |velocity: f64, heat: f64, step: f64, meeting: f64| {
        let u = state(velocity, heat);
        dual::reconcile_energies(
            &[u[0], u[1], u[2], u[3], u[4]],
            1.0,
            0.0,
            step,
            meeting,
            &thresholds,
        )
    };
    // hot gas, cold gas, cold gas at a node of the velocity, a shock
    assert_eq!(chosen(1.0, 4.0, 0.0, 0.0), [5.0, 4.0]);
    assert_eq!(chosen(1e3, 4.0, 0.0, 0.0), [1e6 + 1.0, 1.0]);
    assert_eq!(chosen(0.0, 4.0, 100.0, 0.0), [1.0, 1.0]);
    assert_eq!(chosen(1e3, 4.0, 100.0, 1.0), [1e6 + 4.0, 4.0]);
    assert_eq!(chosen(1e3, 0.5, 100.0, 1.0), [1e6 + 1.0, 1.0]);
}
