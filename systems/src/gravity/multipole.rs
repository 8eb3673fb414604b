//! Multipole expansion of the potential outside a body.

use nestar_device::math::sum3;
use nestar_kernels::multigrid::expansion::next_derivative;
use nestar_kernels::multigrid::moments::{MAX_ORDER, count, first_moment};
use std::f64::consts::PI;

/// Number of powers of a coordinate.
const POWERS: usize = MAX_ORDER + 1;
/// Number of points that are evaluated at once.
const PLACES: usize = 8;
type PointLanes = [f64; PLACES];

/// Expansion of the potential of a right-hand side in derivatives of 1/r about its centre of mass. In vacuum second and
/// higher derivatives along z follow from the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MultipoleExpansion {
    /// Half the width of a root cell along the axes, in units of the length of the moments.
    pub half: [f64; 3],
    /// Centre of mass in these units, relative to the centre of the domain.
    pub centre: [f64; 3],
    /// Highest order.
    pub order: usize,
    /// Per derivative, ordered by its order along x, then z (0 or 1), then y: its coefficient and the two factors of
    /// the recurrence, see [`next_derivative`].
    pub terms: Vec<[f64; 3]>,
}

/// Returns the orders of the derivatives along x, z and y.
fn derivative_orders(order: usize) -> impl Iterator<Item = [usize; 3]> {
    let of_x = move |a| (0..=1.min(order - a)).map(move |c| (a, c));
    let of_z = move |(a, c)| (0..=order - a - c).map(move |b| [a, c, b]);
    (0..=order).flat_map(of_x).flat_map(of_z)
}

impl MultipoleExpansion {
    /// Builds the expansion from moments of the Laplacian about a point, in the order of [`first_moment`]: sums over
    /// cells times `weight` (volume over the length of the moments). `half` is half the cell width. Mirror images beyond
    /// the planes at `mirrors` along the axes are added.
    pub fn new(
        moments: &[f64],
        order: usize,
        weight: f64,
        half: [f64; 3],
        mirrors: [Option<f64>; 3],
    ) -> Self {
        let moments = &with_images(moments, order, mirrors);
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
        let mut about = shifted_moments(moments, order, centre);
        // moments with images are about the planes
        let centre =
            [0, 1, 2].map(|axis| mirrors[axis].map_or(centre[axis], |at| at + centre[axis]));
        // div grad 1/r = 0: from the highest order along z to the lowest
        for c in (2..=order).rev() {
            for (a, b) in (0..=order - c).flat_map(|a| (0..=order - c - a).map(move |b| (a, b))) {
                let share = about[place(a, b, c)] / (c * (c - 1)) as f64;
                about[place(a + 2, b, c - 2)] -= share * ((a + 2) * (a + 1)) as f64;
                about[place(a, b + 2, c - 2)] -= share * ((b + 2) * (b + 1)) as f64;
            }
        }
        let term = |[a, c, b]: [usize; 3]| {
            let share = 1.0 / (a + b + c).max(1) as f64;
            let coefficient = -weight / (4.0 * PI) * about[place(a, b, c)];
            [coefficient, 2.0 - share, 1.0 - share]
        };
        Self {
            half,
            centre,
            order,
            terms: derivative_orders(order).map(term).collect(),
        }
    }

    /// Returns the squared smallest cell width: at smaller distances the potential is that at this distance.
    pub fn nearest(&self) -> f64 {
        let width = 2.0 * self.half.into_iter().fold(f64::INFINITY, f64::min);
        width * width
    }

    /// Evaluates the expansion at the points `place` into `potential`.
    pub fn fill(&self, potential: &mut [f64], place: impl Fn(usize) -> [f64; 3]) {
        for (n, out) in potential.chunks_mut(PLACES).enumerate() {
            let last = out.len() - 1;
            let places: [[f64; 3]; PLACES] =
                std::array::from_fn(|m| place(n * PLACES + m.min(last)));
            let along = |axis: usize| places.map(|place| place[axis] - self.centre[axis]);
            let found = self.at(&[along(0), along(1), along(2)]);
            out.copy_from_slice(&found[..=last]);
        }
    }

    /// Evaluates the expansion at points relative to its centre.
    fn at(&self, x: &[PointLanes; 3]) -> PointLanes {
        const NONE: PointLanes = [0.0; PLACES];
        let nearest = self.nearest();
        let inverse: PointLanes = std::array::from_fn(|n| {
            let square = sum3(x[0][n] * x[0][n], x[1][n] * x[1][n], x[2][n] * x[2][n]);
            1.0 / square.max(nearest)
        });
        // derivatives of the latest three orders along x
        let mut kept = [[[NONE; POWERS]; 2]; 3];
        let mut found = NONE;
        for ([a, c, b], term) in derivative_orders(self.order).zip(&self.terms) {
            let row = |less: usize| &kept[(a + 3 - less) % 3][c];
            let one = [
                if a > 0 { row(1)[b] } else { NONE },
                if b > 0 { row(0)[b - 1] } else { NONE },
                if c > 0 { kept[a % 3][0][b] } else { NONE },
            ];
            let two = [
                if a > 1 { row(2)[b] } else { NONE },
                if b > 1 { row(0)[b - 2] } else { NONE },
                NONE,
            ];
            let value: PointLanes = match a + b + c {
                0 => inverse.map(f64::sqrt),
                _ => std::array::from_fn(|m| {
                    let [x, one, two] = [x, &one, &two].map(|of| of.map(|lanes| lanes[m]));
                    next_derivative(inverse[m], &x, &one, &two, term[1], term[2])
                }),
            };
            for (found, value) in found.iter_mut().zip(value) {
                *found += term[0] * value;
            }
            kept[a % 3][c][b] = value;
        }
        found
    }

    /// Returns the largest ratio of the two highest orders to the monopole at points. It is small if the expansion
    /// converges.
    pub fn tail_ratio(&self, points: &[[f64; 3]]) -> f64 {
        let of = |orders: std::ops::RangeInclusive<usize>| {
            let mut part = self.clone();
            for (number, term) in derivative_orders(self.order).zip(&mut part.terms) {
                if !orders.contains(&number.iter().sum()) {
                    term[0] = 0.0;
                }
            }
            let mut values = vec![0.0; points.len()];
            part.fill(&mut values, |n| points[n]);
            values
        };
        let highest = of(self.order.saturating_sub(1).max(1)..=self.order);
        let shares = highest.iter().zip(of(0..=0));
        // there is no ratio without mass
        let shares = shares.map(|(value, mass)| (value / mass).abs());
        shares.filter(|share| share.is_finite()).fold(0.0, f64::max)
    }

    /// Returns all numbers of the expansion.
    pub fn to_numbers(&self) -> Vec<f64> {
        let places = [self.half, self.centre].concat();
        let first = std::iter::once(self.order as f64).chain(places);
        first.chain(self.terms.iter().flatten().copied()).collect()
    }

    /// Restores an expansion from [`MultipoleExpansion::to_numbers`]; `None` if they are invalid.
    pub fn from_numbers(numbers: &[f64]) -> Option<Self> {
        let (order, numbers) = numbers.split_first()?;
        let (half, numbers) = numbers.split_first_chunk()?;
        let (centre, terms) = numbers.split_first_chunk()?;
        let (terms, rest) = terms.as_chunks();
        let order = (0..=MAX_ORDER).find(|n| *n as f64 == *order)?;
        let whole = rest.is_empty() && terms.len() == self::derivative_orders(order).count();
        whole.then(|| Self {
            half: *half,
            centre: *centre,
            order,
            terms: terms.to_vec(),
        })
    }
}

/// Adds the moments of mirror images beyond planes at `mirrors` along the axes. The sums are about these planes along
/// their axes: even moments are doubled, and odd ones vanish.
fn with_images(moments: &[f64], order: usize, mirrors: [Option<f64>; 3]) -> Vec<f64> {
    if mirrors == [None; 3] {
        return moments.to_vec();
    }
    let mut moments = shifted_moments(moments, order, mirrors.map(|at| at.unwrap_or(0.0)));
    for (place, powers) in moment_powers(order) {
        for axis in (0..3).filter(|&axis| mirrors[axis].is_some()) {
            moments[place] *= if powers[axis] % 2 == 0 { 2.0 } else { 0.0 };
        }
    }
    moments
}

/// Shifts moments to another point.
fn shifted_moments(moments: &[f64], order: usize, to: [f64; 3]) -> Vec<f64> {
    let mut moments = moments.to_vec();
    for (axis, to) in to.into_iter().enumerate() {
        let before = moments.clone();
        for (place, powers) in moment_powers(order) {
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

/// Returns all moments with their powers.
fn moment_powers(order: usize) -> impl Iterator<Item = (usize, [usize; 3])> {
    let all = (0..=order).flat_map(move |a| {
        (0..=order - a).flat_map(move |b| (0..=order - a - b).map(move |c| [a, b, c]))
    });
    debug_assert_eq!(all.clone().count(), count(order));
    all.enumerate()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Point masses: mass and position.
    const POINTS: [(f64, [f64; 3]); 4] = [
        (2.0, [0.2, -0.1, 0.05]),
        (1.5, [-0.1, 0.15, -0.2]),
        (0.7, [0.1, 0.2, 0.22]),
        (-0.2, [0.15, 0.12, -0.15]),
    ];

    fn expansion(order: usize, nearest: f64) -> MultipoleExpansion {
        let moment = |[a, b, c]: [usize; 3]| {
            let powers =
                |x: [f64; 3]| x[0].powi(a as i32) * x[1].powi(b as i32) * x[2].powi(c as i32);
            POINTS.iter().map(|(mass, x)| mass * powers(*x)).sum()
        };
        let moments: Vec<f64> = moment_powers(order)
            .map(|(_, powers)| moment(powers))
            .collect();
        MultipoleExpansion::new(&moments, order, 4.0 * PI, [0.5 * nearest; 3], [None; 3])
    }

    fn exact(x: [f64; 3]) -> f64 {
        let distance = |at: [f64; 3]| (0..3).map(|n| (x[n] - at[n]).powi(2)).sum::<f64>().sqrt();
        POINTS.iter().map(|(mass, at)| -mass / distance(*at)).sum()
    }

    /// Returns the largest error at points at least one unit from the centre.
    fn error(order: usize) -> f64 {
        let expansion = expansion(order, 0.0);
        let places = [
            [1.0, -1.0, 0.3, 0.2, 0.0, -0.4, 1.0, -1.0],
            [0.2, 0.4, -1.0, 1.0, 0.6, 0.1, 1.0, -1.0],
            [-0.3, 0.6, 0.1, -0.7, 1.0, -1.0, 1.0, 1.0],
        ];
        let mut found = [0.0; PLACES];
        expansion.fill(&mut found, |n| places.map(|x| x[n]));
        let wrong = |n: usize| (found[n] - exact(places.map(|x| x[n]))).abs();
        (0..PLACES).map(wrong).fold(0.0, f64::max)
    }

    #[test]
    fn each_order_brings_the_error_down() {
        let errors: Vec<f64> = (0..=MAX_ORDER).map(error).collect();
        for (order, error) in errors.iter().enumerate().skip(1) {
            // the outermost point mass is at 0.35 of the distance of the nearest point
            let most = 8.0 * 0.38_f64.powi(order as i32 + 1);
            assert!(*error < most, "{order}: {error:e} of {errors:?}");
        }
        assert!(errors[12] < 2e-6 && errors[8] > 1e-6, "{errors:?}");
    }

    #[test]
    fn the_rest_is_small_where_faces_are_beyond_the_mass_alone() {
        let expansion = expansion(8, 0.0);
        let far = expansion.tail_ratio(&face_centres([1.0; 3]));
        assert!(far > 0.0 && far < 1e-3, "{far:e}");
        // the point masses extend to 0.32 from their centre
        for axis in 0..3 {
            let mut faces = [1.0; 3];
            faces[axis] = 0.15;
            let near = expansion.tail_ratio(&face_centres(faces));
            assert!(near > 1.0, "{axis}: {near:e}");
        }
    }

    /// Returns the centres of the faces of a box of half widths `half`.
    fn face_centres(half: [f64; 3]) -> Vec<[f64; 3]> {
        let centre = |n: usize| {
            let side = if n < 3 { 1.0 } else { -1.0 };
            [0, 1, 2].map(|axis| {
                if axis == n % 3 {
                    side * half[axis]
                } else {
                    0.0
                }
            })
        };
        (0..6).map(centre).collect()
    }

    #[test]
    fn mirror_images_are_added() {
        let (order, half) = (6, [0.01; 3]);
        let plane = -0.3;
        let moments_of = |points: &[(f64, [f64; 3])]| -> Vec<f64> {
            let term = |powers: [usize; 3], (mass, x): &(f64, [f64; 3])| {
                mass * (0..3)
                    .map(|axis| x[axis].powi(powers[axis] as i32))
                    .product::<f64>()
            };
            let sum = |powers| points.iter().map(|point| term(powers, point)).sum();
            moment_powers(order)
                .map(|(_, powers)| sum(powers))
                .collect()
        };
        let image = |&(mass, [x, y, z]): &(f64, [f64; 3])| (mass, [x, 2.0 * plane - y, z]);
        let all = [POINTS, POINTS.each_ref().map(image)].concat();
        let mirrors = [None, Some(plane), None];
        let found = MultipoleExpansion::new(&moments_of(&POINTS), order, 1.0, half, mirrors);
        let right = MultipoleExpansion::new(&moments_of(&all), order, 1.0, half, [None; 3]);
        for (a, b) in found.to_numbers().into_iter().zip(right.to_numbers()) {
            assert!((a - b).abs() < 1e-13, "{a} {b}");
        }
    }

    #[test]
    fn numbers_give_the_expansion_again() {
        let expansion = expansion(5, 0.1);
        let mut numbers = expansion.to_numbers();
        let again = MultipoleExpansion::from_numbers(&numbers).expect("they are whole");
        assert_eq!(again.to_numbers(), numbers);
        numbers.pop();
        assert!(MultipoleExpansion::from_numbers(&numbers).is_none());
        assert!(MultipoleExpansion::from_numbers(&[-1.0; 8]).is_none());
    }

    #[test]
    fn the_centre_itself_is_no_fault() {
        let expansion = expansion(4, 0.1);
        let mut found = [f64::NAN];
        expansion.fill(&mut found, |_| [0.0; 3]);
        assert!(found[0].is_finite(), "{found:?}");
    }
}
