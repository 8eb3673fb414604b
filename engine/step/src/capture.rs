//! Captures of patches whose step failed, for replay in another process, and replay of sub-cycled functions in single
//! cells.

use super::access::FieldView;
use super::error::Error;
use bevy_ecs::prelude::*;
use nestar_device::Real;
use nestar_engine_data::level::geometry;
use nestar_engine_data::{
    CellCallResult, CellCase, CellSubcycle, Components, DerivedInputs, Element, FaultBox, Field,
    Parameters, Pool, Precision, ReportedFault, Stores, in_precision,
};
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::patch::PatchComponents;
use nestar_engine_mesh::{LevelClock, Levels, Topology};
use nestar_kernels::PATCH;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Version of the format.
const VERSION: u32 = 1;

/// Holds a patch with its ghost cells before a failed step, and the cell that became unphysical. Stored as
/// TOML with exact numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Version of the format.
    pub capture: u32,
    /// Why the step failed.
    pub why: String,
    /// Name of the field.
    pub field: String,
    /// Names of its components.
    pub components: Vec<String>,
    /// Precision of its values.
    pub precision: Precision,
    /// The level.
    pub level: usize,
    /// Time at the beginning of the step, code units.
    pub time: f64,
    /// Length of the step, code units.
    pub dt: f64,
    /// Widths of a cell, code units.
    pub width: [f64; 3],
    /// Index of the patch on its level, in patches.
    pub patch: [i32; 3],
    /// The cell within the patch, 0 to 7 along each axis.
    pub cell: [usize; 3],
    /// State of the cell after the step, by component.
    pub after: Vec<f64>,
    /// Layers of ghost cells around the patch.
    pub layers: usize,
    /// The values before the step, `[component][z][y][x]`, 8 + 2 `layers` along each axis.
    pub values: Vec<f64>,
    /// The resolved deck of the run.
    pub deck: String,
    /// Further input of the step, in a format of the field's owner.
    pub details: toml::Table,
}

impl Capture {
    /// Captures a row and its ghost cells; `after` is the unphysical result in `cell`.
    ///
    /// # Errors
    /// The device fails.
    pub fn of<F: Field>(
        view: &FieldView<F>,
        clock: &LevelClock,
        row: u32,
        cell: usize,
        after: Vec<f64>,
    ) -> Result<Self, DeviceError> {
        let layers = view.reach();
        let values = in_precision!(view.precision(), R => {
            let mut values = Vec::new();
            view.window::<R>(row, (layers, u32::MAX), &mut values)?;
            values.into_iter().map(R::to_f64).collect()
        });
        let names = view.spec().components.iter();
        Ok(Self {
            capture: VERSION,
            why: String::new(),
            field: F::NAME.into(),
            components: names.map(|component| component.name.clone()).collect(),
            precision: view.precision(),
            level: clock.level,
            time: clock.time,
            dt: clock.dt,
            width: clock.cell_width,
            patch: view.index(row),
            cell: [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)],
            after,
            layers,
            values,
            deck: String::new(),
            details: toml::Table::new(),
        })
    }

    /// Reads a capture file.
    ///
    /// # Errors
    /// The file cannot be read, is no capture, or is damaged.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file("cannot read", path))?;
        let wrong = |why: String| Error::Setup(format!("{} is no capture: {why}", path.display()));
        let capture: Self = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        if capture.capture != VERSION {
            let found = capture.capture;
            return Err(wrong(format!(
                "it has version {found}, this program reads {VERSION}"
            )));
        }
        let (count, wanted) = (capture.components.len(), capture.values.len());
        let fits = count > 0
            && capture.layers <= PATCH
            && count * (PATCH + 2 * capture.layers).pow(3) == wanted
            && capture.after.len() == count
            && capture.cell.iter().all(|&i| i < PATCH);
        match fits {
            true => Ok(capture),
            false => Err(wrong(
                "the number of values does not match its components and layers".into(),
            )),
        }
    }

    /// Returns the text of the capture file.
    #[must_use]
    pub fn text(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Returns the values with `layers` layers of ghost cells, if the capture has that many.
    #[must_use]
    pub fn block<R: Element>(&self, layers: usize) -> Option<Vec<R>> {
        let skip = self.layers.checked_sub(layers)?;
        let (n, wide) = (PATCH + 2 * layers, PATCH + 2 * self.layers);
        let at = |cell: usize| {
            let [i, j, k] = [cell % n, cell / n % n, cell / (n * n)].map(|i| i + skip);
            i + wide * (j + wide * k)
        };
        let blocks = self.values.chunks_exact(wide.pow(3));
        let inner = blocks.flat_map(|block| (0..n.pow(3)).map(move |cell| block[at(cell)]));
        Some(inner.map(R::lit).collect())
    }

    /// Returns the state of the cell before the step.
    #[must_use]
    pub fn before(&self) -> Vec<f64> {
        let block = self.block::<f64>(0).unwrap_or_default();
        let [i, j, k] = self.cell;
        let cell = i + PATCH * (j + PATCH * k);
        block.into_iter().skip(cell).step_by(PATCH.pow(3)).collect()
    }
}

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

/// Replays a function in one cell.
type Replay = dyn Fn(&World, &CellCase) -> Vec<CellCallResult> + Send + Sync;

/// Holds the sub-cycled functions that can be replayed in a [`CellCase`], by path.
#[derive(Resource, Default)]
pub struct Replays(BTreeMap<String, Box<Replay>>);

impl Replays {
    /// Registers function `M` on field `F` for replay. It stores the components and numbers that `M` reads,
    /// its largest number of calls and its parameters.
    pub fn add<F: Field, M: CellSubcycle>(
        world: &mut World,
        chosen: Components,
        numbers: Option<Arc<DerivedInputs>>,
        calls: usize,
        parameters: Parameters<M::Parameters>,
    ) where
        M::Parameters: Send + Sync,
    {
        let replay = move |world: &World, case: &CellCase| {
            let domain = &world.resource::<Topology>().domain;
            let middle = case.time + 0.5 * case.dt;
            let of_time = world.resource::<Levels>().numbers_at(middle);
            let geometry = geometry(domain, case.level, [case.time, case.dt], of_time);
            let (pool, numbers) = (Pool::<F>::of(world), numbers.as_deref());
            let parameters = parameters.at(of_time);
            pool.replay_case::<M>(case, &geometry, calls, chosen, numbers, &parameters)
        };
        let mut all = world.resource_mut::<Self>();
        all.0.insert(M::ITEM.path(), Box::new(replay));
    }

    /// Returns `true` if the function of a case can be replayed.
    pub fn contains(&self, case: &CellCase) -> bool {
        self.0.contains_key(&case.function)
    }

    /// Reads a case from a file.
    ///
    /// # Errors
    /// The file cannot be read, is no case, or is damaged.
    pub fn read(path: &Path) -> Result<CellCase, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file("cannot read", path))?;
        let path = path.display();
        CellCase::parse(&text)
            .map_err(|why| Error::Setup(format!("{path} is no captured cell: {why}")))
    }

    /// Replays a case on the host, in the simulation of its deck.
    ///
    /// # Errors
    /// The simulation has no such function, or its field has other components.
    pub fn replay(world: &World, case: &CellCase) -> Result<Vec<CellCallResult>, Error> {
        let wrong = |why: &str| Error::Setup(format!("the cell cannot be replayed: {why}"));
        let replay = world.resource::<Self>().0.get(&case.function);
        let replay = replay.ok_or_else(|| {
            let function = &case.function;
            wrong(&format!(
                "this program and deck have no sub-cycled function `{function}`"
            ))
        })?;
        let fields = world.resource::<Stores>().all();
        let field = fields
            .into_iter()
            .find(|field| field.of(world).name() == case.field);
        let names = field.map(|field| field.of(world).spec().components.clone());
        let names = names.unwrap_or_default().into_iter().map(|c| c.name);
        match names.eq(case.components.iter().cloned()) {
            true => Ok(replay(world, case)),
            false => Err(wrong("the components of the field have changed")),
        }
    }
}
