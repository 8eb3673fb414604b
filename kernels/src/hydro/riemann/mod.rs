//! Riemann solvers. A state is primitive, `[density, normal velocity, two tangential velocities, pressure]`. A flux is the flux density of
//! `[density, normal momentum, two tangential momenta, energy]` along the normal.
//!
//! Each solver returns mirrored fluxes for mirrored states and treats both tangential directions equally, bit for bit.

use super::eos::{conserved_from_primitive, total_energy};
use nestar_device::{Lane, device};

pub mod exact;

/// Selector of a solver: HLLC.
pub const HLLC: u32 = 0;
/// Selector of a solver: HLLE.
pub const HLLE: u32 = 1;

/// Returns the speeds of the outermost waves: the smaller of `v - c` of the left and the Roe-averaged state, the larger of `v + c` of the
/// right and the averaged state (Einfeldt et al. 1991, J. Comput. Phys. 92, 273; Batten et al. 1997, SIAM J. Sci. Comput. 18, 1553).
///
/// They are exact for an isolated shock. Averages are weighted by the square root of the density, multiplied through to need only one root.
/// In single precision the product of the two densities must be in range: densities from 1e-19 to 1e19.
#[device]
pub fn wave_speeds<R: Lane>(l: &[R; 5], r: &[R; 5], gamma: R) -> (R, R) {
    let c2_l = gamma * l[4] / l[0];
    let c2_r = gamma * r[4] / r[0];
    let mean = (l[0] * r[0]).sqrt();
    let weight = 1.0 / ((l[0] + r[0]) + 2.0 * mean);
    let velocity = ((l[0] * l[1] + r[0] * r[1]) + mean * (l[1] + r[1])) * weight;
    let (a, b, c) = (r[1] - l[1], r[2] - l[2], r[3] - l[3]);
    let shear = 0.5 * (gamma - 1.0) * mean * (a * a + (b * b + c * c));
    let c2 = ((gamma * (l[4] + r[4]) + mean * (c2_l + c2_r)) + shear) * weight;
    let c = c2.sqrt();
    (
        (velocity - c).min(l[1] - c2_l.sqrt()),
        (velocity + c).max(r[1] + c2_r.sqrt()),
    )
}

/// Returns the flux density of a primitive state with total energy density `energy`.
#[device]
pub fn flux_of_state<R: Lane>(w: &[R; 5], energy: R) -> [R; 5] {
    let mass = w[0] * w[1];
    [
        mass,
        mass * w[1] + w[4],
        mass * w[2],
        mass * w[3],
        w[1] * (energy + w[4]),
    ]
}

/// Returns a mass fraction at a face divided by the sum of its set there. Limiting each one separately leaves sums that differ from 1
/// (Plewa & Mueller 1999, A&A 342, 179).
#[device]
pub fn normalized_fraction<R: Lane>(concentration: R, sum: R) -> R {
    let part = concentration / sum;
    if sum > 0.0 { part } else { concentration }
}

/// Returns the flux density of a passive scalar: the mass flux times the upwind mass fraction.
#[device]
pub fn flux_of_scalar<R: Lane>(mass_flux: R, left: R, right: R) -> R {
    let upwind = if mass_flux > 0.0 { left } else { right };
    mass_flux * upwind
}

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

/// Returns the HLLE flux for the wave speeds `s_l`, not positive, and `s_r`, not negative.
#[device]
fn hlle_between<R: Lane>(l: &[R; 5], r: &[R; 5], s_l: R, s_r: R, gamma: R) -> [R; 5] {
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
fn smooth_negative_part<R: Lane>(s: R, range: R) -> R {
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
/// In [`flux_hlle`] and [`flux_hllc`], a shock at rest has a wave speed close to zero, and the flux takes one side. Here the clamp to a side
/// is smoothed over 0.3 of the velocity difference of a converging flow; otherwise the flux is that of [`flux_hlle`].
#[device]
pub fn flux_smoothed<R: Lane>(l: &[R; 5], r: &[R; 5], gamma: R) -> [R; 5] {
    let (fastest_left, fastest_right) = wave_speeds(l, r, gamma);
    let range = 0.3 * (l[1] - r[1]).max(0.0);
    let s_l = smooth_negative_part(fastest_left, range);
    let s_r = -smooth_negative_part(-fastest_right, range);
    hlle_between(l, r, s_l, s_r, gamma)
}

/// Returns the HLLC flux between the states `l` and `r` (Toro, Spruce & Speares 1994; Toro 2009, sec. 10.4 to 10.6; wave speeds of Batten et
/// al. 1997's kind).
///
/// With contact speed `s_m`, pressure `p_m` between the waves and wave speed `S` of the upwind side, the flux behind that wave is `a (S U -
/// F) + (1 + a) p_m (0, 1, 0, 0, s_m)`, `a = s_m / (S - s_m)`. This follows from the jump conditions (Toro, eqs. 10.38 to 10.40). `S` is
/// clamped to its own side of zero: then `a = -1` in a supersonic flow, and the same expression gives the upwind flux. A stationary contact
/// (`s_m = 0`) gives exactly `(0, p, 0, 0, 0)`.
#[device]
pub fn flux_hllc<R: Lane>(l: &[R; 5], r: &[R; 5], gamma: R) -> [R; 5] {
    let (s_l, s_r) = wave_speeds(l, r, gamma);
    let d_l = l[0] * (s_l - l[1]);
    let d_r = r[0] * (s_r - r[1]);
    let s_m = ((r[4] - l[4]) + (d_l * l[1] - d_r * r[1])) / (d_l - d_r);
    let p_m = 0.5 * ((l[4] + d_l * (s_m - l[1])) + (r[4] + d_r * (s_m - r[1])));

    let from_left = s_m >= 0.0;
    let w = if from_left { *l } else { *r };
    let s = if from_left {
        s_l.min(0.0)
    } else {
        s_r.max(0.0)
    };
    let a = s_m / (s - s_m);
    let push = (1.0 + a) * p_m;
    let energy = total_energy(w[0], [w[1], w[2], w[3]], w[4], gamma);
    let mass = a * (w[0] * (s - w[1]));
    [
        mass,
        mass * w[1] + (push - a * w[4]),
        mass * w[2],
        mass * w[3],
        a * (energy * (s - w[1]) - w[1] * w[4]) + push * s_m,
    ]
}
