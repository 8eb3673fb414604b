//! Plugins missing from a program, and declarations of plugins.

use super::{COOLING, cooling, stepper};
use nestar::engine::mesh::Topology;
use nestar::prelude::*;
use nestar_tests::Stepper;
use nestar_tests::decks::deck;

#[test]
fn a_plugin_missing_from_the_program_is_refused_by_name() {
    let stock = App::default()
        .check(&deck(COOLING, &[]))
        .expect_err("refused")
        .to_string();
    assert!(
        stock.contains("unknown table [radiation]: no plugin of this program uses it"),
        "{stock}"
    );
    assert!(
        cooling::program(App::default())
            .check(&deck(COOLING, &[]))
            .is_ok()
    );
    // a plugin is active where its table appears alone
    let off = COOLING.replace("[radiation]\ncoldest = 0.05", "");
    let mut run = stepper(cooling::program, &off, &["domain.cells=[8,8,8]"]);
    run.steps(1);
    assert_eq!(run.state().components, 5);
}

#[device]
fn dilution<R: Real>(u: [R; 6], of: R) -> R {
    of * u[0] / u[5]
}

/// Gives a number a name.
#[derive(Clone)]
struct Names(&'static str);

impl Plugin for Names {
    fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.scalars(&[("dye", 0.5), ("ink", 0.25)])?;
        sim.derived::<dilution>(self.0, "1", GasFrame::Grid, &["ink"], &[2.0])
    }

    fn build(&self, _: &mut Engine) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn derived_inputs_of_plugins_are_available_in_criteria_and_formulas() {
    let run = |name: &'static str, settings: &[&str]| {
        let start = [
            "initial={density='1 + x*x',pressure='1'}",
            "domain.cells=[16,8,8]",
        ];
        let settings = [&start[..], settings].concat();
        let plain = deck(COOLING.split("[radiation]").next().unwrap_or(""), &settings);
        let sim = App::default().always(Names(name)).simulation(plain)?;
        Stepper::begin(sim)
    };
    // gas over dye is 4 everywhere, twice that 8
    let refined = |criterion: &str| {
        let criterion = format!("mesh.refine=[{{criterion='formula',when='{criterion}'}}]");
        let mut stepper = run("dilution", &["mesh.max_level=1", &criterion]).expect("a run");
        stepper.0.engine().world.resource::<Topology>().count(1)
    };
    assert_eq!(refined("dilution > 8.01 or dilution < 7.99"), 0);
    assert_eq!(refined("dilution > 7.99 and dilution < 8.01"), 16);
    let mut heated = run("dilution", &["sources.heating=dilution"]).expect("a run");
    let energy = |state: &nestar_tests::State| {
        let mut sum = 0.0;
        state.each_leaf_cell(|_, _, _, u| sum += u[4]);
        sum / 1024.0
    };
    let before = energy(&heated.state());
    let dt = heated.try_step().expect("a step").dt;
    let gained = energy(&heated.state()) - before;
    assert!((gained / (8.0 * dt) - 1.0).abs() < 1e-12, "{gained}");
    for taken in ["density", "pressure", "scalar_dye", "x", "1st", "a b", ""] {
        let message = run(taken, &[])
            .map(|_| ())
            .expect_err("refused")
            .to_string();
        assert!(
            message.contains("of a derived field is invalid or in use"),
            "{message}"
        );
    }
}

#[test]
fn scalars_are_declared_before_fields_and_only_once() {
    #[derive(Clone)]
    struct Declares(&'static str, f64);
    impl Plugin for Declares {
        fn declare(&self, sim: &mut Engine) -> Result<(), Error> {
            sim.scalars(&[(self.0, self.1)])
        }
        fn build(&self, _: &mut Engine) -> Result<(), Error> {
            Ok(())
        }
    }
    let plain =
        |settings: &[&str]| deck(COOLING.split("[radiation]").next().unwrap_or(""), settings);
    let start = "initial={density='1',pressure='1'}";
    let late = Simulation::new(plain(&[start])).and_then(|sim| sim.add(Declares("dye", 0.5)));
    let late = late.map(|_| ()).expect_err("refused").to_string();
    assert!(late.contains("takes no more declarations"), "{late}");
    let two = App::default()
        .always(Declares("dye", 0.5))
        .always(Declares("dye", 0.25));
    let two = two
        .simulation(plain(&[start]))
        .map(|_| ())
        .expect_err("refused")
        .to_string();
    assert!(
        two.contains("\"dye\" is 0.5 for one plugin and 0.25 for another"),
        "{two}"
    );
    // what the deck declares too is one and the same, and where it says nothing the plugin does
    let app = App::default()
        .always(Declares("dye", 0.5))
        .always(Declares("ink", 0.25));
    let settings = [start, "domain.cells=[8,8,8]", "hydro.scalars=[\"ink\"]"];
    let sim = app
        .simulation(plain(&settings))
        .unwrap_or_else(|e| panic!("{e}"));
    let mut run = Stepper::of(sim);
    run.steps(1);
    run.state()
        .each_leaf_cell(|_, _, _, u| assert_eq!(&u[5..], [0.25, 0.5]));
}
