//! Dual energy with a magnetic field: strongly magnetised gas keeps its pressure.

use super::device_runs::{agree, emulation};
use nestar::App;
use nestar_tests::Stepper;
use nestar_tests::decks::deck;
use nestar_tests::norms::totals;
use nestar_tests::ranks::{joined, on_ranks};

/// A blast in a field whose pressure is 500 times that of the gas outside (Gardiner & Stone 2005, with a stronger field), on three levels that
/// follow it.
const BLAST: &str = r#"
scenario = "formula"
[initial]
density    = "1"
pressure   = "if(x*x + y*y < 0.01, 100, 0.1)"
magnetic_x = "10/sqrt(2)"
magnetic_y = "10/sqrt(2)"
scalars    = { dye = "if(x < 0, 1, 0.25)" }
[domain]
cells      = [16, 16, 8]
left_edge  = [-0.5, -0.5, 0.0]
right_edge = [0.5, 0.5, 0.5]
[time]
end = 0.004
[mesh]
max_level = 2
refine = [{ criterion = "gradient", field = "pressure", threshold = 0.4 }]
[hydro]
scalars     = ["dye"]
dual_energy = true
[mhd]
method = "ct"
"#;

/// Settings of both treatments of the divergence, and the numbers of components of their gas before the internal energy.
const METHODS: [(&str, usize); 2] = [("mhd.method=ct", 8), ("mhd.method=glm", 9)];

/// Without dual energy the first step fails. With it the run ends without a repeated step, all cells keep their pressure, and what the formalism adds to the total energy is small.
#[test]
fn a_blast_at_low_plasma_beta_keeps_its_pressure() {
    for (method, internal) in METHODS {
        let mut stepper = Stepper::new(BLAST, &[method]);
        let before = stepper.0.with(|s| totals(s))[4];
        let state = stepper.finish().state();
        let after = stepper.0.with(|s| totals(s))[4];
        assert!(state.counts()[2] > 64, "{method}: {:?}", state.counts());
        let mut least = f64::INFINITY;
        state.each_leaf_cell(|_, _, _, u| least = least.min(u[internal]));
        let gained = (after - before) / before;
        println!("{method}: least thermal energy {least:e}, energy gained {gained:e}");
        assert!(least > 0.01, "{method}: {least:e}");
        assert!(gained.abs() < 3e-3, "{method}: {gained:e}");
        state
            .physical()
            .unwrap_or_else(|why| panic!("{method}: {why}"));
        assert_eq!(stepper.counters().retried_steps, 0, "{method}");
    }
}

#[test]
fn two_ranks_do_not_matter() {
    for (method, _) in METHODS {
        let settings = [method, "run.precision=single"];
        let alone = Stepper::new(BLAST, &settings).steps(2).state();
        let two = on_ranks(2, BLAST, &settings, |stepper| stepper.steps(2).state());
        assert_eq!(alone.difference(&joined(two)), None, "{method}");
    }
}

/// Sources, floors and gravity change both energies.
const EVERYTHING: [&str; 6] = [
    "time.max_steps=3",
    "initial.velocity_x=0.4",
    "floors={ density = 0.9, pressure = 0.02 }",
    "sources={ acceleration_y = \"0.3*alfven_speed\", heating = \"0.1*density\" }",
    "gravity={ constant = 10 }",
    "output.derived=[\"pressure\", \"plasma_beta\"]",
];

#[test]
fn runs_on_the_device_have_the_bits_of_the_cpu() {
    if !emulation() {
        return;
    }
    for (method, precision) in [
        ("mhd.method=ct", "run.precision=double"),
        ("mhd.method=ct", "run.precision=single"),
        ("mhd.method=glm", "run.precision=single"),
    ] {
        agree(BLAST, &[&EVERYTHING[..], &[method, precision]].concat());
    }
}

/// What does not know both energies of gas with a field is refused with its key.
#[test]
fn what_does_not_fit_is_refused() {
    for (setting, key) in [
        ("viscosity={ kinematic = 0.01 }", "viscosity"),
        ("conduction={ diffusivity = 0.01 }", "conduction"),
        ("hydro.scheme=vl", "hydro.scheme"),
    ] {
        let refused = App::default()
            .simulation(deck(BLAST, &[setting]))
            .and_then(Stepper::begin);
        let error = refused.map(|_| ()).expect_err(setting).to_string();
        assert!(error.contains(key), "{setting}: {error}");
    }
}
