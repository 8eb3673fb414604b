//! The lattice Green's function as a sum of products.

use super::bessel;
use nestar_device::math::{exp, ln};
use nestar_engine::mesh::parallel;

/// Spacing of the nodes in the logarithm of time. The error of the trapezoidal rule is exp(-pi^2 / STEP), since the
/// integrand is analytic for imaginary parts below pi / 2.
const STEP: f64 = 0.25;
/// Logarithm of the first time: only the first two terms of the series of the integrand at zero remain.
const FIRST: f64 = -20.0;
/// Logarithm of the ratio of the last time to the diffusion time over the lattice: only two terms of the series at
/// infinity remain.
const BEYOND: f64 = 26.0;

/// Green's function of the seven-point operator with weights `w_a` along the axes, the largest of which is 1:
///
/// `G(n) = int_0^inf prod_a exp(-2 w_a t) I_(n_a)(2 w_a t) dt = sum_t weights[t] prod_a along[a][t][n_a]`.
///
/// The operator applied to it gives -1 in the cell 0 and 0 elsewhere (e.g. I. J. Zucker, J. Stat. Phys. 145, 591
/// (2011), section 2; products of Bessel functions are the heat kernel of the lattice).
pub struct Quadrature {
    /// Weights of the nodes.
    pub weights: Vec<f64>,
    /// Per axis and node: one factor per distance.
    pub along: [Vec<Vec<f64>>; 3],
}

impl Quadrature {
    /// Computes the sum for distances up to `reach` along the axes.
    pub fn new(weights: [f64; 3], reach: [usize; 3]) -> Self {
        let of_axis = |axis: usize| (reach[axis] * reach[axis]) as f64 / weights[axis];
        // a quarter of the squared distance in units of the diffusion along each axis, at least 1
        let spread = 1.0 + (of_axis(0) + of_axis(1) + of_axis(2)) / 4.0;
        let steps = ((ln(spread) + BEYOND - FIRST) / STEP) as usize;
        let times: Vec<f64> = (0..=steps).map(|n| exp(FIRST + STEP * n as f64)).collect();
        let mut of_nodes: Vec<f64> = times.iter().map(|time| STEP * time).collect();
        // terms fall as the time before the first node, and as its inverse square root after the last: geometric series
        of_nodes[0] /= 1.0 - exp(-STEP);
        of_nodes[steps] /= 1.0 - exp(-0.5 * STEP);
        let along = |axis: usize| {
            let node = |time: &f64| {
                let mut values = vec![0.0; reach[axis] + 1];
                bessel::scaled(2.0 * weights[axis] * time, &mut values);
                values
            };
            parallel::map(&times, node)
        };
        Self {
            weights: of_nodes,
            along: std::array::from_fn(along),
        }
    }

    /// Returns the Green's function at a distance, in cells.
    #[cfg(test)]
    pub fn value(&self, [i, j, k]: [usize; 3]) -> f64 {
        let [x, y, z] = &self.along;
        let term = |(t, weight): (usize, &f64)| weight * x[t][i] * y[t][j] * z[t][k];
        self.weights.iter().enumerate().map(term).sum()
    }
}
