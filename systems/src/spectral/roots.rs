//! Roots of unity and lengths that transform fast.

use nestar_device::math;
use std::f64::consts::PI;

/// exp(-2 pi i k / n) as (real, imaginary) part, for any `k` and `n > 0`.
///
/// Sine and cosine are taken between 0 and pi/4 only, so that roots that mirror each other have the same digits.
#[must_use]
pub fn root_of_unity(k: usize, n: usize) -> (f64, f64) {
    let quarters = 4 * (k % n);
    let (quadrant, rest) = (quarters / n, quarters % n);
    let angle = |rest: usize| PI / 2.0 * (rest as f64 / n as f64);
    let (c, s) = if 2 * rest <= n {
        (math::cos(angle(rest)), math::sin(angle(rest)))
    } else {
        (math::sin(angle(n - rest)), math::cos(angle(n - rest)))
    };
    match quadrant {
        0 => (c, -s),
        1 => (-s, -c),
        2 => (-c, s),
        _ => (s, c),
    }
}

/// The smallest length from `least` on that has no prime factor above 5; an even one, if wanted.
#[must_use]
pub fn smooth_length(least: usize, even: bool) -> usize {
    let is_smooth = |length: &usize| {
        let mut rest = *length;
        for prime in [2, 3, 5] {
            while rest.is_multiple_of(prime) {
                rest /= prime;
            }
        }
        rest == 1 && (!even || length.is_multiple_of(2))
    };
    (least.max(1)..)
        .find(is_smooth)
        .expect("there is a power of two")
}

/// The radices by which a length is taken apart: fours, then primes.
pub(super) fn radices(length: usize) -> Vec<usize> {
    let (mut rest, mut radices) = (length, Vec::new());
    let mut radix = 4;
    while rest > 1 {
        if rest.is_multiple_of(radix) {
            radices.push(radix);
            rest /= radix;
        } else {
            radix = match radix {
                4 => 2,
                2 => 3,
                odd => odd + 2,
            };
        }
    }
    radices
}
