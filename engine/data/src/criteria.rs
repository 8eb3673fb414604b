//! Lists built at run time: refinement criteria, with one gather and one launch per list, and derived inputs.

use super::failure::FaultBox;
use super::list_text::{ListSource, list_text, numbers_text};
pub use super::quantities::{
    CellCriterion, CellFunction, CellQuantity, CriterionFn, NamedQuantity, QuantityFn,
    parameters_of,
};
use super::quantities::{CellCube, Loops, Structures};
use nestar_device::Real;
use nestar_kernels::CELLS;
use nestar_kernels::criteria::{CellFlags, LIST_BLOCK, ListText};

/// Criteria evaluated together, with one gather and one launch.
pub struct CriteriaList {
    pub(super) list: Vec<CellCriterion>,
    /// Positions of the quantities of each criterion, in the cell or in the stored part of a gather.
    places: Vec<Vec<usize>>,
    /// Criterion and position in its state of each stored quantity.
    pub(super) stored: Vec<[usize; 2]>,
    pub(super) written: ListSource,
}

impl CriteriaList {
    /// Creates a list.
    ///
    /// # Panics
    /// If the number of quantities of a criterion is not that of its function.
    #[must_use]
    pub fn new(mut list: Vec<CellCriterion>) -> Self {
        list.retain(|mark| mark.levels.iter().any(Option::is_some));
        for mark in &list {
            let (given, name) = (mark.of.len(), mark.function.item.name);
            assert_eq!(given, mark.function.count, "numbers of {name}");
        }
        let (places, stored, written) = list_text(&list);
        Self {
            list,
            places,
            stored,
            written,
        }
    }

    /// Returns how many cells far the criteria read a field.
    #[must_use]
    pub fn reach(&self) -> usize {
        let reach = self.list.iter().map(|mark| mark.function.reach);
        reach.max().unwrap_or(0)
    }

    /// Returns the device code of the list.
    #[must_use]
    pub fn text(&self) -> &ListText {
        &self.written.text
    }

    /// Computes the stored quantities of a gathered block.
    pub(super) fn store_quantities<R: Loops>(&self, block: &CellCube<R>, out: &mut Vec<R>) {
        out.resize(self.stored.len() * LIST_BLOCK, R::lit(0.0));
        for (&[mark, n], out) in self.stored.iter().zip(out.chunks_mut(LIST_BLOCK)) {
            self.list[mark].of[n].fill(block, out);
        }
    }

    /// Returns the marked cells of a patch. A formula that is not a number is reported as a fault.
    pub(super) fn flags<R: Loops>(
        &self,
        own: &CellCube<R>,
        stored: &CellCube<R>,
        faults: &FaultBox,
    ) -> CellFlags {
        let (mut flags, mut numbers) = (CellFlags::NONE, Vec::new());
        let level = own.geometry.level as usize;
        for (mark, places) in self.list.iter().zip(&self.places) {
            let Some(Some(parameters)) = mark.levels.get(level) else {
                continue;
            };
            let function = &mark.function;
            let mut marked = [false; CELLS];
            if function.count == 0 {
                (function.double)(&own.places(), &[], parameters, &mut marked);
            } else if function.reach > 0 {
                mark.check(stored, places, faults);
                R::mark(function)(stored, places, parameters, &mut marked);
            } else {
                numbers.resize(function.count * CELLS, R::lit(0.0));
                for (number, out) in mark.of.iter().zip(numbers.chunks_mut(CELLS)) {
                    number.fill(own, out);
                }
                let values = &numbers[..];
                let span = CellCube { values, ..*own };
                mark.check(&span, places, faults);
                R::mark(function)(&span, places, parameters, &mut marked);
            }
            flags = flags | CellFlags::from_cells(&marked);
        }
        flags
    }
}

/// Named quantities and formulas, computed from the state of the first field in a cell and from its position.
pub struct DerivedInputs {
    list: Vec<CellQuantity>,
    written: ListSource,
}

impl DerivedInputs {
    /// Creates a list of at least one quantity.
    ///
    /// # Panics
    /// If the list is empty.
    #[must_use]
    pub fn new(list: Vec<CellQuantity>) -> Self {
        assert!(
            !list.is_empty(),
            "a list of derived inputs must not be empty"
        );
        let written = numbers_text(&list);
        Self { list, written }
    }

    /// Returns the number of quantities.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Returns the device code of the list.
    pub(super) fn text(&self) -> &ListText {
        &self.written.text
    }

    /// Returns the parameter structures of its functions.
    pub(super) fn structures(&self) -> &Structures {
        &self.written.structures
    }

    /// Computes the quantities of a patch, `[quantity][512]`.
    pub(super) fn fill<R: Loops>(&self, own: &CellCube<R>, out: &mut Vec<R>) {
        out.resize(self.list.len() * CELLS, R::lit(0.0));
        for (number, out) in self.list.iter().zip(out.chunks_mut(CELLS)) {
            number.fill(own, out);
        }
    }

    /// Returns a message about the first formula that is not finite in `cell`; `made` holds the quantities of the
    /// patch.
    pub(super) fn fault<R: Real>(
        &self,
        own: &CellCube<R>,
        made: &[R],
        cell: usize,
    ) -> Option<String> {
        let values = made.chunks(CELLS).map(|values| values[cell]);
        let mut wrong = self.list.iter().zip(values).filter(|(_, x)| !x.is_finite());
        wrong.find_map(|(number, _)| number.fault(own.place(cell).centre, own.geometry.time))
    }
}
