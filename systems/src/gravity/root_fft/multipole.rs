//! The potential outside of a body by its moments.

use nestar_device::math::sum3;
use nestar_kernels::multigrid::expansion::next_derivative;
use nestar_kernels::multigrid::moments::{MAX_ORDER, count, first_moment};
use std::f64::consts::PI;

/// Powers of a coordinate.
const POWERS: usize = MAX_ORDER + 1;
/// Places that are worked on at once.
const PLACES: usize = 8;
type Lanes = [f64; PLACES];

/// The expansion of the potential of a right-hand side in derivatives of 1/r about its centre of mass: in empty space those by z twice
/// and more follow from the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expansion {
    /// Half the width of a root cell along the axes, in units of the moments' length.
    pub half: [f64; 3],
    /// The centre of mass in these units, from the middle of the domain.
    pub centre: [f64; 3],
    /// The highest order.
    pub order: usize,
    /// Of the derivatives by their numbers along x, of these along z (none or one), of these along y: what each is multiplied by, and
    /// what those that it is made of are, see [`next_derivative`].
    pub terms: Vec<[f64; 3]>,
}

/// The numbers of the derivatives up to an order along x, z and y.
fn numbers(order: usize) -> impl Iterator<Item = [usize; 3]> {
    let of_x = move |a| (0..=1.min(order - a)).map(move |c| (a, c));
    let of_z = move |(a, c)| (0..=order - a - c).map(move |b| [a, c, b]);
    (0..=order).flat_map(of_x).flat_map(of_z)
}

impl Expansion {
    /// Of the moments of the Laplacian about a point, as [`first_moment`] orders them: sums over cells of `weight` (volume over the
    /// moments' length), which are so wide as twice `half`.
    pub fn new(moments: &[f64], order: usize, weight: f64, half: [f64; 3]) -> Self {
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
        let term = |[a, c, b]: [usize; 3]| {
            let share = 1.0 / (a + b + c).max(1) as f64;
            let coefficient = -weight / (4.0 * PI) * about[place(a, b, c)];
            [coefficient, 2.0 - share, 1.0 - share]
        };
        Self {
            half,
            centre,
            order,
            terms: numbers(order).map(term).collect(),
        }
    }

    /// The square of a cell's smallest width: nearer to the centre the potential counts as there.
    pub fn nearest(&self) -> f64 {
        let width = 2.0 * self.half.into_iter().fold(f64::INFINITY, f64::min);
        width * width
    }

    /// Fills `potential` with that at so many places.
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

    /// The potential at places counted from the centre.
    fn at(&self, x: &[Lanes; 3]) -> Lanes {
        const NONE: Lanes = [0.0; PLACES];
        let nearest = self.nearest();
        let inverse: Lanes = std::array::from_fn(|n| {
            let square = sum3(x[0][n] * x[0][n], x[1][n] * x[1][n], x[2][n] * x[2][n]);
            1.0 / square.max(nearest)
        });
        // derivatives of the latest three numbers along x
        let mut kept = [[[NONE; POWERS]; 2]; 3];
        let mut found = NONE;
        for ([a, c, b], term) in numbers(self.order).zip(&self.terms) {
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
            let value: Lanes = match a + b + c {
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

    /// What the two highest orders say at the middle of the domain's faces, so far away along the axes, as a share of what the mass
    /// says alone: the most of it. An expansion that converges has little.
    pub fn rest(&self, faces: [f64; 3]) -> f64 {
        let of = |orders: std::ops::RangeInclusive<usize>| {
            let mut part = self.clone();
            for (number, term) in numbers(self.order).zip(&mut part.terms) {
                if !orders.contains(&number.iter().sum()) {
                    term[0] = 0.0;
                }
            }
            let mut values = [0.0; 6];
            part.fill(&mut values, |n| {
                let mut middle = [0.0; 3];
                middle[n % 3] = if n < 3 { 1.0 } else { -1.0 } * faces[n % 3];
                middle
            });
            values
        };
        let highest = of(self.order.saturating_sub(1).max(1)..=self.order);
        let shares = highest.iter().zip(of(0..=0));
        // without mass there is no share
        let shares = shares.map(|(value, mass)| (value / mass).abs());
        shares.filter(|share| share.is_finite()).fold(0.0, f64::max)
    }

    /// All numbers of it.
    pub fn to_numbers(&self) -> Vec<f64> {
        let places = [self.half, self.centre].concat();
        let first = std::iter::once(self.order as f64).chain(places);
        first.chain(self.terms.iter().flatten().copied()).collect()
    }

    /// Of [`Expansion::to_numbers`], if they are such.
    pub fn of_numbers(numbers: &[f64]) -> Option<Self> {
        let (order, numbers) = numbers.split_first()?;
        let (half, numbers) = numbers.split_first_chunk()?;
        let (centre, terms) = numbers.split_first_chunk()?;
        let (terms, rest) = terms.as_chunks();
        let order = (0..=MAX_ORDER).find(|n| *n as f64 == *order)?;
        let whole = rest.is_empty() && terms.len() == self::numbers(order).count();
        whole.then(|| Self {
            half: *half,
            centre: *centre,
            order,
            terms: terms.to_vec(),
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
        Expansion::new(&moments, order, 4.0 * PI, [0.5 * nearest; 3])
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
        let mut found = [0.0; PLACES];
        expansion.fill(&mut found, |n| places.map(|x| x[n]));
        let wrong = |n: usize| (found[n] - exact(places.map(|x| x[n]))).abs();
        (0..PLACES).map(wrong).fold(0.0, f64::max)
    }

    #[test]
    fn each_order_brings_the_error_down() {
        let errors: Vec<f64> = (0..=MAX_ORDER).map(error).collect();
        for (order, error) in errors.iter().enumerate().skip(1) {
            // the farthest point is at 0.35 of the nearest place
            let most = 8.0 * 0.38_f64.powi(order as i32 + 1);
            assert!(*error < most, "{order}: {error:e} of {errors:?}");
        }
        assert!(errors[12] < 2e-6 && errors[8] > 1e-6, "{errors:?}");
    }

    #[test]
    fn the_rest_is_small_where_faces_are_beyond_the_mass_alone() {
        let expansion = expansion(8, 0.0);
        let far = expansion.rest([1.0; 3]);
        assert!(far > 0.0 && far < 1e-3, "{far:e}");
        // the points reach to 0.32 from their centre
        for axis in 0..3 {
            let mut faces = [1.0; 3];
            faces[axis] = 0.15;
            let near = expansion.rest(faces);
            assert!(near > 1.0, "{axis}: {near:e}");
        }
    }

    #[test]
    fn numbers_give_the_expansion_again() {
        let expansion = expansion(5, 0.1);
        let mut numbers = expansion.to_numbers();
        let again = Expansion::of_numbers(&numbers).expect("they are whole");
        assert_eq!(again.to_numbers(), numbers);
        numbers.pop();
        assert!(Expansion::of_numbers(&numbers).is_none());
        assert!(Expansion::of_numbers(&[-1.0; 8]).is_none());
    }

    #[test]
    fn the_centre_itself_is_no_fault() {
        let expansion = expansion(4, 0.1);
        let mut found = [f64::NAN];
        expansion.fill(&mut found, |_| [0.0; 3]);
        assert!(found[0].is_finite(), "{found:?}");
    }
}
