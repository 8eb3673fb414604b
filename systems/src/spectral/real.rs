//! Transforms of real rows by complex ones of half the length.

use super::batch::{Batch, Complex, LANES, WIDTH};
use super::fft::Fft;
use super::roots::root_of_unity;

/// The transform of real rows of one even length: modes 0 to half the length.
///
/// Numbers at even and at odd places are real and imaginary parts of a row of half the length (J. W. Cooley, P. A. W. Lewis &
/// P. D. Welch, J. Sound Vib. 12, 315 (1970)).
pub struct RealFft {
    half: Fft,
    /// exp(-2 pi i k / length) for the modes.
    roots: Vec<(f64, f64)>,
}

impl RealFft {
    /// The transform of rows of `length` real numbers.
    ///
    /// # Panics
    /// If the length is odd.
    #[must_use]
    pub fn new(length: usize) -> Self {
        assert!(length.is_multiple_of(2), "the length {length} is odd");
        let half = length / 2;
        Self {
            half: Fft::new(half),
            roots: (0..=half).map(|k| root_of_unity(k, length)).collect(),
        }
    }

    /// Modes of a row, and least length of the batches.
    #[must_use]
    pub fn modes(&self) -> usize {
        self.roots.len()
    }

    /// Transforms rows whose numbers `x[2 n]` and `x[2 n + 1]` stand as real and imaginary part at place `n`; the modes come out
    /// in `work`, the content of `rows` is lost.
    ///
    /// # Panics
    /// If a batch is shorter than the [modes](RealFft::modes).
    pub fn forward(&self, rows: &mut Batch, work: &mut Batch) {
        self.half.forward(rows, work);
        let half = self.half.length();
        for (k, &root) in self.roots.iter().enumerate() {
            let (low, high) = (k % half * LANES, (half - k) % half * LANES);
            for lane in (0..LANES).step_by(WIDTH) {
                let a = Complex::load(rows, low + lane).scaled(0.5);
                let b = Complex::load(rows, high + lane).conjugate().scaled(0.5);
                let mode = (a + b) + (a - b).turned().times(root);
                mode.store(&mut work.re, &mut work.im, k * LANES + lane);
            }
        }
    }

    /// The opposite of [`RealFft::forward`], times the length: from modes in `work` to numbers in `rows`.
    ///
    /// # Panics
    /// As [`RealFft::forward`].
    pub fn inverse(&self, rows: &mut Batch, work: &mut Batch) {
        let half = self.half.length();
        for (k, &(c, s)) in self.roots[..half].iter().enumerate() {
            let (low, high) = (k * LANES, (half - k) * LANES);
            for lane in (0..LANES).step_by(WIDTH) {
                let a = Complex::load(work, low + lane);
                let b = Complex::load(work, high + lane).conjugate();
                let number = (a + b) - (a - b).times((c, -s)).turned();
                number.store(&mut rows.re, &mut rows.im, low + lane);
            }
        }
        self.half.inverse(rows, work);
    }
}
