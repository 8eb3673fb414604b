//! Transforms of real rows by complex ones of half the length.

use super::batch::{Batch, GROUPS};
use super::fft::Fft;
use super::lanes::{ComplexLanes, Lanes, WIDTH};
use super::roots::root_of_unity;

const HALF: Lanes = Lanes([0.5; WIDTH]);

/// Transforms real rows of one even length to the modes from 0 to half the length.
///
/// Numbers at even and odd indices are the real and imaginary parts of a complex row of half the length (J. W. Cooley, P. A. W. Lewis &
/// P. D. Welch, J. Sound Vib. 12, 315 (1970)).
pub struct RealFft {
    half: Fft,
    /// `exp(-2 pi i k / length)` for the modes.
    roots: Vec<ComplexLanes>,
}

impl RealFft {
    /// Plans the transform of rows of `length` real numbers.
    ///
    /// # Panics
    /// If the length is odd.
    #[must_use]
    pub fn new(length: usize) -> Self {
        assert!(length.is_multiple_of(2), "the length {length} is odd");
        let half = length / 2;
        let root = |k: usize| {
            let (c, s) = root_of_unity(k, length);
            ComplexLanes {
                re: Lanes([c; WIDTH]),
                im: Lanes([s; WIDTH]),
            }
        };
        Self {
            half: Fft::new(half),
            roots: (0..=half).map(root).collect(),
        }
    }

    /// Returns the number of modes of a row, which is also the smallest length of the batches.
    #[must_use]
    pub fn modes(&self) -> usize {
        self.roots.len()
    }

    /// Transforms rows whose numbers `x[2 n]` and `x[2 n + 1]` are the real and imaginary part at index `n`. The modes are in `work`;
    /// the content of `rows` is lost.
    ///
    /// # Panics
    /// If a batch is shorter than the [modes](RealFft::modes).
    pub fn forward(&self, rows: &mut Batch, work: &mut Batch) {
        self.half.forward(rows, work);
        let half = self.half.length();
        for group in 0..GROUPS {
            let (from, to) = (rows.group(group), work.group_mut(group));
            for (k, root) in self.roots.iter().enumerate() {
                let a = from[k % half].scale(HALF);
                let b = from[(half - k) % half].conj().scale(HALF);
                to[k] = (a + b) + turned(a - b) * root;
            }
        }
    }

    /// Inverts [`RealFft::forward`], times the length: from modes in `work` to numbers in `rows`.
    ///
    /// # Panics
    /// As [`RealFft::forward`].
    pub fn inverse(&self, rows: &mut Batch, work: &mut Batch) {
        let half = self.half.length();
        for group in 0..GROUPS {
            let (from, to) = (work.group(group), rows.group_mut(group));
            for (k, root) in self.roots[..half].iter().enumerate() {
                let (a, b) = (from[k], from[half - k].conj());
                to[k] = (a + b) - turned((a - b) * root.conj());
            }
        }
        self.half.inverse(rows, work);
    }
}

/// Returns the number times -i.
#[inline(always)]
fn turned(a: ComplexLanes) -> ComplexLanes {
    ComplexLanes {
        re: a.im,
        im: -a.re,
    }
}
