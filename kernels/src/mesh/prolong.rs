//! Conservative, monotonic interpolation from a coarse level to the next finer one.

use nestar_device::math::sum3;
use nestar_device::{Lane, Real, device};

/// Limiters of the slopes between levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlopeLimiter {
    /// The smaller of the two one-sided differences.
    Minmod,
    /// Harmonic mean (van Leer 1974).
    VanLeer,
    /// Monotonised central difference (van Leer 1977).
    #[default]
    MonotonizedCentral,
    /// No limiter: the central difference.
    Central,
    /// No slope at all.
    Flat,
}

impl SlopeLimiter {
    /// The number that selects this limiter in [`limited_slope`].
    #[must_use]
    pub fn code(self) -> u32 {
        self as u32
    }
}

/// Limited slope per cell from the one-sided differences `a` (below) and `b` (above); `limiter` as [`SlopeLimiter::code`].
///
/// The product of the differences is not formed: in single precision it underflows for fields of small numbers.
#[device]
pub fn limited_slope<R: Real>(a: R, b: R, limiter: u32) -> R {
    if a.min(b) > 0.0 || a.max(b) < 0.0 {
        let small = a.abs().min(b.abs());
        let large = a.abs().max(b.abs());
        let size = if limiter == 0u32 {
            small
        } else if limiter == 1u32 {
            2.0 * small * (large / (small + large))
        } else {
            (2.0 * small).min(0.5 * small + 0.5 * large)
        };
        size.copysign(a)
    } else {
        0.0
    }
}

/// Factor in [0, 1] by which the three slopes of a cell must shrink so that none of its eight fine cells leaves the range
/// of the cell and its six neighbours: `low` and `high` bound that range, `reach` is the largest deviation from `u`.
#[device]
pub fn monotonic_factor<R: Real>(u: R, low: R, high: R, reach: R) -> R {
    let room = (high - u).min(u - low);
    if reach > room { room / reach } else { 1.0 }
}

/// As [`fine_offsets`] by central differences, or 0 where `limiter` is [`SlopeLimiter::Flat`].
#[device]
pub fn unlimited_offsets<R: Real>(n: &[R; 6], limiter: u32) -> [R; 3] {
    if limiter == 3u32 {
        [
            0.125 * (n[1] - n[0]),
            0.125 * (n[3] - n[2]),
            0.125 * (n[5] - n[4]),
        ]
    } else {
        [0.0, 0.0, 0.0]
    }
}

/// The limited slopes of coarse cell `u` from its six neighbours `n` (x-, x+, y-, y+, z-, z+), scaled to be monotonic in
/// three dimensions and divided by 4: the value of fine cell (±, ±, ±) is `u + sum3(±s0, ±s1, ±s2)`.
#[device]
pub fn fine_offsets<R: Real>(u: R, n: &[R; 6], limiter: u32) -> [R; 3] {
    if limiter > 2u32 {
        unlimited_offsets(n, limiter)
    } else {
        let sx = 0.25 * limited_slope(u - n[0], n[1] - u, limiter);
        let sy = 0.25 * limited_slope(u - n[2], n[3] - u, limiter);
        let sz = 0.25 * limited_slope(u - n[4], n[5] - u, limiter);
        let low = n[0]
            .min(n[1])
            .min(n[2].min(n[3]))
            .min(n[4].min(n[5]))
            .min(u);
        let high = n[0]
            .max(n[1])
            .max(n[2].max(n[3]))
            .max(n[4].max(n[5]))
            .max(u);
        let reach = sum3(sx.abs(), sy.abs(), sz.abs());
        let f = monotonic_factor(u, low, high, reach);
        [f * sx, f * sy, f * sz]
    }
}

/// Value of the fine cell on side `s` (0 below, 1 above, per axis) of a coarse cell with offsets `o`.
#[device]
pub fn fine_value<R: Real>(u: R, o: &[R; 3], sx: u32, sy: u32, sz: u32) -> R {
    let x = if sx == 0u32 { -o[0] } else { o[0] };
    let y = if sy == 0u32 { -o[1] } else { o[1] };
    let z = if sz == 0u32 { -o[2] } else { o[2] };
    u + sum3(x, y, z)
}

/// Interpolation in time between a level's two banks: `old` at weight 0, `new` at weight 1, exactly.
#[device]
pub fn between<R: Lane>(old: R, new: R, weight: R) -> R {
    (1.0 - weight) * old + weight * new
}

/// A coarse block `[component][n][n][n]` to interpolate from.
pub struct CoarseBlock<'a, R> {
    /// Values; every cell used and its six neighbours must be filled.
    pub values: &'a [R],
    /// Cells along an axis.
    pub n: usize,
    /// Values between two components.
    pub stride: usize,
    /// Number of components.
    pub components: usize,
    /// Limiter of the slopes.
    pub limiter: SlopeLimiter,
    /// Whether a state (one value per component) is physical; where one of the eight fine states is not, all eight take
    /// the coarse cell's own.
    pub physical: fn(&[R]) -> bool,
}

/// Most components a field may have (gas and its scalars).
pub const MAX_COMPONENTS: usize = 64;

impl<R: Real> CoarseBlock<'_, R> {
    /// Offsets of every component in the coarse cell at `index` (flat, in the block), into `offsets`; all zero where a fine
    /// cell would be unphysical.
    pub fn offsets(&self, index: usize, offsets: &mut [[R; 3]; MAX_COMPONENTS]) {
        let (dy, dz) = (self.n, self.n * self.n);
        for (c, offset) in offsets[..self.components].iter_mut().enumerate() {
            let q = &self.values[c * self.stride..];
            let around = [
                q[index - 1],
                q[index + 1],
                q[index - dy],
                q[index + dy],
                q[index - dz],
                q[index + dz],
            ];
            *offset = fine_offsets(q[index], &around, self.limiter.code());
        }
        let mut state = [R::lit(0.0); MAX_COMPONENTS];
        for side in 0..8u32 {
            for c in 0..self.components {
                state[c] = self.fine(index, c, &offsets[c], side);
            }
            if !(self.physical)(&state[..self.components]) {
                offsets[..self.components].fill([R::lit(0.0); 3]);
                return;
            }
        }
    }

    /// Value of component `c` in the fine cell `side` (bits x, y, z) of the coarse cell at `index`.
    #[inline]
    #[must_use]
    pub fn fine(&self, index: usize, c: usize, offset: &[R; 3], side: u32) -> R {
        let u = self.values[c * self.stride + index];
        fine_value(u, offset, side & 1, side >> 1 & 1, side >> 2)
    }
}
