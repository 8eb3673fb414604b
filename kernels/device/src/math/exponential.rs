//! Exponential function, logarithm, power and hyperbolic functions.
//!
//! Reductions by the additive structure of the functions (W. J. Cody & W. Waite, Software Manual for the Elementary
//! Functions, 1980); the coefficients are minimax polynomials computed for these intervals by the Remez algorithm.

use super::double::{fast_two_sum, pair_quotient, power_of_two, two_product, two_sum};
use crate::{Lane, Real, device};

/// ln 2 to 42 bits: its product with a binary exponent is exact.
#[device]
pub const LN2_HIGH: f64 = 0.6931471805598903;
/// ln 2 - `LN2_HIGH`.
#[device]
pub const LN2_LOW: f64 = 5.497923018708371e-14;
/// 1 / ln 2.
#[device]
pub const LOG2_E: f64 = 1.4426950408889634;
/// Above this the exponential function is infinite, below its negative it is 0.
#[device]
pub const EXP_LIMIT: f64 = 800.0;

/// `e^x`, error below 0.9 ulp in double precision (0.5001 ulp in single); overflows to infinity, underflows gradually.
#[device]
pub fn exp<R: Real>(x: R) -> R {
    R::from_f64(exp_double(x.to_f64()))
}

/// Natural logarithm, error below 0.85 ulp in double precision (0.5001 ulp in single); -infinity at 0, NaN below.
#[device]
pub fn ln<R: Real>(x: R) -> R {
    R::from_f64(ln_double(x.to_f64()))
}

/// `ln(a / b)` of two numbers of equal sign whose sum is finite, error below 2 ulp in double precision (0.5001 ulp in single), also if they
/// nearly agree.
#[device]
pub fn ln_ratio<R: Real>(a: R, b: R) -> R {
    R::from_f64(ln_ratio_double(a.to_f64(), b.to_f64()))
}

/// Logarithm to base 10, error below 0.51 ulp in double precision (0.5001 ulp in single), exact for exact powers of 10;
/// -infinity at 0, NaN below.
#[device]
pub fn log10<R: Real>(x: R) -> R {
    R::from_f64(log10_double(x.to_f64()))
}

/// `e^x - 1`, error below 0.9 ulp in double precision (0.5001 ulp in single), also for small `x`.
#[device]
pub fn exp_m1<R: Real>(x: R) -> R {
    R::from_f64(exp_m1_double(x.to_f64()))
}

/// `ln(1 + x)`, error below 1.3 ulp in double precision (0.5001 ulp in single), also for small `x`; -infinity at -1, NaN below.
#[device]
pub fn ln_1p<R: Real>(x: R) -> R {
    R::from_f64(ln_1p_double(x.to_f64()))
}

/// Square root, correctly rounded; NaN below 0. The same as the method, and usable in lanes.
#[device]
pub fn sqrt<R: Lane>(x: R) -> R {
    x.sqrt()
}

/// `x^y`, error below 0.9 ulp in double precision (0.5001 ulp in single), with the special cases of C's `pow`:
/// a negative `x` takes an integral `y` only (else NaN), `pow(x, 0)` and `pow(1, y)` are 1 for every `x` and `y`.
#[device]
pub fn pow<R: Real>(x: R, y: R) -> R {
    let single = R::EPSILON > 1e-10;
    R::from_f64(pow_double(x.to_f64(), y.to_f64(), single))
}

/// `(e^r - 1 - r) / r^2` for `|r| <= ln(2) / 2`, error 2^-59.
#[device]
pub fn exp_remainder(r: f64) -> f64 {
    // even and odd powers side by side: half the latency of one chain
    let z = r * r;
    let even = 2.0921589370829142e-9;
    let even = even * z + 2.7557252912472866e-7;
    let even = even * z + 2.480158734733946e-5;
    let even = even * z + 0.0013888888888874398;
    let even = even * z + 0.041666666666666685;
    let even = even * z + 0.5;
    let odd = 2.510521838664829e-8;
    let odd = odd * z + 2.7557255396471e-6;
    let odd = odd * z + 0.0001984126987482399;
    let odd = odd * z + 0.008333333333326134;
    let odd = odd * z + 0.1666666666666667;
    even + r * odd
}

/// `e^(x + low) 2^shift` for a small `low` and `|shift| <= 2`.
#[device]
pub fn exp_scaled(x: f64, low: f64, shift: i32) -> f64 {
    if x.is_nan() {
        return x;
    }
    let x = x.clamp(-EXP_LIMIT, EXP_LIMIT);
    let k = (x * LOG2_E + 0.5).floor();
    let (r, r_low) = fast_two_sum(x - k * LN2_HIGH, low - k * LN2_LOW);
    let significand = 1.0 + (r + (r_low + r * r * exp_remainder(r)));
    // two factors: neither over- nor underflows, and only the second product rounds
    let n = k.to_i32() + shift;
    let half = n >> 1;
    significand * power_of_two(half) * power_of_two(n - half)
}

#[device]
pub fn exp_double(x: f64) -> f64 {
    // the same bits as below, where no power of 2 is split off
    if x.abs() < 0.34 {
        1.0 + (x + x * x * exp_remainder(x))
    } else {
        exp_scaled(x, 0.0, 0)
    }
}

/// `e^(x + low)` for a `low` of about the size of the rounding error of `x`.
#[device]
pub fn exp_pair(x: f64, low: f64) -> f64 {
    exp_scaled(x, low, 0)
}

/// `(m, k)` with `x = m 2^k` and `m` between the roots of 1/2 and 2, for positive finite `x`.
#[device]
pub fn centred_significand(x: f64) -> (f64, i32) {
    let (mut x, mut k) = (x, -1024);
    if x < 2.2250738585072014e-308 {
        x *= 18014398509481984.0;
        k -= 54;
    }
    // the bits of 2 less those of the root of 1/2: the exponent counts from that root on, and is never negative
    let bits = x.to_bits();
    let above = bits.wrapping_add(0x0019_5f61_9980_c433u64) >> 52;
    let m = bits
        .wrapping_sub(above << 52)
        .wrapping_add(0x4000_0000_0000_0000u64);
    (f64::from_bits(m), k + above as i32)
}

/// `(2 artanh(s) / s - 2) / z` for `z = s^2`, `|s| <= 0.1716`.
#[device]
pub fn artanh_tail(z: f64) -> f64 {
    let y = z * z;
    let even = 0.13268637931733243;
    let even = even * y + 0.18181795532092035;
    let even = even * y + 0.28571428570798246;
    let even = even * y + 0.6666666666666666;
    let odd = 0.13087949030034499;
    let odd = odd * y + 0.15386245130917564;
    let odd = odd * y + 0.22222222392817578;
    let odd = odd * y + 0.40000000000000885;
    even + z * odd
}

/// `ln(a / b)`.
#[device]
pub fn ln_ratio_double(a: f64, b: f64) -> f64 {
    let s = (a - b) / (a + b);
    if s.abs() <= 0.1715 {
        let z = s * s;
        2.0 * s + s * (z * artanh_tail(z))
    } else {
        ln_double(a / b)
    }
}

#[device]
pub fn ln_double(x: f64) -> f64 {
    if x.is_nan() || x == f64::INFINITY {
        return x;
    }
    if x <= 0.0 {
        return if x == 0.0 { -f64::INFINITY } else { f64::NAN };
    }
    let (m, k) = centred_significand(x);
    let k = k as f64;
    // ln(1 + f) = 2 artanh(s), s = f / (2 + f), arranged so that f, which is exact, comes last
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let half_square = 0.5 * f * f;
    let correction = s * (half_square + z * artanh_tail(z)) + k * LN2_LOW;
    k * LN2_HIGH - ((half_square - correction) - f)
}

#[device]
pub fn ln_1p_double(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 || x == f64::INFINITY {
        return x;
    }
    // in the terms of `ln_double`, with no sum
    if x > -0.29 && x < 0.41 {
        let s = x / (2.0 + x);
        let z = s * s;
        let half_square = 0.5 * x * x;
        return x - (half_square - s * (half_square + z * artanh_tail(z)));
    }
    // ln(u + rest) = ln(u) + rest / u to second order in what the sum has lost
    let (u, rest) = two_sum(1.0, x);
    if u <= 0.0 {
        return ln_double(u);
    }
    ln_double(u) + rest / u
}

/// `artanh(s) = s + w` as the pair `w`, for `s = s_high + s_low`, `|s| <= 0.1716`; relative error 2^-67 of `s`.
#[device]
pub fn artanh_remainder(s: f64, s_low: f64) -> (f64, f64) {
    let (z, z_error) = two_product(s, s);
    let z_low = z_error + 2.0 * s * s_low;
    let p = 0.05783713038596954;
    let p = p * z + 0.05860858962431515;
    let p = p * z + 0.0666710258122135;
    let p = p * z + 0.07692303170788713;
    let p = p * z + 0.09090909113203925;
    let p = p * z + 0.1111111111106992;
    let p = p * z + 0.142857142857143;
    // 1/5 + z p and 1/3 + z (1/5 + z p) in pairs
    let (fifth, fifth_error) = fast_two_sum(0.2, z * p);
    let fifth_low = fifth_error + -1.1102230246251566e-17;
    let (product, product_error) = two_product(z, fifth);
    let (third, third_error) = fast_two_sum(0.3333333333333333, product);
    let third_low =
        third_error + (product_error + z * fifth_low + z_low * fifth + 1.850371707708594e-17);
    let (u, u_error) = two_product(z, third);
    let u_low = u_error + (z * third_low + z_low * third);
    let (w, w_error) = two_product(s, u);
    (w, w_error + (s * u_low + s_low * u))
}

/// `ln(x)` as a pair with a relative error of about 2^-65, for positive finite `x`.
#[device]
pub fn ln_pair(x: f64) -> (f64, f64) {
    let (m, k) = centred_significand(x);
    let k = k as f64;
    let f = m - 1.0;
    let (d, d_low) = two_sum(m, 1.0);
    let s = f / d;
    let (product, error) = two_product(s, d);
    let s_low = ((f - product) - error - s * d_low) / d;
    let (w, w_low) = artanh_remainder(s, s_low);
    let (sum, error_1) = two_sum(k * LN2_HIGH, 2.0 * s);
    let (sum, error_2) = two_sum(sum, 2.0 * w);
    fast_two_sum(
        sum,
        error_1 + error_2 + (2.0 * (s_low + w_low) + k * LN2_LOW),
    )
}

#[device]
pub fn log10_double(x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 || x == f64::INFINITY {
        return ln_double(x);
    }
    let (l, l_low) = ln_pair(x);
    // 1 / ln 10 as a pair
    let (product, error) = two_product(l, 0.4342944819032518);
    product + (error + (l * 1.098319650216765e-17 + l_low * 0.4342944819032518))
}

/// `e^x - 1` as a pair with a relative error of about 2^-55, for `|x| <= 50`.
#[device]
pub fn exp_m1_pair(x: f64) -> (f64, f64) {
    let k = (x * LOG2_E + 0.5).floor();
    let (r, r_low) = fast_two_sum(x - k * LN2_HIGH, -k * LN2_LOW);
    let (p, p_low) = fast_two_sum(r, r_low + r * r * exp_remainder(r));
    let scale = power_of_two(k.to_i32());
    let (less, less_error) = two_sum(scale, -1.0);
    let (sum, error) = two_sum(less, scale * p);
    fast_two_sum(sum, error + (less_error + scale * p_low))
}

#[device]
pub fn exp_m1_double(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 {
        return x;
    }
    // the same bits as below, where no power of 2 is split off
    if x.abs() < 0.34 {
        return x + x * x * exp_remainder(x);
    }
    if x > 50.0 {
        return exp_pair(x, 0.0);
    }
    if x < -50.0 {
        return -1.0;
    }
    let (high, _) = exp_m1_pair(x);
    high
}

/// Returns `true` for an odd integer.
#[device]
pub fn is_odd(y: f64) -> bool {
    let half = 0.5 * y;
    y.trunc() == y && half.trunc() != half
}

/// Handles the cases of `pow` in which the base is 0 or infinite, or the exponent is infinite.
#[device]
pub fn pow_limit(x: f64, y: f64) -> f64 {
    let size = x.abs();
    if !y.is_finite() {
        return if size == 1.0 {
            1.0
        } else if (size > 1.0) == (y > 0.0) {
            f64::INFINITY
        } else {
            0.0
        };
    }
    let limit = if (size == 0.0) == (y > 0.0) {
        0.0
    } else {
        f64::INFINITY
    };
    if is_odd(y) { limit.copysign(x) } else { limit }
}

/// `pow`; with `fast`, to the accuracy of single precision only.
#[device]
pub fn pow_double(x: f64, y: f64, fast: bool) -> f64 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x.is_nan() || y.is_nan() {
        return x + y;
    }
    if x == 0.0 || !x.is_finite() || !y.is_finite() {
        return pow_limit(x, y);
    }
    if x < 0.0 && y.trunc() != y {
        return f64::NAN;
    }
    if y == 2.0 {
        return x * x;
    }
    let size = x.abs();
    let sign = if x < 0.0 && is_odd(y) { -1.0 } else { 1.0 };
    if fast {
        return sign * exp_pair(y * ln_double(size), 0.0);
    }
    let (l, l_low) = ln_pair(size);
    if (y * l).abs() > EXP_LIMIT {
        // the sign decides; the exact product could overflow
        return sign * exp_pair(y * l, 0.0);
    }
    let (product, error) = two_product(y, l);
    sign * exp_pair(product, error + y * l_low)
}

/// From here on `e^-x` is negligible compared to `e^x`.
#[device]
pub const ONE_TERM: f64 = 22.0;

/// Hyperbolic sine, error below 0.9 ulp in double precision (0.5001 ulp in single).
#[device]
pub fn sinh<R: Real>(x: R) -> R {
    R::from_f64(sinh_double(x.to_f64()))
}

/// Hyperbolic cosine, error below 0.9 ulp in double precision (0.5001 ulp in single).
#[device]
pub fn cosh<R: Real>(x: R) -> R {
    R::from_f64(cosh_double(x.to_f64()))
}

/// Hyperbolic tangent, error below 0.9 ulp in double precision (0.5001 ulp in single).
#[device]
pub fn tanh<R: Real>(x: R) -> R {
    R::from_f64(tanh_double(x.to_f64()))
}

/// The pair plus a small integer.
#[device]
pub fn add_integer(e: (f64, f64), by: f64) -> (f64, f64) {
    let (sum, error) = two_sum(by, e.0);
    fast_two_sum(sum, error + e.1)
}

#[device]
pub fn sinh_double(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 {
        return x;
    }
    let size = x.abs();
    if size > ONE_TERM {
        return exp_scaled(size, 0.0, -1).copysign(x);
    }
    // (E + E / (1 + E)) / 2
    let e = exp_m1_pair(size);
    let (quotient, quotient_low) = pair_quotient(e, add_integer(e, 1.0));
    let (sum, error) = two_sum(e.0, quotient);
    (0.5 * (sum + (error + (e.1 + quotient_low)))).copysign(x)
}

#[device]
pub fn cosh_double(x: f64) -> f64 {
    let size = x.abs();
    if x.is_nan() || size > ONE_TERM {
        return exp_scaled(size, 0.0, -1);
    }
    let exponential = add_integer(exp_m1_pair(size), 1.0);
    let (inverse, inverse_low) = pair_quotient((1.0, 0.0), exponential);
    let (sum, error) = two_sum(exponential.0, inverse);
    0.5 * (sum + (error + (exponential.1 + inverse_low)))
}

#[device]
pub fn tanh_double(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 {
        return x;
    }
    let size = x.abs();
    if size > ONE_TERM {
        return 1.0f64.copysign(x);
    }
    // D / (D + 2) with D = e^(2 |x|) - 1
    let d = exp_m1_pair(2.0 * size);
    let (quotient, _) = pair_quotient(d, add_integer(d, 2.0));
    quotient.copysign(x)
}
