//! What is kept of a cell that no flux mends: its patch, and which cells took first-order fluxes in each round of mending.

use crate::fields::{Gas, GasModel};
use nestar_engine::Error;
use nestar_engine::comm::{Comm, RanksError};
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::{Capture, FieldView};
use nestar_kernels::hydro::CellMask10;
use nestar_kernels::mesh::face_direction;
use serde::{Deserialize, Serialize};

/// The level at hand, and the model of the gas where a failure leaves a capture.
pub(super) type Given<'a> = (&'a LevelClock, &'a Topology, Option<&'a GasModel>);

/// Why a step cannot be taken, or that the device failed.
pub(super) type StepResult<T> = Result<T, StepFailure>;

/// Why a step of a level does not stand.
pub(super) enum StepFailure {
    /// Its result is unphysical.
    Rejected(Hopeless),
    /// The run cannot go on.
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

/// What a capture of the gas has beyond the patch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct GasDetails {
    /// The set that each component belongs to, 0: none.
    pub sets: Vec<usize>,
    /// In each round of mending the cells, -1 to 8 along each axis, that took first-order fluxes.
    pub rounds: Vec<Vec<[i32; 3]>>,
}

/// A cell that stays unphysical: its description, row and cell, state after the step.
pub(super) type Found = (String, (u32, usize), Vec<f64>);

/// What the ranks know of a cell that stays unphysical.
pub(super) struct Hopeless {
    /// Row and cell, on the rank that names it.
    pub place: Option<(u32, usize)>,
    /// Its state after the step there.
    pub after: Vec<f64>,
    /// Its description, on all ranks.
    pub why: String,
    /// The text of a capture, on all ranks, if one was made.
    pub capture: Option<String>,
}

impl Hopeless {
    /// What the ranks agree on, of which one or more have found a cell.
    pub fn agreed(found: Option<Found>, others: &Comm) -> StepResult<Self> {
        let own = found.as_ref().map(|(why, ..)| why.clone());
        let why = others.first_error(own)?.unwrap_or_default();
        let first = found.filter(|(own, ..)| *own == why);
        let (place, after) =
            first.map_or((None, Vec::new()), |(_, place, after)| (Some(place), after));
        Ok(Self {
            place,
            after,
            why,
            capture: None,
        })
    }

    /// The text of a capture, on the rank that names the cell.
    fn text(
        &self,
        gas: &FieldView<Gas>,
        clock: &LevelClock,
        (watch, model): (&Watch, &GasModel),
    ) -> Result<Option<String>, DeviceError> {
        let Some(place) = self.place else {
            return Ok(None);
        };
        let capture = Capture::of(gas, clock, place, self.after.clone())?;
        let details = watch.details(model, capture.components.len());
        let capture = Capture {
            why: self.why.clone(),
            details: toml::Table::try_from(details).unwrap_or_default(),
            ..capture
        };
        Ok(Some(capture.text()))
    }
}

/// Writes down what the rounds of mending do around a row.
#[derive(Default)]
pub(super) struct Watch {
    /// Whether the step of the level has to be repeated before it is mended.
    pub again: bool,
    /// The row, on the rank that owns it.
    pub row: Option<u32>,
    rounds: Vec<CellMask10>,
}

impl Watch {
    /// Another round, in which the cells `mask` of rows take first-order fluxes.
    pub fn note(&mut self, topology: &Topology, mask: impl Fn(u32) -> [u64; 8]) {
        if let Some(row) = self.row {
            self.rounds.push(surroundings(topology, mask, row));
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
        }
    }
}

/// The cells of a patch and of the layer beyond each of its faces that take first-order fluxes, of the `mask`s of rows.
pub(super) fn surroundings(
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
    enter(row as i32, [0; 3]);
    for face in 0..6 {
        let mut shift = [0; 3];
        shift[face / 2] = if face % 2 == 0 { -8 } else { 8 };
        enter(topology.neighbours(row)[face_direction(face)], shift);
    }
    cells
}

/// Mends a level by `mend`; where that is in vain and a capture is wanted, mends it again and writes down what happens.
pub(super) fn mended(
    gas: &FieldView<Gas>,
    clock: &LevelClock,
    wanted: Option<&GasModel>,
    others: &Comm,
    mut mend: impl FnMut(&mut Watch) -> StepResult<u64>,
) -> StepResult<u64> {
    let first = mend(&mut Watch::default());
    let (Err(StepFailure::Rejected(hopeless)), Some(model)) = (&first, wanted) else {
        return first;
    };
    let mut watch = Watch {
        again: true,
        row: hopeless.place.map(|(row, _)| row),
        ..Watch::default()
    };
    let mut again = mend(&mut watch);
    if let Err(StepFailure::Rejected(hopeless)) = &mut again {
        let own = hopeless.text(gas, clock, (&watch, model))?;
        hopeless.capture = others.first_error(own)?;
    }
    again
}
