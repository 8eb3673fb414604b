//! Cell functions of field handles in system signatures.

use super::{FieldView, Read, Write, checked_view, fresh_before, view, view_on};
use crate::Error;
use nestar_engine_comm::Comm;
use nestar_engine_data::criteria::CriteriaList;
use nestar_engine_data::storage::Storage;
use nestar_engine_data::{
    CellMap, CellMark, CellSource, CellSubcycle, CellTotals, CellValue, DerivedInputs, FaceMap,
    Field, LevelRows, Pool, Precision,
};
use std::sync::atomic::Ordering::Relaxed;

macro_rules! reads {
    ($handle:ident) => {
        impl<F: Field, const DEPTH: usize> CellSource for $handle<'_, '_, F, DEPTH> {
            fn values(&self) -> &Storage {
                self.pool.0.values()
            }

            fn present_bank(&self, level: usize) -> usize {
                CellSource::present_bank(&self.pool.0, level)
            }

            fn count(&self) -> usize {
                self.pool.0.count()
            }

            fn side(&self) -> usize {
                self.pool.0.side()
            }
        }

        impl<F: Field, const DEPTH: usize> $handle<'_, '_, F, DEPTH> {
            /// Returns the field on the current level with `reach` halo layers.
            ///
            /// # Errors
            /// The system declares fewer layers, or fewer are up to date.
            pub fn get(&self, reach: usize) -> Result<FieldView<'_, F>, Error> {
                self.get_on(self.place.rows.level(), reach)
            }

            /// Returns the field as `get`, on any level.
            ///
            /// # Errors
            /// As `get`.
            pub fn get_on(&self, level: usize, reach: usize) -> Result<FieldView<'_, F>, Error> {
                checked_view(&self.pool.0, &self.place, level, &self.declared.0, reach)
            }

            /// Returns the own rows of the field on any level.
            #[must_use]
            pub fn own_on(&self, level: usize) -> FieldView<'_, F> {
                view_on(&self.pool.0, &self.place, level, 0)
            }

            /// Returns the own rows of the field on the current level.
            #[must_use]
            pub fn own(&self) -> FieldView<'_, F> {
                view(&self.pool.0, &self.place, 0)
            }

            /// Returns the precision of the values.
            #[must_use]
            pub fn precision(&self) -> Precision {
                self.pool.0.precision()
            }

            /// Returns the halo width that the system declares.
            #[must_use]
            pub fn halo_width(&self) -> usize {
                self.declared.0.depth.load(Relaxed)
            }

            /// Returns the field if the halo that a function reads is declared and up to date. Otherwise it
            /// stops the run after the schedule.
            fn read_by(&self, rows: &LevelRows, reach: usize) -> Option<&Pool<F>> {
                let view = self.get(reach);
                view.map_err(|error| rows.fail(error))
                    .ok()
                    .map(|view| view.pool)
            }

            /// Computes a minimum as [`Pool::smallest`]. Functions that read neighbouring cells need a
            /// declared halo.
            #[must_use]
            pub fn smallest<M: CellValue>(
                &self,
                rows: &LevelRows,
                parameters: &M::Parameters,
            ) -> f64 {
                let pool = self.read_by(rows, M::REACH);
                pool.map_or(f64::NAN, |pool| pool.smallest::<M>(rows, parameters))
            }

            /// Computes a minimum as [`Pool::smallest_by`].
            #[must_use]
            pub fn smallest_by<M: CellValue>(
                &self,
                rows: &LevelRows,
                numbers: &DerivedInputs,
                parameters: &M::Parameters,
            ) -> f64 {
                self.pool.0.smallest_by::<M>(rows, numbers, parameters)
            }

            /// Marks rows as [`Pool::marked`]. Functions that read neighbouring cells need a declared halo.
            #[must_use]
            pub fn marked<M: CellMark>(
                &self,
                rows: &LevelRows,
                buffer: usize,
                parameters: &M::Parameters,
            ) -> Vec<u32> {
                let pool = self.read_by(rows, M::REACH);
                pool.map_or(Vec::new(), |pool| {
                    pool.marked::<M>(rows, buffer, parameters)
                })
            }

            /// Marks rows as [`Pool::marked_by`]. Functions that read neighbouring cells need a declared
            /// halo.
            #[must_use]
            pub fn marked_by(
                &self,
                rows: &LevelRows,
                buffer: usize,
                marks: &CriteriaList,
            ) -> Vec<u32> {
                let pool = self.read_by(rows, marks.reach());
                pool.map_or(Vec::new(), |pool| pool.marked_by(rows, buffer, marks))
            }
        }
    };
}
reads!(Read);
reads!(Write);

impl<F: Field, const DEPTH: usize> Write<'_, '_, F, DEPTH> {
    /// Updates cells as [`Pool::map_cells`]. Functions that read neighbouring cells need a declared halo.
    pub fn map_cells<M: CellMap>(&mut self, rows: &LevelRows, parameters: &M::Parameters) {
        self.map_with::<M>(rows, &[], parameters);
    }

    /// Updates cells as [`Pool::map_with`]; handles of other fields are sources too.
    pub fn map_with<M: CellMap>(
        &mut self,
        rows: &LevelRows,
        others: &[&dyn CellSource],
        parameters: &M::Parameters,
    ) {
        if self.read_by(rows, M::REACH).is_some() {
            self.pool.0.map_with::<M>(rows, others, parameters);
        }
    }

    /// Updates cells as [`Pool::map_of`] from `source`, whose neighbouring cells may be read, this field and
    /// `others`.
    pub fn map_of<M: CellMap, G: Field, const REACH: usize>(
        &mut self,
        rows: &LevelRows,
        source: &Read<G, REACH>,
        others: &[&dyn CellSource],
        parameters: &M::Parameters,
    ) {
        if let Some(source) = source.read_by(rows, M::REACH) {
            self.pool.0.map_of::<M, G>(rows, source, others, parameters);
        }
    }

    /// Sub-cycles cells as [`Pool::map_attempts`].
    pub fn map_attempts<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        calls: usize,
        parameters: &M::Parameters,
    ) {
        self.pool.0.map_attempts::<M>(rows, calls, parameters);
    }

    /// Sub-cycles cells as [`Pool::map_attempts_with`]; handles of other fields are sources too.
    pub fn map_attempts_with<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        others: &[&dyn CellSource],
        calls: usize,
        parameters: &M::Parameters,
    ) -> CellTotals {
        let pool = &mut self.pool.0;
        pool.map_attempts_with::<M>(rows, others, calls, parameters)
    }

    /// Sub-cycles cells as [`Pool::map_attempts_by`].
    pub fn map_attempts_by<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        numbers: &DerivedInputs,
        calls: usize,
        parameters: &M::Parameters,
    ) -> CellTotals {
        let pool = &mut self.pool.0;
        pool.map_attempts_by::<M>(rows, numbers, calls, parameters)
    }

    /// Updates cells as [`Pool::map_by`].
    pub fn map_by<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        numbers: &DerivedInputs,
        parameters: &M::Parameters,
    ) -> CellTotals {
        self.pool.0.map_by::<M>(rows, numbers, parameters)
    }

    /// Computes fluxes as [`Pool::fluxes`]. The halo that the function reads must be declared.
    pub fn fluxes<M: FaceMap>(&mut self, rows: &LevelRows, parameters: &M::Parameters) {
        if self.read_by(rows, M::REACH).is_none() {
            return;
        }
        match fresh_before(&self.pool.0, &self.place, M::REACH) {
            Ok(()) => self.pool.0.fluxes::<M>(rows, parameters),
            Err(error) => rows.fail(error),
        }
    }

    /// Applies `M` in red-black sweeps: first to cells with an even index sum, then to the others. Each half
    /// sweep reads the results of the previous one; stale halos are exchanged in between.
    ///
    /// # Errors
    /// As [`Write::refresh`].
    ///
    /// # Panics
    /// As [`Pool::map_with`].
    pub fn sweep<M: CellMap>(
        &mut self,
        rows: &LevelRows,
        ranks: &mut Comm,
        sweeps: usize,
        others: &[&dyn CellSource],
        parameters: &M::Parameters,
    ) -> Result<(), Error> {
        for colour in [0, 1].repeat(sweeps) {
            self.refresh(ranks)?;
            self.get(M::REACH)?;
            self.pool
                .0
                .map_colour::<M>(rows, others, colour, parameters);
        }
        Ok(())
    }
}
