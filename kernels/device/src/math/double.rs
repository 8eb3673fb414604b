//! Sums and products with their rounding errors, without fused multiply-add, as pairs `(high, low)` of doubles.
//!
//! After T. J. Dekker, Numer. Math. 18, 224 (1971) and D. E. Knuth, The Art of Computer Programming 2, sec. 4.2.2.
use crate::device;

/// `a + b` as `(sum, error)`, exactly.
#[device]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    let a_part = sum - b_part;
    (sum, (a - a_part) + (b - b_part))
}

/// `a + b` as `(sum, error)`, exactly when `|a| >= |b|` or `a` is 0.
#[device]
pub fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// The number with its lower 27 significand bits cleared; 26 bits remain.
#[device]
pub fn upper_half(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & 0xffff_ffff_f800_0000u64)
}

/// `a * b` as `(product, error)`, the error to a relative 2^-52 of itself; without over- and underflow.
#[device]
pub fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let a_high = upper_half(a);
    let a_low = a - a_high;
    let b_high = upper_half(b);
    let b_low = b - b_high;
    let error = ((a_high * b_high - product) + (a_high * b_low + a_low * b_high)) + a_low * b_low;
    (product, error)
}

/// `2^n` for `-1022 <= n <= 1023`.
#[device]
pub fn power_of_two(n: i32) -> f64 {
    f64::from_bits(((1023 + n) as u64) << 52)
}

/// Quotient of two pairs as a pair with a relative error of about 2^-100; without over- and underflow.
#[device]
pub fn pair_quotient(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let quotient = a.0 / b.0;
    let (product, error) = two_product(quotient, b.0);
    let rest = (a.0 - product) - error + a.1 - quotient * b.1;
    fast_two_sum(quotient, rest / b.0)
}
