//! Gas with a magnetic field on cell faces, by constrained transport.

use super::device_runs::{agree, emulation};
use super::magnetic::{self, conserved, image, rms_l1, wave_error, waves, with_method};
use super::symmetry::Change;
use nestar::App;
use nestar::kernels::mesh::Centring;
use nestar_tests::decks::deck;
use nestar_tests::norms::totals;
use nestar_tests::ranks::{joined, on_ranks};
use nestar_tests::{State, Stepper};
use std::sync::LazyLock;

/// Components of the gas: density, momentum, energy, field. Those on faces follow all of the gas.
const COMPONENTS: usize = 8;

/// The four families of waves return after one period; in the opposite direction with the same error.
#[test]
fn linear_waves_return_after_one_period() {
    let bounds = [1.2e-8, 7.5e-9, 8.3e-9, 8.5e-9];
    let method = ["mhd.method=ct"];
    for ((name, changes, period), bound) in waves().into_iter().zip(bounds) {
        let fine = wave_error(64, changes, period, &method);
        let coarse = wave_error(32, changes, period, &method);
        println!("{name}: {fine:e}, of 32 cells {coarse:e}");
        assert!(fine > 1e-10 && fine < bound, "{name}: {fine:e}");
        assert!(fine < 0.35 * coarse, "{name}: {coarse:e} to {fine:e}");
        if name != "entropy" {
            let mut back = changes;
            (1..4).for_each(|c| back[c] = -back[c]);
            let mirrored = wave_error(64, back, period, &method);
            assert!((mirrored - fine).abs() < 1e-4 * fine, "{name}");
        }
    }
}

/// A circularly polarised Alfven wave at an angle to the mesh (Toth 2000, J. Comput. Phys. 161, 605).
const ALFVEN: &str = r#"
scenario = "formula"
[constants]
c = "1/sqrt(5)"
s = "2/sqrt(5)"
k = "2*pi"
a = 0.1
[initial]
samples    = 2
density    = "1"
pressure   = "0.1"
velocity_x = "-s*a*sin(k*(c*x + s*y))"
velocity_y = "c*a*sin(k*(c*x + s*y))"
velocity_z = "a*cos(k*(c*x + s*y))"
magnetic_x = "c"
magnetic_y = "s"
magnetic_z = "a*cos(k*(c*x + s*y))"
vector_potential_z = "a/k*cos(k*(c*x + s*y))"
[domain]
cells      = [32, 16, 8]
right_edge = ["sqrt(5)", "sqrt(5)/2", "sqrt(5)/4"]
[time]
end     = 1.0
courant = 0.4
[mesh]
[mhd]
method = "ct"
"#;

/// Returns the error of the Alfven wave after one period.
fn alfven_error(settings: &[&str]) -> f64 {
    let before = Stepper::new(ALFVEN, settings).state();
    assert_eq!(
        before.components,
        COMPONENTS + 4,
        "with the internal energy"
    );
    let after = Stepper::new(ALFVEN, settings).finish().state();
    rms_l1(&conserved(&before), &conserved(&after))
}

#[test]
fn an_alfven_wave_across_the_mesh_converges_at_second_order() {
    let fine = alfven_error(&[
        "domain.cells=[64, 32, 16]",
        "domain.right_edge=[\"sqrt(5)\", \"sqrt(5)/2\", \"sqrt(5)/4\"]",
    ]);
    let coarse = alfven_error(&[]);
    println!("{fine:e}, of half the cells {coarse:e}");
    assert!(fine < 3.1e-3, "{fine:e}");
    assert!(fine < 0.32 * coarse, "{coarse:e} to {fine:e}");
}

/// Returns the error of a linear wave of [`waves`] that crosses a box of 3 x 1.5 x 1.5 once, at an angle to all axes (Gardiner & Stone 2008). With
/// fields on faces, the transverse field is the curl of a vector potential.
fn tilted_error(
    method: &str,
    cells: usize,
    changes: [f64; 8],
    period: f64,
    settings: &[&str],
) -> f64 {
    let [density, along, first, second, pressure, by, bz, drift] = changes.map(|c| 1e-6 * c);
    // directions of the wave and of the two axes across it, by the angles of the box
    let (five, six) = (5.0_f64.sqrt(), 6.0 * 5.0_f64.sqrt());
    let e1 = [1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0];
    let e2 = [-2.0 / five, 1.0 / five, 0.0];
    let e3 = [-4.0 / six, -8.0 / six, 10.0 / six];
    let phase = "2*pi*(x + 2*y + 2*z)/3";
    let mut text = format!(
        "scenario = \"formula\"\n[initial]\nsamples = 2\n\
         density = \"1 + {density:e}*sin({phase})\"\npressure = \"0.6 + {pressure:e}*sin({phase})\"\n"
    );
    for (a, axis) in ["x", "y", "z"].into_iter().enumerate() {
        let moving = along * e1[a] + first * e2[a] + second * e3[a];
        let field = e1[a] + 2.0_f64.sqrt() * e2[a] + 0.5 * e3[a];
        let potential = (by * e3[a] - bz * e2[a]) / (2.0 * std::f64::consts::PI);
        text += &format!(
            "velocity_{axis} = \"{:e} + {moving:e}*sin({phase})\"\n",
            1e6 * drift * e1[a]
        );
        let change = by * e2[a] + bz * e3[a];
        text += &match method {
            "ct" => format!(
                "magnetic_{axis} = \"{field:e}\"\nvector_potential_{axis} = \"{potential:e}*cos({phase})\"\n"
            ),
            _ => format!("magnetic_{axis} = \"{field:e} + {change:e}*sin({phase})\"\n"),
        };
    }
    text += &format!(
        "[domain]\ncells = [{cells}, {half}, {half}]\nright_edge = [3.0, 1.5, 1.5]\n\
         [time]\nend = {period}\ncourant = 0.4\n[mesh]\n[mhd]\nmethod = \"{method}\"\n",
        half = cells / 2
    );
    let before = Stepper::new(&text, settings).state();
    let after = Stepper::new(&text, settings).finish().state();
    rms_l1(&conserved(&before), &conserved(&after))
}

#[test]
fn linear_waves_cross_the_mesh_at_any_angle() {
    let bounds = [1.2e-7, 1.2e-7, 1.4e-7, 9e-8];
    for ((name, changes, period), bound) in waves().into_iter().zip(bounds) {
        for method in ["ct", "glm"] {
            let error = tilted_error(method, 32, changes, period, &[]);
            println!("{method}, {name}: {error:e}");
            assert!(error > 1e-8 && error < bound, "{method}, {name}: {error:e}");
        }
    }
}

#[test]
#[ignore = "takes 5 min: cargo test --release -p nestar-tests --test suite transport -- --ignored --nocapture"]
fn linear_waves_across_the_mesh_converge() {
    let bounds = [3.4e-8, 2.1e-8, 3.4e-8, 2.7e-8];
    let refined = [
        "mesh.max_level=1",
        "mesh.refine=[{ criterion = \"box\", left = [0.75, 0.375, 0.375], right = [2.25, 1.125, 1.125] }]",
    ];
    for ((name, changes, period), bound) in waves().into_iter().zip(bounds) {
        for (method, settings) in [
            ("ct", &[][..]),
            ("ct", &refined),
            ("glm", &[]),
            ("glm", &refined),
        ] {
            let error = |cells, settings| tilted_error(method, cells, changes, period, settings);
            let (coarse, fine) = (error(32, &[]), error(64, settings));
            println!("{method}, {name}: {fine:e}, of 32 cells {coarse:e}, {settings:?}");
            // the limits are those of fields on faces
            let bound = if method == "ct" { bound } else { 1.15 * bound };
            assert!(fine < bound, "{method}, {name}, {settings:?}: {fine:e}");
            assert!(fine < 0.35 * coarse, "{name}: {coarse:e} to {fine:e}");
        }
    }
}

/// A weak magnetic loop that moves across the mesh, also out of its plane (Gardiner & Stone 2005).
const LOOP: &str = r#"
scenario = "formula"
[initial]
density    = "1"
pressure   = "1"
velocity_x = "2"
velocity_y = "1"
velocity_z = "0.3"
vector_potential_z = "max(1e-3*(0.3 - sqrt(x*x + y*y)), 0)"
[domain]
cells      = [64, 32, 8]
left_edge  = [-1.0, -0.5, 0.0]
right_edge = [1.0, 0.5, 0.25]
[time]
end     = 0.5
courant = 0.4
[mesh]
[mhd]
method = "ct"
"#;

/// The loop keeps its energy, and no field appears across its plane.
#[test]
fn a_loop_keeps_its_energy_and_stays_in_its_plane() {
    let mut stepper = Stepper::new(LOOP, &[]);
    let [before] = stepper.columns(["energy_magnetic"]);
    let state = stepper.finish().state();
    let [after, divergence] = stepper.columns(["energy_magnetic", "divergence_error"]);
    println!("energy kept: {}, divergence {divergence:e}", after / before);
    assert!(after > 0.8 * before && after < before, "{}", after / before);
    assert!(divergence < 1e-13, "{divergence:e}");
    let mut across = 0.0f64;
    state.each_leaf_cell(|_, _, _, u| across = across.max(u[7].abs()));
    assert!(across < 1e-16, "{across:e}");
}

/// The ball of the tests of divergence cleaning with a field on faces, a part of which is the curl of a vector potential.
static BALL: LazyLock<String> = LazyLock::new(|| {
    let varies = r#"magnetic_y = "0.4*cos(2*pi*z)""#;
    let potential = r#"vector_potential_x = "0.4/(2*pi)*sin(2*pi*z)*cos(2*pi*y)""#;
    assert!(magnetic::BALL.contains(varies));
    with_method(&magnetic::BALL.replace(varies, potential), "ct")
});

/// Returns faces `c` of a patch below and above a cell, which follow the components in cells.
fn faces(values: &[f64], c: usize, cell: usize) -> [f64; 2] {
    let at = [cell % 8, cell / 8 % 8, cell / 64];
    let mut above = at;
    above[c] += 1;
    let centring = Centring::Face;
    let first = values.len() - (3 - c) * centring.values();
    [at, above].map(|at| values[first + centring.index(c, at)])
}

/// Checks that the field in each cell of all patches is the mean over its faces, bit for bit.
fn check_means(state: &State, is_single: bool) {
    for (index, patch) in state.levels.iter().flatten() {
        for (c, cell) in (0..3).flat_map(|c| (0..512).map(move |cell| (c, cell))) {
            let [below, above] = faces(&patch.values, c, cell);
            let mean = match is_single {
                true => f64::from(0.5 * (below as f32 + above as f32)),
                false => 0.5 * (below + above),
            };
            let found = patch.values[(5 + c) * 512 + cell];
            assert_eq!(found, mean, "patch {index:?}, axis {c}, cell {cell}");
        }
    }
}

/// Returns the sums of the field over the lower faces of each layer of cells of the root level, by axis.
fn fluxes(state: &State) -> [Vec<f64>; 3] {
    let mut fluxes = [(); 3].map(|()| vec![0.0; 16]);
    for (index, patch) in &state.levels[0] {
        for (c, cell) in (0..3).flat_map(|c| (0..512).map(move |cell| (c, cell))) {
            let layer = 8 * index[c] as usize + [cell % 8, cell / 8 % 8, cell / 64][c];
            fluxes[c][layer] += faces(&patch.values, c, cell)[0];
        }
    }
    fluxes
}

/// The divergence stays round-off, and mass, momentum, total energy and the flux of the field through planes of the root level are conserved,
/// through refinement and removal of levels. The integral of the field over cells of several levels is not.
#[test]
fn the_divergence_stays_round_off_on_moving_levels() {
    let cases = [
        ("double", false, 1e-13),
        ("single", false, 3e-5),
        ("double", true, 1e-13),
    ];
    for (precision, dual, most) in cases {
        let precision = format!("run.precision={precision}");
        let energies = format!("hydro.dual_energy={dual}");
        let settings = [
            "initial.velocity_x=3",
            "initial.velocity_y=-2",
            &precision,
            &energies,
        ];
        let mut stepper = Stepper::new(&BALL, &settings);
        let before = stepper.0.with(|s| totals(s));
        let through = fluxes(&stepper.state());
        for _ in 0..6 {
            stepper.steps(1);
            let [divergence] = stepper.columns(["divergence_error"]);
            assert!(divergence < most, "{precision}: {divergence:e}");
            check_means(&stepper.state(), precision.ends_with("single"));
        }
        let now = fluxes(&stepper.state());
        for (was, is) in through.iter().zip(&now) {
            let drift = was.iter().zip(is).map(|(a, b)| (a - b).abs() / 256.0);
            assert!(
                drift.fold(0.0, f64::max) < most,
                "{precision}: {was:?} {is:?}"
            );
        }
        let after = stepper.0.with(|s| totals(s));
        let dye = COMPONENTS + usize::from(dual);
        assert_eq!(before.len(), dye + 4, "with the dye and the faces");
        let state = stepper.state();
        assert!(state.counts()[2] > 64, "{:?}", state.counts());
        state.physical().unwrap_or_else(|why| panic!("{why}"));
        let of_gas = [(0, 1.0), (1, 3.0), (2, 3.0), (3, 3.0), (4, 7.0), (dye, 1.0)];
        for (c, scale) in of_gas {
            let drift = (after[c] - before[c]).abs() / scale;
            assert!(
                drift < most,
                "{precision}: component {c} drifts by {drift:e}"
            );
        }
    }
}

/// Returns the state of the gas with one scalar, without the field on faces.
fn gas_of(mut state: State) -> State {
    state.components = COMPONENTS + 1;
    let patches = state.levels.iter_mut().flat_map(|level| level.values_mut());
    patches.for_each(|patch| patch.values.truncate((COMPONENTS + 1) * 512));
    state
}

/// Mirrored and exchanged axes give the same bits, and so does the opposite field.
#[test]
fn a_magnetised_ball_stays_symmetric() {
    let change = |from: [usize; 3], mirrored: [bool; 3]| Change { from, mirrored };
    let same = [false; 3];
    let settings = ["initial.vector_potential_x=0", "run.precision=single"];
    let along = [
        ["initial.magnetic_x=0.7", "initial.magnetic_z=0"],
        ["initial.magnetic_x=0", "initial.magnetic_z=0.7"],
    ];
    let [along_x, along_z] = along.map(|field| {
        let settings = [&settings[..], &field].concat();
        gas_of(Stepper::new(&BALL, &settings).steps(5).state())
    });
    assert!(along_z.counts()[2] >= 64, "{:?}", along_z.counts());
    let itself = image(&along_z, &change([0, 1, 2], same), 1.0);
    let images = [
        image(&along_z, &change([0, 1, 2], [true, false, false]), 1.0),
        image(&along_z, &change([0, 1, 2], [false, true, false]), 1.0),
        image(&along_z, &change([1, 0, 2], same), 1.0),
        image(&along_z, &change([0, 1, 2], [false, false, true]), -1.0),
        image(&along_x, &change([1, 2, 0], same), 1.0),
    ];
    for (n, image) in images.iter().enumerate() {
        assert_eq!(itself.difference(image), None, "image {n}");
    }
}

/// A ball in a corner of walls, which are parallel to the field, is the eighth part of one in a periodic box, bit for bit. Patches of all levels
/// touch the walls. Nothing passes them.
#[test]
fn walls_are_mirrors() {
    let field = [
        "initial.magnetic_x=0",
        "initial.magnetic_z=0",
        // polynomials without round-off in mirror images
        "initial.vector_potential_x=0.5*((y*(1 - 4*y*y))*(z*(1 - 4*z*z)))",
        "initial.vector_potential_z=1.5*((x*(1 - 4*x*x))*(y*(1 - 4*y*y)))",
    ];
    let walls = [
        "domain.left_edge=[0, 0, 0]",
        "domain.cells=[8, 8, 8]",
        "domain.boundary=reflecting",
    ];
    let whole = Stepper::new(&BALL, &field).steps(3).state();
    let mut stepper = Stepper::new(&BALL, &[&field[..], &walls].concat());
    let before = stepper.0.with(|s| totals(s));
    let corner = stepper.steps(3).state();
    let after = stepper.0.with(|s| totals(s));
    for (c, scale) in [(0, 0.125), (4, 0.5)] {
        let drift = (after[c] - before[c]).abs() / scale;
        assert!(drift < 1e-13, "component {c} drifts by {drift:e}");
    }
    assert!(corner.counts()[2] >= 16, "{:?}", corner.counts());
    assert_eq!(
        whole.counts(),
        corner.counts().iter().map(|n| 8 * n).collect::<Vec<_>>()
    );
    for (level, patches) in corner.levels.iter().enumerate() {
        for (index, patch) in patches {
            let twin = &whole.levels[level][&index.map(|n| n + (1 << level))];
            assert!(
                patch.values == twin.values,
                "level {level}, patch {index:?}"
            );
            for (c, cell) in (0..3).flat_map(|c| (0..512).map(move |cell| (c, cell))) {
                let is_at_wall = index[c] == 0 && [cell % 8, cell / 8 % 8, cell / 64][c] == 0;
                let through = faces(&patch.values, c, cell)[0];
                assert!(
                    !is_at_wall || through == 0.0,
                    "level {level}, patch {index:?}"
                );
            }
        }
    }
}

/// A ball leaves the box through an open face, which the field passes at an angle, and so do the fine patches.
#[test]
fn a_ball_leaves_through_an_open_face() {
    let settings = [
        "initial.vector_potential_x=0",
        "initial.velocity_x=4",
        "mesh.max_level=1",
        "time.end=0.2",
        "domain.cells=[16, 8, 8]",
        "domain.left_edge=[-0.75, -0.25, -0.25]",
        "domain.right_edge=[0.25, 0.25, 0.25]",
        "domain.boundary={ x = \"outflow\", y = \"periodic\", z = \"periodic\" }",
    ];
    let mut stepper = Stepper::new(&BALL, &settings);
    let before = stepper.0.with(|s| totals(s));
    assert!(stepper.steps(16).state().counts()[1] > 0);
    let state = stepper.finish().state();
    let after = stepper.0.with(|s| totals(s));
    let [divergence] = stepper.columns(["divergence_error"]);
    assert!(divergence < 1e-13, "{divergence:e}");
    assert_eq!(state.counts(), [2, 0]);
    assert!(after[0] < 0.9 * before[0], "{before:?} {after:?}");
    let counters = stepper.counters();
    assert_eq!((counters.retried_steps, counters.fallback_cells), (0, 0));
    state.physical().unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn the_number_of_ranks_does_not_matter() {
    let settings = ["initial.velocity_x=1"];
    let alone = Stepper::new(&BALL, &settings).steps(3).state();
    let check = |ranks: usize, settings: &[&str]| {
        let joint = on_ranks(ranks, &BALL, settings, |stepper| stepper.steps(3).state());
        assert_eq!(
            alone.difference(&joined(joint)),
            None,
            "{ranks} ranks, {settings:?}"
        );
    };
    check(3, &settings);
    if emulation() {
        check(2, &[&settings[..], &["run.device=emulated"]].concat());
    }
}

/// Open faces, sources, viscosity and a criterion by the field.
const EVERYTHING: [&str; 8] = [
    "time.max_steps=3",
    "initial.velocity_x=0.4",
    "domain.boundary={ x = \"outflow\", y = \"periodic\", z = \"periodic\" }",
    "mesh.refine=[{ criterion = \"gradient\", field = \"magnetic_energy\", threshold = 0.3 }]",
    "mesh.max_level=1",
    "viscosity={ kinematic = 0.01 }",
    "sources={ acceleration_y = \"0.3*alfven_speed\", heating = \"0.1\" }",
    "output.derived=[\"pressure\", \"magnetic_field\", \"magnetic_energy\", \"plasma_beta\", \"alfven_speed\"]",
];

#[test]
fn runs_on_the_device_have_the_bits_of_the_cpu() {
    if !emulation() {
        return;
    }
    agree(&BALL, &EVERYTHING);
    agree(
        &BALL,
        &[
            &EVERYTHING[..],
            &["run.precision=single", "hydro.riemann=hlle"],
        ]
        .concat(),
    );
}

/// What does not go with a field on faces is refused with its key.
#[test]
fn what_does_not_fit_is_refused() {
    let cases = [
        ("hydro.scheme=rk2", "hydro.scheme"),
        ("initial.magnetic_x=0.6 + 0.1*sin(2*pi*x)", "divergence"),
        ("initial.magnetic_x=random(1)", "initial.magnetic_x"),
        (
            "initial.vector_potential_x=sqrt(z)",
            "vector potential along x at (x, y, z)",
        ),
        (
            "initial.vector_potential_x=1e300*sin(2*pi*y)",
            "square of the magnetic field",
        ),
        ("initial.magnetic_x=1e200", "square of the magnetic field"),
        ("initial.vector_potential_z=x*y", "periodic"),
        ("domain.boundary=reflecting", "normal to reflecting faces"),
        ("mhd.method=glm", "initial.vector_potential_x"),
    ];
    for (setting, key) in cases {
        let refused = App::default()
            .simulation(deck(&BALL, &[setting]))
            .and_then(Stepper::begin);
        let error = refused.map(|_| ()).expect_err(setting).to_string();
        assert!(error.contains(key), "{setting}: {error}");
        // units that are advised are numbers
        assert!(!error.contains("1eNaN"), "{setting}: {error}");
    }
}
