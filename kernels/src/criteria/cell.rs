//! Refinement criteria: functions of the values in a cell, of its stencil or of its place, for the CPU and for CUDA.
use nestar_device::math::sum3;
use nestar_device::{Lane, Place, Real, Stencil, device};

/// Returns `true` if q > `threshold`.
#[device]
pub fn above<R: Real>(q: R, threshold: R) -> bool {
    q > threshold
}

/// Returns `true` if q < `threshold`.
#[device]
pub fn below<R: Real>(q: R, threshold: R) -> bool {
    q < threshold
}

/// Returns `true` if q is a number other than 0.
#[device]
pub fn is_nonzero<R: Real>(q: R) -> bool {
    q.abs() > 0.0
}

/// Returns the largest relative change of q over one cell: max over the axes of |q(i+1) - q(i-1)| / (2 |q(i)|).
///
/// It is 0 if q is constant (also 0), and infinite if q is 0 between different values. Source: the gradient criteria of GAMER-2 (Schive et
/// al. 2018, MNRAS 481, 4815, section 2.1).
#[device]
pub fn relative_gradient<R: Real>(q: &Stencil<R, R, 2>) -> R {
    let change_x = (q.at(1, 0, 0) - q.at(-1, 0, 0)).abs();
    let change_y = (q.at(0, 1, 0) - q.at(0, -1, 0)).abs();
    let change_z = (q.at(0, 0, 1) - q.at(0, 0, -1)).abs();
    let change = change_x.max(change_y).max(change_z);
    if change > 0.0 {
        0.5 * change / q.at(0, 0, 0).abs()
    } else {
        0.0
    }
}

/// Returns `true` if the [relative gradient](relative_gradient) exceeds `threshold` (0 or more).
#[device]
pub fn gradient<R: Real>(q: &Stencil<R, R, 2>, threshold: R) -> bool {
    relative_gradient(q) > threshold
}

/// Returns the second difference along one axis and the bound that normalises it.
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

/// Returns the cross difference over two axes, computed along the first axis and along the second, and the bound of each. `q` is in the
/// order (-, -), (+, -), (-, +), (+, +).
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

/// Returns the cross differences over x and y, x and z, y and z.
#[device]
fn cross_differences<R: Real>(q: &Stencil<R, R, 2>, filter: R) -> [[R; 4]; 3] {
    let [a, b] = [q.at(-1, -1, 0), q.at(1, -1, 0)];
    let xy = cross_difference([a, b, q.at(-1, 1, 0), q.at(1, 1, 0)], filter);
    let [a, b] = [q.at(-1, 0, -1), q.at(1, 0, -1)];
    let xz = cross_difference([a, b, q.at(-1, 0, 1), q.at(1, 0, 1)], filter);
    let [a, b] = [q.at(0, -1, -1), q.at(0, 1, -1)];
    let yz = cross_difference([a, b, q.at(0, -1, 1), q.at(0, 1, 1)], filter);
    [xy, xz, yz]
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

/// Returns Löhner's error estimate: second over first derivatives, from 0 if q is linear to 1.
///
/// ```text
///          sum_pq (d_pq q)^2                         d_pq: differences of the central differences along p and q
/// E^2 = ---------------------------------------------------------------------------------------------------
///       sum_pq (|d_p q|(q+1) + |d_p q|(q-1) + filter * (|q| summed over the values in d_pq))^2
/// ```
///
/// The sums run over all nine pairs of axes, with the cell's widths as units of length. Along one axis the estimate uses q *two* cells
/// away, the reach of two central differences. It is 0 if q is constant. Sums are formed relative to their largest term, because squares of
/// densities in cgs units would underflow in single precision.
///
/// Sources: Löhner (1987), Comput. Methods Appl. Mech. Eng. 61, 323, doi 10.1016/0045-7825(87)90098-3, in the three-dimensional form of
/// Fryxell et al. (2000), ApJS 131, 273 (FLASH), as used by GAMER-2 (Schive et al. 2018, section 2.1).
#[device]
pub fn lohner_error<R: Real>(q: &Stencil<R, R, 2>, filter: R) -> R {
    let here = q.at(0, 0, 0);
    let xx = second_difference(q.at(-2, 0, 0), here, q.at(2, 0, 0), filter);
    let yy = second_difference(q.at(0, -2, 0), here, q.at(0, 2, 0), filter);
    let zz = second_difference(q.at(0, 0, -2), here, q.at(0, 0, 2), filter);
    let [xy, xz, yz] = cross_differences(q, filter);
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
    // false if q is 0 everywhere: the scale is infinite and the bound NaN
    if bound > 0.0 {
        ((curved + twisted) / bound).sqrt()
    } else {
        0.0
    }
}

/// Returns `true` if [Löhner's estimate](lohner_error) exceeds `threshold` (0 to 1, usually 0.3 to 0.8). `filter` suppresses refinement of
/// ripples; FLASH and GAMER use 0.01.
#[device]
pub fn lohner<R: Real>(q: &Stencil<R, R, 2>, threshold: R, filter: R) -> bool {
    lohner_error(q, filter) > threshold
}

/// Returns the square of |curl v| dx, where dx is the largest width of the cell.
#[device]
fn curl_squared<R: Real>(v: &Stencil<R, [R; 3], 2>, at: &Place<R>) -> R {
    let [left, right] = [v.at(-1, 0, 0), v.at(1, 0, 0)];
    let [front, back] = [v.at(0, -1, 0), v.at(0, 1, 0)];
    let [bottom, top] = [v.at(0, 0, -1), v.at(0, 0, 1)];
    let half = 0.5 * at.width[0].max(at.width[1]).max(at.width[2]);
    let per_x = half / at.width[0];
    let per_y = half / at.width[1];
    let per_z = half / at.width[2];
    let curl_x = (back[2] - front[2]) * per_y - (top[1] - bottom[1]) * per_z;
    let curl_y = (top[0] - bottom[0]) * per_z - (right[2] - left[2]) * per_x;
    let curl_z = (right[1] - left[1]) * per_x - (back[0] - front[0]) * per_y;
    sum3(curl_x * curl_x, curl_y * curl_y, curl_z * curl_z)
}

/// Returns the relative vorticity |curl v| dx / |v|, where dx is the largest width of the cell.
///
/// It is 0 without a curl, and infinite if only the velocity vanishes. Source: the vorticity criterion of GAMER-2 (Schive et al. 2018,
/// section 2.1), which compares |curl v| with |v| / dx.
#[device]
pub fn relative_vorticity<R: Real>(v: &Stencil<R, [R; 3], 2>, at: &Place<R>) -> R {
    let curl = curl_squared(v, at);
    let w = v.at(0, 0, 0);
    let speed = sum3(w[0] * w[0], w[1] * w[1], w[2] * w[2]);
    if curl > 0.0 {
        (curl / speed).sqrt()
    } else {
        0.0
    }
}

/// Returns `true` if the [relative vorticity](relative_vorticity) exceeds `threshold` (0 or more).
#[device]
pub fn vorticity<R: Real>(v: &Stencil<R, [R; 3], 2>, at: &Place<R>, threshold: R) -> bool {
    relative_vorticity(v, at) > threshold
}

/// Returns `true` if |curl b| dx exceeds `threshold` (0 or more) times |b|, or times `least` where |b| is smaller; dx is the largest width of the
/// cell. Round-off has a curl, too, where there is almost no field.
#[device]
pub fn current<R: Real>(b: &Stencil<R, [R; 3], 2>, at: &Place<R>, threshold: R, least: R) -> bool {
    let w = b.at(0, 0, 0);
    let field = sum3(w[0] * w[0], w[1] * w[1], w[2] * w[2]).sqrt();
    curl_squared(b, at).sqrt() > threshold * field.max(least)
}

/// Returns the Jeans length in cells: lambda_J / dx with lambda_J = sqrt(pi c_s^2 / (G rho)).
///
/// `rho` and `c_s` are positive, `gravity` is G and `width` dx, all in code units. Source: Truelove et al. (1997), ApJ 489, L179, doi
/// 10.1086/310975, eqs. (1) and (2).
#[device]
pub fn jeans_cells<R: Real>(rho: R, c_s: R, gravity: R, width: R) -> R {
    c_s * (R::PI / (gravity * rho)).sqrt() / width
}

/// Returns `true` if the [Jeans length](jeans_cells) of density and sound speed is shorter than `cells` times the largest cell width.
/// Truelove et al. (1997) require at least 4.
#[device]
pub fn jeans<R: Real>(u: [R; 2], at: &Place<R>, cells: R, gravity: R) -> bool {
    let width = at.width[0].max(at.width[1]).max(at.width[2]);
    // the first number of the clock is the factor of gravitational accelerations
    jeans_cells(u[0], u[1], gravity * R::from_f64(at.numbers[0]), width) < cells
}

/// Returns `true` if the cell overlaps the box from `left` to `right`, so that a region is refined however small it is.
#[device]
pub fn overlaps_box<R: Real>(
    at: &Place<R>,
    left_x: R,
    left_y: R,
    left_z: R,
    right_x: R,
    right_y: R,
    right_z: R,
) -> bool {
    let [x, y, z] = at.centre;
    let w = at.width;
    let in_x = x + 0.5 * w[0] > left_x && x - 0.5 * w[0] < right_x;
    let in_y = y + 0.5 * w[1] > left_y && y - 0.5 * w[1] < right_y;
    let in_z = z + 0.5 * w[2] > left_z && z - 0.5 * w[2] < right_z;
    in_x && in_y && in_z
}

/// Returns `true` if some point of the cell is closer than `radius` to a centre.
#[device]
pub fn overlaps_sphere<R: Real>(at: &Place<R>, x: R, y: R, z: R, radius: R) -> bool {
    let zero = R::lit(0.0);
    let d_x = ((at.centre[0] - x).abs() - 0.5 * at.width[0]).max(zero);
    let d_y = ((at.centre[1] - y).abs() - 0.5 * at.width[1]).max(zero);
    let d_z = ((at.centre[2] - z).abs() - 0.5 * at.width[2]).max(zero);
    sum3(d_x * d_x, d_y * d_y, d_z * d_z) < radius * radius
}
