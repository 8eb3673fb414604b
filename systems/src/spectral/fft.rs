//! Complex transforms of any length, by the generic algorithms of rustfft.

use super::batch::{Batch, GROUPS};
use super::lanes::Lanes;
use super::plan::plan;
use rustfft::FftDirection;
use std::sync::Arc;

/// Transforms rows of one length: `X[k] = sum_n x[n] exp(-2 pi i k n / length)`.
pub struct Fft {
    length: usize,
    forward: Arc<dyn rustfft::Fft<Lanes>>,
    inverse: Arc<dyn rustfft::Fft<Lanes>>,
}

impl Fft {
    /// Plans the transform of rows of `length` numbers, from 1.
    #[must_use]
    pub fn new(length: usize) -> Self {
        Self {
            length,
            forward: plan(length, FftDirection::Forward),
            inverse: plan(length, FftDirection::Inverse),
        }
    }

    /// Returns the length of a row.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Transforms the first numbers of all rows. `work` is as long as `rows`; its content is lost.
    ///
    /// # Panics
    /// If one of them is shorter than the transform.
    pub fn forward(&self, rows: &mut Batch, work: &mut Batch) {
        self.run(&*self.forward, rows, work);
    }

    /// Inverts [`Fft::forward`], times the length.
    ///
    /// # Panics
    /// As [`Fft::forward`].
    pub fn inverse(&self, rows: &mut Batch, work: &mut Batch) {
        self.run(&*self.inverse, rows, work);
    }

    fn run(&self, transform: &dyn rustfft::Fft<Lanes>, rows: &mut Batch, work: &mut Batch) {
        let scratch = transform.get_outofplace_scratch_len();
        for group in 0..GROUPS {
            let from = &mut rows.group_mut(group)[..self.length];
            let (to, scratch) = work.with_scratch(group, scratch);
            transform.process_outofplace_with_scratch(from, &mut to[..self.length], scratch);
        }
        rows.swap(work);
    }
}
