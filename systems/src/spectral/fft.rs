//! Transforms of complex rows of any length and of real rows of even length, from the small algorithms of rustfft.
//!
//! rustfft's own planner would add half a minute to the compile time: it brings thousands of lines of large butterflies.

use super::batch::{Batch, ComplexLanes, GROUPS, Lanes, WIDTH};
use super::roots::{root_of_unity, with_roots_of};
use rustfft::algorithm::butterflies::{
    Butterfly1, Butterfly2, Butterfly3, Butterfly4, Butterfly5, Butterfly6, Butterfly7, Butterfly8,
    Butterfly9, Butterfly11, Butterfly13, Butterfly17, Butterfly19, Butterfly23,
};
use rustfft::algorithm::{MixedRadix, MixedRadixSmall, RadersAlgorithm, Radix3, Radix4};
use rustfft::{Direction, FftDirection, Length};
use std::sync::Arc;

/// Transforms rows of one length: `X[k] = sum_n x[n] exp(-2 pi i k n / length)`.
pub struct Fft {
    length: usize,
    forward: Plan,
    inverse: Plan,
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

type Plan = Arc<dyn rustfft::Fft<Lanes>>;

/// Plans the transform of rows of `length` numbers; its bits are the same on every machine.
fn plan(length: usize, direction: FftDirection) -> Plan {
    with_roots_of(length, || planned(length, direction))
}

fn planned(length: usize, direction: FftDirection) -> Plan {
    if let Some(butterfly) = butterfly(length, direction) {
        return butterfly;
    }
    let twos = length.trailing_zeros();
    let odd = length >> twos;
    if odd == 1 {
        let fours = (twos - 2) / 2;
        return Arc::new(Radix4::new_with_base(
            fours,
            planned(length >> (2 * fours), direction),
        ));
    }
    if twos > 1 {
        let fours = twos / 2;
        return Arc::new(Radix4::new_with_base(
            fours,
            planned(length >> (2 * fours), direction),
        ));
    }
    if twos == 1 && odd.is_multiple_of(27) {
        return Arc::new(Radix3::new_with_base(1, planned(length / 3, direction)));
    }
    if twos == 1 {
        return Arc::new(TwiceOdd::new(planned(odd, direction)));
    }
    let (mut rest, mut threes) = (length, 0);
    while rest.is_multiple_of(3) && rest > 9 {
        (rest, threes) = (rest / 3, threes + 1);
    }
    if threes > 0 {
        return Arc::new(Radix3::new_with_base(threes, planned(rest, direction)));
    }
    let prime = (3..)
        .step_by(2)
        .find(|prime| length.is_multiple_of(*prime))
        .unwrap_or(length);
    if prime < length {
        let (small, large) = (
            planned(prime, direction),
            planned(length / prime, direction),
        );
        // the small form has no scratch memory for its parts, which Rader's algorithm needs
        let fits = |part: &Plan| {
            part.get_outofplace_scratch_len() == 0 && part.get_inplace_scratch_len() <= part.len()
        };
        return match fits(&small) && fits(&large) {
            true => Arc::new(MixedRadixSmall::new(small, large)),
            false => Arc::new(MixedRadix::new(small, large)),
        };
    }
    Arc::new(RadersAlgorithm::new(planned(prime - 1, direction)))
}

/// The unrolled transform of a short row, if there is one.
fn butterfly(length: usize, direction: FftDirection) -> Option<Plan> {
    Some(match length {
        1 => Arc::new(Butterfly1::new(direction)),
        2 => Arc::new(Butterfly2::new(direction)),
        3 => Arc::new(Butterfly3::new(direction)),
        4 => Arc::new(Butterfly4::new(direction)),
        5 => Arc::new(Butterfly5::new(direction)),
        6 => Arc::new(Butterfly6::new(direction)),
        7 => Arc::new(Butterfly7::new(direction)),
        8 => Arc::new(Butterfly8::new(direction)),
        9 => Arc::new(Butterfly9::new(direction)),
        11 => Arc::new(Butterfly11::new(direction)),
        13 => Arc::new(Butterfly13::new(direction)),
        17 => Arc::new(Butterfly17::new(direction)),
        19 => Arc::new(Butterfly19::new(direction)),
        23 => Arc::new(Butterfly23::new(direction)),
        _ => return None,
    })
}

/// Transforms rows of twice an odd length by the prime-factor algorithm, without twiddle factors
/// (I. J. Good, J. R. Stat. Soc. B 20, 361 (1958)).
struct TwiceOdd {
    half: Plan,
}

impl TwiceOdd {
    fn new(half: Plan) -> Self {
        Self { half }
    }

    /// Forms sums and differences of numbers half a row apart, as two rows of the odd length.
    #[inline(always)]
    fn split(from: &[ComplexLanes], sums: &mut [ComplexLanes]) {
        let odd = from.len() / 2;
        let (even, odds) = sums.split_at_mut(odd);
        // number odd a + 2 b (modulo the length) is number b of row a
        for b in 0..odd {
            let opposite = if 2 * b < odd {
                2 * b + odd
            } else {
                2 * b - odd
            };
            let (x, y) = (from[2 * b], from[opposite]);
            (even[b], odds[b]) = (x + y, x - y);
        }
    }

    /// Interleaves the modes of both rows: mode `k` is that of the sums for even `k`, of the differences for odd `k`.
    #[inline(always)]
    fn interleave(modes: &[ComplexLanes], to: &mut [ComplexLanes]) {
        let odd = to.len() / 2;
        for k in 0..odd {
            to[k] = modes[k + k % 2 * odd];
            to[k + odd] = modes[k + (k + 1) % 2 * odd];
        }
    }
}

impl Length for TwiceOdd {
    fn len(&self) -> usize {
        2 * self.half.len()
    }
}

impl Direction for TwiceOdd {
    fn fft_direction(&self) -> FftDirection {
        self.half.fft_direction()
    }
}

impl rustfft::Fft<Lanes> for TwiceOdd {
    fn process_with_scratch(&self, rows: &mut [ComplexLanes], scratch: &mut [ComplexLanes]) {
        let (sums, scratch) = scratch.split_at_mut(self.len());
        for row in rows.chunks_exact_mut(self.len()) {
            Self::split(row, sums);
            self.half.process_with_scratch(sums, scratch);
            Self::interleave(sums, row);
        }
    }
    fn process_outofplace_with_scratch(
        &self,
        from: &mut [ComplexLanes],
        to: &mut [ComplexLanes],
        scratch: &mut [ComplexLanes],
    ) {
        self.process_immutable_with_scratch(from, to, scratch);
    }
    fn process_immutable_with_scratch(
        &self,
        from: &[ComplexLanes],
        to: &mut [ComplexLanes],
        scratch: &mut [ComplexLanes],
    ) {
        let (sums, scratch) = scratch.split_at_mut(self.len());
        let rows = from
            .chunks_exact(self.len())
            .zip(to.chunks_exact_mut(self.len()));
        for (from, to) in rows {
            Self::split(from, sums);
            self.half.process_with_scratch(sums, scratch);
            Self::interleave(sums, to);
        }
    }
    fn get_inplace_scratch_len(&self) -> usize {
        self.len() + self.half.get_inplace_scratch_len()
    }
    fn get_outofplace_scratch_len(&self) -> usize {
        self.get_inplace_scratch_len()
    }
    fn get_immutable_scratch_len(&self) -> usize {
        self.get_inplace_scratch_len()
    }
}
