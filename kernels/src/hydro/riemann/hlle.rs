//! Riemann solvers with two waves.
use super::{flux_of_state, wave_speeds};
use crate::hydro::eos::{conserved_from_primitive, sound_speed};
use nestar_device::{Lane, device};

/// Returns the HLLE flux between the states `l` and `r` (Harten, Lax & van Leer 1983; Einfeldt et al. 1991, J. Comput. Phys. 92, 273; Toro
/// 2009, eq. 10.21).
///
/// HLLE has two waves; it is positive and diffusive. Wave speeds are clamped to their side of zero, so that a
/// supersonic flow takes the upwind flux.
#[device]
pub fn flux_hlle<R: Lane>(l: &[R; 5], r: &[R; 5], gamma: R) -> [R; 5] {
    let (fastest_left, fastest_right) = wave_speeds(l, r, gamma);
    hlle_between(l, r, fastest_left.min(0.0), fastest_right.max(0.0), gamma)
}

/// Returns the same flux with the wave speeds of Davis 1988 (SIAM J. Sci. Stat. Comput. 9, 445), the smallest `v - c` and the largest `v + c`
/// of both states, as in Wang, Abel & Kaehler 2010 (New Astron. 15, 581).
#[device]
pub fn flux_hll<R: Lane>(l: &[R; 5], r: &[R; 5], gamma: R) -> [R; 5] {
    let c_l = sound_speed(l[0], l[4], gamma);
    let c_r = sound_speed(r[0], r[4], gamma);
    let slowest = (l[1] - c_l).min(r[1] - c_r);
    let fastest = (l[1] + c_l).max(r[1] + c_r);
    hlle_between(l, r, slowest.min(0.0), fastest.max(0.0), gamma)
}

/// Returns the HLLE flux for the wave speeds `s_l`, not positive, and `s_r`, not negative.
#[device]
pub(super) fn hlle_between<R: Lane>(l: &[R; 5], r: &[R; 5], s_l: R, s_r: R, gamma: R) -> [R; 5] {
    let u_l = conserved_from_primitive(l, gamma);
    let u_r = conserved_from_primitive(r, gamma);
    let f_l = flux_of_state(l, u_l[4]);
    let f_r = flux_of_state(r, u_r[4]);
    let inverse = 1.0 / (s_r - s_l);
    // the weights come first, because a product of an energy flux and a speed may be out of the range of single precision
    let (of_left, of_right) = (s_r * inverse, s_l * inverse);
    let product = s_l * s_r * inverse;
    let mut f = [0.0; 5];
    for v in 0..5 {
        f[v] = (of_left * f_l[v] - of_right * f_r[v]) + product * (u_r[v] - u_l[v]);
    }
    f
}

/// Returns `s.min(0.0)` without its kink: a parabola joins both branches between `-range` and `range` (as in Harten 1983, J. Comput. Phys.
/// 49, 357, for the absolute value). `range` must not be negative.
#[device]
pub(super) fn smooth_negative_part<R: Lane>(s: R, range: R) -> R {
    let below = range - s;
    let parabola = -(below * (below / (4.0 * range)));
    if s.abs() < range {
        parabola
    } else {
        s.min(0.0)
    }
}

/// Returns the HLLE flux between the states `l` and `r`, with wave speeds that are a smooth function of the states.
///
/// In [`flux_hlle`] and [`flux_hllc`](super::hllc::flux_hllc), a shock at rest has a wave speed close to zero, and the flux takes one side. Here the clamp to a side
/// is smoothed over 0.3 of the velocity difference of a converging flow; otherwise the flux is that of [`flux_hlle`].
#[device]
pub fn flux_smoothed<R: Lane>(l: &[R; 5], r: &[R; 5], gamma: R) -> [R; 5] {
    let (fastest_left, fastest_right) = wave_speeds(l, r, gamma);
    let range = 0.3 * (l[1] - r[1]).max(0.0);
    let s_l = smooth_negative_part(fastest_left, range);
    let s_r = -smooth_negative_part(-fastest_right, range);
    hlle_between(l, r, s_l, s_r, gamma)
}
