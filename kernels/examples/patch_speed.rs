//! Measures cell updates per second of the patch solver on one core, for each method and lane type, with patches in cache.
//!
//! `cargo run --release -p nestar-kernels --example patch_speed [word...]` prints only lines that contain every word.
use nestar_kernels::CELLS;
use nestar_kernels::choice::Choice;
use nestar_kernels::hydro::{
    Cleaning, FaceFluxes, FluidMethod, HydroReal, LaneChoice, Limiter, PatchSolver, PatchStep,
    Reconstruction, RiemannSolver, Scheme, Variables,
};
use std::time::Instant;

/// Fills the input with a smooth flow and a jump, so that limiters and solvers take all their branches.
fn fill<R: HydroReal>(input: &mut [R], width: usize, stride: usize, scalars: usize) {
    for at in 0..width * width * width {
        let [x, y, z] =
            [at % width, at / width % width, at / (width * width)].map(|i| i as f64 / width as f64);
        let density =
            1.0 + 0.3 * (6.0 * x + 4.0 * y - 2.0 * z).sin() + if x + y > 1.2 { 1.0 } else { 0.0 };
        let velocity = [
            0.5 * (5.0 * y).sin(),
            0.4 * (5.0 * z).cos(),
            0.3 * (5.0 * x).sin(),
        ];
        let pressure = 1.0 + 0.2 * (3.0 * x * y + z).cos();
        let kinetic: f64 = velocity.iter().map(|v| 0.5 * density * v * v).sum();
        let momentum = velocity.map(|v| density * v);
        let state = [
            density,
            momentum[0],
            momentum[1],
            momentum[2],
            pressure / 0.4 + kinetic,
        ];
        for (c, value) in state.into_iter().enumerate() {
            input[c * stride + at] = R::lit(value);
        }
        for c in 5..5 + scalars {
            input[c * stride + at] = R::lit(density * x);
        }
    }
}

/// Returns the best rate of many rounds, each short enough to fit between two interruptions of a busy machine.
fn rate<R: HydroReal>(method: FluidMethod, lanes: LaneChoice, scalars: usize) -> f64 {
    const UPDATES: usize = 10;
    let solver = PatchSolver::<R>::new(method, 1.4, scalars, lanes);
    let mut scratch = solver.scratch();
    let (width, stride) = (scratch.width(), scratch.component_stride());
    fill(scratch.input(), width, stride, scalars);
    let mut out = vec![R::lit(0.0); solver.components() * CELLS];
    let step = PatchStep {
        rates: [R::lit(0.1); 3],
        inverse_dx: [R::lit(8.0); 3],
        first_order: None,
        cleaning: Cleaning::default(),
        before: None,
    };
    let mut best = f64::INFINITY;
    for _ in 0..200 {
        let start = Instant::now();
        for _ in 0..UPDATES {
            let outcome = solver.update(&mut scratch, &step, &mut out, &mut FaceFluxes::default());
            assert!(!outcome.any, "the test flow turned unphysical");
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    (UPDATES * CELLS) as f64 / best
}

fn line<R: HydroReal>(
    words: &[String],
    precision: &str,
    method: FluidMethod,
    lanes: LaneChoice,
    scalars: usize,
) {
    let FluidMethod {
        scheme,
        reconstruction,
        variables,
        limiter,
        riemann,
        ..
    } = method;
    let name = format!(
        "{precision} {lanes:?} {scheme:?} {reconstruction:?} {variables:?} {limiter:?} {riemann:?} scalars={scalars}"
    );
    if words.iter().all(|word| name.contains(word)) && lanes.available() == lanes {
        println!(
            "{:8.2}e6 cells/s  {name}",
            rate::<R>(method, lanes, scalars) * 1e-6
        );
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let base = FluidMethod::default();
    let mut methods = vec![(base, 0), (base, 2)];
    let choices = Limiter::ALL
        .iter()
        .map(|&limiter| FluidMethod { limiter, ..base });
    let solvers = RiemannSolver::ALL
        .iter()
        .map(|&riemann| FluidMethod { riemann, ..base });
    methods.extend(
        choices
            .chain(solvers)
            .filter(|method| *method != base)
            .map(|method| (method, 0)),
    );
    for &scheme in Scheme::ALL {
        for &reconstruction in Reconstruction::ALL {
            for &variables in Variables::ALL {
                let method = FluidMethod {
                    scheme,
                    reconstruction,
                    variables,
                    ..base
                };
                let sensible = variables == Variables::Primitive || method.limits_slopes();
                methods.extend((sensible && method != base).then_some((method, 0)));
            }
        }
    }
    for (method, scalars) in methods {
        for lanes in [LaneChoice::Scalar, LaneChoice::Avx2, LaneChoice::Avx512] {
            line::<f64>(&words, "f64", method, lanes, scalars);
            line::<f32>(&words, "f32", method, lanes, scalars);
        }
    }
}
