//! Weighted essentially non-oscillatory reconstruction.
use nestar_device::{Lane, device};

/// Returns the distances `(average - lower edge, upper edge - average)` of the fifth-order reconstruction in the middle one of five
/// consecutive cells, with the weights WENO-Z (Borges et al. 2008, J. Comput. Phys. 227, 3191, eqs. 24 to 28 with p = 2).
///
/// The edges are those of three parabolas, weighted by their smoothness. Differences are divided by the largest one, so that their squares
/// neither overflow nor underflow and the small number in the weights has no unit. Differences below 1e-37 take the weights of smooth flow.
#[device]
pub fn weno_z<R: Lane>(w: &[R; 5]) -> (R, R) {
    let differences = [w[1] - w[0], w[2] - w[1], w[3] - w[2], w[4] - w[3]];
    let largest = differences[0]
        .abs()
        .max(differences[1].abs())
        .max(differences[2].abs().max(differences[3].abs()));
    // the reciprocal of smaller numbers is not finite in single precision
    let scale = if largest > 1e-37 { largest } else { 1.0 };
    let inverse = 1.0 / scale;
    let (a, b, c, d) = (
        differences[0] * inverse,
        differences[1] * inverse,
        differences[2] * inverse,
        differences[3] * inverse,
    );
    // smoothness of the parabolas through the lower, the middle and the upper three cells (Jiang & Shu 1996)
    let bend = 1.0833333333333333;
    let below = bend * (b - a) * (b - a) + 0.25 * (3.0 * b - a) * (3.0 * b - a);
    let middle = bend * (c - b) * (c - b) + 0.25 * (b + c) * (b + c);
    let above = bend * (d - c) * (d - c) + 0.25 * (3.0 * c - d) * (3.0 * c - d);
    let tau = (below - above).abs();
    let of_below = tau / (below + 1e-6);
    let of_middle = tau / (middle + 1e-6);
    let of_above = tau / (above + 1e-6);
    let far_below = 1.0 + of_below * of_below;
    let near = 6.0 * (1.0 + of_middle * of_middle);
    let far_above = 1.0 + of_above * of_above;
    // distances of the three parabolas to the upper edge, then to the lower one, times 6
    let up = [5.0 * b - 2.0 * a, b + 2.0 * c, 4.0 * c - d];
    let down = [4.0 * b - a, c + 2.0 * b, 5.0 * c - 2.0 * d];
    let sixth = 0.16666666666666666 * scale;
    // in this order, the mirrored values give the mirrored edges
    let upper = ((far_below * up[0] + 3.0 * far_above * up[2]) + near * up[1])
        / ((far_below + 3.0 * far_above) + near);
    let lower = ((3.0 * far_below * down[0] + far_above * down[2]) + near * down[1])
        / ((3.0 * far_below + far_above) + near);
    (sixth * lower, sixth * upper)
}
