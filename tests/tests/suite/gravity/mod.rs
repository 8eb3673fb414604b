//! Self-gravity: exact solutions, convergence of multigrid cycles, bitwise equality, invalid decks.

mod derefinement;
mod domain_faces;
mod energy;
mod first_step;
mod hernquist;
mod jeans;
mod leaves;
mod level_potential;
mod momentum;
mod non_finite;
mod point_masses;
mod root_choice;
mod root_cycles;
mod root_errors;
mod wide_levels;

use crate::device_runs::emulation;
use nestar::Simulation;
use nestar::engine::comm::{DiagnosticColumns, Ranks};
use nestar::prelude::*;
use nestar::systems::fields::Matter;

use nestar_tests::decks::deck;
use nestar_tests::ranks::{joined, on_ranks_of};
use nestar_tests::runs::{digests, quietly_into};
use nestar_tests::{Scratch, State, Stepper, build};

/// A lump that falls together while it crosses a wavy box, with two levels on it.
const LUMP: &str = r#"
scenario = "formula"
[initial]
density    = "1 + 0.5*sin(2*pi*x)*cos(2*pi*y) + 3*exp(-((x-0.4)^2+(y-0.55)^2+(z-0.47)^2)/0.01)"
pressure   = "0.5"
velocity_x = "0.3"
velocity_y = "-0.2 + 0.1*sin(2*pi*z)"
[domain]
cells = [16, 16, 16]
[time]
end = 1.0
[mesh]
max_level = 2
regrid_interval = 2
flag_buffer = 2
refine = [{ criterion = "threshold", field = "density", threshold = [2.0, 3.0] }]
[gravity]
"#;
const OUTFLOW: &str = r#"domain.boundary="outflow""#;
/// Half as many patches in the levels of [`LUMP`]: for comparisons that need levels, but no size.
const FEW: &str = "mesh.flag_buffer=0";
/// Levels whose edge has a corner that points inwards: the border of a level is interpolated from cells that it covers, too.
const ANGLE: &str = r#"mesh.refine=[{criterion="threshold", field="if(x < 0.5, 1, 0) + if(y < 0.5, 1, 0)", threshold=[0.5, 9.0]}]"#;
/// The root level by cycles.
const MULTIGRID: &str = r#"gravity.root="multigrid""#;

/// Gas and potential alone: the work counters of the solver may differ between ranks.
fn stored(mut state: State) -> State {
    state.components = 6;
    let patches = state.levels.iter_mut().flat_map(|level| level.values_mut());
    patches.for_each(|patch| patch.values.truncate(6 * 512));
    state
}

fn lump(size: usize, settings: &[&str]) -> State {
    let settings = [&[FEW], settings].concat();
    let build = |ranks: Ranks| Simulation::with_ranks(deck(LUMP, &settings), ranks);
    let states = on_ranks_of(size, build, |stepper| stepper.steps(2).state());
    stored(joined(states))
}

#[test]
fn the_potential_is_identical_on_ranks_and_devices() {
    for case in [
        ["run.precision=single", "domain.boundary=\"periodic\""],
        ["run.precision=double", OUTFLOW],
    ] {
        let alone = same_everywhere(&case);
        let weaker = lump(1, &[&case[..], &["gravity.constant=0.9"]].concat());
        assert!(alone.difference(&weaker).is_some(), "gravity does nothing");
    }
}

#[test]
fn the_potential_of_a_multigrid_root_is_identical_on_ranks_and_devices() {
    for case in [
        ["run.precision=single", "domain.boundary=\"periodic\""],
        ["run.precision=double", OUTFLOW],
    ] {
        let alone = same_everywhere(&[&case[..], &[MULTIGRID]].concat());
        let exact = lump(1, &case);
        assert!(alone.difference(&exact).is_some(), "they are the same");
    }
}

/// Two steps with these settings on one rank, the reference for several ranks and devices.
fn same_everywhere(settings: &[&str]) -> State {
    let alone = lump(1, settings);
    assert!(alone.counts()[2] > 0, "the case has no levels");
    let difference = alone.difference(&lump(3, settings));
    assert_eq!(difference, None, "3 ranks, {settings:?}");
    if emulation() {
        let devices = lump(2, &[settings, &["run.device=emulated"]].concat());
        let difference = alone.difference(&devices);
        assert_eq!(difference, None, "2 devices, {settings:?}");
    }
    alone
}

#[test]
fn a_run_with_gravity_is_identical_after_a_restart() {
    let run = |parts: &[&str], case: &[&str]| {
        let scratch = Scratch::new();
        for (n, steps) in parts.iter().enumerate() {
            let common = [FEW, "output.steps=2", "output.final=true", steps];
            let settings = [case, &common].concat();
            let options = quietly_into(&scratch.run(), n > 0);
            let run = build(LUMP, &settings).run_with(options);
            run.unwrap_or_else(|e| panic!("{e}"));
        }
        digests(&scratch.run()).pop().expect("there is a snapshot")
    };
    for case in [
        &["gravity.coupling=\"two-way\""][..],
        &["gravity.coupling=\"one-way\""],
        &[MULTIGRID, OUTFLOW],
        &[MULTIGRID, "mesh.max_level=0", "run.precision=single"],
        &[momentum::STRESS],
        &[ANGLE],
    ] {
        let whole = run(&["time.max_steps=3"], case);
        let parts = run(&["time.max_steps=2", "time.max_steps=3"], case);
        assert_eq!(parts, whole, "{case:?}");
    }
}

/// The columns of the diagnostics by name.
pub(crate) fn columns(run: &mut Stepper) -> Vec<(String, f64)> {
    run.0.with(|sim| {
        let names = sim
            .world
            .resource::<DiagnosticColumns>()
            .names()
            .map(String::from);
        let names: Vec<String> = names.collect();
        let values = DiagnosticColumns::values(&mut sim.world).unwrap_or_else(|e| panic!("{e}"));
        names.into_iter().zip(values).collect()
    })
}

/// The largest residual of all levels after the given number of cycles from the start.
fn residual(sweeps: usize, cycles: usize) -> f64 {
    let settings = [
        format!("gravity.sweeps_aligned={sweeps}"),
        format!("gravity.initial_cycles={cycles}"),
    ];
    let mut run = Stepper::new(LUMP, &settings.each_ref().map(String::as_str));
    let columns = columns(&mut run);
    let residuals = columns
        .iter()
        .filter(|(name, _)| name.starts_with("gravity_residual"));
    residuals.fold(0.0, |most, (_, value)| value.max(most))
}

/// Cycles over all levels reduce the residual by the factors of the method's analysis, to round-off.
#[test]
fn multigrid_cycles_converge_at_the_expected_rates() {
    for (sweeps, rate) in [(1, 0.215), (2, 0.105)] {
        let (before, after) = (residual(sweeps, 3), residual(sweeps, 5));
        let found = (after / before).sqrt();
        assert!(found < rate, "{sweeps} sweeps: {found}");
    }
    let last = residual(2, 16);
    assert!(last < 1e-11, "{last:e}");
}

#[test]
fn invalid_tables_are_refused_with_their_keys() {
    let refused = |setting: &str| {
        let built = Simulation::new(deck(LUMP, &[setting]));
        built.map(|_| ()).expect_err("refused").to_string()
    };
    for (setting, words) in [
        ("gravity.order=3", "the order must be 2 or 4"),
        ("gravity.constant=-1", "gravity.constant"),
        ("gravity.limit=inf", "must be a finite number"),
        ("gravity.sweeps=0", "at least 1 and at most 8"),
        (
            "gravity.boundary=\"isolated\"",
            "needs faces of the domain that are not periodic",
        ),
        ("gravity.strength=2", "strength"),
        ("gravity.root=\"james\"", "james"),
        ("gravity.multipole_order=0", "at least 1 and at most 12"),
        ("gravity.multipole_order=13", "at least 1 and at most 12"),
        (
            "domain.boundary={ x = \"outflow\", y = \"periodic\", z = \"outflow\" }",
            "periodic along some axes only",
        ),
    ] {
        let why = refused(setting);
        assert!(why.contains(words), "{setting}: {why}");
    }
}

/// Dark matter as dense as the gas, wherever that goes.
struct Twin;

#[device]
fn add<R: Real>(u: (R, Conserved<R>)) -> R {
    let (there, gas) = u;
    there + gas.density
}

fn twin(
    In(level): In<usize>,
    mut rows: LevelRows,
    gas: Read<Gas>,
    mut matter: Write<Matter>,
) -> Result<(), Error> {
    rows.visit(level);
    matter.update::<add>(&rows, &gas, &[]);
    Ok(())
}

impl Plugin for Twin {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.gravity_source("twin", twin);
        Ok(())
    }
}

/// Matter of a plugin attracts like gas: twice the matter equals twice Newton's constant, bitwise.
#[test]
fn density_of_a_plugin_is_a_source_of_gravity() {
    let states = |settings: &[&str], dark: bool| {
        let mut sim = build(LUMP, settings);
        if dark {
            sim = sim.add(Twin).unwrap_or_else(|e| panic!("{e}"));
        }
        stored(Stepper::of(sim).steps(2).state())
    };
    for boundary in ["domain.boundary=\"periodic\"", OUTFLOW] {
        let dark = states(&[boundary, "gravity.constant=0.5"], true);
        let strong = states(&[boundary, "gravity.constant=1"], false);
        assert_eq!(dark.difference(&strong), None, "{boundary}");
    }
}
