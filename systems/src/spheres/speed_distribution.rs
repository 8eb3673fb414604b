//! Distribution of speeds at a radius.

use super::distribution::Distribution;

/// Intervals of the tabulated cumulative distribution.
const CELLS: usize = 256;
/// Speed at the middle of the table, in units of the dispersion; about two thirds of the particles are
/// slower.
const MIDDLE: f64 = 2.0;

/// Cumulative distribution of speeds at a radius, in units of the one-dimensional velocity dispersion. It is
/// the integral of `x^2 f(Psi (1 - x^2/most^2))`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpeedDistribution {
    /// Escape speed.
    most: f64,
    /// Spread of the table: entry `s` between 0 and 1 has the speed `most s/(s + spread (1 - s))`. A long
    /// tail then has few entries.
    spread: f64,
    /// Fraction of slower particles at uniform `s`.
    shares: Vec<f64>,
}

impl SpeedDistribution {
    /// Tabulates the speeds at node `node` of the distribution function, where minus the potential is
    /// `potential`.
    pub fn new(distribution: &Distribution, node: usize, potential: f64, dispersion: f64) -> Self {
        /// Points of the two-point Gauss-Legendre rule on (0, 1).
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

    /// Returns the speed at a position of the table.
    fn speed(&self, s: f64) -> f64 {
        self.most * s / (s + self.spread * (1.0 - s))
    }

    /// Returns the speed below which a fraction of the particles are.
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
