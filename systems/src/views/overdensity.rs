//! Power spectra of points with mass: clouds as wide as a cell on a grid (Hockney & Eastwood 1981), whose window is divided out.

use super::points::MassPoint;
use crate::spectral::{ShellPart, sum_by_shell};
use nestar_device::math::{cos, sin};
use nestar_kernels::mesh::exact_sum::ExactSum;
use rayon::prelude::*;
use std::f64::consts::{PI, TAU};
use std::sync::atomic::{AtomicU64, Ordering};

/// Quanta of all mass: sums of integers do not depend on the order of the points.
const QUANTA: f64 = (1u64 << 62) as f64;

/// A grid of cells in a periodic box.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Lower corner of the box.
    pub left: [f64; 3],
    /// Lengths of the box.
    pub lengths: [f64; 3],
    /// Cells along each axis; even along x.
    pub cells: [usize; 3],
    /// `true` to take the mean of two grids that are displaced by half a cell, which cancels the odd images of the modes (Sefusatti et
    /// al. 2016).
    pub interlaced: bool,
}

/// A power spectrum.
#[derive(Clone, Debug, PartialEq)]
pub struct Power {
    /// Mean power of the modes of each shell from 1 on, volume.
    pub power: Vec<f64>,
    /// Power of points at random places, volume; it is contained in `power`.
    pub shot_noise: f64,
}

impl Grid {
    /// Returns the length of the longest axis: its period has the smallest wave number.
    fn longest(&self) -> f64 {
        self.lengths.into_iter().fold(0.0, f64::max)
    }

    /// Returns the smallest wave number, which is the width of a shell.
    pub fn wavenumber(&self) -> f64 {
        TAU / self.longest()
    }

    /// Returns the shell of a mode: its wave number in units of the smallest one, rounded.
    fn shell(&self, wave: [i64; 3]) -> usize {
        let square = |a: usize| {
            let k = wave[a] as f64 * (self.longest() / self.lengths[a]);
            k * k
        };
        (square(0) + square(1) + square(2)).sqrt().round() as usize
    }

    /// Returns the number of the last shell: modes beyond the largest wave number along any axis are incomplete.
    pub fn last_shell(&self) -> usize {
        let most = |a: usize| (self.cells[a] / 2) as f64 * (self.longest() / self.lengths[a]);
        [0, 1, 2]
            .map(most)
            .into_iter()
            .fold(f64::INFINITY, f64::min) as usize
    }

    /// Returns the power spectrum of the overdensity of some points. It does not depend on their order.
    pub fn power(&self, points: &[MassPoint]) -> Power {
        let shells = self.last_shell();
        let [mut mass, mut squares] = [ExactSum::default(), ExactSum::default()];
        for point in points {
            mass.add(point.mass);
            squares.add(point.mass * point.mass);
        }
        let (mass, squares) = (mass.value(), squares.value());
        let volume: f64 = self.lengths.iter().product();
        if mass <= 0.0 {
            return Power {
                power: vec![0.0; shells],
                shot_noise: 0.0,
            };
        }
        let plain = self.overdensity(points, mass, 0.0);
        let power = match self.interlaced {
            false => self.sums([&plain], |_, [mode]| mode),
            true => {
                let displaced = self.overdensity(points, mass, 0.5);
                self.sums([&plain, &displaced], |wave, modes| self.mean(wave, modes))
            }
        };
        let counts = self.modes();
        let norm = 1.0 / (plain.len() as f64 * plain.len() as f64);
        let mean = |shell: usize| volume * norm * power[shell] / counts[shell];
        Power {
            power: (1..=shells).map(mean).collect(),
            shot_noise: volume * squares / (mass * mass),
        }
    }

    /// Returns the number of modes of each shell, from 0 on.
    pub fn modes(&self) -> Vec<f64> {
        let last = self.last_shell();
        let signed = |n: usize, cells: usize| match 2 * n > cells {
            true => n as i64 - cells as i64,
            false => n as i64,
        };
        let [nx, ny, nz] = self.cells;
        let plane = |k: usize| {
            let mut counts = vec![0.0; last + 1];
            for j in 0..ny {
                for i in 0..nx {
                    let shell = self.shell([signed(i, nx), signed(j, ny), signed(k, nz)]);
                    if let Some(count) = counts.get_mut(shell) {
                        *count += 1.0;
                    }
                }
            }
            counts
        };
        let planes: Vec<Vec<f64>> = (0..nz).into_par_iter().map(plane).collect();
        let sum = |shell: usize| planes.iter().map(|counts| counts[shell]).sum();
        (0..=last).map(sum).collect()
    }

    /// Returns the overdensity on a grid that is displaced by a part of a cell, x fastest.
    fn overdensity(&self, points: &[MassPoint], mass: f64, displaced: f64) -> Vec<f64> {
        let [nx, ny, nz] = self.cells;
        let sums: Vec<AtomicU64> = (0..nx * ny * nz).map(|_| AtomicU64::new(0)).collect();
        let deposit = |point: &MassPoint| {
            let quanta = point.mass / mass * QUANTA;
            let along = [0, 1, 2].map(|a| {
                let cells = self.cells[a] as f64;
                let at = (point.position[a] - self.left[a]) / self.lengths[a] * cells - displaced;
                let (below, n) = (at.floor(), self.cells[a] as i64);
                let first = (below as i64).rem_euclid(n) as usize;
                let share = at - below;
                [(first, 1.0 - share), ((first + 1) % self.cells[a], share)]
            });
            for (k, in_z) in along[2] {
                for (j, in_y) in along[1] {
                    for (i, in_x) in along[0] {
                        let part = (quanta * (in_x * in_y * in_z)).round() as u64;
                        sums[i + nx * (j + ny * k)].fetch_add(part, Ordering::Relaxed);
                    }
                }
            }
        };
        points.par_iter().for_each(deposit);
        let mean = QUANTA / sums.len() as f64;
        let sums = sums.into_par_iter();
        sums.map(|sum| sum.into_inner() as f64 / mean - 1.0)
            .collect()
    }

    /// Returns the mean of a mode in the plain and in the displaced grid.
    fn mean(&self, wave: [i64; 3], [plain, displaced]: [[f64; 2]; 2]) -> [f64; 2] {
        let phase = |a: usize| PI * wave[a] as f64 / self.cells[a] as f64;
        let angle = phase(0) + phase(1) + phase(2);
        let (re, im) = (cos(angle), -sin(angle));
        [
            0.5 * (plain[0] + displaced[0] * re - displaced[1] * im),
            0.5 * (plain[1] + displaced[0] * im + displaced[1] * re),
        ]
    }

    /// Returns the Fourier transform of a cloud on the grid.
    fn window(&self, wave: [i64; 3]) -> f64 {
        let along = |a: usize| {
            let half = PI * wave[a] as f64 / self.cells[a] as f64;
            match wave[a] {
                0 => 1.0,
                _ => sin(half) / half,
            }
        };
        let product = along(0) * along(1) * along(2);
        product * product
    }

    /// Returns sums by shell of the squares of the modes that `combine` makes of those of some grids, without the window. What is beyond
    /// the last shell is in shell 0.
    fn sums<const N: usize>(
        &self,
        grids: [&[f64]; N],
        combine: impl Fn([i64; 3], [[f64; 2]; N]) -> [f64; 2] + Sync,
    ) -> Vec<f64> {
        let last = self.last_shell();
        let mode = |wave: [i64; 3], modes: [[f64; 2]; N]| {
            let [re, im] = combine(wave, modes);
            let window = self.window(wave);
            let shell = self.shell(wave);
            ShellPart {
                shell: if shell <= last { shell } else { 0 },
                value: (re * re + im * im) / (window * window),
            }
        };
        sum_by_shell(grids, self.cells, last + 1, mode)
    }
}

#[cfg(test)]
mod tests {
    use super::{Grid, MassPoint, Power};
    use std::f64::consts::{PI, TAU};

    const GRID: Grid = Grid {
        left: [-0.5, 1.0, 0.0],
        lengths: [2.0, 1.0, 1.5],
        cells: [16, 9, 12],
        interlaced: false,
    };

    /// Returns random points with random masses in the box of a grid.
    fn random(count: u64, grid: &Grid) -> Vec<MassPoint> {
        let number = |n: u64| {
            let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64
        };
        let point = |n: u64| MassPoint {
            position: [0, 1, 2].map(|a| grid.left[a] + grid.lengths[a] * number(4 * n + a as u64)),
            mass: 0.5 + number(4 * n + 3),
            ..MassPoint::default()
        };
        (0..count).map(point).collect()
    }

    /// Returns the power spectrum by sums over all pairs of modes and points, of weights of points.
    fn by_definition(grid: &Grid, amplitude: impl Fn([i64; 3]) -> [f64; 2]) -> Vec<f64> {
        let shells = grid.last_shell();
        let (mut sums, mut counts) = (vec![0.0; shells + 1], vec![0.0; shells + 1]);
        let waves = |a: usize| {
            let half = grid.cells[a] as i64 / 2;
            (0..grid.cells[a] as i64).map(move |n| n - half)
        };
        for x in waves(0) {
            for y in waves(1) {
                for z in waves(2) {
                    let shell = grid.shell([x, y, z]);
                    if shell > shells {
                        continue;
                    }
                    let [re, im] = amplitude([x, y, z]);
                    sums[shell] += re * re + im * im;
                    counts[shell] += 1.0;
                }
            }
        }
        let volume: f64 = grid.lengths.iter().product();
        (1..=shells).map(|n| volume * sums[n] / counts[n]).collect()
    }

    fn window(grid: &Grid, wave: [i64; 3]) -> f64 {
        let along = |a: usize| {
            let x = PI * wave[a] as f64 / grid.cells[a] as f64;
            if wave[a] == 0 {
                1.0
            } else {
                (x.sin() / x).powi(2)
            }
        };
        along(0) * along(1) * along(2)
    }

    /// Returns a mode of points by a sum over them.
    fn mode(points: &[MassPoint], grid: &Grid, wave: [i64; 3]) -> [f64; 2] {
        let mass: f64 = points.iter().map(|point| point.mass).sum();
        let mut sum = [0.0; 2];
        for point in points {
            let part =
                |a: usize| wave[a] as f64 * (point.position[a] - grid.left[a]) / grid.lengths[a];
            let (sin, cos) = (-TAU * (part(0) + part(1) + part(2))).sin_cos();
            sum[0] += point.mass / mass * cos;
            sum[1] += point.mass / mass * sin;
        }
        sum
    }

    fn close(found: &[f64], expected: &[f64], tolerance: f64) {
        let scale = expected.iter().fold(0.0, |most, x| f64::max(most, *x));
        assert_eq!(found.len(), expected.len());
        for (n, (a, b)) in found.iter().zip(expected).enumerate() {
            assert!((a - b).abs() <= tolerance * scale, "shell {n}: {a} {b}");
        }
    }

    #[test]
    fn points_on_the_grid_have_their_own_modes() {
        // their clouds are cells, so that the modes have no window before it is divided out
        let mut points = random(400, &GRID);
        for point in &mut points {
            for a in 0..3 {
                let width = GRID.lengths[a] / GRID.cells[a] as f64;
                let cell = ((point.position[a] - GRID.left[a]) / width).floor();
                point.position[a] = GRID.left[a] + cell * width;
            }
        }
        let expected = by_definition(&GRID, |wave| {
            let window = window(&GRID, wave);
            mode(&points, &GRID, wave).map(|part| part / window)
        });
        close(&GRID.power(&points).power, &expected, 1e-12);
        let before = GRID.power(&points);
        points.sort_by(|a, b| a.mass.total_cmp(&b.mass));
        assert_eq!(GRID.power(&points), before);
    }

    #[test]
    fn interlaced_grids_have_fewer_images() {
        let points = random(300, &GRID);
        let expected = by_definition(&GRID, |wave| mode(&points, &GRID, wave));
        let error = |interlaced: bool| {
            let found = Grid { interlaced, ..GRID }.power(&points).power;
            let pairs = found.iter().zip(&expected);
            pairs.map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max)
        };
        let (plain, interlaced) = (error(false), error(true));
        println!("errors up to the largest wave number: {plain}, {interlaced}");
        assert!(interlaced < 0.5 * plain, "{interlaced} {plain}");
    }

    #[test]
    fn random_points_have_shot_noise() {
        let grid = Grid {
            cells: [64, 32, 48],
            interlaced: true,
            ..GRID
        };
        let points = random(30_000, &grid);
        let Power { power, shot_noise } = grid.power(&points);
        // masses from 0.5 to 1.5 have the mean square 13/12
        let expected = 3.0 / 30_000.0 * 13.0 / 12.0;
        assert!((shot_noise / expected - 1.0).abs() < 0.01, "{shot_noise}");
        let counts = grid.modes();
        for (n, power) in power.iter().enumerate().take(16) {
            // half of the modes are independent
            let error = (2.0 / counts[n + 1]).sqrt();
            let off = (power / shot_noise - 1.0) / error;
            assert!(
                off.abs() < 4.0,
                "shell {}: {off} standard deviations",
                n + 1
            );
        }
    }
}
