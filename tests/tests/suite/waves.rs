//! Smooth flows against exact solutions: sound waves and vortices.

use nestar_tests::norms::{cell_mean, conserved, l1, rms};
use nestar_tests::{State, Stepper};

/// A travelling sound wave, oblique to all axes it crosses: along (1, 2, 2)/3 in a box of 3 x 1.5 x 1.5 with `cells`
/// cells along z (Gardiner & Stone 2008, section 6.1), or in the plane, along (1, 2)/sqrt(5) with 8 cells along z.
/// One wave length of 1; one period, in the plane half of one, by which the error has grown alike at all resolutions. Returns the RMS-L1 error.
fn wave(cells: usize, plane: bool, settings: &[&str]) -> f64 {
    wave_of(1e-4, cells, plane, settings)
}

/// The same with another amplitude.
fn wave_of(amplitude: f64, cells: usize, plane: bool, settings: &[&str]) -> f64 {
    let direction: [f64; 3] = if plane {
        [1.0, 2.0, 0.0]
    } else {
        [1.0, 2.0, 2.0]
    };
    let length = direction.iter().map(|d| d * d).sum::<f64>().sqrt();
    let normal = direction.map(|d| d / length);
    let (depth, end) = match plane {
        true => (8.0 / cells as f64, 0.5),
        false => (1.0, 1.0),
    };
    let edges = [length, 0.5 * length, 0.5 * length * depth];
    let count = [2 * cells, cells, if plane { 8 } else { cells }];
    let sine = format!(
        "{amplitude}*sin(2*pi*({:?}*x + {:?}*y + {:?}*z))",
        normal[0], normal[1], normal[2]
    );
    let velocity = ["x", "y", "z"].iter().zip(normal);
    let velocity: Vec<String> = velocity
        .map(|(axis, n)| {
            format!(
                "velocity_{axis} = \"{:?}*((1 + {sine})^(1/3) - 1)\"",
                3.0 * n
            )
        })
        .collect();
    let text = format!(
        r#"
        scenario = "formula"
        [initial]
        samples = 3
        density = "1 + {sine}"
        pressure = "0.6*(1 + {sine})^(5/3)"
        {}
        [domain]
        cells = {count:?}
        right_edge = {edges:?}
        [time]
        end = {end}
        [mesh]
        [hydro]
        "#,
        velocity.join("\n"),
    );
    let state = Stepper::new(&text, settings).finish().state();
    rms(l1(&state, |x, width| {
        cell_mean(|p| simple_wave(p, normal, end, amplitude), x, width)
    }))
}

/// The simple wave of which the initial state is one: every density travels with its own v + c, so that the exact
/// solution solves rho = 1 + a sin(2 pi (s - (v + c) t)) (gamma = 5/3, c = rho^(1/3), v = 3 (c - 1)).
fn simple_wave(x: [f64; 3], normal: [f64; 3], t: f64, amplitude: f64) -> [f64; 5] {
    let s: f64 = x.iter().zip(normal).map(|(x, n)| x * n).sum();
    let mut rho = 1.0f64;
    for _ in 0..8 {
        let c = rho.cbrt();
        let speed = 3.0 * (c - 1.0) + c;
        rho = 1.0 + amplitude * (std::f64::consts::TAU * (s - speed * t)).sin();
    }
    let v = normal.map(|n| 3.0 * n * (rho.cbrt() - 1.0));
    conserved(
        [rho, v[0], v[1], v[2], 0.6 * rho.powf(5.0 / 3.0)],
        5.0 / 3.0,
    )
}

fn order(coarse: usize, plane: bool, settings: &[&str]) -> f64 {
    let norms = [coarse, 2 * coarse].map(|cells| wave(cells, plane, settings));
    let order = (norms[0] / norms[1]).log2();
    println!("sound wave, {coarse} cells, {settings:?}: RMS-L1 {norms:?}, order {order:.3}");
    order
}

#[test]
fn a_sound_wave_converges_at_second_order() {
    for scheme in [
        "hydro.scheme=muscl-hancock",
        "hydro.scheme=vl",
        "hydro.scheme=ctu",
    ] {
        for variables in [
            "hydro.variables=primitive",
            "hydro.variables=characteristic",
        ] {
            let order = order(16, true, &[scheme, variables]);
            assert!(order >= 1.9, "{scheme}, {variables}: order {order}");
        }
    }
}

/// RMS-L1 difference of a linear wave of amplitude 1e-6 after one period to its beginning, along the diagonal of a box of `2 cells x cells x
/// cells`. The middle half of the box along x is refined.
fn carried(cells: usize, wave: &str, settings: &[&str]) -> f64 {
    let mach = if wave == "entropy" { 1.0 } else { 0.0 };
    let text = format!(
        r#"
        scenario = "acoustic-wave"
        [acoustic-wave]
        wave = "{wave}"
        mach = {mach:?}
        [domain]
        cells = [{}, {cells}, {cells}]
        right_edge = [3.0, 1.5, 1.5]
        [time]
        end = 1.0
        courant = 0.4
        [mesh]
        max_level = 1
        flag_buffer = 0
        [[mesh.refine]]
        criterion = "box"
        left = [0.75, 0.0, 0.0]
        right = [2.25, 1.5, 1.5]
        [hydro]
        "#,
        2 * cells
    );
    let mut stepper = Stepper::new(&text, settings);
    let list = |state: State| {
        let mut values = Vec::new();
        state.each_leaf_cell(|_, _, volume, u| {
            values.push((volume, <[f64; 5]>::try_from(u).expect("gas")));
        });
        values
    };
    let before = list(stepper.state());
    let after = list(stepper.finish().state());
    assert_eq!(before.len(), after.len());
    let total: f64 = before.iter().map(|(volume, _)| volume).sum();
    rms(std::array::from_fn(|v| {
        let pairs = before.iter().zip(&after);
        let sum: f64 = pairs
            .map(|((volume, a), (_, b))| volume * (a[v] - b[v]).abs())
            .sum();
        sum / total
    }))
}

/// Bounds as in Stone & Gardiner 2009 and Schive et al. 2018, whose meshes are not refined.
#[test]
#[ignore = "some minutes: waves along the diagonal of a refined box of 64 x 32 x 32 cells, for each Riemann solver"]
fn refined_waves_have_the_error_of_each_scheme_and_solver() {
    for scheme in ["ctu", "muscl-hancock", "vl"] {
        for riemann in ["hllc", "roe", "hlle"] {
            for wave in ["sound", "entropy"] {
                let bound = match (wave, riemann) {
                    ("sound", "hlle") => 4.3e-8,
                    ("sound", _) => 3.7e-8,
                    (_, "hlle") => 3.1e-8,
                    _ => 2.7e-8,
                };
                let settings = [
                    format!("hydro.scheme={scheme}"),
                    format!("hydro.riemann={riemann}"),
                    "run.threads=2".to_string(),
                ];
                let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
                let [coarse, fine] = [16, 32].map(|cells| carried(cells, wave, &settings));
                println!("{wave} wave, {scheme}, {riemann}: {coarse:.2e}, {fine:.2e}");
                assert!(fine <= bound, "{wave}, {settings:?}: {fine:e}");
                assert!(
                    fine <= 0.33 * coarse,
                    "{wave}, {settings:?}: {coarse:e}, {fine:e}"
                );
            }
        }
    }
}

/// RMS-L1 error of a linear wave of amplitude 1e-6 along x after one period of the sound or of the flow, in a box of one wave length.
fn along_x(cells: usize, wave: &str, settings: &[&str]) -> f64 {
    let (velocity, pressure) = match wave {
        "sound" => ("1e-6*sin(2*pi*x)", "0.6*(1 + 1e-6*sin(2*pi*x))^(5/3)"),
        _ => ("1", "0.6"),
    };
    let width = 8.0 / cells as f64;
    let text = format!(
        r#"
        scenario = "formula"
        [initial]
        samples = 3
        density = "1 + 1e-6*sin(2*pi*x)"
        velocity_x = "{velocity}"
        pressure = "{pressure}"
        [domain]
        cells = [{cells}, 8, 8]
        right_edge = [1.0, {width:?}, {width:?}]
        [time]
        end = 1.0
        courant = 0.4
        [mesh]
        [hydro]
        "#
    );
    let state = Stepper::new(&text, settings).finish().state();
    let exact = |x: [f64; 3]| {
        let change = 1e-6 * (std::f64::consts::TAU * x[0]).sin();
        let (velocity, pressure) = match wave {
            "sound" => (change, 0.6 * (1.0 + change).powf(5.0 / 3.0)),
            _ => (1.0, 0.6),
        };
        conserved([1.0 + change, velocity, 0.0, 0.0, pressure], 5.0 / 3.0)
    };
    rms(l1(&state, |x, width| cell_mean(exact, x, width)))
}

/// Bounds for 64 cells a wave length, and for the ratio to the error with 32. The errors with `rk2` and 32 cells are so small that the ratio
/// exceeds that of plain second-order codes, 0.28.
#[test]
fn waves_have_the_error_of_each_runge_kutta_scheme() {
    let cases = [
        ("rk2", "plm", "sound", 2.1e-8, 0.31),
        ("rk2", "plm", "entropy", 1.2e-8, 0.31),
        ("rk3", "ppm", "sound", 4.7e-9, 0.28),
        ("rk3", "weno-z", "sound", 2.3e-11, 0.28),
    ];
    for (scheme, reconstruction, wave, bound, ratio) in cases {
        let settings = [
            format!("hydro.scheme={scheme}"),
            format!("hydro.reconstruction={reconstruction}"),
        ];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let [coarse, fine] = [32, 64].map(|cells| along_x(cells, wave, &settings));
        println!(
            "{wave} wave, {scheme} {reconstruction}, 32 and 64 cells: {coarse:.2e}, {fine:.2e}"
        );
        assert!(fine <= bound, "{wave}, {settings:?}: {fine:e}");
        assert!(
            fine <= ratio * coarse,
            "{wave}, {settings:?}: {coarse:e}, {fine:e}"
        );
    }
}

/// A region of whole patches in the middle of the wave, the same at both resolutions.
const STANDING: &str = r#"mesh.refine=[{ criterion = "formula", when = "abs(x/1.118033988749895 - 1) < 0.25 and abs(y/1.118033988749895 - 0.5) < 0.25" }]"#;
/// A region that crosses the box.
const MOVING: &str = r#"mesh.refine=[{ criterion = "formula", when = "abs(x/1.118033988749895 - 0.6 - 0.8*t) < 0.2 and abs(y/1.118033988749895 - 0.5) < 0.2" }]"#;

#[test]
fn a_sound_wave_converges_through_static_refinement() {
    let order = order(
        32,
        true,
        &["mesh.max_level=1", STANDING, "mesh.flag_buffer=0"],
    );
    assert!(order >= 1.8, "order {order}");
}

#[test]
fn a_sound_wave_converges_through_moving_refinement() {
    let order = order(
        32,
        true,
        &[
            "mesh.max_level=1",
            MOVING,
            "mesh.flag_buffer=1",
            "mesh.regrid_interval=2",
        ],
    );
    assert!(order >= 1.8, "order {order}");
}

#[test]
#[ignore = "some minutes: waves of amplitude 1e-3 through moving refinement"]
fn runge_kutta_schemes_carry_waves_through_moving_refinement() {
    let refine = MOVING.replace("1.118033988749895", "1.5");
    for (scheme, reconstruction, plane, solid) in [
        ("rk2", "plm", 1.2e-5, 5e-5),
        ("rk3", "weno-z", 5.7e-6, 1.2e-5),
    ] {
        for (cells, is_plane, bound) in [(64, true, plane), (32, false, solid)] {
            let settings = [
                format!("hydro.scheme={scheme}"),
                format!("hydro.reconstruction={reconstruction}"),
                "mesh.max_level=1".to_string(),
                if is_plane {
                    MOVING.to_string()
                } else {
                    refine.clone()
                },
                "mesh.flag_buffer=1".to_string(),
                "mesh.regrid_interval=2".to_string(),
                "time.courant=0.4".to_string(),
                "run.threads=2".to_string(),
            ];
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            let error = wave_of(1e-3, cells, is_plane, &settings);
            println!("{scheme} {reconstruction}, plane {is_plane}: {error:.2e}");
            assert!(error <= bound, "{settings:?}: {error:e}");
        }
    }
}

#[test]
#[ignore = "several minutes: the wave along the diagonal of a box, with 64 x 32 x 32 and 128 x 64 x 64 cells"]
fn a_sound_wave_along_the_diagonal_converges_at_second_order() {
    for scheme in ["hydro.scheme=muscl-hancock", "hydro.scheme=vl"] {
        let order = order(32, false, &[scheme, "run.threads=2"]);
        assert!(order >= 1.9, "{scheme}: order {order}");
    }
}

/// The isentropic vortex, carried once through the periodic box; the error is the difference to its own initial state.
fn vortex(cells: usize, settings: &[&str]) -> f64 {
    let text = format!(
        r#"
        scenario = "isentropic-vortex"
        [domain]
        cells = [{cells}, {cells}, 8]
        right_edge = [10.0, 10.0, {:?}]
        [time]
        end = 10.0
        [mesh]
        [hydro]
        gamma = 1.4
        "#,
        80.0 / cells as f64
    );
    let mut stepper = Stepper::new(&text, settings);
    let before = stepper.state();
    let after = stepper.finish().state();
    mean_difference(&before, &after, |u| u[0])
}

/// Mean over the cells of two states of the same uniform mesh of the difference in `quantity`.
fn mean_difference(a: &State, b: &State, quantity: impl Fn(&[f64]) -> f64) -> f64 {
    let list = |state: &State| {
        let mut values = Vec::new();
        state.each_leaf_cell(|_, _, _, u| values.push(quantity(u)));
        values
    };
    let (a, b) = (list(a), list(b));
    assert_eq!(a.len(), b.len());
    a.iter().zip(&b).map(|(a, b)| (a - b).abs()).sum::<f64>() / a.len() as f64
}

/// numerics: plain second-order codes reach 7.1e-3 with 32 cells and 1.45e-3 with 64.
#[test]
fn an_advected_vortex_converges() {
    let errors = [32, 64].map(|cells| vortex(cells, &[]));
    println!("isentropic vortex, 32 and 64 cells: L1 of density {errors:?}");
    assert!(errors[0] <= 7.1e-3 && errors[1] <= 1.45e-3, "{errors:?}");
    let ppm = vortex(32, &["hydro.scheme=vl", "hydro.reconstruction=ppm"]);
    println!("isentropic vortex, 32 cells, vl and ppm: L1 of density {ppm:e}");
    assert!(ppm < errors[0], "{ppm}");
    let ppm = [32, 64].map(|cells| vortex(cells, &["hydro.reconstruction=ppm"]));
    println!("isentropic vortex, 32 and 64 cells, ppm: L1 of density {ppm:?}");
    assert!(ppm[1] <= 7e-4 && ppm[1] < 0.25 * ppm[0], "{ppm:?}");
}

/// Mean error of the velocity of rotation of the Gresho vortex at time 3.
fn gresho(cells: usize, settings: &[&str]) -> f64 {
    let text = format!(
        r#"
        scenario = "gresho"
        [domain]
        cells = [{cells}, {cells}, 8]
        left_edge = [-0.5, -0.5, 0.0]
        right_edge = [0.5, 0.5, {:?}]
        [time]
        end = 3.0
        [mesh]
        [hydro]
        gamma = 1.4
        "#,
        8.0 / cells as f64
    );
    let mut stepper = Stepper::new(&text, settings);
    let rotation = |state: &State| {
        let mut values = Vec::new();
        state.each_leaf_cell(|_, x, _, u| {
            values.push((x[0] * u[2] - x[1] * u[1]) / (u[0] * x[0].hypot(x[1])))
        });
        values
    };
    let before = rotation(&stepper.state());
    let after = rotation(&stepper.finish().state());
    before
        .iter()
        .zip(&after)
        .map(|(a, b)| (a - b).abs())
        .sum::<f64>()
        / before.len() as f64
}

/// Plain second-order codes reach 0.020 with 40 cells and 0.0098 with 80.
#[test]
fn the_gresho_vortex_keeps_rotating() {
    let error = gresho(40, &[]);
    println!("Gresho vortex, 40 cells, t = 3: L1 of the rotation {error:e}");
    assert!(error <= 0.020, "{error}");
    let ppm = gresho(40, &["hydro.reconstruction=ppm"]);
    println!("Gresho vortex, 40 cells, t = 3, ppm: L1 of the rotation {ppm:e}");
    assert!(ppm < 0.7 * error, "{ppm}");
}

#[test]
#[ignore = "a few minutes: 80 x 80 cells to time 3"]
fn greshos_vortex_keeps_turning_with_80_cells() {
    let error = gresho(80, &["run.threads=2"]);
    println!("Gresho vortex, 80 cells, t = 3: L1 of the rotation {error:e}");
    assert!(error <= 0.0098, "{error}");
}
