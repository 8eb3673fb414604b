//! The mass outside a cube, which a solve of the interior does not include.

use super::{Hernquist, length};
use crate::gauss::{legendre, line};
use std::f64::consts::PI;

/// Degrees of the harmonics of a cube that [`Outside`] keeps.
const DEGREES: [i32; 4] = [0, 4, 6, 8];

/// Potential, within a cube around the centre, of the sphere's mass outside of it: harmonics of degree 0, 4, 6 and 8 with the cube's
/// symmetry, what is left out grows as the tenth power of the distance. An isolated solve of the mass within the cube gives the whole
/// sphere's potential less this.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    half_width: f64,
    coefficients: [f64; 4],
}

impl Outside {
    pub(super) fn new(sphere: &Hernquist, half_width: f64) -> Self {
        let rule = legendre(40);
        let mut moments = [0.0; 4];
        let mut squares = [0.0; 4];
        // by symmetry a quarter of a face is a 24th of all directions
        for (y, z, weight) in quarter(&rule) {
            let r = length([1.0, y, z]);
            let solid = 24.0 * weight / r.powi(3);
            let direction = [1.0 / r, y / r, z / r];
            for (n, degree) in DEGREES.into_iter().enumerate() {
                let (harmonic, _) = harmonic(n, direction);
                moments[n] += solid * harmonic * sphere.beyond(r * half_width, degree);
                squares[n] += solid * harmonic * harmonic;
            }
        }
        let coefficient = |n: usize| {
            let degree = f64::from(DEGREES[n]);
            let scale = half_width.powi(DEGREES[n]);
            -sphere.gravity * 4.0 * PI / (2.0 * degree + 1.0) * moments[n] / squares[n] * scale
        };
        Self {
            half_width,
            coefficients: std::array::from_fn(coefficient),
        }
    }

    /// The potential at a place in the cube: to 1e-10 of the whole one at a third of the half width.
    #[must_use]
    pub fn potential(&self, x: [f64; 3]) -> f64 {
        let x = x.map(|x| x / self.half_width);
        (0..4)
            .map(|n| self.coefficients[n] * harmonic(n, x).0)
            .sum()
    }

    /// The acceleration at a place in the cube.
    #[must_use]
    pub fn acceleration(&self, x: [f64; 3]) -> [f64; 3] {
        let x = x.map(|x| x / self.half_width);
        let mut sum = [0.0; 3];
        for n in 0..4 {
            let (_, slope) = harmonic(n, x);
            for (sum, slope) in sum.iter_mut().zip(slope) {
                *sum -= self.coefficients[n] * slope / self.half_width;
            }
        }
        sum
    }
}

impl Hernquist {
    /// The integral of rho r^(1 - degree) from `r` to infinity, over 1/r, where it is a smooth function.
    fn beyond(&self, r: f64, degree: i32) -> f64 {
        let part = |s: f64| s.powi(degree + 1) / (1.0 + s * self.radius).powi(3);
        self.density * self.radius.powi(4) * line(&legendre(20), [0.0, 1.0 / r], part)
    }
}

/// Places and weights in the unit square.
fn quarter(rule: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64, f64)> {
    let unit = |(x, w): &(f64, f64)| (0.5 * (1.0 + x), 0.5 * w);
    rule.iter().flat_map(move |a| {
        let (y, first) = unit(a);
        rule.iter().map(move |b| (y, unit(b).0, first * unit(b).1))
    })
}

/// The harmonic polynomial of degree [`DEGREES`]`[n]` with the symmetry of the cube, and its slope: of p = sum x^2, q = sum x^4 and
/// s = x^2 y^2 z^2 the combinations without Laplacian.
fn harmonic(n: usize, x: [f64; 3]) -> (f64, [f64; 3]) {
    let square = x.map(|x| x * x);
    let p: f64 = square.iter().sum();
    let q: f64 = square.iter().map(|x| x * x).sum();
    let s: f64 = square.iter().product();
    // the value, and its derivatives by p, q and s
    let (value, by_p, by_q, by_s) = match n {
        0 => (1.0, 0.0, 0.0, 0.0),
        1 => (q - 0.6 * p * p, -1.2 * p, 1.0, 0.0),
        2 => six(p, q, s),
        _ => eight(p, q, s),
    };
    let slope = |a: usize| {
        let others = square[(a + 1) % 3] * square[(a + 2) % 3];
        2.0 * x[a] * (by_p + 2.0 * square[a] * by_q + others * by_s)
    };
    (value, std::array::from_fn(slope))
}

/// The harmonic of degree 6, s + p q/22 - 17 p^3/462, and its derivatives.
fn six(p: f64, q: f64, s: f64) -> (f64, f64, f64, f64) {
    let cube = 17.0 / 462.0;
    let value = s + p * q / 22.0 - cube * p * p * p;
    (value, q / 22.0 - 3.0 * cube * p * p, p / 22.0, 1.0)
}

/// The harmonic of degree 8, q^2 - 16 p s/5 - 94 p^2 q/65 + 33 p^4/65, and its derivatives.
fn eight(p: f64, q: f64, s: f64) -> (f64, f64, f64, f64) {
    let (a, b, c) = (-3.2, -94.0 / 65.0, 33.0 / 65.0);
    let value = q * q + a * p * s + b * p * p * q + c * p.powi(4);
    let by_p = a * s + 2.0 * b * p * q + 4.0 * c * p.powi(3);
    (value, by_p, 2.0 * q + b * p * p, a * p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gauss::rectangle;

    const ODD: Hernquist = Hernquist {
        gravity: 0.7,
        density: 1.3,
        radius: 2.5,
    };

    #[test]
    fn harmonics_have_no_laplacian() {
        let x = [0.3, -0.7, 0.45];
        let h = 1e-3;
        for n in 0..4 {
            let mut laplacian = 0.0;
            for a in 0..3 {
                let at = |d: f64| {
                    harmonic(
                        n,
                        std::array::from_fn(|b| x[b] + if a == b { d } else { 0.0 }),
                    )
                };
                let slope = (at(h).0 - at(-h).0) / (2.0 * h);
                assert!((slope - at(0.0).1[a]).abs() < 2e-5, "{n} {a} {slope}");
                laplacian += (at(h).1[a] - at(-h).1[a]) / (2.0 * h);
            }
            assert!(laplacian.abs() < 2e-5, "{n} {laplacian}");
        }
    }

    /// The potential of the mass outside a cube by the whole kernel, 1/|x - y|, over all directions.
    fn direct(sphere: &Hernquist, half: f64, x: [f64; 3]) -> f64 {
        let (face, radial) = (legendre(24), legendre(16));
        let mut sum = 0.0;
        for side in 0..6 {
            let axis = side % 3;
            let sign = if side < 3 { 1.0 } else { -1.0 };
            sum += rectangle(&face, [-1.0, 1.0], [-1.0, 1.0], |u, v| {
                let r = length([1.0, u, v]);
                let mut n = [0.0; 3];
                (n[axis], n[(axis + 1) % 3], n[(axis + 2) % 3]) = (sign / r, u / r, v / r);
                let part = |s: f64| {
                    let apart = length(std::array::from_fn(|a| n[a] - s * x[a]));
                    s / (1.0 + s * sphere.radius).powi(3) / apart
                };
                line(&radial, [0.0, 1.0 / (r * half)], part) / r.powi(3)
            });
        }
        -sphere.gravity * sphere.density * sphere.radius.powi(4) * sum
    }

    #[test]
    fn the_exterior_mass_complements_the_full_kernel() {
        let sphere = Hernquist::default();
        let outside = sphere.outside(50.0);
        let centre = outside.potential([0.0; 3]);
        assert!((centre + 1.702_821_454_082e-3).abs() < 1e-14, "{centre:e}");
        for (sphere, half) in [(sphere, 50.0), (ODD, 20.0)] {
            let outside = sphere.outside(half);
            for (x, tolerance) in [
                ([0.0; 3], 1e-12),
                ([0.1, 0.05, -0.02], 1e-11),
                ([0.3, 0.2, 0.1], 1e-8),
                ([0.3, -0.3, 0.3], 5e-7),
            ] {
                let x = x.map(|x| x * half);
                let (found, exact) = (outside.potential(x), direct(&sphere, half, x));
                assert!(
                    (found / exact - 1.0).abs() < tolerance,
                    "{x:?} {found:e} {exact:e}"
                );
            }
            let (x, h) = ([0.2 * half, -0.1 * half, 0.15 * half], 1e-3 * half);
            let a = outside.acceleration(x);
            for axis in 0..3 {
                let at = |d: f64| {
                    outside.potential(std::array::from_fn(|b| {
                        x[b] + if axis == b { d } else { 0.0 }
                    }))
                };
                let slope = (at(h) - at(-h)) / (2.0 * h);
                let size = length(a);
                assert!((a[axis] + slope).abs() < 1e-4 * size, "{a:?} {slope:e}");
            }
        }
    }
}
