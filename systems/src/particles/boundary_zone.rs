//! Finds the cells in the coarse-fine boundary zone: fine cells up to `zone` coarse cells from a boundary
//! between levels.

use nestar_engine::mesh::{Topology, offset};
use nestar_kernels::PATCH;
use nestar_kernels::mesh::{COARSER, OUTSIDE, direction};

/// Boundary zone of a patch.
#[derive(Clone, Debug, Default)]
pub struct BoundaryZone {
    /// Width in coarse cells.
    cells: i32,
    /// Directions of coarser neighbours.
    inner: Vec<[i32; 3]>,
}

/// Particles that a kick includes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KickPart {
    /// All particles.
    All,
    /// All but those of [`KickPart::Deep`].
    Others,
    /// Particles outside the boundary zone of their level, on all levels but the root level, by
    /// [`PairAcceleration`](crate::fields::PairAcceleration).
    Deep,
}

/// Kicks, by what accelerates the particles and what they store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kick {
    /// The whole acceleration, which is stored.
    Whole,
    /// The change of the stored acceleration: corrects an earlier kick.
    Change,
    /// The acceleration on the level of the particles at the end of its step, which is stored. In a boundary zone there is none.
    Level,
    /// The part of the coarser level at the start of its step, without which the acceleration is stored.
    Start,
    /// The part of the coarser level at the end of its step, with which the acceleration is stored.
    End,
}

impl KickPart {
    /// Returns `true` if the field on a level contributes to a kick of these particles.
    #[must_use]
    pub fn receives(self, kick: Kick, level: usize) -> bool {
        match self {
            Self::All => !matches!(kick, Kick::Start | Kick::End),
            Self::Others => level == 0 || kick != Kick::Level,
            Self::Deep => level > 0,
        }
    }
}

/// Returns `true` if a step along an axis leaves the domain.
pub fn is_beyond(around: &[i32; 27], axis: usize, step: i32) -> bool {
    let mut destination = [0; 3];
    destination[axis] = step;
    around[direction(destination)] == OUTSIDE
}

/// Returns the cell of an offset in the patch `step` patches away. Cells count from the first cell of the
/// original patch.
#[must_use]
#[inline(always)]
pub fn cell_of(offset: [u64; 3], step: [i32; 3]) -> [i32; 3] {
    [0, 1, 2].map(|axis| PATCH as i32 * step[axis] + (offset[axis] >> 61) as i32)
}

impl BoundaryZone {
    /// Finds the boundary zone of an own leaf; `cells` is its width in coarse cells.
    #[must_use]
    pub fn of(topology: &Topology, row: u32, cells: usize) -> Self {
        let mut zone = Self {
            cells: cells as i32,
            ..Self::default()
        };
        if cells == 0 {
            return zone;
        }
        let around = topology.neighbours(row).iter().enumerate();
        let coarser = around.filter(|(_, beside)| **beside == COARSER);
        zone.inner.extend(coarser.map(|(d, _)| offset(d)));
        zone
    }

    /// Returns `true` if a cloud in the cell is as wide as a coarse cell. The cell may be up to one coarse
    /// cell outside the patch; only boundaries of this patch count.
    #[must_use]
    #[inline(always)]
    pub fn is_inner(&self, cell: [i32; 3]) -> bool {
        self.inner
            .iter()
            .any(|&step| is_near(step, 2 * self.cells, cell))
    }

    /// Returns `true` if any cloud in the patch is as wide as a coarse cell.
    #[must_use]
    pub fn has_inner(&self) -> bool {
        !self.inner.is_empty()
    }
}

/// Returns `true` if a cell is within `layers` cells of the neighbour in direction `step`, or outside the
/// patch on that side.
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
    fn layers_are_next_to_the_boundary() {
        for (x, z) in (-2..10).flat_map(|x| (-2..10).map(move |z| (x, z))) {
            assert_eq!(
                is_near([-1, 0, 1], 2, [x, 5, z]),
                x < 2 && z >= 6,
                "{x} {z}"
            );
        }
    }

    #[test]
    fn offsets_have_cells() {
        assert_eq!(cell_of([0, 1 << 61, u64::MAX], [0; 3]), [0, 1, 7]);
        assert_eq!(cell_of([0, 1 << 61, u64::MAX], [1, 0, -1]), [8, 1, -1]);
    }
}
