//! Captures of cells that stay unphysical: the patch, and the first-order cells of each round of correction.

use super::replacements::LevelReplacements;
use crate::fields::{Gas, GasModel, MagneticFaces, MassFlux};
use nestar_device::Real;
use nestar_engine::comm::{Comm, RanksError};
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::{Capture, FieldView};
use nestar_engine::{Error, in_precision};
use nestar_kernels::hydro::{CellMask10, Cleaning};
use serde::{Deserialize, Serialize};

/// Level that is advanced.
#[derive(Clone, Copy)]
pub(super) struct LevelInput<'a> {
    pub clock: &'a LevelClock,
    pub topology: &'a Topology,
    /// Cleaning of a magnetic field.
    pub cleaning: Cleaning,
    /// Gas model, if a failure is to leave a capture.
    pub capture: Option<&'a GasModel>,
}

/// Fields that a step of the gas writes in addition.
#[derive(Clone, Copy)]
pub(super) struct ExtraFields<'a> {
    /// Mass fluxes, if requested.
    pub mass: Option<&'a FieldView<'a, MassFlux>>,
    /// Magnetic field on faces, if there is one.
    pub field: Option<&'a FieldView<'a, MagneticFaces>>,
}

/// A stage of a step of a level.
#[derive(Clone, Copy)]
pub(super) struct StageContext<'a> {
    pub clock: &'a LevelClock,
    pub cleaning: Cleaning,
    /// Number of the stage.
    pub stage: usize,
    /// Magnetic field on faces, if there is one, and the ghost layers that a step reads.
    pub faces: Option<(&'a FieldView<'a, MagneticFaces>, usize)>,
}

impl<'a> StageContext<'a> {
    /// Returns a stage of the step of a level.
    pub fn of(
        input: &LevelInput<'a>,
        stage: usize,
        faces: Option<(&'a FieldView<'a, MagneticFaces>, usize)>,
    ) -> Self {
        let LevelInput {
            clock, cleaning, ..
        } = *input;
        Self {
            clock,
            cleaning,
            stage,
            faces,
        }
    }
}

/// Totals of an accepted step of a level.
#[derive(Default)]
pub(super) struct StepTotals {
    /// Number of corrected cells, on all ranks.
    pub corrected: u64,
    /// What the dual-energy formalism did, on this rank.
    pub replacements: LevelReplacements,
}

/// Result of a step of a level.
pub(super) type StepResult<T> = Result<T, StepFailure>;

/// Reasons why a step of a level fails.
pub(super) enum StepFailure {
    /// The result is unphysical.
    Rejected(UnphysicalCell),
    /// The run must stop.
    Failed(Error),
}

impl From<Error> for StepFailure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<DeviceError> for StepFailure {
    fn from(error: DeviceError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<RanksError> for StepFailure {
    fn from(error: RanksError) -> Self {
        Self::Failed(error.into())
    }
}

/// Details of a gas capture in addition to the patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GasDetails {
    /// Set of each component; 0: none.
    pub sets: Vec<usize>,
    /// Per round of correction: cells with first-order fluxes, -1 to 8 along each axis.
    pub rounds: Vec<Vec<[i32; 3]>>,
    /// Number of the stage that failed; the values of the capture are those that it read.
    #[serde(default)]
    pub stage: usize,
    /// State of the patch before the step, `[component][512]`; empty in the first stage.
    #[serde(default)]
    pub before: Vec<f64>,
    /// Speed and damping of the cleaning of a magnetic field; 0 without one.
    #[serde(default)]
    pub cleaning: [f64; 2],
    /// Magnetic field on the faces of the patch and its ghost cells, `[component][k][j][i]` with one more value along the axis of a component;
    /// empty without one.
    #[serde(default)]
    pub faces: Vec<f64>,
}

/// A cell of this rank that stays unphysical.
pub(super) struct FoundCell {
    pub why: String,
    /// Row and cell.
    pub place: (u32, usize),
    /// State after the step.
    pub after: Vec<f64>,
}

/// A cell that stays unphysical, as all ranks know it.
pub(super) struct UnphysicalCell {
    /// Row and cell, on the rank that found it.
    pub place: Option<(u32, usize)>,
    /// State after the step, on that rank.
    pub after: Vec<f64>,
    /// Description, on all ranks.
    pub why: String,
    /// Text of the capture on all ranks, if one was made.
    pub capture: Option<String>,
}

impl UnphysicalCell {
    /// Agrees on one cell among those that the ranks have found.
    pub fn agreed(found: Option<FoundCell>, others: &Comm) -> StepResult<Self> {
        let own = found.as_ref().map(|cell| cell.why.clone());
        let why = others.first_error(own)?.unwrap_or_default();
        let first = found.filter(|cell| cell.why == why);
        let (place, after) =
            first.map_or((None, Vec::new()), |cell| (Some(cell.place), cell.after));
        Ok(Self {
            place,
            after,
            why,
            capture: None,
        })
    }

    /// Returns the text of the capture, on the rank that found the cell.
    fn text(
        &self,
        gas: &FieldView<Gas>,
        attempt: StageContext,
        log: &FallbackLog,
        model: &GasModel,
    ) -> Result<Option<String>, DeviceError> {
        let Some((row, cell)) = self.place else {
            return Ok(None);
        };
        let StageContext {
            clock,
            cleaning,
            stage,
            faces,
        } = attempt;
        let capture = Capture::of(gas, clock, row, cell, self.after.clone())?;
        let mut details = log.details(model, capture.components.len());
        details.stage = stage;
        details.cleaning = [cleaning.speed, cleaning.damping];
        if let Some((field, ghosts)) = faces {
            details.faces = in_precision!(field.precision(), R => {
                let mut values = Vec::<R>::new();
                field.window(row, (ghosts, u32::MAX), &mut values)?;
                values.into_iter().map(Real::to_f64).collect()
            });
        }
        if stage > 0 {
            details.before = in_precision!(gas.precision(), R => {
                let values = gas.host::<R>(&[row])?;
                values.into_iter().map(Real::to_f64).collect()
            });
        }
        let capture = Capture {
            why: self.why.clone(),
            details: toml::Table::try_from(details).unwrap_or_default(),
            ..capture
        };
        Ok(Some(capture.text()))
    }
}

/// Records the first-order cells around a row in each round of correction.
#[derive(Default)]
pub(super) struct FallbackLog {
    /// `true` if the update of the level must be repeated before it is corrected.
    pub repeat: bool,
    /// The row, on the rank that owns it.
    pub row: Option<u32>,
    rounds: Vec<CellMask10>,
}

impl FallbackLog {
    /// Records a round in which the cells `mask` use first-order fluxes.
    pub fn note(&mut self, topology: &Topology, mask: impl Fn(u32) -> [u64; 8]) {
        if let Some(row) = self.row {
            self.rounds.push(mask_with_layer(topology, mask, row));
        }
    }

    fn details(&self, model: &GasModel, components: usize) -> GasDetails {
        let cells = |mask: &CellMask10| {
            let all = (0..1000).map(|n| [n % 10 - 1, n / 10 % 10 - 1, n / 100 - 1]);
            all.filter(|&[i, j, k]| mask.contains(i, j, k)).collect()
        };
        GasDetails {
            sets: (0..components).map(|c| model.sets.of(c)).collect(),
            rounds: self.rounds.iter().map(cells).collect(),
            ..GasDetails::default()
        }
    }
}

/// Returns the first-order cells of a patch and of the layer around it, from the masks of rows. Fluxes depend on those beside its faces, electric
/// fields on all.
pub(super) fn mask_with_layer(
    topology: &Topology,
    mask: impl Fn(u32) -> [u64; 8],
    row: u32,
) -> CellMask10 {
    let mut cells = CellMask10::new();
    let mut enter = |row: i32, shift: [i32; 3]| {
        let Ok(row) = u32::try_from(row) else { return };
        for (k, &word) in mask(row).iter().enumerate() {
            for bit in (0..64).filter(|bit| word >> bit & 1 == 1) {
                let [i, j, k] = [bit % 8 + shift[0], bit / 8 + shift[1], k as i32 + shift[2]];
                if [i, j, k].iter().all(|c| (-1..=8).contains(c)) {
                    cells.set(i, j, k);
                }
            }
        }
    };
    for (d, &neighbour) in topology.neighbours(row).iter().enumerate() {
        enter(
            neighbour,
            [d % 3, d / 3 % 3, d / 9].map(|n| 8 * (n as i32 - 1)),
        );
    }
    cells
}

/// Corrects a level in the given stage of its step with `correct`. If that fails and a capture is wanted, repeats the update and the correction and
/// records the rounds.
pub(super) fn apply_fallback(
    gas: &FieldView<Gas>,
    attempt: StageContext,
    capture: Option<&GasModel>,
    others: &Comm,
    mut correct: impl FnMut(&mut FallbackLog) -> StepResult<u64>,
) -> StepResult<u64> {
    let first = correct(&mut FallbackLog::default());
    let (Err(StepFailure::Rejected(cell)), Some(model)) = (&first, capture) else {
        return first;
    };
    let mut log = FallbackLog {
        repeat: true,
        row: cell.place.map(|(row, _)| row),
        ..FallbackLog::default()
    };
    let mut again = correct(&mut log);
    if let Err(StepFailure::Rejected(cell)) = &mut again {
        let own = cell.text(gas, attempt, &log, model)?;
        cell.capture = others.first_error(own)?;
    }
    again
}
