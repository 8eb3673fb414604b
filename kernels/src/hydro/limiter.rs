//! Slope limiters for piecewise linear reconstruction (van Leer 1979, J. Comput. Phys. 32, 101).
//!
//! A limiter takes the one-sided differences `a` (to the cell below) and `b` (to the cell above) and returns *half* the limited difference
//! across the cell, as needed for edge values. All are symmetric in `a` and `b` and odd, bit for bit, so that mirrored flows stay mirrored.
//!
//! No product of two differences is formed alone: in single precision it underflows for differences below 1e-19 and would set the slope to
//! zero. The final comparisons with zero map every zero and NaN to +0.
use crate::choice::choices;
use nestar_device::{Lane, device};

choices! {
    $
    /// Slope limiter.
    pub enum Limiter by select_limiter;
    /// Returns half the slope of a limiter, which is one of [`Limiter`]; only some use `theta`.
    fn half_slope<R: Lane>(a: R, b: R, theta: R) -> R as (a, b, theta);
    /// Generalised minmod (Kurganov & Tadmor 2000).
    Minmod = "minmod": half_minmod;
    /// Van Leer's harmonic mean (van Leer 1974).
    VanLeer = "van-leer": half_van_leer;
    /// Van Albada (van Albada, van Leer & Roberts 1982).
    VanAlbada = "van-albada": half_van_albada;
    /// Monotonized central (van Leer 1977).
    MonotonizedCentral = "monotonized-central": half_monotonized_central;
    /// The smaller one of van Leer's and the generalised minmod (Schive et al. 2018).
    Hybrid = "hybrid": half_hybrid;
}

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
pub fn half_monotonized_central<R: Lane>(a: R, b: R, _theta: R) -> R {
    let centred = 0.25 * (a + b);
    let rising = a.lesser(b).lesser(centred);
    let falling = a.greater(b).greater(centred);
    rising.max(0.0) + falling.min(0.0)
}

/// Returns half of the harmonic mean `2 a b / (a + b)` (van Leer 1974, J. Comput. Phys. 14, 361); zero at extrema.
#[device]
pub fn half_van_leer<R: Lane>(a: R, b: R, _theta: R) -> R {
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
pub fn half_van_albada<R: Lane>(a: R, b: R, _theta: R) -> R {
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

/// Returns half of the smallest of `theta a`, `theta b`, `(a + b) / 2` and `2 a b / (a + b)` (Schive et al. 2018, MNRAS 481, 4815, sec. 2.2);
/// zero at extrema.
#[device]
pub fn half_hybrid<R: Lane>(a: R, b: R, theta: R) -> R {
    let harmonic = half_van_leer(a, b, theta);
    let small = (0.5 * theta * a.abs().min(b.abs())).min(harmonic.abs());
    // also maps -0 to +0
    if harmonic > 0.0 { small } else { 0.0 - small }
}
