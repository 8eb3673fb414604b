//! Riemann solvers for gas without energy ([`barotropic`](crate::hydro::barotropic)). Each is that of ideal gas without the energy.
//!
//! `l` and `r` are the primitive states, `of_l` and `of_r` their pressures and squared sound speeds. A flux is that of `[density, normal
//! momentum, two tangential momenta]`.
use super::RiemannSolver;
use super::hlle::smooth_negative_part;
use crate::hydro::barotropic::conserved_from_primitive;
use nestar_device::{Item, Lane, device};

impl RiemannSolver {
    /// Returns the function for the text of a device that serves gas without energy; `None` if there is none.
    #[must_use]
    pub fn item_without_energy(self) -> Option<&'static Item> {
        match self {
            RiemannSolver::Hllc => Some(flux_hllc::ITEM),
            RiemannSolver::Hlle => Some(flux_hlle::ITEM),
            RiemannSolver::Hll => Some(flux_hll::ITEM),
            RiemannSolver::Llf => Some(flux_llf::ITEM),
            RiemannSolver::Hlld
            | RiemannSolver::Lhlld
            | RiemannSolver::Roe
            | RiemannSolver::Aufs
            | RiemannSolver::Exact => None,
        }
    }
}

/// Returns the flux of a solver with an [item](RiemannSolver::item_without_energy); `SOLVER` is one of [`RiemannSolver`].
#[inline(always)]
pub fn flux<R: Lane, const SOLVER: u32>(
    l: &[R; 4],
    r: &[R; 4],
    of_l: &[R; 2],
    of_r: &[R; 2],
) -> [R; 4] {
    if SOLVER == RiemannSolver::Hllc as u32 {
        return flux_hllc(l, r, of_l, of_r);
    }
    if SOLVER == RiemannSolver::Hlle as u32 {
        return flux_hlle(l, r, of_l, of_r);
    }
    if SOLVER == RiemannSolver::Hll as u32 {
        return flux_hll(l, r, of_l, of_r);
    }
    if SOLVER == RiemannSolver::Llf as u32 {
        return flux_llf(l, r, of_l, of_r);
    }
    unreachable!("the solver {SOLVER} needs an energy")
}

/// Returns the speeds of the outermost waves, as [`wave_speeds`](super::wave_speeds). The sound speed of the averaged state is the larger
/// one, which is exact for isothermal gas and an upper bound otherwise.
#[device]
fn wave_speeds<R: Lane>(l: &[R; 4], r: &[R; 4], of_l: &[R; 2], of_r: &[R; 2]) -> (R, R) {
    let c_l = of_l[1].sqrt();
    let c_r = of_r[1].sqrt();
    let mean = (l[0] * r[0]).sqrt();
    let weight = 1.0 / ((l[0] + r[0]) + 2.0 * mean);
    let velocity = ((l[0] * l[1] + r[0] * r[1]) + mean * (l[1] + r[1])) * weight;
    let c = c_l.max(c_r);
    (
        (velocity - c).min(l[1] - c_l),
        (velocity + c).max(r[1] + c_r),
    )
}

/// Returns the flux density of a primitive state with the pressure `p`.
#[device]
fn flux_of_state<R: Lane>(w: &[R; 4], p: R) -> [R; 4] {
    let mass = w[0] * w[1];
    [mass, mass * w[1] + p, mass * w[2], mass * w[3]]
}

/// Returns the HLLC flux, see [`hllc::flux_hllc`](super::hllc::flux_hllc). Tangential velocities change at the middle wave.
#[device]
pub fn flux_hllc<R: Lane>(l: &[R; 4], r: &[R; 4], of_l: &[R; 2], of_r: &[R; 2]) -> [R; 4] {
    let (s_l, s_r) = wave_speeds(l, r, of_l, of_r);
    let d_l = l[0] * (s_l - l[1]);
    let d_r = r[0] * (s_r - r[1]);
    let s_m = ((of_r[0] - of_l[0]) + (d_l * l[1] - d_r * r[1])) / (d_l - d_r);
    let p_m = 0.5 * ((of_l[0] + d_l * (s_m - l[1])) + (of_r[0] + d_r * (s_m - r[1])));
    let from_left = s_m >= 0.0;
    let w = if from_left { *l } else { *r };
    let p = if from_left { of_l[0] } else { of_r[0] };
    let s = if from_left {
        s_l.min(0.0)
    } else {
        s_r.max(0.0)
    };
    let a = s_m / (s - s_m);
    let push = (1.0 + a) * p_m;
    let mass = a * (w[0] * (s - w[1]));
    [mass, mass * w[1] + (push - a * p), mass * w[2], mass * w[3]]
}

/// Returns the HLLE flux, see [`hlle::flux_hlle`](super::hlle::flux_hlle).
#[device]
pub fn flux_hlle<R: Lane>(l: &[R; 4], r: &[R; 4], of_l: &[R; 2], of_r: &[R; 2]) -> [R; 4] {
    let (fastest_left, fastest_right) = wave_speeds(l, r, of_l, of_r);
    let speeds = [fastest_left.min(0.0), fastest_right.max(0.0)];
    hlle_between(l, r, of_l, of_r, &speeds)
}

/// Returns the HLL flux, see [`hlle::flux_hll`](super::hlle::flux_hll).
#[device]
pub fn flux_hll<R: Lane>(l: &[R; 4], r: &[R; 4], of_l: &[R; 2], of_r: &[R; 2]) -> [R; 4] {
    let c_l = of_l[1].sqrt();
    let c_r = of_r[1].sqrt();
    let slowest = (l[1] - c_l).min(r[1] - c_r);
    let fastest = (l[1] + c_l).max(r[1] + c_r);
    let speeds = [slowest.min(0.0), fastest.max(0.0)];
    hlle_between(l, r, of_l, of_r, &speeds)
}

/// Returns the HLLE flux for two wave speeds, the first not positive, the second not negative.
#[device]
fn hlle_between<R: Lane>(
    l: &[R; 4],
    r: &[R; 4],
    of_l: &[R; 2],
    of_r: &[R; 2],
    speeds: &[R; 2],
) -> [R; 4] {
    let u_l = conserved_from_primitive(l);
    let u_r = conserved_from_primitive(r);
    let f_l = flux_of_state(l, of_l[0]);
    let f_r = flux_of_state(r, of_r[0]);
    let [s_l, s_r] = *speeds;
    let inverse = 1.0 / (s_r - s_l);
    let (of_left, of_right) = (s_r * inverse, s_l * inverse);
    let product = s_l * s_r * inverse;
    let mut f = [0.0; 4];
    for v in 0..4 {
        f[v] = (of_left * f_l[v] - of_right * f_r[v]) + product * (u_r[v] - u_l[v]);
    }
    f
}

/// Returns the HLLE flux with wave speeds that are a smooth function of the states, see
/// [`hlle::flux_smoothed`](super::hlle::flux_smoothed).
#[device]
pub fn flux_smoothed<R: Lane>(l: &[R; 4], r: &[R; 4], of_l: &[R; 2], of_r: &[R; 2]) -> [R; 4] {
    let (fastest_left, fastest_right) = wave_speeds(l, r, of_l, of_r);
    let range = 0.3 * (l[1] - r[1]).max(0.0);
    let speeds = [
        smooth_negative_part(fastest_left, range),
        -smooth_negative_part(-fastest_right, range),
    ];
    hlle_between(l, r, of_l, of_r, &speeds)
}

/// Returns the local Lax-Friedrichs flux, see [`llf::flux_llf`](super::llf::flux_llf).
#[device]
pub fn flux_llf<R: Lane>(l: &[R; 4], r: &[R; 4], of_l: &[R; 2], of_r: &[R; 2]) -> [R; 4] {
    let u_l = conserved_from_primitive(l);
    let u_r = conserved_from_primitive(r);
    let f_l = flux_of_state(l, of_l[0]);
    let f_r = flux_of_state(r, of_r[0]);
    let fastest_l = l[1].abs() + of_l[1].sqrt();
    let fastest_r = r[1].abs() + of_r[1].sqrt();
    let a = fastest_l.max(fastest_r);
    let mut f = [0.0; 4];
    for v in 0..4 {
        f[v] = 0.5 * (f_l[v] + f_r[v]) - 0.5 * a * (u_r[v] - u_l[v]);
    }
    f
}
