//! The lattice Green's function as a sum of products.

use super::bessel;
use nestar_device::math::{exp, ln};
use rayon::prelude::*;

/// Distance of the nodes in the logarithm of time: the trapezoidal rule leaves exp(-pi^2 / STEP), since the integrand is
/// analytic where the imaginary part of that logarithm is below pi / 2.
const STEP: f64 = 0.25;
/// Logarithm of the first time: only the first two terms of the integrand's series at zero are left.
const FIRST: f64 = -20.0;
/// From the time that it takes to spread over the lattice to the last one, in the logarithm: only two terms of the series at
/// infinity are left.
const BEYOND: f64 = 26.0;

/// The Green's function of the operator of seven points with weights `w_a` along the axes, of which the largest is 1:
///
/// `G(n) = int_0^inf prod_a exp(-2 w_a t) I_(n_a)(2 w_a t) dt = sum_t weights[t] prod_a along[a][t][n_a]`,
///
/// and the operator makes of it -1 in the cell 0 and 0 in all others (e.g. I. J. Zucker, J. Stat. Phys. 145, 591 (2011),
/// section 2; products of Bessel functions are the heat kernel of the lattice).
pub struct Quadrature {
    /// Weights of the nodes.
    pub weights: Vec<f64>,
    /// For each axis and node, a factor for each order.
    pub along: [Vec<Vec<f64>>; 3],
}

impl Quadrature {
    /// The sum for distances up to `reach` along the axes.
    pub fn new(weights: [f64; 3], reach: [usize; 3]) -> Self {
        let of_axis = |axis: usize| (reach[axis] * reach[axis]) as f64 / weights[axis];
        // a quarter of the squared distance, in units of the diffusion along each axis, and one where all is near
        let spread = 1.0 + (of_axis(0) + of_axis(1) + of_axis(2)) / 4.0;
        let steps = ((ln(spread) + BEYOND - FIRST) / STEP) as usize;
        let times: Vec<f64> = (0..=steps).map(|n| exp(FIRST + STEP * n as f64)).collect();
        let mut of_nodes: Vec<f64> = times.iter().map(|time| STEP * time).collect();
        // before the first node the terms fall as the time, behind the last as its inverse root: geometric series
        of_nodes[0] /= 1.0 - exp(-STEP);
        of_nodes[steps] /= 1.0 - exp(-0.5 * STEP);
        let along = |axis: usize| {
            let node = |time: &f64| {
                let mut values = vec![0.0; reach[axis] + 1];
                bessel::scaled(2.0 * weights[axis] * time, &mut values);
                values
            };
            times.par_iter().map(node).collect()
        };
        Self {
            weights: of_nodes,
            along: std::array::from_fn(along),
        }
    }

    /// The Green's function at a distance, in cells.
    #[cfg(test)]
    pub fn value(&self, [i, j, k]: [usize; 3]) -> f64 {
        let [x, y, z] = &self.along;
        let term = |(t, weight): (usize, &f64)| weight * x[t][i] * y[t][j] * z[t][k];
        self.weights.iter().enumerate().map(term).sum()
    }
}
