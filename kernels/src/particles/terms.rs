//! Contributions of a particle to conserved quantities. Sums are integers, independent of the order.

use nestar_device::device;

/// Number of terms of a particle: see [`terms`].
pub const TERMS: usize = 7;

/// Returns the kinetic energy, the momentum along x, y, z, and the angular momentum about the origin.
#[device]
#[must_use]
pub fn terms(mass: f64, x: [f64; 3], v: [f64; 3]) -> [f64; 7] {
    let p = [mass * v[0], mass * v[1], mass * v[2]];
    [
        0.5 * (p[0] * v[0] + p[1] * v[1] + p[2] * v[2]),
        p[0],
        p[1],
        p[2],
        x[1] * p[2] - x[2] * p[1],
        x[2] * p[0] - x[0] * p[2],
        x[0] * p[1] - x[1] * p[0],
    ]
}

/// Returns the position along an axis, code length, for an offset in a patch. `width` is the patch width,
/// `left` the edge of the domain.
#[device]
#[must_use]
pub fn position(offset: u64, index: i32, left: f64, width: f64) -> f64 {
    left + (index as f64 + offset as f64 * 5.421_010_862_427_522e-20) * width
}

/// Rounds a number below 2^63 in magnitude to the nearest integer, halves away from 0. Returns the bits of an
/// `i64`; 0 for NaN.
#[device]
#[must_use]
pub fn round_to_integer(x: f64) -> u64 {
    let size = (x.abs() + 0.5) as u64;
    if x < 0.0 {
        0u64.wrapping_sub(size)
    } else {
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        for (x, whole) in [
            (0.0, 0),
            (0.4, 0),
            (-0.4, 0),
            (1.5, 2),
            (-1.5, -2),
            (-7.2, -7),
            (f64::NAN, 0),
            (2f64.powi(62), 1 << 62),
            (-(2f64.powi(62)), -(1 << 62)),
        ] {
            assert_eq!(round_to_integer(x) as i64, whole, "{x}");
        }
    }

    #[test]
    fn angular_momentum_is_about_the_origin() {
        let terms = terms(2.0, [1.0, 0.0, 0.0], [0.0, 3.0, 0.0]);
        assert_eq!(terms, [9.0, 0.0, 6.0, 0.0, 0.0, 0.0, 6.0]);
        assert_eq!(position(1 << 63, 3, -1.0, 0.5), 0.75);
    }
}
