//! Every function of `math`.
use nestar_device::math::*;
use nestar_device::{Real, device};

#[device]
pub fn exponentials<R: Real>(x: &[R; 2]) -> [R; 8] {
    [
        exp(x[0]),
        ln(x[1]),
        pow(x[0], x[1]),
        exp_m1(x[0]),
        log10(x[1]),
        sqrt(x[1]),
        ln_1p(x[1]),
        ln_ratio(x[1], x[0]),
    ]
}

#[device]
pub fn trigonometry<R: Real>(x: &[R; 2]) -> [R; 5] {
    [
        sin(x[0]),
        cos(x[0]),
        tan(x[0]),
        atan(x[0]),
        atan2(x[0], x[1]),
    ]
}

#[device]
pub fn hyperbolics<R: Real>(x: &[R; 1]) -> [R; 4] {
    [sinh(x[0]), cosh(x[0]), tanh(x[0]), erf(x[0])]
}

#[device]
pub fn sums<R: Real>(x: &[R; 4]) -> [R; 2] {
    [sum3(x[0], x[1], x[2]), sum4(x[0], x[1], x[2], x[3])]
}
