//! The programs of `scenarios/programs`: short, correct, and bitwise equal everywhere and after a restart.

#![allow(
    dead_code,
    reason = "the programs' own `main` functions are not called here"
)]

use nestar::prelude::*;
use nestar::testing::same_bits;
use nestar_tests::Stepper;
use nestar_tests::decks::deck;

mod declarations;
mod heat;
mod one_zone;
mod solutions;
mod stars;
mod turbulence;

#[path = "../../../../scenarios/programs/atmosphere.rs"]
mod atmosphere;
#[path = "../../../../scenarios/programs/burning.rs"]
mod burning;
#[path = "../../../../scenarios/programs/collision.rs"]
mod collision;
#[path = "../../../../scenarios/programs/conduction.rs"]
mod conduction;
#[path = "../../../../scenarios/programs/cooling.rs"]
mod cooling;
#[path = "../../../../scenarios/programs/cooling_law.rs"]
mod cooling_law;
#[path = "../../../../scenarios/programs/decay.rs"]
mod decay;
#[path = "../../../../scenarios/programs/driving.rs"]
mod driving;
#[path = "../../../../scenarios/programs/free_fall.rs"]
mod free_fall;
#[path = "../../../../scenarios/programs/potential.rs"]
mod potential;
#[path = "../../../../scenarios/programs/star_rule.rs"]
mod star_rule;
#[path = "../../../../scenarios/programs/stellar_mass_loss.rs"]
mod stellar_mass_loss;

type Program = fn(App) -> App;

macro_rules! programs {
    ($($name:ident),*) => {
        /// Program, its text and its deck.
        const PROGRAMS: &[(&str, Program, &str, &str)] = &[$((
            stringify!($name),
            $name::program,
            include_str!(concat!("../../../../scenarios/programs/", stringify!($name), ".rs")),
            include_str!(concat!("../../../../scenarios/programs/", stringify!($name), ".toml")),
        )),*];
    };
}
programs!(
    atmosphere,
    burning,
    collision,
    conduction,
    cooling,
    cooling_law,
    decay,
    driving,
    free_fall,
    potential,
    star_rule,
    stellar_mass_loss
);

/// A size that takes levels and ranks, and no time.
const SMALL: [&str; 2] = ["domain.cells=[16,16,8]", "output.initial=false"];

#[test]
fn programs_take_eighty_lines_without_cuda_or_unsafe() {
    for (name, _, text, _) in PROGRAMS {
        let product = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines = text.lines().filter(product).count();
        assert!(lines <= 80, "{name}: {lines} lines");
        assert!(
            !text.contains("unsafe") && !text.contains("RS_FN"),
            "{name}"
        );
    }
}

#[test]
fn programs_are_identical_on_ranks_and_devices_and_after_a_restart() {
    // every second program in single precision
    let precisions = ["run.precision=double", "run.precision=single"];
    for ((name, program, _, text), precision) in PROGRAMS.iter().zip(precisions.into_iter().cycle())
    {
        let settings = [&SMALL[..], &[precision]].concat();
        let same = same_bits(&program(App::default()), text, &settings, 2);
        same.unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

fn stepper(program: Program, text: &str, settings: &[&str]) -> Stepper {
    let sim = program(App::default()).simulation(deck(text, settings));
    Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")))
}

const COOLING: &str = include_str!("../../../../scenarios/programs/cooling.toml");
