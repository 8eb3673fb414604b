//! Reads the quantities of a view.
//!
//! Only components that the view reads are copied from the stores, only of patches that it uses, and values are computed in double
//! precision. A device computes sums along an axis itself, in the precision of the run, if one store has all inputs; so does the
//! host then. The bits do not depend on the number of ranks, threads and devices.

use super::inputs::Inputs;
use super::{Accumulator, PatchCells, Quantity, View};
use nestar_engine_data::level::geometry;
use nestar_engine_data::{ColumnSums, DerivedInputs, MeshContext, StoreRef, sum_columns};
use nestar_engine_device::parallel::lock;
use nestar_engine_mesh::{Levels, Topology};
use nestar_engine_step::{Engine, Error};
use nestar_kernels::mesh::block::LevelGeometry;
use nestar_kernels::mesh::columns::COLUMNS;
use nestar_kernels::{CELLS, PATCH};
use rayon::prelude::*;
use std::sync::Mutex;

/// Patches whose components or sums are read together.
const BATCH: usize = 4096;
const COLUMN_BATCH: usize = 16384;

/// A view and what its quantities are computed from.
pub(super) struct ViewReader {
    /// The view.
    pub view: Box<dyn View>,
    inputs: Inputs,
    /// The store of all inputs, if the view needs only sums along an axis: the device computes them.
    columns: Option<(StoreRef, DerivedInputs)>,
    /// Memory of sums that is used again: new memory would take longer than the copy from a device.
    spare: Mutex<Vec<Vec<f64>>>,
}

/// Patches of a level that are read together.
pub(super) struct PatchBatch {
    geometry: LevelGeometry,
    rows: Vec<u32>,
    /// Indices of the patches.
    pub patches: Vec<[i32; 3]>,
}

/// Values that were read for the patches of a batch.
pub(super) enum ReadValues {
    /// Components, `[component][patch][512]`.
    Cells(Vec<Vec<f64>>),
    /// Sums along an axis, `[patch][quantity][64]`.
    Columns(Vec<f64>),
}

impl ViewReader {
    /// Finds the components that a view reads. Starts compilations for a device.
    ///
    /// # Errors
    /// A store is not registered.
    pub fn new(sim: &Engine, view: Box<dyn View>) -> Result<Self, Error> {
        let inputs = Inputs::new(sim, view.quantities())?;
        let mut columns = None;
        if let (Some(_), Some(store)) = (view.columns(), inputs.store()) {
            let numbers = view.quantities().iter().map(Quantity::in_store).collect();
            let numbers = DerivedInputs::new(numbers);
            store.of(&sim.world).prepare_column_sums(&numbers);
            columns = Some((store, numbers));
        }
        Ok(Self {
            view,
            inputs,
            columns,
            spare: Mutex::default(),
        })
    }

    /// Returns memory to read into.
    pub fn memory(&self) -> ReadValues {
        match lock(&self.spare).pop() {
            Some(sums) => ReadValues::Columns(sums),
            None => ReadValues::Cells(Vec::new()),
        }
    }

    /// Takes memory back.
    pub fn reuse(&self, read: ReadValues) {
        if let ReadValues::Columns(sums) = read {
            lock(&self.spare).push(sums);
        }
    }

    /// Returns the batches of patches of this rank that the view uses.
    pub fn batches(&self, sim: &Engine) -> Vec<PatchBatch> {
        let (topology, view) = (sim.world.resource::<Topology>(), &*self.view);
        let size = match self.columns {
            Some(_) => COLUMN_BATCH,
            None => BATCH,
        };
        let mut batches = Vec::new();
        for level in 0..=topology.finest().min(view.finest()) {
            let levels = sim.world.resource::<Levels>();
            let time = levels.time(level);
            let numbers = levels.numbers_at(time);
            let geometry = geometry(&topology.domain, level, [time, 0.0], numbers);
            let used = |&row: &u32| {
                let whole = level == view.finest() || topology.is_leaf(row);
                whole && view.uses(&geometry, topology.index(row))
            };
            let mut rows: Vec<u32> = topology.rows(level).iter().copied().filter(used).collect();
            rows.par_sort_by_key(|&row| view.place(topology.index(row)));
            batches.extend(rows.chunks(size).map(|rows| PatchBatch {
                geometry,
                rows: rows.to_vec(),
                patches: rows.iter().map(|&row| topology.index(row)).collect(),
            }));
        }
        batches
    }

    /// Returns the bytes that are read for a patch.
    pub fn patch_bytes(&self) -> usize {
        size_of::<f64>()
            * match self.columns {
                Some(_) => self.view.quantities().len() * COLUMNS,
                None => self.inputs.len() * CELLS,
            }
    }

    /// Reads the components in the patches of a batch, or sums along an axis, into `read`, whose memory is used again.
    ///
    /// # Errors
    /// The device fails.
    pub fn read(
        &self,
        sim: &Engine,
        batch: &PatchBatch,
        read: &mut ReadValues,
    ) -> Result<(), Error> {
        let level = batch.geometry.level as usize;
        if let (Some((store, quantities)), Some(rule)) = (&self.columns, self.view.columns()) {
            let factors = |&patch: &[i32; 3]| self.view.factors(level, patch);
            let factors: Vec<[f64; PATCH]> = batch.patches.par_iter().map(factors).collect();
            let around = MeshContext::of(&sim.world);
            let wanted = ColumnSums {
                quantities,
                weighted: rule.weighted,
                axis: rule.axis,
                rows: &batch.rows,
                factors: &factors,
            };
            let mut sums = match read {
                ReadValues::Columns(sums) => std::mem::take(sums),
                ReadValues::Cells(_) => Vec::new(),
            };
            if (store.of(&sim.world)).column_sums(&around, level, &wanted, &mut sums)? {
                *read = ReadValues::Columns(sums);
                return Ok(());
            }
        }
        *read = ReadValues::Cells(self.inputs.read(sim, level, &batch.rows)?);
        Ok(())
    }

    /// Adds the cells of a batch, a share of the patches to each accumulator.
    pub fn add(
        &self,
        batch: &PatchBatch,
        read: &ReadValues,
        parts: &mut [Box<dyn Accumulator + '_>],
    ) {
        let share = batch.patches.len().div_ceil(parts.len());
        let shares = batch.patches.par_chunks(share).enumerate();
        parts
            .par_iter_mut()
            .zip(shares)
            .for_each(|(part, (n, patches))| {
                let mut cells = BatchCells::new(self, &batch.geometry, read);
                for (number, &patch) in (n * share..).zip(patches) {
                    part.add(&cells.of(number, patch));
                }
            });
    }
}

/// Computes the quantities of a view in one patch after the other.
struct BatchCells<'a> {
    reader: &'a ViewReader,
    geometry: &'a LevelGeometry,
    read: &'a ReadValues,
    /// Working memory: the inputs of a quantity, all quantities, and their sums.
    state: Vec<f64>,
    values: Vec<f64>,
    sums: Vec<f64>,
}

impl<'a> BatchCells<'a> {
    fn new(reader: &'a ViewReader, geometry: &'a LevelGeometry, read: &'a ReadValues) -> Self {
        Self {
            reader,
            geometry,
            read,
            state: Vec::new(),
            values: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Returns the quantities in patch `number` of the batch.
    fn of(&mut self, number: usize, patch: [i32; 3]) -> PatchCells<'_> {
        let (level, view) = (self.geometry.level as usize, &*self.reader.view);
        let columns = view.quantities().len() * COLUMNS;
        let values = match self.read {
            ReadValues::Columns(sums) => &sums[number * columns..][..columns],
            ReadValues::Cells(read) => {
                self.evaluate(read, number, patch);
                match view.columns() {
                    None => &self.values[..],
                    Some(rule) => {
                        self.sums.resize(columns, 0.0);
                        let factors = view.factors(level, patch);
                        let value = |at: usize| self.values[at];
                        sum_columns(value, rule.axis, &factors, rule.weighted, &mut self.sums);
                        &self.sums[..]
                    }
                }
            }
        };
        PatchCells {
            level,
            patch,
            geometry: self.geometry,
            values,
        }
    }

    /// Computes the quantities, `[quantity][512]`.
    fn evaluate(&mut self, read: &[Vec<f64>], number: usize, patch: [i32; 3]) {
        let quantities = self.reader.view.quantities();
        self.values.resize(quantities.len() * CELLS, 0.0);
        for (n, out) in self.values.chunks_mut(CELLS).enumerate() {
            let inputs = &self.reader.inputs;
            inputs.gather(n, read, number, &mut self.state);
            (quantities[n].number).fill_patch(&self.state, patch, self.geometry, out);
        }
    }
}
