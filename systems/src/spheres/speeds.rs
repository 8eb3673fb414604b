//! Speeds at a radius.

use super::distribution::Distribution;

/// Intervals of the tabulated share of slower particles.
const CELLS: usize = 256;
/// Speed that halves the table, in units of the dispersion: some two thirds of the particles are slower.
const MIDDLE: f64 = 2.0;

/// The distribution of speeds at a radius, in units of the velocity dispersion of one axis: the tabulated share of slower particles, from
/// the integral of `x^2 f(Psi (1 - x^2/most^2))`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpeedDistribution {
    /// Speed of escape.
    most: f64,
    /// Places `s` between 0 and 1 have the speed `most s/(s + spread (1 - s))`, so that a long tail has few of them.
    spread: f64,
    /// Share of slower particles at places that are evenly spaced.
    shares: Vec<f64>,
}

impl SpeedDistribution {
    /// The speeds where the potential with its sign turned is `potential`, that of node `node` of the distribution.
    pub fn new(distribution: &Distribution, node: usize, potential: f64, dispersion: f64) -> Self {
        /// Places of the rule of Gauss and Legendre with two points on (0, 1).
        const POINTS: [f64; 2] = [0.21132486540518713, 0.7886751345948129];
        let most = (2.0 * potential).sqrt() / dispersion;
        let spread = (most / MIDDLE - 1.0).max(1.0);
        let mut speeds = Self {
            most,
            spread,
            shares: vec![0.0],
        };
        let (mut start, mut sum) = (node, 0.0);
        for cell in 0..CELLS {
            for point in POINTS {
                let s = (cell as f64 + point) / CELLS as f64;
                let q = speeds.speed(s) / most;
                let slope = s + spread * (1.0 - s);
                let energy = potential * (1.0 - q * q);
                sum += q * q * distribution.from(&mut start, energy) / (slope * slope);
            }
            speeds.shares.push(sum);
        }
        for share in &mut speeds.shares {
            *share /= sum;
        }
        speeds
    }

    /// The speed at a place of the table.
    fn speed(&self, s: f64) -> f64 {
        self.most * s / (s + self.spread * (1.0 - s))
    }

    /// The speed below which a share of the particles are.
    pub fn quantile(&self, share: f64) -> f64 {
        let above = self.shares.partition_point(|&s| s <= share);
        let n = above.clamp(1, CELLS) - 1;
        let (low, high) = (self.shares[n], self.shares[n + 1]);
        let t = if high > low {
            (share - low) / (high - low)
        } else {
            0.0
        };
        self.speed((n as f64 + t) / CELLS as f64)
    }
}
