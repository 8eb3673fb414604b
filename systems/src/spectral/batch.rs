//! Batches of rows that are transformed together, in vectors with one number of each of several rows.

use super::roots;
use rustfft::num_complex;
use rustfft::num_traits::{FromPrimitive, Num, One, Signed, Zero};
use std::array::from_fn;
use std::num::ParseFloatError;
use std::ops::{Add, Div, Mul, Neg, Range, Rem, Sub};

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

/// Rows of a vector register.
pub(super) const WIDTH: usize = 4;

/// A vector with one number of each of [`WIDTH`] rows. Each lane has the bits of scalar arithmetic.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(32))]
pub struct Lanes(pub [f64; WIDTH]);

/// One complex number of each of [`WIDTH`] rows.
pub type ComplexLanes = num_complex::Complex<Lanes>;

impl Lanes {
    #[inline(always)]
    fn map(self, function: impl Fn(f64) -> f64) -> Self {
        Self(from_fn(|lane| function(self.0[lane])))
    }
}

macro_rules! lane_by_lane {
    ($($operator:ident $method:ident),*) => {$(
        impl $operator for Lanes {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self(from_fn(|lane| self.0[lane].$method(other.0[lane])))
            }
        }
    )*};
}
lane_by_lane!(Add add, Sub sub, Mul mul, Div div, Rem rem);

impl Neg for Lanes {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.map(f64::neg)
    }
}

impl Zero for Lanes {
    #[inline(always)]
    fn zero() -> Self {
        Self([0.0; WIDTH])
    }
    fn is_zero(&self) -> bool {
        *self == Self::zero()
    }
}

impl One for Lanes {
    #[inline(always)]
    fn one() -> Self {
        Self([1.0; WIDTH])
    }
}

impl FromPrimitive for Lanes {
    fn from_i64(n: i64) -> Option<Self> {
        Some(Self([n as f64; WIDTH]))
    }
    fn from_u64(n: u64) -> Option<Self> {
        Some(Self([n as f64; WIDTH]))
    }
    /// Converts a constant of a plan. The result is exactly rounded and does not depend on the platform's sine and cosine.
    fn from_f64(x: f64) -> Option<Self> {
        Some(Self([roots::snapped(x); WIDTH]))
    }
}

// The bounds of rustfft ask for the rest; its transforms do not call it.

impl Num for Lanes {
    type FromStrRadixErr = ParseFloatError;
    fn from_str_radix(text: &str, _: u32) -> Result<Self, ParseFloatError> {
        text.parse().map(|number| Self([number; WIDTH]))
    }
}

impl Signed for Lanes {
    fn abs(&self) -> Self {
        self.map(f64::abs)
    }
    fn abs_sub(&self, other: &Self) -> Self {
        (*self - *other).map(|difference| difference.max(0.0))
    }
    fn signum(&self) -> Self {
        self.map(f64::signum)
    }
    fn is_positive(&self) -> bool {
        self.0.iter().all(|number| *number > 0.0)
    }
    fn is_negative(&self) -> bool {
        self.0.iter().all(|number| *number < 0.0)
    }
}
