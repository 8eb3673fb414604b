//! What stands outside pulls what falls freely, too.

use crate::fields::{Acceleration, External, ExternalState};
use crate::order::{Advance, Aligned, Ready};
use bevy_ecs::prelude::*;
use nestar_device::{Real, device};
use nestar_engine::Engine;
use nestar_engine::data::LevelRows;
use nestar_engine::step::{AlignedLevels, Read, Write};

/// An acceleration with that by the table `[external]`.
#[device]
fn pulled<R: Real>(u: ([R; 3], ExternalState<R>)) -> [R; 3] {
    let (a, outside) = u;
    let more = outside.acceleration;
    [a[0] + more[0], a[1] + more[1], a[2] + more[2]]
}

/// Enters the systems, behind those that evaluate the formulas.
pub(super) fn register(sim: &mut Engine) {
    sim.system_in(Ready::Recompute, pull_ready);
    sim.system_in(Advance::Couple, pull);
    sim.system_in(Aligned::Solve, pull_aligned);
}

fn pull_rows(rows: &mut LevelRows, outside: &Read<External>, field: &mut Write<Acceleration>) {
    for triple in Acceleration::triples(field.own().components()) {
        rows.choose(triple);
        field.map_with::<pulled>(rows, &[outside], &[]);
    }
}

fn pull(mut rows: LevelRows, outside: Read<External>, mut field: Write<Acceleration>) {
    pull_rows(&mut rows, &outside, &mut field);
}

/// Once the accelerations of all levels are set.
fn pull_ready(mut rows: LevelRows, outside: Read<External>, mut field: Write<Acceleration>) {
    let finest = rows.finest();
    if rows.is_estimate() || rows.level() < finest {
        return;
    }
    for level in 0..=finest {
        rows.visit(level);
        pull_rows(&mut rows, &outside, &mut field);
    }
}

fn pull_aligned(
    mut rows: LevelRows,
    aligned: Res<AlignedLevels>,
    outside: Read<External>,
    mut field: Write<Acceleration>,
) {
    for level in aligned.levels() {
        rows.visit(level);
        pull_rows(&mut rows, &outside, &mut field);
    }
}
