//! Rows that are transformed side by side. Each lane gets the bits that it would get alone.

use std::array::from_fn;
use std::ops::{Add, Mul, Range, Sub};

/// Rows of a batch.
pub const LANES: usize = 8;
/// Numbers of a register; a divisor of [`LANES`].
pub(super) const WIDTH: usize = 4;

/// [`LANES`] rows of complex numbers: `re[n * LANES + lane]`, `im` likewise.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Real parts.
    pub re: Vec<f64>,
    /// Imaginary parts.
    pub im: Vec<f64>,
}

impl Batch {
    /// Rows of `length` zeros.
    #[must_use]
    pub fn new(length: usize) -> Self {
        let zeros = vec![0.0; length * LANES];
        Self {
            re: zeros.clone(),
            im: zeros,
        }
    }

    /// Sets the numbers at `places` of all rows to zero.
    pub fn clear(&mut self, places: Range<usize>) {
        let places = places.start * LANES..places.end * LANES;
        self.re[places.clone()].fill(0.0);
        self.im[places].fill(0.0);
    }

    /// Puts one number of each lane at place `n`: real parts from `row`, then imaginary parts from its second half, from
    /// `start` on. Lanes beyond the end of the half are zero.
    pub(super) fn put(&mut self, n: usize, row: &[f64], start: usize) {
        let (re, im) = row.split_at(row.len() / 2);
        let count = LANES.min(re.len() - start);
        for (to, from) in [(&mut self.re, re), (&mut self.im, im)] {
            let to = &mut to[n * LANES..][..LANES];
            to[..count].copy_from_slice(&from[start..][..count]);
            to[count..].fill(0.0);
        }
    }

    /// The opposite of [`Batch::put`].
    pub(super) fn take(&self, n: usize, row: &mut [f64], start: usize) {
        let (re, im) = row.split_at_mut(row.len() / 2);
        let count = LANES.min(re.len() - start);
        re[start..][..count].copy_from_slice(&self.re[n * LANES..][..count]);
        im[start..][..count].copy_from_slice(&self.im[n * LANES..][..count]);
    }
}

/// Some lanes.
#[derive(Clone, Copy)]
pub(super) struct Numbers(pub [f64; WIDTH]);

/// Complex numbers of some lanes.
#[derive(Clone, Copy)]
pub(super) struct Complex {
    pub re: Numbers,
    pub im: Numbers,
}

impl Complex {
    pub const ZERO: Self = Self {
        re: Numbers([0.0; WIDTH]),
        im: Numbers([0.0; WIDTH]),
    };

    /// From place `at` of the parts on.
    #[inline(always)]
    pub fn load(batch: &Batch, at: usize) -> Self {
        let lanes = |part: &[f64]| {
            let part = &part[at..at + WIDTH];
            Numbers(from_fn(|lane| part[lane]))
        };
        Self {
            re: lanes(&batch.re),
            im: lanes(&batch.im),
        }
    }

    /// To place `at` of the parts and on.
    #[inline(always)]
    pub fn store(self, re: &mut [f64], im: &mut [f64], at: usize) {
        re[at..at + WIDTH].copy_from_slice(&self.re.0);
        im[at..at + WIDTH].copy_from_slice(&self.im.0);
    }

    /// Times the complex number `(c, s)`.
    #[inline(always)]
    pub fn times(self, (c, s): (f64, f64)) -> Self {
        Self {
            re: self.re * c - self.im * s,
            im: self.re * s + self.im * c,
        }
    }

    /// Times -i.
    #[inline(always)]
    pub fn turned(self) -> Self {
        Self {
            re: self.im,
            im: self.re * -1.0,
        }
    }

    /// The conjugate.
    #[inline(always)]
    pub fn conjugate(self) -> Self {
        Self {
            re: self.re,
            im: self.im * -1.0,
        }
    }

    /// Times a real number.
    #[inline(always)]
    pub fn scaled(self, a: f64) -> Self {
        Self {
            re: self.re * a,
            im: self.im * a,
        }
    }
}

impl Add for Numbers {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(from_fn(|lane| self.0[lane] + other.0[lane]))
    }
}

impl Sub for Numbers {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(from_fn(|lane| self.0[lane] - other.0[lane]))
    }
}

impl Mul<f64> for Numbers {
    type Output = Self;
    #[inline(always)]
    fn mul(self, a: f64) -> Self {
        Self(from_fn(|lane| self.0[lane] * a))
    }
}

impl Add for Complex {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self {
            re: self.re + other.re,
            im: self.im + other.im,
        }
    }
}

impl Sub for Complex {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self {
            re: self.re - other.re,
            im: self.im - other.im,
        }
    }
}
