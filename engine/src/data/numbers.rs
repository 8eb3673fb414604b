//! Numbers that are made in each cell as lists say them, for functions that read them as the state of a further field.

use super::list_text::{ListSource, numbers_text};
use super::listed::{CellCube, CellQuantity, Loops};
use super::structures::Structures;
use nestar_device::Real;
use nestar_kernels::CELLS;
use nestar_kernels::criteria::ListText;

/// Numbers by their names or by formulas, made of the first field's state in a cell and of its place.
pub struct DerivedInputs {
    list: Vec<CellQuantity>,
    written: ListSource,
}

impl DerivedInputs {
    /// Makes a list of at least one number.
    ///
    /// # Panics
    /// If the list is empty.
    #[must_use]
    pub fn new(list: Vec<CellQuantity>) -> Self {
        assert!(!list.is_empty(), "a list of numbers has one at least");
        let written = numbers_text(&list);
        Self { list, written }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// The list in the device's language.
    pub(super) fn text(&self) -> &ListText {
        &self.written.text
    }

    /// The structures that its functions take.
    pub(super) fn structures(&self) -> &Structures {
        &self.written.structures
    }

    /// Makes the numbers of a patch, `[number][512]`.
    pub(super) fn fill<R: Loops>(&self, own: &CellCube<R>, out: &mut Vec<R>) {
        out.resize(self.list.len() * CELLS, R::lit(0.0));
        for (number, out) in self.list.iter().zip(out.chunks_mut(CELLS)) {
            number.fill(own, out);
        }
    }

    /// The message of the first formula that is no finite number in a cell of a patch, where `made` are the patch's numbers.
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
