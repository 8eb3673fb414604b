//! The order in which plugins are built.

use nestar::engine::Error;
use nestar::prelude::*;
use nestar::systems::hydro::initial::InitialGas;
use nestar_tests::decks::{BLAST, deck};

/// Names of the plugins below in the order in which they were built, and what was built before each: the gas, the
/// scenario.
#[derive(Resource, Default)]
struct Built(Vec<(&'static str, [bool; 2])>);

/// Records when it is built.
#[derive(Clone)]
struct Note(&'static str, &'static [&'static str]);

impl Plugin for Note {
    fn name(&self) -> &str {
        self.0
    }

    fn after(&self) -> &[&str] {
        self.1
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let earlier = [
            sim.world.contains_resource::<GasModel>(),
            sim.world.contains_resource::<InitialGas>(),
        ];
        let mut built = sim.world.get_resource_or_init::<Built>();
        built.0.push((self.0, earlier));
        Ok(())
    }
}

/// A plugin with a table, which no deck here has.
#[deck]
struct Absent {}

impl Plugin for Absent {
    fn build(&self, _: &mut Engine) -> Result<(), Error> {
        Ok(())
    }
}

fn built(plugins: &[Note]) -> Result<Vec<(&'static str, [bool; 2])>, Error> {
    let app = App::default().plugin::<Absent>("absent");
    let app = plugins.iter().cloned().fold(app, App::always);
    let mut sim = app.simulation(deck(BLAST, &[]))?;
    Ok(sim.engine().world.resource::<Built>().0.clone())
}

#[test]
fn plugins_of_a_program_come_last_unless_they_choose_their_place() {
    let (first, second) = (Note("first", &[]), Note("second", &["absent"]));
    let (last, early) = (Note("last", &["first"]), Note("early", &["hydro"]));
    let found = built(&[last, first, early, second]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        found,
        [
            ("second", [false, false]),
            ("early", [true, false]),
            ("first", [true, true]),
            ("last", [true, true]),
        ]
    );
}

#[test]
fn impossible_places_are_refused() {
    let refused = |plugins: &[Note]| built(plugins).expect_err("refused").to_string();
    let text = refused(&[Note("lost", &["hydrant"])]);
    assert!(
        text.contains("`lost` comes after `hydrant`, which does not exist"),
        "{text}"
    );
    let text = refused(&[Note("hen", &["egg"]), Note("egg", &["hen"])]);
    assert!(text.contains("`hen` after `egg` after `hen`"), "{text}");
}
