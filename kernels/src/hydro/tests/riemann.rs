//! Checks the Riemann solvers against exact results.
use super::sample::Random;
use crate::choice::Choice;
use crate::hydro::RiemannSolver;
use crate::hydro::eos::{conserved_from_primitive, total_energy};
use crate::hydro::riemann::exact::{flux_exact, sample, star};
use crate::hydro::riemann::hllc::flux_hllc;
use crate::hydro::riemann::hlle::flux_hlle;
use crate::hydro::riemann::hlle::flux_smoothed;
use crate::hydro::riemann::magnetic;
use crate::hydro::riemann::roe::flux_roe;
use crate::hydro::riemann::{
    flux, flux_of_scalar, flux_of_state, select_riemann_solver, wave_speeds,
};
use crate::hydro::shock::{damped, shock_along};

type Solver = fn(&[f64; 5], &[f64; 5], f64) -> [f64; 5];
const GAMMA: f64 = 1.4;

/// All solvers, and the flux through slow shocks.
fn solvers() -> Vec<(&'static str, Solver)> {
    let of = |solver: &RiemannSolver| {
        let flux: Solver = select_riemann_solver!(*solver, flux::<f64>);
        (solver.word(), flux)
    };
    let mut solvers: Vec<_> = RiemannSolver::ALL.iter().map(of).collect();
    solvers.push(("smoothed", flux_smoothed::<f64>));
    solvers
}

fn random_state(random: &mut Random) -> [f64; 5] {
    let mut factor = || random.between(-3.0, 3.0).exp();
    let (density, pressure) = (factor(), factor());
    let mut velocity = || random.between(-3.0, 3.0);
    [density, velocity(), velocity(), velocity(), pressure]
}

fn physical_flux(w: &[f64; 5]) -> [f64; 5] {
    flux_of_state(w, total_energy(w[0], [w[1], w[2], w[3]], w[4], GAMMA))
}

fn close(a: &[f64; 5], b: &[f64; 5], scale: f64) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 4e-14 * scale)
}

fn scale(w: &[f64; 5]) -> f64 {
    let speed = w[1].abs() + w[2].abs() + w[3].abs() + (GAMMA * w[4] / w[0]).sqrt();
    w[0] * (1.0 + speed).powi(3)
}

#[test]
fn equal_states_give_the_physical_flux() {
    let mut random = Random(5);
    for (name, solver) in solvers() {
        for _ in 0..1000 {
            let w = random_state(&mut random);
            assert!(
                close(&solver(&w, &w, GAMMA), &physical_flux(&w), scale(&w)),
                "{name} {w:?}"
            );
        }
    }
}

#[test]
fn supersonic_flow_takes_the_upwind_flux() {
    let mut random = Random(6);
    // local Lax-Friedrichs fluxes are not upwind
    for (name, solver) in solvers().into_iter().filter(|(name, _)| *name != "llf") {
        for _ in 0..200 {
            let (mut l, mut r) = (random_state(&mut random), random_state(&mut random));
            let c = [l, r].map(|w| (GAMMA * w[4] / w[0]).sqrt());
            l[1] = 3.0 * (c[0] + c[1]) + 20.0;
            r[1] = l[1] + random.between(-0.1, 0.1);
            let (slowest, _) = wave_speeds(&l, &r, GAMMA);
            if slowest > 0.0 {
                let f = solver(&l, &r, GAMMA);
                assert!(
                    close(&f, &physical_flux(&l), scale(&l)),
                    "{name} {l:?} {r:?} {f:?}"
                );
            }
        }
    }
}

/// Mirrored states give mirrored fluxes, and both tangential directions are equivalent.
#[test]
fn solvers_are_exactly_symmetric() {
    let mut random = Random(7);
    for (name, solver) in solvers() {
        for case in 0..2000 {
            let l = random_state(&mut random);
            let mut r = random_state(&mut random);
            if case % 4 == 0 {
                // symmetric about the face: the contact is at rest
                r = [l[0], -l[1], l[2], l[3], l[4]];
            }
            let mirror = |w: &[f64; 5]| [w[0], -w[1], w[2], w[3], w[4]];
            let turn = |w: &[f64; 5]| [w[0], w[1], w[3], w[2], w[4]];
            let f = solver(&l, &r, GAMMA);
            let m = solver(&mirror(&r), &mirror(&l), GAMMA);
            assert_eq!(m, [-f[0], f[1], -f[2], -f[3], -f[4]], "{name} {l:?} {r:?}");
            assert_eq!(
                solver(&turn(&l), &turn(&r), GAMMA),
                turn(&f),
                "{name} {l:?} {r:?}"
            );
        }
    }
}

#[test]
fn stationary_contacts_are_exact() {
    let mut random = Random(8);
    for (name, solver) in solvers() {
        for _ in 0..500 {
            let (mut l, mut r) = (random_state(&mut random), random_state(&mut random));
            (l[1], r[1], r[4]) = (0.0, 0.0, l[4]);
            if name == "aufs" {
                // it diffuses shear layers
                (r[2], r[3]) = (l[2], l[3]);
            }
            let f = solver(&l, &r, GAMMA);
            if ["hlle", "hll", "llf", "smoothed"].contains(&name) {
                assert!(f[0] != 0.0, "{name} diffuses contacts");
            } else {
                assert_eq!(f, [0.0, l[4], 0.0, 0.0, 0.0], "{name} {l:?} {r:?}");
            }
        }
    }
}

/// Returns the states ahead of and behind a Mach 6 shock that moves with `speed` against the gas ahead of it.
fn mach_6(speed: f64) -> [[f64; 5]; 2] {
    let ratio = 2.4 * 36.0 / (0.4 * 36.0 + 2.0);
    let pressure = (2.8 * 36.0 - 0.4) / 2.4;
    [
        [1.0, 6.0 + speed, 0.0, 0.0, 1.0 / GAMMA],
        [ratio, 6.0 / ratio + speed, 0.0, 0.0, pressure / GAMMA],
    ]
}

/// The flux through a shock has a kink where the shock is at rest; the smoothed one has none.
#[test]
fn smoothed_fluxes_have_no_kink_at_shocks_at_rest() {
    let kink = |solver: Solver| {
        let [before, at, after] = [-1e-4, 0.0, 1e-4].map(|speed| {
            let [l, r] = mach_6(speed);
            // Galilean invariance apart: mass in the frame of the shock
            solver(&l, &r, GAMMA)[0] - speed * l[0]
        });
        ((after - at) - (at - before)).abs() / 1e-4
    };
    // with a negative speed of the shock, the flux is that behind it: by the jump of density times the speed
    assert!((kink(flux_hlle::<f64>) - (mach_6(0.0)[1][0] - 1.0)).abs() < 1e-2);
    assert!((kink(flux_hllc::<f64>) - (mach_6(0.0)[1][0] - 1.0)).abs() < 1e-2);
    assert!(kink(flux_smoothed::<f64>) < 1e-3);
}

/// At Mach 6 a shock is slow below 0.17 of the jump in velocity, 4.86 here; shocks in gas at rest are fast at any strength.
#[test]
fn slow_shocks_are_told_from_fast_ones() {
    let found = |speed: f64| {
        let [l, r] = mach_6(speed);
        let inside = 0.5 * (l[4] + r[4]);
        let along = |l: [f64; 5], r: [f64; 5]| {
            shock_along(&[l[0], r[0]], &[l[1], r[1]], &[l[4], inside, r[4]])
        };
        let mirrored = |w: [f64; 5]| [w[0], -w[1], w[2], w[3], w[4]];
        assert_eq!(along(l, r), along(mirrored(r), mirrored(l)));
        along(l, r)
    };
    assert_eq!([0.0, 0.8, -0.8].map(found), [2.0; 3]);
    assert_eq!([0.85, -0.85, -6.0, 6.0].map(found), [1.0; 4]);
    let [l, r] = mach_6(0.0);
    let expansion = shock_along(&[r[0], l[0]], &[r[1], l[1]], &[r[4], l[4], l[4]]);
    assert_eq!(expansion, 0.0);
    // faces normal to the axis, and to another one
    assert!(damped(2.0, 0.0, 0.0) > 0.0 && damped(0.0, 2.0, 0.0) > 0.0);
    assert!(damped(1.0, 0.0, 0.0) <= 0.0 && damped(0.0, 0.0, 1.0) > 0.0);
}

/// HLLC and Roe's solver resolve a moving contact and an isolated shock (here Mach 3 into gas at rest).
#[test]
fn hllc_and_roe_are_exact_for_contacts_and_shocks() {
    let (l, r) = ([1.0, 0.7, 0.1, 0.2, 1.0], [0.1, 0.7, -0.3, 0.4, 1.0]);
    for solver in [flux_hllc, flux_roe] {
        assert!(close(&solver(&l, &r, GAMMA), &physical_flux(&l), 1.0));
    }
    // Rankine-Hugoniot, Toro 2009, eqs. 3.53 to 3.61
    let mach = 3.0f64;
    let m2 = mach * mach;
    let density = (GAMMA + 1.0) * m2 / ((GAMMA - 1.0) * m2 + 2.0);
    let pressure = (2.0 * GAMMA * m2 - (GAMMA - 1.0)) / (GAMMA + 1.0);
    let c = GAMMA.sqrt();
    let velocity = (1.0 - 1.0 / density) * mach * c;
    let (behind, ahead) = (
        [density, velocity, 0.0, 0.0, pressure],
        [1.0, 0.0, 0.0, 0.0, 1.0],
    );
    let (_, fastest) = wave_speeds(&behind, &ahead, GAMMA);
    assert!((fastest - mach * c).abs() < 1e-12);
    for solver in [flux_hllc, flux_roe] {
        let f = solver(&behind, &ahead, GAMMA);
        assert!(close(&f, &physical_flux(&behind), 100.0), "{f:?}");
    }
}

/// Toro 2009, tables 4.1 and 4.2 (test, left, right, star pressure, star velocity).
pub const TORO: [([f64; 3], [f64; 3], f64, f64); 5] = [
    ([1.0, 0.0, 1.0], [0.125, 0.0, 0.1], 0.30313, 0.92745),
    ([1.0, -2.0, 0.4], [1.0, 2.0, 0.4], 0.00189, 0.0),
    ([1.0, 0.0, 1000.0], [1.0, 0.0, 0.01], 460.894, 19.5975),
    ([1.0, 0.0, 0.01], [1.0, 0.0, 100.0], 46.0950, -6.19633),
    (
        [5.99924, 19.5975, 460.894],
        [5.99242, -6.19633, 46.0950],
        1691.64,
        8.68975,
    ),
];

/// Star densities left and right of the contact (table 4.3).
const STAR_DENSITIES: [[f64; 2]; 5] = [
    [0.42632, 0.26557],
    [0.02185, 0.02185],
    [0.57506, 5.99924],
    [5.99242, 0.57511],
    [14.2823, 31.0426],
];

#[test]
fn star_states_agree_with_toros_tables() {
    // six significant digits, less where the table has less
    let agrees = |a: f64, b: f64| (a - b).abs() <= 0.51e-5_f64.max(0.6e-5 * b.abs());
    for ((l, r, p, u), densities) in TORO.iter().zip(STAR_DENSITIES) {
        let (p_star, u_star) = star(l, r, GAMMA);
        assert!(
            agrees(p_star, *p) && agrees(u_star, *u),
            "{l:?}: {p_star} {u_star}"
        );
        // just left and right of the contact
        for (side, density) in [-1e-9, 1e-9].into_iter().zip(densities) {
            let (w, from_left) = sample(l, r, u_star + side, GAMMA);
            assert!(agrees(w[0], density), "{l:?} {side}: {} {density}", w[0]);
            assert_eq!(from_left, side < 0.0);
            assert_eq!((w[1], w[2]), (u_star, p_star));
        }
    }
}

#[test]
fn the_exact_solution_is_continuous_through_fans_and_keeps_their_invariants() {
    // Sod's left rarefaction: u + 2 c / (gamma - 1) and p / rho^gamma are constant across it
    let (l, r) = ([1.0, 0.0, 1.0], [0.125, 0.0, 0.1]);
    let c0 = GAMMA.sqrt();
    for step in 0..=100 {
        let s = -c0 + f64::from(step) * 0.011;
        let (w, _) = sample(&l, &r, s, GAMMA);
        let c = (GAMMA * w[2] / w[0]).sqrt();
        assert!((w[1] + 5.0 * c - 5.0 * c0).abs() < 1e-12, "{s}");
        assert!((w[2] / w[0].powf(GAMMA) - 1.0).abs() < 1e-12, "{s}");
    }
}

#[test]
fn separating_gas_leaves_a_vacuum() {
    let (l, r) = ([1.0, -8.0, 1.0], [1.0, 8.0, 1.0]);
    assert_eq!(sample(&l, &r, 0.0, GAMMA).0, [0.0, 0.0, 0.0]);
    let f = flux_exact(
        &[1.0, -8.0, 0.5, 0.5, 1.0],
        &[1.0, 8.0, 0.5, 0.5, 1.0],
        GAMMA,
    );
    assert_eq!(f, [0.0; 5]);
    // the fans reach to the vacuum fronts u +- 2 c / (gamma - 1)
    let front = -8.0 + 5.0 * GAMMA.sqrt();
    assert!(sample(&l, &r, front - 1e-3, GAMMA).0[0] > 0.0);
    assert_eq!(sample(&l, &r, front + 1e-9, GAMMA).0[0], 0.0);
    // just short of a vacuum the solution still exists, tiny and positive
    let limit = 10.0 * GAMMA.sqrt();
    let (w, _) = sample(
        &[1.0, -0.49 * limit, 1.0],
        &[1.0, 0.49 * limit, 1.0],
        0.0,
        GAMMA,
    );
    assert!(w[0] > 0.0 && w[0] < 1e-6 && w[2] > 0.0);
}

/// The flux behind a wave of speed `s` by the textbook: `F + S (U* - U)` (Toro 2009, eqs. 10.38, 10.39), `s_m` by 10.37.
fn textbook_hllc(l: &[f64; 5], r: &[f64; 5]) -> [f64; 5] {
    let (s_l, s_r) = wave_speeds(l, r, GAMMA);
    let (m_l, m_r) = (l[0] * (s_l - l[1]), r[0] * (s_r - r[1]));
    let s_m = (r[4] - l[4] + l[1] * m_l - r[1] * m_r) / (m_l - m_r);
    if s_l >= 0.0 || s_r <= 0.0 {
        return physical_flux(if s_l >= 0.0 { l } else { r });
    }
    let (w, s) = if s_m >= 0.0 { (l, s_l) } else { (r, s_r) };
    let u = conserved_from_primitive(w, GAMMA);
    let factor = w[0] * (s - w[1]) / (s - s_m);
    let energy = u[4] / w[0] + (s_m - w[1]) * (s_m + w[4] / (w[0] * (s - w[1])));
    let star = [1.0, s_m, w[2], w[3], energy];
    let f = physical_flux(w);
    std::array::from_fn(|v| f[v] + s * (factor * star[v] - u[v]))
}

/// Toro 2009, eq. 10.21.
fn textbook_hlle(l: &[f64; 5], r: &[f64; 5]) -> [f64; 5] {
    let (s_l, s_r) = wave_speeds(l, r, GAMMA);
    if s_l >= 0.0 || s_r <= 0.0 {
        return physical_flux(if s_l >= 0.0 { l } else { r });
    }
    let (f_l, f_r) = (physical_flux(l), physical_flux(r));
    let (u_l, u_r) = (
        conserved_from_primitive(l, GAMMA),
        conserved_from_primitive(r, GAMMA),
    );
    std::array::from_fn(|v| {
        (s_r * f_l[v] - s_l * f_r[v] + s_l * s_r * (u_r[v] - u_l[v])) / (s_r - s_l)
    })
}

#[test]
fn approximate_solvers_agree_with_the_textbook() {
    let mut random = Random(9);
    for _ in 0..2000 {
        let (l, r) = (random_state(&mut random), random_state(&mut random));
        let scale = 100.0 * (scale(&l) + scale(&r));
        assert!(
            close(&flux_hllc(&l, &r, GAMMA), &textbook_hllc(&l, &r), scale),
            "{l:?} {r:?}"
        );
        assert!(
            close(&flux_hlle(&l, &r, GAMMA), &textbook_hlle(&l, &r), scale),
            "{l:?} {r:?}"
        );
    }
}

/// The average of a pair of states as Roe (1981) defines it, with the enthalpy.
#[test]
fn wave_speeds_are_bounded_by_those_of_the_roe_average() {
    let mut random = Random(10);
    for _ in 0..1000 {
        let (l, r) = (random_state(&mut random), random_state(&mut random));
        let (a, b) = (l[0].sqrt(), r[0].sqrt());
        let roe = |x: f64, y: f64| (a * x + b * y) / (a + b);
        let v = [1, 2, 3].map(|d| roe(l[d], r[d]));
        let enthalpy = |w: &[f64; 5]| (conserved_from_primitive(w, GAMMA)[4] + w[4]) / w[0];
        let kinetic = 0.5 * v.iter().map(|v| v * v).sum::<f64>();
        let c = ((GAMMA - 1.0) * (roe(enthalpy(&l), enthalpy(&r)) - kinetic)).sqrt();
        let sound = |w: &[f64; 5]| (GAMMA * w[4] / w[0]).sqrt();
        let (slowest, fastest) = wave_speeds(&l, &r, GAMMA);
        assert!(
            (slowest - (v[0] - c).min(l[1] - sound(&l))).abs() < 1e-12,
            "{l:?} {r:?}"
        );
        assert!(
            (fastest - (v[0] + c).max(r[1] + sound(&r))).abs() < 1e-12,
            "{l:?} {r:?}"
        );
    }
}

#[test]
fn contacts_are_resolved_by_solvers_with_a_contact_wave() {
    let diffusive: Vec<_> = RiemannSolver::ALL
        .iter()
        .filter(|solver| !solver.resolves_contacts())
        .map(|solver| solver.word())
        .collect();
    assert_eq!(diffusive, ["hlle", "hll", "llf"]);
}

#[test]
fn scalars_go_with_the_mass() {
    assert_eq!(flux_of_scalar(2.0, 0.25, 0.5), 0.5);
    assert_eq!(flux_of_scalar(-2.0, 0.25, 0.5), -1.0);
    assert_eq!(flux_of_scalar(0.0, 0.25, 0.5), 0.0);
}

/// A random state of gas with a field, of velocities around `speed`.
fn magnetised(random: &mut Random, speed: f64) -> [f64; 9] {
    let mut w = [0.0; 9];
    let plain = random_state(random);
    w[..5].copy_from_slice(&plain);
    (1..4).for_each(|v| w[v] = speed * random.between(-1.0, 1.0));
    (6..8).for_each(|v| w[v] = random.between(-1.0, 1.0));
    w[5] = 0.4;
    w
}

/// Slow flows push less, and nothing else changes: equal states give the same flux, and so do supersonic ones.
#[test]
fn the_solver_for_slow_flows_differs_in_their_pressure_only() {
    let mut random = Random(11);
    let law = [1.4, 0.5];
    for n in 0..200 {
        let [l, r] = [(); 2].map(|()| magnetised(&mut random, 1e-3));
        assert_eq!(
            magnetic::flux_lhlld(&l, &l, &law),
            magnetic::flux_hlld(&l, &l, &law),
            "{n}"
        );
        let mirror = |w: &[f64; 9]| [w[0], -w[1], w[2], w[3], w[4], -w[5], w[6], w[7], w[8]];
        let there = magnetic::flux_lhlld(&l, &r, &law);
        let back = magnetic::flux_lhlld(&mirror(&r), &mirror(&l), &law);
        assert!(
            there[1] == back[1] && there[0] == -back[0],
            "{n}: {there:?} {back:?}"
        );
        let fast = |w: &[f64; 9]| [w[0], w[1] + 30.0, w[2], w[3], w[4], w[5], w[6], w[7], w[8]];
        let (l, r) = (fast(&l), fast(&r));
        assert_eq!(
            magnetic::flux_lhlld(&l, &r, &law),
            magnetic::flux_hlld(&l, &r, &law),
            "{n}"
        );
    }
    // gas that meets slowly without a field: the pressure rises by the part 2 M of that of an acoustic wave
    let meeting = |v: f64| [1.0, v, 0.0, 0.0, 1.0 / 1.4, 0.0, 0.0, 0.0, 0.0];
    let rise = |flux: [f64; 9]| flux[1] - 1.0 / 1.4;
    let (l, r) = (meeting(1e-3), meeting(-1e-3));
    let whole = rise(magnetic::flux_hlld(&l, &r, &law));
    let part = rise(magnetic::flux_lhlld(&l, &r, &law));
    assert!((whole / 1e-3 - 1.0).abs() < 0.01, "{whole:e}");
    assert!((part / whole - 2e-3).abs() < 1e-5, "{:e}", part / whole);
}
