//! What a function was given in a cell where it has come to no good end, and its calls there once more.

use super::Precision;
use super::attempts::{CellAttempt, MOST_CARRIED, OfRow, Stop, Sums};
use super::cell_fault::{place_of_item, row_of, values_of};
use super::cells::{Job, Reader};
use super::components::Components;
use super::level::LevelRows;
use super::listed::Loops;
use super::numbers::Numbers;
use super::pool::{Field, Pool};
use crate::in_precision;
use crate::mesh::Topology;
use crate::step::{Engine, Error};
use bevy_ecs::prelude::*;
use nestar_device::{CellFn, CellState, Real};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::Rows;
use nestar_kernels::mesh::attempt::{Attempted, FAILED, UNFINISHED, WAITING};
use nestar_kernels::mesh::block::LevelGeometry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Version of the format.
const VERSION: u32 = 1;

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
pub struct Called {
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
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, is none that a run has written, or is damaged.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::file("cannot read", path))?;
        let wrong = |why: String| {
            let path = path.display();
            Error::Setup(format!("{path} holds no cell of a run: {why}"))
        };
        let case: Self = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        if case.cell_case != VERSION {
            let found = case.cell_case;
            return Err(wrong(format!(
                "it has version {found}, this program reads {VERSION}"
            )));
        }
        match case.cell.iter().all(|&i| i < 8) && case.components.len() == case.state.len() {
            true => Ok(case),
            false => Err(wrong("its numbers do not fit together".into())),
        }
    }

    /// The text of a file.
    #[must_use]
    pub fn text(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// The cell's number in its patch.
    fn number(&self) -> usize {
        let [i, j, k] = self.cell;
        i + 8 * (j + 8 * k)
    }
}

impl<F: Field> Pool<F> {
    /// Keeps what the function was given in a cell that ends the run.
    pub(super) fn keep_case<M: CellFn<Result<R>: Attempted<R>>, R: Loops>(
        &self,
        rows: &LevelRows,
        job: &Job<M>,
        stop: &Stop,
    ) {
        let (level, geometry) = (rows.level(), job.level.geometry());
        let (row, cell) = place_of_item(job.level.rows(), stop.item);
        let of_cell = |values: Vec<R>| -> Vec<f64> {
            let own = values.iter().skip(cell).step_by(CELLS);
            own.map(|x| Real::to_f64(*x)).collect()
        };
        let others = job.others.iter().map(|other| {
            let values = row_of::<R>(other.values(), other.present_bank(level), row, cell);
            values.map(of_cell)
        });
        let others = rows.checked(others.collect(), Vec::new());
        let called = self.call_again::<M, R>(rows, job, (stop.item, &stop.carried));
        let Some(called) = rows.checked(called, None) else {
            return;
        };
        rows.faults().keep(CellCase {
            cell_case: VERSION,
            why: String::new(),
            function: M::ITEM.path(),
            field: F::NAME.into(),
            precision: self.precision(),
            level,
            time: geometry.time,
            dt: geometry.dt,
            patch: job.level.topology.index(row),
            cell: [cell % 8, cell / 8 % 8, cell / 64],
            calls: stop.call,
            components: self
                .spec
                .components
                .iter()
                .map(|c| c.name.clone())
                .collect(),
            state: of_cell(rows.checked(self.host::<R>(level, &[row]), Vec::new())),
            others,
            carried: stop.carried.clone(),
            given: values_of(&called.attempt().state),
            folder: String::new(),
            deck: String::new(),
        });
    }

    /// The calls of an attempt in the cell of `case`, up to `most` of them in the step but one at least: the same bits as in a run.
    fn calls<M: CellFn<Result<R>: Attempted<R>>, R: Loops>(
        &self,
        case: &CellCase,
        (geometry, most): (&LevelGeometry, usize),
        (chosen, numbers): (Components, Option<&Numbers>),
        given: &M::Parameters,
    ) -> Vec<Called> {
        // a patch of cells that are all like this one
        let spread = |state: &Vec<f64>| -> Vec<R> {
            let cells = state.iter().flat_map(|x| [R::lit(*x); CELLS]);
            cells.collect()
        };
        let (mut own, mut others) = (spread(&case.state), Vec::new());
        others.extend(case.others.iter().map(spread));
        let slabs: Vec<[*mut R; 1]> = std::iter::once(&mut own)
            .chain(&mut others)
            .map(|values| [values.as_mut_ptr()])
            .collect();
        let rows = slabs
            .iter()
            .zip(std::iter::once(&case.state).chain(&case.others));
        let rows = rows.map(|(slab, state)| {
            // SAFETY: each vector has a row of so many values, and outlives the reader.
            unsafe { Rows::new(slab, 0, state.len() * CELLS) }
        });
        let rows: Vec<Rows<R>> = rows.collect();
        let index = [case.patch];
        let reader =
            Reader::<M, R>::alone(self, &rows, (chosen, numbers), (geometry, &index), given);
        let mut kept = [R::lit(0.0); MOST_CARRIED];
        kept.iter_mut()
            .zip(&case.carried)
            .for_each(|(kept, x)| *kept = R::lit(*x));
        let mut working = [Vec::new(), Vec::new()];
        reader.gather(0, &mut working[0]);
        let mut all = Vec::new();
        // SAFETY: nobody else holds the row while it is called.
        let row = unsafe { rows[0].row_mut(0) };
        for _ in case.calls..most.max(case.calls + 1) {
            let called = one_call(&reader, case.number(), row, &mut working, &mut kept);
            let again = ["unfinished", "waiting"].contains(&called.status);
            all.push(called);
            if !again {
                break;
            }
        }
        all
    }
}

/// A call, after which the row has the new state.
fn one_call<M: CellFn<Result<R>: Attempted<R>>, R: Loops>(
    reader: &Reader<M, R>,
    cell: usize,
    row: &mut [R],
    working: &mut [Vec<R>; 2],
    kept: &mut [R; MOST_CARRIED],
) -> Called {
    let result = reader.call(0, [row, &working[0]], kept, cell).attempt();
    let mut made = OfRow::new(Sums::<M, R>::COUNT, true);
    made.attempt(reader, (0, 0, cell), row, working, (1, kept));
    let status = match result.status {
        FAILED => "failed",
        _ if made.has_failed() => "unsound",
        UNFINISHED => "unfinished",
        WAITING => "waiting",
        _ => "done",
    };
    let own = row.iter().skip(cell).step_by(CELLS);
    Called {
        status,
        given: values_of(&result.state),
        state: own.map(|x| Real::to_f64(*x)).collect(),
        carried: values_of(&result.carried),
        sums: values_of(&result.sums),
        work: result.work,
    }
}

/// Calls a function in a cell again.
type Replay = dyn Fn(&World, &CellCase) -> Vec<Called> + Send + Sync;

/// The attempts that can be called again in a [`CellCase`], by their paths.
#[derive(Resource, Default)]
pub struct Replays(BTreeMap<String, Box<Replay>>);

impl Replays {
    /// Lets attempts by `M` on field `F` be called again: with the components and numbers that they read, so many calls at most, and their
    /// parameters.
    pub fn add<F: Field, M: CellAttempt>(
        sim: &mut Engine,
        (chosen, numbers): (Components, Option<Arc<Numbers>>),
        calls: usize,
        given: Arc<M::Parameters>,
    ) where
        M::Parameters: Send + Sync,
    {
        let replay = move |world: &World, case: &CellCase| {
            let domain = &world.resource::<Topology>().domain;
            let geometry = LevelGeometry {
                left: domain.left_edge,
                right: domain.right_edge,
                cells: domain.cells(case.level),
                level: case.level as i32,
                width: domain.cell_width(case.level),
                time: case.time,
                dt: case.dt,
            };
            let (pool, read) = (Pool::<F>::of(world), (chosen, numbers.as_deref()));
            in_precision!(case.precision, R => {
                pool.calls::<M, R>(case, (&geometry, calls), read, &given)
            })
        };
        let mut all = sim.world.resource_mut::<Self>();
        all.0.insert(M::ITEM.path(), Box::new(replay));
    }

    /// The calls of a case on the host, in the simulation of its deck.
    ///
    /// # Errors
    /// The simulation has no such function, or its fields are others.
    pub fn replay(world: &World, case: &CellCase) -> Result<Vec<Called>, Error> {
        let wrong = |why: &str| Error::Setup(format!("the cell cannot be called again: {why}"));
        let replay = world.resource::<Self>().0.get(&case.function);
        let replay = replay.ok_or_else(|| {
            let function = &case.function;
            wrong(&format!(
                "`{function}` is no function of this program and deck that is called again in cells"
            ))
        })?;
        let fields = world.resource::<super::Stores>().all();
        let field = fields
            .into_iter()
            .find(|field| field.of(world).name() == case.field);
        let names = field.map(|field| field.of(world).spec().components.clone());
        let names = names.unwrap_or_default().into_iter().map(|c| c.name);
        match names.eq(case.components.iter().cloned()) {
            true => Ok(replay(world, case)),
            false => Err(wrong("the field has other components now")),
        }
    }
}
