//! External gravity: potentials and accelerations by formulas of the deck.
//!
//! The field [`External`] contains the values of the formulas on each level at its own time. They are evaluated once if
//! they do not depend on time, otherwise at the end of each step. The gas is kicked for half a step before and half a
//! step after its update, as by self-gravity. The acceleration is the finite difference of the potential on the cells
//! of the level, also across the border of the domain.
//!
//! There are no `systems.rs` and `diagnostics.rs`: the few systems and the only column are in this file.

mod config;
mod inputs;

use crate::fields::{
    Acceleration, AccelerationRequested, External, ExternalState, Gas, GasModel, PairAcceleration,
    PairAccelerationRequested,
};
use crate::order::{Advance, Aligned, Ready, Split};
use crate::register::{Register, prepare_chosen_update, prepare_update};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
pub use config::ExternalConfig;
use inputs::ExternalInputs;
use nestar_device::{Place, Real, device};
use nestar_engine::comm::Reduce;
use nestar_engine::data::{
    Component, DerivedInputs, FieldSpec, LevelRows, Pool, Prolong, Restrict,
};
use nestar_engine::mesh::Levels;
use nestar_engine::step::{AlignedLevels, Read, SystemNamed, Write};
use nestar_engine::{Engine, Error, Plugin};
use nestar_kernels::hydro::Conserved;
use nestar_kernels::hydro::eos::apply_kick;
use nestar_kernels::mesh::subcycle::{DONE, FAILED, Outcome};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Plugin for the table `[external]`.
pub struct ExternalForces;

/// Potential and acceleration of the table `[external]`, from the inputs of a cell. Fails if a value is not finite.
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

/// Kick of the gas over a step by the acceleration of the table `[external]`; the internal energy stays constant.
#[device]
fn external_kick<R: Real>(u: (Conserved<R>, ExternalState<R>), at: &Place<R>) -> Conserved<R> {
    let (gas, outside) = u;
    let a = outside.acceleration;
    apply_kick(gas, [a[0] * at.dt, a[1] * at.dt, a[2] * at.dt])
}

/// Time in which matter at rest is accelerated across half a cell width along an axis, times the square root of
/// `limit`; infinite without acceleration.
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

/// Energy of the gas in the potential of the table `[external]`: mass times potential.
#[device]
fn energy<R: Real>(u: (R, ExternalState<R>)) -> R {
    let (density, outside) = u;
    density * outside.potential
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

/// Name of the system that evaluates the formulas before the first step.
const INITIAL: &str = "formulas of [external] at the beginning";
/// Name of the system that evaluates the formulas on new patches.
const ON_NEW_PATCHES: &str = "formulas of [external] on new patches";

impl Plugin for ExternalForces {
    fn name(&self) -> &str {
        "external"
    }

    fn after(&self) -> &[&str] {
        &["hydro", "acceleration"]
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.deck.has("external") {
            return Ok(());
        }
        let config: ExternalConfig = sim.deck.table("external")?;
        let ExternalInputs {
            numbers,
            depends_on_time,
            is_nonzero,
        } = ExternalInputs::of(&config, &sim.deck)?;
        sim.register_field::<External>(spec())?;
        let frozen = sim.world.resource::<GasModel>().frozen;
        register(sim, &Arc::new(numbers), depends_on_time);
        if !frozen {
            let kick = IntoSystem::into_system(kick).with_name("kick by [external]");
            sim.system_in(Split::Sources, kick);
            let gas = sim.world.resource::<GasModel>().without_scalars();
            prepare_chosen_update::<(Gas, External), external_kick>(sim, gas);
        }
        if sim.world.contains_resource::<AccelerationRequested>() {
            register_acceleration(sim);
        }
        if config.limit > 0.0 && is_nonzero && !frozen {
            sim.limit::<External, fall_time>("external", [config.limit]);
        }
        sim.column::<(Gas, External), energy>("energy_external", Reduce::Integral, [])
            .unit("mass*length**2/time**2");
        Ok(())
    }
}

/// Registers the systems that fill the field.
fn register(sim: &mut Engine, numbers: &Arc<DerivedInputs>, depends_on_time: bool) {
    (sim.with_numbers(numbers))
        .prepare::<External>(external::ITEM.name, Pool::prepare_subcycle::<external>);
    let own = numbers.clone();
    let begin = move |rows: LevelRows, mut field: Write<External>| {
        field.iterate::<external>(&rows, &*own, 1, &[]);
    };
    let begin = IntoSystem::into_system(begin).with_name(INITIAL);
    sim.system_in(Ready::Recompute, begin);
    let own = numbers.clone();
    let renew = move |mut rows: LevelRows,
                      aligned: Res<AlignedLevels>,
                      levels: Res<Levels>,
                      mut field: Write<External>| {
        for level in aligned.coarsest + 1..=aligned.finest {
            if levels.clock(level - 1).since_regrid == 0 {
                rows.visit(level);
                field.iterate::<external>(&rows, &*own, 1, &[]);
            }
        }
    };
    let renew = IntoSystem::into_system(renew).with_name(ON_NEW_PATCHES);
    sim.system_in(Aligned::Solve, renew);
    if depends_on_time {
        let own = numbers.clone();
        let advance = move |mut rows: LevelRows, mut field: Write<External>| {
            rows.at_end();
            field.iterate::<external>(&rows, &*own, 1, &[]);
        };
        let advance = IntoSystem::into_system(advance).with_name("formulas of [external]");
        sim.system_in(Advance::Potential, advance);
    }
}

fn kick(mut rows: LevelRows, field: Read<External>, model: Res<GasModel>, mut gas: Write<Gas>) {
    rows.choose(model.without_scalars());
    gas.update::<external_kick>(&rows, &field, &[]);
}

/// Adds the acceleration of the table `[external]`.
#[device]
fn with_external_acceleration<R: Real>(u: ([R; 3], ExternalState<R>)) -> [R; 3] {
    let (a, outside) = u;
    let more = outside.acceleration;
    [a[0] + more[0], a[1] + more[1], a[2] + more[2]]
}

/// Registers the systems that add the acceleration to the shared fields, after those that evaluate the formulas.
fn register_acceleration(sim: &mut Engine) {
    prepare_update::<(Acceleration, External), with_external_acceleration>(sim);
    if sim.world.contains_resource::<PairAccelerationRequested>() {
        prepare_update::<(PairAcceleration, External), with_external_acceleration>(sim);
    }
    sim.system_in(Ready::Recompute, add_initial_external_acceleration)
        .after(SystemNamed(INITIAL.into()))
        .optional::<PairAcceleration>();
    sim.system_in(Advance::Couple, add_external_acceleration)
        .optional::<PairAcceleration>();
    sim.system_in(Aligned::Solve, add_external_acceleration_of_aligned_levels)
        .after(SystemNamed(ON_NEW_PATCHES.into()))
        .optional::<PairAcceleration>();
}

/// Fields of accelerations, and the external acceleration that is added to them.
#[derive(SystemParam)]
struct ExternalAcceleration<'w, 's> {
    rows: LevelRows<'w, 's>,
    outside: Read<'w, 's, External>,
    of_all: Write<'w, 's, Acceleration>,
    of_pairs: Option<Write<'w, 's, PairAcceleration>>,
}

impl ExternalAcceleration<'_, '_> {
    /// Adds to all vectors of the current or visited level, of those of pairs only to the first one.
    fn add(&mut self) {
        let rows = &mut self.rows;
        for triple in Acceleration::triples(self.of_all.own().components()) {
            rows.choose(triple);
            (self.of_all).update::<with_external_acceleration>(rows, &self.outside, &[]);
        }
        if let Some(field) = &mut self.of_pairs {
            for triple in Acceleration::triples(3) {
                rows.choose(triple);
                field.update::<with_external_acceleration>(rows, &self.outside, &[]);
            }
        }
    }

    fn add_on(&mut self, levels: RangeInclusive<usize>) {
        for level in levels {
            self.rows.visit(level);
            self.add();
        }
    }
}

fn add_external_acceleration(mut fields: ExternalAcceleration) {
    fields.add();
}

/// Adds to all levels once their accelerations are set.
fn add_initial_external_acceleration(mut fields: ExternalAcceleration) {
    let finest = fields.rows.finest();
    if !fields.rows.is_estimate() && fields.rows.level() == finest {
        fields.add_on(0..=finest);
    }
}

fn add_external_acceleration_of_aligned_levels(
    mut fields: ExternalAcceleration,
    aligned: Res<AlignedLevels>,
) {
    fields.add_on(aligned.levels());
}
