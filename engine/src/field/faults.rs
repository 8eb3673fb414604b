//! Where systems leave what goes wrong.

use crate::device::DeviceError;
use crate::device::parallel::lock;
use bevy_ecs::prelude::*;
use std::sync::{Arc, Mutex};

/// Where systems, and tasks that run side by side in them, leave the first fault that they meet: no further system runs, and
/// the run stops after the schedule.
#[derive(Resource, Clone, Default)]
pub struct FaultBox(Arc<Mutex<Option<Reported>>>);

/// What stands in a [`FaultBox`].
#[derive(Debug)]
pub enum Reported {
    /// A mistake in the user's formulas.
    Formula(String),
    /// The device fails.
    Device(DeviceError),
    /// What a system has returned.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl FaultBox {
    /// Leaves a mistake in the user's formulas, unless there is a fault already.
    pub fn report(&self, message: impl FnOnce() -> String) {
        lock(&self.0).get_or_insert_with(|| Reported::Formula(message()));
    }

    /// Leaves the device's error, unless there is a fault already; whether there is none.
    pub fn check(&self, result: Result<(), DeviceError>) -> bool {
        if let Err(error) = result {
            lock(&self.0).get_or_insert(Reported::Device(error));
        }
        !self.is_full()
    }

    /// Leaves any error, unless there is a fault already.
    pub fn fail(&self, error: impl std::error::Error + Send + Sync + 'static) {
        lock(&self.0).get_or_insert_with(|| Reported::Other(Box::new(error)));
    }

    /// Whether there is a fault.
    #[must_use]
    pub fn is_full(&self) -> bool {
        lock(&self.0).is_some()
    }

    /// Takes the fault out, if there is one.
    #[must_use]
    pub fn take(&self) -> Option<Reported> {
        lock(&self.0).take()
    }
}
