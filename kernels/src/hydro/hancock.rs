//! Half-step states, edge states of a cell.
use nestar_device::math::sum3;
use nestar_device::{Lane, device};

/// Primitive state half a step later from the cell's own slopes, the MUSCL-Hancock predictor (Toro 2009, sec. 14.4) in
/// primitive variables: `w - dt/2 sum_d A_d(w) dw/dx_d`. `half[d]` holds half the difference of each variable across the
/// cell along axis `d`, `rate[d] = dt / dx_d`.
#[device]
pub fn half_step<R: Lane>(w: &[R; 5], half: &[[R; 5]; 3], rate: &[R; 3], gamma: R) -> [R; 5] {
    let [x, y, z] = *half;
    let (v_x, v_y, v_z) = (w[1], w[2], w[3]);
    let (r_x, r_y, r_z) = (rate[0], rate[1], rate[2]);
    let volume = 1.0 / w[0];
    let stiffness = gamma * w[4];
    [
        w[0] - sum3(
            r_x * (v_x * x[0] + w[0] * x[1]),
            r_y * (v_y * y[0] + w[0] * y[2]),
            r_z * (v_z * z[0] + w[0] * z[3]),
        ),
        w[1] - sum3(
            r_x * (v_x * x[1] + volume * x[4]),
            r_y * (v_y * y[1]),
            r_z * (v_z * z[1]),
        ),
        w[2] - sum3(
            r_x * (v_x * x[2]),
            r_y * (v_y * y[2] + volume * y[4]),
            r_z * (v_z * z[2]),
        ),
        w[3] - sum3(
            r_x * (v_x * x[3]),
            r_y * (v_y * y[3]),
            r_z * (v_z * z[3] + volume * z[4]),
        ),
        w[4] - sum3(
            r_x * (v_x * x[4] + stiffness * x[1]),
            r_y * (v_y * y[4] + stiffness * y[2]),
            r_z * (v_z * z[4] + stiffness * z[3]),
        ),
    ]
}

/// A concentration half a step later, `x - dt/2 v . grad x`; arguments as in [`half_step`].
#[device]
pub fn half_step_scalar<R: Lane>(x: R, velocity: &[R; 3], half: &[R; 3], rate: &[R; 3]) -> R {
    x - sum3(
        rate[0] * (velocity[0] * half[0]),
        rate[1] * (velocity[1] * half[1]),
        rate[2] * (velocity[2] * half[2]),
    )
}

/// Primitive states at the lower and upper faces of a cell along one axis, `(h - lower, h + upper)`. If a density or a
/// pressure of the two is not positive, both are the cell average `w`: first order, but sane.
#[device]
pub fn edges<R: Lane>(w: &[R; 5], h: &[R; 5], lower: &[R; 5], upper: &[R; 5]) -> ([R; 5], [R; 5]) {
    let mut low = [0.0; 5];
    let mut high = [0.0; 5];
    for v in 0..5 {
        low[v] = h[v] - lower[v];
        high[v] = h[v] + upper[v];
    }
    let sane = (low[0] > 0.0) & (low[4] > 0.0) & (high[0] > 0.0) & (high[4] > 0.0);
    let below = if sane { low } else { *w };
    let above = if sane { high } else { *w };
    (below, above)
}
