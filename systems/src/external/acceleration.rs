//! Adds the external acceleration to the shared field of accelerations.

use super::{INITIAL, ON_NEW_PATCHES};
use crate::fields::{Acceleration, External, ExternalState};
use crate::order::{Advance, Aligned, Ready};
use bevy_ecs::prelude::*;
use nestar_device::{Real, device};
use nestar_engine::Engine;
use nestar_engine::data::LevelRows;
use nestar_engine::step::{AlignedLevels, Read, SystemNamed, Write};

/// Adds the acceleration of the table `[external]`.
#[device]
fn with_external_acceleration<R: Real>(u: ([R; 3], ExternalState<R>)) -> [R; 3] {
    let (a, outside) = u;
    let more = outside.acceleration;
    [a[0] + more[0], a[1] + more[1], a[2] + more[2]]
}

/// Registers the systems, after those that evaluate the formulas.
pub(super) fn register(sim: &mut Engine) {
    sim.system_in(Ready::Recompute, add_initial_external_acceleration)
        .after(SystemNamed(INITIAL.into()));
    sim.system_in(Advance::Couple, add_external_acceleration);
    sim.system_in(Aligned::Solve, add_external_acceleration_of_aligned_levels)
        .after(SystemNamed(ON_NEW_PATCHES.into()));
}

fn add_to_rows(rows: &mut LevelRows, outside: &Read<External>, field: &mut Write<Acceleration>) {
    for triple in Acceleration::triples(field.own().components()) {
        rows.choose(triple);
        field.update::<with_external_acceleration>(rows, outside, &[]);
    }
}

fn add_external_acceleration(
    mut rows: LevelRows,
    outside: Read<External>,
    mut field: Write<Acceleration>,
) {
    add_to_rows(&mut rows, &outside, &mut field);
}

/// Adds to all levels once their accelerations are set.
fn add_initial_external_acceleration(
    mut rows: LevelRows,
    outside: Read<External>,
    mut field: Write<Acceleration>,
) {
    let finest = rows.finest();
    if rows.is_estimate() || rows.level() < finest {
        return;
    }
    for level in 0..=finest {
        rows.visit(level);
        add_to_rows(&mut rows, &outside, &mut field);
    }
}

fn add_external_acceleration_of_aligned_levels(
    mut rows: LevelRows,
    aligned: Res<AlignedLevels>,
    outside: Read<External>,
    mut field: Write<Acceleration>,
) {
    for level in aligned.levels() {
        rows.visit(level);
        add_to_rows(&mut rows, &outside, &mut field);
    }
}
