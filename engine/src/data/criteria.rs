//! Criteria by lists, which are put together at run time: one gather and one launch serve a list.

use super::faults::FaultBox;
use super::level::LevelRows;
use super::list_text::{ListSource, list_text};
use super::listed::{CellCube, Loops};
use super::pool::{Field, Pool};
use super::storage::with_storage;
use super::window::gather_block;
use nestar_kernels::CELLS;
use nestar_kernels::criteria::{CellFlags, LIST_BLOCK, LIST_GHOSTS, ListText, buffer_sectors};
use rayon::prelude::*;

pub use super::listed::{
    CellCriterion, CellFunction, CellQuantity, CriterionFn, NamedQuantity, QuantityFn,
    parameters_of,
};

/// Criteria that one gather and one launch serve.
pub struct CriteriaList {
    pub(super) list: Vec<CellCriterion>,
    /// Per criterion: where its numbers stand among those of the cell, or among those that are kept of a gather.
    places: Vec<Vec<usize>>,
    /// Criterion and place in its state of each of those that are kept.
    kept: Vec<[usize; 2]>,
    pub(super) written: ListSource,
}

impl CriteriaList {
    /// Makes a list.
    ///
    /// # Panics
    /// If a criterion has other numbers than its function reads.
    #[must_use]
    pub fn new(mut list: Vec<CellCriterion>) -> Self {
        list.retain(|mark| mark.levels.iter().any(Option::is_some));
        for mark in &list {
            let (given, name) = (mark.of.len(), mark.function.item.name);
            assert_eq!(given, mark.function.count, "numbers of {name}");
        }
        let (places, kept, written) = list_text(&list);
        Self {
            list,
            places,
            kept,
            written,
        }
    }

    /// How many cells far the criteria read a field.
    #[must_use]
    pub fn reach(&self) -> usize {
        let reach = self.list.iter().map(|mark| mark.function.reach);
        reach.max().unwrap_or(0)
    }

    /// The list in the device's language.
    #[must_use]
    pub fn text(&self) -> &ListText {
        &self.written.text
    }

    /// Makes the numbers that are kept of a gathered block.
    fn keep<R: Loops>(&self, block: &CellCube<R>, out: &mut Vec<R>) {
        out.resize(self.kept.len() * LIST_BLOCK, R::lit(0.0));
        for (&[mark, n], out) in self.kept.iter().zip(out.chunks_mut(LIST_BLOCK)) {
            self.list[mark].of[n].fill(block, out);
        }
    }

    /// The cells of a patch that are marked, by its state and the numbers around it; a formula that is not a number in one of them is
    /// a fault.
    fn flags<R: Loops>(
        &self,
        own: &CellCube<R>,
        kept: &CellCube<R>,
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
                mark.check(kept, places, faults);
                R::mark(function)(kept, places, parameters, &mut marked);
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

impl<F: Field> Pool<F> {
    /// As [`Pool::marked`] for the criteria of a list: cells where any of them holds. A formula that is not a number in a cell stops
    /// the run after the schedule.
    ///
    /// # Panics
    /// If a function reads a component that the field has not.
    #[must_use]
    pub fn marked_by(&self, rows: &LevelRows, buffer: usize, marks: &CriteriaList) -> Vec<u32> {
        if marks.list.is_empty() {
            return Vec::new();
        }
        with_storage!(&self.storage,
        <R> => self.sectors_by::<R>(rows, buffer, marks),
        _ => {
            let found = self.sectors_by_on_device(&rows.view(), buffer, marks);
            let (sectors, fault) = rows.checked(found, (Vec::new(), None));
            fault.into_iter().for_each(|message| rows.faults().report(|| message));
            sectors
        })
    }

    fn sectors_by<R: Loops>(
        &self,
        rows: &LevelRows,
        buffer: usize,
        marks: &CriteriaList,
    ) -> Vec<u32> {
        let (view, typed) = (rows.view(), self.typed::<R>());
        let (topology, level) = (view.topology, rows.level());
        let geometry = &view.geometry();
        let present = self.present::<R>(level);
        let around = || self.ghosts::<R>(topology, level, LIST_GHOSTS);
        let around = (!marks.kept.is_empty()).then(around);
        let of_row = |&row: &u32| {
            let mut scratch = typed.cell_scratch.get();
            let [block, kept] = &mut *scratch;
            let own = CellCube::of_patch(present.row(row), topology.index(row), geometry);
            if let Some(around) = &around {
                let shape = [self.components(), LIST_GHOSTS];
                gather_block(
                    around,
                    (row, u32::MAX),
                    shape,
                    block,
                    &mut typed.gather_scratch.get(),
                );
                let values = &block[..];
                marks.keep(&own.with_ghosts(values), kept);
            }
            let values = &kept[..];
            let kept = CellCube {
                values,
                stride: LIST_BLOCK,
                ..own
            };
            buffer_sectors(&marks.flags(&own, &kept, rows.faults()), buffer)
        };
        view.rows().par_iter().map(of_row).collect()
    }
}
