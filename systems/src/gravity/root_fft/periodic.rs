//! Inverse of the seven-point operator in a periodic box.

use nestar_device::math::{sin, sum3};
use std::f64::consts::PI;

/// Inverse of the operator, mode by mode.
pub struct PeriodicInverse {
    /// For each wave number along x, y and z, `(2 sin(pi k / cells) / width)^2`.
    along: [Vec<f64>; 3],
}

impl PeriodicInverse {
    pub fn new(cells: [usize; 3], width: [f64; 3]) -> Self {
        let of_wave = |axis: usize, k: usize| {
            // opposite wave numbers get the same bits
            let k = k.min(cells[axis] - k);
            let root = 2.0 * sin(PI * (k as f64 / cells[axis] as f64)) / width[axis];
            root * root
        };
        let along =
            |axis: usize| -> Vec<f64> { (0..cells[axis]).map(|k| of_wave(axis, k)).collect() };
        Self {
            along: std::array::from_fn(along),
        }
    }

    /// Returns the factor from a mode of the source to that of the potential; zero for the mean.
    pub fn factor(&self, [kx, ky, kz]: [usize; 3]) -> f64 {
        let [x, y, z] = &self.along;
        let sum = sum3(x[kx], y[ky], z[kz]);
        if sum > 0.0 { -1.0 / sum } else { 0.0 }
    }
}
