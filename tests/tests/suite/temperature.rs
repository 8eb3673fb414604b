//! The temperature in kelvin of initial states, inflow, columns, derived fields, criteria and floors, with a mean molecular weight that
//! depends on temperature, density or species.

use super::cooling::write_array;
use nestar::App;
use nestar::engine::data::DerivedFields;
use nestar::testing::same_bits;
use nestar_tests::{Scratch, Stepper};
use std::path::Path;

/// Gas from 3000 K to 3e6 K.
const GAS: &str = r#"
scenario = "formula"
[units]
length  = "pc"
time    = "Myr"
density = "mH/cm3"
[initial]
density       = "1"
temperature_k = "3e3*1000^x"
[domain]
cells      = [32, 8, 8]
left_edge  = [0.0, 0.0, 0.0]
right_edge = [1.0, 0.25, 0.25]
[time]
end = 1e-6
[hydro]
gamma = "5/3"
[cooling]
table             = "table.zarr"
hydrogen_fraction = 1.0
floor_k           = 100.0
"#;

/// Temperatures and mean molecular weights of the table.
const WEIGHTS: [[f64; 2]; 7] = [
    [1e1, 1.22],
    [8e3, 1.22],
    [1.2e4, 1.0],
    [1.5e4, 0.7],
    [2e4, 0.59],
    [1e6, 0.58],
    [1e9, 0.58],
];

/// Returns the mean molecular weight at a temperature, a power law between those of the table.
fn weight(t: f64) -> f64 {
    let k = WEIGHTS
        .iter()
        .rposition(|[at, _]| *at <= t)
        .expect("in the table");
    let [[low, a], [high, b]] = [WEIGHTS[k], WEIGHTS[(k + 1).min(WEIGHTS.len() - 1)]];
    match low < high {
        true => a * (b / a).powf((t / low).ln() / (high / low).ln()),
        false => a,
    }
}

/// Writes a table of slow cooling, whose mean molecular weights are larger by a factor at 1000 nuclei per cm^3.
fn write_table(group: &Path, factor: f64) -> String {
    std::fs::create_dir_all(group).expect("a folder");
    std::fs::write(group.join(".zgroup"), r#"{"zarr_format":2}"#).expect("a header");
    let logs = WEIGHTS.map(|[t, _]| t.log10());
    let both = [1.0, factor]
        .map(|factor| WEIGHTS.map(|[_, mu]| factor * mu))
        .concat();
    write_array(group, "log_density", &[2], &[-3.0, 3.0]);
    write_array(group, "log_temperature", &[7], &logs);
    write_array(group, "cooling_primordial", &[2, 7], &[1e-30; 14]);
    write_array(group, "mean_molecular_weight", &[2, 7], &both);
    format!("cooling.table={}", group.display())
}

/// Returns the largest relative error of pressure and of the derived field `temperature_k` of all cells, by the temperatures of `wanted`
/// and their mean molecular weights.
fn worst(run: &mut Stepper, wanted: fn(f64) -> f64, weight: fn(f64) -> f64) -> [f64; 2] {
    let units = nestar::systems::units::Units::find(run.0.engine()).expect("units");
    let derived = {
        let fields = run.0.engine().world.resource::<DerivedFields>();
        let own = fields.all().find(|(_, own)| own.name == "temperature_k");
        own.expect("a field").1.number.clone()
    };
    let mut worst = [0.0f64; 2];
    run.state().each_leaf_cell(|_, x, _, u| {
        let t = wanted(x[0]);
        let kinetic = 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
        let found = (u[4] - kinetic) / 1.5 / u[0] * units.temperature() * weight(t);
        worst[0] = worst[0].max((found / t - 1.0).abs());
        worst[1] = worst[1].max((derived.of_state(u) / t - 1.0).abs());
    });
    worst
}

/// Returns the temperature of the initial state.
fn given(x: f64) -> f64 {
    3e3 * 1000f64.powf(x)
}

#[test]
fn initial_states_columns_and_pictures_have_the_temperature_of_the_table() {
    let scratch = Scratch::new();
    let table = write_table(&scratch.path().join("table.zarr"), 1.0);
    for dual in ["hydro.dual_energy=false", "hydro.dual_energy=true"] {
        let moving = "initial.velocity_x=50";
        let mut run = Stepper::new(GAS, &[&table, dual, moving, "run.precision=double"]);
        let errors = worst(&mut run, given, weight);
        assert!(errors.iter().all(|error| *error < 1e-10), "{errors:?}");
        let [least, largest] = run.columns(["temperature_k_least", "temperature_k_largest"]);
        for (found, x) in [(least, 1.0 / 64.0), (largest, 63.0 / 64.0)] {
            let error = found / given(x) - 1.0;
            assert!(error.abs() < 1e-10, "{dual} {x}: {error:e}");
        }
    }
}

#[test]
fn a_weight_that_depends_on_density_gives_one_temperature() {
    let scratch = Scratch::new();
    let table = write_table(&scratch.path().join("table.zarr"), 1.5);
    let at = |density: &str, tolerance: f64, floor: f64| {
        let [density, floored] = [
            format!("initial.density={density}"),
            format!("cooling.floor_k={floor}"),
        ];
        let mut run = Stepper::new(GAS, &[&table, &density, &floored, "run.precision=double"]);
        // between densities the weight is not that of the function
        let [_, derived] = worst(&mut run, given, weight);
        assert!(derived < tolerance, "{density}: {derived:e}");
        run.steps(1);
        let [least] = run.columns(["temperature_k_least"]);
        assert!(least > floor * (1.0 - 1e-9), "{density}: {least}");
        assert!(
            floor < 3e3 || least < floor * (1.0 + 1e-9),
            "{density}: {least}"
        );
    };
    at("1", 5e-3, 100.0);
    at("0.9", 5e-3, 1.4e4);
}

#[test]
fn floors_and_criteria_have_the_temperature_of_the_table() {
    let scratch = Scratch::new();
    let table = write_table(&scratch.path().join("table.zarr"), 1.0);
    for floor in [9e3, 1.4e4, 3e5] {
        let floored = format!("cooling.floor_k={floor}");
        let mut run = Stepper::new(GAS, &[&table, &floored, "run.precision=double"]);
        run.steps(1);
        let [least] = run.columns(["temperature_k_least"]);
        assert!((least / floor - 1.0).abs() < 1e-9, "{least} for {floor}");
    }
    for limit in [1.1e4, 1.8e4, 1e5] {
        let refine = format!(
            "mesh.refine=[{{criterion='threshold', field='temperature_k', threshold={limit}, below=true}}]"
        );
        let settings = [&*table, "mesh.max_level=1", "mesh.flag_buffer=0", &refine];
        let mut run = Stepper::new(GAS, &settings);
        // patches of 8 cells are refined whole
        let patch = |x: f64| (x * 4.0).floor() / 4.0;
        run.state().each_leaf_cell(|level, x, _, _| {
            let refined = given(patch(x[0]) + 1.0 / 64.0) < limit;
            assert_eq!(level == 1, refined, "{limit}: {x:?}");
        });
    }
}

/// Gas without a floor of cooling; the floor of the gas raises its cold part to 1.4e4 K at the double density.
fn raised(more: &str) -> String {
    let text = GAS.replace("floor_k           = 100.0", "");
    let (gas, cooling) = text.split_once("[cooling]").expect("a table");
    let cooling = format!("[cooling]{cooling}");
    let last = if more.is_empty() { &*cooling } else { more };
    format!("{gas}{last}\n[floors]\ntemperature_k = 1.4e4\ndensity = 2.0\n")
}

#[test]
fn floors_of_the_gas_have_its_temperature() {
    let scratch = Scratch::new();
    let table = write_table(&scratch.path().join("table.zarr"), 1.0);
    let species = raised("[chemistry]\nspecies = 6\n");
    let constant =
        raised("[hydro]\nmean_molecular_weight = 0.8\n").replace("[hydro]\ngamma = \"5/3\"\n", "");
    let tabulated = raised("");
    for (text, table) in [
        (&tabulated, Some(&*table)),
        (&species, None),
        (&constant, None),
    ] {
        let short = ["run.precision=double", "time.max_step=5e-7"];
        let settings: Vec<&str> = short.into_iter().chain(table).collect();
        let mut run = Stepper::new(text, &settings);
        run.steps(1);
        let [least, gain, mass] = run.columns([
            "temperature_k_least",
            "floors_temperature_energy",
            "floors_density_mass",
        ]);
        let error = least / 1.4e4 - 1.0;
        assert!(error.abs() < 1e-6, "{text}: {error:e}");
        assert!(
            gain > 0.0 && (mass / 0.0625 - 1.0).abs() < 1e-9,
            "{gain} {mass}"
        );
        let both = [&settings[..], &["hydro.dual_energy=true"]].concat();
        same_bits(&App::default(), text, &both, 2).unwrap_or_else(|e| panic!("{e}"));
    }
    for (text, key) in [
        (&tabulated, "cooling.floor_k"),
        (&species, "chemistry.floor_k"),
    ] {
        let own = format!("{key}=50");
        let settings = [&*own, &*table];
        let settings = if key.starts_with("cooling") {
            &settings[..]
        } else {
            &settings[..1]
        };
        let sim = App::default().simulation(nestar_tests::decks::deck(text, settings));
        let why = sim.map(|_| ()).expect_err("refused").to_string();
        assert!(
            why.contains(key) && why.contains("floors.temperature_k"),
            "{why}"
        );
    }
}

/// Cooling takes its floor from the table `[floors]`; messages name the key that the deck has.
#[test]
fn messages_about_a_floor_that_cooling_takes_over_name_the_key_of_the_deck() {
    let scratch = Scratch::new();
    let table = write_table(&scratch.path().join("table.zarr"), 1.0);
    let refused = |text: &str, key: &str, floor: &str| {
        let set = format!("{key}={floor}");
        let deck = nestar_tests::decks::deck(text, &[&*table, &set]);
        let sim = App::default().simulation(deck);
        let why = sim.map(|_| ()).expect_err("refused").to_string();
        let named = format!("`{key}` is {floor} K");
        let place = format!("--set {set}: ");
        assert!(why.contains(&named) && why.contains(&place), "{why}");
        why
    };
    let of_gas = "floors.temperature_k";
    for floor in ["1", "2000000000"] {
        let why = refused(&raised(""), of_gas, floor);
        assert!(!why.contains("cooling.floor_k"), "{why}");
        refused(GAS, "cooling.floor_k", floor);
    }
}

/// Inflow in the state of the gas at its upper end.
const INFLOW: [&str; 6] = [
    "initial.temperature_k=1.3e4",
    "initial.velocity_x=300",
    "domain.boundary={x=['inflow','outflow'],y='periodic',z='periodic'}",
    "inflow.x_lower={density='1', velocity_x='300', temperature_k='1.3e4'}",
    "time.end=1e9",
    "run.precision=double",
];

#[test]
fn inflow_has_the_temperature_of_the_table_on_every_device() {
    let scratch = Scratch::new();
    let table = write_table(&scratch.path().join("table.zarr"), 1.0);
    let mut run = Stepper::new(GAS, &[&INFLOW[..], &[&table]].concat());
    for _ in 0..10 {
        run.steps(1);
    }
    let errors = worst(&mut run, |_| 1.3e4, weight);
    assert!(errors.iter().all(|error| *error < 1e-7), "{errors:?}");
    let uneven = [
        "inflow.x_lower.temperature_k='1e4*(1 + y + t)'",
        "initial.temperature_k='1e4*(1 + x)'",
        "mesh.max_level=1",
        "mesh.refine=[{criterion='threshold', field='temperature_k', threshold=1.3e4}]",
    ];
    let settings = [&INFLOW[..], &uneven, &[&table]].concat();
    same_bits(&App::default(), GAS, &settings, 2).unwrap_or_else(|e| panic!("{e}"));
}

/// The same gas with species in place of a table.
fn with_species(more: &str) -> String {
    let (gas, _) = GAS.split_once("[cooling]").expect("a table");
    format!("{gas}\n[chemistry]\nspecies = 12\nfloor_k = 10.0\n{more}")
}

#[test]
fn initial_states_and_inflow_with_species_have_their_temperature() {
    let equilibrium = with_species("");
    let given_species = with_species(
        "initial = \"given\"\n[initial.scalars]\nHI = \"0.3*x\"\nHII = \"0.76 - 0.3*x - 0.01\"\nH2I = \"0.01\"\nHeI = \"0.1\"\nHeII = \"0.1\"\nHeIII = \"0.04\"\nDI = \"0\"",
    );
    for text in [&equilibrium, &given_species] {
        let mut run = Stepper::new(text, &["run.precision=double", "initial.velocity_x=10"]);
        let [_, derived] = worst(&mut run, given, |_| 1.0);
        assert!(derived < 1e-9, "{derived:e}");
        let [least] = run.columns(["temperature_k_least"]);
        let error = least / given(1.0 / 64.0) - 1.0;
        assert!(error.abs() < 1e-9, "{error:e}");
    }
    // so thin that it hardly cools or recombines
    let scalars = "scalars={HI='0.5', HII='0.26', HeI='0.2', HeII='0.04'}";
    let inflow = format!(
        "inflow.x_lower={{density='1e-6', velocity_x='300', temperature_k='1e3', {scalars}}}"
    );
    let hot = [
        "chemistry.species=6",
        "chemistry.initial=given",
        "initial.density=1e-6",
        "initial.temperature_k=1e3",
        "initial.velocity_x=300",
        &format!("initial.{scalars}"),
        "domain.boundary={x=['inflow','outflow'],y='periodic',z='periodic'}",
        &inflow,
        "time.end=1",
        "run.precision=double",
    ];
    let mut run = Stepper::new(&equilibrium, &hot);
    run.steps(2);
    let [least, largest] = run.columns(["temperature_k_least", "temperature_k_largest"]);
    assert!((largest / least - 1.0).abs() < 1e-6, "{least} to {largest}");
}

#[test]
fn the_floor_of_metal_cooling_has_the_temperature_of_the_species() {
    let scratch = Scratch::new();
    let group = scratch.path().join("table.zarr");
    let table = write_table(&group, 1.0);
    write_array(&group, "cooling_metal", &[2, 7], &[1e-31; 14]);
    let text = with_species("[cooling]\ntable = 'table.zarr'\nfloor_k = 2e3");
    for (temperature, floor) in [("1e3", 2e3), ("1e5", 2e5)] {
        let [temperature, floored] = [
            format!("initial.temperature_k={temperature}"),
            format!("cooling.floor_k={floor}"),
        ];
        let settings = [
            &*table,
            &temperature,
            &floored,
            "time.max_step=1e-9",
            "run.precision=double",
        ];
        let mut run = Stepper::new(&text, &settings);
        run.steps(1);
        let [least] = run.columns(["temperature_k_least"]);
        assert!((least / floor - 1.0).abs() < 1e-5, "{least} for {floor}");
    }
}
