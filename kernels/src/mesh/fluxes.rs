//! Flux registers at coarse-fine faces (Berger & Colella 1989, J. Comput. Phys. 82, 64).

use crate::PATCH;
use nestar_device::math::sum3;
use nestar_device::{Lane, Real, device};

/// Values of one face of a patch: 8 x 8.
pub const FACE: usize = PATCH * PATCH;
/// Values of one face of a fine patch at coarse resolution: 4 x 4.
pub const QUARTER: usize = FACE / 4;

/// Faces of a patch's cells normal to one axis: nine layers of 64.
pub const FACES: usize = (PATCH + 1) * FACE;

/// Returns the index of the lower face of cell `i`, `j`, `k` among the [`FACES`] of `axis`. Index 8 along the axis is the last upper face.
#[must_use]
pub fn face_index(axis: usize, [i, j, k]: [usize; 3]) -> usize {
    match axis {
        0 => i + 9 * (j + 8 * k),
        1 => i + 8 * (j + 9 * k),
        _ => i + 8 * (j + 8 * k),
    }
}

/// Returns the mean of four fine face values: `v` = (0,0), (1,0), (0,1), (1,1). It is invariant under the symmetries of the square.
#[device]
pub fn mean4<R: Lane>(v: &[R; 4]) -> R {
    0.25 * ((v[0] + v[3]) + (v[1] + v[2]))
}

/// Returns the means over 2x2 faces of the fluxes of a fine face (`[component][8][8]`), in the order of a register `[component][4][4]`.
pub fn fine_means<R: Real>(flux: &[R]) -> impl Iterator<Item = R> + '_ {
    flux.chunks_exact(FACE).flat_map(|face| {
        (0..QUARTER).map(move |n| {
            let at = 2 * (n % 4) + 2 * PATCH * (n / 4);
            mean4(&[
                face[at],
                face[at + 1],
                face[at + PATCH],
                face[at + PATCH + 1],
            ])
        })
    })
}

/// Holds the time-integrated flux through a face of a fine patch over a coarse step `dt`: `dt * reference + change`, `[component][4][4]`
/// each.
#[derive(Clone, Copy)]
pub struct FineFlux<'a, R> {
    /// Fluxes of the first fine step.
    pub reference: &'a [R],
    /// Sum over the later fine steps of step length times (flux - reference).
    pub change: &'a [R],
}

/// Returns a conserved variable after a step: `u - sum_d rate_d (above_d - below_d)`. `below` and `above` are the flux densities through
/// the lower and upper faces along each axis, and `rate_d = dt / dx_d`.
#[device]
pub fn advanced<R: Lane>(u: R, below: &[R; 3], above: &[R; 3], rate: &[R; 3]) -> R {
    u - sum3(
        rate[0] * (above[0] - below[0]),
        rate[1] * (above[1] - below[1]),
        rate[2] * (above[2] - below[2]),
    )
}

/// Returns component `u` of a state after an operation on all components. `kept` is the result of the same operation on its remainders
/// ([`States::remainder`](super::States::remainder)), `own` the remainder of the new state; nothing is rounded where both are equal.
#[device]
pub fn with_kept_remainder<R: Lane>(u: R, kept: R, own: R) -> R {
    u + (kept - own)
}

/// Returns a conserved variable after a stage of a step: `before + weight (x - before)`. `before` is the value before the step, and `x` the
/// result of the stage's fluxes. A constant state stays constant to the bit.
#[device]
pub fn staged<R: Lane>(before: R, x: R, weight: R) -> R {
    before + weight * (x - before)
}

/// Adds the share of a stage to the flux of a step; `earlier` is that of the stages before.
#[device]
pub fn with_share<R: Lane>(earlier: R, flux: R, share: R) -> R {
    earlier + share * flux
}

/// Returns the time-integrated fine minus coarse flux over a coarse step `dt`; exactly 0 if both are equal and steady.
#[device]
pub fn flux_mismatch<R: Lane>(coarse: R, reference: R, change: R, dt: R) -> R {
    dt * (reference - coarse) + change
}

/// Returns the offset in a component's 512 cells of the cell next to face `f` at transverse position (`fast`, `slow`).
///
/// Transverse axes (slow, fast): x faces (z, y), y faces (z, x), z faces (y, x).
#[must_use]
pub fn cell_behind(f: usize, slow: usize, fast: usize) -> usize {
    let edge = if f.is_multiple_of(2) { 0 } else { PATCH - 1 };
    match f / 2 {
        0 => edge + PATCH * (fast + PATCH * slow),
        1 => fast + PATCH * (edge + PATCH * slow),
        _ => fast + PATCH * (slow + PATCH * edge),
    }
}

/// Returns the flux correction of component `c` in the coarse cell next to face `f` at (`slow`, `fast`): the time-integrated fine minus
/// coarse flux over the cell width.
///
/// `fine` holds the registers of the four fine patches on that face, by quarter (`2*slow + fast`). The last argument holds the length of
/// the coarse step and the inverse width.
#[must_use]
pub fn correction<R: Real>(
    f: usize,
    coarse: &[R],
    fine: &[FineFlux<R>; 4],
    c: usize,
    [slow, fast]: [usize; 2],
    [dt, inverse_width]: [R; 2],
) -> R {
    let fine = &fine[2 * (slow / 4) + fast / 4];
    let within = c * QUARTER + fast % 4 + 4 * (slow % 4);
    let coarse = coarse[c * FACE + fast + PATCH * slow];
    let difference = flux_mismatch(coarse, fine.reference[within], fine.change[within], dt);
    // a larger flux through an upper face decreases the value, through a lower face increases it
    if f.is_multiple_of(2) {
        difference * inverse_width
    } else {
        -(difference * inverse_width)
    }
}

#[cfg(test)]
mod tests {
    use super::{FACE, QUARTER, fine_means};

    #[test]
    fn fine_means_have_the_order_of_a_register() {
        let flux: Vec<f64> = (0..2 * FACE).map(|n| n as f64).collect();
        let means: Vec<f64> = fine_means(&flux).collect();
        let exact = |n: usize| {
            let (component, slow, fast) = (n / QUARTER, n % QUARTER / 4, n % 4);
            // halfway between the first and the last of four faces
            (component * FACE + 16 * slow + 2 * fast) as f64 + 4.5
        };
        assert_eq!(means, (0..2 * QUARTER).map(exact).collect::<Vec<f64>>());
    }
}
