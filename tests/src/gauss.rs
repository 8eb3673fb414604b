//! Gauss-Legendre quadrature for exact solutions.

use std::f64::consts::PI;

/// Places in (-1, 1) and weights of the rule with `points` points, which is exact for polynomials up to the degree
/// 2 points - 1: roots of the Legendre polynomial by Newton's method (Abramowitz & Stegun 1964, 25.4.29).
#[must_use]
pub fn legendre(points: usize) -> Vec<(f64, f64)> {
    let count = points as f64;
    let rule = |i: usize| {
        let mut x = (PI * (i as f64 + 0.75) / (count + 0.5)).cos();
        let mut slope = 1.0;
        for _ in 0..100 {
            let (mut before, mut value) = (1.0, x);
            for degree in 2..=points {
                let n = degree as f64;
                (before, value) = (
                    value,
                    ((2.0 * n - 1.0) * x * value - (n - 1.0) * before) / n,
                );
            }
            slope = count * (x * value - before) / (x * x - 1.0);
            let change = value / slope;
            x -= change;
            if change.abs() < 1e-16 {
                break;
            }
        }
        (x, 2.0 / ((1.0 - x * x) * slope * slope))
    };
    (0..points).map(rule).collect()
}

/// The integral of `f` from `low` to `high` by `rule`.
#[must_use]
pub fn line(rule: &[(f64, f64)], [low, high]: [f64; 2], f: impl Fn(f64) -> f64) -> f64 {
    let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
    half * rule
        .iter()
        .map(|(x, w)| w * f(middle + half * x))
        .sum::<f64>()
}

/// The integral of `f` over a rectangle by `rule` along both axes.
#[must_use]
pub fn rectangle(
    rule: &[(f64, f64)],
    x: [f64; 2],
    y: [f64; 2],
    f: impl Fn(f64, f64) -> f64,
) -> f64 {
    line(rule, x, |x| line(rule, y, |y| f(x, y)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_up_to_twice_the_points_are_exact() {
        for points in [1, 2, 5, 12, 40] {
            let rule = legendre(points);
            for degree in 0..2 * points {
                let found = line(&rule, [0.0, 2.0], |x| x.powi(degree as i32));
                let exact = 2.0_f64.powi(degree as i32 + 1) / (degree as f64 + 1.0);
                assert!(
                    (found / exact - 1.0).abs() < 1e-12,
                    "{points} {degree} {found} {exact}"
                );
            }
        }
        let two = legendre(2);
        assert!((line(&two, [0.0, 1.0], |x| x.powi(4)) - 0.2).abs() > 1e-3);
    }
}
