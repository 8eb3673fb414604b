//! The engine's systems that bring a level into line with the finer one.

use super::{Error, Write};
use crate::comm::{RanksError, exchange};
use crate::data::Field;
use crate::data::operators::MendedOnHost;
use crate::mesh::LevelClock;
use bevy_ecs::prelude::*;

/// Covered cells of the level take the averages of their children; where another rank has the parent, its copy takes them.
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

/// The averages in copies and the fine fluxes at faces between ranks go to the owners of the coarse patches.
///
/// # Errors
/// Another rank has failed, or the transport or the device has.
pub fn exchange_averages_and_fluxes(world: &mut World) -> Result<(), RanksError> {
    let level = world.resource::<LevelClock>().level;
    exchange::send_averages_and_fluxes(world, level)
}

/// Values on the sides of patches that several share go to one of them: a refined one, of equals the lowest.
///
/// # Errors
/// The device fails; the copies are out of date.
pub fn share<F: Field>(mut field: Write<F, 1>) -> Result<(), Error> {
    field.share()
}

/// Cells beside a coarse-fine face take the fine fluxes in place of the coarse one.
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
