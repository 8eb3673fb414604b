//! Piecewise parabolic reconstruction (Colella & Woodward 1984, J. Comput. Phys. 54, 174), in differences from the cell average. Constant
//! states thus stay exact, and mirrored ones mirrored.
//!
//! Edges are of fourth order (eq. 1.6); only [`limited_parabola`], used by the van Leer scheme, limits their slopes. [`parabola`] preserves
//! smooth extrema by limits on second differences (Colella & Sekora 2008, J. Comput. Phys. 227, 7069), without their products or quotients.
use nestar_device::{Lane, device};

/// Returns the smaller of `a` and `b` in magnitude, or zero if their signs differ.
#[device]
fn smaller<R: Lane>(a: R, b: R) -> R {
    a.min(b).max(0.0) + a.max(b).min(0.0)
}

/// Clamps `x` to `-bound..bound`.
#[device]
fn clamped<R: Lane>(x: R, bound: R) -> R {
    x.min(bound).max(-bound)
}

/// Returns the distances `(average - lower edge, upper edge - average)` of the parabola in the middle one of five consecutive cells.
///
/// An edge may exceed the adjacent averages, and a parabola may have an extremum, only if all three second differences have one sign. The
/// excess is at most 1.25 times the smallest (Colella & Sekora's C). In monotonic flow neither distance exceeds twice the other (Colella &
/// Woodward, eq. 1.10).
#[device]
pub fn parabola<R: Lane>(w: &[R; 5]) -> (R, R) {
    let (first, below, above, last) = (w[1] - w[0], w[2] - w[1], w[3] - w[2], w[4] - w[3]);
    let (before, here, after) = (below - first, above - below, last - above);
    let least = before.min(after).min(here);
    let most = before.max(after).max(here);
    let curvature = 0.4166666666666667 * (least.max(0.0) + most.min(0.0));
    let reach = curvature.abs();
    // an edge is the mean of two averages minus half of this
    let bend_below = clamped(
        0.16666666666666666 * (before + here),
        below.abs().max(reach),
    );
    let bend_above = clamped(0.16666666666666666 * (here + after), above.abs().max(reach));
    // twice the distances
    let lower = below + bend_below;
    let upper = above - bend_above;

    let lower_of_slope = smaller(lower, 2.0 * upper);
    let upper_of_slope = smaller(upper, 2.0 * lower);
    let bend = smaller(upper - lower, curvature);
    // the vertex lies inside the cell
    let slope = clamped(0.5 * (lower + upper), 1.5 * bend.abs());
    let monotonic = (lower_of_slope.abs() > 0.0) & (smaller(below, above).abs() > 0.0);
    let low = if monotonic {
        lower_of_slope
    } else {
        slope - 0.5 * bend
    };
    let high = if monotonic {
        upper_of_slope
    } else {
        slope + 0.5 * bend
    };
    (0.5 * low, 0.5 * high)
}

/// Returns the same with bounds: no edge exceeds the adjacent averages, and extrema are flat (Colella & Woodward, eqs. 1.6 to 1.10).
#[device]
pub fn bounded_parabola<R: Lane>(w: &[R; 5]) -> (R, R) {
    let (first, below, above, last) = (w[1] - w[0], w[2] - w[1], w[3] - w[2], w[4] - w[3]);
    let here = above - below;
    let bend_below = 0.16666666666666666 * ((below - first) + here);
    let bend_above = 0.16666666666666666 * (here + (last - above));
    let lower = smaller(0.5 * (below + bend_below), below);
    let upper = smaller(0.5 * (above - bend_above), above);
    (smaller(lower, 2.0 * upper), smaller(upper, 2.0 * lower))
}

/// Returns the same with edges from limited slopes (the paper limits them by monotonized central).
///
/// `half` holds [`half_slope`](super::limiter::half_slope) of the three cells in the middle.
#[device]
pub fn limited_parabola<R: Lane>(w: &[R; 5], half: &[R; 3]) -> (R, R) {
    let [before, here, after] = *half;
    let lower = 0.5 * (w[2] - w[1]) + (here - before) * 0.3333333333333333;
    let upper = 0.5 * (w[3] - w[2]) + (here - after) * 0.3333333333333333;
    (smaller(lower, 2.0 * upper), smaller(upper, 2.0 * lower))
}

/// Returns the flattening factor for the distances to the edges in strong shocks, from 1 (none) to 0 (first order).
///
/// It applies where the flow converges and the pressures `p` of five consecutive cells jump within three of them (Colella & Woodward, eqs.
/// A.1 and A.2). `velocity` holds the velocities along the axis of the two neighbours.
#[device]
pub fn flattening<R: Lane>(p: &[R; 5], velocity: &[R; 2]) -> R {
    let jump = (p[3] - p[1]).abs();
    let steepness = jump / (p[4] - p[0]).abs();
    let left = (8.5 - 10.0 * steepness).max(0.0).min(1.0);
    if (velocity[1] < velocity[0]) & (jump > 2.0 * p[1].min(p[3])) {
        left
    } else {
        1.0
    }
}
