//! Averages of fine values onto coarse ones.

use super::Centring;
use super::fluxes::mean4;
use super::prolong::MAX_COMPONENTS;
use super::rows::Rows;
use crate::PATCH;
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

/// Mean of the two fine edges of a coarse one.
#[device]
pub fn mean2<R: Lane>(a: R, b: R) -> R {
    0.5 * (a + b)
}

/// Replaces the values of coarse row `parent` by the averages of its eight children (rows `first_child + 0..8`): of eight cells,
/// four faces or two edges. A coarse cell keeps its own state where the average comes out unphysical by round-off.
///
/// # Safety
/// Nobody else may access row `parent` of `coarse` meanwhile.
pub unsafe fn restrict_octet<R: Real>(
    centring: Centring,
    coarse: &Rows<R>,
    parent: u32,
    fine: &Rows<R>,
    first_child: u32,
    physical: fn(&[R]) -> bool,
) {
    // SAFETY: exclusivity is the caller's contract.
    let out = unsafe { coarse.row_mut(parent) };
    let values = centring.values();
    let (components, groups) = (out.len() / values, centring.groups());
    let mut state = [R::lit(0.0); MAX_COMPONENTS];
    for group in 0..groups {
        let [x, y, _] = centring.lengths(group, [PATCH; 3]);
        for n in 0..values {
            let place = [n % x, n / x % y, n / (x * y)];
            let (child, from) = fine_place(centring, group, place);
            let source = fine.row(first_child + child);
            for c in (group..components).step_by(groups) {
                state[c] = mean_at(centring, c, &source[c * values..][..values], from);
            }
            if centring != Centring::Cell || physical(&state[..components]) {
                for c in (group..components).step_by(groups) {
                    out[c * values + n] = state[c];
                }
            }
        }
    }
}

/// Half a patch: the coarse cells along an axis that one child covers.
const HALF: usize = PATCH / 2;

/// The child whose values make the coarse value at `place`, and where the first of them stands. On the plane between two
/// children it is the upper one.
fn fine_place(centring: Centring, component: usize, place: [usize; 3]) -> (u32, usize) {
    let upper = place.map(|p| usize::from(p >= HALF));
    let first = std::array::from_fn(|a| 2 * place[a] - PATCH * upper[a]);
    let child = upper[0] + 2 * upper[1] + 4 * upper[2];
    (child as u32, centring.index(component, first))
}

/// Mean of the fine values of component `c`, of which the first stands at `from`, that one coarse value stands for.
fn mean_at<R: Real>(centring: Centring, c: usize, fine: &[R], from: usize) -> R {
    let [x, y, _] = centring.lengths(c, [PATCH; 3]);
    let step = [1, x, x * y];
    let [along, b, e] = [c % 3, (c + 1) % 3, (c + 2) % 3].map(|a| step[a]);
    match centring {
        Centring::Cell => mean8(&std::array::from_fn(|s| {
            fine[from + (s & 1) + x * (s >> 1 & 1) + x * y * (s >> 2)]
        })),
        Centring::Face => mean4(&[0, b, e, b + e].map(|at| fine[from + at])),
        Centring::Edge => mean2(fine[from], fine[from + along]),
    }
}
