//! Transfer between a level and the next coarser one in the full approximation scheme, on the host; `composite.cu` is
//! the device version.

use super::ghost_values::{is_lower, mean_of_plane, place};
use super::level::LevelGrid;
use super::stencil::{difference, flux_mismatch};
use crate::mesh::means::mean8;
use crate::mesh::{Rows, face_direction};
use crate::{CELLS, PATCH};
use nestar_device::Real;
use nestar_device::math::sum3;

/// A level and its children.
pub struct LevelPair<'a, R> {
    /// Coarse level.
    pub coarse: LevelGrid<'a, R>,
    /// Fine-grid correction of its right-hand side.
    pub tau: Rows<'a, R>,
    /// Potential of the fine level.
    pub fine: Rows<'a, R>,
    /// Restricted residual of the fine level, in rows of 4^3 cells.
    pub residual: Rows<'a, R>,
    /// First child of each row, -1: none.
    pub first_child: &'a [i32],
    /// Differences of the fine potential along each axis in covered cells of the coarse level, if several ranks share
    /// the hierarchy.
    pub differences: Option<Rows<'a, R>>,
}

/// `first_child` of a patch without children.
const LEAF: i32 = -1;
const HALF: usize = PATCH / 2;

/// Returns the child and its cell of 4^3 for a cell of a row.
fn child_of(first: i32, cell: usize) -> (u32, usize) {
    let at = place::<PATCH>(cell);
    let child = at[0] / HALF + 2 * (at[1] / HALF) + 4 * (at[2] / HALF);
    let [x, y, z] = at.map(|x| x % HALF);
    (first as u32 + child as u32, x + HALF * (y + HALF * z))
}

/// Returns the fine cell on side `side` (bits z y x) of cell `n` of 4^3 of a fine row.
fn eight(n: usize, side: usize) -> usize {
    let [x, y, z] = place::<HALF>(n).map(|x| 2 * x);
    (x + (side & 1)) + PATCH * ((y + (side >> 1 & 1)) + PATCH * (z + (side >> 2)))
}

/// Sets the potential of a row to the averages of its children (the first is `first`). Stores the fine differences if
/// several ranks share the hierarchy.
///
/// # Safety
/// Nobody else may use this row of the coarse level meanwhile.
pub unsafe fn restrict_solution<R: Real>(pair: &LevelPair<R>, row: u32, first: u32) {
    for cell in 0..CELLS {
        let (child, n) = child_of(first as i32, cell);
        let values = pair.fine_values(child, n);
        // SAFETY: the caller's contract.
        unsafe {
            pair.coarse.view.level.set(row, cell, mean8(&values));
            if let Some(differences) = &pair.differences {
                for axis in 0..3 {
                    differences.set(row, axis * CELLS + cell, difference(&values, axis));
                }
            }
        }
    }
}

/// Stores the restricted residual of the children in the `tau` of a row.
///
/// # Safety
/// Nobody else may use this row of the `tau` of the coarse level meanwhile.
pub unsafe fn store_fine_residual<R: Real>(pair: &LevelPair<R>, row: u32, first: u32) {
    for cell in 0..CELLS {
        let (child, n) = child_of(first as i32, cell);
        // SAFETY: the caller's contract.
        unsafe { pair.tau.set(row, cell, pair.residual.get(child, n)) };
    }
}

/// Computes the fine-grid correction of a row, with which the coarse level alone has the solution of both levels. It is
/// the residual of the coarse equation in covered cells, the difference to the fine fluxes in cells beside coarse-fine
/// faces, and 0 elsewhere. It follows [`restrict_solution`] and [`store_fine_residual`].
///
/// # Safety
/// Nobody else may use this row of the `tau` of the coarse level meanwhile.
pub unsafe fn compute_tau<R: Real>(pair: &LevelPair<R>, row: u32) {
    let covered = pair.first_child[row as usize] != LEAF;
    let laplacians = covered.then(|| pair.coarse.laplacians(&pair.coarse.block(row, None)));
    for cell in 0..CELLS {
        let value = match &laplacians {
            Some(laplacians) => {
                let missing = pair.tau.get(row, cell);
                (laplacians[cell] + missing) - pair.coarse.source.at(row, cell)
            }
            None => pair.mismatch(row, cell),
        };
        // SAFETY: the caller's contract.
        unsafe { pair.tau.set(row, cell, value) };
    }
}

impl<R: Real> LevelPair<'_, R> {
    fn fine_values(&self, child: u32, n: usize) -> [R; 8] {
        std::array::from_fn(|side| self.fine.get(child, eight(n, side)))
    }

    /// Returns the difference between the mean fine fluxes through the faces of a cell and its own, beside refined
    /// patches.
    fn mismatch(&self, row: u32, cell: usize) -> R {
        let at = place::<PATCH>(cell);
        let mut axes = [R::lit(0.0); 3];
        for face in 0..6 {
            let (axis, edge) = (face / 2, if is_lower(face) { 0 } else { PATCH - 1 });
            let beside = self.coarse.view.neighbours[row as usize][face_direction(face)];
            if at[axis] != edge || beside < 0 || self.first_child[beside as usize] == LEAF {
                continue;
            }
            let through = self.through(row, cell, face, beside as u32);
            axes[axis] += self.coarse.weights[axis] * through;
        }
        sum3(axes[0], axes[1], axes[2])
    }

    fn through(&self, row: u32, cell: usize, face: usize, beside: u32) -> R {
        let (axis, bank) = (face / 2, &self.coarse.view.level);
        let far = (PATCH - 1) * PATCH.pow(axis as u32);
        let covered = if is_lower(face) {
            cell + far
        } else {
            cell - far
        };
        let upward = match &self.differences {
            Some(differences) => differences.get(beside, axis * CELLS + covered),
            None => {
                let (child, n) = child_of(self.first_child[beside as usize], covered);
                difference(&self.fine_values(child, n), axis)
            }
        };
        let outward = if is_lower(face) { -upward } else { upward };
        let LevelGrid { view, exterior, .. } = &self.coarse;
        let plane = mean_of_plane(view, exterior, row, place::<PATCH>(cell), axis);
        flux_mismatch(
            bank.get(row, cell),
            plane,
            bank.get(beside, covered),
            outward,
        )
    }
}
