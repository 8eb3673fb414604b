//! Steps that are too short to reach the end of a run: they are told early, with what makes them short.

use super::device_runs::places;
use bevy_ecs::prelude::*;
use nestar::engine::comm::{Ranks, SingleRank};
use nestar::engine::mesh::{LevelClock, Levels};
use nestar::engine::step::{Remarks, StepLimits};
use nestar::engine::{Engine, Error, Plugin};
use nestar::systems::order::Limit;
use nestar::{App, Simulation};
use nestar_tests::Stepper;
use nestar_tests::decks::{BLAST, HALF, deck};
use nestar_tests::ranks::on_ranks_of;

/// Number of steps within which endless steps must be told.
const EARLY: usize = 30;

/// Particles on a lattice; the one at (0.375, 0.625, 0.875) is fast. Gas and gravity do not limit the step.
const LATTICE: &str = r#"
scenario = "formula"
[initial]
density  = "1"
pressure = "1"
[domain]
cells    = [16, 16, 16]
boundary = "periodic"
[time]
end = 1.0
[hydro]
frozen = true
[particles.species.halo]
mass = 1e-10
[particles.species.halo.initial]
kind     = "lattice"
points   = [4, 4, 4]
velocity = ["if(x > 0.3 and x < 0.4 and y > 0.6 and y < 0.7 and z > 0.8, 1e30, 0)", "0", "0.5"]
"#;

/// Returns the error within some steps.
fn told(stepper: &mut Stepper) -> String {
    let mut steps = (0..EARLY).filter_map(|_| stepper.try_step().err());
    steps.next().expect("the run has no end").to_string()
}

fn contains_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// Limits the steps of a level to a length.
#[derive(Clone, Copy)]
struct Patience {
    level: usize,
    longest: f64,
    /// Number of steps of the level that are limited.
    steps: u64,
}

impl Plugin for Patience {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let own = *self;
        let limit =
            move |clock: Res<LevelClock>, levels: Res<Levels>, mut limits: ResMut<StepLimits>| {
                if clock.level == own.level && levels.clock(own.level).steps < own.steps {
                    limits.propose("patience", own.longest);
                }
            };
        sim.system_in(Limit::Propose, limit);
        Ok(())
    }
}

#[test]
fn a_particle_that_makes_a_run_endless_is_named() {
    for (device, size) in places(&[1, 2], &[1]) {
        let build = |ranks| App::default().simulation_on(deck(LATTICE, &[device]), ranks);
        for found in on_ranks_of(size, build, told) {
            // it has moved along x
            let place = "particle 57 of particles.species.halo at [";
            contains_all(
                &found,
                &[
                    "level 0 at time",
                    "the limit \"particles\" sets steps of",
                    place,
                    ", 0.625, 0.875] with velocity [1e30, 0.0, 0.5]",
                ],
            );
        }
    }
}

#[test]
fn a_cell_that_makes_a_run_endless_is_named() {
    let fast =
        "initial.velocity_x=\"if(x > 0.5625 and x < 0.625 and y < 0.0625 and z < 0.1, 1e4, 0)\"";
    let settings = [HALF, fast, "mesh.max_level=0", "time.end=1e20"];
    for (device, size) in places(&[1], &[1]) {
        let settings = [&settings[..], &[device]].concat();
        let build = |ranks| App::default().simulation_on(deck(BLAST, &settings), ranks);
        for found in on_ranks_of(size, build, told) {
            // the fast gas moves meanwhile
            let parts = [
                "the limit \"courant\" sets steps of",
                "cell [",
                "] of patch [",
                "centre [",
            ];
            contains_all(&found, &parts);
        }
    }
}

/// A level whose steps do not reach the end of the coarser one is told for any number of root steps.
#[test]
fn a_root_step_comes_to_an_end() {
    let limit = Patience {
        level: 1,
        longest: 1e-16,
        steps: u64::MAX,
    };
    for relation in ["adaptive", "halved"] {
        let levels = format!("time.levels={relation}");
        let settings = [HALF, &levels, "mesh.max_level=1", "time.max_steps=5"];
        let app = App::default().always(limit);
        let mut stepper = Stepper::of(app.simulation(deck(BLAST, &settings)).expect("a deck"));
        if relation == "halved" {
            // all levels take short steps, so that each root step ends
            stepper.steps(5);
            continue;
        }
        let found = told(&mut stepper);
        let parts = [
            "level 1 at time",
            "the limit \"patience\" sets steps of 1e-16",
        ];
        contains_all(&found, &parts);
    }
}

/// A few short steps, such as the first ones of an explosion, are not an error; lasting ones that the clock can tell are a warning.
#[test]
fn steps_that_become_longer_are_no_error() {
    let run = |longest: f64, steps: u64| {
        let limit = Patience {
            level: 0,
            longest,
            steps,
        };
        let app = App::default().always(limit);
        let settings = [HALF, "mesh.max_level=0"];
        let mut stepper = Stepper::of(app.simulation(deck(BLAST, &settings)).expect("a deck"));
        stepper.steps(EARLY);
        stepper
            .0
            .with(|sim| sim.world.resource::<Remarks>().0.join("\n"))
    };
    assert_eq!(run(1e-17, 10), "");
    assert_eq!(run(1e-11, u64::MAX), "");
    contains_all(
        &run(1e-13, u64::MAX),
        &[
            "warning: level 0",
            "the limit \"patience\" sets steps of 1e-13",
        ],
    );
}

#[test]
fn factors_that_make_steps_endless_are_refused_by_key() {
    let refused = |text: &str, setting: &str| {
        let built = Simulation::with_ranks(deck(text, &[setting]), Ranks::new(SingleRank));
        let error = built.and_then(Stepper::begin).err();
        error
            .unwrap_or_else(|| panic!("{setting} is accepted"))
            .to_string()
    };
    let gas = |tables: &str| {
        format!(
            "{}\n{tables}",
            BLAST.replace("max_level = 2", "max_level = 0")
        )
    };
    let falling = LATTICE.replace("1e30", "1");
    let cases = [
        (gas(""), "time.courant=1e-18", "at least 1e-6 and at most 1"),
        (gas(""), "time.courant=0", "at least 1e-6 and at most 1"),
        (gas("[gravity]"), "gravity.limit=1e-18", "0, or at least"),
        (gas("[sources]"), "sources.limit=1e-18", "0, or at least"),
        (gas("[external]"), "external.limit=1e-18", "0, or at least"),
        (falling.clone(), "particles.courant=1e-18", "at least 1e-6"),
        (
            falling,
            "particles.acceleration=1e-18",
            "0, or at least 1e-6 and at most 1",
        ),
    ];
    for (text, setting, range) in cases {
        let key = setting.split('=').next().expect("a key");
        contains_all(&refused(&text, setting), &[key, range]);
    }
    // without a limit
    for setting in ["gravity.limit=0", "gravity.limit=1e-3"] {
        let built = Simulation::with_ranks(
            deck(&gas("[gravity]"), &[HALF, setting]),
            Ranks::new(SingleRank),
        );
        assert!(built.is_ok(), "{setting}");
    }
}
