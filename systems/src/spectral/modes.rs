//! Boxes of real numbers that are given by their Fourier modes.

use super::batch::{Batch, LANES};
use super::fft::{Fft, RealFft};
use super::power::signed;
use rayon::prelude::*;

/// Returns the values `sum_n mode(n) exp(2 pi i n.x)` at the `cells` points `x = index/cells` of a periodic box, x fastest. `mode` gives the
/// real and imaginary part of a mode by its signed wave numbers, in periods of the box; it is called for wave numbers along x that are not
/// negative, and the mode of the opposite wave numbers is its complex conjugate. The number of cells along x is even. The bits do not
/// depend on the number of threads.
#[must_use]
pub fn box_of_modes(cells: [usize; 3], mode: impl Fn([i64; 3]) -> [f64; 2] + Sync) -> Vec<f64> {
    let [nx, ny, nz] = cells;
    let (x, y, z) = (RealFft::new(nx), Fft::new(ny), Fft::new(nz));
    let waves = x.modes();
    // along z: `[y mode][plane][x mode]`
    let mut rows = vec![[0.0; 2]; ny * nz * waves];
    let along_z = |[line, work]: &mut [Batch; 2], (j, out): (usize, &mut [[f64; 2]])| {
        for start in (0..waves).step_by(LANES) {
            let lanes = LANES.min(waves - start);
            for k in 0..nz {
                for lane in 0..lanes {
                    let wave = [(start + lane) as i64, signed(j, ny), signed(k, nz)];
                    line.set(k, lane, mode(wave));
                }
            }
            z.inverse(line, work);
            for k in 0..nz {
                for lane in 0..lanes {
                    out[k * waves + start + lane] = line.get(k, lane);
                }
            }
        }
    };
    let of_rows = rows.par_chunks_mut(nz * waves).enumerate();
    of_rows.for_each_init(|| [nz; 2].map(Batch::new), along_z);
    let mut values = vec![0.0; nx * ny * nz];
    let batches = || [waves.max(ny); 4].map(Batch::new);
    let plane = |[line, more, numbers, modes]: &mut [Batch; 4], (k, out): (usize, &mut [f64])| {
        let mut plane = vec![[0.0; 2]; ny * waves];
        for start in (0..waves).step_by(LANES) {
            let lanes = LANES.min(waves - start);
            for j in 0..ny {
                for lane in 0..lanes {
                    line.set(j, lane, rows[(j * nz + k) * waves + start + lane]);
                }
            }
            y.inverse(line, more);
            for j in 0..ny {
                for lane in 0..lanes {
                    plane[j * waves + start + lane] = line.get(j, lane);
                }
            }
        }
        for start in (0..ny).step_by(LANES) {
            let lanes = LANES.min(ny - start);
            for lane in 0..lanes {
                for (n, value) in plane[(start + lane) * waves..][..waves].iter().enumerate() {
                    modes.set(n, lane, *value);
                }
            }
            x.inverse(numbers, modes);
            for lane in 0..lanes {
                let row = &mut out[(start + lane) * nx..][..nx];
                for (n, pair) in row.chunks_exact_mut(2).enumerate() {
                    pair.copy_from_slice(&numbers.get(n, lane));
                }
            }
        }
    };
    let planes = values.par_chunks_mut(nx * ny).enumerate();
    planes.for_each_init(batches, plane);
    values
}

#[cfg(test)]
mod tests {
    use super::box_of_modes;
    use std::f64::consts::TAU;

    /// A few modes, against their sum by definition.
    #[test]
    fn boxes_are_the_sums_of_their_modes() {
        let given = [
            ([1, 2, -1], [0.3, -0.7]),
            ([3, 0, 0], [1.1, 0.2]),
            ([2, -1, 2], [-0.4, 0.9]),
        ];
        for cells in [[8, 12, 10], [16, 5, 6], [24, 8, 5]] {
            let found = box_of_modes(cells, |wave| {
                let own = given.iter().find(|(own, _)| *own == wave);
                own.map_or([0.0; 2], |(_, mode)| *mode)
            });
            for (n, found) in found.iter().enumerate() {
                let at = [
                    n % cells[0],
                    n / cells[0] % cells[1],
                    n / (cells[0] * cells[1]),
                ];
                let one = |(wave, [re, im]): &([i64; 3], [f64; 2])| {
                    let part = |a: usize| wave[a] as f64 * at[a] as f64 / cells[a] as f64;
                    let (sin, cos) = (TAU * (part(0) + part(1) + part(2))).sin_cos();
                    2.0 * (re * cos - im * sin)
                };
                let expected: f64 = given.iter().map(one).sum();
                assert!((found - expected).abs() < 1e-13, "{cells:?} {at:?}");
            }
        }
    }
}
