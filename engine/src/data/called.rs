//! Cells on the host, as functions are called with them.

use super::components::Components;
use nestar_device::{CellFn, CellInputs, Place, Precise, Real};
use nestar_kernels::CELLS;
use nestar_kernels::mesh::MAX_COMPONENTS;
use nestar_kernels::mesh::block::{LevelGeometry, cell_place};

/// Fields that a function may read.
pub(super) const FIELDS: usize = 4;

/// A function's result in a cell of a patch of which the fields' values are `fields`; `carried` is what an earlier call hands on.
pub(super) fn evaluate_cell<M: CellFn, R: Real>(
    (chosen, fields, carried): (&Components, &[Vec<R>], &[R]),
    (geometry, index): (&LevelGeometry, [i32; 3]),
    cell: usize,
    given: &M::Parameters,
) -> M::Result<R> {
    let at = HostCell {
        fields: &std::array::from_fn(|n| fields.get(n).map_or(&[][..], |values| values)),
        chosen,
        block: &[],
        geometry,
        index,
        cell,
    };
    let (field, values) = (fields.len(), carried);
    M::call(&RepeatedCell { at, field, values }, &given.precise::<R>())
}

/// A cell on the host.
pub(super) struct HostCell<'a, R> {
    pub fields: &'a [&'a [R]; FIELDS],
    /// Of the first field.
    pub chosen: &'a Components,
    pub block: &'a [R],
    pub geometry: &'a LevelGeometry,
    pub index: [i32; 3],
    pub cell: usize,
}

impl<R: Real> CellInputs<R> for HostCell<'_, R> {
    #[inline(always)]
    fn value(&self, field: usize, component: usize) -> R {
        let component = match field {
            0 => self.chosen.number(component),
            _ => Some(component),
        };
        component.map_or(R::lit(0.0), |c| self.fields[field][c * CELLS + self.cell])
    }

    #[inline(always)]
    fn around(&self) -> (&[R], usize) {
        (self.block, self.cell)
    }

    #[inline(always)]
    fn place(&self) -> Place<R> {
        cell_place(self.geometry, self.index, self.cell as i32)
    }
}

/// The components that states consist of in the cells of a patch, field by field.
pub(super) type StateColumns<'a, R> = [[&'a [R; CELLS]; MAX_COMPONENTS]; FIELDS];

/// A cell on the host, one of all of a patch.
pub(super) struct ColumnCell<'a, R> {
    pub columns: &'a StateColumns<'a, R>,
    pub block: &'a [R],
    pub geometry: &'a LevelGeometry,
    pub index: [i32; 3],
    pub cell: usize,
}

impl<R: Real> CellInputs<R> for ColumnCell<'_, R> {
    #[inline(always)]
    fn value(&self, field: usize, component: usize) -> R {
        self.columns[field][component][self.cell]
    }

    #[inline(always)]
    fn around(&self) -> (&[R], usize) {
        (self.block, self.cell)
    }

    #[inline(always)]
    fn place(&self) -> Place<R> {
        cell_place(self.geometry, self.index, self.cell as i32)
    }
}

/// A cell that may have been called before: the state of a field is what was carried.
pub(super) struct RepeatedCell<'a, R> {
    pub at: HostCell<'a, R>,
    pub field: usize,
    pub values: &'a [R],
}

impl<R: Real> CellInputs<R> for RepeatedCell<'_, R> {
    #[inline(always)]
    fn value(&self, field: usize, component: usize) -> R {
        if field > 0 && field == self.field {
            return self.values[component];
        }
        self.at.value(field, component)
    }

    #[inline(always)]
    fn around(&self) -> (&[R], usize) {
        self.at.around()
    }

    #[inline(always)]
    fn place(&self) -> Place<R> {
        self.at.place()
    }
}
