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
        let [share, heat] = stepper.columns(["dual_energy_share", "dual_energy_heat"]);
        println!(
            "{method}: part of the updates {share:e}, heat {:e}",
            heat / before
        );
        assert!(share > 0.0 && share < 0.02, "{method}: {share:e}");
        assert!(heat.abs() < 3e-3 * before, "{method}: {heat:e}");
    }
}

/// On one level nothing else changes the total energy: the account is its growth, also if steps have several stages.
#[test]
fn the_account_of_the_heat_is_the_growth_of_the_total_energy() {
    for settings in [
        &["mhd.method=ct"][..],
        &["mhd.method=glm"],
        &["mhd.method=glm", "hydro.scheme=rk2"],
        &["mhd.method=glm", "hydro.scheme=rk3"],
    ] {
        let settings = [settings, &["mesh.max_level=0", "time.end=0.006"]].concat();
        let mut stepper = Stepper::new(BLAST, &settings);
        let before = stepper.0.with(|s| totals(s))[4];
        stepper.finish();
        let growth = stepper.0.with(|s| totals(s))[4] - before;
        let [heat, updates, all] = stepper.columns([
            "dual_energy_heat",
            "dual_energy_updates",
            "dual_energy_all_updates",
        ]);
        let mean = heat / before;
        println!("{settings:?}: heat {mean:e}, {updates} of {all} updates");
        assert!(updates > 0.0 && mean.abs() > 1e-6, "{settings:?}: {mean:e}");
        assert!(
            (heat - growth).abs() < 1e-12 * before,
            "{settings:?}: {heat:e} {growth:e}"
        );
    }
}

/// Ranks and devices count the same.
#[test]
fn the_account_does_not_depend_on_ranks_and_devices() {
    let account = |ranks: usize, device: &str| {
        let of_rank = |stepper: &mut Stepper| {
            stepper.steps(2);
            stepper.columns(["dual_energy_heat", "dual_energy_updates", "mhd_heat"])
        };
        let settings = [device, "run.precision=single"];
        on_ranks(ranks, BLAST, &settings, of_rank)[0].map(f64::to_bits)
    };
    let alone = account(1, "run.device=cpu");
    assert!(f64::from_bits(alone[1]) > 0.0);
    assert_eq!(account(3, "run.device=cpu"), alone);
    if emulation() {
        assert_eq!(account(1, "run.device=emulated"), alone);
        assert_eq!(account(2, "run.device=emulated"), alone);
    }
}

/// With a field both energies are carried unless the deck says otherwise, or a part of it does not know them.
#[test]
fn both_energies_are_carried_by_default() {
    let plain = BLAST.replace("dual_energy = true\n", "");
    for (settings, components) in [
        (&[][..], 9 + 3),
        (&["hydro.dual_energy=false"], 8 + 3),
        (&["viscosity={ kinematic = 0.01 }"], 8 + 3),
        (&["conduction={ diffusivity = 0.01 }"], 8 + 3),
        (&["mhd.method=glm"], 10),
        (&["mhd.method=glm", "hydro.scheme=rk2"], 9),
    ] {
        let settings = [settings, &["mesh.max_level=0"]].concat();
        let found = Stepper::new(&plain, &settings).state().components;
        assert_eq!(found, components + 1, "{settings:?}, with the dye");
    }
}

/// A tube in which the pressure is never lost (Brio & Wu 1988) has the same bits with one energy and with both.
#[test]
fn both_energies_change_no_bit_where_the_pressure_is_safe() {
    let tube = include_str!("../../../scenarios/brio-wu.toml");
    for method in ["mhd.method=ct", "mhd.method=glm"] {
        let cells = |dual: &str| {
            let settings = [method, dual, "domain.cells=[128,8,8]"];
            let mut stepper = Stepper::new(tube, &settings);
            let state = stepper.steps(40).state();
            let mut cells = Vec::new();
            state.each_leaf_cell(|_, _, _, u| {
                cells.push(std::array::from_fn::<u64, 8, _>(|c| u[c].to_bits()));
            });
            cells
        };
        let [one, both] = ["hydro.dual_energy=false", "hydro.dual_energy=true"].map(cells);
        assert_eq!(one, both, "{method}");
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
