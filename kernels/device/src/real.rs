//! Scalar floating-point numbers (`f32` and `f64`), states of cells made of them, and conversion of parameters to their precision.

use crate::lane::{Lane, Num, scalar_comparison};
use crate::parameter::Parameter;
use std::fmt::{Debug, Display, LowerExp};
use std::ops::Rem;

/// A scalar floating-point number. Each operation has a single defined result on CPU and GPU.
pub trait Real:
    Lane<Mask = bool>
    + PartialOrd
    + Rem<Output = Self>
    + Debug
    + Display
    + LowerExp
    + Default
    + CellState<Self>
    + Parameter
{
    /// Distance from 1 to the next larger number.
    const EPSILON: Self;
    /// Largest finite number.
    const MAX: Self;
    /// Smallest positive normal number.
    const MIN_POSITIVE: Self;
    /// Positive infinity.
    const INFINITY: Self;
    /// A quiet NaN; sign and payload are unspecified.
    const NAN: Self;
    /// Number nearest to π.
    const PI: Self;
    /// Returns the number nearest to `x`.
    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Self::lit(x)
    }
    /// Returns the number nearest to `x`.
    fn from_i32(x: i32) -> Self;
    /// Returns the number nearest to `x`.
    fn from_u32(x: u32) -> Self;
    /// Returns the number nearest to `x`.
    fn from_usize(x: usize) -> Self;
    /// Converts to double precision.
    fn to_f64(self) -> f64;
    /// Truncates towards zero and saturates; NaN gives 0.
    fn to_i32(self) -> i32;
    /// Computes `self * a + b` with one rounding.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// Returns the largest integral number not above.
    fn floor(self) -> Self;
    /// Returns the smallest integral number not below.
    fn ceil(self) -> Self;
    /// Returns the integral part.
    fn trunc(self) -> Self;
    /// Returns `true` if the number is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Returns `(m, e)` with `self = m * 2^e` and `0.5 <= |m| < 1`; 0, infinities and NaN return themselves and 0.
    fn frexp(self) -> (Self, i32);
    /// Returns `self * 2^n`, exact unless the result overflows (infinity) or is denormal (rounded).
    fn ldexp(self, n: i32) -> Self;
    /// Returns the bit pattern, zero-extended.
    fn bits(self) -> u64;
    /// Returns the number with this bit pattern; `f32` uses the lower half.
    fn from_bits64(b: u64) -> Self;
}

/// Access to the bit pattern of a concrete type, `f32` or `f64`.
pub trait Bits {
    /// Unsigned integer of the same size.
    type Bits;
    /// Returns the bit pattern.
    fn to_bits(self) -> Self::Bits;
}

/// Operations that the standard library has under the same name.
macro_rules! forwarded {
    ($t:ident) => {
        #[inline(always)]
        fn from_i32(x: i32) -> Self {
            x as $t
        }
        #[inline(always)]
        fn from_u32(x: u32) -> Self {
            x as $t
        }
        #[inline(always)]
        fn from_usize(x: usize) -> Self {
            x as $t
        }
        #[inline(always)]
        fn to_f64(self) -> f64 {
            self as f64
        }
        #[inline(always)]
        fn to_i32(self) -> i32 {
            self as i32
        }
        #[inline(always)]
        #[allow(
            clippy::disallowed_methods,
            reason = "the one place where a fused operation is asked for by name; CUDA's `fma` is its other side"
        )]
        fn mul_add(self, a: Self, b: Self) -> Self {
            $t::mul_add(self, a, b)
        }
        #[inline(always)]
        fn floor(self) -> Self {
            $t::floor(self)
        }
        #[inline(always)]
        fn ceil(self) -> Self {
            $t::ceil(self)
        }
        #[inline(always)]
        fn trunc(self) -> Self {
            $t::trunc(self)
        }
        #[inline(always)]
        fn is_finite(self) -> bool {
            $t::is_finite(self)
        }
    };
}

/// Implements `frexp` and `ldexp`, which the standard library lacks and which differ between libms.
macro_rules! scaling {
    ($t:ident, $u:ty, $mantissa:expr, $bias:expr, $exponents:expr) => {
        #[inline(always)]
        fn frexp(self) -> (Self, i32) {
            let (mut x, mut shift) = (self, 0i32);
            if x == 0.0 || !$t::is_finite(x) {
                return (x, 0);
            }
            if $t::abs(x) < $t::MIN_POSITIVE {
                x *= (1u64 << $mantissa) as $t;
                shift = -$mantissa;
            }
            let bits = x.to_bits();
            let exponent = ((bits >> $mantissa) & $exponents) as i32;
            let bits = (bits & !($exponents << $mantissa)) | ((($bias - 1) as $u) << $mantissa);
            ($t::from_bits(bits), exponent - ($bias - 1) + shift)
        }
        #[inline(always)]
        fn ldexp(self, n: i32) -> Self {
            let (mut x, mut n) = (self, n);
            let big = $t::from_bits(((2 * $bias) as $u) << $mantissa);
            // 2^(1 - bias) * 2^mantissa: only the last step rounds
            let tiny = $t::from_bits(((1 + $mantissa) as $u) << $mantissa);
            if n > $bias {
                x *= big;
                n -= $bias;
                if n > $bias {
                    x *= big;
                    n = Ord::min(n - $bias, $bias);
                }
            } else if n < 1 - $bias {
                x *= tiny;
                n += $bias - 1 - $mantissa;
                if n < 1 - $bias {
                    x *= tiny;
                    n = Ord::max(n + $bias - 1 - $mantissa, 1 - $bias);
                }
            }
            x * $t::from_bits((($bias + n) as $u) << $mantissa)
        }
    };
}

macro_rules! real {
    ($t:ident, $u:ty, $mantissa:expr, $bias:expr, $exponents:expr) => {
        impl Num for $t {
            scalar_comparison!();
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
        }
        impl Lane for $t {
            #[inline(always)]
            fn lit(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn copysign(self, s: Self) -> Self {
                $t::copysign(self, s)
            }
        }
        impl Real for $t {
            const EPSILON: Self = $t::EPSILON;
            const MAX: Self = $t::MAX;
            const MIN_POSITIVE: Self = $t::MIN_POSITIVE;
            const INFINITY: Self = $t::INFINITY;
            const NAN: Self = $t::NAN;
            const PI: Self = std::f64::consts::PI as $t;
            forwarded!($t);
            scaling!($t, $u, $mantissa, $bias, $exponents);
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            #[inline(always)]
            fn from_bits64(b: u64) -> Self {
                $t::from_bits(b as $u)
            }
        }
        impl Bits for $t {
            type Bits = $u;
            #[inline(always)]
            fn to_bits(self) -> $u {
                $t::to_bits(self)
            }
        }
    };
}
real!(f32, u32, 23, 127, 0xffu32);
real!(f64, u64, 52, 1023, 0x7ffu64);

/// A state that consists of numbers, in the order of a field's components, or a tuple of such states of several fields.
///
/// [`#[device]`](crate::device) implements it for structures with one type parameter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the state of a field",
    label = "not a state",
    note = "a state is a number `R`, an array of states, a `#[device]` structure of such members with one type parameter (`S<R>`), \
            or a tuple of the states of two to four fields"
)]
pub trait CellState<R>: Sized {
    /// Number of values of each field.
    const COMPONENTS: [usize; 4];
    /// Number of values of the first field.
    const COUNT: usize = Self::COMPONENTS[0];
    /// Reads the state from field `field` on, and there from component `first` on; `get` receives both.
    fn read(get: &mut impl FnMut(usize, usize) -> R, field: usize, first: usize) -> Self;
    /// Writes the state in the order of [`CellState::read`].
    fn write(&self, set: &mut impl FnMut(usize, usize, R), field: usize, first: usize);
}

macro_rules! number {
    ($($t:ty),*) => {$(
        impl CellState<$t> for $t {
            const COMPONENTS: [usize; 4] = [1, 0, 0, 0];
            #[inline(always)]
            fn read(get: &mut impl FnMut(usize, usize) -> $t, field: usize, first: usize) -> Self {
                get(field, first)
            }
            #[inline(always)]
            fn write(&self, set: &mut impl FnMut(usize, usize, $t), field: usize, first: usize) {
                set(field, first, *self);
            }
        }
    )*};
}
number!(f32, f64);

/// Lets functions take structures whose members no field can hold. Using such a structure as a state does not compile.
#[doc(hidden)]
#[macro_export]
macro_rules! no_number {
    ($($t:ty),*) => {$(
        impl<Number> $crate::CellState<Number> for $t {
            const COMPONENTS: [usize; 4] = panic!(
                "the state of a field consists of numbers `R`, arrays and structures of them; integers, `bool` and enums are not allowed"
            );
            fn read(_: &mut impl ::core::ops::FnMut(usize, usize) -> Number, _: usize, _: usize) -> Self {
                ::core::unreachable!()
            }
            fn write(&self, _: &mut impl ::core::ops::FnMut(usize, usize, Number), _: usize, _: usize) {}
        }
    )*};
}
no_number!(i32, u32, i64, u64, usize, bool);

impl<R, T: CellState<R>, const N: usize> CellState<R> for [T; N] {
    const COMPONENTS: [usize; 4] = [N * T::COUNT, 0, 0, 0];
    #[inline(always)]
    fn read(get: &mut impl FnMut(usize, usize) -> R, field: usize, first: usize) -> Self {
        std::array::from_fn(|n| T::read(get, field, first + n * T::COUNT))
    }
    #[inline(always)]
    fn write(&self, set: &mut impl FnMut(usize, usize, R), field: usize, first: usize) {
        for (n, state) in self.iter().enumerate() {
            state.write(set, field, first + n * T::COUNT);
        }
    }
}

macro_rules! tuple {
    ($counts:expr, $($t:ident $n:tt),*) => {
        impl<R, $($t: CellState<R>),*> CellState<R> for ($($t,)*) {
            const COMPONENTS: [usize; 4] = $counts;
            #[inline(always)]
            fn read(get: &mut impl FnMut(usize, usize) -> R, field: usize, _: usize) -> Self {
                ($($t::read(get, field + $n, 0),)*)
            }
            #[inline(always)]
            fn write(&self, set: &mut impl FnMut(usize, usize, R), field: usize, _: usize) {
                $(self.$n.write(set, field + $n, 0);)*
            }
        }
    };
}
tuple!([A::COUNT, B::COUNT, 0, 0], A 0, B 1);
tuple!([A::COUNT, B::COUNT, C::COUNT, 0], A 0, B 1, C 2);
tuple!([A::COUNT, B::COUNT, C::COUNT, D::COUNT], A 0, B 1, C 2, D 3);

/// Parameters in double precision that a launch converts to the precision of its field.
///
/// [`#[device]`](crate::device) implements it for a structure `S<f64>` with one type parameter (members of that type are rounded, others
/// stay) and for one without any.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the parameters of a `#[device]` function",
    label = "not valid as parameters",
    note = "parameters are a `#[device]` structure with one type parameter (`P<R>`) or none, of numbers, integers, flags, enums, arrays and \
            `Table<R>`; or up to 8 numbers"
)]
pub trait Precise {
    /// The same type in precision `R`.
    type In<R: Real>: Parameter + Sync;
    /// Returns the parameters in precision `R`.
    fn precise<R: Real>(&self) -> Self::In<R>;
}

impl Precise for f64 {
    type In<R: Real> = R;
    fn precise<R: Real>(&self) -> R {
        R::lit(*self)
    }
}

impl<const N: usize> Precise for [f64; N] {
    type In<R: Real> = [R; N];
    fn precise<R: Real>(&self) -> [R; N] {
        self.map(R::lit)
    }
}
