//! Averages fine values onto coarse ones.

use super::Centring;
use super::fluxes::mean4;
use super::means::{mean2, mean8};
use super::rows::Rows;
use super::states::{MAX_COMPONENTS, StateFunctions, keep_remainder};
use crate::{CELLS, PATCH};
use nestar_device::Real;

/// Replaces the values of coarse row `parent` by the averages of its eight children (rows `first_child + 0..8`): of eight cells, four faces
/// or two edges.
///
/// If round-off makes an average of cells unphysical, it is repaired with the average of their primitive variables. Returns the number of
/// repaired cells.
///
/// # Safety
/// Nobody else may access row `parent` of `coarse` meanwhile.
pub unsafe fn restrict_octet<R: Real>(
    centring: Centring,
    coarse: &Rows<R>,
    parent: u32,
    fine: &Rows<R>,
    first_child: u32,
    rules: Option<&StateFunctions<R>>,
) -> u64 {
    // SAFETY: exclusivity is the caller's contract.
    let out = unsafe { coarse.row_mut(parent) };
    let values = centring.values();
    let (components, groups) = (out.len() / values, centring.groups());
    let mut state = [R::lit(0.0); MAX_COMPONENTS];
    let mut repaired = 0;
    for group in 0..groups {
        let [x, y, _] = centring.lengths(group, [PATCH; 3]);
        for n in 0..values {
            let place = [n % x, n / x % y, n / (x * y)];
            let (child, from) = fine_place(centring, group, place);
            let source = fine.row(first_child + child);
            for c in (group..components).step_by(groups) {
                state[c] = mean_at(centring, c, &source[c * values..][..values], from);
            }
            if let Some(remainder) = rules.and_then(|rules| rules.remainder) {
                let kept = mean_of(source, from, components, remainder);
                keep_remainder(&mut state[..components], &kept[..components], remainder);
            }
            // fields on faces or edges have no state functions
            if let Some(rules) = rules.filter(|rules| !(rules.physical)(&state[..components], 1)) {
                let w = mean_of(source, from, components, rules.primitive);
                (rules.repair)(&mut state[..components], &w[..components]);
                repaired += 1;
            }
            if let Some(dependents) = rules.and_then(|rules| rules.dependents) {
                dependents.reconcile(&mut state[..components]);
            }
            for c in (group..components).step_by(groups) {
                out[c * values + n] = state[c];
            }
        }
    }
    repaired
}

/// Returns the mean of the values that `convert` makes of the states of eight fine cells, starting at `from`.
fn mean_of<R: Real>(
    source: &[R],
    from: usize,
    components: usize,
    convert: fn(&mut [R], usize),
) -> [R; MAX_COMPONENTS] {
    let mut eight = [[R::lit(0.0); 8]; MAX_COMPONENTS];
    let eight = &mut eight[..components];
    for (c, values) in eight.iter_mut().enumerate() {
        *values = eight_cells(&source[c * CELLS..], from);
    }
    convert(eight.as_flattened_mut(), 8);
    let mut mean = [R::lit(0.0); MAX_COMPONENTS];
    for (mean, values) in mean.iter_mut().zip(eight) {
        *mean = mean8(values);
    }
    mean
}

/// Returns the values of eight cells of a patch, starting at `from`.
fn eight_cells<R: Real>(fine: &[R], from: usize) -> [R; 8] {
    std::array::from_fn(|s| fine[from + (s & 1) + PATCH * (s >> 1 & 1) + PATCH * PATCH * (s >> 2)])
}

/// Half a patch: the number of coarse cells along an axis that one child covers.
const HALF: usize = PATCH / 2;

/// Returns the child that provides the coarse value at `place`, and the position of its first value. The plane between two children belongs
/// to the upper one.
fn fine_place(centring: Centring, component: usize, place: [usize; 3]) -> (u32, usize) {
    let upper = place.map(|p| usize::from(p >= HALF));
    let first = std::array::from_fn(|a| 2 * place[a] - PATCH * upper[a]);
    let child = upper[0] + 2 * upper[1] + 4 * upper[2];
    (child as u32, centring.index(component, first))
}

/// Returns the mean of the fine values of component `c`, starting at `from`, that one coarse value represents.
fn mean_at<R: Real>(centring: Centring, c: usize, fine: &[R], from: usize) -> R {
    let [x, y, _] = centring.lengths(c, [PATCH; 3]);
    let step = [1, x, x * y];
    let [along, b, e] = [c % 3, (c + 1) % 3, (c + 2) % 3].map(|a| step[a]);
    match centring {
        Centring::Cell => mean8(&eight_cells(fine, from)),
        Centring::Face => mean4(&[0, b, e, b + e].map(|at| fine[from + at])),
        Centring::Edge => mean2(fine[from], fine[from + along]),
    }
}
