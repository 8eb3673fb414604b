//! What a level and the next coarser one tell each other, on the host: the twin of composite.cu.

use super::ghost_values::{is_lower, mean_of_plane, place};
use super::level::LevelGrid;
use super::stencil::{difference, mismatch};
use crate::mesh::means::mean8;
use crate::mesh::{Rows, face_direction};
use crate::{CELLS, PATCH};
use nestar_device::Real;
use nestar_device::math::sum3;

/// A level and its children.
pub struct Pair<'a, R> {
    /// The coarse level.
    pub coarse: LevelGrid<'a, R>,
    /// What the fine level adds to its right-hand side.
    pub tau: Rows<'a, R>,
    /// The unknowns of the fine one.
    pub fine: Rows<'a, R>,
    /// Means of its residual, in rows of 4^3 cells.
    pub residual: Rows<'a, R>,
    /// First child of each row, -1: none.
    pub first_child: &'a [i32],
    /// Where several ranks share the hierarchy: by how much the fine unknowns change along each axis in covered cells of the coarse level.
    pub differences: Option<Rows<'a, R>>,
}

/// `first_child` of a patch without children.
const LEAF: i32 = -1;
const HALF: usize = PATCH / 2;

/// The child of a row and its cell of 4^3 that a cell is made of.
fn child_of(first: i32, cell: usize) -> (u32, usize) {
    let at = place::<PATCH>(cell);
    let child = at[0] / HALF + 2 * (at[1] / HALF) + 4 * (at[2] / HALF);
    let [x, y, z] = at.map(|x| x % HALF);
    (first as u32 + child as u32, x + HALF * (y + HALF * z))
}

/// The eight fine cells in cell `n` of 4^3 of a fine row, by their sides as bits z y x.
fn eight(n: usize, side: usize) -> usize {
    let [x, y, z] = place::<HALF>(n).map(|x| 2 * x);
    (x + (side & 1)) + PATCH * ((y + (side >> 1 & 1)) + PATCH * (z + (side >> 2)))
}

/// The unknowns of a row take the means of those of its children, of which the first is `first`; ranks that share the hierarchy learn the fine
/// differences besides.
///
/// # Safety
/// Nobody else may use this row of the coarse level meanwhile.
pub unsafe fn means<R: Real>(pair: &Pair<R>, row: u32, first: u32) {
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

/// The `tau` of a row takes the means of the residual of its children.
///
/// # Safety
/// Nobody else may use this row of the coarse level's `tau` meanwhile.
pub unsafe fn tell<R: Real>(pair: &Pair<R>, row: u32, first: u32) {
    for cell in 0..CELLS {
        let (child, n) = child_of(first as i32, cell);
        // SAFETY: the caller's contract.
        unsafe { pair.tau.set(row, cell, pair.residual.get(child, n)) };
    }
}

/// What the fine level adds to the right-hand side of a row of the coarse one, so that the level alone has the solution of both: in
/// covered cells what the equation is short of, before coarse-fine faces what the fine fluxes differ by, else 0. Follows [`means`] and [`tell`].
///
/// # Safety
/// Nobody else may use this row of the coarse level's `tau` meanwhile.
pub unsafe fn tau<R: Real>(pair: &Pair<R>, row: u32) {
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

impl<R: Real> Pair<'_, R> {
    fn fine_values(&self, child: u32, n: usize) -> [R; 8] {
        std::array::from_fn(|side| self.fine.get(child, eight(n, side)))
    }

    /// What the means of the fine slopes through the faces of a cell differ by from its own, beside refined patches.
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
        mismatch(
            bank.get(row, cell),
            plane,
            bank.get(beside, covered),
            outward,
        )
    }
}
