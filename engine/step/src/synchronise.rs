//! Systems that synchronise a level with the finer one.

use super::{Error, Write};
use bevy_ecs::prelude::*;
use nestar_engine_comm::{RanksError, exchange};
use nestar_engine_data::Field;
use nestar_engine_data::operators::MendedOnHost;
use nestar_engine_mesh::LevelClock;

/// Restriction: averages children into covered cells, or into the halo copy of a parent on another rank.
///
/// # Errors
/// The device fails.
pub fn restrict<F: Field>(
    mut field: Write<F>,
    mut mended: ResMut<MendedOnHost>,
) -> Result<(), Error> {
    mended.0.averages += field.restrict()?;
    Ok(())
}

/// Sends averages in halo copies and fine fluxes at faces between ranks to the owners of the coarse patches.
///
/// # Errors
/// Another rank has failed, or the transport or the device has.
pub fn exchange_averages_and_fluxes(world: &mut World) -> Result<(), RanksError> {
    let level = world.resource::<LevelClock>().level;
    exchange::send_averages_and_fluxes(world, level)
}

/// Makes values on patch boundaries equal to those of one patch: a refined one, else the first.
///
/// # Errors
/// The device fails; the halo is stale.
pub fn share<F: Field>(mut field: Write<F, 1>) -> Result<(), Error> {
    field.share()
}

/// Flux correction: replaces coarse fluxes by fine ones in cells at coarse-fine faces.
///
/// # Errors
/// The device fails.
pub fn correct<F: Field>(
    mut field: Write<F>,
    mut mended: ResMut<MendedOnHost>,
) -> Result<(), Error> {
    mended.0.corrections += field.correct()?;
    Ok(())
}
