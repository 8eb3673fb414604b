//! Shock tubes, contacts and the point explosion against exact solutions.

use nestar_tests::exact::{Side, sedov_density, sedov_radius, shock_tube_mean};
use nestar_tests::norms::{l1, totals};
use nestar_tests::{State, Stepper};

const SOD: [Side; 2] = [[1.0, 0.0, 1.0], [0.125, 0.0, 0.1]];

/// A tube of `cells` cells along axis `axis`, from -1/2 to 1/2, with the jump at 0.
fn tube(axis: usize, cells: usize, sides: [Side; 2], end: f64, settings: &[&str]) -> State {
    tube_run(axis, cells, sides, end, settings).state()
}

/// The same, and the finished run.
fn tube_run(
    axis: usize,
    cells: usize,
    [left, right]: [Side; 2],
    end: f64,
    settings: &[&str],
) -> Stepper {
    let mut count = [8; 3];
    count[axis] = cells;
    let half = count.map(|n| 0.5 * n as f64 / cells as f64);
    let name = ["x", "y", "z"][axis];
    let boundary = ["x", "y", "z"].map(|a| {
        let kind = if a == name { "outflow" } else { "periodic" };
        format!("{a} = \"{kind}\"")
    });
    let text = format!(
        r#"
        scenario = "formula"
        [initial]
        density = "if({name} < 0, {}, {})"
        velocity_{name} = "if({name} < 0, {}, {})"
        pressure = "if({name} < 0, {}, {})"
        [domain]
        cells = {count:?}
        left_edge = {:?}
        right_edge = {half:?}
        boundary = {{ {} }}
        [time]
        end = {end}
        [mesh]
        [hydro]
        gamma = 1.4
        "#,
        left[0],
        right[0],
        left[1],
        right[1],
        left[2],
        right[2],
        half.map(|h| -h),
        boundary.join(", "),
    );
    let mut stepper = Stepper::new(&text, settings);
    stepper.finish();
    stepper
}

/// The cells of a tube in order; cells of one cross-section must be bitwise equal.
fn profile(state: &State, axis: usize) -> Vec<[u64; 3]> {
    let mut cells = std::collections::BTreeMap::new();
    state.each_leaf_cell(|_, x, _, u| {
        let values = [u[0], u[1 + axis], u[4]].map(f64::to_bits);
        let first = *cells
            .entry(x[axis].to_bits() ^ (u64::MAX * u64::from(x[axis] < 0.0)))
            .or_insert(values);
        assert_eq!(first, values, "cells side by side differ at {x:?}");
        assert_eq!(
            [u[1 + (axis + 1) % 3], u[1 + (axis + 2) % 3]],
            [0.0; 2],
            "sideways flow at {x:?}"
        );
    });
    cells.into_values().collect()
}

/// L1 norms of density, momentum along the tube, energy.
fn tube_norms(state: &State, axis: usize, [left, right]: [Side; 2], end: f64) -> [f64; 3] {
    let norms = l1(state, |x, width| {
        let (low, high) = (x[axis] - 0.5 * width[axis], x[axis] + 0.5 * width[axis]);
        let [rho, m, e] = shock_tube_mean(low, high, end, left, right, 1.4);
        let mut u = [rho, 0.0, 0.0, 0.0, e];
        u[1 + axis] = m;
        u
    });
    [norms[0], norms[1 + axis], norms[4]]
}

#[test]
fn sods_tube_is_the_same_along_x_y_and_z() {
    let states = [0, 1, 2].map(|axis| tube(axis, 128, SOD, 0.25, &[]));
    let rms = tube_norms(&states[0], 0, SOD, 0.25)
        .iter()
        .map(|n| n * n)
        .sum::<f64>()
        .sqrt();
    println!("Sod, 128 cells, t = 0.25: RMS-L1 {rms:e}");
    assert!(rms <= 0.009, "RMS-L1 {rms}");
    let [x, y, z] = [0, 1, 2].map(|axis| profile(&states[axis], axis));
    assert_eq!(x.len(), 128);
    assert!(x == y && x == z, "the axes differ");
}

#[test]
fn sods_tube_converges_at_first_order() {
    let norm = |cells| tube_norms(&tube(0, cells, SOD, 0.2, &[]), 0, SOD, 0.2)[0];
    let (coarse, fine) = (norm(64), norm(128));
    assert!(fine < 0.62 * coarse, "{coarse:e} {fine:e}");
}

/// Toro 2009, table 4.1; each initial jump is placed such that the waves stay inside the tube.
#[test]
fn toros_five_problems_stay_physical() {
    let problems: [([Side; 2], f64, f64); 5] = [
        ([[1.0, 0.75, 1.0], [0.125, 0.0, 0.1]], 0.2, 0.03),
        ([[1.0, -2.0, 0.4], [1.0, 2.0, 0.4]], 0.12, 0.06),
        ([[1.0, 0.0, 1000.0], [1.0, 0.0, 0.01]], 0.012, 0.4),
        (
            [[5.99924, 19.5975, 460.894], [5.99242, -6.19633, 46.0950]],
            0.035,
            0.5,
        ),
        (
            [[1.0, -19.59745, 1000.0], [1.0, -19.59745, 0.01]],
            0.012,
            0.4,
        ),
    ];
    let schemes = [
        &["hydro.scheme=muscl-hancock"][..],
        &["hydro.scheme=vl", "hydro.reconstruction=ppm"][..],
    ];
    for settings in schemes {
        for (n, (sides, end, most)) in problems.iter().enumerate() {
            let state = tube(0, 128, *sides, *end, settings);
            state
                .physical()
                .unwrap_or_else(|e| panic!("problem {}: {e}", n + 1));
            let error = tube_norms(&state, 0, *sides, *end)[0];
            println!("Toro {} {settings:?}: L1 of density {error:e}", n + 1);
            assert!(
                error < *most,
                "problem {} {settings:?}: L1 of density {error}",
                n + 1
            );
        }
    }
}

#[test]
fn a_diagonal_tube_keeps_its_plane() {
    let text = r#"
        scenario = "sod"
        [sod]
        direction = "diagonal"
        [domain]
        cells = [32, 32, 32]
        left_edge = [-0.5, -0.5, -0.5]
        right_edge = [0.5, 0.5, 0.5]
        boundary = "outflow"
        [time]
        end = 0.1
        [mesh]
        [hydro]
        gamma = 1.4
    "#;
    let state = Stepper::new(text, &[]).finish().state();
    let (mut most, mut sum, mut cells) = (0.0f64, 0.0, 0.0);
    state.each_leaf_cell(|_, x, _, u| {
        // near the axis of the cube the waves of the domain's edges have not arrived
        let along = (x[0] + x[1] + x[2]) / 3.0f64.sqrt();
        let off = x.map(|v| (v - along / 3.0f64.sqrt()).abs());
        if off.iter().all(|d| *d < 0.1) && along.abs() < 0.3 {
            let [rho, m, e] = shock_tube_mean(along - 0.02, along + 0.02, 0.1, SOD[0], SOD[1], 1.4);
            sum += (u[0] - rho).abs()
                + ((u[1] + u[2] + u[3]) / 3.0f64.sqrt() - m).abs()
                + (u[4] - e).abs();
            cells += 1.0;
            // the exchange of axes is a symmetry of the problem, not of a cell: sideways flow is round-off on the axis only
            if off.iter().all(|d| *d < 1e-9) {
                most = most.max((u[1] - u[2]).abs()).max((u[2] - u[3]).abs());
            }
        }
    });
    assert!(
        cells > 300.0 && sum / cells < 0.06,
        "{cells} cells, mean error {}",
        sum / cells
    );
    assert_eq!(most, 0.0, "sideways flow on the axis");
}

const CONTACT: &str = r#"
    scenario = "formula"
    [initial]
    density = "if(x + 2*y - z < 0.3, 1.4, 1.0)"
    pressure = "1.0"
    [domain]
    cells = [16, 16, 16]
    [time]
    end = 0.5
    max_steps = 10
    [mesh]
    max_level = 0
    refine = [{ criterion = "box", left = [0.2, 0.1, 0.3], right = [0.6, 0.7, 0.6] }]
    [hydro]
    gamma = 1.4
"#;

/// A contact at rest does not change in any bit, uniform and across coarse-fine faces.
#[test]
fn a_contact_at_rest_stays() {
    for level in ["mesh.max_level=0", "mesh.max_level=2"] {
        for (solver, levels) in [("hllc", "adaptive"), ("exact", "shared")] {
            let [solver, levels] = [("hydro.riemann", solver), ("time.levels", levels)]
                .map(|(key, word)| format!("{key}={word}"));
            let settings = [level, &solver, &levels, "hydro.scheme=vl"];
            let mut stepper = Stepper::new(CONTACT, &settings);
            let before = stepper.state();
            let mut after = stepper.steps(3).state();
            after.clocks.clone_from(&before.clocks);
            assert_eq!(before.difference(&after), None, "{settings:?}");
        }
    }
}

/// An eighth of a point explosion, between three mirrors, in 8^3 root cells and three refined levels.
const SEDOV: &str = r#"
    scenario = "sedov"
    [sedov]
    centre = [0.0, 0.0, 0.0]
    [domain]
    cells = [8, 8, 8]
    right_edge = [0.5, 0.5, 0.5]
    boundary = { x = ["reflecting", "outflow"], y = ["reflecting", "outflow"], z = ["reflecting", "outflow"] }
    [time]
    end = 0.03
    [mesh]
    max_level = 3
    regrid_interval = 2
    flag_buffer = 2
    refine = [
        { criterion = "sphere", centre = [0.0, 0.0, 0.0], radius = 0.08 },
        { criterion = "gradient", field = "pressure", threshold = 0.3 },
    ]
    [hydro]
    gamma = 1.4
"#;

/// Radius at which the mean density over spherical shells is largest: the vertex of a parabola through the largest
/// shell and its neighbours.
fn shock_radius(state: &State) -> f64 {
    let shells = 256;
    let mut sums = vec![(0.0, 0.0); shells];
    state.each_leaf_cell(|_, x, volume, u| {
        let r = x.iter().map(|v| v * v).sum::<f64>().sqrt();
        if let Some((mass, total)) = sums.get_mut((r * 2.0 * shells as f64) as usize) {
            *mass += u[0] * volume;
            *total += volume;
        }
    });
    let density: Vec<f64> = sums
        .iter()
        .map(|(m, v)| if *v > 0.0 { m / v } else { 0.0 })
        .collect();
    let peak = (0..shells)
        .max_by(|&a, &b| density[a].total_cmp(&density[b]))
        .expect("there are shells");
    let [below, at, above] = [density[peak - 1], density[peak], density[peak + 1]];
    let shift = 0.5 * (below - above) / (below - 2.0 * at + above);
    (peak as f64 + 0.5 + shift) / (2.0 * shells as f64)
}

/// The shock of a point explosion through four levels has Sedov's radius, and the energy is kept.
#[test]
fn a_point_explosion_has_sedovs_radius() {
    let mut run = Stepper::new(SEDOV, &[]);
    let before = run.0.with(|s| totals(s));
    let state = run.finish().state();
    let after = run.0.with(|s| totals(s));
    println!("Sedov, patches {:?}, {:?}", state.counts(), run.counters());
    assert!(state.counts().len() == 4 && state.counts()[3] > 0);
    assert_eq!(run.counters().retried_steps, 0);
    let drift = (after[4] / before[4] - 1.0).abs();
    assert!(drift <= 1e-14, "energy drift {drift:e}");
    let error = shock_radius(&state) / sedov_radius(1.0, 1.0, run.time()) - 1.0;
    assert!(error.abs() <= 0.01, "error of the radius {error:e}");
}

/// Damping of shocks along the mesh changes no bit of a tube along an axis, and does not increase the error of a point explosion.
#[test]
fn the_shock_cure_costs_no_accuracy() {
    let settings = ["hydro.shock_cure=none", "hydro.shock_cure=hlle"];
    for sides in [SOD, [[1.0, 0.0, 1000.0], [1.0, 0.0, 0.01]]] {
        let [without, with] = settings.map(|cure| tube(1, 64, sides, 0.008, &[cure]));
        assert_eq!(without.difference(&with), None);
    }
    let [without, with] = settings.map(|cure| {
        let mut run = Stepper::new(SEDOV, &[cure, "time.end=0.01"]);
        let state = run.finish().state();
        let shock = sedov_radius(1.0, 1.0, run.time());
        let (mut error, mut total) = (0.0, 0.0);
        state.each_leaf_cell(|_, x, volume, u| {
            let r = x.iter().map(|v| v * v).sum::<f64>().sqrt();
            if r < 0.25 {
                error += (u[0] - sedov_density(r, shock)).abs() * volume;
                total += volume;
            }
        });
        error / total
    });
    println!("Sedov, mean error of the density without and with the cure: {without:e} {with:e}");
    assert!(with < without, "{without:e} {with:e}");
}

/// The default Courant number costs no accuracy against half of it, and takes half the steps.
#[test]
fn steps_of_the_default_courant_number_are_as_exact_as_steps_half_as_long() {
    let [half, full] = ["time.courant=0.4", "time.courant=0.8"].map(|courant| {
        let mut sod = tube_run(0, 128, SOD, 0.25, &[courant]);
        let norms = tube_norms(&sod.state(), 0, SOD, 0.25);
        let error = norms.iter().map(|n| n * n).sum::<f64>().sqrt();
        // the begin of the explosion has all levels, and nine root steps of the default
        let mut sedov = Stepper::new(SEDOV, &[courant, "time.end=0.006"]);
        sedov.finish();
        let steps = [&mut sod, &mut sedov].map(|run| {
            let counters = run.counters();
            assert_eq!(counters.retried_steps, 0, "{courant}");
            counters.level_steps
        });
        println!("{courant}: Sod {error:e}, level steps {steps:?}");
        (error, steps)
    });
    assert!(full.0 <= 1.05 * half.0, "{full:?} {half:?}");
    for (full, half) in full.1.into_iter().zip(half.1) {
        assert!(10 * full <= 6 * half, "{full} {half}");
    }
}
