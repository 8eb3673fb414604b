//! Physical units: temperatures in kelvin in states, criteria and diagnostics, restarts, and Newton's constant.

use super::device_runs::agree;
use nestar::engine::mesh::CELLS;
use nestar::entities::Topology;
use nestar::prelude::*;
use nestar::systems::fields::GravitationalConstant;
use nestar::systems::units::{BOLTZMANN, HYDROGEN_MASS, Units};
use nestar_tests::decks::{BLAST, build, deck};
use nestar_tests::runs::run_into;
use nestar_tests::{Scratch, State, Stepper};

/// Gas of 100 K at equal pressure; a quarter of it, x below 250 pc, is colder.
const COLD: &str = r#"
scenario = "formula"
[units]
length = "pc"
velocity = "km/s"
density = "mH/cm3"
[initial]
number_density_cm3 = "2/if(x < 250*pc, 0.5, 1)"
temperature_k = "100*if(x < 250*pc, 0.5, 1)"
velocity_x = "20*km/s"
[domain]
cells = [16, 8, 8]
right_edge = ["kpc", "kpc/2", "500*pc"]
[time]
end = "10*Myr"
[mesh]
max_level = 1
flag_buffer = 0
refine = [{ criterion = "threshold", field = "temperature_k", threshold = 75, below = true }]
[hydro]
mean_molecular_weight = 1.25
"#;

/// Columns of the deck for `COLD`; the last has no unit.
const COLUMNS: &str = r#"
[[diagnostics]]
name = "cold_mass"
formula = "density"
reduction = "integral"
where = "temperature_k < 75"
[[diagnostics]]
name = "fastest"
formula = "sqrt(velocity_x^2 + velocity_y^2)"
reduction = "max"
[[diagnostics]]
name = "mean_pressure"
formula = "pressure"
reduction = "mean"
[[diagnostics]]
name = "odd"
formula = "pressure + exp(x)"
reduction = "mean"
"#;

fn refusal(text: &str, settings: &[&str]) -> String {
    let made = nestar::Simulation::new(deck(text, settings));
    made.err().expect("refused").to_string()
}

#[test]
fn temperatures_and_number_densities_set_and_refine_the_initial_state() {
    let mut stepper = Stepper::new(COLD, &[]);
    let units = Units::find(stepper.0.engine()).expect("units");
    let (density, pressure) = first(stepper.0.engine());
    // n = 4 particles of 1.25 hydrogen masses; p = n k T
    assert!((density - 5.0).abs() < 1e-12, "{density}");
    let in_cgs = pressure * units.density() * units.velocity() * units.velocity();
    assert!((in_cgs / (4.0 * BOLTZMANN * 50.0) - 1.0).abs() < 1e-12);
    assert!((units.density() / HYDROGEN_MASS - 1.0).abs() < 1e-12);
    // 4 of 16 cells along x are cold, in one of two patches
    let refined = stepper.0.engine().world.resource::<Topology>().count(1);
    assert_eq!(refined, 8);
}

/// Density and pressure of the first cell of the root level.
fn first(sim: &Engine) -> (f64, f64) {
    let state = State::of(sim);
    let patch = state.levels[0].values().next().expect("a patch");
    let at = |c: usize| patch.values[c * CELLS];
    let kinetic = 0.5 * (at(1) * at(1)) / at(0);
    (at(0), (5.0 / 3.0 - 1.0) * (at(4) - kinetic))
}

#[test]
fn a_temperature_criterion_is_identical_on_devices() {
    agree(COLD, &["time.max_steps=4"]);
    let formula = "mesh.refine=[{criterion='formula',when='temperature_k*number_density_cm3 > 150 and x < kpc/3'}]";
    agree(COLD, &["time.max_steps=3", "run.precision=single", formula]);
}

#[test]
fn temperatures_without_units_are_refused_with_a_remedy() {
    let text = BLAST;
    let criterion = "mesh.refine=[{criterion='threshold',field='temperature_k',threshold=1}]";
    for (setting, place) in [
        (criterion, "mesh.refine[0].field"),
        (
            "initial={density='1',temperature_k='100'}",
            "initial.temperature_k",
        ),
        (
            "initial={number_density_cm3='1',pressure='1'}",
            "initial.number_density_cm3",
        ),
        (
            "hydro.mean_molecular_weight=0.6",
            "hydro.mean_molecular_weight",
        ),
    ] {
        let why = refusal(text, &[setting]);
        assert!(why.contains(place) && why.contains("[units]"), "{why}");
    }
    let why = refusal(COLD, &["initial.pressure='1'"]);
    assert!(why.contains("not both"), "{why}");
    let why = refusal(text, &["initial={pressure='1'}"]);
    assert!(why.contains("missing key `density`"), "{why}");
}

#[test]
fn a_restart_accepts_equal_units_in_another_notation() {
    let scratch = Scratch::new();
    let place = scratch.path().join("run");
    let ends = ["output.final=true", "time.max_steps=2"];
    let text = format!("{COLD}\n{COLUMNS}");
    run_into(&place, false, &text, &ends).unwrap_or_else(|e| panic!("{e}"));
    let resolved = std::fs::read_to_string(place.join("run.toml")).expect("a deck");
    assert!(
        resolved.contains("length_cgs = 3.0856775814913"),
        "{resolved}"
    );
    let more = ["output.final=true", "time.max_steps=4"];
    let other = text.replace("\"pc\"", "\"kpc\"");
    let why = run_into(&place, true, &other, &more)
        .expect_err("other units")
        .to_string();
    assert!(why.contains("units.length_cgs"), "{why}");
    // the numbers, and another name
    let numbers = resolved.replace("name = \"pc, km/s, mH/cm3\"", "name = \"of a disc\"");
    assert!(numbers.contains("of a disc"), "{resolved}");
    // as in the directory of an older program
    let units = place.join("diagnostics.units.csv");
    std::fs::remove_file(&units).expect("a file with units");
    run_into(&place, true, &numbers, &more).unwrap_or_else(|e| panic!("{e}"));
    let diagnostics = std::fs::read_to_string(place.join("diagnostics.csv")).expect("diagnostics");
    let mut lines = diagnostics.lines();
    let names: Vec<&str> = lines.next().unwrap_or("").split(',').collect();
    let column = names.iter().position(|name| *name == "temperature_k_least");
    let column = column.expect("a column of temperatures");
    let first = lines
        .next()
        .unwrap_or("")
        .split(',')
        .nth(column)
        .unwrap_or("");
    let first: f64 = first.parse().expect("a number");
    assert!((first / 50.0 - 1.0).abs() < 1e-9, "{first}");
    let rows = diagnostics.lines().count();
    assert_eq!(rows, 6, "a header and 5 states");
    let units = std::fs::read_to_string(units).expect("a file with units");
    columns_have_units(&diagnostics, &units);
}

/// All columns of diagnostics are listed with their units, and the first mass is that of the deck.
fn columns_have_units(diagnostics: &str, units: &str) {
    let table: Vec<Vec<&str>> = units
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    assert!(table.iter().all(|row| row.len() == 6), "{units}");
    let mut lines = diagnostics.lines().map(|line| line.split(','));
    let names: Vec<&str> = lines.next().expect("a header").collect();
    let first: Vec<&str> = lines.next().expect("a row").collect();
    let listed: Vec<&str> = table[1..].iter().map(|row| row[0]).collect();
    assert_eq!(listed, names);
    let found = |name: &str| {
        let n = names.iter().position(|own| *own == name).expect("a column");
        (&table[n + 1], first[n].parse::<f64>().unwrap_or(f64::NAN))
    };
    for (name, shown, code) in [
        ("time", "Myr", "time"),
        ("total_density", "Msun", "mass"),
        ("drift_density", "1", "1"),
        ("drift_momentum_y", "cm g/s", "length*mass/time"),
        ("total_energy", "erg", "length**2*mass/time**2"),
        ("temperature_k_least", "K", "K"),
        ("seconds_hydro", "s", ""),
        ("cold_mass", "Msun", "mass"),
        ("fastest", "km/s", "length/time"),
        ("mean_pressure", "erg/cm3", "mass/(length*time**2)"),
        ("odd", "", ""),
        ("step", "", ""),
    ] {
        let (row, _) = found(name);
        assert_eq!([row[1], row[3]], [shown, code], "{name}: {units}");
    }
    // 2.5 particles of 1.25 hydrogen masses per cubic centimetre, in 0.25 kpc^3
    let (row, mass) = found("total_density");
    let parsec: f64 = 3.085_677_581_491_367_3e18;
    let expected = 2.5 * 1.25 * HYDROGEN_MASS * 0.25 * (1e3 * parsec).powi(3);
    let number = |text: &str| text.parse::<f64>().expect("a factor");
    assert!((mass * number(row[5]) / expected - 1.0).abs() < 1e-9);
    assert!((mass * number(row[2]) / (expected / 1.98841e33) - 1.0).abs() < 1e-5);
}

#[test]
fn newtons_constant_follows_from_the_units() {
    let newton = |text: &str, settings: &[&str]| {
        let mut sim = build(text, settings);
        sim.engine().world.resource::<GravitationalConstant>().0
    };
    // 4.30091e-3 pc (km/s)^2 / Msun, and a hydrogen mass in a cubic centimetre is 0.024727 Msun/pc^3
    let found = newton(COLD, &["gravity={}"]);
    assert!(
        (found / (4.30091e-3 * 0.024727) - 1.0).abs() < 1e-3,
        "{found}"
    );
    let other = ["units.density=Msun/pc3", "gravity.constant=2*G"];
    assert!((newton(COLD, &other) / 8.60182e-3 - 1.0).abs() < 1e-5);
    assert_eq!(newton(BLAST, &["gravity={}"]), 1.0);
    let jeans = "mesh.refine=[{criterion='jeans',threshold=4,gravity='G'}]";
    let mut sim = build(COLD, &[jeans]);
    assert!(sim.engine().deck.resolved().contains("gravity = 0.000106"));
}

#[device]
fn molecular<R: Real>(u: Conserved<R>, kelvin: R) -> R {
    kelvin + 0.0 * u.density
}

/// Knows the temperature better.
#[derive(Clone)]
struct Molecules(f64);

impl Plugin for Molecules {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.derived::<molecular>("temperature_k", "K", GasFrame::Grid, &[], &[self.0])
    }

    fn build(&self, _: &mut Engine) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_plugin_may_define_the_temperature() {
    let refined = |kelvin: f64| {
        let app = App::default().always(Molecules(kelvin));
        let mut stepper = Stepper::of(app.simulation(deck(COLD, &[])).expect("a run"));
        stepper.0.engine().world.resource::<Topology>().count(1)
    };
    assert_eq!(refined(80.0), 0);
    assert_eq!(refined(70.0), 16);
}
