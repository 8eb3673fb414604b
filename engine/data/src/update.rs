//! Updates a field by cell functions, also of other fields, or by the fluxes of a face function.

use super::cell_args::{
    CellJob, CellMap, CellReader, check_fit, evaluate_cell, require_cell_values, write_back,
};
use super::failure::{CalledCell, CellFault, FailureCause, locate_cell, values_of};
use super::field_spec::{Components, Correct, Element};
use super::function_inputs::{CellSource, FunctionInputs, InputList};
use super::level::{LevelRows, LevelView};
use super::pool::{BankTime, Field, Pool};
use super::quantities::{CellCube, Loops};
use super::storage::{Storage, TypedPool, with_storage};
use super::store::LevelBank;
use crate::in_precision;
use nestar_device::{CellFn, CellState, FaceFn, Real};
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::parallel;
use nestar_kernels::CELLS;
use nestar_kernels::mesh::{Rows, StateFunctions};

/// A face function that returns fluxes.
pub trait FaceMap:
    FaceFn<Result<f32>: CellState<f32>> + FaceFn<Result<f64>: CellState<f64>>
{
}

impl<M> FaceMap for M where
    M: FaceFn<Result<f32>: CellState<f32>> + FaceFn<Result<f64>: CellState<f64>>
{
}

/// A face function with its inputs on one level.
pub(super) struct FluxJob<'a, M: FaceFn> {
    pub level: LevelView<'a>,
    /// `true` if the fluxes are added to those of an earlier update in this step.
    pub adds: bool,
    pub parameters: &'a M::Parameters,
}

impl<F: Field> Pool<F> {
    /// Updates every cell of the level by the function `M`, including covered cells. All results are computed from the
    /// old states. The function reads this field, then `inputs`.
    /// An unphysical state stops the run after the schedule; the message names the place and the states before and
    /// after. Collective, also without rows. If the function reads neighbouring cells, the halo must be valid.
    ///
    /// # Panics
    /// If the function reads or returns more components than the fields have; if the fields differ in device or
    /// precision.
    pub fn update<M: CellMap>(
        &mut self,
        rows: &LevelRows,
        inputs: impl FunctionInputs,
        parameters: &M::Parameters,
    ) {
        let job = CellJob::<M>::new(rows.view(), inputs.list(), parameters);
        self.map_own(rows, &job);
    }

    /// As [`Pool::update`] for one colour of a red-black ordering: the parity of the index sum is `colour`.
    pub fn update_colour<M: CellMap>(
        &mut self,
        rows: &LevelRows,
        inputs: InputList,
        colour: usize,
        parameters: &M::Parameters,
    ) {
        let job = CellJob::<M> {
            colour: Some(colour),
            ..CellJob::new(rows.view(), inputs, parameters)
        };
        self.map_own(rows, &job);
    }

    /// As [`Pool::update`] for a function whose first state is that of `source`, whose neighbouring cells it may read;
    /// its second state is that of this field. Results are not checked for unphysical states.
    ///
    /// # Panics
    /// As [`Pool::update`]; if the states are not the leading components.
    pub fn update_around<M: CellMap, G: Field>(
        &mut self,
        rows: &LevelRows,
        source: &Pool<G>,
        parameters: &M::Parameters,
    ) {
        let own = InputList::of_fields([Some(&*self), None, None]);
        let job = CellJob::<M>::new(rows.view(), own, parameters);
        assert!(
            job.level.components.lead(),
            "`{}` updates one field from another, so both states must be the leading components",
            M::ITEM.name
        );
        self.check_map::<M>(source, &job);
        let mapped = with_storage!(&self.storage,
            typed => {
                typed.map(source, &job, self.present(rows.level()), None);
                Ok(())
            },
            _ => self.launcher().map_of(source, &job));
        rows.checked(mapped, ());
        source.check_gather_fault::<M>(rows);
        self.touch(rows.level(), rows.rows());
    }

    fn map_own<M: CellMap>(&mut self, rows: &LevelRows, job: &CellJob<M>) {
        if M::REACH > 0 {
            rows.checked(self.provide_results(&job.level), ());
        }
        self.check_map::<M>(self, job);
        let unphysical = with_storage!(&self.storage,
            typed => Ok(self.map_rows(typed, job)),
            _ => self.launcher().map(job));
        if let Some(item) = rows.checked(unphysical, None) {
            self.report_map(rows, job, item);
        }
        self.check_gather_fault::<M>(rows);
        self.touch(rows.level(), rows.rows());
    }

    /// Reports the unphysical result in cell `item`.
    fn report_map<M: CellMap>(&self, rows: &LevelRows, job: &CellJob<M>, item: u32) {
        if M::REACH > 0 {
            return self.report_pending_result(rows, M::ITEM.name, M::Result::<f64>::COUNT, item);
        }
        in_precision!(self.precision(), R => {
            self.report_call::<M, R>(rows, job, CalledCell { item, carried: &[] }, |result| FailureCause::Unphysical(values_of(&result)));
        });
    }

    fn check_map<M: CellMap>(&self, first: &dyn CellSource, job: &CellJob<M>) {
        job.check(first);
        let fits = self.fits_result::<M>(&job.level.components);
        fits.unwrap_or_else(|why| panic!("{why}"));
    }

    pub(super) fn fits_result<M: CellMap>(&self, chosen: &Components) -> Result<(), String> {
        let (returned, there) = (M::Result::<f64>::COMPONENTS, self.components());
        (self.spec).check_returned(M::ITEM.name, F::NAME, chosen, returned[0])?;
        if chosen.wanted(returned[0]) <= there && returned[1] == 0 {
            return Ok(());
        }
        let (name, returned) = (M::ITEM.name, returned.map(|n| n.to_string()).join(" + "));
        let returned = returned.trim_end_matches(" + 0");
        Err(format!(
            "field `{}`: `{name}` gives {returned} components, the field has {there}",
            F::NAME
        ))
    }

    /// Updates all rows; returns the first cell whose state would be unphysical.
    fn map_rows<M: CellFn<Result<R>: CellState<R>>, R: Loops>(
        &self,
        typed: &TypedPool<R>,
        job: &CellJob<M>,
    ) -> Option<u32> {
        let present = self.present::<R>(job.level.clock.level);
        if M::REACH == 0 {
            return typed.map(self, job, present, typed.states.as_ref());
        }
        // neighbours read the old states
        typed.map(self, job, typed.results.rows(), None);
        typed.apply_results(job.level.rows(), present, M::Result::<R>::COUNT)
    }

    /// Allocates the result buffer for updates that must not overwrite states still to be read.
    pub(super) fn provide_results(&mut self, level: &LevelView) -> Result<(), DeviceError> {
        self.keeps_results = true;
        let rows = level.topology.capacity();
        with_storage!(&mut self.storage,
            typed => typed.provide_results(rows),
            device => device.provide_results(rows))
    }

    /// Checks that a function can read this field and `inputs`.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub(super) fn fits<M: CellFn>(
        &self,
        chosen: &Components,
        inputs: &InputList,
    ) -> Result<(), String> {
        check_fit::<M>(chosen, self, inputs, 0).map_err(|why| format!("field `{}`: {why}", F::NAME))
    }

    /// Updates all cells of the level by the fluxes `M` through their faces over one step.
    /// A field with two time levels uses the states, with ghost cells, at the start of the step; otherwise the present
    /// state is used. Flux registers record the fluxes for the correction of coarse cells at synchronisation. The upper
    /// face of a periodic axis is the lower face of the first cell.
    ///
    /// For a field with one time level, the first fluxes of a step commit it. Further fluxes are added, also to a field
    /// that its own kernel has advanced. An unphysical state stops the run after the schedule; the message names the
    /// place and the states before and after. Collective, also without rows. The halo that the function reads must be
    /// valid.
    ///
    /// # Panics
    /// If the field has no flux correction; if the function reads or returns more components than the field has; if the
    /// first fluxes of a step return fewer; if a field with two time levels has not been advanced.
    pub fn flux<M: FaceMap>(&mut self, rows: &LevelRows, parameters: &M::Parameters) {
        let level = rows.view();
        let job = FluxJob::<M> {
            level,
            adds: self.time(level.clock.level) == level.clock.end,
            parameters,
        };
        self.check_fluxes(&job);
        rows.checked(self.provide_results(&level), ());
        let unphysical = with_storage!(&self.storage,
            typed => Ok(typed.update_by_fluxes(self, &job)),
            _ => self.launcher().flux(&job));
        if let Some(item) = rows.checked(unphysical, None) {
            self.report_pending_result(rows, M::ITEM.name, M::Result::<f64>::COUNT, item);
        }
        rows.check_gathered(&self.storage);
        let clock = &level.clock;
        if job.adds {
            self.touch(clock.level, level.rows());
        } else {
            rows.checked(
                self.commit(clock.level, clock.end, clock.dt, level.rows()),
                (),
            );
        }
    }

    /// Returns the bank from which the fluxes of the level are computed.
    pub fn flux_source_bank(&self, rows: &LevelRows) -> LevelBank {
        let level = rows.level();
        let BankTime { bank, .. } =
            self.flux_state(level, self.time(level) == rows.view().clock.end);
        LevelBank { level, bank }
    }

    fn check_fluxes<M: FaceMap>(&self, job: &FluxJob<M>) {
        let fits = self.fits_flux::<M>(&job.level.components);
        fits.unwrap_or_else(|why| panic!("{why}"));
        let (returned, there, name) = (M::Result::<f64>::COUNT, self.components(), M::ITEM.name);
        assert!(
            job.adds || returned == there,
            "`{name}` gives {returned} components of `{}`, which has {there}",
            F::NAME
        );
        assert!(
            job.adds || self.spec.time_levels == 1,
            "`{name}` gives fluxes of `{}` before the field is advanced",
            F::NAME
        );
    }

    pub(super) fn fits_flux<M: FaceMap>(&self, chosen: &Components) -> Result<(), String> {
        let (there, name) = (self.components(), M::ITEM.name);
        require_cell_values(name, F::NAME, &self.spec)?;
        let (read, returned) = (M::State::<f64>::COUNT, M::Result::<f64>::COUNT);
        (self.spec).check_leading(name, F::NAME, read.max(returned))?;
        let why = if self.spec.correct != Correct::Fluxes {
            "which has no flux registers: declare `correct: Correct::Fluxes`".into()
        } else if !chosen.lead() {
            "but reads the states beside a face, which must be the leading components".into()
        } else if read.max(returned) > there {
            format!("which has {there} components: it reads {read} and gives {returned}")
        } else {
            return Ok(());
        };
        Err(format!("`{name}` gives fluxes of `{}`, {why}", F::NAME))
    }

    /// Reports the cell `called` after calling the function there once more; `why` names the reason for a given result.
    /// If a formula among the inputs is not a number, the formula is reported instead.
    pub(super) fn report_call<M: CellFn, R: Loops>(
        &self,
        rows: &LevelRows,
        job: &CellJob<M>,
        called: CalledCell,
        why: impl FnOnce(M::Result<R>) -> FailureCause,
    ) {
        let result = self.replay_call::<M, R>(rows, job, called);
        if let Some(result) = rows.checked(result, None) {
            self.report(rows, M::ITEM.name, called, why(result));
        }
    }

    /// Calls the function in one cell. Returns `None` after reporting an input that is not a number.
    pub(super) fn replay_call<M: CellFn, R: Loops>(
        &self,
        rows: &LevelRows,
        job: &CellJob<M>,
        called: CalledCell,
    ) -> Result<Option<M::Result<R>>, DeviceError> {
        let (row, cell) = locate_cell(job.level.rows(), called.item);
        let (patch, geometry) = (job.level.topology.index(row), job.level.geometry());
        let mut fields = vec![self.host::<R>(rows.level(), &[row])?];
        if let Some(numbers) = job.inputs.numbers {
            let (mut made, own) = (Vec::new(), CellCube::of_patch(&fields[0], patch, &geometry));
            numbers.fill(&own, &mut made);
            if let Some(message) = numbers.fault(&own, &made, cell) {
                rows.faults().report(|| message);
                return Ok(None);
            }
            fields.push(made);
        }
        for other in job.inputs.fields() {
            let bank = other.present_bank(rows.level());
            fields.push(row_of::<R>(other.values(), bank, row, cell)?);
        }
        let chosen = &job.level.components;
        let carried: Vec<R> = called.carried.iter().map(|x| R::lit(*x)).collect();
        Ok(Some(evaluate_cell::<M, R>(
            chosen,
            &fields,
            &carried,
            &geometry,
            patch,
            cell,
            job.parameters,
        )))
    }

    /// Stops the run after the schedule because of the cell `called`, whose state is unchanged.
    pub(super) fn report(
        &self,
        rows: &LevelRows,
        function: &'static str,
        called: CalledCell,
        why: FailureCause,
    ) {
        let level = rows.view();
        let (row, cell) = locate_cell(rows.rows(), called.item);
        let (patch, geometry) = (level.topology.index(row), level.geometry());
        let state = in_precision!(self.precision(), R => {
            let values = rows.checked(self.host::<R>(rows.level(), &[row]), Vec::new());
            let own = values.iter().skip(cell).step_by(CELLS);
            own.map(|x| Real::to_f64(*x)).collect()
        });
        rows.fail(CellFault {
            function,
            field: F::NAME,
            why,
            level: rows.level(),
            patch,
            cell: [cell % 8, cell / 8 % 8, cell / 64],
            centre: CellCube::<f64>::of_patch(&[], patch, &geometry)
                .place::<f64>(cell)
                .centre,
            time: geometry.time,
            state,
            carried: called.carried.to_vec(),
        });
    }

    /// As [`Pool::report`] for an unphysical result, of `components` components, that is still in the result buffer.
    pub(super) fn report_pending_result(
        &self,
        rows: &LevelRows,
        function: &'static str,
        components: usize,
        item: u32,
    ) {
        let (row, cell) = locate_cell(rows.rows(), item);
        let waiting = in_precision!(self.precision(), R => match self.storage.typed::<R>() {
            Some(typed) => {
                let values = typed.results.rows().row(row).iter().skip(cell).step_by(CELLS);
                Ok(values.map(|x| Real::to_f64(*x)).collect())
            }
            None => self.launcher().pending_result::<R>(row, cell),
        });
        let mut result = rows.checked(waiting, Vec::new());
        result.truncate(components);
        self.report(
            rows,
            function,
            CalledCell { item, carried: &[] },
            FailureCause::Unphysical(result),
        );
    }
}

impl<R: Element> TypedPool<R> {
    /// Sets the leading components of the rows of `to` to the results of the function.
    fn map<F: Field, M: CellFn<Result<R>: CellState<R>>>(
        &self,
        first: &Pool<F>,
        job: &CellJob<M>,
        to: Rows<R>,
        states: Option<&StateFunctions<R>>,
    ) -> Option<u32>
    where
        R: Loops,
    {
        let reader = CellReader::<M, R>::new(first, job);
        let (colour, length) = (job.colour, M::Result::<R>::COUNT * CELLS);
        let target = RowTarget {
            to,
            chosen: &job.level.components,
            states,
        };
        self.fill(job.level.rows(), target, |row, block, values| {
            match colour {
                Some(_) => values.extend_from_slice(reader.row_values(row, length)),
                None => values.resize(length, R::lit(0.0)),
            }
            // arrays of constant length, so that the compiler vectorises over cells
            let values = &mut values.as_chunks_mut::<CELLS>().0[..M::Result::<R>::COUNT];
            reader.each(row, block, |cell, result| {
                result.write(&mut |_, c, value| values[c][cell] = value, 0, 0);
            });
        })
    }

    /// Copies `components` components of the result buffer to distinct `rows` of `to`; returns the first cell that
    /// would be unphysical.
    pub(super) fn apply_results(
        &self,
        rows: &[u32],
        to: Rows<R>,
        components: usize,
    ) -> Option<u32> {
        let results = self.results.rows();
        let target = RowTarget {
            to,
            chosen: &Components::default(),
            states: self.states.as_ref(),
        };
        self.fill(rows, target, |row, _, values| {
            values.extend_from_slice(&results.row(row)[..components * CELLS]);
        })
    }

    /// Sets components of distinct `rows` of a bank to the values that `make` leaves in the second scratch vector.
    /// Rows that would become unphysical keep their state. Returns the number of the first such cell.
    pub(super) fn fill(
        &self,
        rows: &[u32],
        target: RowTarget<R>,
        make: impl Fn(u32, &mut Vec<R>, &mut Vec<R>) + Sync,
    ) -> Option<u32> {
        let fill = |n: usize| {
            let row = rows[n];
            let mut scratch = self.cell_scratch.get();
            let [block, values] = &mut *scratch;
            values.clear();
            make(row, block, values);
            // SAFETY: the rows are distinct. A function that overwrites the row it reads reads no other row.
            let out = unsafe { target.to.row_mut(row) };
            let unphysical = write_back(out, target.chosen, target.states, values, block).err();
            let cell = unphysical.map(|cell| (n * CELLS + cell) as u32);
            cell.map_or(0, |cell| u64::from(u32::MAX - cell))
        };
        match parallel::max_of_indices(rows.len(), fill) {
            0 => None,
            largest => Some(u32::MAX - largest as u32),
        }
    }
}

/// Rows to update, their components, and the state functions.
pub(super) struct RowTarget<'a, R> {
    pub to: Rows<'a, R>,
    pub chosen: &'a Components,
    pub states: Option<&'a StateFunctions<R>>,
}

/// Returns the values of a row for reading the state in `cell`. On a device, only that cell is fetched and the others
/// are zero.
pub(super) fn row_of<R: Loops>(
    values: &Storage,
    bank: usize,
    row: u32,
    cell: usize,
) -> Result<Vec<R>, DeviceError> {
    match (values.typed::<R>(), values) {
        (Some(typed), _) => Ok(typed.bank(bank).row(row).to_vec()),
        (None, Storage::Device(pool)) => {
            let mut sparse = vec![];
            for value in pool.cell(bank, row, cell)? {
                sparse.resize(sparse.len() + CELLS, R::lit(0.0));
                let first = sparse.len() - CELLS;
                sparse[first + cell] = R::lit(value);
            }
            Ok(sparse)
        }
        _ => panic!("all fields of a function have the same precision and device"),
    }
}
