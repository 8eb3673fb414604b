//! A point mass in a periodic cube: the sums of Ewald (1921).

use std::f64::consts::PI;

/// Images along each side of the middle, in space and in wave numbers: with [`SPLIT`] what is left out is below 1e-17.
const REACH: i32 = 4;

/// Inverse length, for a cube of width 1, at which the sum in space hands over to the sum over waves.
const SPLIT: f64 = 2.0;

/// The complementary error function, to 1e-15 relative: 1 minus the series of positive terms below 2, the continued fraction
/// above (Abramowitz & Stegun 1964, 7.1.6 and 7.1.14).
#[must_use]
pub fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    let factor = (-x * x).exp() / PI.sqrt();
    if x < 2.0 {
        let (mut term, mut sum, mut n) = (2.0 * x, 2.0 * x, 0.0);
        while term > 1e-18 * sum {
            n += 1.0;
            term *= 2.0 * x * x / (2.0 * n + 1.0);
            sum += term;
        }
        return 1.0 - factor * sum;
    }
    let tail = (1..=120)
        .rev()
        .fold(x, |tail, n| x + 0.5 * f64::from(n) / tail);
    factor / tail
}

/// A point mass with G M = 1 and its images in a periodic cube, without the mean density (so that the potential's Laplacian away
/// from the mass is -4 pi over the volume, and its mean is 0).
#[derive(Clone, Debug)]
pub struct Ewald {
    length: f64,
    split: f64,
    /// Integer wave numbers, with the coefficient of the cosine.
    waves: Vec<([f64; 3], f64)>,
}

/// Potential and acceleration of a unit mass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pull {
    /// Potential, negative near the mass.
    pub potential: f64,
    /// Acceleration, towards the mass where that is near.
    pub acceleration: [f64; 3],
}

impl Ewald {
    /// In a cube of width `length`, above 0.
    #[must_use]
    pub fn new(length: f64) -> Self {
        Self::with_split(length, SPLIT)
    }

    /// As [`Ewald::new`], of another split, from 1.9 to 2.2: the result does not depend on it, but for round-off.
    fn with_split(length: f64, split: f64) -> Self {
        let wave = |k: [f64; 3]| {
            let square: f64 = k.iter().map(|k| k * k).sum();
            (k, (-(PI / split).powi(2) * square).exp() / (PI * square))
        };
        let waves = lattice().filter(|k| *k != [0.0; 3]).map(wave).collect();
        Self {
            length,
            split,
            waves,
        }
    }

    /// Potential and acceleration at `from` the mass to the place, any vector that is no multiple of the width along all axes.
    #[must_use]
    pub fn pull(&self, from: [f64; 3]) -> Pull {
        let x = from.map(|x| x / self.length - (x / self.length).round());
        let mut pull = self.long_range(x);
        for n in lattice() {
            let [dx, dy, dz] = std::array::from_fn(|a| x[a] - n[a]);
            let r = (dx * dx + dy * dy + dz * dz).sqrt();
            let (near, slope) = self.short_range(r);
            pull.potential -= near;
            for (a, d) in pull.acceleration.iter_mut().zip([dx, dy, dz]) {
                *a += slope * d / r;
            }
        }
        self.scaled(pull)
    }

    /// Potential at the mass of its images and of the mean density, 2.8372974794806 G M over the width: the mean density taken away
    /// repels more than the images attract.
    #[must_use]
    pub fn own(&self) -> f64 {
        let mut pull = self.long_range([0.0; 3]);
        for n in lattice().filter(|n| *n != [0.0; 3]) {
            let r = n.iter().map(|n| n * n).sum::<f64>().sqrt();
            pull.potential -= self.short_range(r).0;
        }
        // what the sum over waves has of the mass itself: erf(split r)/r at 0
        pull.potential += 2.0 * self.split / PI.sqrt();
        self.scaled(pull).potential
    }

    /// erfc(split r)/r and its derivative.
    fn short_range(&self, r: f64) -> (f64, f64) {
        let (near, x) = (erfc(self.split * r) / r, self.split * r);
        let gauss = 2.0 * self.split / PI.sqrt() * (-x * x).exp();
        (near, -(near + gauss) / r)
    }

    /// The sum over waves, for a cube of width 1.
    fn long_range(&self, x: [f64; 3]) -> Pull {
        let mut pull = Pull {
            potential: PI / self.split.powi(2),
            ..Pull::default()
        };
        for (k, coefficient) in &self.waves {
            let angle = 2.0 * PI * (k[0] * x[0] + k[1] * x[1] + k[2] * x[2]);
            pull.potential -= coefficient * angle.cos();
            for (a, k) in pull.acceleration.iter_mut().zip(k) {
                *a -= 2.0 * PI * k * coefficient * angle.sin();
            }
        }
        pull
    }

    /// From a cube of width 1 to that of the width at hand.
    fn scaled(&self, pull: Pull) -> Pull {
        Pull {
            potential: pull.potential / self.length,
            acceleration: pull.acceleration.map(|a| a / self.length.powi(2)),
        }
    }
}

/// All points with whole coordinates up to [`REACH`].
fn lattice() -> impl Iterator<Item = [f64; 3]> {
    let side = 2 * REACH + 1;
    (0..side.pow(3))
        .map(move |n| [n % side, n / side % side, n / side / side].map(|n| f64::from(n - REACH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places in a cube of width 1, near the mass, at faces, edges and corners, and elsewhere.
    const PLACES: [[f64; 3]; 7] = [
        [0.02, -0.01, 0.03],
        [0.5, 0.1, -0.2],
        [0.5, 0.5, 0.23],
        [0.5, 0.5, 0.5],
        [0.21, -0.37, 0.44],
        [-0.08, 0.31, 0.12],
        [0.0, 0.25, 0.0],
    ];

    fn differ(a: Pull, b: Pull) -> f64 {
        let most = (0..3).map(|i| (a.acceleration[i] - b.acceleration[i]).abs());
        most.fold((a.potential - b.potential).abs(), f64::max)
    }

    /// Values of the C library of GNU.
    #[test]
    fn erfc_is_known() {
        let values = [
            (0.5, 0.479_500_122_186_953_5),
            (1.0, 0.157_299_207_050_285_13),
            (1.999_999, 0.004_677_755_648_073_953),
            (2.0, 0.004_677_734_981_047_265),
            (3.0, 2.209_049_699_858_544e-5),
            (5.0, 1.537_459_794_428_034_8e-12),
        ];
        for (x, value) in values {
            assert!(
                (erfc(x) / value - 1.0).abs() < 3e-14,
                "{x} {:e} {value:e}",
                erfc(x)
            );
            assert_eq!(erfc(-x), 2.0 - erfc(x));
        }
    }

    /// Hasimoto's constant (J. Fluid Mech. 5, 317 (1959)), and the Madelung constant of rock salt from eight ions in a cube.
    #[test]
    fn lattice_constants_are_known() {
        let one = Ewald::new(1.0);
        assert!(
            (one.own() - 2.837_297_479_480_619_5).abs() < 1e-13,
            "{}",
            one.own()
        );
        assert!((Ewald::new(3.0).own() - one.own() / 3.0).abs() < 1e-14);
        let two = Ewald::new(2.0);
        let mut madelung = two.own();
        for n in 1..8_u32 {
            let place = [n & 1, n >> 1 & 1, n >> 2].map(f64::from);
            let sign = if n.count_ones() % 2 == 1 { -1.0 } else { 1.0 };
            madelung += sign * two.pull(place).potential;
        }
        assert!(
            (madelung - 1.747_564_594_633_182_2).abs() < 1e-13,
            "{madelung}"
        );
    }

    #[test]
    fn the_split_does_not_matter() {
        let (small, large) = (Ewald::with_split(1.0, 1.9), Ewald::with_split(1.0, 2.2));
        assert!((small.own() - large.own()).abs() < 1e-13);
        for x in PLACES {
            let (a, b) = (small.pull(x), large.pull(x));
            assert!(
                differ(a, b) < 1e-12 * (1.0 + a.acceleration[0].abs()),
                "{x:?} {a:?} {b:?}"
            );
        }
    }

    /// Eight masses at half widths are the lattice of half the width; and the lattice is its own image under shifts by its width,
    /// reflections and exchanges of axes.
    #[test]
    fn the_lattice_is_symmetric() {
        let (one, half) = (Ewald::new(1.0), Ewald::new(0.5));
        for x in PLACES {
            let mut sum = Pull::default();
            for n in 0..8_u32 {
                let shift = [n & 1, n >> 1 & 1, n >> 2].map(f64::from);
                let part = one.pull(std::array::from_fn(|a| x[a] + 0.5 * shift[a]));
                sum.potential += part.potential;
                for a in 0..3 {
                    sum.acceleration[a] += part.acceleration[a];
                }
            }
            let scale = sum
                .acceleration
                .iter()
                .fold(1.0, |m: f64, a| m.max(a.abs()));
            if x != [0.5; 3] {
                assert!(
                    differ(sum, half.pull(x)) < 2e-13 * scale,
                    "{x:?} {sum:?} {:?}",
                    half.pull(x)
                );
            }
            let here = one.pull(x);
            let moved = one.pull([x[2] - 1.0, 2.0 - x[0], x[1]]);
            let [ax, ay, az] = moved.acceleration;
            let back = Pull {
                acceleration: [-ay, az, ax],
                ..moved
            };
            assert!(
                differ(here, back) < 1e-12 * scale,
                "{x:?} {here:?} {back:?}"
            );
        }
    }

    /// The acceleration is the slope of the potential, whose Laplacian is minus the mean density's; at faces no force crosses.
    #[test]
    fn potential_and_acceleration_belong_together() {
        let ewald = Ewald::new(1.5);
        let h = 1e-3;
        for x in [[0.4, -0.3, 0.5], [0.1, 0.6, -0.7]] {
            let here = ewald.pull(x);
            let mut laplacian = 0.0;
            for a in 0..3 {
                let at = |n: f64| {
                    ewald.pull(std::array::from_fn(|b| {
                        x[b] + if a == b { n * h } else { 0.0 }
                    }))
                };
                let slope = (8.0 * (at(1.0).potential - at(-1.0).potential) - at(2.0).potential
                    + at(-2.0).potential)
                    / (12.0 * h);
                assert!(
                    (here.acceleration[a] + slope).abs() < 1e-9,
                    "{slope} {here:?}"
                );
                laplacian -= (8.0 * (at(1.0).acceleration[a] - at(-1.0).acceleration[a])
                    - at(2.0).acceleration[a]
                    + at(-2.0).acceleration[a])
                    / (12.0 * h);
            }
            assert!(
                (laplacian + 4.0 * PI / 1.5_f64.powi(3)).abs() < 1e-8,
                "{laplacian}"
            );
        }
        assert!(ewald.pull([0.75, 0.2, 0.1]).acceleration[0].abs() < 1e-13);
    }
}
