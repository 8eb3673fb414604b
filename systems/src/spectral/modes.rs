//! Boxes of real numbers that are given by their Fourier modes, and modes of boxes.

use super::batch::{Batch, LANES};
use super::fft::{Fft, RealFft};
use super::power::{modes_of_planes, signed};
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

/// Modes of a periodic box of real numbers.
pub struct BoxModes {
    cells: [usize; 3],
    /// Real and imaginary parts, `[y mode][z mode][x mode]`.
    numbers: Vec<[f64; 2]>,
}

impl BoxModes {
    /// Transforms the `values` at the `cells` points of a box, x fastest: the inverse of [`box_of_modes`]. The number of cells along x is
    /// even. The bits do not depend on the number of threads.
    ///
    /// # Panics
    /// If the number of values is not the product of `cells`.
    #[must_use]
    pub fn of(values: &[f64], cells: [usize; 3]) -> Self {
        let [nx, ny, nz] = cells;
        assert_eq!(values.len(), nx * ny * nz);
        let waves = nx / 2 + 1;
        let planes = modes_of_planes(values, [nx, ny]);
        let z = Fft::new(nz);
        let norm = 1.0 / values.len() as f64;
        let mut numbers = vec![[0.0; 2]; planes.len()];
        let along_z = |[line, work]: &mut [Batch; 2], (j, out): (usize, &mut [[f64; 2]])| {
            for start in (0..waves).step_by(LANES) {
                let lanes = LANES.min(waves - start);
                for k in 0..nz {
                    for lane in 0..lanes {
                        line.set(k, lane, planes[(k * ny + j) * waves + start + lane]);
                    }
                }
                z.forward(line, work);
                for k in 0..nz {
                    for lane in 0..lanes {
                        let mode = line.get(k, lane).map(|part| part * norm);
                        out[k * waves + start + lane] = mode;
                    }
                }
            }
        };
        let rows = numbers.par_chunks_mut(nz * waves).enumerate();
        rows.for_each_init(|| [nz; 2].map(Batch::new), along_z);
        Self { cells, numbers }
    }

    /// Keeps the modes of a box with fewer cells.
    ///
    /// # Panics
    /// If it has more cells along an axis.
    #[must_use]
    pub fn restricted(&self, cells: [usize; 3]) -> Self {
        let [nx, ny, nz] = cells;
        let waves = nx / 2 + 1;
        let mode = |n: usize| {
            let (x, z, y) = (n % waves, n / waves % nz, n / (waves * nz));
            self.at([x as i64, signed(y, ny), signed(z, nz)])
        };
        let numbers = (0..waves * ny * nz).map(mode).collect();
        Self { cells, numbers }
    }

    /// Returns the real and imaginary part of the mode with these signed wave numbers, in periods of the box.
    ///
    /// # Panics
    /// If the wave number along x is negative, or one is above half the number of cells.
    #[must_use]
    pub fn at(&self, wave: [i64; 3]) -> [f64; 2] {
        let [nx, ny, nz] = self.cells;
        let row = wave[1].rem_euclid(ny as i64) as usize * nz;
        let row = row + wave[2].rem_euclid(nz as i64) as usize;
        self.numbers[row * (nx / 2 + 1) + wave[0] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::{BoxModes, box_of_modes};
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
            let modes = BoxModes::of(&found, cells);
            for (wave, mode) in given.iter().chain(&[([0, 1, 1], [0.0; 2])]) {
                let back = modes.at(*wave);
                let near = (0..2).all(|n| (back[n] - mode[n]).abs() < 1e-14);
                assert!(near, "{cells:?} {wave:?}: {back:?}");
            }
            let fewer = modes.restricted([8, 5, 5]);
            assert_eq!(fewer.at([2, -1, 2]), modes.at([2, -1, 2]), "{cells:?}");
        }
    }
}
