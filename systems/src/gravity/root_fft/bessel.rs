//! Modified Bessel functions of the first kind.

use nestar_device::math::sqrt;
use std::f64::consts::PI;

/// Functions below this fraction of the function of order 0 are set to zero.
const NEGLIGIBLE: f64 = 1e-35;
/// Smallest argument (also larger than the squared order) for which the asymptotic expansion is exact to round-off.
const LARGE: f64 = 100.0;
/// Number of terms of the asymptotic expansion.
const TERMS: u32 = 30;

/// Computes `exp(-x) I_k(x)` for positive `x` and the orders `k` from 0 on that fit into `values`.
///
/// Relative errors are about 1e-15 down to 1e-24 of the function of order 0; functions below 1e-35 of it are zero.
pub fn scaled(x: f64, values: &mut [f64]) {
    let highest = values.len() as f64;
    if x > LARGE && x > highest * highest {
        let orders = values.iter_mut().enumerate();
        orders.for_each(|(k, value)| *value = at_large(x, k as f64));
    } else {
        downward(x, values);
    }
}

/// Hankel's expansion (M. Abramowitz & I. A. Stegun, Handbook of Mathematical Functions, 1964, eq. 9.7.1).
fn at_large(x: f64, order: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..TERMS {
        let odd = f64::from(2 * n - 1);
        term *= -(4.0 * order * order - odd * odd) / (8.0 * x * f64::from(n));
        sum += term;
    }
    sum / sqrt(2.0 * PI * x)
}

/// Miller's recurrence, normalised by `exp(x) = I_0 + 2 sum_k I_k` (the same, section 9.12, example 1, and eq. 9.6.37).
fn downward(x: f64, values: &mut [f64]) {
    let first = first_negligible(x);
    values.fill(0.0);
    let (mut above, mut here, mut sum) = (0.0, NEGLIGIBLE, 0.0);
    for k in (0..first).rev() {
        let below = above + 2.0 * (k + 1) as f64 / x * here;
        (above, here) = (here, below);
        sum += if k == 0 { here } else { 2.0 * here };
        if let Some(value) = values.get_mut(k) {
            *value = here;
        }
    }
    values.iter_mut().for_each(|value| *value /= sum);
}

/// Returns an order from which on the functions are negligible, by a bound of the ratio of neighbours (D. E. Amos,
/// Math. Comp. 28, 239 (1974), eq. 11).
fn first_negligible(x: f64) -> usize {
    let (mut order, mut part) = (0, 1.0);
    while part > NEGLIGIBLE {
        let half = order as f64 + 0.5;
        part *= x / (half + sqrt(half * half + x * x));
        order += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `exp(-x) I_k(x)` by the power series.
    fn by_series(x: f64, k: usize) -> f64 {
        let mut term = (1..=k).fold(1.0, |term, n| term * (x / 2.0) / n as f64);
        let mut sum = term;
        for n in 1..400 {
            term *= x * x / 4.0 / (n * (n + k)) as f64;
            sum += term;
        }
        sum * (-x).exp()
    }

    #[test]
    fn functions_follow_their_power_series() {
        for x in [1e-12, 0.01, 1.0, 7.3, 60.0, 99.0, 101.0, 140.0] {
            let mut values = [0.0; 9];
            scaled(x, &mut values);
            for (k, value) in values.into_iter().enumerate() {
                let expected = by_series(x, k);
                let error = (value - expected).abs();
                assert!(
                    error <= 3e-15 * expected + NEGLIGIBLE,
                    "{x} {k}: {value} {error}"
                );
            }
        }
    }

    #[test]
    fn both_ways_agree_where_they_meet() {
        for count in [11, 40, 300] {
            let x = 1.01 * (count * count) as f64;
            let (mut near, mut far) = (vec![0.0; count], vec![0.0; count]);
            downward(x, &mut near);
            scaled(x, &mut far);
            assert_ne!(near, far);
            for (a, b) in near.into_iter().zip(far) {
                assert!((a - b).abs() < 1e-14 * a, "{count}: {a} {b}");
            }
        }
    }
}
