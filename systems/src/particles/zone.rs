//! Where particles stand beside a border between levels: as near to it as `zone` cells of the coarser level.

use nestar_engine::mesh::{Topology, offset};
use nestar_kernels::PATCH;
use nestar_kernels::mesh::{COARSER, SELF};

/// The borders of a patch.
#[derive(Clone, Debug, Default)]
pub struct BoundaryZone {
    /// Cells of the coarser level that they reach to either side.
    cells: i32,
    /// Directions in which the coarser level begins.
    inner: Vec<[i32; 3]>,
    /// Directions in which a finer level begins.
    outer: Vec<[i32; 3]>,
}

/// In which cell a place is, `step` patches away from a patch, counted from the first cell of that.
#[must_use]
#[inline(always)]
pub fn cell_of(place: [u64; 3], step: [i32; 3]) -> [i32; 3] {
    [0, 1, 2].map(|axis| PATCH as i32 * step[axis] + (place[axis] >> 61) as i32)
}

impl BoundaryZone {
    /// Of an own leaf; borders reach `cells` cells of the coarser level to either side.
    #[must_use]
    pub fn of(topology: &Topology, row: u32, cells: usize) -> Self {
        let mut zone = Self {
            cells: cells as i32,
            ..Self::default()
        };
        if cells == 0 {
            return zone;
        }
        let is_finer =
            |beside: i32| u32::try_from(beside).is_ok_and(|beside| !topology.is_leaf(beside));
        for (d, &beside) in topology.neighbours(row).iter().enumerate() {
            if d == SELF {
                continue;
            } else if beside == COARSER {
                zone.inner.push(offset(d));
            } else if is_finer(beside) {
                zone.outer.push(offset(d));
            }
        }
        zone
    }

    /// Whether a cloud in a cell is as wide as a cell of the coarser level; also beyond the patch, no farther than a cell of the coarser
    /// level, where only borders of the patch count.
    #[must_use]
    #[inline(always)]
    pub fn is_inner(&self, cell: [i32; 3]) -> bool {
        self.inner
            .iter()
            .any(|&step| is_near(step, 2 * self.cells, cell))
    }

    /// Whether a cell is beside a finer level, so near that the slopes in a cloud there would reach into it: a cell farther than on the other side.
    #[must_use]
    #[inline(always)]
    pub fn is_outer(&self, cell: [i32; 3]) -> bool {
        self.outer
            .iter()
            .any(|&step| is_near(step, self.cells + 1, cell))
    }

    /// Whether a border is near.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.has_inner() || !self.outer.is_empty()
    }

    /// Whether any cloud is as wide as a cell of the coarser level.
    #[must_use]
    pub fn has_inner(&self) -> bool {
        !self.inner.is_empty()
    }
}

/// Whether a cell is among the last ones before what lies `step` patches away, or beyond.
#[inline(always)]
fn is_near(step: [i32; 3], layers: i32, cell: [i32; 3]) -> bool {
    (0..3).all(|axis| match step[axis] {
        -1 => cell[axis] < layers,
        1 => cell[axis] >= PATCH as i32 - layers,
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_lie_towards_the_border() {
        for (x, z) in (-2..10).flat_map(|x| (-2..10).map(move |z| (x, z))) {
            assert_eq!(
                is_near([-1, 0, 1], 2, [x, 5, z]),
                x < 2 && z >= 6,
                "{x} {z}"
            );
        }
    }

    #[test]
    fn places_have_cells() {
        assert_eq!(cell_of([0, 1 << 61, u64::MAX], [0; 3]), [0, 1, 7]);
        assert_eq!(cell_of([0, 1 << 61, u64::MAX], [1, 0, -1]), [8, 1, -1]);
    }
}
