//! Collects the first fault of a schedule, with the record of a failing cell.

use super::Precision;
use bevy_ecs::prelude::*;
use nestar_device::{CellState, Real};
use nestar_engine_device::DeviceError;
use nestar_engine_device::parallel::lock;
use nestar_kernels::CELLS;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Arc, Mutex};

/// Holds the first fault reported by systems or their tasks. No further system runs, and the run stops after the
/// schedule.
#[derive(Resource, Clone, Default)]
pub struct FaultBox {
    first: Arc<Mutex<Option<ReportedFault>>>,
    /// Name of the latest system.
    system: Arc<Mutex<Option<Arc<str>>>>,
    /// Record of the failing cell.
    case: Arc<Mutex<Option<CellCase>>>,
}

/// A fault in a [`FaultBox`].
#[derive(Debug)]
pub enum ReportedFault {
    /// An error in a formula of the user.
    Formula(String),
    /// An error of the device.
    Device(DeviceError),
    /// An error returned by a system.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl FaultBox {
    /// Reports an error in a formula, unless there is a fault already.
    pub fn report(&self, message: impl FnOnce() -> String) {
        lock(&self.first).get_or_insert_with(|| ReportedFault::Formula(message()));
    }

    /// Reports an error of the device, unless there is a fault already. Returns `true` if there is no fault.
    pub fn check(&self, result: Result<(), DeviceError>) -> bool {
        if let Err(error) = result {
            lock(&self.first).get_or_insert(ReportedFault::Device(error));
        }
        !self.has_fault()
    }

    /// Keeps the record of a failing cell, unless there is a fault already.
    pub(super) fn keep_record(&self, case: CellCase) {
        if !self.has_fault() {
            *lock(&self.case) = Some(case);
        }
    }

    /// Takes the record of the failing cell, if there is one.
    pub fn take_case(&self) -> Option<CellCase> {
        lock(&self.case).take()
    }

    /// Reports any error, unless there is a fault already.
    pub fn fail(&self, error: impl std::error::Error + Send + Sync + 'static) {
        lock(&self.first).get_or_insert_with(|| ReportedFault::Other(Box::new(error)));
    }

    /// Sets the name of the next system. Returns `true` if it may run, that is without a fault.
    pub fn begin_system(&self, system: &Arc<str>) -> bool {
        *lock(&self.system) = Some(system.clone());
        !self.has_fault()
    }

    /// Returns the name of the latest system.
    pub fn system(&self) -> Arc<str> {
        let system = lock(&self.system).clone();
        system.unwrap_or_else(|| "a system".into())
    }

    /// Returns `true` if a fault was reported.
    #[must_use]
    pub fn has_fault(&self) -> bool {
        lock(&self.first).is_some()
    }

    /// Takes the fault.
    #[must_use]
    pub fn take(&self) -> Option<ReportedFault> {
        lock(&self.first).take()
    }
}

/// Name of an account and names of its numbers, for messages about summed numbers. Without names, messages give
/// positions.
pub(super) type SumNames = (&'static str, &'static [&'static str]);

/// The reason why a cell is rejected.
#[derive(Debug)]
pub(super) enum FailureCause {
    /// The function reports failure and returns this state.
    Failed(Vec<f64>),
    /// The function returns this state, which would make the field unphysical.
    Unphysical(Vec<f64>),
    /// A summed number is not finite.
    NonFiniteSum {
        state: Vec<f64>,
        sums: Vec<f64>,
        names: SumNames,
    },
    /// The function is not done after this number of calls. The text describes the function and the key that allows
    /// more.
    Unfinished(usize, &'static str),
}

/// A cell of a level with the numbers carried to its latest call.
#[derive(Clone, Copy)]
pub(super) struct CalledCell<'a> {
    /// Cell number in the level.
    pub item: u32,
    pub carried: &'a [f64],
}

/// A rejected cell: its function and its state before the call.
#[derive(Debug)]
pub(super) struct CellFault {
    pub(super) function: &'static str,
    pub(super) field: &'static str,
    pub(super) why: FailureCause,
    pub(super) level: usize,
    pub(super) patch: [i32; 3],
    pub(super) cell: [usize; 3],
    pub(super) centre: [f64; 3],
    pub(super) time: f64,
    pub(super) state: Vec<f64>,
    /// Numbers carried from earlier calls.
    pub(super) carried: Vec<f64>,
}

impl std::error::Error for CellFault {}

impl fmt::Display for CellFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            FailureCause::Failed(_) => write!(f, "`{}` has failed", self.function)?,
            FailureCause::Unphysical(_) => {
                write!(f, "`{}` leaves an unphysical state", self.function)?
            }
            FailureCause::NonFiniteSum { sums, names, .. } => write!(
                f,
                "`{}` gives {}",
                self.function,
                describe_sum(sums, *names)
            )?,
            FailureCause::Unfinished(calls, _) => {
                write!(f, "`{}` is not done after {calls} calls", self.function)?
            }
        }
        let Self {
            field,
            level,
            patch,
            cell,
            centre,
            time,
            state,
            carried,
            ..
        } = self;
        write!(
            f,
            " in cell {cell:?} of patch {patch:?} on level {level}, where `{field}` is {state:?} at (x, y, z) = {centre:?}, \
             t = {time}"
        )?;
        if !carried.is_empty() {
            write!(f, ", with {carried:?} from earlier calls")?;
        }
        match &self.why {
            FailureCause::Failed(given) | FailureCause::Unphysical(given) => {
                write!(f, "; it gives {given:?}")
            }
            FailureCause::NonFiniteSum { state, sums, .. } => {
                write!(f, "; it gives {state:?}, and {sums:?} to be summed")
            }
            FailureCause::Unfinished(_, doc) => write!(f, "; it does this: {doc}"),
        }
    }
}

/// Describes the first summed number that is not finite, by its name in an account or by its position.
fn describe_sum(sums: &[f64], (account, numbers): SumNames) -> String {
    let n = sums.iter().position(|sum| !sum.is_finite()).unwrap_or(0);
    match numbers.get(n) {
        Some(number) => format!("{} to be summed as `{account}_{number}`", sums[n]),
        None => format!(
            "{} as number {} of {} to be summed",
            sums[n],
            n + 1,
            sums.len()
        ),
    }
}

/// Returns the numbers of a state.
pub(super) fn values_of<R: Real>(state: &impl CellState<R>) -> Vec<f64> {
    let mut values = Vec::new();
    state.write(&mut |_, _, value: R| values.push(value.to_f64()), 0, 0);
    values
}

/// Returns row and cell of a cell number of the level.
pub(super) fn locate_cell(rows: &[u32], item: u32) -> (u32, usize) {
    (rows[item as usize / CELLS], item as usize % CELLS)
}

/// Version of the file format.
pub(super) const VERSION: u32 = 1;

/// All inputs of the call that ended a run, or of the next call of an unfinished cell. Stored as TOML with exact
/// numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellCase {
    /// Version of the file format.
    pub cell_case: u32,
    /// Message that ended the run.
    pub why: String,
    /// Path of the function.
    pub function: String,
    /// Name of the field.
    pub field: String,
    /// Precision of the values.
    pub precision: Precision,
    /// The level.
    pub level: usize,
    /// Time at the start of the step, code units.
    pub time: f64,
    /// Length of the step, code units.
    pub dt: f64,
    /// Index of the patch on its level, in patches.
    pub patch: [i32; 3],
    /// The cell within the patch, 0 to 7 along each axis.
    pub cell: [usize; 3],
    /// Number of earlier calls in this step.
    pub calls: usize,
    /// Names of the field's components.
    pub components: Vec<String>,
    /// Values of the components after the earlier calls.
    pub state: Vec<f64>,
    /// States of the other fields.
    pub others: Vec<Vec<f64>>,
    /// Numbers carried from the previous call.
    pub carried: Vec<f64>,
    /// State returned by the call.
    pub given: Vec<f64>,
    /// Folder to which relative paths in the deck refer.
    pub folder: String,
    /// Resolved deck of the run.
    pub deck: String,
}

/// The result of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct CellCallResult {
    /// Status word: done, unfinished, waiting, failed, or that of a state rejected as unphysical.
    pub status: &'static str,
    /// State returned by the function: the components that it changes.
    pub given: Vec<f64>,
    /// State of the field after the call.
    pub state: Vec<f64>,
    /// Numbers carried to the next call.
    pub carried: Vec<f64>,
    /// Summed numbers.
    pub sums: Vec<f64>,
    /// Work of the call.
    pub work: i32,
}

impl CellCase {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// The reason why it is not a valid record.
    pub fn parse(text: &str) -> Result<Self, String> {
        let case: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        if case.cell_case != VERSION {
            let found = case.cell_case;
            return Err(format!(
                "it has version {found}, but this program reads {VERSION}"
            ));
        }
        match case.cell.iter().all(|&i| i < 8) && case.components.len() == case.state.len() {
            true => Ok(case),
            false => Err("its cell index or the number of its state values is invalid".into()),
        }
    }

    /// Returns the text of a file.
    #[must_use]
    pub fn text(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Returns the number of the cell in its patch.
    pub(super) fn number(&self) -> usize {
        let [i, j, k] = self.cell;
        i + 8 * (j + 8 * k)
    }
}
