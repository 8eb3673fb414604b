//! The potential outside of a body by its moments.

use nestar_device::math::sum3;
use nestar_kernels::multigrid::moments::{MOST_ORDER, count, first_moment};
use std::f64::consts::PI;

/// Powers of a coordinate.
const POWERS: usize = MOST_ORDER + 1;
/// Places that are worked on at once.
const PLACES: usize = 8;
type Lanes = [f64; PLACES];

/// The expansion of the potential of a right-hand side in derivatives of 1/r about its centre of mass: in empty space those by z twice
/// and more follow from the others.
pub struct Expansion {
    centre: [f64; 3],
    order: usize,
    /// Of the derivatives without and with one along z, by the numbers of those along x and y.
    coefficients: Vec<[[f64; POWERS]; POWERS]>,
    /// The square of the smallest distance for which it is worked out.
    nearest: f64,
}

impl Expansion {
    /// Of the moments of the Laplacian about a point, as [`first_moment`] orders them: sums over cells of `weight` (volume over the
    /// moments' length). Nearer to the centre than `nearest` the potential counts as there.
    pub fn new(moments: &[f64], order: usize, weight: f64, nearest: f64) -> Self {
        let place = |a: usize, b: usize, c: usize| {
            first_moment(order as i32, a as i32, b as i32) as usize + c
        };
        let mass = moments[0];
        let centre = match order {
            1.. if mass != 0.0 => {
                [place(1, 0, 0), place(0, 1, 0), place(0, 0, 1)].map(|n| moments[n] / mass)
            }
            _ => [0.0; 3],
        };
        let mut about = shifted(moments, order, centre);
        // div grad 1/r = 0: from the most derivatives along z to the least
        for c in (2..=order).rev() {
            for (a, b) in (0..=order - c).flat_map(|a| (0..=order - c - a).map(move |b| (a, b))) {
                let share = about[place(a, b, c)] / (c * (c - 1)) as f64;
                about[place(a + 2, b, c - 2)] -= share * ((a + 2) * (a + 1)) as f64;
                about[place(a, b + 2, c - 2)] -= share * ((b + 2) * (b + 1)) as f64;
            }
        }
        let mut coefficients = vec![[[0.0; POWERS]; POWERS]; 2];
        for (c, coefficients) in coefficients.iter_mut().enumerate().take(order + 1) {
            for a in 0..=order - c {
                for b in 0..=order - c - a {
                    coefficients[a][b] = -weight / (4.0 * PI) * about[place(a, b, c)];
                }
            }
        }
        Self {
            centre,
            order,
            coefficients,
            nearest: nearest * nearest,
        }
    }

    /// The potential at so many places.
    pub fn along(&self, count: usize, place: impl Fn(usize) -> [f64; 3]) -> Vec<f64> {
        let mut derivatives = Derivatives::default();
        let mut found = Vec::with_capacity(count + PLACES);
        for first in (0..count).step_by(PLACES) {
            let places: [[f64; 3]; PLACES] = std::array::from_fn(|n| place(first + n));
            let along = |axis: usize| places.map(|place| place[axis] - self.centre[axis]);
            found.extend(self.at(&[along(0), along(1), along(2)], &mut derivatives));
        }
        found.truncate(count);
        found
    }

    /// The potential at places counted from the centre.
    fn at(&self, x: &[Lanes; 3], e: &mut Derivatives) -> Lanes {
        let inverse: Lanes = std::array::from_fn(|n| {
            let square = sum3(x[0][n] * x[0][n], x[1][n] * x[1][n], x[2][n] * x[2][n]);
            1.0 / square.max(self.nearest)
        });
        let mut found = [0.0; PLACES];
        for c in 0..2.min(self.order + 1) {
            for (a, b) in
                (0..=self.order - c).flat_map(|a| (0..=self.order - c - a).map(move |b| (a, b)))
            {
                let value = match a + b + c {
                    0 => inverse.map(f64::sqrt),
                    n => e.next([a, b, c], n as f64, x, &inverse),
                };
                for (found, value) in found.iter_mut().zip(value) {
                    *found += self.coefficients[c][a][b] * value;
                }
                e.0[c][a][b] = value;
            }
        }
        found
    }
}

/// Derivatives of 1/r over the factorials of their numbers, without their signs.
#[derive(Default)]
struct Derivatives(Box<[[[Lanes; POWERS]; POWERS]; 2]>);

impl Derivatives {
    /// One of the order `n` by those of the two orders before (Duan & Krasny 2001):
    /// n r^2 e = (2n - 1) sum x e' - (n - 1) sum e''.
    fn next(&self, [a, b, c]: [usize; 3], n: f64, x: &[Lanes; 3], inverse: &Lanes) -> Lanes {
        let less = |steps: usize| {
            let there = [a, b, c].map(|powers| powers >= steps);
            let x = there[0].then(|| &self.0[c][a - steps][b]);
            let y = there[1].then(|| &self.0[c][a][b - steps]);
            let z = there[2].then(|| &self.0[c - steps][a][b]);
            [x, y, z].map(|value| value.unwrap_or(&[0.0; PLACES]))
        };
        let ([x1, y1, z1], [x2, y2, z2]) = (less(1), less(2));
        let (of_first, of_second) = (2.0 - 1.0 / n, 1.0 - 1.0 / n);
        std::array::from_fn(|m| {
            let first = sum3(x[0][m] * x1[m], x[1][m] * y1[m], x[2][m] * z1[m]);
            let second = sum3(x2[m], y2[m], z2[m]);
            inverse[m] * (of_first * first - of_second * second)
        })
    }
}

/// Moments about another point.
fn shifted(moments: &[f64], order: usize, to: [f64; 3]) -> Vec<f64> {
    let mut moments = moments.to_vec();
    for (axis, to) in to.into_iter().enumerate() {
        let before = moments.clone();
        for (place, powers) in places(order) {
            moments[place] = 0.0;
            // (x - to)^n by powers of x, the highest first
            let (mut binomial, mut factor) = (1.0, 1.0);
            let n = powers[axis];
            for m in (0..=n).rev() {
                let mut powers = powers;
                powers[axis] = m;
                let [a, b, c] = powers;
                let from = first_moment(order as i32, a as i32, b as i32) as usize + c;
                moments[place] += binomial * factor * before[from];
                binomial *= m as f64 / (n - m + 1) as f64;
                factor *= -to;
            }
        }
    }
    moments
}

/// All moments with their powers.
fn places(order: usize) -> impl Iterator<Item = (usize, [usize; 3])> {
    let all = (0..=order).flat_map(move |a| {
        (0..=order - a).flat_map(move |b| (0..=order - a - b).map(move |c| [a, b, c]))
    });
    debug_assert_eq!(all.clone().count(), count(order));
    all.enumerate()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of which each has a mass.
    const POINTS: [(f64, [f64; 3]); 4] = [
        (2.0, [0.2, -0.1, 0.05]),
        (1.5, [-0.1, 0.15, -0.2]),
        (0.7, [0.1, 0.2, 0.22]),
        (-0.2, [0.15, 0.12, -0.15]),
    ];

    fn expansion(order: usize, nearest: f64) -> Expansion {
        let moment = |[a, b, c]: [usize; 3]| {
            let powers =
                |x: [f64; 3]| x[0].powi(a as i32) * x[1].powi(b as i32) * x[2].powi(c as i32);
            POINTS.iter().map(|(mass, x)| mass * powers(*x)).sum()
        };
        let moments: Vec<f64> = places(order).map(|(_, powers)| moment(powers)).collect();
        Expansion::new(&moments, order, 4.0 * PI, nearest)
    }

    fn exact(x: [f64; 3]) -> f64 {
        let distance = |at: [f64; 3]| (0..3).map(|n| (x[n] - at[n]).powi(2)).sum::<f64>().sqrt();
        POINTS.iter().map(|(mass, at)| -mass / distance(*at)).sum()
    }

    /// The largest error at some places at least one unit from the middle.
    fn error(order: usize) -> f64 {
        let expansion = expansion(order, 0.0);
        let places = [
            [1.0, -1.0, 0.3, 0.2, 0.0, -0.4, 1.0, -1.0],
            [0.2, 0.4, -1.0, 1.0, 0.6, 0.1, 1.0, -1.0],
            [-0.3, 0.6, 0.1, -0.7, 1.0, -1.0, 1.0, 1.0],
        ];
        let found = expansion.along(PLACES, |n| places.map(|x| x[n]));
        let wrong = |n: usize| (found[n] - exact(places.map(|x| x[n]))).abs();
        (0..PLACES).map(wrong).fold(0.0, f64::max)
    }

    #[test]
    fn each_order_brings_the_error_down() {
        let errors: Vec<f64> = (0..=MOST_ORDER).map(error).collect();
        for (order, error) in errors.iter().enumerate().skip(1) {
            // the farthest point is at 0.35 of the nearest place
            let most = 8.0 * 0.38_f64.powi(order as i32 + 1);
            assert!(*error < most, "{order}: {error:e} of {errors:?}");
        }
        assert!(errors[12] < 2e-6 && errors[8] > 1e-6, "{errors:?}");
    }

    #[test]
    fn the_centre_itself_is_no_fault() {
        let expansion = expansion(4, 0.1);
        let found = expansion.along(1, |_| [0.0; 3]);
        assert!(found.iter().all(|value| value.is_finite()), "{found:?}");
    }
}
