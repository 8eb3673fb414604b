//! Power function, until the device runtime's own is there.
use nestar_device::{Real, device};

/// 15 significant bits, so that k * LN2_HI is exact in f32 and f64 alike.
#[device]
pub const LN2_HI: f64 = 0.693145751953125;
#[device]
pub const LN2_LO: f64 = 1.42860682030941723212e-6;

/// Natural logarithm; NaN below 0, -inf at 0.
#[device]
pub fn ln<R: Real>(x: R) -> R {
    if x.is_nan() || x < 0.0 {
        return (x - x) / 0.0;
    }
    if x == 0.0 {
        return -R::INFINITY;
    }
    if !x.is_finite() {
        return x;
    }
    let (mut m, mut k) = x.frexp();
    if m < 0.70710678118654752 {
        m = m * 2.0;
        k -= 1;
    }
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut p = R::lit(0.0);
    // atanh series in z, 2/(2i+3)
    for i in 0..12 {
        p = p * z + 2.0 / R::from_i32(2 * (11 - i) + 3);
    }
    let hfsq = 0.5 * f * f;
    let t = R::from_i32(k);
    t * R::lit(LN2_HI) - ((hfsq - (s * (hfsq + z * p) + t * R::lit(LN2_LO))) - f)
}

#[device]
pub fn exp<R: Real>(x: R) -> R {
    if x.is_nan() || x > 800.0 {
        return x * R::INFINITY;
    }
    if x < -800.0 {
        return 0.0;
    }
    let k = (x * 1.4426950408889634 + 0.5).floor();
    let hi = x - k * R::lit(LN2_HI);
    let r = hi - k * R::lit(LN2_LO);
    let mut p = R::lit(1.0);
    for i in 0..14 {
        p = 1.0 + r * p / R::from_i32(14 - i);
    }
    p.ldexp(k.to_i32())
}

#[device]
pub fn pow<R: Real>(x: R, y: R) -> R {
    exp(y * ln(x))
}
