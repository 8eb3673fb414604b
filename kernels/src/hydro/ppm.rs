//! Piecewise parabolic reconstruction (Colella & Woodward 1984, J. Comput. Phys. 54, 174), in differences to the cell's
//! average rather than in edge values: constant states stay exact and mirrored ones mirrored.
use super::limiter::half_slope;
use nestar_device::{Lane, device};

/// `x` limited to the sign of `other` and to at most twice its size: the monotonicity conditions of Colella & Woodward
/// eq. 1.10, written for the distances of the two edges from the average.
#[device]
fn monotonised<R: Lane>(x: R, other: R) -> R {
    let bound = 2.0 * other;
    x.min(bound).max(0.0) + x.max(bound).min(0.0)
}

/// Distances `(average - lower edge, upper edge - average)` of the monotonised parabola in the middle one of three
/// consecutive cells, from their averages and halves of their limited slopes (eqs. 1.6 to 1.10).
#[device]
pub fn parabola<R: Lane>(w: &[R; 3], half: &[R; 3]) -> (R, R) {
    let lower = 0.5 * (w[1] - w[0]) + (half[1] - half[0]) * 0.3333333333333333;
    let upper = 0.5 * (w[2] - w[1]) + (half[1] - half[2]) * 0.3333333333333333;
    (monotonised(lower, upper), monotonised(upper, lower))
}

/// The same from five consecutive cells, with the slopes of limiter `LIMITER` (monotonized central is the paper's).
#[device]
pub fn limited_parabola<R: Lane, const LIMITER: u32>(w: &[R; 5], theta: R) -> (R, R) {
    let before = half_slope::<R, LIMITER>(w[1] - w[0], w[2] - w[1], theta);
    let here = half_slope::<R, LIMITER>(w[2] - w[1], w[3] - w[2], theta);
    let after = half_slope::<R, LIMITER>(w[3] - w[2], w[4] - w[3], theta);
    parabola(&[w[1], w[2], w[3]], &[before, here, after])
}
