//! The estimates in one cell, for the CPU and for CUDA.
use nestar_device::math::sum3;
use nestar_device::{Lane, Real, device};

/// Largest relative change of q over one cell: max over the axes of |q(i+1) - q(i-1)| / (2 |q(i)|).
///
/// `x`, `y`, `z` hold q one cell behind and ahead along each axis. 0 where q is constant, also where it is 0; infinite
/// where q is 0 between different values. Source: the gradient criteria of GAMER-2 (Schive et al. 2018, MNRAS 481,
/// 4815, section 2.1).
#[device]
pub fn relative_gradient<R: Lane>(q: R, x: [R; 2], y: [R; 2], z: [R; 2]) -> R {
    let change_x = (x[1] - x[0]).abs();
    let change_y = (y[1] - y[0]).abs();
    let change_z = (z[1] - z[0]).abs();
    let change = change_x.max(change_y).max(change_z);
    if change > 0.0 {
        0.5 * change / q.abs()
    } else {
        0.0
    }
}

/// Second difference along one axis and the bound that normalises it.
#[device]
fn second_difference<R: Lane>(behind: R, q: R, ahead: R, filter: R) -> [R; 2] {
    let rise = ahead - q;
    let fall = q - behind;
    let ripple = (ahead.abs() + behind.abs()) + 2.0 * q.abs();
    [
        (rise - fall).abs(),
        (rise.abs() + fall.abs()) + filter * ripple,
    ]
}

/// Cross difference over two axes, `q` in the order (-, -), (+, -), (-, +), (+, +): as the difference of the differences
/// along the first axis and along the second, and the bound of each.
#[device]
fn cross_difference<R: Lane>(q: [R; 4], filter: R) -> [R; 4] {
    let below = q[1] - q[0];
    let above = q[3] - q[2];
    let left = q[2] - q[0];
    let right = q[3] - q[1];
    let ripple = filter * ((q[0].abs() + q[3].abs()) + (q[1].abs() + q[2].abs()));
    [
        (above - below).abs(),
        (right - left).abs(),
        (above.abs() + below.abs()) + ripple,
        (right.abs() + left.abs()) + ripple,
    ]
}

/// `(scale * a)^2`.
#[device]
fn scaled_square<R: Lane>(a: R, scale: R) -> R {
    let b = a * scale;
    b * b
}

/// `(scale * a)^2 + (scale * b)^2`.
#[device]
fn scaled_squares<R: Lane>(a: R, b: R, scale: R) -> R {
    scaled_square(a, scale) + scaled_square(b, scale)
}

/// Löhner's error estimate: second derivatives over the first derivatives, from 0 where q is linear to 1.
///
/// ```text
///          sum_pq (d_pq q)^2                         d_pq: differences of the central differences along p and q
/// E^2 = ---------------------------------------------------------------------------------------------------
///       sum_pq (|d_p q|(q+1) + |d_p q|(q-1) + filter * (|q| summed over the values in d_pq))^2
/// ```
///
/// over all nine pairs of axes, with the cell's widths as units of length. `x`, `y`, `z` hold q *two* cells behind and ahead
/// along each axis, as twice a central difference reaches; `xy`, `xz`, `yz` the values one cell away along both axes in
/// the order (-, -), (+, -), (-, +), (+, +). 0 where q is constant. The sums are formed relative to their largest term:
/// squares of densities in cgs units would vanish in single precision.
///
/// Sources: Löhner (1987), Comput. Methods Appl. Mech. Eng. 61, 323, doi 10.1016/0045-7825(87)90098-3, in the
/// three-dimensional form of Fryxell et al. (2000), ApJS 131, 273 (FLASH), as used by GAMER-2 (Schive et al. 2018,
/// section 2.1).
#[device]
pub fn lohner_error<R: Lane>(
    q: R,
    x: [R; 2],
    y: [R; 2],
    z: [R; 2],
    xy: [R; 4],
    xz: [R; 4],
    yz: [R; 4],
    filter: R,
) -> R {
    let xx = second_difference(x[0], q, x[1], filter);
    let yy = second_difference(y[0], q, y[1], filter);
    let zz = second_difference(z[0], q, z[1], filter);
    let xy = cross_difference(xy, filter);
    let xz = cross_difference(xz, filter);
    let yz = cross_difference(yz, filter);
    let straight = xx[1].max(yy[1]).max(zz[1]);
    let crossed = xy[2].max(xy[3]).max(xz[2].max(xz[3])).max(yz[2].max(yz[3]));
    let scale = 1.0 / straight.max(crossed);
    let curved = sum3(
        scaled_square(xx[0], scale),
        scaled_square(yy[0], scale),
        scaled_square(zz[0], scale),
    );
    let twisted = sum3(
        scaled_squares(xy[0], xy[1], scale),
        scaled_squares(xz[0], xz[1], scale),
        scaled_squares(yz[0], yz[1], scale),
    );
    let bound_curved = sum3(
        scaled_square(xx[1], scale),
        scaled_square(yy[1], scale),
        scaled_square(zz[1], scale),
    );
    let bound_twisted = sum3(
        scaled_squares(xy[2], xy[3], scale),
        scaled_squares(xz[2], xz[3], scale),
        scaled_squares(yz[2], yz[3], scale),
    );
    let bound = bound_curved + bound_twisted;
    // not so where q is constant 0: the scale is infinite and the bound not a number
    if bound > 0.0 {
        ((curved + twisted) / bound).sqrt()
    } else {
        0.0
    }
}

/// Change of the velocity by its curl over one cell, relative to the velocity: |curl v| dx / |v|.
///
/// `x`, `y`, `z` hold v(i+1) - v(i-1) along each axis, of the two components across that axis in the order x, y, z
/// (`x`: v_y, v_z; `y`: v_x, v_z; `z`: v_x, v_y); dx is the largest of the `widths`. 0 without a curl, infinite where
/// only the velocity vanishes. Source: the vorticity criterion of GAMER-2 (Schive et al. 2018, section 2.1), which
/// compares |curl v| with |v| / dx.
#[device]
pub fn relative_vorticity<R: Lane>(
    v: [R; 3],
    x: [R; 2],
    y: [R; 2],
    z: [R; 2],
    widths: [R; 3],
) -> R {
    let half = 0.5 * widths[0].max(widths[1]).max(widths[2]);
    let per_x = half / widths[0];
    let per_y = half / widths[1];
    let per_z = half / widths[2];
    let curl_x = y[1] * per_y - z[1] * per_z;
    let curl_y = z[0] * per_z - x[1] * per_x;
    let curl_z = x[0] * per_x - y[0] * per_y;
    let curl = sum3(curl_x * curl_x, curl_y * curl_y, curl_z * curl_z);
    let speed = sum3(v[0] * v[0], v[1] * v[1], v[2] * v[2]);
    if curl > 0.0 {
        (curl / speed).sqrt()
    } else {
        0.0
    }
}

/// Jeans length in cells: lambda_J / dx with lambda_J = sqrt(pi c_s^2 / (G rho)).
///
/// `rho` and `c_s` positive, `gravity` is G and `width` dx, all in code units. Source: Truelove et al. (1997), ApJ 489,
/// L179, doi 10.1086/310975, eqs. (1) and (2).
#[device]
pub fn jeans_cells<R: Real>(rho: R, c_s: R, gravity: R, width: R) -> R {
    c_s * (R::PI / (gravity * rho)).sqrt() / width
}

/// Whether the cell with centre `x` and widths `w` shares volume with the box from `left` to `right`.
#[device]
pub fn meets_box<R: Real>(x: [R; 3], w: [R; 3], left: [R; 3], right: [R; 3]) -> bool {
    let in_x = x[0] + 0.5 * w[0] > left[0] && x[0] - 0.5 * w[0] < right[0];
    let in_y = x[1] + 0.5 * w[1] > left[1] && x[1] - 0.5 * w[1] < right[1];
    let in_z = x[2] + 0.5 * w[2] > left[2] && x[2] - 0.5 * w[2] < right[2];
    in_x && in_y && in_z
}

/// Whether the point of the cell (centre `x`, widths `w`) that is nearest to `centre` lies nearer than `radius`.
#[device]
pub fn meets_sphere<R: Real>(x: [R; 3], w: [R; 3], centre: [R; 3], radius: R) -> bool {
    let zero = R::lit(0.0);
    let d_x = ((x[0] - centre[0]).abs() - 0.5 * w[0]).max(zero);
    let d_y = ((x[1] - centre[1]).abs() - 0.5 * w[1]).max(zero);
    let d_z = ((x[2] - centre[2]).abs() - 0.5 * w[2]).max(zero);
    sum3(d_x * d_x, d_y * d_y, d_z * d_z) < radius * radius
}
