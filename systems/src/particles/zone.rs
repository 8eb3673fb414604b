//! Where particles stand beside a border between levels: the cells of a patch that are as near to it as `zone` cells of the coarser level.

use nestar_engine::mesh::Topology;
use nestar_kernels::mesh::{COARSER, SELF};
use nestar_kernels::{CELLS, PATCH};

/// Cells of a patch beside borders.
#[derive(Clone, Debug, Default)]
pub struct Zone {
    /// Those beside a coarser level, in which clouds are as wide as the coarser level's cells.
    inner: Option<Box<[bool; CELLS]>>,
    /// Those beside a finer level.
    outer: Option<Box<[bool; CELLS]>>,
}

/// In which cell a place is.
#[must_use]
pub fn cell_of(place: [u64; 3]) -> usize {
    let [x, y, z] = place.map(|p| (p >> 61) as usize);
    x + PATCH * (y + PATCH * z)
}

impl Zone {
    /// Of an own leaf; borders reach `cells` cells of the coarser level to either side.
    #[must_use]
    pub fn of(topology: &Topology, row: u32, cells: usize) -> Self {
        let mut zone = Self::default();
        if cells == 0 {
            return zone;
        }
        for (d, &beside) in topology.neighbours(row).iter().enumerate() {
            let is_finer = |beside: i32| {
                u32::try_from(beside).is_ok_and(|beside| !topology.is_leaf(beside))
            };
            if d == SELF {
                continue;
            } else if beside == COARSER {
                mark(&mut zone.inner, d, 2 * cells);
            } else if is_finer(beside) {
                mark(&mut zone.outer, d, cells);
            }
        }
        zone
    }

    /// Whether clouds in a cell are as wide as a cell of the coarser level.
    #[must_use]
    pub fn is_inner(&self, cell: usize) -> bool {
        self.inner.as_ref().is_some_and(|cells| cells[cell])
    }

    /// Whether a cell is beside a finer level.
    #[must_use]
    pub fn is_outer(&self, cell: usize) -> bool {
        self.outer.as_ref().is_some_and(|cells| cells[cell])
    }

    /// Whether any cloud is as wide as a cell of the coarser level.
    #[must_use]
    pub fn has_inner(&self) -> bool {
        self.inner.is_some()
    }
}

/// Marks the cells of so many layers towards direction `d` of a table of 27.
fn mark(cells: &mut Option<Box<[bool; CELLS]>>, d: usize, layers: usize) {
    let step = [d % 3, d / 3 % 3, d / 9];
    let cells = cells.get_or_insert_with(|| Box::new([false; CELLS]));
    for (cell, marked) in cells.iter_mut().enumerate() {
        let at = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
        let near = |axis: usize| match step[axis] {
            0 => at[axis] < layers,
            2 => at[axis] + layers >= PATCH,
            _ => true,
        };
        *marked |= (0..3).all(near);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_lie_towards_the_border() {
        let mut cells = None;
        // direction (-1, 0, 1)
        mark(&mut cells, 12 - 3 + 3 + 9, 2);
        let cells = cells.expect("marked");
        for (cell, marked) in cells.iter().enumerate() {
            let [x, z] = [cell % 8, cell / 64];
            assert_eq!(*marked, x < 2 && z >= 6, "{cell}");
        }
    }

    #[test]
    fn places_have_cells() {
        assert_eq!(cell_of([0, 1 << 61, u64::MAX]), 8 + 64 * 7);
    }
}
