//! SIMD registers of x86-64: [`D4`] and [`S8`] of AVX2, [`D8`] and [`S16`] of AVX-512.
//!
//! A value may exist only on a processor with the instructions ([`Simd::available`]). For speed, code that uses a type must be compiled for
//! them too: crate-wide (`-C target-cpu=x86-64-v3`), or inlined into a function with `#[target_feature(enable = "avx512f,avx512dq")]`.
use super::Simd;
use crate::{Lane, Mask, Num};
use std::arch::x86_64::*;
use std::ops::{
    Add, AddAssign, BitAnd, BitOr, Div, DivAssign, Mul, MulAssign, Neg, Not, Sub, SubAssign,
};

/// Implements one binary operation and its assigning form.
macro_rules! operator {
    ($v:ident, $op:ident $method:ident, $assign:ident $assign_method:ident, $intrinsic:ident) => {
        impl $op for $v {
            type Output = Self;
            #[inline(always)]
            fn $method(self, o: Self) -> Self {
                // SAFETY: a value exists, so the processor has the instruction
                unsafe { $v($intrinsic(self.0, o.0)) }
            }
        }
        impl $assign for $v {
            #[inline(always)]
            fn $assign_method(&mut self, o: Self) {
                *self = $op::$method(*self, o)
            }
        }
    };
}

/// Implements private bitwise operations of a register.
macro_rules! bitwise {
    ($v:ident, $($method:ident $intrinsic:ident),*) => {
        impl $v {$(
            #[inline(always)]
            fn $method(self, o: Self) -> Self {
                // SAFETY: a value exists, so the processor has the instruction
                unsafe { $v($intrinsic(self.0, o.0)) }
            }
        )*}
    };
}

/// Defines the register type with `Lane` and `Num`; the instruction set's own macro provides `compare` and `blend`.
macro_rules! register {
    ($(#[$doc:meta])* $v:ident, $m:ident, $raw:ty, $e:ty,
     $add:ident $sub:ident $mul:ident $div:ident $sqrt:ident $set1:ident $min:ident $max:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[repr(transparent)]
        pub struct $v($raw);

        operator!($v, Add add, AddAssign add_assign, $add);
        operator!($v, Sub sub, SubAssign sub_assign, $sub);
        operator!($v, Mul mul, MulAssign mul_assign, $mul);
        operator!($v, Div div, DivAssign div_assign, $div);

        impl Neg for $v {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                self.xor(Self::lit(-0.0))
            }
        }

        impl Lane for $v {
            #[inline(always)]
            fn lit(x: f64) -> Self {
                // SAFETY: the caller runs on a processor with the instructions, as the type demands
                unsafe { $v($set1(x as $e)) }
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                // SAFETY: a value exists, so the processor has the instruction
                unsafe { $v($sqrt(self.0)) }
            }
            #[inline(always)]
            fn copysign(self, s: Self) -> Self {
                let sign = Self::lit(-0.0);
                sign.andnot(self).or(sign.and(s))
            }
        }

        impl Num for $v {
            type Mask = $m;
            #[inline(always)]
            fn lt(self, o: Self) -> $m {
                self.compare::<_CMP_LT_OQ>(o)
            }
            #[inline(always)]
            fn le(self, o: Self) -> $m {
                self.compare::<_CMP_LE_OQ>(o)
            }
            #[inline(always)]
            fn gt(self, o: Self) -> $m {
                self.compare::<_CMP_GT_OQ>(o)
            }
            #[inline(always)]
            fn ge(self, o: Self) -> $m {
                self.compare::<_CMP_GE_OQ>(o)
            }
            #[inline(always)]
            fn eq(self, o: Self) -> $m {
                self.compare::<_CMP_EQ_OQ>(o)
            }
            #[inline(always)]
            fn ne(self, o: Self) -> $m {
                self.compare::<_CMP_NEQ_UQ>(o)
            }
            #[inline(always)]
            fn select(m: $m, a: Self, b: Self) -> Self {
                Self::blend(m, a, b)
            }
            // MINPS and MAXPS are exactly `a < b ? a : b` and `a > b ? a : b`
            #[inline(always)]
            fn min(self, o: Self) -> Self {
                // SAFETY: a value exists, so the processor has the instruction
                unsafe { $v($min(self.0, o.0)) }
            }
            #[inline(always)]
            fn max(self, o: Self) -> Self {
                // SAFETY: a value exists, so the processor has the instruction
                unsafe { $v($max(self.0, o.0)) }
            }
            #[inline(always)]
            fn abs(self) -> Self {
                Self::lit(-0.0).andnot(self)
            }
        }
    };
}

/// AVX: a mask is a register with all bits of a lane equal.
macro_rules! avx {
    ($v:ident, $m:ident, $n:expr, $e:ty, $and:ident $or:ident $xor:ident $andnot:ident
     $cmp:ident $blendv:ident $movemask:ident $load:ident $store:ident) => {
        bitwise!($v, and $and, or $or, xor $xor, andnot $andnot);

        impl $v {
            #[inline(always)]
            fn compare<const C: i32>(self, o: Self) -> $m {
                // SAFETY: a value exists, so the processor has the instruction
                unsafe { $m($v($cmp::<C>(self.0, o.0))) }
            }
            #[inline(always)]
            fn blend(m: $m, a: Self, b: Self) -> Self {
                // SAFETY: a value exists, so the processor has the instruction
                unsafe { $v($blendv(b.0, a.0, m.0.0)) }
            }
        }

        #[doc = concat!("One flag for each lane of [`", stringify!($v), "`].")]
        #[derive(Clone, Copy, Debug)]
        pub struct $m($v);

        impl BitAnd for $m {
            type Output = Self;
            #[inline(always)]
            fn bitand(self, o: Self) -> Self {
                $m(self.0.and(o.0))
            }
        }
        impl BitOr for $m {
            type Output = Self;
            #[inline(always)]
            fn bitor(self, o: Self) -> Self {
                $m(self.0.or(o.0))
            }
        }
        impl Not for $m {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                let zero = $v::lit(0.0);
                $m(self.0.xor(zero.compare::<_CMP_EQ_OQ>(zero).0))
            }
        }
        impl Mask for $m {
            #[inline(always)]
            fn any(self) -> bool {
                // SAFETY: a value exists, so the processor has the instruction
                unsafe { $movemask(self.0.0) != 0 }
            }
            #[inline(always)]
            fn all(self) -> bool {
                // SAFETY: a value exists, so the processor has the instruction
                unsafe { $movemask(self.0.0) == (1 << $n) - 1 }
            }
        }

        impl Simd for $v {
            type E = $e;
            const N: usize = $n;
            fn available() -> bool {
                is_x86_feature_detected!("avx2")
            }
            #[inline(always)]
            unsafe fn load(p: *const $e) -> Self {
                // SAFETY: the caller vouches for the memory and the processor
                unsafe { $v($load(p)) }
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $e) {
                // SAFETY: the caller vouches for the memory
                unsafe { $store(p, self.0) }
            }
        }
    };
}

/// AVX-512: a mask is an integer with one bit per lane.
macro_rules! avx512 {
    ($v:ident, $m:ident, $bits:ty, $and:ident $or:ident $xor:ident $andnot:ident
     $cmp:ident $blend:ident) => {
        bitwise!($v, and $and, or $or, xor $xor, andnot $andnot);

        impl $v {
            #[inline(always)]
            fn compare<const C: i32>(self, o: Self) -> $m {
                // SAFETY: a value exists, so the processor has the instruction
                unsafe { $m($cmp::<C>(self.0, o.0)) }
            }
            #[inline(always)]
            fn blend(m: $m, a: Self, b: Self) -> Self {
                // SAFETY: a value exists, so the processor has the instruction
                unsafe { $v($blend(m.0, b.0, a.0)) }
            }
        }

        #[doc = concat!("One flag for each lane of [`", stringify!($v), "`].")]
        #[derive(Clone, Copy, Debug)]
        pub struct $m($bits);

        impl BitAnd for $m {
            type Output = Self;
            #[inline(always)]
            fn bitand(self, o: Self) -> Self {
                $m(self.0 & o.0)
            }
        }
        impl BitOr for $m {
            type Output = Self;
            #[inline(always)]
            fn bitor(self, o: Self) -> Self {
                $m(self.0 | o.0)
            }
        }
        impl Not for $m {
            type Output = Self;
            #[inline(always)]
            fn not(self) -> Self {
                $m(!self.0)
            }
        }
        impl Mask for $m {
            #[inline(always)]
            fn any(self) -> bool {
                self.0 != 0
            }
            #[inline(always)]
            fn all(self) -> bool {
                self.0 == <$bits>::MAX
            }
        }
    };
}

/// Returns `true` if the processor has the required parts of AVX-512.
fn avx512_available() -> bool {
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")
}

register!(
    /// Four `f64` (AVX2).
    D4, MaskD4, __m256d, f64,
    _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_sqrt_pd _mm256_set1_pd _mm256_min_pd _mm256_max_pd
);
avx!(
    D4, MaskD4, 4, f64, _mm256_and_pd _mm256_or_pd _mm256_xor_pd _mm256_andnot_pd
    _mm256_cmp_pd _mm256_blendv_pd _mm256_movemask_pd _mm256_loadu_pd _mm256_storeu_pd
);
register!(
    /// Eight `f32` (AVX2).
    S8, MaskS8, __m256, f32,
    _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_div_ps _mm256_sqrt_ps _mm256_set1_ps _mm256_min_ps _mm256_max_ps
);
avx!(
    S8, MaskS8, 8, f32, _mm256_and_ps _mm256_or_ps _mm256_xor_ps _mm256_andnot_ps
    _mm256_cmp_ps _mm256_blendv_ps _mm256_movemask_ps _mm256_loadu_ps _mm256_storeu_ps
);
register!(
    /// Eight `f64` (AVX-512).
    D8, MaskD8, __m512d, f64,
    _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd _mm512_sqrt_pd _mm512_set1_pd _mm512_min_pd _mm512_max_pd
);
avx512!(
    D8, MaskD8, u8, _mm512_and_pd _mm512_or_pd _mm512_xor_pd _mm512_andnot_pd
    _mm512_cmp_pd_mask _mm512_mask_blend_pd
);
register!(
    /// Sixteen `f32` (AVX-512).
    S16, MaskS16, __m512, f32,
    _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_div_ps _mm512_sqrt_ps _mm512_set1_ps _mm512_min_ps _mm512_max_ps
);
avx512!(
    S16, MaskS16, u16, _mm512_and_ps _mm512_or_ps _mm512_xor_ps _mm512_andnot_ps
    _mm512_cmp_ps_mask _mm512_mask_blend_ps
);

impl Simd for D8 {
    type E = f64;
    const N: usize = 8;
    fn available() -> bool {
        avx512_available()
    }
    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        // SAFETY: the caller vouches for the memory and the processor
        unsafe { D8(_mm512_loadu_pd(p)) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        // SAFETY: the caller vouches for the memory
        unsafe { _mm512_storeu_pd(p, self.0) }
    }
}

impl Simd for S16 {
    type E = f32;
    const N: usize = 16;
    fn available() -> bool {
        avx512_available()
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller vouches for the memory and the processor
        unsafe { S16(_mm512_loadu_ps(p)) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the caller vouches for the memory
        unsafe { _mm512_storeu_ps(p, self.0) }
    }
    #[inline(always)]
    unsafe fn load2(p: *const f32, stride: usize) -> Self {
        // SAFETY: the caller vouches for both rows
        unsafe {
            let low = _mm512_castps256_ps512(_mm256_loadu_ps(p));
            S16(_mm512_insertf32x8::<1>(low, _mm256_loadu_ps(p.add(stride))))
        }
    }
    #[inline(always)]
    unsafe fn store2(self, p: *mut f32, stride: usize) {
        // SAFETY: the caller vouches for both rows
        unsafe {
            _mm256_storeu_ps(p, _mm512_castps512_ps256(self.0));
            _mm256_storeu_ps(p.add(stride), _mm512_extractf32x8_ps::<1>(self.0));
        }
    }
}
