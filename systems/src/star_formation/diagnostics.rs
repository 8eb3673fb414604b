//! Column of the star formation rate.

use super::systems::{StarFormationRule, form_stars};
use crate::births::{BirthCounters, MassQuantum};
use crate::order::Advance;
use bevy_ecs::prelude::*;
use nestar_engine::comm::DiagnosticColumns;
use nestar_engine::mesh::{LevelClock, Levels};
use nestar_engine::step::PluginState;
use nestar_engine::{Engine, Error};

/// Time and mass of all stars that have formed at the begin of the last root step.
#[derive(Resource, Clone, Copy, Debug, Default, PartialEq)]
struct StarsBefore {
    time: f64,
    mass: f64,
}

/// Saved state: the two numbers.
impl PluginState for StarsBefore {
    const VERSION: u32 = 1;

    fn save(&self) -> Vec<u8> {
        let numbers = [self.time, self.mass];
        numbers.map(f64::to_le_bytes).as_flattened().to_vec()
    }

    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (numbers, rest) = bytes.as_chunks::<8>();
        let ([time, mass], []) = (numbers, rest) else {
            return Err("it does not have two numbers".into());
        };
        let [time, mass] = [time, mass].map(|number| f64::from_le_bytes(*number));
        *self = Self { time, mass };
        Ok(())
    }
}

/// Registers the column `star_formation_rate`.
pub(super) fn register(sim: &mut Engine) -> Result<(), Error> {
    const NAME: &str = "star_formation_rate";
    sim.register_state(NAME, StarsBefore::default())?;
    sim.system_in(Advance::Predict, note_stars)
        .before(form_stars);
    let world = &mut sim.world;
    DiagnosticColumns::set_units(world, NAME, "mass/time");
    DiagnosticColumns::add_number(world, NAME, rate);
    Ok(())
}

/// Returns the mass of all stars that have formed.
fn born_mass(world: &World) -> f64 {
    let species = &world.resource::<StarFormationRule>().species;
    let quanta = world.resource::<BirthCounters>().born_quanta(species);
    world.resource::<MassQuantum>().mass_of(quanta)
}

/// Returns the mean rate over the last root step, in which all levels have formed stars; 0 before the first step.
fn rate(world: &World) -> f64 {
    let before = world.resource::<StarsBefore>();
    let passed = world.resource::<Levels>().time(0) - before.time;
    match passed > 0.0 {
        true => (born_mass(world) - before.mass) / passed,
        false => 0.0,
    }
}

/// Notes the mass of the stars before the root level forms stars, the first level in a root step.
fn note_stars(
    clock: Res<LevelClock>,
    counters: Res<BirthCounters>,
    quantum: Res<MassQuantum>,
    rule: Res<StarFormationRule>,
    mut before: ResMut<StarsBefore>,
) {
    if clock.level == 0 {
        *before = StarsBefore {
            time: clock.time,
            mass: quantum.mass_of(counters.born_quanta(&rule.species)),
        };
    }
}
