//! Faults that systems meet, as the run finds them.

use super::Error;
use crate::field::{FaultBox, Reported};
use crate::mesh::carried::CarriedComponents;
use bevy_ecs::prelude::*;

/// Run condition of every system.
pub(super) fn no_fault(faults: Res<FaultBox>) -> bool {
    !faults.is_full()
}

/// Reports the fault that work on `world` has met, if any.
///
/// # Errors
/// That fault.
pub fn check_faults(world: &World) -> Result<(), Error> {
    Err(match world.resource::<FaultBox>().take() {
        None => match world.resource::<CarriedComponents>().fault() {
            None => return Ok(()),
            Some(why) => Error::Setup(why),
        },
        Some(Reported::Formula(message)) => Error::Setup(message),
        Some(Reported::Device(error)) => error.into(),
        Some(Reported::Other(error)) => match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => Error::Fault(other.to_string()),
        },
    })
}
