//! Where systems leave what goes wrong.

use super::cell_case::CellCase;
use crate::device::DeviceError;
use crate::device::parallel::lock;
use bevy_ecs::prelude::*;
use std::sync::{Arc, Mutex};

/// Where systems, and tasks that run side by side in them, leave the first fault that they meet: no further system runs, and
/// the run stops after the schedule.
#[derive(Resource, Clone, Default)]
pub struct FaultBox {
    first: Arc<Mutex<Option<ReportedFault>>>,
    /// Name of the system that runs or ran last.
    system: Arc<Mutex<Option<Arc<str>>>>,
    /// What a function was given in the cell that is at fault.
    case: Arc<Mutex<Option<CellCase>>>,
}

/// What stands in a [`FaultBox`].
#[derive(Debug)]
pub enum ReportedFault {
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
        lock(&self.first).get_or_insert_with(|| ReportedFault::Formula(message()));
    }

    /// Leaves the device's error, unless there is a fault already; whether there is none.
    pub fn check(&self, result: Result<(), DeviceError>) -> bool {
        if let Err(error) = result {
            lock(&self.first).get_or_insert(ReportedFault::Device(error));
        }
        !self.has_fault()
    }

    /// Keeps what a function was given in a cell that is at fault, unless there is a fault already.
    pub(super) fn keep(&self, case: CellCase) {
        if !self.has_fault() {
            *lock(&self.case) = Some(case);
        }
    }

    /// Takes out what a function was given in the cell at fault, if that can be called again.
    pub(crate) fn take_case(&self) -> Option<CellCase> {
        lock(&self.case).take()
    }

    /// Leaves any error, unless there is a fault already.
    pub fn fail(&self, error: impl std::error::Error + Send + Sync + 'static) {
        lock(&self.first).get_or_insert_with(|| ReportedFault::Other(Box::new(error)));
    }

    /// Notes the name of the system that runs next, if there is no fault; whether there is none.
    pub(crate) fn begin_system(&self, system: &Arc<str>) -> bool {
        *lock(&self.system) = Some(system.clone());
        !self.has_fault()
    }

    /// Name of the system that runs or ran last.
    pub(crate) fn system(&self) -> Arc<str> {
        let system = lock(&self.system).clone();
        system.unwrap_or_else(|| "a system".into())
    }

    /// Whether there is a fault.
    #[must_use]
    pub fn has_fault(&self) -> bool {
        lock(&self.first).is_some()
    }

    /// Takes the fault out, if there is one.
    #[must_use]
    pub fn take(&self) -> Option<ReportedFault> {
        lock(&self.first).take()
    }
}
