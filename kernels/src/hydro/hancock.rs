//! Half-step predictor and edge states of a cell.
use super::eos::{conserved_from_primitive, primitive_from_conserved};
use nestar_device::math::sum3;
use nestar_device::{Lane, device};

/// Returns `rate A(w) x`, the change of the primitive state `w` along one axis by the differences `x`. The first velocity is the one along
/// the axis; `volume` is one over the density.
#[device]
fn flux_jacobian_times<R: Lane>(w: &[R; 5], volume: R, x: &[R; 5], rate: R, gamma: R) -> [R; 5] {
    [
        rate * (w[1] * x[0] + w[0] * x[1]),
        rate * (w[1] * x[1] + volume * x[4]),
        rate * (w[1] * x[2]),
        rate * (w[1] * x[3]),
        rate * (w[1] * x[4] + gamma * w[4] * x[1]),
    ]
}

/// Returns the primitive state half a step later, the MUSCL-Hancock predictor in primitive variables (Toro 2009, sec. 14.4): `w - dt/2
/// sum_d A_d(w) dw/dx_d`.
///
/// `half[d]` holds half the difference of each variable across the cell along axis `d`, and `rate[d] = dt / dx_d`.
#[device]
pub fn half_step<R: Lane>(w: &[R; 5], half: &[[R; 5]; 3], rate: &[R; 3], gamma: R) -> [R; 5] {
    let [x, y, z] = *half;
    let volume = 1.0 / w[0];
    let w_y = [w[0], w[2], w[3], w[1], w[4]];
    let w_z = [w[0], w[3], w[1], w[2], w[4]];
    let a = flux_jacobian_times(w, volume, &x, rate[0], gamma);
    let b = flux_jacobian_times(
        &w_y,
        volume,
        &[y[0], y[2], y[3], y[1], y[4]],
        rate[1],
        gamma,
    );
    let c = flux_jacobian_times(
        &w_z,
        volume,
        &[z[0], z[3], z[1], z[2], z[4]],
        rate[2],
        gamma,
    );
    [
        w[0] - sum3(a[0], b[0], c[0]),
        w[1] - sum3(a[1], b[3], c[2]),
        w[2] - sum3(a[2], b[1], c[3]),
        w[3] - sum3(a[3], b[2], c[1]),
        w[4] - sum3(a[4], b[4], c[4]),
    ]
}

/// Returns the primitive state half a step later by the differences along one axis alone, `w - dt/2 A(w) dw/dx`; arguments as in [`half_step`].
/// The first velocity is the one along the axis.
#[device]
pub fn half_step_along<R: Lane>(w: &[R; 5], half: &[R; 5], rate: R, gamma: R) -> [R; 5] {
    let a = flux_jacobian_times(w, 1.0 / w[0], half, rate, gamma);
    let mut h = [0.0; 5];
    for v in 0..5 {
        h[v] = w[v] - a[v];
    }
    h
}

/// Returns the change of a conserved variable by half a step of the fluxes along two axes, with the flux densities `below` and `above`, and `rate
/// = dt / dx` along each (Gardiner & Stone 2008, J. Comput. Phys. 227, 4123, the form with six Riemann problems).
#[device]
pub fn transverse_change<R: Lane>(below: &[R; 2], above: &[R; 2], rate: &[R; 2]) -> R {
    0.5 * (rate[0] * (above[0] - below[0]) + rate[1] * (above[1] - below[1]))
}

/// Returns the primitive state `w` at a face after the change of its conserved variables by the fluxes across. If its density or pressure would
/// not be positive, it returns `w`.
#[device]
pub fn corrected<R: Lane>(w: &[R; 5], change: &[R; 5], gamma: R) -> [R; 5] {
    let u = conserved_from_primitive(w, gamma);
    let mut next = [0.0; 5];
    for v in 0..5 {
        next[v] = u[v] - change[v];
    }
    predicted(&next, w, gamma)
}

/// Returns a scalar's mass fraction half a step later, `x - dt/2 v . grad x`; arguments as in [`half_step`].
#[device]
pub fn half_step_scalar<R: Lane>(x: R, velocity: &[R; 3], half: &[R; 3], rate: &[R; 3]) -> R {
    x - sum3(
        rate[0] * (velocity[0] * half[0]),
        rate[1] * (velocity[1] * half[1]),
        rate[2] * (velocity[2] * half[2]),
    )
}

/// Returns the primitive state after half a step of donor-cell fluxes, the predictor of the van Leer scheme (Stone & Gardiner 2009, New
/// Astron. 14, 139). If density or pressure of `u` are not positive, it returns `old`.
#[device]
pub fn predicted<R: Lane>(u: &[R; 5], old: &[R; 5], gamma: R) -> [R; 5] {
    let w = primitive_from_conserved(u, gamma);
    let sane = (w[0] > 0.0) & (w[4] > 0.0);
    if sane { w } else { *old }
}

/// Returns the range of a mass fraction `x` and of its six neighbours `near`, the limits of [`bounded`] edges.
#[device]
pub fn range_around<R: Lane>(x: R, near: &[R; 6]) -> [R; 2] {
    let mut low = x;
    let mut high = x;
    for n in 0..6 {
        low = low.min(near[n]);
        high = high.max(near[n]);
    }
    [low, high]
}

/// Limits edge mass fractions to `range`. The half-step predictor shifts an edge by the slopes along the other axes and could exceed it.
#[device]
pub fn bounded<R: Lane>(edges: (R, R), range: &[R; 2]) -> (R, R) {
    (
        edges.0.max(range[0]).min(range[1]),
        edges.1.max(range[0]).min(range[1]),
    )
}

/// Returns the primitive states at the lower and upper faces of a cell along one axis, `(h - lower, h + upper)`. If a density or pressure
/// of the two is not positive, both are the cell average `w` (first order).
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

/// Returns the [`edges`] of a parabola, averaged over the domain of dependence of each face (Colella & Woodward 1984, eqs. 1.12 and 3.6).
///
/// A wave of speed `v` brings `a_R - s/2 (da - (1 - 2/3 s) a_6)` to the upper face, `s = v dt / dx`. As a polynomial in `s` it extends to
/// the matrix `A` without its eigenvectors: with `h`, which contains the term in `da`, the edges are `h + upper + (q - 2/3 r A q)` and `h -
/// lower - (q + 2/3 r A q)`, where `q = r/2 A a_6`, `a_6 = 3 (lower - upper)`, `r = dt / dx`. The first velocity is the one along the axis.
#[device]
pub fn traced_edges<R: Lane>(
    w: &[R; 5],
    h: &[R; 5],
    lower: &[R; 5],
    upper: &[R; 5],
    rate: R,
    gamma: R,
) -> ([R; 5], [R; 5]) {
    let volume = 1.0 / w[0];
    let mut bent = [0.0; 5];
    for v in 0..5 {
        bent[v] = 1.5 * (lower[v] - upper[v]);
    }
    let q = flux_jacobian_times(w, volume, &bent, rate, gamma);
    let q2 = flux_jacobian_times(w, volume, &q, 0.6666666666666666 * rate, gamma);
    let mut below = [0.0; 5];
    let mut above = [0.0; 5];
    for v in 0..5 {
        below[v] = lower[v] + (q2[v] + q[v]);
        above[v] = upper[v] - (q2[v] - q[v]);
    }
    edges(w, h, &below, &above)
}

/// Returns the mass fractions `(lower, upper)` at the faces of a cell whose parabola moves with `velocity`, as [`traced_edges`].
#[device]
pub fn traced_scalar<R: Lane>(h: R, lower: R, upper: R, velocity: R, rate: R) -> (R, R) {
    let s = rate * velocity;
    let q = s * (1.5 * (lower - upper));
    let q2 = 0.6666666666666666 * s * q;
    (h - (lower + (q2 + q)), h + (upper - (q2 - q)))
}
