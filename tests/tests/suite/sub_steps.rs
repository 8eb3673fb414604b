//! Substeps of finer levels within a step of the coarser.

use bevy_ecs::prelude::*;
use nestar::engine::mesh::{LevelClock, Levels};
use nestar::engine::step::StepLimits;
use nestar::engine::{Engine, Error, Plugin};
use nestar::systems::order::{Advance, Limit};
use nestar_tests::decks::BLAST;
use nestar_tests::{Stepper, build};

/// The longest step of level 1, by the number of its steps so far: at odd ones a fifth of that at even ones.
const LONGEST: [f64; 2] = [1e-3, 2e-4];

/// Steps of level 1: when they began and how long they were, and how many had been taken before.
#[derive(Resource, Default)]
struct Taken(Vec<(u64, f64)>);

/// Limits level 1 and notes its steps.
struct Narrow;

impl Plugin for Narrow {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        sim.world.init_resource::<Taken>();
        let limit =
            |clock: Res<LevelClock>, levels: Res<Levels>, mut limits: ResMut<StepLimits>| {
                if clock.level == 1 {
                    let parity = levels.clock(1).steps % 2;
                    limits.propose("narrow", LONGEST[parity as usize]);
                }
            };
        let note = |clock: Res<LevelClock>, levels: Res<Levels>, mut taken: ResMut<Taken>| {
            if clock.level == 1 {
                taken.0.push((levels.clock(1).steps, clock.dt));
            }
        };
        sim.system_in(Limit::Propose, limit);
        sim.system_in(Advance::Exchange, note);
        Ok(())
    }
}

/// A limit that becomes stricter between two steps of a level holds for the second, however the levels' steps relate.
#[test]
fn time_step_limits_hold_for_every_substep_of_a_level() {
    for relation in ["adaptive", "halved", "shared"] {
        let levels = format!("time.levels={relation}");
        let sim = build(BLAST, &[&levels, "mesh.max_level=1"]).add(Narrow);
        let mut stepper = Stepper::of(sim.unwrap_or_else(|e| panic!("{e}")));
        stepper.steps(3);
        let taken = stepper.0.with(|s| s.world.remove_resource::<Taken>());
        let taken = taken.expect("the plugin has registered it").0;
        assert!(taken.len() >= 3, "{relation}: {taken:?}");
        for &(steps, dt) in &taken {
            // a step may be stretched by a tenth
            let longest = 1.1 * LONGEST[(steps % 2) as usize];
            assert!(dt <= longest, "{relation}: {dt} of {longest} in {taken:?}");
        }
    }
}
