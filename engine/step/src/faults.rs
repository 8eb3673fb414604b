//! Faults that systems report during a phase.

use super::Error;
use bevy_ecs::prelude::*;
use nestar_engine_data::{FaultBox, ReportedFault};
use nestar_engine_mesh::patch_component::PatchComponents;

/// Returns the fault that a system has reported, if any.
///
/// # Errors
/// The reported fault.
pub fn check_faults(world: &World) -> Result<(), Error> {
    Err(match world.resource::<FaultBox>().take() {
        None => match world.resource::<PatchComponents>().fault() {
            None => return Ok(()),
            Some(why) => Error::Setup(why),
        },
        Some(ReportedFault::Formula(message)) => Error::Setup(message),
        Some(ReportedFault::Device(error)) => error.into(),
        Some(ReportedFault::Other(error)) => match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => Error::Fault(other.to_string()),
        },
    })
}
