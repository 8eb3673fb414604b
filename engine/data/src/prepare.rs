//! Preparation of the functions of a field: checks that they fit, and compilations for a device that start early, so that they
//! overlap.

use super::cell_args::{CellMap, CellMark, CellValue};
use super::cell_records::CellCollect;
use super::criteria::{CriteriaList, DerivedInputs};
use super::device::cell_records::RECORDS;
use super::device::cells::{
    COLUMNS, FLOWS, MAPS, MARKS, REDUCTIONS, Skeleton, face_function, function_of,
};
use super::device::subcycle::SUBCYCLES;
use super::field_spec::Components;
use super::function_inputs::InputList;
use super::iterate::CellSubcycle;
use super::pool::{Field, Pool};
use super::update::FaceMap;
use nestar_kernels::mesh::device::SkeletonFunction;

impl<F: Field> Pool<F> {
    /// Checks that an update can read this field and `inputs` and write its result. Starts to compile it for a device.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn prepare_update<M: CellMap>(
        &self,
        chosen: &Components,
        inputs: &InputList,
    ) -> Result<(), String> {
        self.fits::<M>(chosen, inputs)?;
        self.fits_result::<M>(chosen)?;
        self.compile_ahead(MAPS, function_of::<M>(inputs));
        Ok(())
    }

    /// Checks that a function can return fluxes of this field. Starts to compile it for a device.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn prepare_flux<M: FaceMap>(&self, chosen: &Components) -> Result<(), String> {
        self.fits_flux::<M>(chosen)?;
        self.compile_ahead(FLOWS, face_function::<M>());
        Ok(())
    }

    /// Checks that the function can read this field and `inputs`, and can write its result. Starts to compile it for a
    /// device.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn prepare_subcycle<M: CellSubcycle>(
        &self,
        chosen: &Components,
        inputs: &InputList,
    ) -> Result<(), String> {
        self.fits_subcycle::<M>(chosen, inputs)?;
        self.compile_ahead(SUBCYCLES, function_of::<M>(inputs));
        Ok(())
    }

    /// Checks that a function that is reduced can read this field and `inputs`. Starts to compile it for a device.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn prepare_reduction<M: CellValue>(
        &self,
        chosen: &Components,
        inputs: &InputList,
    ) -> Result<(), String> {
        self.fits::<M>(chosen, inputs)?;
        self.compile_ahead(REDUCTIONS, function_of::<M>(inputs));
        Ok(())
    }

    /// Checks that a function that marks cells can read this field and `inputs`. Starts to compile it for a device.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn prepare_mark<M: CellMark>(
        &self,
        chosen: &Components,
        inputs: &InputList,
    ) -> Result<(), String> {
        self.fits::<M>(chosen, inputs)?;
        self.compile_ahead(MARKS, function_of::<M>(inputs));
        Ok(())
    }

    /// Checks that a function that collects records can read this field and `inputs`. Starts to compile it for a device.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn prepare_collect<M: CellCollect>(
        &self,
        chosen: &Components,
        inputs: &InputList,
    ) -> Result<(), String> {
        self.fits_collect::<M>(chosen, inputs)?;
        self.compile_ahead(RECORDS, function_of::<M>(inputs));
        Ok(())
    }

    /// Starts to compile a list of criteria for a device.
    pub fn prepare_criteria(&self, marks: &CriteriaList) {
        self.compile_ahead(MARKS, SkeletonFunction::List(marks.text()));
    }

    /// Starts to compile sums of quantities along an axis for a device.
    pub(super) fn prepare_columns(&self, quantities: &DerivedInputs) {
        self.compile_ahead(COLUMNS, SkeletonFunction::Numbers(quantities.text()));
    }

    /// Starts to compile a skeleton for a function, so that compilations overlap. The first use reports errors.
    fn compile_ahead(&self, skeleton: Skeleton, function: SkeletonFunction) {
        if let Some(pool) = self.on_device() {
            let _ = pool.kernel_for(function, skeleton, 0);
        }
    }
}
