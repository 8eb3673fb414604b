//! The one place where formulas get their functions from.
//!
//! None of them comes from the platform's libm: the bits of a formula's value are the same on every machine. What is
//! missing in `nestar_device::math` is built here from it.

use nestar_device::{Lane, Real, device};

/// `a^n` by repeated squaring, in the order that the device code has.
pub(super) fn power_whole(a: f64, n: i8) -> f64 {
    Lane::powi(a, i32::from(n))
}

/// -1, 0 or 1; zeros and NaN come back as they are.
pub(super) fn sign(a: f64) -> f64 {
    if a > 0.0 {
        1.0
    } else if a < 0.0 {
        -1.0
    } else {
        a
    }
}

pub(super) fn exp(a: f64) -> f64 {
    a.exp()
}

pub(super) fn ln(a: f64) -> f64 {
    a.ln()
}

pub(super) fn pow(a: f64, b: f64) -> f64 {
    a.powf(b)
}

pub(super) fn sin(a: f64) -> f64 {
    a.sin()
}

pub(super) fn cos(a: f64) -> f64 {
    a.cos()
}

pub(super) fn tan(a: f64) -> f64 {
    a.tan()
}

pub(super) fn sinh(a: f64) -> f64 {
    a.sinh()
}

pub(super) fn cosh(a: f64) -> f64 {
    a.cosh()
}

pub(super) fn tanh(a: f64) -> f64 {
    a.tanh()
}

/// Abramowitz & Stegun 7.1.6 up to 3, 1 minus the continued fraction 7.1.14 beyond.
pub(super) fn erf(a: f64) -> f64 {
    let x = a.abs();
    let scale = 2.0 / std::f64::consts::PI.sqrt() * exp(-x * x);
    let value = if x < 3.0 {
        let (mut term, mut sum) = (x, x);
        for n in 1..60 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        scale * sum
    } else {
        let tail = (1..40)
            .rev()
            .fold(x, |below, n| x + 0.5 * f64::from(n) / below);
        1.0 - 0.5 * scale / tail
    };
    value.copysign(a)
}

/// Decimal logarithm: `ln a / ln 10`, exact for the powers of ten that doubles hold exactly.
pub(super) fn log10(a: f64) -> f64 {
    let value = ln(a) / std::f64::consts::LN_10;
    let whole = (value + 0.5).floor();
    // 10^0 … 10^22 are doubles, and so are the products that make them.
    if (0.0..=22.0).contains(&whole) && power_of_ten(whole as u32) == a {
        whole
    } else {
        value
    }
}

fn power_of_ten(n: u32) -> f64 {
    (0..n).fold(1.0, |power, _| power * 10.0)
}

pub(super) fn atan(a: f64) -> f64 {
    arc_tangent(a)
}

pub(super) fn atan2(y: f64, x: f64) -> f64 {
    angle(y, x)
}

/// `asin a = atan2(a, sqrt((1 - a)(1 + a)))`, NaN beyond ±1.
pub(super) fn asin(a: f64) -> f64 {
    angle(a, ((1.0 - a) * (1.0 + a)).sqrt())
}

/// `acos a = atan2(sqrt((1 - a)(1 + a)), a)`, NaN beyond ±1.
pub(super) fn acos(a: f64) -> f64 {
    angle(((1.0 - a) * (1.0 + a)).sqrt(), a)
}

/// Arc tangent, from -pi/2 to pi/2, to 2 ulp in double precision.
///
/// Magnitudes above 1 are inverted. The rest is brought near a multiple c of 1/4 by
/// `atan u = atan c + atan((u - c)/(1 + u c))` (Abramowitz & Stegun 4.4.34), to |t| < 3/16, and summed by the Taylor series
/// 4.4.42 up to t^21, whose next term is below 2^-57 of the first. `low` is the rest of the rounded `atan c`.
#[device]
pub(super) fn arc_tangent<R: Real>(x: R) -> R {
    let a = x.abs();
    let u = if a > 1.0 { 1.0 / a } else { a };
    let (c, base, low) = if u < 0.1875 {
        (0.0, 0.0, 0.0)
    } else if u < 0.375 {
        (0.25, 0.24497866312686414, 1.0698755618734451e-17)
    } else if u < 0.625 {
        (0.5, 0.4636476090008061, 2.2698777452961687e-17)
    } else if u < 0.875 {
        (0.75, 0.6435011087932844, 1.5834785051444286e-17)
    } else {
        (1.0, 0.7853981633974483, 3.061616997868383e-17)
    };
    let t = (u - c) / (1.0 + u * c);
    let z = t * t;
    let p = 1.0 / 17.0 - z * (1.0 / 19.0 - z * (1.0 / 21.0));
    let q = 1.0 / 11.0 - z * (1.0 / 13.0 - z * (1.0 / 15.0 - z * p));
    let r = 1.0 / 3.0 - z * (1.0 / 5.0 - z * (1.0 / 7.0 - z * (1.0 / 9.0 - z * q)));
    let flat = base + (t - (t * z * r - low));
    let angle = if a > 1.0 {
        1.5707963267948966 - (flat - 6.123233995736766e-17)
    } else {
        flat
    };
    angle.copysign(x)
}

/// The angle of the point (x, y), from -pi to pi, with the signs of zeros and the infinities of IEEE 754 `atan2`.
#[device]
pub(super) fn angle<R: Real>(y: R, x: R) -> R {
    let height = y.abs();
    let width = x.abs();
    let steep = height > width;
    let small = if steep { width } else { height };
    let large = if steep { height } else { width };
    // Both zero, and both infinite, are on an axis or a diagonal by definition.
    let ratio = if small == large {
        if large == 0.0 { 0.0 } else { 1.0 }
    } else {
        small / large
    };
    let flat = arc_tangent(ratio);
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

    /// Distance in units of the last place of `b`.
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
            // A third over all exponents, a third around 1, a third up to 20.
            match i % 3 {
                0 => f64::from_bits(state),
                1 => unit,
                _ => 20.0 * unit,
            }
        })
    }

    #[test]
    fn arc_functions_are_within_two_ulp() {
        let mut worst = [0.0f64; 4];
        let mut last = 1.0;
        for x in samples() {
            let errors = [
                ulps(atan(x), x.atan()),
                ulps(asin(x), x.asin()),
                ulps(acos(x), x.acos()),
                ulps(atan2(x, last), x.atan2(last)),
            ];
            for (worst, error) in worst.iter_mut().zip(errors) {
                assert!(error <= 2.0, "{x:e} {last:e}: {errors:?} ulp");
                *worst = worst.max(error);
            }
            last = x;
        }
        println!("atan, asin, acos, atan2: {worst:?} ulp");
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
                    same(atan2(y, x), y.atan2(x)),
                    "atan2({y}, {x}) is {}",
                    atan2(y, x)
                );
            }
        }
    }

    #[test]
    fn decimal_logarithms_of_powers_of_ten_are_whole() {
        for n in 0..=22 {
            assert_eq!(log10(10f64.powi(n)), f64::from(n));
        }
        assert!(log10(-1.0).is_nan());
        assert_eq!(log10(0.0), f64::NEG_INFINITY);
        for x in samples().filter(|x| *x > 0.0) {
            assert!(ulps(log10(x), x.log10()) <= 3.0, "{x:e}");
        }
    }
}
