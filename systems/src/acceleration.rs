//! The shared field [`Acceleration`], to which force plugins add and from which particles read.
//!
//! This module clears the field. In `build`, a force plugin adds systems that add its acceleration:
//!
//! - to [`Advance::Couple`] for the current level,
//! - to [`Aligned::Solve`] for all aligned levels,
//! - to [`Ready::Recompute`] for all levels when the finest level is current.

use crate::fields::{
    Acceleration, AccelerationMirrored, AccelerationRequested, OwnPotentialRequested,
    PairAcceleration, PairAccelerationRequested,
};
use crate::order::{Advance, Aligned, Ready};
use crate::register::prepare_update;
use crate::units::{ACCELERATION, Units};
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use nestar_device::{Real, device};
use nestar_engine::data::{Component, Field, FieldSpec, LevelRows, Prolong, Restrict};
use nestar_engine::step::{AlignedLevels, Write};
use nestar_engine::{Engine, Error, Plugin};
use std::ops::RangeInclusive;

/// Plugin that registers the field if a plugin requests it. Plugins of forces come after it.
pub struct Accelerations;

#[device]
fn none<R: Real>(_: [R; 3]) -> [R; 3] {
    [0.0, 0.0, 0.0]
}

/// Returns the declaration of the field. If reflecting faces mirror the attracting matter (`mirrored`), they also mirror
/// the acceleration.
fn spec(own: bool, mirrored: bool, units: &str) -> FieldSpec {
    let component = |name: &str, whose: &str| Component {
        units: units.into(),
        dimension: [1, 0, -2],
        long_name: format!("acceleration along {name}{whose}"),
        ..Component::scalar(name)
    };
    let mut components = Vec::new();
    components.extend(["x", "y", "z"].map(|axis| component(&format!("acceleration_{axis}"), "")));
    if own {
        let whose = ", without what finer levels add";
        let names =
            ["x", "y", "z"].map(|axis| component(&format!("own_acceleration_{axis}"), whose));
        components.extend(names);
    }
    for (n, component) in components.iter_mut().enumerate() {
        component.normal_to = mirrored.then_some(n % 3);
    }
    FieldSpec {
        components,
        banks: 2,
        time_levels: 2,
        prolong: Prolong::Linear,
        restrict: Restrict::None,
        stored: false,
        ..FieldSpec::cells(&[])
    }
}

impl Plugin for Accelerations {
    fn name(&self) -> &str {
        "acceleration"
    }

    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        if !sim.world.contains_resource::<AccelerationRequested>() {
            return Ok(());
        }
        let gravity = sim.deck.has("gravity");
        let own = gravity && sim.world.contains_resource::<OwnPotentialRequested>();
        let mirrored = sim.world.contains_resource::<AccelerationMirrored>();
        let units = Units::of_gravity(sim, ACCELERATION);
        sim.register_field::<Acceleration>(spec(own, mirrored, &units))?;
        prepare_update::<Acceleration, none>(sim);
        if sim.world.contains_resource::<PairAccelerationRequested>() {
            sim.register_field::<PairAcceleration>(pair_spec(mirrored, &units))?;
            prepare_update::<PairAcceleration, none>(sim);
        }
        sim.system_in(Ready::Recompute, clear_initial_acceleration)
            .optional::<PairAcceleration>();
        sim.system_in(Advance::Couple, clear_acceleration)
            .optional::<PairAcceleration>();
        sim.system_in(Aligned::Solve, clear_acceleration_of_aligned_levels)
            .optional::<PairAcceleration>();
        Ok(())
    }
}

/// Returns the specification of [`PairAcceleration`], which kernels read like [`Acceleration`]. Particles need it only at the
/// time of their level.
fn pair_spec(mirrored: bool, units: &str) -> FieldSpec {
    let mut spec = FieldSpec {
        banks: 1,
        time_levels: 1,
        ..spec(true, mirrored, units)
    };
    for (n, component) in spec.components.iter_mut().enumerate() {
        let (whose, axis) = (["inner", "outer"][n / 3], ["x", "y", "z"][n % 3]);
        component.name = format!("{whose}_acceleration_{axis}");
        component.long_name = format!("{whose} part of the acceleration of pairs along {axis}");
    }
    spec
}

/// The fields of accelerations.
#[derive(SystemParam)]
struct AccelerationFields<'w, 's> {
    rows: LevelRows<'w, 's>,
    of_all: Write<'w, 's, Acceleration>,
    of_pairs: Option<Write<'w, 's, PairAcceleration>>,
}

impl AccelerationFields<'_, '_> {
    /// Clears the fields on the current or visited level.
    fn clear(&mut self) {
        clear(&mut self.rows, &mut self.of_all);
        if let Some(field) = &mut self.of_pairs {
            clear(&mut self.rows, field);
        }
    }

    fn clear_on(&mut self, levels: RangeInclusive<usize>) {
        for level in levels {
            self.rows.visit(level);
            self.clear();
        }
    }
}

fn clear<F: Field>(rows: &mut LevelRows, field: &mut Write<F>) {
    for triple in Acceleration::triples(field.own().components()) {
        rows.choose(triple);
        field.update::<none>(rows, (), &[]);
    }
}

/// Clears the fields at the end of the step of a level. The previous time level of a field with two is kept, because finer
/// levels read both.
fn clear_acceleration(mut fields: AccelerationFields) -> Result<(), Error> {
    fields.of_all.commit()?;
    if let Some(field) = &mut fields.of_pairs {
        field.commit()?;
    }
    fields.clear();
    Ok(())
}

fn clear_acceleration_of_aligned_levels(
    mut fields: AccelerationFields,
    aligned: Res<AlignedLevels>,
) {
    fields.clear_on(aligned.levels());
}

/// Clears all levels when the finest level is current.
fn clear_initial_acceleration(mut fields: AccelerationFields) {
    let finest = fields.rows.finest();
    if !fields.rows.is_estimate() && fields.rows.level() == finest {
        fields.clear_on(0..=finest);
    }
}
