//! Moments of a right-hand side on the root level, on the host; `moments.cu` is the device version.
//!
//! Moments of a patch are computed axis by axis and converted to fixed point before patches are summed. Any order of
//! the sum then gives the same bits.

use super::stencil::PoissonSource;
use crate::PATCH;
use crate::mesh::Rows;
use nestar_device::{Real, device};

/// Highest order.
pub const MAX_ORDER: usize = 12;
/// Number of powers of a coordinate.
const POWERS: usize = MAX_ORDER + 1;

/// Returns the number of moments up to an order; they are ordered by powers of x, then y, then z.
#[must_use]
pub fn count(order: usize) -> usize {
    (order + 1) * (order + 2) * (order + 3) / 6
}

/// Returns the index of the first moment with the power `a` of x and `b` of y.
#[device]
#[must_use]
pub fn first_moment(order: i32, a: i32, b: i32) -> i32 {
    let mut first = 0;
    for n in 0..a {
        let rest = order - n;
        first += (rest + 1) * (rest + 2) / 2;
    }
    for n in 0..b {
        first += order - a - n + 1;
    }
    first
}

/// Returns the centre of a cell relative to the centre of `cells` cells; `half` is half the cell width.
#[device]
#[must_use]
pub fn coordinate(cell: i32, cells: i32, half: f64) -> f64 {
    ((2 * cell + 1 - cells) as f64) * half
}

/// Sums a line of a patch; mirrored lines have the same bits.
#[device]
#[must_use]
pub fn sum_of_line(t: &[f64; 8]) -> f64 {
    ((t[0] + t[7]) + (t[1] + t[6])) + ((t[2] + t[5]) + (t[3] + t[4]))
}

/// Source of moments: a right-hand side and its fine-grid correction.
pub struct Moments<'a, R> {
    /// Right-hand side without fine-grid correction.
    pub source: PoissonSource<'a, R>,
    /// Fine-grid correction, if used.
    pub tau: Option<Rows<'a, R>>,
    /// Indices of all rows.
    pub index: &'a [[i32; 3]],
    /// Cells of the level along the axes.
    pub cells: [i32; 3],
    /// Half the cell width along the axes, in units of the length of the moments.
    pub half: [f64; 3],
    /// Highest order, up to [`MAX_ORDER`].
    pub order: usize,
    /// `true` to sum absolute values.
    pub absolute: bool,
}

impl<R: Real> Moments<'_, R> {
    /// Returns the moments of a row about the centre of the level, as sums over cells.
    #[must_use]
    pub fn of(&self, row: u32) -> Vec<f64> {
        let lines = self.lines(row);
        let mut planes = [[[0.0; POWERS]; POWERS]; PATCH];
        let y = self.coordinates(row, 1);
        for (z, plane) in planes.iter_mut().enumerate() {
            for (a, out) in plane[..=self.order].iter_mut().enumerate() {
                let terms = std::array::from_fn(|n| lines[PATCH * z + n][a]);
                powers(terms, &y, &mut out[..=self.order - a]);
            }
        }
        let z = self.coordinates(row, 2);
        let mut moments = vec![0.0; count(self.order)];
        for (a, b) in (0..=self.order).flat_map(|a| (0..=self.order - a).map(move |b| (a, b))) {
            let first = first_moment(self.order as i32, a as i32, b as i32) as usize;
            let terms = std::array::from_fn(|n| planes[n][a][b]);
            powers(terms, &z, &mut moments[first..=first + self.order - a - b]);
        }
        moments
    }

    /// Returns the sums over lines along x.
    fn lines(&self, row: u32) -> [[f64; POWERS]; PATCH * PATCH] {
        let x = self.coordinates(row, 0);
        let mut lines = [[0.0; POWERS]; PATCH * PATCH];
        for (n, out) in lines.iter_mut().enumerate() {
            let terms = std::array::from_fn(|i| {
                let cell = PATCH * n + i;
                let tau = self.tau.as_ref().map(|tau| tau.get(row, cell));
                let source = self.source.at(row, cell);
                let value = tau.map_or(source, |tau| source + tau).to_f64();
                if self.absolute { value.abs() } else { value }
            });
            powers(terms, &x, &mut out[..=self.order]);
        }
        lines
    }

    fn coordinates(&self, row: u32, axis: usize) -> [f64; PATCH] {
        let first = PATCH as i32 * self.index[row as usize][axis];
        let at = |n: usize| coordinate(first + n as i32, self.cells[axis], self.half[axis]);
        std::array::from_fn(at)
    }
}

/// Sums terms times the powers of coordinates.
fn powers(mut terms: [f64; PATCH], at: &[f64; PATCH], out: &mut [f64]) {
    for out in out {
        *out = sum_of_line(&terms);
        for (term, at) in terms.iter_mut().zip(at) {
            *term *= at;
        }
    }
}

/// Returns the bits of the largest absolute value; a NaN is larger than all numbers.
#[must_use]
pub fn largest_bits(values: &[f64]) -> u64 {
    let bits = values.iter().map(|value| value.abs().to_bits());
    bits.max().unwrap_or(0)
}

/// Adds numbers in fixed point.
pub fn add_fixed_point(values: &[f64], factor: f64, to: &mut [u64]) {
    for (to, value) in to.iter_mut().zip(values) {
        *to = to.wrapping_add((value * factor) as i64 as u64);
    }
}

/// Returns a power of 2 that converts numbers up to `largest` to integers, `count` of which sum to less than 2^62.
#[must_use]
pub fn fixed_point_factor(largest: f64, count: usize) -> f64 {
    let exponent = (largest.to_bits() >> 52) as i64 - 1023;
    let bits = 61 - i64::from(count.next_power_of_two().ilog2()) - exponent;
    f64::from_bits(((bits.clamp(-1022, 1023) + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_stand_one_behind_the_other() {
        for order in 0..=MAX_ORDER as i32 {
            let mut next = 0;
            for (a, b) in (0..=order).flat_map(|a| (0..=order - a).map(move |b| (a, b))) {
                assert_eq!(first_moment(order, a, b), next);
                next += order - a - b + 1;
            }
            assert_eq!(next as usize, count(order as usize));
        }
    }

    #[test]
    fn whole_numbers_are_exact_and_do_not_overflow() {
        for (largest, count) in [(1.0, 1), (3e-200, 7), (1.9e250, 4096), (0.7, 1 << 21)] {
            let factor = fixed_point_factor(largest, count);
            let one = largest * factor;
            assert!(one * count as f64 <= 2.0_f64.powi(62), "{largest} {count}");
            assert!(one * count as f64 > 2.0_f64.powi(59), "{largest} {count}");
            let mut sum = [0];
            (0..3).for_each(|_| add_fixed_point(&[-largest], factor, &mut sum));
            let found = sum[0] as i64 as f64 / factor;
            assert!((found / (-3.0 * largest) - 1.0).abs() < 1e-9);
        }
    }
}
