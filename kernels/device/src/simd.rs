//! Lane types: `Arr` (array of scalars), `x86` intrinsics, optionally `wide`, and the scalars themselves with one lane.
use crate::{Lane, Mask, Num, Real};
use std::ops::*;
pub trait Simd: Lane {
    type E: Real; const N: usize;
    unsafe fn load(p: *const Self::E) -> Self;
    unsafe fn store(self, p: *mut Self::E);
    /// rows of 8: one row, or two rows `s` apart when there are 16 lanes
    #[inline(always)] unsafe fn load2(p: *const Self::E, _s: usize) -> Self { unsafe { Self::load(p) } }
    #[inline(always)] unsafe fn store2(self, p: *mut Self::E, _s: usize) { unsafe { self.store(p) } }
    #[inline(always)] fn hmax(self) -> Self::E { let mut b = [Self::E::lit(0.0); 16]; unsafe { self.store(b.as_mut_ptr()) } let mut m = b[0]; for i in 1..Self::N { m = Num::max(m, b[i]) } m }
}
macro_rules! scalar { ($t:ty) => { impl Simd for $t { type E = $t; const N: usize = 1;
    #[inline(always)] unsafe fn load(p: *const $t) -> $t { unsafe { *p } } #[inline(always)] unsafe fn store(self, p: *mut $t) { unsafe { *p = self } } } } }
scalar!(f32); scalar!(f64);

// ---- own newtype over an array, plain loops ----
#[derive(Clone, Copy)] #[repr(C, align(64))] pub struct Arr<T, const N: usize>(pub [T; N]);
#[derive(Clone, Copy)] pub struct AMask<const N: usize>([bool; N]);
macro_rules! aop { ($tr:ident $f:ident $tra:ident $fa:ident) => {
    impl<T: Real, const N: usize> $tr for Arr<T, N> { type Output = Self; #[inline(always)] fn $f(self, o: Self) -> Self { Arr(std::array::from_fn(|i| $tr::$f(self.0[i], o.0[i]))) } }
    impl<T: Real, const N: usize> $tra for Arr<T, N> { #[inline(always)] fn $fa(&mut self, o: Self) { *self = $tr::$f(*self, o) } }
} }
aop!(Add add AddAssign add_assign); aop!(Sub sub SubAssign sub_assign); aop!(Mul mul MulAssign mul_assign); aop!(Div div DivAssign div_assign);
impl<T: Real, const N: usize> Neg for Arr<T, N> { type Output = Self; #[inline(always)] fn neg(self) -> Self { Arr(self.0.map(|x| -x)) } }
impl<const N: usize> BitAnd for AMask<N> { type Output = Self; #[inline(always)] fn bitand(self, o: Self) -> Self { AMask(std::array::from_fn(|i| self.0[i] & o.0[i])) } }
impl<const N: usize> BitOr for AMask<N> { type Output = Self; #[inline(always)] fn bitor(self, o: Self) -> Self { AMask(std::array::from_fn(|i| self.0[i] | o.0[i])) } }
impl<const N: usize> Not for AMask<N> { type Output = Self; #[inline(always)] fn not(self) -> Self { AMask(self.0.map(|x| !x)) } }
impl<const N: usize> Mask for AMask<N> { fn any(self) -> bool { self.0.iter().any(|x| *x) } fn all(self) -> bool { self.0.iter().all(|x| *x) } }
macro_rules! acmp { ($($f:ident)*) => { $(#[inline(always)] fn $f(self, o: Self) -> AMask<N> { AMask(std::array::from_fn(|i| Num::$f(self.0[i], o.0[i]))) })* } }
impl<T: Real, const N: usize> Num for Arr<T, N> { type Mask = AMask<N>; acmp!(lt le gt ge eq ne);
    #[inline(always)] fn select(m: AMask<N>, a: Self, b: Self) -> Self { Arr(std::array::from_fn(|i| if m.0[i] { a.0[i] } else { b.0[i] })) }
    #[inline(always)] fn abs(self) -> Self { Arr(self.0.map(|x| Num::abs(x))) } }
impl<T: Real, const N: usize> Lane for Arr<T, N> {
    #[inline(always)] fn lit(x: f64) -> Self { Arr([T::lit(x); N]) }
    #[inline(always)] fn sqrt(self) -> Self { Arr(self.0.map(|x| Lane::sqrt(x))) }
    #[inline(always)] fn copysign(self, s: Self) -> Self { Arr(std::array::from_fn(|i| Lane::copysign(self.0[i], s.0[i]))) } }
impl<T: Real, const N: usize> Simd for Arr<T, N> { type E = T; const N: usize = N;
    #[inline(always)] unsafe fn load(p: *const T) -> Self { Arr(unsafe { (p as *const [T; N]).read_unaligned() }) }
    #[inline(always)] unsafe fn store(self, p: *mut T) { unsafe { (p as *mut [T; N]).write_unaligned(self.0) } }
    #[inline(always)] unsafe fn load2(p: *const T, s: usize) -> Self { Arr(std::array::from_fn(|i| unsafe { *p.add(i % 8 + i / 8 * s) })) }
    #[inline(always)] unsafe fn store2(self, p: *mut T, s: usize) { for i in 0..N { unsafe { *p.add(i % 8 + i / 8 * s) = self.0[i] } } } }

// ---- intrinsics ----
#[cfg(target_arch = "x86_64")]
pub mod x86 {
    use super::*; use std::arch::x86_64::*;
    macro_rules! common { ($v:ident, $m:ident, $raw:ty, $e:ty, $n:expr, $add:ident $sub:ident $mul:ident $div:ident $sqrt:ident $set1:ident $load:ident $store:ident $min:ident $max:ident) => {
        #[derive(Clone, Copy)] #[repr(transparent)] pub struct $v(pub $raw);
        impl Add for $v { type Output = Self; #[inline(always)] fn add(self, o: Self) -> Self { unsafe { $v($add(self.0, o.0)) } } }
        impl Sub for $v { type Output = Self; #[inline(always)] fn sub(self, o: Self) -> Self { unsafe { $v($sub(self.0, o.0)) } } }
        impl Mul for $v { type Output = Self; #[inline(always)] fn mul(self, o: Self) -> Self { unsafe { $v($mul(self.0, o.0)) } } }
        impl Div for $v { type Output = Self; #[inline(always)] fn div(self, o: Self) -> Self { unsafe { $v($div(self.0, o.0)) } } }
        impl AddAssign for $v { #[inline(always)] fn add_assign(&mut self, o: Self) { *self = *self + o } }
        impl SubAssign for $v { #[inline(always)] fn sub_assign(&mut self, o: Self) { *self = *self - o } }
        impl MulAssign for $v { #[inline(always)] fn mul_assign(&mut self, o: Self) { *self = *self * o } }
        impl DivAssign for $v { #[inline(always)] fn div_assign(&mut self, o: Self) { *self = *self / o } }
        impl Neg for $v { type Output = Self; #[inline(always)] fn neg(self) -> Self { self.xor(Self::lit(-0.0)) } }
        impl Lane for $v {
            #[inline(always)] fn lit(x: f64) -> Self { unsafe { $v($set1(x as $e)) } }
            #[inline(always)] fn sqrt(self) -> Self { unsafe { $v($sqrt(self.0)) } }
            #[inline(always)] fn copysign(self, s: Self) -> Self { let z = Self::lit(-0.0); z.andnot(self).or(z.and(s)) }
        }
        impl Num for $v { type Mask = $m;
            #[inline(always)] fn lt(self, o: Self) -> $m { self.cmp::<_CMP_LT_OQ>(o) } #[inline(always)] fn le(self, o: Self) -> $m { self.cmp::<_CMP_LE_OQ>(o) }
            #[inline(always)] fn gt(self, o: Self) -> $m { self.cmp::<_CMP_GT_OQ>(o) } #[inline(always)] fn ge(self, o: Self) -> $m { self.cmp::<_CMP_GE_OQ>(o) }
            #[inline(always)] fn eq(self, o: Self) -> $m { self.cmp::<_CMP_EQ_OQ>(o) } #[inline(always)] fn ne(self, o: Self) -> $m { self.cmp::<_CMP_NEQ_UQ>(o) }
            #[inline(always)] fn select(m: $m, a: Self, b: Self) -> Self { Self::blend(m, a, b) }
            /// MINPD is exactly `a < b ? a : b`
            #[inline(always)] fn min(self, o: Self) -> Self { unsafe { $v($min(self.0, o.0)) } }
            #[inline(always)] fn max(self, o: Self) -> Self { unsafe { $v($max(self.0, o.0)) } }
            #[inline(always)] fn abs(self) -> Self { Self::lit(-0.0).andnot(self) }
        }
    } }
    macro_rules! avx { ($v:ident, $m:ident, $raw:ty, $e:ty, $n:expr, $and:ident $or:ident $xor:ident $andnot:ident $cmp:ident $blendv:ident $movemask:ident, $load:ident $store:ident, $($r:tt)*) => {
        common!($v, $m, $raw, $e, $n, $($r)*);
        #[derive(Clone, Copy)] pub struct $m($raw);
        impl $v {
            #[inline(always)] fn and(self, o: Self) -> Self { unsafe { $v($and(self.0, o.0)) } } #[inline(always)] fn or(self, o: Self) -> Self { unsafe { $v($or(self.0, o.0)) } }
            #[inline(always)] fn xor(self, o: Self) -> Self { unsafe { $v($xor(self.0, o.0)) } } #[inline(always)] fn andnot(self, o: Self) -> Self { unsafe { $v($andnot(self.0, o.0)) } }
            #[inline(always)] fn cmp<const C: i32>(self, o: Self) -> $m { unsafe { $m($cmp::<C>(self.0, o.0)) } }
            #[inline(always)] fn blend(m: $m, a: Self, b: Self) -> Self { unsafe { $v($blendv(b.0, a.0, m.0)) } }
        }
        impl BitAnd for $m { type Output = Self; #[inline(always)] fn bitand(self, o: Self) -> Self { unsafe { $m($and(self.0, o.0)) } } }
        impl BitOr for $m { type Output = Self; #[inline(always)] fn bitor(self, o: Self) -> Self { unsafe { $m($or(self.0, o.0)) } } }
        impl Not for $m { type Output = Self; #[inline(always)] fn not(self) -> Self { unsafe { let z = $v::lit(0.0); $m($xor(self.0, $cmp::<_CMP_EQ_OQ>(z.0, z.0))) } } }
        impl Mask for $m { #[inline(always)] fn any(self) -> bool { unsafe { $movemask(self.0) != 0 } } #[inline(always)] fn all(self) -> bool { unsafe { $movemask(self.0) == (1 << $n) - 1 } } }
        impl Simd for $v { type E = $e; const N: usize = $n;
            #[inline(always)] unsafe fn load(p: *const $e) -> Self { unsafe { $v($load(p)) } }
            #[inline(always)] unsafe fn store(self, p: *mut $e) { unsafe { $store(p, self.0) } } }
    } }
    avx!(D4, MD4, __m256d, f64, 4, _mm256_and_pd _mm256_or_pd _mm256_xor_pd _mm256_andnot_pd _mm256_cmp_pd _mm256_blendv_pd _mm256_movemask_pd, _mm256_loadu_pd _mm256_storeu_pd,
        _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_sqrt_pd _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_min_pd _mm256_max_pd);
    avx!(S8, MS8, __m256, f32, 8, _mm256_and_ps _mm256_or_ps _mm256_xor_ps _mm256_andnot_ps _mm256_cmp_ps _mm256_blendv_ps _mm256_movemask_ps, _mm256_loadu_ps _mm256_storeu_ps,
        _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_div_ps _mm256_sqrt_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_min_ps _mm256_max_ps);
    
    macro_rules! avx512 { ($v:ident, $m:ident, $raw:ty, $k:ty, $e:ty, $n:expr, $and:ident $or:ident $xor:ident $andnot:ident $cmp:ident $blend:ident, $load:ident $store:ident, {$($l2:tt)*}, $($r:tt)*) => {
        common!($v, $m, $raw, $e, $n, $($r)*);
        #[derive(Clone, Copy)] pub struct $m($k);
        impl $v {
            #[inline(always)] fn and(self, o: Self) -> Self { unsafe { $v($and(self.0, o.0)) } } #[inline(always)] fn or(self, o: Self) -> Self { unsafe { $v($or(self.0, o.0)) } }
            #[inline(always)] fn xor(self, o: Self) -> Self { unsafe { $v($xor(self.0, o.0)) } } #[inline(always)] fn andnot(self, o: Self) -> Self { unsafe { $v($andnot(self.0, o.0)) } }
            #[inline(always)] fn cmp<const C: i32>(self, o: Self) -> $m { unsafe { $m($cmp::<C>(self.0, o.0)) } }
            #[inline(always)] fn blend(m: $m, a: Self, b: Self) -> Self { unsafe { $v($blend(m.0, b.0, a.0)) } }
        }
        impl BitAnd for $m { type Output = Self; #[inline(always)] fn bitand(self, o: Self) -> Self { $m(self.0 & o.0) } }
        impl BitOr for $m { type Output = Self; #[inline(always)] fn bitor(self, o: Self) -> Self { $m(self.0 | o.0) } }
        impl Not for $m { type Output = Self; #[inline(always)] fn not(self) -> Self { $m(!self.0) } }
        impl Mask for $m { #[inline(always)] fn any(self) -> bool { self.0 != 0 } #[inline(always)] fn all(self) -> bool { self.0 == <$k>::MAX } }
        impl Simd for $v { type E = $e; const N: usize = $n;
            #[inline(always)] unsafe fn load(p: *const $e) -> Self { unsafe { $v($load(p)) } }
            #[inline(always)] unsafe fn store(self, p: *mut $e) { unsafe { $store(p, self.0) } } $($l2)* }
    } }
    
    avx512!(D8, MD8, __m512d, u8, f64, 8, _mm512_and_pd _mm512_or_pd _mm512_xor_pd _mm512_andnot_pd _mm512_cmp_pd_mask _mm512_mask_blend_pd, _mm512_loadu_pd _mm512_storeu_pd, {},
        _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd _mm512_sqrt_pd _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_min_pd _mm512_max_pd);
    
    avx512!(S16, MS16, __m512, u16, f32, 16, _mm512_and_ps _mm512_or_ps _mm512_xor_ps _mm512_andnot_ps _mm512_cmp_ps_mask _mm512_mask_blend_ps, _mm512_loadu_ps _mm512_storeu_ps, {
            #[inline(always)] unsafe fn load2(p: *const f32, s: usize) -> Self { unsafe { S16(_mm512_insertf32x8::<1>(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(p.add(s)))) } }
            #[inline(always)] unsafe fn store2(self, p: *mut f32, s: usize) { unsafe { _mm256_storeu_ps(p, _mm512_castps512_ps256(self.0)); _mm256_storeu_ps(p.add(s), _mm512_extractf32x8_ps::<1>(self.0)) } }
        },
        _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_div_ps _mm512_sqrt_ps _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_min_ps _mm512_max_ps);
}

// ---- the `wide` crate ----
#[cfg(feature = "wide")]
pub mod wid {
    use super::*; use ::wide as w; use w::*;
    macro_rules! wide { ($v:ident, $m:ident, $raw:ident, $e:ty, $n:expr) => {
        #[derive(Clone, Copy)] pub struct $v(pub $raw); #[derive(Clone, Copy)] pub struct $m($raw);
        impl Add for $v { type Output = Self; #[inline(always)] fn add(self, o: Self) -> Self { $v(self.0 + o.0) } }
        impl Sub for $v { type Output = Self; #[inline(always)] fn sub(self, o: Self) -> Self { $v(self.0 - o.0) } }
        impl Mul for $v { type Output = Self; #[inline(always)] fn mul(self, o: Self) -> Self { $v(self.0 * o.0) } }
        impl Div for $v { type Output = Self; #[inline(always)] fn div(self, o: Self) -> Self { $v(self.0 / o.0) } }
        impl AddAssign for $v { #[inline(always)] fn add_assign(&mut self, o: Self) { *self = *self + o } }
        impl SubAssign for $v { #[inline(always)] fn sub_assign(&mut self, o: Self) { *self = *self - o } }
        impl MulAssign for $v { #[inline(always)] fn mul_assign(&mut self, o: Self) { *self = *self * o } }
        impl DivAssign for $v { #[inline(always)] fn div_assign(&mut self, o: Self) { *self = *self / o } }
        impl Neg for $v { type Output = Self; #[inline(always)] fn neg(self) -> Self { $v(-self.0) } }
        impl Lane for $v {
            #[inline(always)] fn lit(x: f64) -> Self { $v($raw::splat(x as $e)) }
            #[inline(always)] fn sqrt(self) -> Self { $v(self.0.sqrt()) }
            #[inline(always)] fn copysign(self, s: Self) -> Self { $v(self.0.copysign(s.0)) }
        }
        impl Num for $v { type Mask = $m;
            #[inline(always)] fn lt(self, o: Self) -> $m { $m(self.0.simd_lt(o.0)) } #[inline(always)] fn le(self, o: Self) -> $m { $m(self.0.simd_le(o.0)) }
            #[inline(always)] fn gt(self, o: Self) -> $m { $m(self.0.simd_gt(o.0)) } #[inline(always)] fn ge(self, o: Self) -> $m { $m(self.0.simd_ge(o.0)) }
            #[inline(always)] fn eq(self, o: Self) -> $m { $m(self.0.simd_eq(o.0)) } #[inline(always)] fn ne(self, o: Self) -> $m { $m(self.0.simd_ne(o.0)) }
            #[inline(always)] fn select(m: $m, a: Self, b: Self) -> Self { $v(m.0.select(a.0, b.0)) }
            #[inline(always)] fn abs(self) -> Self { $v(self.0.abs()) }
        }
        impl BitAnd for $m { type Output = Self; #[inline(always)] fn bitand(self, o: Self) -> Self { $m(self.0 & o.0) } }
        impl BitOr for $m { type Output = Self; #[inline(always)] fn bitor(self, o: Self) -> Self { $m(self.0 | o.0) } }
        impl Not for $m { type Output = Self; #[inline(always)] fn not(self) -> Self { $m(!self.0) } }
        impl Mask for $m { fn any(self) -> bool { self.0.any() } fn all(self) -> bool { self.0.all() } }
        impl Simd for $v { type E = $e; const N: usize = $n;
            #[inline(always)] unsafe fn load(p: *const $e) -> Self { $v($raw::new(unsafe { (p as *const [$e; $n]).read_unaligned() })) }
            #[inline(always)] unsafe fn store(self, p: *mut $e) { unsafe { (p as *mut [$e; $n]).write_unaligned(self.0.to_array()) } }
            #[inline(always)] unsafe fn load2(p: *const $e, s: usize) -> Self { unsafe { if $n == 16 { let mut b = [0.0 as $e; $n]; (b.as_mut_ptr() as *mut [$e; 8]).write((p as *const [$e; 8]).read_unaligned()); (b.as_mut_ptr().add($n - 8) as *mut [$e; 8]).write_unaligned((p.add(s) as *const [$e; 8]).read_unaligned()); $v($raw::new(b)) } else { Self::load(p) } } }
            #[inline(always)] unsafe fn store2(self, p: *mut $e, s: usize) { unsafe { if $n == 16 { let b = self.0.to_array(); (p as *mut [$e; 8]).write_unaligned((b.as_ptr() as *const [$e; 8]).read_unaligned()); (p.add(s) as *mut [$e; 8]).write_unaligned((b.as_ptr().add($n - 8) as *const [$e; 8]).read_unaligned()) } else { self.store(p) } } }
        }
    } }
    wide!(W4, MW4, f64x4, f64, 4); wide!(W8, MW8, f64x8, f64, 8); wide!(WS8, MWS8, f32x8, f32, 8); wide!(WS16, MWS16, f32x16, f32, 16);
}
