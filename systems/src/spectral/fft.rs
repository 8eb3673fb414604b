//! Complex transforms of any length, without bit reversal.

use super::batch::{Batch, Complex, LANES, WIDTH};
use super::roots::{radices, root_of_unity};
use std::array::from_fn;
use std::mem::swap;

/// The transform of rows of one length: `X[k] = sum_n x[n] exp(-2 pi i k n / length)`.
///
/// Stockham's algorithm by decimation in frequency with radices 4, 2, 3, 5 and whatever primes are left (C. Van Loan,
/// Computational Frameworks for the Fast Fourier Transform, 1992, section 1.7). A prime p costs p operations a number.
pub struct Fft {
    length: usize,
    passes: Vec<Pass>,
}

/// One radix: `rest` butterflies for each of `stride` numbers that lie together.
struct Pass {
    radix: usize,
    rest: usize,
    stride: usize,
    /// For each butterfly, the factors of its outputs but the first.
    twiddles: Vec<(f64, f64)>,
    /// The roots of unity of the radix.
    roots: Vec<(f64, f64)>,
}

impl Fft {
    /// The transform of rows of `length` numbers, from 1.
    #[must_use]
    pub fn new(length: usize) -> Self {
        let (mut n, mut stride) = (length, LANES);
        let pass = |radix: usize| {
            let rest = n / radix;
            let of_butterfly =
                |p: usize| (1..radix).map(move |r| root_of_unity(p * r, rest * radix));
            let pass = Pass {
                radix,
                rest,
                stride,
                twiddles: (0..rest).flat_map(of_butterfly).collect(),
                roots: (0..radix).map(|t| root_of_unity(t, radix)).collect(),
            };
            n = rest;
            stride *= radix;
            pass
        };
        Self {
            length,
            passes: radices(length).into_iter().map(pass).collect(),
        }
    }

    /// Numbers of a row.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Transforms all rows of `rows`; `work` has the same length, its content is lost.
    ///
    /// # Panics
    /// If one of them is shorter than the transform.
    pub fn forward(&self, rows: &mut Batch, work: &mut Batch) {
        for pass in &self.passes {
            match pass.radix {
                2 => pass.run(rows, work, |[a, b]| [a + b, a - b]),
                3 => pass.prime::<3>(rows, work),
                4 => pass.run(rows, work, four),
                5 => pass.prime::<5>(rows, work),
                7 => pass.prime::<7>(rows, work),
                _ => pass.any_prime(rows, work),
            }
            swap(rows, work);
        }
    }

    /// The opposite of [`Fft::forward`], times the length.
    ///
    /// # Panics
    /// As [`Fft::forward`].
    pub fn inverse(&self, rows: &mut Batch, work: &mut Batch) {
        swap(&mut rows.re, &mut rows.im);
        self.forward(rows, work);
        swap(&mut rows.re, &mut rows.im);
    }
}

/// The transform of four numbers.
#[inline(always)]
fn four([a, b, c, d]: [Complex; 4]) -> [Complex; 4] {
    let (even, even_difference) = (a + c, a - c);
    let (odd, odd_difference) = (b + d, (b - d).turned());
    [
        even + odd,
        even_difference + odd_difference,
        even - odd,
        even_difference - odd_difference,
    ]
}

impl Pass {
    #[inline(always)]
    fn run<const R: usize>(
        &self,
        from: &Batch,
        to: &mut Batch,
        butterfly: impl Fn([Complex; R]) -> [Complex; R],
    ) {
        let (rest, stride) = (self.rest, self.stride);
        for p in 0..rest {
            let twiddles = &self.twiddles[p * (R - 1)..][..R - 1];
            let re = &mut to.re[R * p * stride..][..R * stride];
            let im = &mut to.im[R * p * stride..][..R * stride];
            for q in (0..stride).step_by(WIDTH) {
                let place = |r: usize| q + stride * (p + rest * r);
                let out = butterfly(from_fn(|r| Complex::load(from, place(r))));
                out[0].store(re, im, q);
                for r in 1..R {
                    let out = out[r].times(twiddles[r - 1]);
                    out.store(re, im, q + stride * r);
                }
            }
        }
    }

    /// An odd prime, unrolled.
    fn prime<const R: usize>(&self, from: &Batch, to: &mut Batch) {
        let roots: [(f64, f64); R] = from_fn(|t| self.roots[t]);
        self.run(from, to, |x: [Complex; R]| {
            let mut y = [x[0]; R];
            odd(&roots, &x, &mut y);
            y
        });
    }

    /// An odd prime that is rarely met.
    fn any_prime(&self, from: &Batch, to: &mut Batch) {
        let (radix, rest, stride) = (self.radix, self.rest, self.stride);
        let (mut x, mut y) = (vec![Complex::ZERO; radix], vec![Complex::ZERO; radix]);
        for p in 0..rest {
            let twiddles = &self.twiddles[p * (radix - 1)..][..radix - 1];
            for q in (0..stride).step_by(WIDTH) {
                for (r, x) in x.iter_mut().enumerate() {
                    *x = Complex::load(from, q + stride * (p + rest * r));
                }
                odd(&self.roots, &x, &mut y);
                for (r, y) in y.iter().enumerate() {
                    let y = if r == 0 { *y } else { y.times(twiddles[r - 1]) };
                    let at = q + stride * (radix * p + r);
                    y.store(&mut to.re, &mut to.im, at);
                }
            }
        }
    }
}

/// The transform of an odd number of numbers, whose roots of unity are `roots`.
#[inline(always)]
fn odd(roots: &[(f64, f64)], x: &[Complex], y: &mut [Complex]) {
    let radix = roots.len();
    y[0] = x[0];
    for t in 1..=radix / 2 {
        y[0] = y[0] + (x[t] + x[radix - t]);
    }
    for r in 1..=radix / 2 {
        let (mut even, mut odd) = (x[0], Complex::ZERO);
        for t in 1..=radix / 2 {
            let (c, s) = roots[r * t % radix];
            even = even + (x[t] + x[radix - t]).scaled(c);
            odd = odd + (x[t] - x[radix - t]).scaled(-s);
        }
        let odd = odd.turned();
        y[r] = even + odd;
        y[radix - r] = even - odd;
    }
}
