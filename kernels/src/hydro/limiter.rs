//! Slope limiters for piecewise linear reconstruction (van Leer 1979, J. Comput. Phys. 32, 101).
//!
//! A limiter takes the one-sided differences `a` (to the cell below) and `b` (to the cell above) and returns *half* the limited difference
//! across the cell, as needed for edge values. All are symmetric in `a` and `b` and odd, bit for bit, so that mirrored flows stay mirrored.
//!
//! No product of two differences is formed alone: in single precision it underflows for differences below 1e-19 and would set the slope to
//! zero. The final comparisons with zero map every zero and NaN to +0.
use nestar_device::{Lane, device};

/// Selector of [`half_slope`]: minmod with a parameter.
pub const MINMOD: u32 = 0;
/// Selector of [`half_slope`]: van Leer's harmonic mean.
pub const VAN_LEER: u32 = 1;
/// Selector of [`half_slope`]: van Albada.
pub const VAN_ALBADA: u32 = 2;
/// Selector of [`half_slope`]: monotonized central.
pub const MONOTONIZED_CENTRAL: u32 = 3;

/// Returns half of the generalised minmod `minmod(theta a, (a + b) / 2, theta b)`, `theta` in `[1, 2]` (Kurganov & Tadmor 2000, J. Comput.
/// Phys. 160, 241, eq. 2.2); zero at extrema.
#[device]
pub fn half_minmod<R: Lane>(a: R, b: R, theta: R) -> R {
    let half_theta = 0.5 * theta;
    let centred = 0.25 * (a + b);
    let rising = (half_theta * a.lesser(b)).lesser(centred);
    let falling = (half_theta * a.greater(b)).greater(centred);
    rising.max(0.0) + falling.min(0.0)
}

/// Returns half of the monotonized central slope `minmod(2 a, (a + b) / 2, 2 b)` (van Leer 1977, J. Comput. Phys. 23, 276).
#[device]
pub fn half_monotonized_central<R: Lane>(a: R, b: R) -> R {
    let centred = 0.25 * (a + b);
    let rising = a.lesser(b).lesser(centred);
    let falling = a.greater(b).greater(centred);
    rising.max(0.0) + falling.min(0.0)
}

/// Returns half of the harmonic mean `2 a b / (a + b)` (van Leer 1974, J. Comput. Phys. 14, 361); zero at extrema.
#[device]
pub fn half_van_leer<R: Lane>(a: R, b: R) -> R {
    let small = a.abs().min(b.abs());
    let large = a.abs().max(b.abs());
    let half = small * (large / (small + large));
    if (a.min(b) > 0.0) | (a.max(b) < 0.0) {
        half.copysign(a)
    } else {
        0.0
    }
}

/// Returns half of `a b (a + b) / (a^2 + b^2)` (van Albada, van Leer & Roberts 1982, Astron. Astrophys. 108, 76); zero at extrema.
#[device]
pub fn half_van_albada<R: Lane>(a: R, b: R) -> R {
    let small = a.abs().min(b.abs());
    let large = a.abs().max(b.abs());
    let ratio = small / large;
    let half = 0.5 * small * ((1.0 + ratio) / (1.0 + ratio * ratio));
    if (a.min(b) > 0.0) | (a.max(b) < 0.0) {
        half.copysign(a)
    } else {
        0.0
    }
}

/// Returns half the slope of limiter `LIMITER` (one of the selectors); only minmod uses `theta`.
#[device]
pub fn half_slope<R: Lane, const LIMITER: u32>(a: R, b: R, theta: R) -> R {
    match LIMITER {
        0 => half_minmod(a, b, theta),
        1 => half_van_leer(a, b),
        2 => half_van_albada(a, b),
        _ => half_monotonized_central(a, b),
    }
}
