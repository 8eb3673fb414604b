//! Unphysical cells: corrected by first-order fluxes where possible, a clear end otherwise.

use bevy_ecs::prelude::*;
use nestar::engine::mesh::{LevelClock, Levels, Topology};
use nestar::engine::run::{RunOptions, Silent};
use nestar::engine::step::{StepVerdict, Write};
use nestar::engine::{Engine, Error, Plugin};
use nestar::systems::fields::Gas;
use nestar::systems::order::Advance;
use nestar_tests::decks::{BLAST, HALF};
use nestar_tests::norms::{magnitudes, totals};
use nestar_tests::runs::{digests, run_into};
use nestar_tests::{Scratch, Stepper, build};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Strong rarefaction and explosion that make a high-order step unphysical.
const HARD: &[&str] = &[
    "initial.density=if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.05, 10, 0.01)",
    "initial.pressure=if((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2 < 0.002, 1e4, 1e-4)",
    "initial.velocity_x=if(x < 0.5, -20, 20)",
    "initial.velocity_y=if(y < 0.3, -15, 15)",
    "hydro.reconstruction=ppm",
    "time.courant=0.9",
];

fn settings(more: &[&'static str]) -> Vec<&'static str> {
    HARD.iter().chain(more).copied().collect()
}

fn repairs(more: &[&'static str]) {
    let mut stepper = Stepper::new(BLAST, &settings(&[&[HALF], more].concat()));
    let scale = magnitudes(&stepper.state());
    let before = stepper.0.with(|s| totals(s));
    let state = stepper.steps(8).state();
    let counters = stepper.counters();
    println!(
        "{more:?}: {} cells repaired, {} steps retried",
        counters.fallback_cells, counters.retried_steps
    );
    assert!(counters.fallback_cells > 0, "the case is too easy");
    state.physical().unwrap_or_else(|e| panic!("{e}"));
    let after = stepper.0.with(|s| totals(s));
    for c in 0..before.len() {
        let drift = (after[c] - before[c]).abs() / scale[c];
        assert!(drift <= 1e-13, "component {c}: drift {drift:e}");
    }
}

#[test]
fn unphysical_cells_are_corrected_and_conserve() {
    repairs(&[]);
}

#[test]
fn unphysical_cells_of_the_van_leer_scheme_are_corrected_and_conserve() {
    repairs(&["hydro.scheme=vl", "time.levels=halved"]);
}

#[test]
fn corrections_do_not_depend_on_threads() {
    let run = |threads| {
        let mut stepper = Stepper::new(BLAST, &settings(&[HALF, threads]));
        let state = stepper.steps(6).state();
        let counters = stepper.counters();
        (state, counters.fallback_cells, counters.retried_steps)
    };
    let (one, three) = (run("run.threads=1"), run("run.threads=3"));
    assert_eq!(one.0.difference(&three.0), None);
    assert!(one.1 > 0 && (one.1, one.2) == (three.1, three.2));
}

/// Makes the energy of one cell of level 0 negative after the limit of the third root step.
struct Spoil;

impl Plugin for Spoil {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let spoil = |levels: Res<Levels>, mut gas: Write<Gas>| -> Result<(), Error> {
            let view = gas.own();
            if view.level() == 0 && levels.clock(0).steps == 2 {
                let row = view.rows()[3];
                let mut values = view.row::<f64>(row).to_vec();
                values[4 * 512 + 77] = -1.0;
                gas.store(&[row], &values)?;
            }
            Ok(())
        };
        sim.system_in(Advance::Exchange, spoil);
        Ok(())
    }
}

/// A cell that no flux can correct ends the run: the message has the position and the state, and the snapshots stay.
#[test]
fn an_uncorrectable_cell_ends_the_run_with_its_position_and_keeps_the_snapshots() {
    let scratch = Scratch::new();
    let settings = ["time.retries=2", "output.steps=1", "mesh.max_level=1"];
    let mut sim = build(BLAST, &settings)
        .add(Spoil)
        .unwrap_or_else(|e| panic!("{e}"));
    let options = RunOptions {
        output: Some(scratch.run()),
        resume: false,
        stop: Arc::new(AtomicBool::new(false)),
        snapshot: Arc::default(),
        observer: Box::new(Silent),
        build: nestar::App::default().build_info(),
    };
    let error = sim.run_with(options).expect_err("no scheme survives this");
    assert!(
        matches!(
            error,
            Error::Unphysical {
                level: 0,
                retries: 2,
                ..
            }
        ),
        "{error}"
    );
    let message = error.to_string();
    let patch = sim.with(|s| {
        let topology = s.world.resource::<Topology>();
        topology.index(topology.rows(0)[3])
    });
    assert!(message.contains(&format!("patch {patch:?}")), "{message}");
    for word in ["cell [5, 1, ", "-1.0", "density, momentum x y z, energy"] {
        assert!(message.contains(word), "{word} is missing: {message}");
    }
    // the first two steps are whole, and the run goes on from there when the cause is gone
    assert_eq!(digests(&scratch.run()).len(), 2);
    let most = "time.max_steps=3";
    let resumed = run_into(
        &scratch.run(),
        true,
        BLAST,
        &[&settings[..], &[most]].concat(),
    );
    assert_eq!(resumed.unwrap_or_else(|e| panic!("{e}")).step, 3);
}

/// Rejects every step from the third root step on.
struct Refuse;

impl Plugin for Refuse {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let refuse =
            |clock: Res<LevelClock>, levels: Res<Levels>, mut verdict: ResMut<StepVerdict>| {
                if clock.level == 0 && levels.clock(0).steps >= 2 {
                    verdict.rejected = Some("a test says no".into());
                }
            };
        sim.system_in(Advance::Exchange, refuse);
        Ok(())
    }
}

/// A rejected step is retried as often as the deck says, changes nothing, and then stops the run.
#[test]
fn a_step_that_is_always_rejected_stops_the_run() {
    let text = BLAST.replace("[time]", "[time]\nretries = 3");
    let sim = build(&text, &[])
        .add(Refuse)
        .unwrap_or_else(|e| panic!("{e}"));
    let mut stepper = Stepper::of(sim);
    stepper.steps(2);
    let before = stepper.state();
    let error = stepper.try_step().expect_err("the step is rejected");
    assert!(
        matches!(
            error,
            Error::Unphysical {
                level: 0,
                retries: 3,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("a test says no"), "{error}");
    assert_eq!(stepper.counters().retried_steps, 4);
    assert_eq!(before.difference(&stepper.state()), None);
}
