//! Cell functions of field handles in system signatures, and the further fields that they read.

use super::{FieldView, Read, Write, checked_view, fresh_before, view, view_on};
use crate::Error;
use bevy_ecs::prelude::*;
use bevy_ecs::system::{StaticSystemParam, SystemParam, SystemParamItem};
use nestar_engine_comm::Comm;
use nestar_engine_data::storage::Storage;
use nestar_engine_data::{
    CellAddress, CellCollect, CellMap, CellMark, CellSource, CellSubcycle, CellTotals, CellValue,
    FaceMap, Field, FieldList, FieldSpec, FunctionInputs, InputList, LevelRows, Pool, PoolResource,
    Precision, RecordOf, RecordedCell,
};
use nestar_engine_device::DeviceError;
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

            fn name(&self) -> &'static str {
                F::NAME
            }

            fn spec(&self) -> &FieldSpec {
                CellSource::spec(&self.pool.0)
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

            /// Returns the smallest value of `M`, as [`Pool::reduce`]. A function that reads neighbouring cells
            /// needs a declared halo.
            #[must_use]
            pub fn reduce<M: CellValue>(
                &self,
                rows: &LevelRows,
                inputs: impl FunctionInputs,
                parameters: &M::Parameters,
            ) -> f64 {
                let pool = self.read_by(rows, M::REACH);
                pool.map_or(f64::NAN, |pool| pool.reduce::<M>(rows, inputs, parameters))
            }

            /// Returns the states of single cells of any level, as [`Pool::cells`].
            ///
            /// # Errors
            /// The device fails.
            pub fn cells(
                &self,
                level: usize,
                cells: &[CellAddress],
            ) -> Result<Vec<f64>, DeviceError> {
                self.pool.0.cells(level, cells)
            }

            /// Returns the records that `M` finds in leaf cells, as [`Pool::collect`]. A function that reads
            /// neighbouring cells needs a declared halo.
            #[must_use]
            pub fn collect<M: CellCollect>(
                &self,
                rows: &LevelRows,
                inputs: impl FunctionInputs,
                parameters: &M::Parameters,
            ) -> Vec<RecordedCell<RecordOf<M>>> {
                let pool = self.read_by(rows, M::REACH);
                pool.map_or(Vec::new(), |pool| {
                    pool.collect::<M>(rows, inputs, parameters)
                })
            }

            /// Marks patches near the cells in which `M` is `true`, as [`Pool::mark`]. A function that reads
            /// neighbouring cells needs a declared halo.
            #[must_use]
            pub fn mark<M: CellMark>(
                &self,
                rows: &LevelRows,
                inputs: impl FunctionInputs,
                buffer: usize,
                parameters: &M::Parameters,
            ) -> Vec<u32> {
                let pool = self.read_by(rows, M::REACH);
                pool.map_or(Vec::new(), |pool| {
                    pool.mark::<M>(rows, inputs, buffer, parameters)
                })
            }
        }
    };
}
reads!(Read);
reads!(Write);

impl<F: Field, const DEPTH: usize> Write<'_, '_, F, DEPTH> {
    /// Updates all cells by `M`, as [`Pool::update`]. The function reads this field, then `inputs`: `()`,
    /// `&other`, `(&a, &b)`, derived inputs, or [`Around`] another field. A function that reads neighbouring
    /// cells needs a declared halo.
    pub fn update<M: CellMap>(
        &mut self,
        rows: &LevelRows,
        inputs: impl UpdateInputs,
        parameters: &M::Parameters,
    ) {
        inputs.apply::<M, F, DEPTH>(self, rows, parameters);
    }

    /// Calls `M` in every cell until it is done, at most `calls` times, as [`Pool::iterate`].
    pub fn iterate<M: CellSubcycle>(
        &mut self,
        rows: &LevelRows,
        inputs: impl FunctionInputs,
        calls: usize,
        parameters: &M::Parameters,
    ) -> CellTotals {
        let pool = &mut self.pool.0;
        pool.iterate::<M>(rows, inputs, calls, parameters)
    }

    /// Sets the states of single cells of any level, as [`Pool::set_cells`].
    pub fn set_cells(
        &mut self,
        rows: &LevelRows,
        level: usize,
        cells: &[CellAddress],
        values: &[f64],
    ) -> Option<usize> {
        self.pool.0.set_cells(rows, level, cells, values)
    }

    /// Updates all cells by the fluxes `M` through their faces, as [`Pool::flux`]. The halo that the function
    /// reads must be declared.
    pub fn flux<M: FaceMap>(&mut self, rows: &LevelRows, parameters: &M::Parameters) {
        if self.read_by(rows, M::REACH).is_none() {
            return;
        }
        match fresh_before(&self.pool.0, &self.place, M::REACH) {
            Ok(()) => self.pool.0.flux::<M>(rows, parameters),
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
    /// As [`Pool::update`].
    pub fn sweep<M: CellMap>(
        &mut self,
        rows: &LevelRows,
        inputs: impl FunctionInputs,
        sweeps: usize,
        ranks: &mut Comm,
        parameters: &M::Parameters,
    ) -> Result<(), Error> {
        for colour in [0, 1].repeat(sweeps) {
            self.refresh(ranks)?;
            self.get(M::REACH)?;
            let pool = &mut self.pool.0;
            pool.update_colour::<M>(rows, inputs.list(), colour, parameters);
        }
        Ok(())
    }
}

/// Inputs of an update: [`FunctionInputs`], or [`Around`] another field.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no input of an update",
    label = "not an input",
    note = "expected `()`, `&field`, `(&field, &field)`, `(&field, &field, &field)`, `Around(&field)`, or `&numbers` with `DerivedInputs`"
)]
pub trait UpdateInputs {
    /// Updates `field` by `M`.
    #[doc(hidden)]
    fn apply<M: CellMap, F: Field, const DEPTH: usize>(
        self,
        field: &mut Write<F, DEPTH>,
        rows: &LevelRows,
        parameters: &M::Parameters,
    );
}

impl<I: FunctionInputs> UpdateInputs for I {
    fn apply<M: CellMap, F: Field, const DEPTH: usize>(
        self,
        field: &mut Write<F, DEPTH>,
        rows: &LevelRows,
        parameters: &M::Parameters,
    ) {
        if field.read_by(rows, M::REACH).is_some() {
            field.pool.0.update::<M>(rows, self, parameters);
        }
    }
}

/// Another field whose neighbouring cells the function of an update reads. It is the first state of the
/// function; the second one is the updated field. Unphysical results are not reported.
pub struct Around<'a, 'w, 's, G: Field, const REACH: usize>(pub &'a Read<'w, 's, G, REACH>);

impl<G: Field, const REACH: usize> UpdateInputs for Around<'_, '_, '_, G, REACH> {
    fn apply<M: CellMap, F: Field, const DEPTH: usize>(
        self,
        field: &mut Write<F, DEPTH>,
        rows: &LevelRows,
        parameters: &M::Parameters,
    ) {
        if let Some(source) = self.0.read_by(rows, M::REACH) {
            let pool = &mut field.pool.0;
            pool.update_around::<M, G>(rows, source, parameters);
        }
    }
}

/// A tuple of fields whose present states a registered function reads.
pub trait OtherFields: 'static {
    /// Handles of the fields as a system parameter.
    type Handles: SystemParam + 'static;

    /// Returns the fields of a system as inputs of a function.
    fn read<'a>(handles: &'a SystemParamItem<'_, '_, Self::Handles>) -> InputList<'a>;

    /// Returns the fields of a world as inputs of a function.
    ///
    /// # Errors
    /// The name of a field that no plugin registers.
    fn of(world: &World) -> Result<InputList<'_>, &'static str>;
}

fn pool<F: Field>(world: &World) -> Result<Option<&dyn CellSource>, &'static str> {
    let pool = world.get_resource::<PoolResource<F>>().ok_or(F::NAME)?;
    Ok(Some(&pool.0))
}

impl OtherFields for () {
    type Handles = ();

    fn read((): &()) -> InputList<'_> {
        InputList::default()
    }

    fn of(_: &World) -> Result<InputList<'_>, &'static str> {
        Ok(InputList::default())
    }
}

impl<A: Field> OtherFields for (A,) {
    type Handles = Read<'static, 'static, A>;

    fn read<'a>(handle: &'a Read<'_, '_, A>) -> InputList<'a> {
        InputList::of_fields([Some(handle), None, None])
    }

    fn of(world: &World) -> Result<InputList<'_>, &'static str> {
        Ok(InputList::of_fields([pool::<A>(world)?, None, None]))
    }
}

impl<A: Field, B: Field> OtherFields for (A, B) {
    type Handles = (Read<'static, 'static, A>, Read<'static, 'static, B>);

    fn read<'a>((a, b): &'a (Read<'_, '_, A>, Read<'_, '_, B>)) -> InputList<'a> {
        InputList::of_fields([Some(a), Some(b), None])
    }

    fn of(world: &World) -> Result<InputList<'_>, &'static str> {
        let (a, b) = (pool::<A>(world)?, pool::<B>(world)?);
        Ok(InputList::of_fields([a, b, None]))
    }
}

/// A list of fields on which functions are registered.
pub trait FunctionFields: FieldList<Others: OtherFields> {}

impl<L: FieldList<Others: OtherFields>> FunctionFields for L {}

/// System parameter with the handles of all fields of a list but the first.
pub type OtherHandles<'w, 's, L> =
    StaticSystemParam<'w, 's, <<L as FieldList>::Others as OtherFields>::Handles>;
