//! Fourier transform of the lattice Green's function.

use super::quadrature::Quadrature;
use crate::spectral::{Batch, Fft, LANES};
use nestar_engine::mesh::parallel;
use std::ops::Range;

/// Numbers summed side by side.
const SIDE: usize = 16;

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
