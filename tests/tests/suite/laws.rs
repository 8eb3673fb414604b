//! Gas without energy: isothermal and polytropic.

use super::device_runs::{agree, emulation};
use super::symmetry::{GENERATORS, changed};
use nestar::App;
use nestar::kernels::hydro::EquationOfState;
use nestar::prelude::*;
use nestar::stiff::{DONE, Outcome, Subcycling};
use nestar_tests::choices;
use nestar_tests::decks::deck;
use nestar_tests::norms::{magnitudes, totals};
use nestar_tests::ranks::{joined, on_ranks};
use nestar_tests::{State, Stepper};
use std::collections::BTreeMap;

const ISOTHERMAL: [&str; 2] = ["hydro.eos=isothermal", "hydro.sound_speed=1"];
const POLYTROPIC: [&str; 3] = [
    "hydro.eos=polytropic",
    "hydro.polytropic_constant=0.6",
    "hydro.gamma=5/3",
];

/// A sound wave in gas with density and sound speed 1, over one period. The box is so wide that the time step is that of one dimension.
const WAVE: &str = r#"
scenario = "formula"
[initial]
samples    = 3
density    = "1 + 1e-6*sin(2*pi*x)"
velocity_x = "1e-6*sin(2*pi*x)"
[domain]
cells      = [64, 8, 8]
right_edge = [1.0, 100.0, 100.0]
[time]
end     = 1.0
courant = 0.8
[mesh]
[hydro]
"#;

/// Returns the mean over the domain of |value - exact|, by a value of the state of a cell and its exact mean between two coordinates along x.
fn l1(state: &State, value: impl Fn(&[f64]) -> f64, exact: impl Fn(f64, f64) -> f64) -> f64 {
    let (mut sum, mut total) = (0.0, 0.0);
    state.each_leaf_cell(|level, [x, ..], volume, u| {
        let half = 0.5 * state.domain.cell_width(level)[0];
        sum += volume * (value(u) - exact(x - half, x + half)).abs();
        total += volume;
    });
    sum / total
}

#[test]
fn a_sound_wave_returns_after_one_period() {
    for law in [&ISOTHERMAL[..], &POLYTROPIC] {
        let state = Stepper::new(WAVE, law).finish().state();
        assert_eq!(state.components, 4, "density and momentum");
        let integral = |x: f64| {
            x - 1e-6 * (2.0 * std::f64::consts::PI * x).cos() / (2.0 * std::f64::consts::PI)
        };
        let error = l1(
            &state,
            |u| u[0],
            |a, b| (integral(b) - integral(a)) / (b - a),
        );
        println!("{law:?}: {error:e}");
        assert!(error > 1e-11 && error < 1.4e-9, "{law:?}: {error:e}");
    }
}

/// Sod's problem for isothermal gas: density 1 and 0.25 at rest, sound speed 1; a wide box again.
const SOD: &str = r#"
scenario = "formula"
[initial]
density = "if(x < 0, 1, 0.25)"
[domain]
cells      = [512, 8, 8]
left_edge  = [-0.5, 0.0, 0.0]
right_edge = [0.5, 100.0, 100.0]
boundary   = { x = "outflow", y = "periodic", z = "periodic" }
[time]
end     = 0.2
courant = 0.8
[mesh]
[hydro]
riemann = "hll"
"#;

/// Returns density and velocity of the exact solution at `x / t`: a rarefaction to the left and a shock to the right of a uniform state.
fn sod(speed: f64) -> [f64; 2] {
    let (left, right) = (1.0_f64, 0.25_f64);
    // both waves have the velocity of the gas between them
    let behind =
        |density: f64| (left / density).ln() - (density - right) / (density * right).sqrt();
    let (mut low, mut high) = (right, left);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        match behind(middle) > 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    let (density, velocity) = (low, (left / low).ln());
    let shock = density * velocity / (density - right);
    if speed < -1.0 {
        [left, 0.0]
    } else if speed < velocity - 1.0 {
        [(-(speed + 1.0)).exp(), speed + 1.0]
    } else if speed < shock {
        [density, velocity]
    } else {
        [right, 0.0]
    }
}

#[test]
fn the_shock_tube_of_isothermal_gas_has_its_exact_solution() {
    let mut stepper = Stepper::new(SOD, &ISOTHERMAL);
    let state = stepper.finish().state();
    let t = stepper.time();
    let mean = |c: usize| {
        move |a: f64, b: f64| {
            let at = |n: usize| sod((a + (n as f64 + 0.5) / 64.0 * (b - a)) / t)[c];
            (0..64).map(at).sum::<f64>() / 64.0
        }
    };
    let density = l1(&state, |u| u[0], mean(0));
    let velocity = l1(&state, |u| u[1] / u[0], mean(1));
    println!("density {density:e}, velocity {velocity:e}");
    assert!(density < 7e-4, "{density:e}");
    assert!(velocity < 1.8e-3, "{velocity:e}");
}

/// Returns the depth of the exact solution of the broken dam at `x / t`, with depths 1 and 0.1 at rest and gravitational acceleration 1
/// (Stoker 1957).
fn stoker(speed: f64) -> f64 {
    let (left, right) = (1.0_f64, 0.1_f64);
    let fan = |depth: f64| 2.0 * (left.sqrt() - depth.sqrt());
    let jump = |depth: f64| (depth - right) * (0.5 * (1.0 / depth + 1.0 / right)).sqrt();
    let (mut low, mut high) = (right, left);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        match fan(middle) > jump(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    let velocity = fan(low);
    if speed < -left.sqrt() {
        left
    } else if speed < velocity - low.sqrt() {
        (2.0 * left.sqrt() - speed).powi(2) / 9.0
    } else if speed < velocity * low / (low - right) {
        low
    } else {
        right
    }
}

/// Shallow water is polytropic gas: the shipped deck of a broken dam against the exact solution.
#[test]
fn a_broken_dam_has_its_exact_solution() {
    let text = include_str!("../../../scenarios/dam-break.toml");
    let [coarse, fine] = [256, 512].map(|cells| {
        let cells = format!("domain.cells=[{cells},8,8]");
        let mut stepper = Stepper::new(text, &[&cells]);
        let state = stepper.finish().state();
        let t = stepper.time();
        let exact = |a: f64, b: f64| {
            let at = |n: usize| stoker((a + (n as f64 + 0.5) / 64.0 * (b - a)) / t);
            (0..64).map(at).sum::<f64>() / 64.0
        };
        l1(&state, |u| u[0], exact)
    });
    println!("broken dam, 256 and 512 cells: L1 of the depth {coarse:e}, {fine:e}");
    assert!(
        coarse < 1.2e-3 && fine < 0.55 * coarse,
        "{coarse:e}, {fine:e}"
    );
}

/// A dense ball that expands, at the centre of a cube around the origin.
const BALL: &str = r#"
scenario = "formula"
[initial]
density    = "1 + if(r < 0.14, 30, 0)"
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
refine = [{ criterion = "gradient", field = "density", threshold = 0.3 }]
[hydro]
scalars = ["dye"]
"#;

#[test]
fn an_expanding_ball_stays_symmetric_and_conserves_mass_and_momentum() {
    for law in [&ISOTHERMAL[..], &POLYTROPIC] {
        let moving = ["initial.velocity_x=3", "initial.velocity_y=-2"];
        let mut stepper = Stepper::new(BALL, &[law, &moving[..]].concat());
        let scale = magnitudes(&stepper.state());
        let before = stepper.0.with(|s| totals(s));
        stepper.steps(6);
        let after = stepper.0.with(|s| totals(s));
        assert_eq!(before.len(), 5, "density, momentum and dye");
        for c in 0..5 {
            let scale = if (1..4).contains(&c) {
                scale[1]
            } else {
                scale[c]
            };
            let drift = (after[c] - before[c]).abs() / scale;
            assert!(drift < 1e-13, "{law:?}: component {c} drifts by {drift:e}");
        }
        let state = Stepper::new(BALL, law).steps(6).state();
        assert!(state.counts()[2] > 64, "{:?}", state.counts());
        let images: Vec<State> = GENERATORS
            .iter()
            .map(|change| changed(&state, change))
            .collect();
        for image in &images[1..] {
            assert_eq!(images[0].difference(image), None, "{law:?}");
        }
    }
}

#[test]
fn two_ranks_do_not_matter() {
    for law in [&ISOTHERMAL[..], &POLYTROPIC] {
        let settings = [law, &["run.precision=single"]].concat();
        let alone = Stepper::new(BALL, &settings).steps(3).state();
        let two = on_ranks(2, BALL, &settings, |stepper| stepper.steps(3).state());
        assert_eq!(alone.difference(&joined(two)), None, "{law:?}");
    }
}

/// Faces of every kind, gravity, an external potential, sources and a criterion by the derived pressure.
const EVERYTHING: [&str; 12] = [
    "time.max_steps=3",
    "initial.density=1 + if(r < 0.14, 30, 0) + 0.2*sin(2*pi*z)",
    "initial.velocity_x=0.4",
    "inflow.x_lower.density=1 + 0.2*sin(2*pi*z)",
    "inflow.x_lower.velocity_x=0.4",
    "domain.boundary={ x = [\"inflow\", \"diode\"], y = [\"reflecting\", \"outflow\"], z = \"outflow\" }",
    "mesh.refine=[{ criterion = \"gradient\", field = \"pressure\", threshold = 0.5 }]",
    "mesh.max_level=1",
    "gravity={ constant = 1.0, boundary = \"isolated\" }",
    "external={ potential = \"0.5*x^2\" }",
    "sources={ acceleration_y = \"0.3*sound_speed\" }",
    "output.derived=[\"pressure\", \"temperature\", \"sound_speed\", \"mach\", \"velocity_x\"]",
];

#[test]
fn runs_on_the_device_have_the_bits_of_the_cpu() {
    if !emulation() {
        return;
    }
    agree(BALL, &[&EVERYTHING[..], &ISOTHERMAL].concat());
    let single = ["run.precision=single", "hydro.scheme=vl"];
    agree(BALL, &[&EVERYTHING[..], &POLYTROPIC, &single].concat());
}

/// All choices run, stay physical and give results of their own.
#[test]
fn all_choices_run_without_energy() {
    let laws = [
        (
            EquationOfState::Isothermal,
            &ISOTHERMAL[..],
            "run.precision=double",
        ),
        (
            EquationOfState::Polytropic,
            &POLYTROPIC,
            "run.precision=single",
        ),
    ];
    for (equation, law, precision) in laws {
        let mut found: BTreeMap<Vec<u64>, String> = BTreeMap::new();
        for method in choices::without_energy(equation) {
            let choice = choices::settings(&method);
            let mut settings: Vec<&str> = choice.iter().map(String::as_str).collect();
            settings.extend(law);
            let small = ["domain.cells=[16,16,8]", "mesh.max_level=1"];
            settings.extend(small);
            settings.extend([precision, "initial.velocity_y=0.3"]);
            let state = Stepper::new(BALL, &settings).steps(2).state();
            let mut values = Vec::new();
            if let Err(why) = state.physical() {
                panic!("{settings:?}: {why}");
            }
            state.each_leaf_cell(|_, _, _, u| values.push(u[0].to_bits()));
            if let Some(other) = found.insert(values, choice.join(" ")) {
                panic!("{choice:?} and {other} give the same bits");
            }
        }
    }
}

/// What needs an energy, or a constant of another law, is refused with its key and a reason.
#[test]
fn what_needs_an_energy_is_refused() {
    let cases = [
        ("hydro.riemann=roe", "hydro.riemann"),
        ("hydro.riemann=aufs", "hydro.riemann"),
        ("hydro.riemann=exact", "hydro.riemann"),
        ("hydro.dual_energy=true", "hydro.dual_energy"),
        ("hydro.gamma=1.4", "hydro.gamma"),
        ("hydro.polytropic_constant=1", "hydro.polytropic_constant"),
        ("initial.pressure=1", "initial.pressure"),
        ("gravity.energy=kicks", "gravity.energy"),
        ("gravity.force=stress", "gravity.force"),
        ("sources.heating=1", "sources.heating"),
        ("scenario=sod", "scenario"),
        ("cooling.file=none.csv", "cooling"),
        ("chemistry.network=hydrogen", "chemistry"),
        ("floors.density=0.1", "floors"),
        ("viscosity.kinematic=0.1", "viscosity"),
        ("conduction.diffusivity=0.1", "conduction"),
    ];
    for (setting, key) in cases {
        let settings = [&ISOTHERMAL[..], &[setting]].concat();
        let refused = App::default().simulation(deck(BALL, &settings));
        let error = refused.map(|_| ()).expect_err(setting).to_string();
        assert!(error.contains(key), "{setting}: {error}");
    }
    let refused = App::default().simulation(deck(BALL, &["hydro.eos=isothermal"]));
    let error = refused.map(|_| ()).expect_err("refused").to_string();
    assert!(error.contains("hydro.sound_speed"), "{error}");
}

/// A field that is updated from the gas.
struct Trace;

impl Field for Trace {
    const NAME: &'static str = "trace";
}

#[device]
fn half<R: Real>(u: Conserved<R>) -> Conserved<R> {
    let mut v = u;
    v.energy = 0.5 * u.energy;
    v
}

#[device]
fn half_of_both<R: Real>(u: [R; 6]) -> [R; 6] {
    [u[0], u[1], u[2], u[3], u[4], 0.5 * u[5]]
}

#[device]
fn slow<R: Real>(u: [R; 4]) -> [R; 4] {
    [u[0], 0.5 * u[1], 0.5 * u[2], 0.5 * u[3]]
}

#[device]
fn stiff_half<R: Real>(u: Conserved<R>) -> Outcome<Conserved<R>> {
    Outcome::<Conserved<R>> {
        state: half(u),
        status: DONE,
    }
}

#[device]
fn energy_of<R: Real>(u: Conserved<R>) -> R {
    u.energy
}

#[device]
fn energy_beside<R: Real>(u: (R, Conserved<R>)) -> R {
    let (_, gas) = u;
    gas.energy
}

#[device]
fn wait<R: Real>(u: Conserved<R>) -> R {
    u.density / u.energy
}

#[device]
fn is_hot<R: Real>(u: &Stencil<R, Conserved<R>>) -> bool {
    u.at(1, 0, 0).energy > 2.0 * u.at(0, 0, 0).energy
}

#[device]
fn heat_down<R: Real>(u: &FaceStencil<R, Conserved<R>>, face: &Face<R>) -> Conserved<R> {
    let mut below = u.at(-1);
    below.energy = (below.energy - u.at(0).energy) / face.width;
    below
}

#[device]
fn mirror<R: Real>(ghost: Ghost<R, Conserved<R>, 1>) -> Conserved<R> {
    ghost.at(0)
}

/// A program: its declarations, and its registrations.
#[derive(Clone, Copy)]
struct Program {
    declare: Build,
    build: Build,
}

impl Plugin for Program {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        (self.declare)(sim)
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        (self.build)(sim)
    }
}

/// Sets a program up.
fn with_program(declare: Build, build: Build, settings: &[&str]) -> Result<Stepper, Error> {
    let app = App::default().always(Program { declare, build });
    Stepper::begin(app.simulation(deck(BALL, settings))?)
}

type Build = fn(&mut Engine) -> Result<(), Error>;

/// Registers a function whose state has an energy, in each way that there is.
const DOORS: [(&str, Build); 12] = [
    ("half", |sim| {
        sim.source::<Gas, half>([]);
        Ok(())
    }),
    ("half", |sim| {
        sim.split_source::<Gas, half>([]);
        Ok(())
    }),
    ("half", |sim| {
        sim.initial::<Gas, half>([]);
        Ok(())
    }),
    ("half", |sim| {
        sim.with_scalars(&[])?.source::<Gas, half>([]);
        Ok(())
    }),
    ("half_of_both", |sim| {
        let mut selected = sim.with_scalars(&["dye"])?;
        selected.source::<Gas, half_of_both>([]);
        Ok(())
    }),
    ("half", |sim| {
        sim.at_rest(&[])?.source::<Gas, half>([]);
        Ok(())
    }),
    ("stiff_half", |sim| {
        sim.subcycle::<Gas, stiff_half>(Subcycling::of(1), [])
    }),
    ("wait", |sim| {
        sim.limit::<Gas, wait>("patience", []);
        Ok(())
    }),
    ("is_hot", |sim| {
        sim.criterion::<Gas, is_hot>([]);
        Ok(())
    }),
    ("heat_down", |sim| {
        sim.flux::<Gas, heat_down>([]);
        Ok(())
    }),
    ("energy_of", |sim| {
        sim.column::<Gas, energy_of>("own_energy", Reduce::Integral, []);
        Ok(())
    }),
    ("energy_beside", |sim| {
        sim.register_field::<Trace>(FieldSpec::cells(&["trace"]))?;
        sim.source::<(Trace, Gas), energy_beside>([]);
        Ok(())
    }),
];

/// The fifth number of this gas is a scalar, which no function may take for an energy.
#[test]
fn functions_of_programs_that_take_an_energy_are_refused() {
    for law in [&ISOTHERMAL[..], &POLYTROPIC] {
        let word = law[0].trim_start_matches("hydro.eos=");
        let advice = format!("{word:?} has no energy");
        for (door, (function, build)) in DOORS.iter().enumerate() {
            let refused = with_program(|_| Ok(()), *build, law).map(|_| ());
            let why = refused.expect_err(function).to_string();
            let named = why.contains(&format!("`{function}`"));
            assert!(named && why.contains(&advice), "door {door}: {why}");
        }
        let mirrored = [law, &["domain.boundary=mirror"]].concat();
        let declare: Build = |sim| sim.register_boundary::<Gas, mirror>("mirror", []);
        let refused = with_program(declare, |_| Ok(()), &mirrored).map(|_| ());
        let why = refused.expect_err("mirror").to_string();
        assert!(why.contains("`mirror`") && why.contains(&advice), "{why}");
    }
}

/// Functions of density and momentum, and functions that only read with an energy of 0.
#[test]
fn functions_of_programs_without_energy_are_accepted() {
    let declare: Build = |sim| {
        let frame = GasFrame::Grid;
        sim.derived::<energy_of>("own_energy", "1", frame, &[], &[])
    };
    let build: Build = |sim| {
        sim.source::<Gas, slow>([]);
        let mut read = sim.with_scalars(&[])?;
        read.column::<Gas, energy_of>("least_energy", Reduce::Smallest, []);
        let mut read = sim.at_rest(&[])?;
        read.column::<Gas, energy_of>("largest_energy", Reduce::Largest, []);
        Ok(())
    };
    let derived = "diagnostics=[{name=\"derived\", formula=\"own_energy\", reduction=\"max\"}]";
    let settings = [&ISOTHERMAL[..], &[derived]].concat();
    let run = with_program(declare, build, &settings);
    let mut run = run.unwrap_or_else(|e| panic!("{e}"));
    run.steps(2);
    let found = run.columns(["least_energy", "largest_energy", "derived"]);
    assert_eq!(found, [0.0; 3]);
    // the dye is that of gas that is only slowed down
    run.state().each_leaf_cell(|_, x, _, u| {
        let fraction = u[4] / u[0];
        assert!(
            (0.25 - 1e-12..=1.0 + 1e-12).contains(&fraction),
            "{x:?}: {u:?}"
        );
    });
}
