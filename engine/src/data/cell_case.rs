//! What a function was given in a cell where it has come to no good end, and what it gives there.

use super::Precision;
use serde::{Deserialize, Serialize};

/// Version of the format.
pub(super) const VERSION: u32 = 1;

/// All that a function was given in the call that has ended a run, or that it would be given next where it is not done after all calls.
/// Written as TOML; numbers are exact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellCase {
    /// Version of the format.
    pub cell_case: u32,
    /// What ended the run.
    pub why: String,
    /// The function, with its path.
    pub function: String,
    /// Name of the field.
    pub field: String,
    /// Precision of the values.
    pub precision: Precision,
    /// The level.
    pub level: usize,
    /// Time at the beginning of the step, code units.
    pub time: f64,
    /// Length of the step, code units.
    pub dt: f64,
    /// Index of the patch on its level, in patches.
    pub patch: [i32; 3],
    /// The cell within the patch, 0 to 7 along each axis.
    pub cell: [usize; 3],
    /// Calls in this step before.
    pub calls: usize,
    /// Names of the field's components.
    pub components: Vec<String>,
    /// Their values, as the calls before have left them.
    pub state: Vec<f64>,
    /// States of further fields.
    pub others: Vec<Vec<f64>>,
    /// What the call before has handed on.
    pub carried: Vec<f64>,
    /// The state that the call gives.
    pub given: Vec<f64>,
    /// The folder from which relative paths in the deck lead.
    pub folder: String,
    /// The resolved deck of the run.
    pub deck: String,
}

/// What a call gives.
#[derive(Clone, Debug, PartialEq)]
pub struct CellCallResult {
    /// `done`, `unfinished`, `waiting`, `failed`, or `unsound` where the field cannot take the state.
    pub status: &'static str,
    /// The state that the function gives, of the components that it changes.
    pub given: Vec<f64>,
    /// The field's state after the call.
    pub state: Vec<f64>,
    /// What it hands on.
    pub carried: Vec<f64>,
    /// What is to be summed.
    pub sums: Vec<f64>,
    /// Its work.
    pub work: i32,
}

impl CellCase {
    /// The case of a file's text.
    ///
    /// # Errors
    /// Why it is none that a run has written.
    pub fn parse(text: &str) -> Result<Self, String> {
        let case: Self = toml::from_str(text).map_err(|e| e.to_string())?;
        if case.cell_case != VERSION {
            let found = case.cell_case;
            return Err(format!(
                "it has version {found}, this program reads {VERSION}"
            ));
        }
        match case.cell.iter().all(|&i| i < 8) && case.components.len() == case.state.len() {
            true => Ok(case),
            false => Err("its numbers do not fit together".into()),
        }
    }

    /// The text of a file.
    #[must_use]
    pub fn text(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// The cell's number in its patch.
    pub(super) fn number(&self) -> usize {
        let [i, j, k] = self.cell;
        i + 8 * (j + 8 * k)
    }
}
