//! Vectors with one number of each of several rows, which rustfft transforms like scalars.

use super::roots;
use rustfft::num_complex;
use rustfft::num_traits::{FromPrimitive, Num, One, Signed, Zero};
use std::array::from_fn;
use std::num::ParseFloatError;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

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
