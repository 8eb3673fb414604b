//! Gas with a magnetic field: fields at cell centres with divergence cleaning, and what both methods share.

use super::device_runs::{agree, emulation};
use super::symmetry::{Change, changed_vectors};
use nestar::App;
use nestar_tests::decks::deck;
use nestar_tests::norms::totals;
use nestar_tests::ranks::{joined, on_ranks};
use nestar_tests::{State, Stepper};

/// Components of the gas: density, momentum, energy, field, cleaning variable.
const COMPONENTS: usize = 9;

/// Returns the conserved quantities of all leaf cells: the energy with that of the field, without the cleaning variable.
pub(super) fn conserved(state: &State) -> Vec<[f64; 8]> {
    let mut cells = Vec::new();
    state.each_leaf_cell(|_, _, _, u| {
        let mut of_cell: [f64; 8] = std::array::from_fn(|c| u[c]);
        of_cell[4] += 0.5 * (u[5] * u[5] + u[6] * u[6] + u[7] * u[7]);
        cells.push(of_cell);
    });
    cells
}

/// Returns the root of the sum of the squares of the mean differences of each conserved quantity.
pub(super) fn rms_l1(before: &[[f64; 8]], after: &[[f64; 8]]) -> f64 {
    assert_eq!(before.len(), after.len());
    let mean = |c: usize| {
        let pairs = before.iter().zip(after);
        pairs.map(|(a, b)| (a[c] - b[c]).abs()).sum::<f64>() / before.len() as f64
    };
    (0..8).map(|c| mean(c).powi(2)).sum::<f64>().sqrt()
}

/// A linear wave of amplitude 1e-6 along x (Gardiner & Stone 2008): density 1, sound speed 1, field (1, sqrt(2), 1/2), so that the fast, Alfven and
/// slow speeds are 2, 1 and 1/2. The box is so wide that the time step is that of one dimension.
fn wave(cells: usize, changes: [f64; 8], time: f64) -> String {
    let [density, x, y, z, pressure, by, bz, drift] = changes;
    format!(
        r#"
scenario = "formula"
[constants]
a = 1e-6
[initial]
samples    = 2
density    = "1 + a*({density})*sin(2*pi*x)"
velocity_x = "{drift} + a*({x})*sin(2*pi*x)"
velocity_y = "a*({y})*sin(2*pi*x)"
velocity_z = "a*({z})*sin(2*pi*x)"
pressure   = "0.6 + a*({pressure})*sin(2*pi*x)"
magnetic_x = "1"
magnetic_y = "sqrt(2) + a*({by})*sin(2*pi*x)"
magnetic_z = "0.5 + a*({bz})*sin(2*pi*x)"
[domain]
cells      = [{cells}, 8, 8]
right_edge = [1.0, 100.0, 100.0]
[time]
end     = {time}
courant = 0.4
[mesh]
[mhd]
method = "glm"
"#
    )
}

/// Name, changes of density, velocity, pressure and transverse field, velocity of the gas, and period of the waves to the right.
pub(super) fn waves() -> [(&'static str, [f64; 8], f64); 4] {
    let n = 1.0 / (6.0 * 5.0_f64.sqrt());
    let root = 2.0_f64.sqrt();
    let third = 1.0 / 3.0;
    [
        (
            "fast",
            [
                6.0 * n,
                12.0 * n,
                -4.0 * root * n,
                -2.0 * n,
                6.0 * n,
                8.0 * root * n,
                4.0 * n,
                0.0,
            ],
            0.5,
        ),
        (
            "Alfven",
            [
                0.0,
                0.0,
                third,
                -2.0 * root * third,
                0.0,
                -third,
                2.0 * root * third,
                0.0,
            ],
            1.0,
        ),
        (
            "slow",
            [
                12.0 * n,
                6.0 * n,
                8.0 * root * n,
                4.0 * n,
                12.0 * n,
                -4.0 * root * n,
                -2.0 * n,
                0.0,
            ],
            2.0,
        ),
        ("entropy", [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], 1.0),
    ]
}

pub(super) fn wave_error(cells: usize, changes: [f64; 8], period: f64, settings: &[&str]) -> f64 {
    let text = wave(cells, changes, period);
    let before = Stepper::new(&text, settings).state();
    let after = Stepper::new(&text, settings).finish().state();
    rms_l1(&conserved(&before), &conserved(&after))
}

/// The four families of waves return after one period; in the opposite direction with the same error.
#[test]
fn linear_waves_return_after_one_period() {
    let bounds = [1.2e-8, 7.5e-9, 8.3e-9, 8.5e-9];
    for ((name, changes, period), bound) in waves().into_iter().zip(bounds) {
        let fine = wave_error(64, changes, period, &[]);
        let coarse = wave_error(32, changes, period, &[]);
        println!("{name}: {fine:e}, of 32 cells {coarse:e}");
        assert!(fine > 1e-10 && fine < bound, "{name}: {fine:e}");
        assert!(fine < 0.35 * coarse, "{name}: {coarse:e} to {fine:e}");
        if name != "entropy" {
            let mut back = changes;
            (1..4).for_each(|c| back[c] = -back[c]);
            let mirrored = wave_error(64, back, period, &[]);
            assert!(
                (mirrored - fine).abs() < 1e-5 * fine,
                "{name}: {fine:e} and {mirrored:e}"
            );
        }
    }
}

/// The four families of waves return after one period with the Runge-Kutta schemes, too. `rk3` with `weno-z` has a far smaller error.
#[test]
fn linear_waves_return_with_several_stages() {
    for (name, changes, period) in waves() {
        let second = wave_error(64, changes, period, &["hydro.scheme=rk2"]);
        let third = wave_error(
            64,
            changes,
            period,
            &["hydro.scheme=rk3", "hydro.reconstruction=weno-z"],
        );
        println!("{name}: rk2 {second:e}, rk3 weno-z {third:e}");
        assert!(second < 3e-8, "{name}: {second:e}");
        assert!(third < 1e-10, "{name}: {third:e}");
    }
}

const RYU_JONES: &str = include_str!("../../../scenarios/ryu-jones.toml");

/// Returns the profiles of all conserved quantities along `axis`, from the cells next to it, with vectors turned so that the first component is
/// along it.
fn profile(text: &str, axis: usize, cells: usize) -> Vec<[f64; 8]> {
    let names = ["x", "y", "z"];
    let mut text = text.to_string();
    let mut shape = [8; 3];
    shape[axis] = cells;
    // the axes turn cyclically
    for (n, name) in names.iter().enumerate() {
        text = text.replace(&format!("velocity_{name}"), &format!("velocity_#{n}"));
        text = text.replace(&format!("magnetic_{name}"), &format!("magnetic_#{n}"));
    }
    for n in 0..3 {
        text = text.replace(&format!("_#{n}"), &format!("_{}", names[(n + axis) % 3]));
    }
    text = text.replace("if(x <", &format!("if({} <", names[axis]));
    let edge = |along: f64, across: f64| {
        let mut edge = [across; 3];
        edge[axis] = along;
        format!("{edge:?}")
    };
    let mut faces = ["\"periodic\""; 3];
    faces[axis] = "\"outflow\"";
    let settings = [
        format!("domain.cells={shape:?}"),
        format!("domain.left_edge={}", edge(-0.5, 0.0)),
        format!("domain.right_edge={}", edge(0.5, 100.0)),
        format!(
            "domain.boundary={{ x = {}, y = {}, z = {} }}",
            faces[0], faces[1], faces[2]
        ),
    ];
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let state = Stepper::new(&text, &settings).finish().state();
    let mut found = Vec::new();
    state.each_leaf_cell(|_, centre, _, u| {
        let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
        let first = |at: usize| centre[at] < 100.0 / 8.0;
        if !first(a) || !first(b) {
            return;
        }
        let vector = |c: usize| [u[c + axis], u[c + a], u[c + b]];
        let ([mx, my, mz], [bx, by, bz]) = (vector(1), vector(5));
        let energy = u[4] + 0.5 * (bx * bx + by * by + bz * bz);
        found.push((centre[axis], [u[0], mx, my, mz, energy, bx, by, bz]));
    });
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(found.len(), cells);
    found.into_iter().map(|(_, u)| u).collect()
}

/// Averages groups of cells.
fn coarsened(fine: &[[f64; 8]], cells: usize) -> Vec<[f64; 8]> {
    let group = fine.len() / cells;
    let mean = |cells: &[[f64; 8]]| {
        std::array::from_fn(|c| cells.iter().map(|u| u[c]).sum::<f64>() / group as f64)
    };
    fine.chunks(group).map(mean).collect()
}

/// Returns a deck of divergence cleaning with another method.
pub(super) fn with_method(text: &str, method: &str) -> String {
    assert!(text.contains("method = \"glm\""), "{text}");
    text.replace("method = \"glm\"", &format!("method = {method:?}"))
}

/// The tube 2a of Ryu & Jones (1995) converges with both methods, with the same bits along every axis.
#[test]
fn a_tube_with_all_waves_converges_along_every_axis() {
    let fine = profile(RYU_JONES, 0, 1024);
    for method in ["glm", "ct"] {
        let text = with_method(RYU_JONES, method);
        let [coarse, middle] = [128, 256].map(|cells| {
            let found = profile(&text, 0, cells);
            for u in &found {
                assert!(
                    (u[5] - found[0][5]).abs() < 1e-14,
                    "{method}: the normal field is uniform"
                );
            }
            rms_l1(&coarsened(&fine, cells), &found)
        });
        println!("{method}, errors of 128 and 256 cells: {coarse:e}, {middle:e}");
        assert!(middle < 1e-2, "{method}: {middle:e}");
        assert!(middle < 0.65 * coarse, "{method}: {coarse:e} to {middle:e}");
        let bits = |profile: &[[f64; 8]]| -> Vec<[u64; 8]> {
            // adding 0 makes -0 and 0 the same
            profile
                .iter()
                .map(|u| u.map(|x| (x + 0.0).to_bits()))
                .collect()
        };
        let along_x = bits(&profile(&text, 0, 64));
        for axis in [1, 2] {
            assert!(
                bits(&profile(&text, axis, 64)) == along_x,
                "{method}: axis {axis}"
            );
        }
    }
}

/// The same with more cells.
#[test]
#[ignore = "takes 15 min: cargo test --release -p nestar-tests --test suite magnetic -- --ignored --nocapture"]
fn a_tube_with_all_waves_converges_at_first_order() {
    let fine = profile(RYU_JONES, 0, 4096);
    for method in ["glm", "ct"] {
        let text = with_method(RYU_JONES, method);
        let error = |cells| rms_l1(&coarsened(&fine, cells), &profile(&text, 0, cells));
        let [coarse, middle] = [256, 512].map(error);
        println!("{method}, errors of 256 and 512 cells: {coarse:e}, {middle:e}");
        assert!(middle < 8.3e-3, "{method}: {middle:e}");
        assert!(middle < 0.55 * coarse, "{method}: {coarse:e} to {middle:e}");
    }
}

const BRIO_WU: &str = include_str!("../../../scenarios/brio-wu.toml");

/// Returns the mean difference of the densities of a profile and of one of more cells.
fn density_error(fine: &[[f64; 8]], found: &[[f64; 8]]) -> f64 {
    let reference = coarsened(fine, found.len());
    let pairs = reference.iter().zip(found);
    pairs.map(|(a, b)| (a[0] - b[0]).abs()).sum::<f64>() / found.len() as f64
}

/// All solvers, schemes and methods give Brio and Wu's tube.
#[test]
fn every_solver_gives_the_same_tube() {
    let fine = profile(BRIO_WU, 0, 1024);
    let choices = [
        ("glm", "hlld", "muscl-hancock", 3.5e-3),
        ("glm", "hlle", "muscl-hancock", 6.5e-3),
        ("glm", "hll", "rk2", 6.5e-3),
        ("glm", "llf", "rk3", 8e-3),
        ("glm", "lhlld", "rk2", 3.5e-3),
        ("ct", "hlld", "muscl-hancock", 3.5e-3),
        ("ct", "lhlld", "muscl-hancock", 3.5e-3),
        ("ct", "hlle", "muscl-hancock", 6.5e-3),
        ("ct", "hll", "muscl-hancock", 6.5e-3),
        ("ct", "llf", "muscl-hancock", 8e-3),
    ];
    for (method, solver, scheme, bound) in choices {
        let chosen = format!("[hydro]\nriemann = {solver:?}\nscheme = {scheme:?}\n");
        let text = with_method(BRIO_WU, method).replace("[hydro]\n", &chosen);
        let error = density_error(&fine, &profile(&text, 0, 256));
        println!("{method}, {solver}, {scheme}: {error:e}");
        assert!(
            error > 1e-4 && error < bound,
            "{method}, {solver}: {error:e}"
        );
    }
}

/// A vortex of Mach number 0.05 (Gresho & Chan 1990) without a field loses less of its rotation with the solver for slow flows.
#[test]
fn slow_vortices_are_diffused_less_by_lhlld() {
    let text = r#"
scenario = "gresho"
gresho.mach = 0.05
[domain]
cells      = [16, 16, 8]
left_edge  = [-0.5, -0.5, -0.25]
right_edge = [0.5, 0.5, 0.25]
[time]
end     = 0.4
courant = 0.4
[mesh]
[hydro]
gamma = 1.4
[mhd]
method = "ct"
"#;
    let lost = |solver: &str| {
        let rotation = |stepper: &mut Stepper| {
            let mut sum = 0.0;
            let state = stepper.state();
            state.each_leaf_cell(|_, _, _, u| sum += u[1] * u[1] + u[2] * u[2]);
            sum
        };
        let mut stepper = Stepper::new(text, &[solver]);
        let before = rotation(&mut stepper);
        1.0 - rotation(stepper.finish()) / before
    };
    let [plain, slow] = ["hydro.riemann=hlld", "hydro.riemann=lhlld"].map(lost);
    println!("lost: {plain:e} with hlld, {slow:e} with lhlld");
    assert!(slow > 0.0 && slow < 0.5 * plain, "{plain:e} {slow:e}");
}

/// The density in Brio and Wu's tube converges at first order with both methods.
#[test]
#[ignore = "takes 15 min: cargo test --release -p nestar-tests --test suite magnetic -- --ignored --nocapture"]
fn the_tube_of_brio_and_wu_converges_at_first_order() {
    let fine = profile(BRIO_WU, 0, 4096);
    for method in ["glm", "ct"] {
        let text = with_method(BRIO_WU, method);
        for (cells, bound) in [(256, 3.5e-3), (512, 2.1e-3), (1024, 1.1e-3)] {
            let error = density_error(&fine, &profile(&text, 0, cells));
            println!("{method}, {cells} cells: {error:e}");
            assert!(error < bound, "{method}, {cells} cells: {error:e}");
        }
    }
}

/// A contact with a field along it at rest stays exactly at rest, and so does one with a field across.
#[test]
fn contacts_at_rest_stay_exactly() {
    for field in ["initial.magnetic_y=0.7", "initial.magnetic_x=0.7"] {
        let text = BALL;
        let settings = [
            "initial.density=if(x < 0, 1, 3)",
            "initial.pressure=1",
            "initial.magnetic_x=0",
            "initial.magnetic_y=0",
            "initial.magnetic_z=0",
            "mesh.max_level=0",
            field,
        ];
        let before = Stepper::new(text, &settings).state();
        let after = Stepper::new(text, &settings).steps(5).state();
        assert!(conserved(&before) == conserved(&after), "{field}");
    }
}

/// A dense hot ball in a field, on three levels that follow it.
pub(super) const BALL: &str = r#"
scenario = "formula"
[initial]
density    = "1 + if(r < 0.14, 3, 0)"
pressure   = "0.5 + if(r < 0.14, 10, 0)"
magnetic_x = "0.6"
magnetic_y = "0.4*cos(2*pi*z)"
magnetic_z = "0.3"
scalars    = { dye = "if(r < 0.2, 1, 0.25)" }
[domain]
cells      = [16, 16, 16]
left_edge  = [-0.5, -0.5, -0.5]
right_edge = [0.5, 0.5, 0.5]
[time]
end = 1.0
[mesh]
max_level = 2
regrid_interval = 2
flag_buffer = 2
refine = [{ criterion = "gradient", field = "pressure", threshold = 0.3 }]
[hydro]
scalars = ["dye"]
dual_energy = false
[mhd]
method = "glm"
"#;

/// Mass, momentum, total energy and the field are conserved through refinement and removal of levels.
#[test]
fn conserved_quantities_stay_on_moving_levels() {
    for scheme in ["hydro.scheme=muscl-hancock", "hydro.scheme=rk2"] {
        let settings = ["initial.velocity_x=3", "initial.velocity_y=-2", scheme];
        let mut stepper = Stepper::new(BALL, &settings);
        let before = stepper.0.with(|s| totals(s));
        stepper.steps(8);
        let after = stepper.0.with(|s| totals(s));
        assert_eq!(before.len(), COMPONENTS + 1, "with the dye");
        let scales = [1.0, 3.0, 3.0, 3.0, 7.0, 1.0, 1.0, 1.0, f64::INFINITY, 1.0];
        for (c, scale) in scales.into_iter().enumerate() {
            let drift = (after[c] - before[c]).abs() / scale;
            assert!(drift < 1e-13, "{scheme}: component {c} drifts by {drift:e}");
        }
        let state = stepper.state();
        assert!(state.counts()[2] > 64, "{:?}", state.counts());
        state.physical().unwrap_or_else(|why| panic!("{why}"));
    }
}

/// Returns the state with its axes changed, and with the field and the cleaning variable, between the energy and a scalar, times `sign`.
pub(super) fn image(state: &State, change: &Change, sign: f64) -> State {
    let mut image = changed_vectors(state, change, &[1, 5]);
    let patches = image.levels.iter_mut().flat_map(|level| level.values_mut());
    for patch in patches {
        let scalar = patch.values.len() - 512;
        for value in &mut patch.values[5 * 512..scalar] {
            // adding 0 makes -0 and 0 the same
            *value = sign * *value + 0.0;
        }
    }
    image
}

/// Mirrored and exchanged axes give the same bits, and so does the opposite field.
#[test]
fn a_magnetised_ball_stays_symmetric() {
    let change = |from: [usize; 3], mirrored: [bool; 3]| Change { from, mirrored };
    let same = [false; 3];
    let settings = ["initial.magnetic_y=0", "run.precision=single"];
    let along = [
        ["initial.magnetic_x=0.7", "initial.magnetic_z=0"],
        ["initial.magnetic_x=0", "initial.magnetic_z=0.7"],
    ];
    for choice in [
        "hydro.scheme=muscl-hancock",
        "hydro.reconstruction=ppm",
        "hydro.scheme=rk2",
        "hydro.riemann=hll",
    ] {
        let [along_x, along_z] = along.map(|field| {
            let settings = [&settings[..], &field, &[choice]].concat();
            Stepper::new(BALL, &settings).steps(5).state()
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
            assert_eq!(itself.difference(image), None, "{choice}, image {n}");
        }
    }
}

#[test]
fn two_ranks_do_not_matter() {
    for settings in [&["run.precision=single"][..], &["hydro.scheme=rk2"]] {
        let alone = Stepper::new(BALL, settings).steps(4).state();
        let two = on_ranks(2, BALL, settings, |stepper| stepper.steps(4).state());
        assert_eq!(alone.difference(&joined(two)), None, "{settings:?}");
    }
}

/// Faces of every kind, sources, viscosity, conduction, floors and a criterion by the field.
const EVERYTHING: [&str; 14] = [
    "time.max_steps=3",
    "initial.velocity_x=0.4",
    "inflow.x_lower.density=1",
    "inflow.x_lower.pressure=0.5",
    "inflow.x_lower.velocity_x=0.4",
    "inflow.x_lower.magnetic_y=0.4*cos(2*pi*z)",
    "domain.boundary={ x = [\"inflow\", \"diode\"], y = [\"reflecting\", \"outflow\"], z = \"outflow\" }",
    "mesh.refine=[{ criterion = \"gradient\", field = \"magnetic_energy\", threshold = 0.3 }]",
    "mesh.max_level=1",
    "viscosity={ kinematic = 0.01 }",
    "conduction={ diffusivity = 0.01 }",
    "floors={ density = 0.9 }",
    "sources={ acceleration_y = \"0.3*alfven_speed\", heating = \"0.1\" }",
    "output.derived=[\"pressure\", \"magnetic_field\", \"magnetic_energy\", \"plasma_beta\", \"alfven_speed\"]",
];

#[test]
fn runs_on_the_device_have_the_bits_of_the_cpu() {
    if !emulation() {
        return;
    }
    agree(BALL, &EVERYTHING);
    agree(
        BALL,
        &[
            &EVERYTHING[..],
            &[
                "run.precision=single",
                "hydro.scheme=rk2",
                "hydro.riemann=hlle",
            ],
        ]
        .concat(),
    );
}

/// Sources act on gas in a uniform field as without one, bit for bit.
#[test]
fn a_uniform_field_does_not_change_sources() {
    let rest = [
        "initial.density=1",
        "mesh.max_level=0",
        "sources={ heating = \"0.3*pressure\" }",
        "time.max_step=1e-3",
        "time.end=3e-3",
        "domain.cells=[8, 8, 8]",
        "initial.velocity_x=0",
    ];
    // pressure and density do not vary: the fluxes cancel
    let uniform = [&rest[..], &["initial.pressure=1"]].concat();
    let no_field: Vec<&str> = BALL
        .lines()
        .filter(|line| !line.starts_with("magnetic"))
        .collect();
    let no_field = no_field.join("\n").replace("[mhd]\nmethod = \"glm\"", "");
    let with_field = [&uniform[..], &["initial.magnetic_y=0.2"]].concat();
    let energies = |text: &str, settings: &[&str]| {
        let mut found = Vec::new();
        let state = Stepper::new(text, settings).finish().state();
        state.each_leaf_cell(|_, _, _, u| found.push(u[4]));
        found
    };
    let without = energies(&no_field, &uniform);
    assert!(without[0] > 1.5 * (1.0 + 5e-4), "{}", without[0]);
    for method in ["glm", "ct"] {
        let with = energies(&with_method(BALL, method), &with_field);
        assert!(without == with, "{method}: {} and {}", without[0], with[0]);
    }
}

/// Fast waves and diffusion share the time step of the explicit schemes.
#[test]
fn steps_of_viscosity_and_conduction_know_the_field() {
    let settings = [
        "initial.magnetic_z=5",
        "mesh.max_level=0",
        "hydro.shock_cure=none",
    ];
    let dt = |more: &str| {
        let mut stepper = Stepper::new(BALL, &[&settings[..], &[more]].concat());
        stepper.try_step().unwrap_or_else(|e| panic!("{e}"));
        stepper.time()
    };
    let alone = dt("time.courant=0.8");
    for process in [
        "viscosity={ kinematic = 0.05 }",
        "conduction={ diffusivity = 0.05 }",
    ] {
        // rates add up: those of the waves are as large as alone
        let both = dt(process);
        let weak = dt(&process.replace("0.05", "1e-9"));
        assert!(
            (weak - alone).abs() < 1e-6 * alone,
            "{process}: {alone} and {weak}"
        );
        assert!(both < 0.8 * alone, "{process}: {alone} and {both}");
    }
}

/// Errors of the divergence move away and are damped.
#[test]
fn a_divergence_is_cleaned() {
    let settings = [
        "initial.density=1",
        "initial.pressure=1",
        "time.end=10",
        "initial.magnetic_x=1 + 0.1*exp(-(r/0.1)^2)",
        "initial.magnetic_y=0",
        "initial.magnetic_z=0",
        "mesh.max_level=0",
        "domain.cells=[32, 32, 32]",
    ];
    let divergence = |state: &State| {
        let mut field = std::collections::HashMap::new();
        let mut width = 0.0;
        state.each_leaf_cell(|level, centre, _, u| {
            width = state.domain.cell_width(level)[0];
            let index = centre.map(|x| ((x + 0.5) / width).floor() as i32);
            field.insert(index, [u[5], u[6], u[7]]);
        });
        let mut sum = 0.0;
        for index in field.keys() {
            let along = |axis: usize| {
                let near = |step: i32| {
                    let mut at = *index;
                    at[axis] = (at[axis] + step).rem_euclid(32);
                    field[&at][axis]
                };
                near(1) - near(-1)
            };
            sum += (along(0) + along(1) + along(2)).abs() / (2.0 * width);
        }
        sum / field.len() as f64
    };
    let mut stepper = Stepper::new(BALL, &settings);
    let [told] = stepper.columns(["divergence_error"]);
    let before = divergence(&stepper.state());
    assert!(told > 0.01 && told < 1.0, "{told}");
    stepper.steps(300);
    let after = divergence(&stepper.state());
    println!("mean divergence: {before:e} to {after:e}");
    assert!(after < 0.1 * before, "{before:e} to {after:e}");
    let [left] = stepper.columns(["divergence_error"]);
    assert!(left < 0.05 * told, "{told:e} to {left:e}");
}

/// What does not go with a magnetic field, or needs one, is refused with its key.
#[test]
fn what_does_not_fit_is_refused() {
    let cases = [
        ("hydro.scheme=vl", "hydro.scheme"),
        ("hydro.riemann=hllc", "hydro.riemann"),
        ("hydro.riemann=roe", "hydro.riemann"),
        ("hydro.variables=characteristic", "hydro.variables"),
        ("hydro.frozen=true", "hydro.frozen"),
        ("mhd.method=cd", "mhd.method"),
        ("initial.magnetic_x=1/0", "magnetic"),
    ];
    for (setting, key) in cases {
        let refused = App::default()
            .simulation(deck(BALL, &[setting]))
            .and_then(Stepper::begin);
        let error = refused.map(|_| ()).expect_err(setting).to_string();
        assert!(error.contains(key), "{setting}: {error}");
    }
    let without = BALL.replace("[mhd]\nmethod = \"glm\"\n", "");
    let refused = App::default()
        .simulation(deck(&without, &[]))
        .and_then(Stepper::begin);
    let error = refused.map(|_| ()).expect_err("refused").to_string();
    assert!(
        error.contains("initial.magnetic_x") && error.contains("[mhd]"),
        "{error}"
    );
    let refused = App::default().simulation(deck(
        include_str!("../../../scenarios/sod.toml"),
        &["hydro.riemann=hlld"],
    ));
    let error = refused.map(|_| ()).expect_err("refused").to_string();
    assert!(
        error.contains("hydro.riemann") && error.contains("hllc"),
        "{error}"
    );
}
