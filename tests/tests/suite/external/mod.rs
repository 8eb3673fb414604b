//! External potentials and accelerations: exact solutions, orders, energy, bitwise equality, invalid decks.

mod tables;

use crate::device_runs::places;
use crate::symmetry::{GENERATORS, changed};
use nestar::Simulation;
use nestar::engine::comm::DiagnosticColumns;
use nestar_tests::decks::{BLAST, HALF, SYMMETRIC, deck};
use nestar_tests::ranks::{joined, on_ranks_of, run_with};
use nestar_tests::runs::digests;
use nestar_tests::{Scratch, State, Stepper, build};

/// Digests the gas alone: the external field is recomputed on every rank.
fn gas(mut state: State, components: usize) -> State {
    state.components = components;
    let patches = state.levels.iter_mut().flat_map(|level| level.values_mut());
    patches.for_each(|patch| patch.values.truncate(components * 512));
    state
}

/// Isothermal gas at rest in a wavy potential, oblique to the axes.
fn atmosphere(n: u32, settings: &[&str]) -> Stepper {
    let text = format!(
        r#"
scenario = "formula"
[constants]
T = 0.6
[initial]
samples = 4
density  = "exp(-0.3*cos(2*pi*(x + y))/T)"
pressure = "T*exp(-0.3*cos(2*pi*(x + y))/T)"
[domain]
cells = [{n}, {n}, 8]
right_edge = [1.0, 1.0, "8/{n}"]
[time]
end = 0.25
[external]
potential = "0.3*cos(2*pi*(x + y))"
[hydro]
gamma = "5/3"
"#
    );
    Stepper::new(&text, settings)
}

/// The mean speed of an atmosphere that should be at rest.
fn speed(n: u32, settings: &[&str]) -> f64 {
    let (mut sum, mut volume) = (0.0, 0.0);
    let state = atmosphere(n, settings).finish().state();
    state.each_leaf_cell(|_, _, v, u| {
        sum += v * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]).sqrt() / u[0];
        volume += v;
    });
    sum / volume
}

#[test]
fn a_hydrostatic_atmosphere_stays_at_rest_to_second_order() {
    for order in ["external.order=2", "external.order=4"] {
        let found = [16, 32, 64].map(|n| speed(n, &[order]));
        for pair in found.windows(2) {
            assert!(pair[0] / pair[1] > 3.5, "{order}: {found:?}");
        }
        assert!(found[2] < 1e-3, "{order}: {found:?}");
    }
}

/// A column of the diagnostics.
fn column(run: &mut Stepper, wanted: &str) -> f64 {
    run.0.with(|sim| {
        let names: Vec<String> = sim
            .world
            .resource::<DiagnosticColumns>()
            .names()
            .map(String::from)
            .collect();
        let values = DiagnosticColumns::values(&mut sim.world).unwrap_or_else(|e| panic!("{e}"));
        let mut found = names.iter().zip(values).filter(|(name, _)| *name == wanted);
        found.next().unwrap_or_else(|| panic!("{names:?}")).1
    })
}

/// Energy of the gas, with that in the potential.
fn energy(run: &mut Stepper) -> f64 {
    let mut sum = 0.0;
    run.state().each_leaf_cell(|_, _, v, u| sum += v * u[4]);
    sum + column(run, "energy_external")
}

/// Energy error of gas that oscillates smoothly in a wavy potential, relative to the energy converted.
fn drift(n: u32) -> f64 {
    let text = format!(
        r#"
scenario = "formula"
[initial]
density  = "1"
pressure = "1"
[domain]
cells = [{n}, 8, 8]
right_edge = [1.0, "8/{n}", "8/{n}"]
[time]
end = 0.25
[external]
potential = "0.1*sin(2*pi*x)"
[hydro]
gamma = "5/3"
"#
    );
    let mut run = Stepper::new(&text, &[]);
    let (before, high) = (energy(&mut run), column(&mut run, "energy_external"));
    run.finish();
    let fallen = high - column(&mut run, "energy_external");
    let volume = (8.0 / f64::from(n)).powi(2);
    assert!(fallen > 1e-3 * volume, "{fallen:e} of {volume:e}");
    ((energy(&mut run) - before) / fallen).abs()
}

#[test]
fn the_energy_of_gas_in_a_potential_is_conserved_to_second_order() {
    let found = [64, 128].map(drift);
    assert!(found[0] / found[1] > 3.4 && found[1] < 1e-4, "{found:?}");
}

/// A uniform gas in a potential -x cos(9 t): its velocity is sin(9 t) / 9, with an error that falls to a quarter with half the step;
/// on two levels.
#[test]
fn time_dependent_potentials_are_of_second_order() {
    let text = r#"
scenario = "formula"
[initial]
density  = "2"
pressure = "0.6"
[domain]
cells = [16, 8, 8]
right_edge = [1.0, 0.5, 0.5]
[time]
end = 0.5
[mesh]
max_level = 1
refine = [{ criterion = "box", left = [0.0, 0.0, 0.0], right = [0.25, 0.25, 0.25] }]
[external]
acceleration_z = "0.5*sin(3*t)"
potential = "-x*cos(9*t)"
"#;
    let exact = [4.5f64.sin() / 9.0, 0.0, (1.0 - 1.5f64.cos()) / 6.0];
    let error = |step: &str| {
        let state = Stepper::new(text, &[step]).finish().state();
        let mut worst = 0.0f64;
        state.each_leaf_cell(|_, _, _, u| {
            for axis in 0..3 {
                worst = worst.max((u[1 + axis] / u[0] - exact[axis]).abs());
            }
        });
        worst
    };
    let [coarse, fine] = ["time.max_step=0.01", "time.max_step=0.005"].map(error);
    assert!((coarse / fine - 4.0).abs() < 0.1, "{coarse:e} and {fine:e}");
    assert!(fine < 1e-4, "{fine:e}");
}

/// Formulas that use every available name, and change in time.
const RICH: [&str; 3] = [
    "external.potential=0.2*sin(2*pi*y + t)/(1 + r) - profile(sqrt((x-0.4)^2 + (y-0.5)^2 + z^2))",
    "external.acceleration_y=if(z > 0.5, -0.3, 0.1)*t",
    "tables.profile={ x = [0.1, 0.3, 0.7, 1.5], y = [1.0, 0.5, 0.3, 0.2], below = \"core\", above = \"kepler\" }",
];
const STILL: [&str; 2] = [
    "external.potential=0.2*sin(2*pi*y)/(1 + r)",
    "external.order=2",
];
/// Formulas cost more than all else: one level.
const SMALL: [&str; 2] = [HALF, "mesh.max_level=1"];

#[test]
fn external_forces_are_identical_on_ranks_and_devices() {
    for (precision, formulas) in [
        ("run.precision=double", &RICH[..]),
        ("run.precision=single", &RICH),
        ("run.precision=single", &STILL),
    ] {
        let run = |device, size| {
            let settings = [formulas, &SMALL, &[precision, device]].concat();
            let build = |ranks| Simulation::with_ranks(deck(BLAST, &settings), ranks);
            joined(on_ranks_of(size, build, |stepper| stepper.steps(3).state()))
        };
        let alone = run("run.device=cpu", 1);
        assert!(alone.counts()[1] > 0, "the case has no levels");
        for (device, size) in places(&[3], &[2]) {
            let difference = alone.difference(&run(device, size));
            assert_eq!(difference, None, "{device}, {size} ranks, {precision}");
        }
    }
}

#[test]
fn a_run_with_external_forces_resumes_from_its_snapshot() {
    for precision in ["run.precision=double", "run.precision=single"] {
        let of = |directory: &Scratch, resume, steps: &str| {
            let settings = [&RICH[..], &SMALL, &[steps, precision]].concat();
            let run = run_with(&directory.run(), resume, 1, &settings, Ok);
            run.unwrap_or_else(|e| panic!("{e}"));
            digests(&directory.run()).pop().expect("a snapshot").1
        };
        let (whole, parts) = (Scratch::new(), Scratch::new());
        let once = of(&whole, false, "time.max_steps=4");
        of(&parts, false, "time.max_steps=2");
        assert_eq!(once, of(&parts, true, "time.max_steps=4"), "{precision}");
    }
}

/// Time-dependent fields are evaluated at each level's time and on new patches: they equal their formulas at any time.
#[test]
fn the_external_field_equals_its_formula_on_all_levels() {
    let settings = [
        HALF,
        "external.potential=x*t + y",
        "external.acceleration_z=z - t",
    ];
    let mut run = Stepper::new(BLAST, &settings);
    let counts = run.state().counts();
    run.steps(5);
    let (time, state) = (run.time(), run.state());
    assert!(
        time > 0.0 && counts != state.counts(),
        "the mesh stays as it is"
    );
    let mut cells = 0;
    // density to energy, a scalar, then the field
    state.each_leaf_cell(|level, x, _, u| {
        cells += 1;
        let exact = [x[0] * time + x[1], -time, -1.0, x[2] - time];
        for (found, exact) in u[6..].iter().zip(exact) {
            assert!(
                (found - exact).abs() < 1e-12,
                "level {level}: {found} for {exact}"
            );
        }
    });
    assert!(cells > 0);
}

#[test]
fn a_symmetric_potential_preserves_the_symmetry_exactly() {
    for order in ["external.order=2", "external.order=4"] {
        let settings = [
            "external.potential=-0.5/sqrt(r^2 + 0.01) - 0.1*exp(-x^2-y^2-z^2)",
            order,
        ];
        let state = gas(Stepper::new(SYMMETRIC, &settings).steps(3).state(), 5);
        for change in &GENERATORS {
            let image = changed(&state, change);
            assert_eq!(state.difference(&image), None, "{order}: {:?}", change.from);
        }
    }
}

#[test]
fn falling_matter_crosses_at_most_one_cell_per_step() {
    let settings = [HALF, "mesh.max_level=0", "external.potential=1e4*z"];
    let report = |more: &[&str]| {
        let mut stepper = Stepper::new(BLAST, &[&settings[..], more].concat());
        stepper.try_step().unwrap_or_else(|e| panic!("{e}"))
    };
    let first = report(&[]);
    let longest = (0.5f64 / 8.0 / 1e4).sqrt();
    assert_eq!(first.limiter, "external");
    assert!((first.dt / longest - 1.0).abs() < 1e-9, "{}", first.dt);
    assert_ne!(report(&["external.limit=0"]).limiter, "external");
}

/// The messages at the start of a run, equal on every device.
fn message(settings: &[&str]) -> String {
    let mut messages = places(&[1], &[1]).into_iter().map(|(device, _)| {
        let settings = [settings, &[HALF, device]].concat();
        let begun = Stepper::begin(build(BLAST, &settings));
        begun.err().expect("a fault").to_string()
    });
    let first = messages.next().expect("there is a device");
    messages.for_each(|other| assert_eq!(other, first));
    first
}

#[test]
fn non_finite_potentials_are_reported() {
    let found = message(&["external.potential=sqrt(x - 0.2)"]);
    let named = "the formula external.potential = \"sqrt(x - 0.2)\" is not a finite number at (x, y, z) = [";
    assert!(found.contains(named), "{found}");
    let table = "tables.halo={ x = [0.1, 0.5], y = [1, 2] }";
    let found = message(&["external.potential=halo(x)", table]);
    assert!(
        found.contains("(`halo` is defined from 0.1 to 0.5)"),
        "{found}"
    );
    let found = message(&["external.acceleration_x=1/(x - x)"]);
    let words = "the formula external.acceleration_x = \"1/(x - x)\" is not a finite number at";
    assert!(found.contains(words), "{found}");
    // known in the cell, but not beside it
    let found = message(&[
        "external.potential=halo(r)",
        "tables.halo={ x = [0, 0.9], y = [1, 2] }",
    ]);
    let words = "external.potential = \"slope of halo(r)\" is not a finite number at";
    assert!(found.contains(words), "{found}");
}

#[test]
fn invalid_tables_are_refused_with_their_keys() {
    let refused = |setting: &str| {
        let built = Simulation::new(deck(BLAST, &[setting]));
        built.map(|_| ()).expect_err("refused").to_string()
    };
    for (setting, words) in [
        (
            "external.order=3",
            "`external.order` must be 2 or 4, found 3",
        ),
        ("external.limit=-1", "external.limit"),
        ("external.potential=density", "unknown name `density`"),
        ("external.potential=-1/rr", "did you mean `r`?"),
        ("external.acceleration_x=halo(r)", "unknown function `halo`"),
        ("external.potentail=x", "did you mean `potential`?"),
        ("tables.halo={ x = [1, 2], y = [1, nan] }", "tables.halo.y"),
    ] {
        let why = refused(setting);
        assert!(why.contains(words), "{setting}: {why}");
    }
}
