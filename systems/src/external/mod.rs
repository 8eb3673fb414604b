//! What stands outside the simulation and acts on all matter in it: potentials and accelerations by formulas of the deck.
//!
//! The formulas are evaluated in the field [`External`], on each level at the time that it has reached: once where they do not depend on
//! time, else at the end of each step. Whoever feels them reads the field; the gas does so half a step before and half a step after it
//! moves, as it feels self-gravity. Cells of all levels are accelerated by differences of the potential over their own width, of
//! values where it is known, also beyond the domain.

mod config;
mod numbers;
mod pull;

pub use config::ExternalConfig;

use crate::fields::{AccelerationAsked, External, ExternalState, Gas, GasModel};
use crate::order::{Advance, Aligned, Ready, Split};
use crate::register::Register;
use bevy_ecs::prelude::*;
use nestar_device::{Place, Real, device};
use nestar_engine::comm::Reduce;
use nestar_engine::data::{Component, DerivedInputs, FieldSpec, LevelRows, Prolong, Restrict};
use nestar_engine::mesh::Levels;
use nestar_engine::step::{AlignedLevels, Read, Write};
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::hydro::Conserved;
use nestar_kernels::hydro::eos::apply_kick;
use nestar_kernels::mesh::subcycle::{DONE, FAILED, Outcome};
use numbers::CellNumbers;
use std::sync::Arc;

/// The plugin: reads the table `[external]`, if the deck has it. Add it behind the gas.
pub struct ExternalForces;

/// The potential of the table `[external]` and the acceleration by it and by its further formulas, of the numbers of a cell. Fails
/// where one of them is not finite.
#[device]
fn external<R: Real>(u: (ExternalState<R>, [R; 7]), at: &Place<R>) -> Outcome<ExternalState<R>> {
    let (_, numbers) = u;
    let a = [
        numbers[4] - numbers[1] / at.width[0],
        numbers[5] - numbers[2] / at.width[1],
        numbers[6] - numbers[3] / at.width[2],
    ];
    let finite = numbers[0].is_finite() && a[0].is_finite() && a[1].is_finite() && a[2].is_finite();
    let state = ExternalState::<R> {
        potential: numbers[0],
        acceleration: a,
    };
    let status = if finite { DONE } else { FAILED };
    Outcome::<ExternalState<R>> { state, status }
}

/// Gas after a step under the acceleration of the table `[external]`: the internal energy stays.
#[device]
fn external_kick<R: Real>(u: (Conserved<R>, ExternalState<R>), at: &Place<R>) -> Conserved<R> {
    let (gas, outside) = u;
    let a = outside.acceleration;
    apply_kick(gas, [a[0] * at.dt, a[1] * at.dt, a[2] * at.dt])
}

/// The time in which matter at rest is accelerated through half the width of its cell along an axis, times the root of a factor;
/// infinite where nothing accelerates it.
#[device]
fn fall_time<R: Real>(u: ExternalState<R>, at: &Place<R>, limit: R) -> R {
    let mut slowest = R::INFINITY;
    for axis in 0..3 {
        let a = u.acceleration[axis].abs();
        if a > 0.0 {
            slowest = slowest.min(limit * at.width[axis] / a);
        }
    }
    slowest.sqrt()
}

/// Energy of a volume of gas in the potential of the table `[external]`: mass times potential.
#[device]
fn energy<R: Real>(u: (Conserved<R>, ExternalState<R>)) -> R {
    let (gas, outside) = u;
    gas.density * outside.potential
}

fn spec() -> FieldSpec {
    let component = |name: &str, units: &str, length: i32, long_name: &str| Component {
        units: units.into(),
        dimension: [length, 0, -2],
        long_name: long_name.into(),
        ..Component::scalar(name)
    };
    let acceleration = |axis: &str| {
        let long_name = format!("acceleration from outside along {axis}");
        let name = format!("external_acceleration_{axis}");
        component(&name, "length/time**2", 1, &long_name)
    };
    let mut components = vec![component(
        "external_potential",
        "length**2/time**2",
        2,
        "potential from outside",
    )];
    components.extend(["x", "y", "z"].map(acceleration));
    FieldSpec {
        components,
        prolong: Prolong::None,
        restrict: Restrict::None,
        stored: false,
        ..FieldSpec::cells(&[])
    }
}

impl Plugin for ExternalForces {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("external") {
            return Ok(());
        }
        let config: ExternalConfig = sim.deck.table("external")?;
        let CellNumbers {
            numbers,
            moves,
            acts,
        } = CellNumbers::of(&config, &sim.deck)?;
        sim.register_field::<External>(spec())?;
        let frozen = sim.world.resource::<GasModel>().frozen;
        register(sim, &Arc::new(numbers), moves);
        if !frozen {
            let kick = IntoSystem::into_system(kick).with_name("kick by [external]");
            sim.system_in(Split::Sources, kick);
        }
        if sim.world.contains_resource::<AccelerationAsked>() {
            pull::register(sim);
        }
        if config.limit > 0.0 && acts && !frozen {
            sim.limit::<External, fall_time>("external", [config.limit]);
        }
        sim.column_of_two::<Gas, External, energy>("energy_external", Reduce::Integral, [])
            .unit("mass*length**2/time**2");
        Ok(())
    }
}

/// Enters the systems that fill the field.
fn register(sim: &mut Engine, numbers: &Arc<DerivedInputs>, moves: bool) {
    let own = numbers.clone();
    let begin = move |rows: LevelRows, mut field: Write<External>| {
        field.map_by::<external>(&rows, &own, &[]);
    };
    let begin = IntoSystem::into_system(begin).with_name("formulas of [external] at the beginning");
    sim.system_in(Ready::Recompute, begin);
    let own = numbers.clone();
    let renew = move |mut rows: LevelRows,
                      aligned: Res<AlignedLevels>,
                      levels: Res<Levels>,
                      mut field: Write<External>| {
        for level in aligned.coarsest + 1..=aligned.finest {
            if levels.clock(level - 1).since_regrid == 0 {
                rows.visit(level);
                field.map_by::<external>(&rows, &own, &[]);
            }
        }
    };
    let renew = IntoSystem::into_system(renew).with_name("formulas of [external] on new patches");
    sim.system_in(Aligned::Solve, renew);
    if moves {
        let own = numbers.clone();
        let advance = move |mut rows: LevelRows, mut field: Write<External>| {
            rows.at_end();
            field.map_by::<external>(&rows, &own, &[]);
        };
        let advance = IntoSystem::into_system(advance).with_name("formulas of [external]");
        sim.system_in(Advance::Potential, advance);
    }
}

fn kick(rows: LevelRows, field: Read<External>, mut gas: Write<Gas>) {
    gas.map_with::<external_kick>(&rows, &[&field], &[]);
}
