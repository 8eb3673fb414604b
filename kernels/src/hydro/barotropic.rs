//! Gas whose pressure depends on the density alone: isothermal or polytropic. It has no energy.
//!
//! A state is an array of four values: conserved `[density, momentum x, y, z]`, primitive `[density, velocity x, y, z]`; in functions of a
//! face the first velocity is the normal one. Functions that need the pressure take it from [`thermal`](super::law::thermal), `[pressure,
//! squared sound speed]`, so that they serve every such equation of state.
use nestar_device::math::{pow, sum3};
use nestar_device::simd::Simd;
use nestar_device::{Lane, Real, device};

/// Returns pressure and squared sound speed of isothermal gas, `p = c^2 rho`; `law` holds `c^2`.
#[device]
pub fn isothermal<R: Lane>(density: R, _pressure: R, law: &[R; 2]) -> [R; 2] {
    [law[0] * density, law[0]]
}

/// Returns pressure and squared sound speed of polytropic gas, `p = K rho^gamma`; `law` holds `K` and `gamma`.
#[device]
pub fn polytropic<R: Real>(density: R, _pressure: R, law: &[R; 2]) -> [R; 2] {
    let per_density = law[0] * pow(density, law[1] - 1.0);
    [per_density * density, law[1] * per_density]
}

/// Lanes of the widest vector.
const WIDEST: usize = 16;

/// Returns [`polytropic`] for each lane.
#[inline(always)]
pub(super) fn polytropic_in_each_lane<V: Simd>(density: V, pressure: V, law: &[V; 2]) -> [V; 2] {
    let mut values = [[V::E::lit(0.0); WIDEST]; 4];
    // SAFETY: no lane type is wider than an array
    unsafe {
        for (value, lanes) in [density, pressure, law[0], law[1]]
            .into_iter()
            .zip(&mut values)
        {
            value.store(lanes.as_mut_ptr());
        }
        for lane in 0..V::N {
            let [density, pressure, constant, exponent] = values.map(|lanes| lanes[lane]);
            let [p, c2] = polytropic(density, pressure, &[constant, exponent]);
            (values[0][lane], values[1][lane]) = (p, c2);
        }
        [V::load(values[0].as_ptr()), V::load(values[1].as_ptr())]
    }
}

/// Converts conserved to primitive variables.
#[device]
pub fn primitive_from_conserved<R: Lane>(u: &[R; 4]) -> [R; 4] {
    let inverse = 1.0 / u[0];
    [u[0], u[1] * inverse, u[2] * inverse, u[3] * inverse]
}

/// Converts primitive to conserved variables.
#[device]
pub fn conserved_from_primitive<R: Lane>(w: &[R; 4]) -> [R; 4] {
    [w[0], w[0] * w[1], w[0] * w[2], w[0] * w[3]]
}

/// Returns `true` if a conserved state is finite and has a positive density.
#[device]
pub fn is_physical<R: Real>(u: &[R; 4]) -> bool {
    let mut finite = true;
    for c in 0..4 {
        finite = finite && u[c].is_finite();
    }
    u[0] > 0.0 && finite
}

/// Returns the sum `u`: nothing can be repaired, because density and momentum are transported exactly.
#[device]
pub fn repaired<R: Lane>(u: &[R; 4], _w: &[R; 4]) -> [R; 4] {
    [u[0], u[1], u[2], u[3]]
}

/// Returns the signal rate of a conserved state, the sum over the axes of `(|v_d| + c) / dx_d`, or -1 if the state is unphysical: density
/// not positive, or a component or the sound speed not finite.
#[device]
pub fn checked_signal_rate<R: Lane>(u: &[R; 4], thermal: &[R; 2], inverse_dx: &[R; 3]) -> R {
    let w = primitive_from_conserved(u);
    let c = thermal[1].sqrt();
    let rate = sum3(
        (w[1].abs() + c) * inverse_dx[0],
        (w[2].abs() + c) * inverse_dx[1],
        (w[3].abs() + c) * inverse_dx[2],
    );
    // NaN if a component is not finite
    let zero = (u[0] * 0.0 + thermal[0] * 0.0) + sum3(u[1] * 0.0, u[2] * 0.0, u[3] * 0.0);
    let physical = (zero == 0.0) & (u[0] > 0.0);
    if physical { rate } else { -1.0 }
}

// ---- half steps and edges, as in hancock.rs

/// Returns `rate A(w) x`, the change of the primitive state `w` along one axis by the differences `x`. The first velocity is the one along
/// the axis; `push` is the squared sound speed over the density.
#[device]
fn flux_jacobian_times<R: Lane>(w: &[R; 4], push: R, x: &[R; 4], rate: R) -> [R; 4] {
    [
        rate * (w[1] * x[0] + w[0] * x[1]),
        rate * (w[1] * x[1] + push * x[0]),
        rate * (w[1] * x[2]),
        rate * (w[1] * x[3]),
    ]
}

/// Returns the primitive state half a step later; `half[d]` holds half the differences across the cell along axis `d`, `rate[d] = dt /
/// dx_d`, `c2` is the squared sound speed.
#[device]
pub fn half_step<R: Lane>(w: &[R; 4], half: &[[R; 4]; 3], rate: &[R; 3], c2: R) -> [R; 4] {
    let [x, y, z] = *half;
    let push = c2 / w[0];
    let w_y = [w[0], w[2], w[3], w[1]];
    let w_z = [w[0], w[3], w[1], w[2]];
    let a = flux_jacobian_times(w, push, &x, rate[0]);
    let b = flux_jacobian_times(&w_y, push, &[y[0], y[2], y[3], y[1]], rate[1]);
    let c = flux_jacobian_times(&w_z, push, &[z[0], z[3], z[1], z[2]], rate[2]);
    [
        w[0] - sum3(a[0], b[0], c[0]),
        w[1] - sum3(a[1], b[3], c[2]),
        w[2] - sum3(a[2], b[1], c[3]),
        w[3] - sum3(a[3], b[2], c[1]),
    ]
}

/// Returns the primitive state half a step later by the differences along one axis alone, as
/// [`hancock::half_step_along`](super::hancock::half_step_along); `c2` is the squared sound speed.
#[device]
pub fn half_step_along<R: Lane>(w: &[R; 4], half: &[R; 4], rate: R, c2: R) -> [R; 4] {
    let a = flux_jacobian_times(w, c2 / w[0], half, rate);
    let mut h = [0.0; 4];
    for v in 0..4 {
        h[v] = w[v] - a[v];
    }
    h
}

/// Returns the primitive state `w` at a face after the change of its conserved variables by the fluxes across, or `w` if its density would not be
/// positive.
#[device]
pub fn corrected<R: Lane>(w: &[R; 4], change: &[R; 4]) -> [R; 4] {
    let u = conserved_from_primitive(w);
    let mut next = [0.0; 4];
    for v in 0..4 {
        next[v] = u[v] - change[v];
    }
    predicted(&next, w)
}

/// Returns the primitive state after half a step of donor-cell fluxes, or `old` if the density of `u` is not positive.
#[device]
pub fn predicted<R: Lane>(u: &[R; 4], old: &[R; 4]) -> [R; 4] {
    let w = primitive_from_conserved(u);
    let sane = w[0] > 0.0;
    if sane { w } else { *old }
}

/// Returns the primitive states at the lower and upper faces of a cell along one axis, `(h - lower, h + upper)`. If one of the densities
/// is not positive, both are the cell average `w`.
#[device]
pub fn edges<R: Lane>(w: &[R; 4], h: &[R; 4], lower: &[R; 4], upper: &[R; 4]) -> ([R; 4], [R; 4]) {
    let mut low = [0.0; 4];
    let mut high = [0.0; 4];
    for v in 0..4 {
        low[v] = h[v] - lower[v];
        high[v] = h[v] + upper[v];
    }
    let sane = (low[0] > 0.0) & (high[0] > 0.0);
    let below = if sane { low } else { *w };
    let above = if sane { high } else { *w };
    (below, above)
}

/// Returns the [`edges`] of a parabola, averaged over the domain of dependence of each face, as
/// [`hancock::traced_edges`](super::hancock::traced_edges); `c2` is the squared sound speed.
#[device]
pub fn traced_edges<R: Lane>(
    w: &[R; 4],
    h: &[R; 4],
    lower: &[R; 4],
    upper: &[R; 4],
    rate: R,
    c2: R,
) -> ([R; 4], [R; 4]) {
    let push = c2 / w[0];
    let mut bent = [0.0; 4];
    for v in 0..4 {
        bent[v] = 1.5 * (lower[v] - upper[v]);
    }
    let q = flux_jacobian_times(w, push, &bent, rate);
    let q2 = flux_jacobian_times(w, push, &q, 0.6666666666666666 * rate);
    let mut below = [0.0; 4];
    let mut above = [0.0; 4];
    for v in 0..4 {
        below[v] = lower[v] + (q2[v] + q[v]);
        above[v] = upper[v] - (q2[v] - q[v]);
    }
    edges(w, h, &below, &above)
}

// ---- characteristic variables, as in characteristic.rs

/// Returns the coefficients of [`project`] and [`restore`]: `rho / (2 c)`, `c / rho`.
#[device]
pub fn basis<R: Lane>(density: R, c2: R) -> [R; 2] {
    let c = c2.sqrt();
    [0.5 * density / c, c / density]
}

/// Returns the wave amplitudes of a difference of primitive variables: sound to the left, both shears, sound to the right.
#[device]
pub fn project<R: Lane>(dw: &[R; 4], basis: &[R; 2]) -> [R; 4] {
    let density = 0.5 * dw[0];
    let velocity = dw[1] * basis[0];
    [density - velocity, dw[2], dw[3], density + velocity]
}

/// Returns the difference of primitive variables of wave amplitudes, the inverse of [`project`].
#[device]
pub fn restore<R: Lane>(waves: &[R; 4], basis: &[R; 2]) -> [R; 4] {
    [
        waves[0] + waves[3],
        basis[1] * (waves[3] - waves[0]),
        waves[1],
        waves[2],
    ]
}
