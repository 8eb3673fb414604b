//! Every function of `math`.
use nestar_device::math::*;
use nestar_device::{Real, device};

#[device]
pub fn exponentials<R: Real>(x: &[R; 2]) -> [R; 3] {
    [exp(x[0]), ln(x[1]), pow(x[0], x[1])]
}

#[device]
pub fn sums<R: Real>(x: &[R; 4]) -> [R; 2] {
    [sum3(x[0], x[1], x[2]), sum4(x[0], x[1], x[2], x[3])]
}
