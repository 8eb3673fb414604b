//! Factors of modes: the inverse operator of a periodic box, and the Fourier transform of the lattice Green's function.

use crate::spectral::{Batch, Fft, LANES};
use nestar_device::math::{exp, ln, sin, sqrt, sum3};
use nestar_engine::mesh::parallel;
use std::f64::consts::PI;
use std::ops::Range;

/// Numbers summed side by side.
const SIDE: usize = 16;
/// Spacing of the nodes in the logarithm of time. The error of the trapezoidal rule is exp(-pi^2 / STEP), since the
/// integrand is analytic for imaginary parts below pi / 2.
const STEP: f64 = 0.25;
/// Logarithm of the first time: only the first two terms of the series of the integrand at zero remain.
const FIRST: f64 = -20.0;
/// Logarithm of the ratio of the last time to the diffusion time over the lattice: only two terms of the series at
/// infinity remain.
const BEYOND: f64 = 26.0;
/// Bessel functions below this fraction of the function of order 0 are set to zero.
const NEGLIGIBLE: f64 = 1e-35;
/// Smallest argument (also larger than the squared order) for which the asymptotic expansion is exact to round-off.
const LARGE: f64 = 100.0;
/// Number of terms of the asymptotic expansion.
const TERMS: u32 = 30;

/// Inverse of the seven-point operator in a periodic box, mode by mode.
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

/// Factors from modes of a source in a padded box to modes of the isolated potential. They are real because the Green's
/// function is even along each axis, and are stored for half of the wave numbers along each axis.
pub struct GreensFunction {
    lengths: [usize; 3],
    /// Wave numbers along x of this rank.
    waves: Range<usize>,
    /// `[own kx][ky][kz]`.
    values: Vec<f64>,
}

impl GreensFunction {
    /// Computes the transform for boxes of `lengths` cells of `width`.
    ///
    /// The Green's function is a sum of products, and so is its transform: only rows are transformed.
    pub fn new(lengths: [usize; 3], width: [f64; 3], waves: Range<usize>) -> Self {
        let weights = width.map(|width| 1.0 / (width * width));
        let largest = weights.into_iter().fold(0.0, f64::max);
        let reach = lengths.map(|length| length / 2);
        let quadrature = Quadrature::new(weights.map(|weight| weight / largest), reach);
        let [x, y, z] =
            std::array::from_fn(|axis| transformed(&quadrature.along[axis], lengths[axis]));
        let [ny, nz] = [reach[1] + 1, reach[2] + 1];
        let mut values = vec![0.0; waves.len() * ny * nz];
        parallel::for_each_chunk(&mut values, nz, 1, |n, row| {
            let (kx, ky) = (waves.start + n / ny, n % ny);
            let nodes = quadrature.weights.iter().enumerate();
            let product =
                |(t, weight): (usize, &f64)| -weight / largest * x.row(t)[kx] * y.row(t)[ky];
            sum(&nodes.map(product).collect::<Vec<_>>(), &z, row);
        });
        Self {
            lengths,
            waves,
            values,
        }
    }

    /// Returns the factor of a mode with a wave number along x of this rank.
    pub fn factor(&self, [kx, ky, kz]: [usize; 3]) -> f64 {
        let [_, ly, lz] = self.lengths;
        let (ky, kz) = (ky.min(ly - ky), kz.min(lz - kz));
        let row = (kx - self.waves.start) * (ly / 2 + 1) + ky;
        self.values[row * (lz / 2 + 1) + kz]
    }
}

/// Values of each node, `[node][width]`, where `width` is a multiple of [`SIDE`].
struct TransformTable {
    width: usize,
    values: Vec<f64>,
}

impl TransformTable {
    fn row(&self, node: usize) -> &[f64] {
        &self.values[node * self.width..][..self.width]
    }
}

/// Transforms even periodic rows, of which `halves` has the values from 0 to the middle.
fn transformed(halves: &[Vec<f64>], length: usize) -> TransformTable {
    let width = (length / 2 + 1).next_multiple_of(SIDE);
    let fft = Fft::new(length);
    let mut values = vec![0.0; halves.len() * width];
    parallel::for_each_chunk(&mut values, LANES * width, 1, |group, values| {
        let halves = halves[group * LANES..].iter().take(LANES);
        let (mut rows, mut work) = (Batch::new(length), Batch::new(length));
        for (lane, half) in halves.enumerate() {
            for n in 0..length {
                rows.set(n, lane, [half[n.min(length - n)], 0.0]);
            }
        }
        fft.forward(&mut rows, &mut work);
        for (lane, values) in values.chunks_mut(width).enumerate() {
            for k in 0..=length / 2 {
                values[k] = rows.get(k, lane)[0];
            }
        }
    });
    TransformTable { width, values }
}

/// Computes `row[k] = sum_t products[t] table[t][k]`, node after node.
fn sum(products: &[f64], table: &TransformTable, row: &mut [f64]) {
    for (group, row) in row.chunks_mut(SIDE).enumerate() {
        let mut sums = [0.0; SIDE];
        for (t, product) in products.iter().enumerate() {
            let from = &table.row(t)[group * SIDE..][..SIDE];
            for lane in 0..SIDE {
                sums[lane] += product * from[lane];
            }
        }
        row.copy_from_slice(&sums[..row.len()]);
    }
}

/// Lattice Green's function of the seven-point Laplacian with the weight `w_a` along axis `a`; the largest weight is 1:
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
                scaled_bessel(2.0 * weights[axis] * time, &mut values);
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

/// Computes modified Bessel functions of the first kind: `exp(-x) I_k(x)` for positive `x` and the orders `k` from 0 on that fit into `values`.
///
/// Relative errors are about 1e-15 down to 1e-24 of the function of order 0; functions below 1e-35 of it are zero.
fn scaled_bessel(x: f64, values: &mut [f64]) {
    let highest = values.len() as f64;
    if x > LARGE && x > highest * highest {
        let orders = values.iter_mut().enumerate();
        orders.for_each(|(k, value)| *value = at_large(x, k as f64));
    } else {
        downward(x, values);
    }
}

/// Hankel's expansion (M. Abramowitz & I. A. Stegun, Handbook of Mathematical Functions, 1964, eq. 9.7.1).
fn at_large(x: f64, order: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..TERMS {
        let odd = f64::from(2 * n - 1);
        term *= -(4.0 * order * order - odd * odd) / (8.0 * x * f64::from(n));
        sum += term;
    }
    sum / sqrt(2.0 * PI * x)
}

/// Miller's recurrence, normalised by `exp(x) = I_0 + 2 sum_k I_k` (the same, section 9.12, example 1, and eq. 9.6.37).
fn downward(x: f64, values: &mut [f64]) {
    let first = first_negligible(x);
    values.fill(0.0);
    let (mut above, mut here, mut sum) = (0.0, NEGLIGIBLE, 0.0);
    for k in (0..first).rev() {
        let below = above + 2.0 * (k + 1) as f64 / x * here;
        (above, here) = (here, below);
        sum += if k == 0 { here } else { 2.0 * here };
        if let Some(value) = values.get_mut(k) {
            *value = here;
        }
    }
    values.iter_mut().for_each(|value| *value /= sum);
}

/// Returns an order from which on the functions are negligible, by a bound of the ratio of neighbours (D. E. Amos,
/// Math. Comp. 28, 239 (1974), eq. 11).
fn first_negligible(x: f64) -> usize {
    let (mut order, mut part) = (0, 1.0);
    while part > NEGLIGIBLE {
        let half = order as f64 + 0.5;
        part *= x / (half + sqrt(half * half + x * x));
        order += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `exp(-x) I_k(x)` by the power series.
    fn by_series(x: f64, k: usize) -> f64 {
        let mut term = (1..=k).fold(1.0, |term, n| term * (x / 2.0) / n as f64);
        let mut sum = term;
        for n in 1..400 {
            term *= x * x / 4.0 / (n * (n + k)) as f64;
            sum += term;
        }
        sum * (-x).exp()
    }

    #[test]
    fn bessel_functions_follow_their_power_series() {
        for x in [1e-12, 0.01, 1.0, 7.3, 60.0, 99.0, 101.0, 140.0] {
            let mut values = [0.0; 9];
            scaled_bessel(x, &mut values);
            for (k, value) in values.into_iter().enumerate() {
                let expected = by_series(x, k);
                let error = (value - expected).abs();
                assert!(
                    error <= 3e-15 * expected + NEGLIGIBLE,
                    "{x} {k}: {value} {error}"
                );
            }
        }
    }

    #[test]
    fn both_ways_to_bessel_functions_agree_where_they_meet() {
        for count in [11, 40, 300] {
            let x = 1.01 * (count * count) as f64;
            let (mut near, mut far) = (vec![0.0; count], vec![0.0; count]);
            downward(x, &mut near);
            scaled_bessel(x, &mut far);
            assert_ne!(near, far);
            for (a, b) in near.into_iter().zip(far) {
                assert!((a - b).abs() < 1e-14 * a, "{count}: {a} {b}");
            }
        }
    }
}
