//! Numbers of lane-capable functions: straight-line arithmetic, comparison and selection.
use std::ops::{
    Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign,
};

/// Result of a comparison: `bool` for a scalar, one flag per lane for a SIMD type.
pub trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// Returns `true` if any flag is set.
    fn any(self) -> bool;
    /// Returns `true` if all flags are set.
    fn all(self) -> bool;
}

impl Mask for bool {
    #[inline(always)]
    fn any(self) -> bool {
        self
    }
    #[inline(always)]
    fn all(self) -> bool {
        self
    }
}

/// Numbers that can be compared, with `min`, `max`, `clamp` and `abs` defined independently of the platform.
///
/// `min` is `a < b ? a : b` and `max` is `a > b ? a : b` everywhere. If an operand is NaN, or both are zeros, the *second* operand is
/// returned.
pub trait Num: Copy {
    /// Result of a comparison.
    type Mask: Mask;
    /// `self < o`; false if either is NaN.
    fn lt(self, o: Self) -> Self::Mask;
    /// `self <= o`; false if either is NaN.
    fn le(self, o: Self) -> Self::Mask;
    /// `self > o`; false if either is NaN.
    fn gt(self, o: Self) -> Self::Mask;
    /// `self >= o`; false if either is NaN.
    fn ge(self, o: Self) -> Self::Mask;
    /// `self == o`; false if either is NaN.
    fn eq(self, o: Self) -> Self::Mask;
    /// `self != o`; true if either is NaN.
    fn ne(self, o: Self) -> Self::Mask;
    /// Returns `a` where the mask is set, `b` elsewhere, bit for bit.
    fn select(m: Self::Mask, a: Self, b: Self) -> Self;
    /// `self < o ? self : o`.
    #[inline(always)]
    fn min(self, o: Self) -> Self {
        Self::select(self.lt(o), self, o)
    }
    /// `self > o ? self : o`.
    #[inline(always)]
    fn max(self, o: Self) -> Self {
        Self::select(self.gt(o), self, o)
    }
    /// Returns the smaller of two numbers. The sign of a zero and the treatment of NaN are unspecified, and results must not depend on
    /// them. It is one instruction on a GPU, [`Num::min`] takes two.
    #[inline(always)]
    fn lesser(self, o: Self) -> Self {
        self.min(o)
    }
    /// Returns the larger of two numbers, with the restrictions of [`Num::lesser`].
    #[inline(always)]
    fn greater(self, o: Self) -> Self {
        self.max(o)
    }
    /// Returns `lo` for numbers below `lo`, `hi` for numbers above `hi`, else the number itself (also for NaN).
    #[inline(always)]
    fn clamp(self, lo: Self, hi: Self) -> Self {
        Self::select(self.lt(lo), lo, Self::select(self.gt(hi), hi, self))
    }
    /// Returns the absolute value; the smallest integer is returned unchanged.
    fn abs(self) -> Self;
}

/// Comparison and selection of a scalar type, inside an `impl Num`.
macro_rules! scalar_comparison {
    () => {
        type Mask = bool;
        #[inline(always)]
        fn lt(self, o: Self) -> bool {
            self < o
        }
        #[inline(always)]
        fn le(self, o: Self) -> bool {
            self <= o
        }
        #[inline(always)]
        fn gt(self, o: Self) -> bool {
            self > o
        }
        #[inline(always)]
        fn ge(self, o: Self) -> bool {
            self >= o
        }
        #[inline(always)]
        fn eq(self, o: Self) -> bool {
            self == o
        }
        #[inline(always)]
        fn ne(self, o: Self) -> bool {
            self != o
        }
        #[inline(always)]
        fn select(m: bool, a: Self, b: Self) -> Self {
            if m { a } else { b }
        }
    };
}
pub(crate) use scalar_comparison;

macro_rules! integer {
    ($($t:ty, $x:ident => $abs:expr;)*) => {$(
        impl Num for $t {
            scalar_comparison!();
            #[inline(always)]
            fn abs(self) -> Self {
                let $x = self;
                $abs
            }
        }
    )*};
}
integer! {
    i32, x => x.wrapping_abs();
    i64, x => x.wrapping_abs();
    u32, x => x;
    u64, x => x;
    usize, x => x;
}

/// Possible value of an `if` on `R`: numbers, arrays and tuples of them, and `#[device]` structures of lanes.
pub trait Pick<R: Lane>: Copy {
    /// Returns `a` in the lanes whose mask is set, `b` in the others.
    fn pick(m: R::Mask, a: Self, b: Self) -> Self;
}

impl<R: Lane> Pick<R> for R {
    #[inline(always)]
    fn pick(m: R::Mask, a: R, b: R) -> R {
        R::select(m, a, b)
    }
}

impl<R: Lane, T: Pick<R>, const N: usize> Pick<R> for [T; N] {
    #[inline(always)]
    fn pick(m: R::Mask, a: Self, b: Self) -> Self {
        std::array::from_fn(|i| T::pick(m, a[i], b[i]))
    }
}

macro_rules! pick_tuple {
    ($($t:ident $i:tt),*) => {
        impl<R: Lane, $($t: Pick<R>),*> Pick<R> for ($($t,)*) {
            #[inline(always)]
            fn pick(m: R::Mask, a: Self, b: Self) -> Self {
                ($($t::pick(m, a.$i, b.$i),)*)
            }
        }
    };
}
pick_tuple!(A 0, B 1);
pick_tuple!(A 0, B 1, C 2);
pick_tuple!(A 0, B 1, C 2, D 3);

/// A floating-point number, or several in the lanes of a SIMD register: straight-line arithmetic and selection only.
pub trait Lane:
    Num
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Send
    + Sync
    + 'static
{
    /// Returns the number nearest to `x`, in every lane.
    fn lit(x: f64) -> Self;
    /// Returns the square root, correctly rounded; NaN below zero.
    fn sqrt(self) -> Self;
    /// Returns the magnitude of `self` with the sign of `s`.
    fn copysign(self, s: Self) -> Self;
    /// Returns `true` for NaN.
    #[inline(always)]
    fn is_nan(self) -> Self::Mask {
        Num::ne(self, self)
    }
    /// Returns `1 / self`.
    #[inline(always)]
    fn recip(self) -> Self {
        Self::lit(1.0) / self
    }
    /// Returns 1 with the sign of `self`, also for zeros and NaN.
    #[inline(always)]
    fn signum(self) -> Self {
        Self::lit(1.0).copysign(self)
    }
    /// Returns an integer power by repeated squaring, in the same order on every platform. The relative error grows with `|n|`.
    #[inline(always)]
    fn powi(self, n: i32) -> Self {
        let (mut b, mut e, mut r) = (self, n.unsigned_abs(), Self::lit(1.0));
        while e != 0 {
            if e & 1 == 1 {
                r *= b;
            }
            b *= b;
            e >>= 1;
        }
        if n < 0 { Self::lit(1.0) / r } else { r }
    }
}
