//! Sine, cosine, tangent and the inverse tangent.
//!
//! The argument is reduced modulo pi/2 to a pair of doubles: in four parts of pi/2 (Cody & Waite 1980) up to 2^20, with 224
//! bits of 2/pi above (M. H. Payne & R. N. Hanek, SIGNUM Newsletter 18, 19 (1983)). The polynomials are minimax.
use super::double::{fast_two_sum, pair_quotient, two_product, two_sum};
use crate::{Real, device};

/// 2/pi.
#[device]
pub const TWO_OVER_PI: f64 = 0.6366197723675814;
/// pi/2 in parts of 33 bits, the last one of 53.
#[device]
pub const HALF_PI_1: f64 = 1.5707963267341256;
/// The second part.
#[device]
pub const HALF_PI_2: f64 = 6.077100506303966e-11;
/// The third part.
#[device]
pub const HALF_PI_3: f64 = 2.0222662487111665e-21;
/// The fourth part.
#[device]
pub const HALF_PI_4: f64 = 8.4784276603689e-32;
/// pi/2 as a pair: the nearest double.
#[device]
pub const HALF_PI: f64 = 1.5707963267948966;
/// pi/2 - `HALF_PI`.
#[device]
pub const HALF_PI_LOW: f64 = 6.123233995736766e-17;
/// Largest argument for which the four parts suffice: their products with the quotient are exact.
#[device]
pub const LARGE: f64 = 1048576.0;
/// Below this size `sin x` and `tan x` are `x`.
#[device]
pub const TINY: f64 = 7.450580596923828e-9;

/// 2/pi: bit 32 (1 - i) is the last one of word i.
#[device]
pub const TWO_OVER_PI_WORDS: [u32; 39] = [
    0u32,
    0u32,
    0xa2f9836eu32,
    0x4e441529u32,
    0xfc2757d1u32,
    0xf534ddc0u32,
    0xdb629599u32,
    0x3c439041u32,
    0xfe5163abu32,
    0xdebbc561u32,
    0xb7246e3au32,
    0x424dd2e0u32,
    0x06492eeau32,
    0x09d1921cu32,
    0xfe1deb1cu32,
    0xb129a73eu32,
    0xe88235f5u32,
    0x2ebb4484u32,
    0xe99c7026u32,
    0xb45f7e41u32,
    0x3991d639u32,
    0x835339f4u32,
    0x9c845f8bu32,
    0xbdf9283bu32,
    0x1ff897ffu32,
    0xde05980fu32,
    0xef2f118bu32,
    0x5a0a6d1fu32,
    0x6d367ecfu32,
    0x27cb09b7u32,
    0x4f463f66u32,
    0x9e5fea2du32,
    0x7527bac7u32,
    0xebe5f17bu32,
    0x3d0739f7u32,
    0x8a5292eau32,
    0x6bfb5fb1u32,
    0x1f8d5d08u32,
    0x56033046u32,
];

/// Sine, error below 0.8 ulp in double precision (0.5001 ulp in single) for every argument; NaN for infinities.
#[device]
pub fn sin<R: Real>(x: R) -> R {
    R::from_f64(sin_double(x.to_f64()))
}

/// Cosine, error below 0.8 ulp in double precision (0.5001 ulp in single) for every argument; NaN for infinities.
#[device]
pub fn cos<R: Real>(x: R) -> R {
    R::from_f64(cos_double(x.to_f64()))
}

/// Tangent, error below 1.1 ulp in double precision (0.5001 ulp in single) for every argument; NaN for infinities.
#[device]
pub fn tan<R: Real>(x: R) -> R {
    R::from_f64(tan_double(x.to_f64()))
}

/// Inverse tangent in [-pi/2, pi/2], error below 0.8 ulp in double precision (0.5001 ulp in single).
#[device]
pub fn atan<R: Real>(x: R) -> R {
    R::from_f64(atan_double(x.to_f64()))
}

/// Angle of the point `(x, y)` in [-pi, pi], error below 1.5 ulp in double precision (0.5001 ulp in single), with the special
/// cases of C's `atan2`.
#[device]
pub fn atan2<R: Real>(y: R, x: R) -> R {
    R::from_f64(atan2_double(y.to_f64(), x.to_f64()))
}

/// The low 224 bits of `significand 2^shift` times seven words of 2/pi from `skip`, in words of 32 bits, lowest first.
#[device]
fn low_product(significand: u64, shift: i32, skip: usize) -> [u64; 7] {
    let low = significand << shift;
    let high = if shift == 0 {
        0u64
    } else {
        significand >> (64 - shift)
    };
    let factor = [low & 0xffff_ffffu64, low >> 32, high];
    let mut product = [0u64; 7];
    for a in 0..3 {
        let mut carry = 0u64;
        for p in 0..7 {
            if a + p < 7 {
                let word = TWO_OVER_PI_WORDS[skip + 6 - p] as u64;
                let sum = factor[a] * word + product[a + p] + carry;
                product[a + p] = sum & 0xffff_ffffu64;
                carry = sum >> 32;
            }
        }
    }
    product
}

/// `reduced` for positive `x >= 2^20`.
#[device]
fn reduced_large(x: f64) -> (f64, f64, i32) {
    // x 2/pi modulo 4: the words of 2/pi whose products are multiples of 4 are left out
    let (m, exponent) = x.frexp();
    let significand = (m * 9007199254740992.0) as u64;
    let position = exponent - 53 + 64 - 2;
    let product = low_product(significand, position % 32, (position / 32) as usize);
    let mut quotient = (product[6] >> 30) as i32;
    let mut flip = 0u64;
    if (product[6] >> 29) & 1 == 1 {
        // above a half: 1 - fraction, as the complement of its bits
        flip = 0xffff_ffffu64;
        quotient += 1;
    }
    let word_6 = ((product[6] ^ flip) & 0x3fff_ffffu64) as f64 * 9.313225746154785e-10;
    let word_5 = (product[5] ^ flip) as f64 * 2.168404344971009e-19;
    let word_4 = (product[4] ^ flip) as f64 * 5.048709793414476e-29;
    let word_3 = (product[3] ^ flip) as f64 * 1.1754943508222875e-38;
    let word_2 = (product[2] ^ flip) as f64 * 2.7369110631344083e-48;
    let (c, c_low) = fast_two_sum(word_4, word_3 + word_2);
    let (b, b_low) = fast_two_sum(word_5, c);
    let (a, a_low) = fast_two_sum(word_6, b);
    let (f, f_low) = fast_two_sum(a, a_low + (b_low + c_low));
    let (r, r_error) = two_product(f, HALF_PI);
    let (r, r_low) = fast_two_sum(r, r_error + (f * HALF_PI_LOW + f_low * HALF_PI));
    if flip == 0 {
        (r, r_low, quotient)
    } else {
        (-r, -r_low, quotient)
    }
}

/// `(r, r_low, n)` with `x = r + r_low + n pi/2` up to multiples of 2 pi, `|r|` up to about pi/4, for finite `x`.
#[device]
fn reduced(x: f64) -> (f64, f64, i32) {
    if x.abs() >= LARGE {
        let (r, r_low, n) = reduced_large(x.abs());
        return if x < 0.0 {
            (-r, -r_low, -n)
        } else {
            (r, r_low, n)
        };
    }
    let n = (x * TWO_OVER_PI + 0.5).floor();
    let (a, a_error) = two_sum(x - n * HALF_PI_1, -n * HALF_PI_2);
    let (b, b_error) = two_sum(a, -n * HALF_PI_3);
    let (r, r_low) = fast_two_sum(b, a_error + b_error - n * HALF_PI_4);
    (r, r_low, n.to_i32())
}

/// `sin(r + r_low)` as a pair, for `|r|` up to about pi/4.
#[device]
fn sin_pair(r: f64, r_low: f64) -> (f64, f64) {
    let z = r * r;
    let p = -7.586688956467207e-13;
    let p = p * z + 1.605853148652403e-10;
    let p = p * z + -2.5052106231657217e-8;
    let p = p * z + 2.755731921933705e-6;
    let p = p * z + -0.00019841269841265063;
    let p = p * z + 0.008333333333333331;
    let p = p * z + -0.16666666666666666;
    fast_two_sum(r, r * z * p + r_low * (1.0 - 0.5 * z))
}

/// `cos(r + r_low)` as a pair, for `|r|` up to about pi/4.
#[device]
fn cos_pair(r: f64, r_low: f64) -> (f64, f64) {
    let z = r * r;
    let p = 4.745867148177551e-14;
    let p = p * z + -1.1470460809958933e-11;
    let p = p * z + 2.08767557906132e-9;
    let p = p * z + -2.755731922140156e-7;
    let p = p * z + 2.4801587301584645e-5;
    let p = p * z + -0.0013888888888888887;
    let p = p * z + 0.041666666666666664;
    let (high, error) = fast_two_sum(1.0, -0.5 * z);
    fast_two_sum(high, error + (z * z * p - r * r_low))
}

#[device]
pub fn sin_double(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    if x.abs() < TINY {
        return x;
    }
    let (r, r_low, n) = reduced(x);
    let (value, _) = if n & 1 == 0 {
        sin_pair(r, r_low)
    } else {
        cos_pair(r, r_low)
    };
    if n & 2 == 0 { value } else { -value }
}

#[device]
pub fn cos_double(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let (r, r_low, n) = reduced(x);
    let (value, _) = if n & 1 == 0 {
        cos_pair(r, r_low)
    } else {
        sin_pair(r, r_low)
    };
    if (n + 1) & 2 == 0 { value } else { -value }
}

#[device]
pub fn tan_double(x: f64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    if x.abs() < TINY {
        return x;
    }
    let (r, r_low, n) = reduced(x);
    let (sine, cosine) = (sin_pair(r, r_low), cos_pair(r, r_low));
    let (value, _) = if n & 1 == 0 {
        pair_quotient(sine, cosine)
    } else {
        pair_quotient(cosine, sine)
    };
    if n & 1 == 0 { value } else { -value }
}

/// `(atan(t) - t) / t` as a function of `z = t^2`, for `|t| <= tan(pi/8)`; error 2^-57.
#[device]
fn atan_remainder(z: f64) -> f64 {
    let p = -0.019225217793311215;
    let p = p * z + 0.03927333164777101;
    let p = p * z + -0.05086977215089183;
    let p = p * z + 0.058584589568278105;
    let p = p * z + -0.06664549488745243;
    let p = p * z + 0.07692186080668384;
    let p = p * z + -0.09090904711828686;
    let p = p * z + 0.1111111101881154;
    let p = p * z + -0.14285714284714585;
    let p = p * z + 0.19999999999995774;
    z * (p * z + -0.3333333333333333)
}

#[device]
pub fn atan_double(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 {
        return x;
    }
    let size = x.abs();
    if size < 0.41421356237309503 {
        return x + x * atan_remainder(x * x);
    }
    // atan x = n pi/4 + atan t: t = (x - 1) / (x + 1) around 1, t = -1 / x from 1 / tan(pi/8) on
    let around_one = size < 2.414213562373095;
    let (above, above_error) = two_sum(size, -1.0);
    let (below, below_error) = two_sum(size, 1.0);
    let (t, t_low) = if around_one {
        pair_quotient((above, above_error), (below, below_error))
    } else {
        (-1.0 / size, 0.0)
    };
    let n = if around_one { 0.5 } else { 1.0 };
    let (sum, error) = two_sum(n * HALF_PI, t);
    (sum + (error + (n * HALF_PI_LOW + (t_low + t * atan_remainder(t * t))))).copysign(x)
}

#[device]
pub fn atan2_double(y: f64, x: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return x + y;
    }
    let (x_size, y_size) = (x.abs(), y.abs());
    let (smaller, larger) = (x_size.min(y_size), x_size.max(y_size));
    // zeros and infinities of equal size represent the axis and the diagonal
    let ratio = if smaller == larger {
        if larger == 0.0 { 0.0 } else { 1.0 }
    } else {
        smaller / larger
    };
    let first = atan_double(ratio);
    let signed = if x.signum() < 0.0 { -first } else { first };
    let full = if y_size > x_size {
        HALF_PI - (signed - HALF_PI_LOW)
    } else if x.signum() < 0.0 {
        2.0 * HALF_PI + (signed + 2.0 * HALF_PI_LOW)
    } else {
        signed
    };
    full.copysign(y)
}
