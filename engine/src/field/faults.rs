//! Where systems leave what goes wrong in tasks that run side by side.

use crate::device::DeviceError;
use bevy_ecs::prelude::*;
use std::sync::{Arc, OnceLock};

/// Where tasks that run side by side leave the first fault that they meet, in the user's formulas or of the device; the run
/// stops behind the schedule.
#[derive(Resource, Clone, Default)]
pub struct FaultBox(Arc<OnceLock<Reported>>);

/// What stands in a [`FaultBox`].
#[derive(Clone, Debug)]
pub enum Reported {
    /// A mistake in the user's formulas.
    Formula(String),
    /// The device fails.
    Device(DeviceError),
}

impl FaultBox {
    /// Leaves a fault, unless there is one already.
    pub fn report(&self, message: impl FnOnce() -> String) {
        self.0.get_or_init(|| Reported::Formula(message()));
    }

    /// Leaves the device's error, unless there is a fault already; whether there is none.
    pub fn check(&self, result: Result<(), DeviceError>) -> bool {
        if let Err(error) = result {
            self.0.get_or_init(|| Reported::Device(error));
        }
        !self.is_full()
    }

    /// Whether there is a fault.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0.get().is_some()
    }

    /// The fault, if there is one.
    #[must_use]
    pub fn reported(&self) -> Option<&Reported> {
        self.0.get()
    }
}
