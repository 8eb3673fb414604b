//! One-dimensional problems with known solutions.
use super::riemann::TORO;
use super::sample::all_methods;
use super::tube::{Ends, Tube};
use crate::choice::Choice;
use crate::hydro::eos::conserved_from_primitive;
use crate::hydro::riemann::exact::sample;
use crate::hydro::{
    FluidMethod, HydroReal, Limiter, Reconstruction, RiemannSolver, Scheme, Variables,
};

const GAMMA: f64 = 1.4;
const COURANT: f64 = 0.4;

/// Gas and a scalar of concentration `x`.
pub fn conserved([density, velocity, pressure]: [f64; 3], x: f64) -> [f64; 6] {
    let [a, b, c, d, e] = conserved_from_primitive(&[density, velocity, 0.0, 0.0, pressure], GAMMA);
    [a, b, c, d, e, density * x]
}

/// Cells on [-0.5, 0.5] with a jump at `x0`.
fn shock_tube(
    method: FluidMethod,
    axis: usize,
    n: usize,
    l: [f64; 3],
    r: [f64; 3],
    x0: f64,
) -> Tube<f64> {
    let dx = 1.0 / n as f64;
    let cells = (0..n)
        .map(|i| {
            let left = (i as f64 + 0.5) * dx - 0.5 < x0;
            if left {
                conserved(l, 1.0)
            } else {
                conserved(r, 0.0)
            }
        })
        .collect();
    Tube::new(method, axis, Ends::Outflow, dx, cells)
}

/// L1 errors of the conserved variables against cell averages of the exact solution.
fn shock_tube_errors(tube: &Tube<f64>, l: [f64; 3], r: [f64; 3], x0: f64, time: f64) -> [f64; 5] {
    const POINTS: usize = 32;
    let mut errors = [0.0; 5];
    for (i, cell) in tube.cells.iter().enumerate() {
        let mut average = [0.0; 5];
        for point in 0..POINTS {
            let x = (i as f64 + (point as f64 + 0.5) / POINTS as f64) * tube.dx - 0.5;
            let exact = conserved(sample(&l, &r, (x - x0) / time, GAMMA).0, 0.0);
            (0..5).for_each(|v| average[v] += exact[v] / POINTS as f64);
        }
        (0..5).for_each(|v| errors[v] += tube.dx * (cell[v] - average[v]).abs());
    }
    errors
}

/// The root of the sum of the squared errors.
fn shock_tube_error(tube: &Tube<f64>, l: [f64; 3], r: [f64; 3], x0: f64, time: f64) -> f64 {
    let errors = shock_tube_errors(tube, l, r, x0, time);
    errors.iter().map(|e| e * e).sum::<f64>().sqrt()
}

fn second_order_methods() -> Vec<FluidMethod> {
    let keep = |m: &FluidMethod| {
        m.limiter == Limiter::MonotonizedCentral
            && m.riemann == RiemannSolver::Hllc
            && m.reconstruction != Reconstruction::Constant
    };
    all_methods().into_iter().filter(keep).collect()
}

#[test]
fn sod_is_accurate() {
    let (l, r, ..) = TORO[0];
    for method in second_order_methods() {
        let mut tube = shock_tube(method, 0, 128, l, r, 0.0);
        tube.run(0.25, COURANT);
        let error = shock_tube_error(&tube, l, r, 0.0, 0.25);
        assert!(error <= 0.009, "{method:?}: RMS-L1 {error}");
        assert_eq!(tube.first_order_cells, 0);
    }
}

/// RMS-L1 error of Sod's tube at `t = 0.25`.
fn sod_error(method: FluidMethod, n: usize) -> f64 {
    let (l, r, ..) = TORO[0];
    let mut tube = shock_tube(method, 0, n, l, r, 0.0);
    // a scheme of first order is less diffusive with long steps
    let first_order = method.reconstruction == Reconstruction::Constant;
    tube.run(0.25, if first_order { 0.8 } else { COURANT });
    assert_eq!(tube.first_order_cells, 0, "{method:?}");
    shock_tube_error(&tube, l, r, 0.0, 0.25)
}

#[test]
fn sod_has_the_error_of_each_choice() {
    let base = FluidMethod::default();
    let mut cases: Vec<(FluidMethod, f64, f64)> = RiemannSolver::ALL
        .iter()
        .map(|&riemann| {
            let bound = match riemann {
                RiemannSolver::Llf => 0.0115,
                RiemannSolver::Hlle | RiemannSolver::Hll => 0.009,
                _ => 0.0085,
            };
            (FluidMethod { riemann, ..base }, bound, 0.6)
        })
        .filter(|(method, ..)| method.riemann_item().is_some())
        .collect();
    let limiter = Limiter::Hybrid;
    // van Leer's limiter, from which it is made, has 0.0090
    cases.push((FluidMethod { limiter, ..base }, 0.0094, 0.6));
    let variables = Variables::Characteristic;
    cases.push((FluidMethod { variables, ..base }, 0.0085, 0.6));
    let reconstruction = Reconstruction::Constant;
    let constant = FluidMethod {
        reconstruction,
        ..base
    };
    cases.push((constant, 0.044, 0.65));
    for (method, bound, ratio) in cases {
        let coarse = sod_error(method, 128);
        assert!(coarse <= bound, "{method:?}: RMS-L1 {coarse}");
        if method.riemann == RiemannSolver::Exact {
            // takes long
            continue;
        }
        let fine = sod_error(method, 256);
        assert!(
            fine <= ratio * coarse,
            "{method:?}: RMS-L1 {coarse}, {fine}"
        );
    }
}

/// L1 error of the density in Toro's strong shock tubes.
#[test]
fn strong_shock_tubes_have_the_error_of_contact_resolving_solvers() {
    use RiemannSolver::{Aufs, Hllc, Roe};
    for riemann in [Hllc, Roe, Aufs] {
        let method = FluidMethod {
            riemann,
            ..FluidMethod::default()
        };
        for (test, bound) in [(2, 0.054), (3, 0.0605), (4, 0.22)] {
            let ((l, r, ..), (x0, end, _)) = (TORO[test], TORO_RUNS[test]);
            let mut tube = shock_tube(method, 0, 256, l, r, x0);
            tube.run(end, COURANT);
            let [error, ..] = shock_tube_errors(&tube, l, r, x0, end);
            assert!(error <= bound, "{riemann:?}, test {}: {error}", test + 1);
        }
    }
}

#[test]
fn sod_is_the_same_along_all_axes() {
    let (l, r, ..) = TORO[0];
    let [x, y, z] = [0, 1, 2].map(|axis| {
        let mut tube = shock_tube(FluidMethod::default(), axis, 64, l, r, 0.0);
        tube.run(0.25, COURANT);
        tube.cells
    });
    assert!(x == y && x == z);
}

/// (place of the jump, end) of Toro's tests 1 to 5, table 4.1 and section 10.8, on [-0.5, 0.5], and a bound on the RMS-L1
/// error at 64 cells, a tenth above that of the least accurate method.
const TORO_RUNS: [(f64, f64, f64); 5] = [
    (-0.2, 0.2, 0.02),
    (0.0, 0.15, 0.072),
    (0.0, 0.012, 66.0),
    (-0.1, 0.035, 5.7),
    (-0.1, 0.035, 118.0),
];

#[test]
fn toros_problems_stay_physical() {
    let default = FluidMethod::default();
    let wanted = |m: &FluidMethod| match m.limiter {
        _ if m.reconstruction == Reconstruction::Constant => false,
        Limiter::MonotonizedCentral if m.riemann != RiemannSolver::Exact => true,
        _ => {
            m.scheme == default.scheme
                && m.reconstruction == default.reconstruction
                && m.riemann == RiemannSolver::Hllc
        }
    };
    let exact = FluidMethod {
        riemann: RiemannSolver::Exact,
        ..default
    };
    for method in all_methods().into_iter().filter(wanted).chain([exact]) {
        for ((l, r, ..), (x0, end, bound)) in TORO.into_iter().zip(TORO_RUNS) {
            let mut tube = shock_tube(method, 0, 64, l, r, x0);
            tube.run(end, COURANT);
            let error = shock_tube_error(&tube, l, r, x0, end);
            // local Lax-Friedrichs fluxes are more diffusive than the others
            let bound = match method.riemann {
                RiemannSolver::Llf => 1.3 * bound,
                _ => bound,
            };
            assert!(error <= bound, "{method:?} {l:?}: RMS-L1 {error}");
            assert_eq!(tube.first_order_cells, 0, "{method:?} {l:?}");
            // the van Leer scheme may overshoot by little: its half step knows nothing of the reconstruction
            if method.scheme == Scheme::MusclHancock {
                let mut dye = tube.cells.iter().map(|cell| cell[5] / cell[0]);
                let bounds = -1e-13..1.0 + 1e-13;
                assert!(dye.all(|x| bounds.contains(&x)), "{method:?} {l:?}");
            }
        }
    }
}

/// A stationary contact does not change by a single bit.
#[test]
fn a_stationary_contact_stays_exact() {
    fn run<R: HydroReal>(method: FluidMethod) {
        let cell = |i: usize| {
            conserved(
                [if (8..20).contains(&i) { 10.0 } else { 0.7 }, 0.0, 1.3],
                0.5,
            )
            .map(R::lit)
        };
        let cells: Vec<[R; 6]> = (0..32).map(cell).collect();
        let mut tube = Tube::new(method, 1, Ends::Periodic, 1.0 / 32.0, cells.clone());
        tube.run(0.1, COURANT);
        assert!(tube.cells == cells, "{method:?}");
    }
    for method in all_methods() {
        if method.riemann == RiemannSolver::Hllc
            || (method.riemann == RiemannSolver::Exact && method.limiter == Limiter::Minmod)
        {
            run::<f64>(method);
            run::<f32>(method);
        }
    }
}

/// L1 errors of the densities of gas and scalar in smooth waves carried through a quarter of the periodic box.
fn advection_errors(method: FluidMethod, n: usize) -> [f64; 2] {
    const POINTS: usize = 16;
    let dx = 1.0 / n as f64;
    // averages over cell i at time t
    let exact = |i: usize, t: f64| {
        let mut average = [0.0; 2];
        for point in 0..POINTS {
            let x = (i as f64 + (point as f64 + 0.5) / POINTS as f64) * dx - t;
            let phase = 2.0 * std::f64::consts::PI * x;
            let density = 1.0 + 0.2 * phase.sin();
            average[0] += density / POINTS as f64;
            average[1] += density * (0.5 + 0.2 * phase.cos()) / POINTS as f64;
        }
        average
    };
    let cell = |i: usize| {
        let [density, scalar] = exact(i, 0.0);
        conserved([density, 1.0, 0.6], scalar / density)
    };
    let mut tube = Tube::new(method, 0, Ends::Periodic, dx, (0..n).map(cell).collect());
    tube.run(0.25, COURANT);
    let error = |i: usize, c: usize, v: usize| dx * (tube.cells[i][c] - exact(i, 0.25)[v]).abs();
    [(0, 0), (5, 1)].map(|(c, v)| (0..n).map(|i| error(i, c, v)).sum())
}

#[test]
fn smooth_advection_converges_at_second_order() {
    for method in second_order_methods() {
        let [coarse, fine] = [64, 128].map(|n| advection_errors(method, n));
        for v in 0..2 {
            let order = (coarse[v] / fine[v]).log2();
            // errors of time and space partly cancel in the coarse box
            let cancels = v == 0 && method.scheme == Scheme::Rk2 && fine[v] < 1e-6;
            assert!(
                order >= if cancels { 1.7 } else { 1.9 },
                "{method:?} {v}: {coarse:?} {fine:?}, order {order}"
            );
            assert!(fine[v] < 1.2e-4, "{method:?} {v}: {fine:?}");
        }
    }
}
