//! Elementary functions to about 100 bits: sums of two doubles, by series and Newton steps.
#![allow(dead_code, reason = "each test takes what it needs")]
use nestar_device::Real;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An unevaluated sum `high + low`.
#[derive(Clone, Copy, Debug)]
pub struct Pair(pub f64, pub f64);

pub const LN2: [f64; 3] = [
    std::f64::consts::LN_2,
    2.3190468138462996e-17,
    5.707708438416212e-34,
];
pub const HALF_PI: [f64; 3] = [
    std::f64::consts::FRAC_PI_2,
    6.123233995736766e-17,
    -1.4973849048591698e-33,
];

fn two_sum(a: f64, b: f64) -> Pair {
    let s = a + b;
    let t = s - a;
    Pair(s, (a - (s - t)) + (b - t))
}

fn fast(a: f64, b: f64) -> Pair {
    let s = a + b;
    Pair(s, b - (s - a))
}

impl From<f64> for Pair {
    fn from(x: f64) -> Pair {
        Pair(x, 0.0)
    }
}
impl Neg for Pair {
    type Output = Pair;
    fn neg(self) -> Pair {
        Pair(-self.0, -self.1)
    }
}
impl Add for Pair {
    type Output = Pair;
    fn add(self, o: Pair) -> Pair {
        let (s, t) = (two_sum(self.0, o.0), two_sum(self.1, o.1));
        let u = fast(s.0, s.1 + t.0);
        fast(u.0, u.1 + t.1)
    }
}
impl Sub for Pair {
    type Output = Pair;
    fn sub(self, o: Pair) -> Pair {
        self + -o
    }
}
impl Mul for Pair {
    type Output = Pair;
    fn mul(self, o: Pair) -> Pair {
        let p = self.0 * o.0;
        let e = self.0.mul_add(o.0, -p);
        fast(p, e + (self.0 * o.1 + self.1 * o.0))
    }
}
impl Div for Pair {
    type Output = Pair;
    fn div(self, o: Pair) -> Pair {
        let q = self.0 / o.0;
        let r = self - o * Pair::from(q);
        let q2 = r.0 / o.0;
        let r = r - o * Pair::from(q2);
        fast(q, q2) + Pair::from(r.0 / o.0)
    }
}

impl Pair {
    fn scaled(self, power_of_two: f64) -> Pair {
        Pair(self.0 * power_of_two, self.1 * power_of_two)
    }
}

/// `x - n (c0 + c1 + c2)`.
fn reduce(x: Pair, n: f64, c: [f64; 3]) -> Pair {
    c.iter().fold(x, |x, c| x - Pair::from(n) * Pair::from(*c))
}

/// `(e^r - 1, k)` with `x = r + k ln 2`.
fn exp_m1_reduced(x: Pair) -> (Pair, f64) {
    let k = (x.0 / LN2[0]).round();
    let r = reduce(x, k, LN2).scaled(1.0 / 512.0);
    let mut sum = Pair(0.0, 0.0);
    for n in (1..=10).rev() {
        sum = (sum + Pair(1.0, 0.0)) * r / Pair::from(n as f64);
    }
    for _ in 0..9 {
        sum = sum.scaled(2.0) + sum * sum;
    }
    (sum, k)
}

/// `(e^x 2^-k, k)`: the caller scales, so that nothing over- or underflows here.
pub fn exp(x: Pair) -> (Pair, f64) {
    let (e, k) = exp_m1_reduced(x);
    (e + Pair(1.0, 0.0), k)
}

pub fn exp_m1(x: f64) -> Pair {
    let (e, k) = exp_m1_reduced(x.into());
    if k == 0.0 {
        e
    } else {
        (e + Pair(1.0, 0.0)).scaled(k.exp2()) - Pair(1.0, 0.0)
    }
}

pub fn ln(x: f64) -> Pair {
    if (x - 1.0).abs() < 0.01 {
        let s = Pair::from(x - 1.0) / (Pair::from(x) + Pair(1.0, 0.0));
        let mut sum = Pair(0.0, 0.0);
        for n in (0..12).rev() {
            sum = sum * s * s + Pair(1.0, 0.0) / Pair::from((2 * n + 1) as f64);
        }
        return (sum * s).scaled(2.0);
    }
    // scaled to keep products with the exponential in range
    let k = x.log2().floor();
    let half = (-k / 2.0).trunc();
    let m = x * half.exp2() * (-k - half).exp2();
    let y = m.ln();
    let (e, n) = exp((-y).into());
    let d = (e.scaled(n.exp2()) * Pair::from(m)) - Pair(1.0, 0.0);
    let ln_m = Pair::from(y) + d - (d * d).scaled(0.5);
    LN2.iter()
        .rev()
        .fold(ln_m, |sum, c| sum + Pair::from(k) * Pair::from(*c))
}

/// From the logarithm by one step of Newton's method, which needs 1 + x as a pair alone.
pub fn ln_1p(x: f64) -> Pair {
    if x.abs() < 1e-3 {
        // 2 artanh(x / (2 + x))
        let s = Pair::from(x) / (Pair::from(2.0) + Pair::from(x));
        let mut sum = Pair(0.0, 0.0);
        for n in (0..12).rev() {
            sum = sum * s * s + Pair(1.0, 0.0) / Pair::from((2 * n + 1) as f64);
        }
        return (sum * s).scaled(2.0);
    }
    let whole = Pair::from(1.0) + Pair::from(x);
    let rest = Pair::from(whole.1) / Pair::from(whole.0);
    ln(whole.0) + rest - (rest * rest).scaled(0.5)
}

/// `(sin x, cos x)` for `|x|` up to 10^5.
pub fn sin_cos(x: Pair) -> (Pair, Pair) {
    let n = (x.0 / HALF_PI[0]).round();
    let r = reduce(x, n, HALF_PI);
    let (mut sine, mut cosine) = (Pair(0.0, 0.0), Pair(0.0, 0.0));
    for k in (0..16).rev() {
        let k = k as f64;
        let next = |sum: Pair, a: f64, b: f64| Pair(1.0, 0.0) - sum * r * r / Pair::from(a * b);
        sine = next(sine, 2.0 * k + 2.0, 2.0 * k + 3.0);
        cosine = next(cosine, 2.0 * k + 1.0, 2.0 * k + 2.0);
    }
    let sine = sine * r;
    match (n as i64).rem_euclid(4) {
        0 => (sine, cosine),
        1 => (cosine, -sine),
        2 => (-sine, -cosine),
        _ => (-cosine, sine),
    }
}

pub fn tan(x: f64) -> Pair {
    let (sine, cosine) = sin_cos(x.into());
    sine / cosine
}

pub fn atan2(y: f64, x: f64) -> Pair {
    let guess = y.atan2(x);
    let (sine, cosine) = sin_cos(guess.into());
    let (x, y) = (Pair::from(x), Pair::from(y));
    Pair::from(guess) + (y * cosine - x * sine) / (x * cosine + y * sine)
}

/// `(sinh x, cosh x)` for `|x| < 700`.
pub fn sinh_cosh(x: f64) -> (Pair, Pair) {
    let e = exp_m1(x);
    let d = e + Pair(1.0, 0.0);
    (
        (e + e / d).scaled(0.5),
        (d + Pair(1.0, 0.0) / d).scaled(0.5),
    )
}

pub fn tanh(x: f64) -> Pair {
    let e = exp_m1(2.0 * x);
    e / (e + Pair(2.0, 0.0))
}

/// By the series with positive terms, `2 / sqrt(pi) e^(-x^2) sum 2^n x^(2n+1) / (2n+1)!!`.
pub fn erf(x: f64) -> Pair {
    let square = Pair::from(x) * Pair::from(x);
    let mut term = Pair::from(x);
    let mut sum = term;
    let mut n = 1.0;
    while term.0.abs() > 1e-40 * sum.0.abs() {
        term = term * square.scaled(2.0) / Pair::from(2.0 * n + 1.0);
        sum = sum + term;
        n += 1.0;
    }
    let (e, k) = exp(-square);
    // 2 / sqrt(pi)
    sum * e.scaled(k.exp2()) * Pair(std::f64::consts::FRAC_2_SQRT_PI, 1.533545961316588e-17)
}

/// Distance of `y` from `exact 2^k` in units in the last place of `y`.
pub fn ulps<R: Real>(y: R, exact: Pair, k: f64) -> f64 {
    let y = y.to_f64();
    let (digits, least) = if size_of::<R>() == 4 {
        (23, -149)
    } else {
        (52, -1074)
    };
    let exponent = (y.abs().to_bits() >> 52) as i32 - 1023;
    let spacing = (exponent - digits).max(least);
    // 2^-k in three steps, since k reaches beyond the range of one
    let step = -(k / 3.0).trunc();
    let scale = |x: f64| x * step.exp2() * step.exp2() * (-k - 2.0 * step).exp2();
    let distance = (scale(y) - exact.0) - exact.1;
    distance.abs() / ((spacing as f64 / 2.0).exp2() * scale((spacing as f64 / 2.0).exp2()))
}
