//! Runtime of `#[device]`: the `Real` numbers, the CUDA items and the assembly of a program text.
extern crate self as nestar_device;
pub mod math;
pub mod simd;
pub use nestar_device_macro::device;
use std::collections::HashSet;

pub enum Piece { Text(&'static str), Item(&'static Item) }
pub enum Kind { Fn, Struct, Const }
pub struct Item {
    pub module: &'static str, pub name: &'static str, pub file: &'static str, pub line: u32, pub kind: Kind,
    pub generics: &'static str, pub proto: &'static [Piece], pub body: &'static [Piece],
}
pub const PRELUDE: &str = include_str!("prelude.cuh");
/// The names are global (`::physics::riemann::hllc`), so a skeleton calls `physics::riemann::hllc<T>(..)`.
impl Item {
    pub fn path(&self) -> String { format!("{}::{}", self.module, self.name) }
    fn text(pieces: &[Piece]) -> String {
        let mut s = String::new();
        let mut it = pieces.iter().peekable();
        while let Some(p) = it.next() {
            match p {
                Piece::Text(t) => s.push_str(t),
                Piece::Item(i) => {
                    s.push_str("::"); s.push_str(&i.path());
                    if let Some(Piece::Text(n)) = it.peek() && let Some(rest) = n.strip_prefix("RS_DEFAULT_ARGS") {
                        if !i.generics.is_empty() { s.push_str(&format!("<{}>", i.generics)) }
                        s.push_str(rest); it.next();
                    }
                }
            }
        }
        s
    }
    fn within(&self, s: &str) -> String {
        let (mut a, mut b) = (String::new(), String::new());
        for m in self.module.split("::") { a.push_str(&format!("namespace {m} {{ ")); b.push_str(" }"); }
        format!("{a}\n#line {} \"{}\"\n{s}\n{b}\n", self.line, self.file)
    }
}
/// Everything `roots` need, dependencies first: constants and structs, prototypes of all functions, bodies.
pub fn program(roots: &[&'static Item]) -> String {
    #[allow(unused)] fn walk(i: &'static Item, seen: &mut HashSet<String>, out: &mut Vec<&'static Item>) {
        if !seen.insert(i.path()) { return }
        for p in i.proto.iter().chain(i.body) { if let Piece::Item(d) = p { walk(d, seen, out) } }
        out.push(i);
    }
    let (mut seen, mut order) = (HashSet::new(), vec![]);
    for r in roots { walk(r, &mut seen, &mut order) }
    let mut s = String::from(PRELUDE);
    for i in order.iter().filter(|i| !matches!(i.kind, Kind::Fn)) { s.push_str(&i.within(&Item::text(i.body))) }
    for i in order.iter().filter(|i| matches!(i.kind, Kind::Fn)) { s.push_str(&i.within(&format!("{};", Item::text(i.proto)))) }
    for i in order.iter().filter(|i| matches!(i.kind, Kind::Fn)) { s.push_str(&i.within(&format!("{} {}", Item::text(i.proto), Item::text(i.body)))) }
    s
}

use std::ops::*;
/// A cell-wise map `fn f<R: Real>(state: S<R>, p1: R, …, pn: R) -> S<R>` (n from 0 to 8), as a type.
///
/// `#[device]` implements it for the companion type `f` of every such function, so that a launcher can be handed the
/// function as `launcher.map_cells::<f>(…)` and run it on the CPU ([`call`](MapFn::call)) or on a GPU
/// ([`ITEM`](MapFn::ITEM)). The scalar parameters come as a slice, in the order of the signature.
pub trait MapFn: 'static {
    /// Type of the first parameter and of the result.
    type State<R: Real>;
    /// Number of scalar parameters after the state.
    const PARAMETERS: usize;
    /// The CUDA C++ text.
    const ITEM: &'static Item;
    /// Calls the function; `p` holds at least `PARAMETERS` values. Panics if it is shorter.
    fn call<R: Real>(state: Self::State<R>, p: &[R]) -> Self::State<R>;
}
/// What a comparison of `R` gives: `bool` for f32/f64, one flag per lane for a lane type.
pub trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> { fn any(self) -> bool; fn all(self) -> bool; }
impl Mask for bool { #[inline(always)] fn any(self) -> bool { self } #[inline(always)] fn all(self) -> bool { self } }
/// min/max/abs/clamp with semantics fixed by US (`a < b ? a : b`), not by the platform: with a NaN operand the SECOND
/// argument comes back, and of two zeros the second.
pub trait Num: Copy {
    type Mask: Mask;
    fn lt(self, o: Self) -> Self::Mask; fn le(self, o: Self) -> Self::Mask; fn gt(self, o: Self) -> Self::Mask; fn ge(self, o: Self) -> Self::Mask;
    fn eq(self, o: Self) -> Self::Mask; fn ne(self, o: Self) -> Self::Mask;
    fn select(m: Self::Mask, a: Self, b: Self) -> Self;
    #[inline(always)] fn min(self, o: Self) -> Self { Self::select(self.lt(o), self, o) }
    #[inline(always)] fn max(self, o: Self) -> Self { Self::select(self.gt(o), self, o) }
    #[inline(always)] fn clamp(self, lo: Self, hi: Self) -> Self { Self::select(self.lt(lo), lo, Self::select(self.gt(hi), hi, self)) }
    fn abs(self) -> Self;
}
macro_rules! scalar_cmp { () => {
    type Mask = bool;
    #[inline(always)] fn lt(self, o: Self) -> bool { self < o } #[inline(always)] fn le(self, o: Self) -> bool { self <= o }
    #[inline(always)] fn gt(self, o: Self) -> bool { self > o } #[inline(always)] fn ge(self, o: Self) -> bool { self >= o }
    #[inline(always)] fn eq(self, o: Self) -> bool { self == o } #[inline(always)] fn ne(self, o: Self) -> bool { self != o }
    #[inline(always)] fn select(m: bool, a: Self, b: Self) -> Self { if m { a } else { b } }
} }
macro_rules! ints { ($($t:ty: $a:expr),*) => { $(impl Num for $t { scalar_cmp!(); #[inline(always)] fn abs(self) -> Self { let f: fn($t) -> $t = $a; f(self) } })* } }
ints!(i32: |x| x.wrapping_abs(), i64: |x| x.wrapping_abs(), u32: |x| x, u64: |x| x, usize: |x| x);

/// What the value-`if` of a lane-capable function becomes.
pub trait Pick<R: Lane>: Copy { fn pick(m: R::Mask, a: Self, b: Self) -> Self; }
impl<R: Lane> Pick<R> for R { #[inline(always)] fn pick(m: R::Mask, a: R, b: R) -> R { R::select(m, a, b) } }
impl<R: Lane, T: Pick<R>, const N: usize> Pick<R> for [T; N] { #[inline(always)] fn pick(m: R::Mask, a: Self, b: Self) -> Self { std::array::from_fn(|i| T::pick(m, a[i], b[i])) } }
impl<R: Lane, A: Pick<R>, B: Pick<R>> Pick<R> for (A, B) { #[inline(always)] fn pick(m: R::Mask, a: Self, b: Self) -> Self { (A::pick(m, a.0, b.0), B::pick(m, a.1, b.1)) } }

/// A floating number, or several in the lanes of a SIMD register: straight-line arithmetic and select only.
pub trait Lane: Num + Neg<Output = Self> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
    + AddAssign + SubAssign + MulAssign + DivAssign + Send + Sync + 'static {
    fn lit(x: f64) -> Self;
    fn sqrt(self) -> Self; fn copysign(self, s: Self) -> Self;
    #[inline(always)] fn is_nan(self) -> Self::Mask { Num::ne(self, self) }
    #[inline(always)] fn recip(self) -> Self { Self::lit(1.0) / self }
    #[inline(always)] fn signum(self) -> Self { Self::lit(1.0).copysign(self) }
    /// repeated squaring in this order on every platform
    #[inline(always)] fn powi(self, n: i32) -> Self {
        let (mut b, mut e, mut r) = (self, n.unsigned_abs(), Self::lit(1.0));
        while e != 0 { if e & 1 == 1 { r = r * b } b = b * b; e >>= 1; }
        if n < 0 { Self::lit(1.0) / r } else { r }
    }
}
pub trait Real: Lane<Mask = bool> + PartialOrd + Rem<Output = Self> + std::fmt::Debug + std::fmt::Display + std::fmt::LowerExp + Default {
    const EPSILON: Self; const MAX: Self; const MIN_POSITIVE: Self; const INFINITY: Self; const PI: Self;
    #[inline(always)] fn from_f64(x: f64) -> Self { Self::lit(x) }
    fn from_i32(x: i32) -> Self; fn from_u32(x: u32) -> Self; fn from_usize(x: usize) -> Self;
    fn to_f64(self) -> f64; fn to_i32(self) -> i32;
    fn mul_add(self, a: Self, b: Self) -> Self;
    fn floor(self) -> Self; fn ceil(self) -> Self; fn trunc(self) -> Self; fn is_finite(self) -> bool;
    /// x = m * 2^e with 0.5 <= |m| < 1 (0, inf, NaN: themselves and 0)
    fn frexp(self) -> (Self, i32);
    /// x * 2^n with one rounding per step of musl's scalbn
    fn ldexp(self, n: i32) -> Self;
    fn bits(self) -> u64; fn from_bits64(b: u64) -> Self;
}
macro_rules! real { ($t:ident, $u:ty, $mant:expr, $bias:expr, $emask:expr) => {
    impl Num for $t { scalar_cmp!(); #[inline(always)] fn abs(self) -> Self { $t::abs(self) } }
    impl Lane for $t {
        #[inline(always)] fn lit(x: f64) -> Self { x as $t }
        #[inline(always)] fn sqrt(self) -> Self { $t::sqrt(self) }
        #[inline(always)] fn copysign(self, s: Self) -> Self { $t::copysign(self, s) }
    }
    impl Real for $t {
        const EPSILON: Self = $t::EPSILON; const MAX: Self = $t::MAX; const MIN_POSITIVE: Self = $t::MIN_POSITIVE; const INFINITY: Self = $t::INFINITY; const PI: Self = std::f64::consts::PI as $t;
        #[inline(always)] fn from_i32(x: i32) -> Self { x as $t }
        #[inline(always)] fn from_u32(x: u32) -> Self { x as $t }
        #[inline(always)] fn from_usize(x: usize) -> Self { x as $t }
        #[inline(always)] fn to_f64(self) -> f64 { self as f64 }
        #[inline(always)] fn to_i32(self) -> i32 { self as i32 }
        #[inline(always)] fn mul_add(self, a: Self, b: Self) -> Self { $t::mul_add(self, a, b) }
        #[inline(always)] fn floor(self) -> Self { $t::floor(self) }
        #[inline(always)] fn ceil(self) -> Self { $t::ceil(self) }
        #[inline(always)] fn trunc(self) -> Self { $t::trunc(self) }
        #[inline(always)] fn is_finite(self) -> bool { $t::is_finite(self) }
        #[inline(always)] fn frexp(self) -> (Self, i32) {
            let mut x = self; let mut k = 0i32;
            if x == 0.0 || !$t::is_finite(x) { return (x, 0) }
            if $t::abs(x) < $t::MIN_POSITIVE { x *= (1u64 << $mant) as $t; k = -$mant; }
            let b = x.to_bits(); let e = ((b >> $mant) & $emask) as i32;
            ($t::from_bits((b & !($emask << $mant)) | ((($bias - 1) as $u) << $mant)), e - ($bias - 1) + k)
        }
        #[inline(always)] fn ldexp(self, n: i32) -> Self {
            let (mut x, mut n) = (self, n);
            let big = $t::from_bits(((2 * $bias) as $u) << $mant);                   // 2^bias
            let tiny = $t::from_bits(((1 + $mant) as $u) << $mant);                  // 2^(1-bias) * 2^mant
            if n > $bias { x *= big; n -= $bias; if n > $bias { x *= big; n -= $bias; if n > $bias { n = $bias } } }
            else if n < 1 - $bias { x *= tiny; n += $bias - 1 - $mant; if n < 1 - $bias { x *= tiny; n += $bias - 1 - $mant; if n < 1 - $bias { n = 1 - $bias } } }
            x * $t::from_bits((($bias + n) as $u) << $mant)
        }
        #[inline(always)] fn bits(self) -> u64 { self.to_bits() as u64 }
        #[inline(always)] fn from_bits64(b: u64) -> Self { $t::from_bits(b as $u) }
    }
} }
real!(f32, u32, 23, 127, 0xffu32);
real!(f64, u64, 52, 1023, 0x7ffu64);
