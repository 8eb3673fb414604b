//! Cooling, chemistry and floors in an expanding universe: one-zone solutions, equal bits everywhere, restarts, and refusals.

use super::cosmology::{SETTINGS, require_equal_bits};
use super::device_runs::places;
use nestar::Simulation;
use nestar::engine::comm::{Ranks, SingleRank};
use nestar_tests::decks::deck;
use nestar_tests::runs::{digests, run_into};
use nestar_tests::{Scratch, Stepper};

/// Boltzmann's constant, erg/K, and the mass of a hydrogen atom, g.
const BOLTZMANN: f64 = 1.380_649e-16;
const HYDROGEN: f64 = 1.673_532_84e-24;
/// Hubble constant of the preset `eds`, 50 km/s/Mpc, in 1/s.
const HUBBLE: f64 = 5e6 / 3.085_677_581_491_367e24;

/// Integrates `dy/dln(a) = rate(a, y)` by the method of Runge and Kutta.
fn one_zone(first: f64, [from, to]: [f64; 2], rate: impl Fn(f64, f64) -> f64) -> f64 {
    let steps = 20_000;
    let (mut y, h) = (first, (to / from).ln() / f64::from(steps));
    for n in 0..steps {
        let a = |part: f64| from * ((f64::from(n) + part) * h).exp();
        let k1 = rate(a(0.0), y);
        let k2 = rate(a(0.5), y + 0.5 * h * k1);
        let k3 = rate(a(0.5), y + 0.5 * h * k2);
        let k4 = rate(a(1.0), y + h * k3);
        y += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
    }
    y
}

/// Expansion rate of an Einstein-de Sitter universe, 1/s.
fn hubble(a: f64) -> f64 {
    HUBBLE * a.powf(-1.5)
}

/// Uniform gas so thin that nothing recombines, with free electrons left over from recombination.
const RESIDUE: &str = r#"
scenario = "formula"
[cosmology]
preset         = "eds"
start_redshift = 99
end_redshift   = 5
[domain]
cells      = [8, 8, 8]
right_edge = ["64 Mpc/h", "64 Mpc/h", "64 Mpc/h"]
[initial]
density       = "1e-6"
temperature_k = "200"
[initial.scalars]
HI  = "0.76*(1 - 1e-3)"
HII = "0.76*1e-3"
HeI = "0.24"
[hydro]
dual_energy = true
[gravity]
[chemistry]
species   = 6
initial   = "given"
floor_k   = 0.001
tolerance = 1e-5
"#;

/// The microwave background heats electrons (rate of Cen 1992), and the gas cools by the expansion.
#[test]
fn thin_gas_follows_compton_heating_and_expansion() {
    let mut stepper = Stepper::new(RESIDUE, &[]);
    let [found] = stepper.finish().columns(["temperature_k_least"]);
    let (electrons, helium) = (1e-3, 0.24 / (4.0 * 0.76));
    let exact = one_zone(200.0, [0.01, 1.0 / 6.0], |a, t| {
        let power = 5.65e-36 * a.powi(-4) * electrons * (2.725 / a - t);
        let capacity = 1.5 * BOLTZMANN * (1.0 + helium + electrons);
        -2.0 * t + power / capacity / hubble(a)
    });
    let adiabatic = 200.0 * (0.06_f64).powi(2);
    println!("Compton: {found} K, exact {exact} K, without radiation {adiabatic} K");
    assert!(exact > 1.5 * adiabatic);
    assert!((found / exact - 1.0).abs() < 1e-3, "{found} {exact}");
}

/// Radiation that changes with redshift ionises thin gas: each atom survives with the exponential of the rate over the proper time.
#[test]
fn a_background_that_changes_ionises_as_its_integral() {
    let table = "chemistry.radiation={ redshift = [2, 5], HI = [1e-17, 4e-17] }";
    let neutral = [
        table,
        "initial.scalars={ HI = \"0.76\", HeI = \"0.24\" }",
        "cosmology.start_redshift=5",
        "cosmology.end_redshift=2",
    ];
    let mut stepper = Stepper::new(RESIDUE, &neutral);
    let (mut least, mut most) = (f64::MAX, 0.0_f64);
    let state = stepper.finish().state();
    state.each_leaf_cell(|_, _, _, u| {
        let share = u[6] / u[0] / 0.76;
        least = least.min(share);
        most = most.max(share);
    });
    let exact = one_zone(0.0, [1.0 / 6.0, 1.0 / 3.0], |a, _| {
        let power = (4.0_f64).ln() / (2.0_f64).ln();
        -1e-17 * (1.0 / (3.0 * a)).powf(power) / hubble(a)
    })
    .exp();
    println!("neutral share {least}, exact {exact}");
    assert!(exact > 0.1 && exact < 0.9);
    assert_eq!(least, most);
    assert!((least / exact - 1.0).abs() < 1e-3, "{least} {exact}");
}

/// Dense gas that cools by a power law.
const HALO_GAS: &str = r#"
scenario = "formula"
[cosmology]
preset         = "eds"
start_redshift = 9
end_redshift   = 4
[domain]
cells      = [8, 8, 8]
right_edge = ["64 Mpc/h", "64 Mpc/h", "64 Mpc/h"]
[initial]
density       = "200"
temperature_k = "1e6"
[hydro]
mean_molecular_weight = 0.6
dual_energy           = true
[gravity]
[cooling]
hydrogen_fraction = 0.76
table             = { temperature_k = [1e6], lambda = [3e-25], exponent = [1.0] }
"#;

/// Hydrogen nuclei per cm^3 at 200 times the mean density in an Einstein-de Sitter universe.
fn nuclei(a: f64) -> f64 {
    let critical = 3.0 * HUBBLE * HUBBLE / (8.0 * std::f64::consts::PI * 6.674_30e-8);
    0.76 * 200.0 * critical / HYDROGEN * a.powi(-3)
}

#[test]
fn dense_gas_cools_by_radiation_and_expansion() {
    let exact = one_zone(1e6, [0.1, 0.2], |a, t| {
        let lambda = 3e-25 * (t / 1e6);
        let radiated = 2.0 / 3.0 * 0.6 * 0.76 * nuclei(a) * lambda / BOLTZMANN;
        -2.0 * t - radiated / hubble(a)
    });
    for split in ["cooling.split=false", "cooling.split=true"] {
        let mut stepper = Stepper::new(HALO_GAS, &[split]);
        let [found, time] = stepper
            .finish()
            .columns(["temperature_k_least", "cooling_time_least"]);
        println!("{split}: {found} K, exact {exact} K");
        assert!(exact < 1.5e5, "radiation counts");
        assert!((found / exact - 1.0).abs() < 1e-3, "{found} {exact}");
        // the cooling time in code units, which are 1/H0 times the square of the scale factor
        let lambda = 3e-25 * (exact / 1e6);
        let rate = 2.0 / 3.0 * 0.6 * 0.76 * nuclei(0.2) * lambda / BOLTZMANN;
        let wanted = exact / rate * HUBBLE / 0.04;
        assert!((time / wanted - 1.0).abs() < 2e-3, "{time} {wanted}");
    }
}

/// A temperature floor is physical: gas that cools by the expansion stays at it.
#[test]
fn a_temperature_floor_holds_through_the_expansion() {
    let floors = [
        "floors={ temperature_k = 1e3 }",
        "initial.temperature_k=\"2e3\"",
        "cosmology.end_redshift=1",
    ];
    let bare = HALO_GAS.split("[cooling]").next().expect("a deck");
    let species = "[chemistry]\nspecies = 6\n";
    for text in [bare.to_string(), format!("{bare}{species}")] {
        let mut stepper = Stepper::new(&text, &floors);
        let [found] = stepper.finish().columns(["temperature_k_least"]);
        assert!((found / 1e3 - 1.0).abs() < 1e-9, "{found} K\n{text}");
    }
}

/// Gas with reactions, radiation and floors on two levels; criteria, formulas and outputs use the temperature and the cooling time.
const REACTING: &str = r#"
scenario = "formula"
[cosmology]
preset         = "eds"
start_redshift = 6
end_redshift   = 0
[domain]
cells      = [16, 16, 16]
right_edge = ["2 Mpc/h", "2 Mpc/h", "2 Mpc/h"]
[initial]
density       = "1 + 0.9*cos(pi*x)*cos(pi*y)*cos(pi*z)"
velocity_x    = "sin(pi*y)"
temperature_k = "2e4"
[mesh]
max_level = 1
refine = [
  { criterion = "formula", when = "density > 1.5 or cooling_time < 1e-4" },
  { criterion = "threshold", field = "temperature_k", threshold = 3e4 },
]
[hydro]
dual_energy = true
[gravity]
[chemistry]
species      = 6
length_cells = 0.1
courant      = 10
radiation    = { redshift = [0, 2, 7], HI = [1e-13, 1e-12, 1e-14], heat_HI = [4e-13, 4e-12, 5e-14], HeII = [1e-15, 1e-14, 0] }
[floors]
temperature_k = 100
jeans_cells   = 2
[output]
derived = ["temperature_k", "number_density_cm3", "cooling_time"]
"#;

/// Gas that cools by a table, with the same demands.
const RADIATING: &str = r#"
scenario = "formula"
[cosmology]
preset         = "eds"
start_redshift = 6
end_redshift   = 0
[domain]
cells      = [16, 16, 16]
right_edge = ["2 Mpc/h", "2 Mpc/h", "2 Mpc/h"]
[initial]
density       = "100*(1 + 0.9*cos(pi*x)*cos(pi*y)*cos(pi*z))"
temperature_k = "1e6"
[mesh]
max_level = 1
refine = [{ criterion = "formula", when = "cooling_time < 3e-3" }]
[hydro]
dual_energy = true
[gravity]
[cooling]
table        = { temperature_k = [1e4, 1e5, 1e6], lambda = [1e-23, 1e-22, 3e-23] }
heating      = "1e-27*exp(-temperature_k/1e4)"
length_cells = 0.1
courant      = 10
floor_k      = 1e4
[output]
derived = ["cooling_time"]
"#;

#[test]
fn devices_and_ranks_do_not_matter() {
    require_equal_bits(REACTING, "run.precision=double", &places(&[2], &[1]));
    require_equal_bits(RADIATING, "run.precision=single", &places(&[], &[2]));
}

/// A run that is resumed has the snapshots of a run without a stop.
#[test]
fn a_resumed_run_cools_as_an_uninterrupted_one() {
    for text in [REACTING, RADIATING] {
        let [whole, parts] = [Scratch::new(), Scratch::new()];
        run_into(&whole.run(), false, text, &SETTINGS).expect("a run");
        let first = [&SETTINGS[..], &["time.max_steps=1"]].concat();
        run_into(&parts.run(), false, text, &first).expect("a first part");
        run_into(&parts.run(), true, text, &SETTINGS).expect("a second part");
        let [whole, parts] = [whole, parts].map(|run| digests(&run.run()));
        assert_eq!(whole.last(), parts.last());
    }
}

/// The redshift follows from the clock, and a table of radiation must cover the run.
#[test]
fn radiation_that_does_not_fit_is_refused() {
    for (setting, words) in [
        (
            "chemistry.redshift=3",
            ["chemistry.redshift", "follows from the clock"],
        ),
        (
            "chemistry.radiation={ redshift = [0, 5], HI = [1e-13, 1e-13] }",
            ["chemistry.radiation", "from redshift 6 to 0"],
        ),
        (
            "chemistry.radiation={ redshift = [1, 7], HI = [1e-13, 1e-13] }",
            ["chemistry.radiation", "covers redshifts 1 to 7"],
        ),
    ] {
        let built = Simulation::with_ranks(deck(REACTING, &[setting]), Ranks::new(SingleRank));
        let why = match built.and_then(Stepper::begin) {
            Ok(_) => panic!("{setting} is accepted"),
            Err(why) => why.to_string(),
        };
        for word in words {
            assert!(why.contains(word), "{setting}: {why}");
        }
    }
}
