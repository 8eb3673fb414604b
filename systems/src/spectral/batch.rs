//! Batches of rows that are transformed together.

use super::lanes::{ComplexLanes, Lanes, WIDTH};
use rustfft::num_traits::Zero;
use std::ops::Range;

/// Rows of a batch.
pub const LANES: usize = 8;
/// Vectors of numbers at one place of the rows.
pub(super) const GROUPS: usize = LANES / WIDTH;

/// A batch of [`LANES`] rows of complex numbers. Each row has the bits of a transform of this row alone.
#[derive(Clone, Debug)]
pub struct Batch {
    length: usize,
    /// `[group][n]`: row `WIDTH group + lane` has lane `lane` of the numbers of `group`.
    numbers: Vec<ComplexLanes>,
    /// Memory of transforms that need more than a second batch.
    scratch: Vec<ComplexLanes>,
}

impl Batch {
    /// Creates rows of `length` zeros.
    #[must_use]
    pub fn new(length: usize) -> Self {
        Self {
            length,
            numbers: vec![Zero::zero(); GROUPS * length],
            scratch: Vec::new(),
        }
    }

    /// Returns the real and imaginary part of number `n` of row `lane`.
    #[must_use]
    pub fn get(&self, n: usize, lane: usize) -> [f64; 2] {
        let number = &self.numbers[lane / WIDTH * self.length + n];
        [number.re.0[lane % WIDTH], number.im.0[lane % WIDTH]]
    }

    /// Sets number `n` of row `lane` to a real and an imaginary part.
    pub fn set(&mut self, n: usize, lane: usize, [re, im]: [f64; 2]) {
        let number = &mut self.numbers[lane / WIDTH * self.length + n];
        number.re.0[lane % WIDTH] = re;
        number.im.0[lane % WIDTH] = im;
    }

    /// Multiplies number `n` of each row by the factor of the row.
    pub(super) fn scale(&mut self, n: usize, factor: impl Fn(usize) -> f64) {
        for group in 0..GROUPS {
            let factors = Lanes(std::array::from_fn(|lane| factor(group * WIDTH + lane)));
            let number = &mut self.group_mut(group)[n];
            *number = number.scale(factors);
        }
    }

    /// Sets the numbers of a range of places of all rows to zero.
    pub fn clear(&mut self, places: Range<usize>) {
        for group in self.numbers.chunks_exact_mut(self.length) {
            group[places.clone()].fill(Zero::zero());
        }
    }

    /// Returns the numbers of one group of rows.
    pub(super) fn group(&self, group: usize) -> &[ComplexLanes] {
        &self.numbers[group * self.length..][..self.length]
    }

    /// Returns the numbers of one group of rows.
    pub(super) fn group_mut(&mut self, group: usize) -> &mut [ComplexLanes] {
        &mut self.numbers[group * self.length..][..self.length]
    }

    /// Returns the numbers of one group of rows, and `scratch` numbers of working memory.
    pub(super) fn with_scratch(
        &mut self,
        group: usize,
        scratch: usize,
    ) -> (&mut [ComplexLanes], &mut [ComplexLanes]) {
        if self.scratch.len() < scratch {
            self.scratch.resize(scratch, Zero::zero());
        }
        let numbers = &mut self.numbers[group * self.length..][..self.length];
        (numbers, &mut self.scratch[..scratch])
    }

    /// Swaps the numbers of two batches of the same length.
    pub(super) fn swap(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.numbers, &mut other.numbers);
    }

    /// Sets number `n` of all rows: real parts from the first half of `row`, imaginary parts from its second half, from `start` on.
    /// Rows beyond the end of a half get zero.
    pub(super) fn put(&mut self, n: usize, row: &[f64], start: usize) {
        let (re, im) = row.split_at(row.len() / 2);
        for group in 0..GROUPS {
            let start = (start + group * WIDTH).min(re.len());
            self.group_mut(group)[n] = ComplexLanes {
                re: padded(&re[start..]),
                im: padded(&im[start..]),
            };
        }
    }

    /// Copies number `n` of all rows into `row`; the inverse of [`Batch::put`].
    pub(super) fn take(&self, n: usize, row: &mut [f64], start: usize) {
        let (re, im) = row.split_at_mut(row.len() / 2);
        for group in 0..GROUPS {
            let start = (start + group * WIDTH).min(re.len());
            let number = &self.group(group)[n];
            copy(&number.re, &mut re[start..]);
            copy(&number.im, &mut im[start..]);
        }
    }
}

/// Returns the first numbers of a slice, followed by zeros.
#[inline(always)]
fn padded(from: &[f64]) -> Lanes {
    if let Some(lanes) = from.first_chunk() {
        return Lanes(*lanes);
    }
    let mut lanes = [0.0; WIDTH];
    lanes[..from.len()].copy_from_slice(from);
    Lanes(lanes)
}

/// Copies the first lanes, up to the length of `to`.
#[inline(always)]
fn copy(from: &Lanes, to: &mut [f64]) {
    if let Some(to) = to.first_chunk_mut() {
        *to = from.0;
        return;
    }
    let count = to.len();
    to.copy_from_slice(&from.0[..count]);
}
