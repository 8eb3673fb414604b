//! Means of the fine values that represent a coarse one.

use nestar_device::math::sum4;
use nestar_device::{Lane, device};

/// Returns the mean of the eight fine cells of a coarse cell, indexed by their sides as bits z y x.
///
/// The four body diagonals are summed first and combined independently of their order. The mean is bitwise invariant under rotations and
/// reflections of the cube.
#[device]
pub fn mean8<R: Lane>(v: &[R; 8]) -> R {
    0.125 * sum4(v[0] + v[7], v[1] + v[6], v[2] + v[5], v[3] + v[4])
}

/// Returns the mean of the two fine edges of a coarse one.
#[device]
pub fn mean2<R: Lane>(a: R, b: R) -> R {
    0.5 * (a + b)
}
