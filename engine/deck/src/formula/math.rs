//! Mathematical functions of formulas.
//!
//! They do not use the platform's libm, so the value of a formula has the same bits on every machine and device. Functions
//! missing from `nestar_device::math` are built from it here.

use nestar_device::{Lane, Real, device, math};

pub(super) use math::{atan, cos, cosh, erf, exp, ln, log10, pow, sin, sinh, tan, tanh};

/// Returns `a^n` by repeated squaring, in the same order as the device code.
pub(super) fn power_integer(a: f64, n: i8) -> f64 {
    Lane::powi(a, i32::from(n))
}

/// Returns the sign -1 or 1; zeros and NaN are returned unchanged.
#[device]
pub(super) fn sign<R: Real>(a: R) -> R {
    if a > 0.0 {
        1.0
    } else if a < 0.0 {
        -1.0
    } else {
        a
    }
}

/// Returns the remainder of floored division.
#[device]
pub(super) fn modulo<R: Real>(a: R, b: R) -> R {
    a - b * (a / b).floor()
}

/// Returns the minimum; NaN if either argument is NaN.
#[device]
pub(super) fn least<R: Real>(a: R, b: R) -> R {
    if a < b || a.is_nan() { a } else { b }
}

/// Returns the maximum; NaN if either argument is NaN.
#[device]
pub(super) fn greatest<R: Real>(a: R, b: R) -> R {
    if a > b || a.is_nan() { a } else { b }
}

/// Returns `asin a = atan2(a, sqrt((1 - a)(1 + a)))`; NaN outside [-1, 1].
#[device]
pub(super) fn asin<R: Real>(a: R) -> R {
    angle(a, ((1.0 - a) * (1.0 + a)).sqrt())
}

/// Returns `acos a = atan2(sqrt((1 - a)(1 + a)), a)`; NaN outside [-1, 1].
#[device]
pub(super) fn acos<R: Real>(a: R) -> R {
    angle(((1.0 - a) * (1.0 + a)).sqrt(), a)
}

/// Returns `atan2(y, x)`, the angle of the point (x, y) in [-pi, pi], with IEEE 754 rules for zeros and infinities.
#[device]
pub(super) fn angle<R: Real>(y: R, x: R) -> R {
    let height = y.abs();
    let width = x.abs();
    let steep = height > width;
    let small = if steep { width } else { height };
    let large = if steep { height } else { width };
    // two zeros or two infinities are on an axis or a diagonal by definition
    let ratio = if small == large {
        if large == 0.0 { 0.0 } else { 1.0 }
    } else {
        small / large
    };
    let flat = math::atan(ratio);
    let left = R::lit(1.0).copysign(x) < 0.0;
    let angle = if steep {
        if left {
            1.5707963267948966 + (flat + 6.123233995736766e-17)
        } else {
            1.5707963267948966 - (flat - 6.123233995736766e-17)
        }
    } else if left {
        3.141592653589793 - (flat - 1.2246467991473532e-16)
    } else {
        flat
    };
    angle.copysign(y)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the distance in units of the last place of `b`.
    fn ulps(a: f64, b: f64) -> f64 {
        if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) {
            return 0.0;
        }
        (a - b).abs() / (f64::from_bits(b.abs().to_bits() + 1) - b.abs())
    }

    fn samples() -> impl Iterator<Item = f64> {
        let mut state = 5u64;
        (0..200_000).map(move |i| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let unit = (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            // one third each over all exponents, in [-1, 1] and in [-20, 20]
            match i % 3 {
                0 => f64::from_bits(state),
                1 => unit,
                _ => 20.0 * unit,
            }
        })
    }

    #[test]
    fn arc_functions_are_within_two_ulp() {
        let mut last = 1.0;
        for x in samples() {
            let errors = [
                ulps(atan(x), x.atan()),
                ulps(asin(x), x.asin()),
                ulps(acos(x), x.acos()),
                ulps(angle(x, last), x.atan2(last)),
            ];
            let worst = errors.into_iter().fold(0.0, f64::max);
            assert!(worst <= 2.0, "{x:e} {last:e}: {errors:?} ulp");
            last = x;
        }
    }

    #[test]
    fn angles_of_axes_infinities_and_zeros() {
        let tiny = f64::MIN_POSITIVE;
        let values = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            tiny,
        ];
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        for y in values {
            assert!(same(atan(y), y.atan()), "atan({y})");
            for x in values {
                assert!(
                    same(angle(y, x), y.atan2(x)),
                    "atan2({y}, {x}) is {}",
                    angle(y, x)
                );
            }
        }
    }
}
