//! Averages of fine cells onto coarse ones.

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

/// Replaces the values of coarse row `parent` by the averages of its eight children (rows `first_child + 0..8`).
///
/// # Safety
/// Nobody else may access row `parent` of `coarse` meanwhile.
pub unsafe fn restrict_octet<R: Real>(coarse: &Rows<R>, parent: u32, fine: &Rows<R>, first_child: u32) {
    // SAFETY: exclusivity is the caller's contract.
    let out = unsafe { coarse.row_mut(parent) };
    let components = out.len() / CELLS;
    for child in 0..8u32 {
        let source = fine.row(first_child + child);
        let corner = [child & 1, child >> 1 & 1, child >> 2].map(|b| b as usize * PATCH / 2);
        for c in 0..components {
            restrict_component(&mut out[c * CELLS..(c + 1) * CELLS], corner, &source[c * CELLS..(c + 1) * CELLS]);
        }
    }
}

fn restrict_component<R: Real>(out: &mut [R], corner: [usize; 3], fine: &[R]) {
    const H: usize = PATCH / 2;
    for k in 0..H {
        for j in 0..H {
            for i in 0..H {
                let f = 2 * i + PATCH * (2 * j + PATCH * 2 * k);
                let v = std::array::from_fn(|s| {
                    fine[f + (s & 1) + PATCH * (s >> 1 & 1) + PATCH * PATCH * (s >> 2)]
                });
                out[corner[0] + i + PATCH * (corner[1] + j + PATCH * (corner[2] + k))] = mean8(&v);
            }
        }
    }
}
