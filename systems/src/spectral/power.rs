//! Power of the modes of a periodic grid.

use super::batch::{Batch, LANES};
use super::fft::{Fft, RealFft};
use rayon::prelude::*;

/// Returns the power spectrum by shell: sums of squared Fourier amplitudes. `values` are real numbers at `cells` points, x fastest. The
/// number of cells along x is even. `shell` gives the number below `shells` of the shell of a mode by its signed wave numbers, in periods of
/// the box. The sum over all shells is the mean square of the values. The bits do not depend on the number of threads.
///
/// # Panics
/// If the number of values is not the product of `cells`.
#[must_use]
pub fn power_by_shell(
    values: &[f64],
    cells: [usize; 3],
    shells: usize,
    shell: impl Fn([i64; 3]) -> usize + Sync,
) -> Vec<f64> {
    let norm = 1.0 / (values.len() as f64 * values.len() as f64);
    let mode = |wave: [i64; 3], [[re, im]]: [[f64; 2]; 1]| ShellPart {
        shell: shell(wave),
        value: norm * (re * re + im * im),
    };
    sum_by_shell([values], cells, shells, mode)
}

/// A number that a mode adds to a shell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShellPart {
    /// Number of the shell.
    pub shell: usize,
    /// The number.
    pub value: f64,
}

/// Returns sums over the modes of some grids by shell. `mode` gives what a mode adds to a shell below `shells`, by its signed wave numbers in
/// periods of the box and its amplitudes in all grids: sums of the values times `exp(-2 pi i n.x)`. Of modes with opposite wave numbers, it
/// is called for one, and the other adds the same. Otherwise as [`power_by_shell`].
///
/// # Panics
/// If the number of values of a grid is not the product of `cells`.
#[must_use]
pub fn sum_by_shell<const N: usize>(
    grids: [&[f64]; N],
    cells: [usize; 3],
    shells: usize,
    mode: impl Fn([i64; 3], [[f64; 2]; N]) -> ShellPart + Sync,
) -> Vec<f64> {
    let [nx, ny, nz] = cells;
    assert!(grids.iter().all(|grid| grid.len() == nx * ny * nz));
    let waves = nx / 2 + 1;
    let planes = grids.map(|grid| modes_of_planes(grid, [nx, ny]));
    let z = Fft::new(nz);
    let row = |j: usize| {
        let mut sums = vec![0.0; shells];
        let mut lines = [(); N].map(|()| Batch::new(nz));
        let mut work = Batch::new(nz);
        for start in (0..waves).step_by(LANES) {
            let lanes = LANES.min(waves - start);
            for (line, planes) in lines.iter_mut().zip(&planes) {
                for k in 0..nz {
                    for lane in 0..lanes {
                        line.set(k, lane, planes[(k * ny + j) * waves + start + lane]);
                    }
                }
                z.forward(line, &mut work);
            }
            for k in 0..nz {
                for lane in 0..lanes {
                    let i = start + lane;
                    // modes with a negative wave number along x have the same amplitude
                    let count = if i == 0 || 2 * i == nx { 1.0 } else { 2.0 };
                    let amplitudes = std::array::from_fn(|n| lines[n].get(k, lane));
                    let part = mode([i as i64, signed(j, ny), signed(k, nz)], amplitudes);
                    sums[part.shell] += count * part.value;
                }
            }
        }
        sums
    };
    let rows: Vec<Vec<f64>> = (0..ny).into_par_iter().map(row).collect();
    let sum = |n: usize| rows.iter().map(|sums| sums[n]).sum();
    (0..shells).map(sum).collect()
}

/// Returns the signed wave number of mode `n` of `length`.
pub(super) fn signed(n: usize, length: usize) -> i64 {
    match 2 * n > length {
        true => n as i64 - length as i64,
        false => n as i64,
    }
}

/// Transforms along x and y: real and imaginary parts, `[plane][y mode][x mode]`.
pub(super) fn modes_of_planes(values: &[f64], [nx, ny]: [usize; 2]) -> Vec<[f64; 2]> {
    let (x, y) = (RealFft::new(nx), Fft::new(ny));
    let waves = x.modes();
    let mut modes = vec![[0.0; 2]; values.len() / nx * waves];
    let batches = || [waves.max(ny); 4].map(Batch::new);
    let plane = |[rows, work, line, more]: &mut [Batch; 4],
                 (out, cells): (&mut [[f64; 2]], &[f64])| {
        for start in (0..ny).step_by(LANES) {
            let own = cells[start * nx..].chunks(nx).take(LANES);
            for (lane, row) in own.enumerate() {
                for (n, pair) in row.chunks_exact(2).enumerate() {
                    rows.set(n, lane, [pair[0], pair[1]]);
                }
            }
            x.forward(rows, work);
            for (lane, out) in out[start * waves..]
                .chunks_mut(waves)
                .take(LANES)
                .enumerate()
            {
                for (k, out) in out.iter_mut().enumerate() {
                    *out = work.get(k, lane);
                }
            }
        }
        for start in (0..waves).step_by(LANES) {
            let lanes = LANES.min(waves - start);
            for j in 0..ny {
                for lane in 0..lanes {
                    line.set(j, lane, out[j * waves + start + lane]);
                }
            }
            y.forward(line, more);
            for j in 0..ny {
                for lane in 0..lanes {
                    out[j * waves + start + lane] = line.get(j, lane);
                }
            }
        }
    };
    let planes = modes.par_chunks_mut(ny * waves);
    let pairs = planes.zip(values.par_chunks(nx * ny));
    pairs.for_each_init(batches, plane);
    modes
}

#[cfg(test)]
mod tests {
    use super::power_by_shell;

    /// Sums over all modes by definition, for a small grid.
    fn by_definition(values: &[f64], cells: [usize; 3], wave: [i64; 3]) -> f64 {
        let (mut re, mut im) = (0.0, 0.0);
        for (n, value) in values.iter().enumerate() {
            let at = [
                n % cells[0],
                n / cells[0] % cells[1],
                n / (cells[0] * cells[1]),
            ];
            let part = |a: usize| wave[a] as f64 * at[a] as f64 / cells[a] as f64;
            let (sin, cos) = (std::f64::consts::TAU * (part(0) + part(1) + part(2))).sin_cos();
            re += value * cos;
            im -= value * sin;
        }
        let norm = 1.0 / values.len() as f64;
        (re * re + im * im) * norm * norm
    }

    #[test]
    fn modes_have_the_power_of_the_definition() {
        for cells in [[8, 24, 10], [16, 3, 8], [24, 8, 1]] {
            let count: usize = cells.iter().product();
            let number = |n: usize| ((n * 7919 + 13) % 1009) as f64 / 1009.0 - 0.3;
            let values: Vec<f64> = (0..count).map(number).collect();
            let half = cells.map(|n| n as i64 / 2 + 1);
            let side = half.map(|n| 2 * n as usize + 1);
            let place = |wave: [i64; 3]| {
                let at = |a: usize| (wave[a] + half[a]) as usize;
                at(0) + side[0] * (at(1) + side[1] * at(2))
            };
            let found = power_by_shell(&values, cells, side.iter().product(), place);
            let total: f64 = found.iter().sum();
            let square = values.iter().map(|x| x * x).sum::<f64>() / count as f64;
            assert!((total / square - 1.0).abs() < 1e-13, "{cells:?}");
            for wave in [[0, 0, 0], [1, 0, 0], [3, 1, 0], [2, -1, 0], [4, 1, 0]] {
                let (doubled, own) = (wave[0] > 0 && 2 * wave[0] < cells[0] as i64, place(wave));
                let factor = if doubled { 2.0 } else { 1.0 };
                let expected = factor * by_definition(&values, cells, wave);
                assert!((found[own] - expected).abs() < 1e-14, "{cells:?} {wave:?}");
            }
        }
    }
}
