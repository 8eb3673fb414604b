//! Characteristic variables: amplitudes of the waves along one axis, in which slopes may be limited.
//!
//! Differences of primitive variables are projected with the sound speed of the cell whose slope is computed (Toro 2009, sec. 3.2.2; Stone et
//! al. 2008, ApJS 178, 137, appendix A). The limiters are homogeneous, so that the lengths of the eigenvectors do not matter. Mirrored
//! differences give exactly mirrored amplitudes.
use nestar_device::{Lane, device};

/// Returns the coefficients of [`project`] and [`restore`] for a primitive state: `1 / (2 c^2)`, `rho / (2 c)`, `c / rho`, `c^2`.
#[device]
pub fn basis<R: Lane>(w: &[R; 5], gamma: R) -> [R; 4] {
    let volume = 1.0 / w[0];
    let c2 = gamma * w[4] * volume;
    let c = c2.sqrt();
    let inverse = 1.0 / c;
    [
        0.5 * inverse * inverse,
        0.5 * w[0] * inverse,
        c * volume,
        c2,
    ]
}

/// Returns the wave amplitudes of a difference of primitive variables: sound to the left, entropy, both shears, sound to the right.
///
/// The first velocity is the one along the axis.
#[device]
pub fn project<R: Lane>(dw: &[R; 5], basis: &[R; 4]) -> [R; 5] {
    let pressure = dw[4] * basis[0];
    let velocity = dw[1] * basis[1];
    [
        pressure - velocity,
        dw[0] - 2.0 * pressure,
        dw[2],
        dw[3],
        pressure + velocity,
    ]
}

/// Returns the difference of primitive variables of wave amplitudes, the inverse of [`project`].
#[device]
pub fn restore<R: Lane>(waves: &[R; 5], basis: &[R; 4]) -> [R; 5] {
    let sound = waves[0] + waves[4];
    [
        sound + waves[1],
        basis[2] * (waves[4] - waves[0]),
        waves[2],
        waves[3],
        basis[3] * sound,
    ]
}
