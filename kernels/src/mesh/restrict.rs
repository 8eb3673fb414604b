//! Averages of fine cells onto coarse ones.

use super::prolong::MAX_COMPONENTS;
use super::rows::Rows;
use crate::{CELLS, PATCH};
use nestar_device::math::sum4;
use nestar_device::{Lane, Real, device};

/// Mean of the eight fine cells of a coarse cell, indexed by their sides as bits z y x.
///
/// The four body diagonals are summed first and then combined without regard to order, so that the mean is bitwise the
/// same under every rotation and reflection of the cube.
#[device]
pub fn mean8<R: Lane>(v: &[R; 8]) -> R {
    0.125 * sum4(v[0] + v[7], v[1] + v[6], v[2] + v[5], v[3] + v[4])
}

/// Replaces the values of coarse row `parent` by the averages of its eight children (rows `first_child + 0..8`). A coarse
/// cell keeps its own state where the average comes out unphysical by round-off.
///
/// # Safety
/// Nobody else may access row `parent` of `coarse` meanwhile.
pub unsafe fn restrict_octet<R: Real>(
    coarse: &Rows<R>,
    parent: u32,
    fine: &Rows<R>,
    first_child: u32,
    physical: fn(&[R]) -> bool,
) {
    // SAFETY: exclusivity is the caller's contract.
    let out = unsafe { coarse.row_mut(parent) };
    let components = out.len() / CELLS;
    let mut state = [R::lit(0.0); MAX_COMPONENTS];
    for child in 0..8u32 {
        let source = fine.row(first_child + child);
        let corner = [child & 1, child >> 1 & 1, child >> 2].map(|b| b as usize * HALF);
        for cell in 0..HALF * HALF * HALF {
            let [i, j, k] = [cell % HALF, cell / HALF % HALF, cell / (HALF * HALF)];
            let from = 2 * i + PATCH * (2 * j + PATCH * 2 * k);
            let to = corner[0] + i + PATCH * (corner[1] + j + PATCH * (corner[2] + k));
            for (c, value) in state[..components].iter_mut().enumerate() {
                *value = mean_of_cell(&source[c * CELLS..(c + 1) * CELLS], from);
            }
            if physical(&state[..components]) {
                for (c, value) in state[..components].iter().enumerate() {
                    out[c * CELLS + to] = *value;
                }
            }
        }
    }
}

/// Half a patch: the coarse cells along an axis that one child covers.
const HALF: usize = PATCH / 2;

/// Mean of the 2x2x2 cells of a component that begin at cell `from`.
fn mean_of_cell<R: Real>(fine: &[R], from: usize) -> R {
    mean8(&std::array::from_fn(|s| {
        fine[from + (s & 1) + PATCH * (s >> 1 & 1) + PATCH * PATCH * (s >> 2)]
    }))
}
