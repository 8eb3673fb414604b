//! Exactly rounded roots of unity, and lengths of fast transforms.

use nestar_device::math;
use std::cell::RefCell;
use std::f64::consts::PI;

/// Returns the real and imaginary part of exp(-2 pi i k / n), for any `k` and `n > 0`.
///
/// Sine and cosine are evaluated between 0 and pi/4 only, so that roots that are mirror images have the same digits.
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

/// Returns the smallest length from `least` on that has no prime factor above 5, and that is even if `even` is set.
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

thread_local! {
    /// Orders of the roots of unity that the plan under construction may need.
    static ORDERS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Largest difference between a constant of a plan and its exact value. Roots of unity of one order differ by more.
const CLOSE: f64 = 1e-14;

/// Creates a plan for rows of `length` numbers, whose constants [`snapped`] recognises.
pub(super) fn with_roots_of<T>(length: usize, plan: impl FnOnce() -> T) -> T {
    ORDERS.set(orders(length));
    let plan = plan();
    ORDERS.set(Vec::new());
    plan
}

/// Returns the orders of the roots that a plan for rows of `length` numbers needs.
///
/// They are four times the length, such that sines are cosines too, and the same for the lengths to which Rader's algorithm
/// reduces primes
/// (C. M. Rader, Proc. IEEE 56, 1107 (1968)).
fn orders(length: usize) -> Vec<usize> {
    let mut lengths = vec![length.max(1)];
    let mut n = 0;
    while n < lengths.len() {
        for prime in prime_factors(lengths[n]) {
            if !lengths.contains(&(prime - 1)) {
                lengths.push(prime - 1);
            }
        }
        n += 1;
    }
    lengths.iter().map(|length| 4 * length).collect()
}

fn prime_factors(length: usize) -> Vec<usize> {
    let (mut rest, mut primes, mut prime) = (length, Vec::new(), 2);
    while rest > 1 {
        if prime * prime > rest {
            prime = rest;
        }
        if rest.is_multiple_of(prime) {
            primes.push(prime);
        }
        while rest.is_multiple_of(prime) {
            rest /= prime;
        }
        prime += 1;
    }
    primes
}

/// Returns the exactly rounded value of a constant `x` of a plan: a multiple of a half, or the real part of a root of unity.
///
/// # Panics
/// If there is no such value within 1e-14.
#[inline(always)]
pub(super) fn snapped(x: f64) -> f64 {
    if x == 0.5 || x == 0.0 { x } else { nearest(x) }
}

#[inline(never)]
fn nearest(x: f64) -> f64 {
    #[cfg(test)]
    let x = perturbed(x);
    let half = (2.0 * x).round() / 2.0;
    if (x - half).abs() < CLOSE {
        return half;
    }
    let angle = math::atan2(math::sqrt((1.0 - x) * (1.0 + x)), x);
    let root = |&order: &usize| {
        let k = (angle / (2.0 * PI) * order as f64).round();
        root_of_unity(k as usize, order).0
    };
    let found = ORDERS.with_borrow(|orders| {
        let is_close = |root: &f64| (x - root).abs() < CLOSE;
        orders.iter().map(root).find(is_close)
    });
    found.unwrap_or_else(|| panic!("{x} is no constant of the transform that is being planned"))
}

#[cfg(test)]
thread_local! {
    /// Seed of the errors of [`perturbed`]; 0 for none.
    pub(super) static PERTURBATION: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Returns the number with a random error of up to one unit in the last place, as from another platform's sine and cosine.
#[cfg(test)]
fn perturbed(x: f64) -> f64 {
    let seed = PERTURBATION.get();
    let hash = (x.to_bits() ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match (seed, hash >> 61) {
        (0, _) | (_, 0..=3) => x,
        (_, 4 | 5) => x.next_up(),
        _ => x.next_down(),
    }
}
