//! Faults that systems meet, as the run finds them.

use super::Error;
use crate::field::{FaultBox, Reported};
use crate::mesh::carried::CarriedComponents;
use bevy_ecs::prelude::*;

/// A fault that a system met; the run stops behind the schedule in which it was set.
#[derive(Resource, Default)]
pub struct Fault(pub Option<Error>);

/// Reports the fault that work on `world` has met, if any.
///
/// # Errors
/// That fault.
pub fn check_faults(world: &mut World) -> Result<(), Error> {
    match world.resource::<FaultBox>().reported() {
        Some(Reported::Formula(message)) => return Err(Error::Setup(message.clone())),
        Some(Reported::Device(error)) => return Err(error.clone().into()),
        None => {}
    }
    if let Some(why) = world.resource::<CarriedComponents>().fault() {
        return Err(Error::Setup(why));
    }
    world.resource_mut::<Fault>().0.take().map_or(Ok(()), Err)
}
