//! Maps: a field takes the results of a function of its cells, or of another field's.

use super::cell_fault::{FailureCause, values_of};
use super::cells::{CellJob, CellMap, CellSource};
use super::components::Components;
use super::element::Element;
use super::level::{LevelRows, LevelView};
use super::listed::Loops;
use super::pool::{Field, Pool};
use super::reader::CellReader;
use super::storage::{TypedPool, with_storage};
use super::taken::write_back;
use crate::device::DeviceError;
use crate::in_precision;
use nestar_device::{CellFn, CellState};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::{Rows, StateFunctions};
use rayon::prelude::*;

impl<F: Field> Pool<F> {
    /// Every cell of the level at hand, covered ones included, takes the result of `M` there, where the pool lives; all results are
    /// made of the states before. What goes wrong stops the run after the schedule, with the place and the states before and after of
    /// a cell whose state would not be sound. All ranks call it, also without rows. The copies that a function of a cell's
    /// surroundings reads must be up to date.
    ///
    /// # Panics
    /// If the function reads or gives more components than the field has.
    pub fn map_cells<M: CellMap>(&mut self, rows: &LevelRows, parameters: &M::Parameters) {
        self.map_with::<M>(rows, &[], parameters);
    }

    /// As [`Pool::map_cells`] for a function that reads the present states of other fields too.
    ///
    /// # Panics
    /// As [`Pool::map_cells`]; if a field lives elsewhere or has the other precision.
    pub fn map_with<M: CellMap>(
        &mut self,
        rows: &LevelRows,
        others: &[&dyn CellSource],
        parameters: &M::Parameters,
    ) {
        let job = CellJob::<M> {
            others,
            ..CellJob::new(rows.view(), parameters)
        };
        self.map_own(rows, &job);
    }

    /// As [`Pool::map_with`] for the cells of which the sum of the indices has the parity `colour`.
    pub(crate) fn map_colour<M: CellMap>(
        &mut self,
        rows: &LevelRows,
        others: &[&dyn CellSource],
        colour: usize,
        parameters: &M::Parameters,
    ) {
        let job = CellJob::<M> {
            others,
            colour: Some(colour),
            ..CellJob::new(rows.view(), parameters)
        };
        self.map_own(rows, &job);
    }

    /// As [`Pool::map_with`] for a function whose first field is `source`: its further fields are this one, then `others`.
    ///
    /// # Panics
    /// As [`Pool::map_with`]; with more than two `others`.
    pub fn map_of<M: CellMap, G: Field>(
        &mut self,
        rows: &LevelRows,
        source: &Pool<G>,
        others: &[&dyn CellSource],
        parameters: &M::Parameters,
    ) {
        let (first, others) = (&*self as &dyn CellSource, others);
        let all = match *others {
            [] => [first; 3],
            [a] => [first, a, a],
            [a, b] => [first, a, b],
            _ => panic!("{} reads too many fields", M::ITEM.name),
        };
        let job = CellJob::<M> {
            others: &all[..=others.len()],
            ..CellJob::new(rows.view(), parameters)
        };
        assert!(
            job.level.components.lead(),
            "{} maps one field to another: their components are the leading ones",
            M::ITEM.name
        );
        self.check_map::<M>(source, &job);
        let mapped = with_storage!(&self.storage,
            typed => {
                typed.map(source, &job, self.present(rows.level()), None);
                Ok(())
            },
            _ => self.map_of_on_device(source, &job));
        rows.checked(mapped, ());
        source.gathered::<M>(rows);
        self.touch(rows.level(), rows.rows());
    }

    fn map_own<M: CellMap>(&mut self, rows: &LevelRows, job: &CellJob<M>) {
        if M::REACH > 0 {
            rows.checked(self.provide_results(&job.level), ());
        }
        self.check_map::<M>(self, job);
        let unsound = with_storage!(&self.storage,
            typed => Ok(self.map_rows(typed, job)),
            _ => self.map_on_device(job));
        if let Some(item) = rows.checked(unsound, None) {
            self.report_map(rows, job, item);
        }
        self.gathered::<M>(rows);
        self.touch(rows.level(), rows.rows());
    }

    /// Stops the run after the schedule: the function's result in a cell is not sound.
    fn report_map<M: CellMap>(&self, rows: &LevelRows, job: &CellJob<M>, item: u32) {
        if M::REACH > 0 {
            return self.report_pending_result(rows, M::ITEM.name, M::Result::<f64>::COUNT, item);
        }
        in_precision!(self.precision(), R => {
            self.report_call::<M, R>(rows, job, (item, &[]), |given| FailureCause::Unphysical(values_of(&given)));
        });
    }

    fn check_map<M: CellMap>(&self, first: &dyn CellSource, job: &CellJob<M>) {
        job.check(first);
        let fits = self.fits_result::<M>(&job.level.components);
        fits.unwrap_or_else(|why| panic!("{why}"));
    }

    /// Whether a map of this field alone can read it and write its results.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn fits_map<M: CellMap>(&self, chosen: &Components) -> Result<(), String> {
        self.fits::<M>(chosen)?;
        self.fits_result::<M>(chosen)
    }

    fn fits_result<M: CellMap>(&self, chosen: &Components) -> Result<(), String> {
        let (given, there) = (M::Result::<f64>::COMPONENTS, self.components());
        if chosen.wanted(given[0]) <= there && given[1] == 0 {
            return Ok(());
        }
        let (name, given) = (M::ITEM.name, given.map(|n| n.to_string()).join(" + "));
        let given = given.trim_end_matches(" + 0");
        Err(format!(
            "field `{}`: `{name}` gives {given} components, the field has {there}",
            F::NAME
        ))
    }

    /// The first cell that would not be sound.
    fn map_rows<M: CellFn<Result<R>: CellState<R>>, R: Loops>(
        &self,
        typed: &TypedPool<R>,
        job: &CellJob<M>,
    ) -> Option<u32> {
        let present = self.present::<R>(job.level.clock.level);
        if M::REACH == 0 {
            return typed.map(self, job, present, typed.states.as_ref());
        }
        // neighbours read the states before
        typed.map(self, job, typed.results.rows(), None);
        typed.take(job.level.rows(), present, M::Result::<R>::COUNT)
    }

    /// Makes room for results that must wait until all are made.
    pub(super) fn provide_results(&mut self, level: &LevelView) -> Result<(), DeviceError> {
        self.keeps_results = true;
        let rows = level.topology.capacity();
        with_storage!(&mut self.storage,
            typed => typed.provide_results(rows),
            device => device.provide_results(rows))
    }
}

impl<R: Element> TypedPool<R> {
    /// Sets the leading values of rows of `to` to the function's results.
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
        let target = (to, &job.level.components, states);
        self.fill(job.level.rows(), target, |row, block, values| {
            match colour {
                Some(_) => values.extend_from_slice(reader.own(row, length)),
                None => values.resize(length, R::lit(0.0)),
            }
            // of a length that the compiler knows, so that vectors of cells go together
            let values = &mut values.as_chunks_mut::<CELLS>().0[..M::Result::<R>::COUNT];
            reader.each(row, block, |cell, result| {
                result.write(&mut |_, c, value| values[c][cell] = value, 0, 0);
            });
        })
    }

    /// The results that wait, of so many components, go to distinct `rows` of `to`; the first cell that would not be sound.
    pub(super) fn take(&self, rows: &[u32], to: Rows<R>, components: usize) -> Option<u32> {
        let results = self.results.rows();
        let target = (to, &Components::default(), self.states.as_ref());
        self.fill(rows, target, |row, _, values| {
            values.extend_from_slice(&results.row(row)[..components * CELLS]);
        })
    }

    /// Sets components of distinct `rows` of a bank to the values that `make` leaves in the second working space. Rows with a state
    /// that would not be sound stay as they are; the first such cell, by the position of its row among `rows`, times 512, plus the
    /// cell.
    pub(super) fn fill(
        &self,
        rows: &[u32],
        (to, chosen, states): Target<R>,
        make: impl Fn(u32, &mut Vec<R>, &mut Vec<R>) + Sync,
    ) -> Option<u32> {
        let fill = |(n, &row): (usize, &u32)| {
            let mut scratch = self.cell_scratch.get();
            let [block, values] = &mut *scratch;
            values.clear();
            make(row, block, values);
            // SAFETY: the rows are distinct, and what is made of this row of `to` has been read by now: only functions of
            // cells alone write where they read.
            let out = unsafe { to.row_mut(row) };
            let unsound = write_back(out, (chosen, states), values, block).err();
            unsound.map(|cell| (n * CELLS + cell) as u32)
        };
        let unsound = rows.par_iter().enumerate().filter_map(fill);
        unsound.min()
    }
}

/// The rows that take results, the components that do, and what is known of the states.
type Target<'a, R> = (Rows<'a, R>, &'a Components, Option<&'a StateFunctions<R>>);
