//! Riemann solvers for magnetised gas ([`magnetic`](crate::hydro::magnetic)).
//!
//! The normal field and the cleaning variable form a linear system of their own, whose exact solution at the face is used by all solvers
//! ([`face_field`]; Dedner et al. 2002, J. Comput. Phys. 175, 645, sec. 4). The other variables are solved with this normal field on both sides.
//! `law` holds the ratio of specific heats and the cleaning speed. A flux is that of the conserved quantities, with the total energy.
use super::RiemannSolver;
use super::hlle::smooth_negative_part;
use crate::hydro::eos::total_energy;
use crate::hydro::magnetic::fast_speed;
use nestar_device::{Item, Lane, device};

impl RiemannSolver {
    /// Returns the function for the text of a device that serves magnetised gas; `None` if there is none.
    #[must_use]
    pub fn item_with_field(self) -> Option<&'static Item> {
        match self {
            RiemannSolver::Hlld => Some(flux_hlld::ITEM),
            RiemannSolver::Lhlld => Some(flux_lhlld::ITEM),
            RiemannSolver::Hlle => Some(flux_hlle::ITEM),
            RiemannSolver::Hll => Some(flux_hll::ITEM),
            RiemannSolver::Llf => Some(flux_llf::ITEM),
            RiemannSolver::Hllc
            | RiemannSolver::Roe
            | RiemannSolver::Aufs
            | RiemannSolver::Exact => None,
        }
    }
}

/// Returns the flux of a solver with an [item](RiemannSolver::item_with_field); `SOLVER` is one of [`RiemannSolver`].
#[inline(always)]
pub fn flux<R: Lane, const SOLVER: u32>(l: &[R; 9], r: &[R; 9], law: &[R; 2]) -> [R; 9] {
    if SOLVER == RiemannSolver::Hlld as u32 {
        return flux_hlld(l, r, law);
    }
    if SOLVER == RiemannSolver::Lhlld as u32 {
        return flux_lhlld(l, r, law);
    }
    if SOLVER == RiemannSolver::Hlle as u32 {
        return flux_hlle(l, r, law);
    }
    if SOLVER == RiemannSolver::Hll as u32 {
        return flux_hll(l, r, law);
    }
    if SOLVER == RiemannSolver::Llf as u32 {
        return flux_llf(l, r, law);
    }
    unreachable!("the solver {SOLVER} does not know magnetic fields")
}

/// Returns normal field and cleaning variable at the face.
#[device]
pub fn face_field<R: Lane>(l: &[R; 9], r: &[R; 9]) -> [R; 2] {
    [
        0.5 * (l[5] + r[5]) - 0.5 * (r[8] - l[8]),
        0.5 * (l[8] + r[8]) - 0.5 * (r[5] - l[5]),
    ]
}

/// Returns the speed of fast waves along the normal of a state with the normal field `field`.
#[device]
fn normal_fast_speed<R: Lane>(w: &[R; 9], field: R, gamma: R) -> R {
    fast_speed(w[0], w[4], field, w[6] * w[6] + w[7] * w[7], gamma)
}

/// Returns the conserved quantities, with the total energy, of a primitive state with the normal field `field`.
#[device]
fn with_total_energy<R: Lane>(w: &[R; 9], field: R, gamma: R) -> [R; 9] {
    let gas = total_energy(w[0], [w[1], w[2], w[3]], w[4], gamma);
    let energy = gas + 0.5 * (field * field + (w[6] * w[6] + w[7] * w[7]));
    [
        w[0],
        w[0] * w[1],
        w[0] * w[2],
        w[0] * w[3],
        energy,
        field,
        w[6],
        w[7],
        w[8],
    ]
}

/// Returns the flux of a state with the total pressure `push`, the total energy density `energy` and, at the face, the normal field and the
/// cleaning variable `at_face`. The pressure in `w` is not read.
#[device]
fn flux_of_state<R: Lane>(w: &[R; 9], push: R, energy: R, at_face: &[R; 2], speed: R) -> [R; 9] {
    let field = at_face[0];
    let mass = w[0] * w[1];
    let along = field * w[1] + (w[2] * w[6] + w[3] * w[7]);
    [
        mass,
        mass * w[1] + (push - field * field),
        mass * w[2] - field * w[6],
        mass * w[3] - field * w[7],
        w[1] * (energy + push) - field * along,
        speed * at_face[1],
        w[1] * w[6] - field * w[2],
        w[1] * w[7] - field * w[3],
        speed * field,
    ]
}

/// Returns the total pressure of a state with the normal field `field`.
#[device]
fn total_pressure<R: Lane>(w: &[R; 9], field: R) -> R {
    w[4] + 0.5 * (field * field + (w[6] * w[6] + w[7] * w[7]))
}

/// Returns the HLLE flux for two wave speeds, the first not positive, the second not negative.
#[device]
fn hlle_between<R: Lane>(l: &[R; 9], r: &[R; 9], law: &[R; 2], speeds: &[R; 2]) -> [R; 9] {
    let at_face = face_field(l, r);
    let u_l = with_total_energy(l, at_face[0], law[0]);
    let u_r = with_total_energy(r, at_face[0], law[0]);
    let f_l = flux_of_state(l, total_pressure(l, at_face[0]), u_l[4], &at_face, law[1]);
    let f_r = flux_of_state(r, total_pressure(r, at_face[0]), u_r[4], &at_face, law[1]);
    let [s_l, s_r] = *speeds;
    let inverse = 1.0 / (s_r - s_l);
    let (of_left, of_right) = (s_r * inverse, s_l * inverse);
    let product = s_l * s_r * inverse;
    let mut f = [0.0; 9];
    for v in 0..9 {
        f[v] = (of_left * f_l[v] - of_right * f_r[v]) + product * (u_r[v] - u_l[v]);
    }
    // both sides have those of the face
    f[5] = f_l[5];
    f[8] = f_l[8];
    f
}

/// Returns bounds of the speeds of all waves: the smaller normal velocity minus, and the larger one plus, the faster of the two fast speeds
/// (Miyoshi & Kusano 2005, J. Comput. Phys. 208, 315, eq. 67).
#[device]
fn wave_speeds<R: Lane>(l: &[R; 9], r: &[R; 9], field: R, gamma: R) -> [R; 2] {
    let c = normal_fast_speed(l, field, gamma).max(normal_fast_speed(r, field, gamma));
    [l[1].min(r[1]) - c, l[1].max(r[1]) + c]
}

/// Returns the HLLE flux, see [`hlle::flux_hlle`](super::hlle::flux_hlle), with bounds of the wave speeds.
#[device]
pub fn flux_hlle<R: Lane>(l: &[R; 9], r: &[R; 9], law: &[R; 2]) -> [R; 9] {
    let at_face = face_field(l, r);
    let [slowest, fastest] = wave_speeds(l, r, at_face[0], law[0]);
    hlle_between(l, r, law, &[slowest.min(0.0), fastest.max(0.0)])
}

/// Returns the HLL flux with the wave speeds of Davis 1988, see [`hlle::flux_hll`](super::hlle::flux_hll).
#[device]
pub fn flux_hll<R: Lane>(l: &[R; 9], r: &[R; 9], law: &[R; 2]) -> [R; 9] {
    let at_face = face_field(l, r);
    let c_l = normal_fast_speed(l, at_face[0], law[0]);
    let c_r = normal_fast_speed(r, at_face[0], law[0]);
    let slowest = (l[1] - c_l).min(r[1] - c_r);
    let fastest = (l[1] + c_l).max(r[1] + c_r);
    hlle_between(l, r, law, &[slowest.min(0.0), fastest.max(0.0)])
}

/// Returns the HLLE flux with wave speeds that are a smooth function of the states, see
/// [`hlle::flux_smoothed`](super::hlle::flux_smoothed).
#[device]
pub fn flux_smoothed<R: Lane>(l: &[R; 9], r: &[R; 9], law: &[R; 2]) -> [R; 9] {
    let at_face = face_field(l, r);
    let [slowest, fastest] = wave_speeds(l, r, at_face[0], law[0]);
    let range = 0.3 * (l[1] - r[1]).max(0.0);
    let speeds = [
        smooth_negative_part(slowest, range),
        -smooth_negative_part(-fastest, range),
    ];
    hlle_between(l, r, law, &speeds)
}

/// Returns the local Lax-Friedrichs flux, see [`llf::flux_llf`](super::llf::flux_llf).
#[device]
pub fn flux_llf<R: Lane>(l: &[R; 9], r: &[R; 9], law: &[R; 2]) -> [R; 9] {
    let at_face = face_field(l, r);
    let c_l = l[1].abs() + normal_fast_speed(l, at_face[0], law[0]);
    let c_r = r[1].abs() + normal_fast_speed(r, at_face[0], law[0]);
    let a = c_l.max(c_r);
    hlle_between(l, r, law, &[-a, a])
}

/// A side of a face between its outermost wave and the Alfven wave of the side.
#[device]
#[derive(Clone, Copy)]
struct StarSide<R> {
    /// Density, velocities, no pressure, and fields.
    state: [R; 9],
    /// Total energy density.
    energy: R,
    /// Square root of the density.
    root: R,
}

/// Returns the state of a side behind its outermost wave of speed `s` (Miyoshi & Kusano 2005, eqs. 43 to 48). `middle` is the speed of the
/// contact, `push` the total pressure between the outermost waves.
#[device]
fn star_side<R: Lane>(w: &[R; 9], s: R, middle: R, push: R, field: R, gamma: R) -> StarSide<R> {
    let energy = with_total_energy(w, field, gamma);
    let d = s - w[1];
    let inward = w[0] * d;
    let inverse = 1.0 / (s - middle);
    let density = inward * inverse;
    let field2 = field * field;
    // the side keeps its transverse values where the denominator is lost in round-off
    let denominator = inward * (s - middle) - field2;
    let scale = 1024.0 * (push + field2);
    let regular = (scale + denominator.abs()) - scale > 0.0;
    let by = 1.0 / denominator;
    let drag = if regular {
        field * (middle - w[1]) * by
    } else {
        0.0
    };
    let stretch = if regular {
        (inward * d - field2) * by
    } else {
        1.0
    };
    let (va, vb) = (w[2] - drag * w[6], w[3] - drag * w[7]);
    let (ba, bb) = (stretch * w[6], stretch * w[7]);
    let before = field * w[1] + (w[2] * w[6] + w[3] * w[7]);
    let after = field * middle + (va * ba + vb * bb);
    let work = (push * middle - total_pressure(w, field) * w[1]) + field * (before - after);
    StarSide {
        state: [density, middle, va, vb, push, field, ba, bb, w[8]],
        energy: (d * energy[4] + work) * inverse,
        root: density.sqrt(),
    }
}

/// Returns the HLLD flux (Miyoshi & Kusano 2005): outermost, Alfven and contact waves.
///
/// The flux is that of the state at the face, which makes it exact for contacts and rotational discontinuities at rest.
#[device]
pub fn flux_hlld<R: Lane>(l: &[R; 9], r: &[R; 9], law: &[R; 2]) -> [R; 9] {
    flux_of_five_waves(l, r, law, 0.0)
}

/// Returns the fast speed of a state whose sound speed is replaced by the magnitude of the velocity.
#[device]
fn flow_speed<R: Lane>(w: &[R; 9], field: R) -> R {
    let kinetic = w[0] * (w[1] * w[1] + (w[2] * w[2] + w[3] * w[3]));
    fast_speed(w[0], kinetic, field, w[6] * w[6] + w[7] * w[7], 1.0)
}

/// Returns the HLLD flux with less diffusion in slow flows (LHLLD; Minoshima & Miyoshi 2021, J. Comput. Phys. 446, 110639).
///
/// The part of the total pressure that is due to the difference of the velocities, which would grow beyond that of the flow in the limit of small
/// Mach numbers, is multiplied by `chi (2 - chi)`. `chi` is the ratio of `flow_speed` and the fast speed, at most 1. Shear across the face is
/// not detected.
#[device]
pub fn flux_lhlld<R: Lane>(l: &[R; 9], r: &[R; 9], law: &[R; 2]) -> [R; 9] {
    let gamma = law[0];
    let at_face = face_field(l, r);
    let field = at_face[0];
    let [s_l, s_r] = wave_speeds(l, r, field, gamma);
    let d_l = l[0] * (s_l - l[1]);
    let d_r = r[0] * (s_r - r[1]);
    let fast = normal_fast_speed(l, field, gamma).max(normal_fast_speed(r, field, gamma));
    let chi = (flow_speed(l, field).max(flow_speed(r, field)) / fast).min(1.0);
    let rest = 1.0 - chi;
    let of_velocity = d_l * d_r * (r[1] - l[1]) / (d_r - d_l);
    flux_of_five_waves(l, r, law, rest * rest * of_velocity)
}

/// Returns the flux of outermost, Alfven and contact waves, with the total pressure between the outermost ones smaller by `less`.
#[device]
fn flux_of_five_waves<R: Lane>(l: &[R; 9], r: &[R; 9], law: &[R; 2], less: R) -> [R; 9] {
    let gamma = law[0];
    let at_face = face_field(l, r);
    let field = at_face[0];
    let [s_l, s_r] = wave_speeds(l, r, field, gamma);
    let (p_l, p_r) = (total_pressure(l, field), total_pressure(r, field));
    let d_l = l[0] * (s_l - l[1]);
    let d_r = r[0] * (s_r - r[1]);
    let middle = ((p_r - p_l) + (d_l * l[1] - d_r * r[1])) / (d_l - d_r);
    let push = 0.5 * ((p_l + d_l * (middle - l[1])) + (p_r + d_r * (middle - r[1]))) - less;
    let left = star_side(l, s_l, middle, push, field, gamma);
    let right = star_side(r, s_r, middle, push, field, gamma);
    // between the Alfven waves (eqs. 59 to 63)
    let sign = if field >= 0.0 { 1.0 } else { -1.0 };
    let (a, b) = (left.state, right.state);
    let by = 1.0 / (left.root + right.root);
    let both = left.root * right.root;
    let va = ((left.root * a[2] + right.root * b[2]) + sign * (b[6] - a[6])) * by;
    let vb = ((left.root * a[3] + right.root * b[3]) + sign * (b[7] - a[7])) * by;
    let ba = ((left.root * b[6] + right.root * a[6]) + both * sign * (b[2] - a[2])) * by;
    let bb = ((left.root * b[7] + right.root * a[7]) + both * sign * (b[3] - a[3])) * by;
    let inner = va * ba + vb * bb;
    let energy_l = left.energy - left.root * ((a[2] * a[6] + a[3] * a[7]) - inner) * sign;
    let energy_r = right.energy + right.root * ((b[2] * b[6] + b[3] * b[7]) - inner) * sign;
    // the region of the face
    let from_left = middle >= 0.0;
    let alfven = field.abs();
    let beyond_l = s_l >= 0.0;
    let beyond_r = s_r <= 0.0;
    let before_l = middle - alfven / left.root >= 0.0;
    let before_r = middle + alfven / right.root <= 0.0;
    let outside = if from_left { *l } else { *r };
    let star = if from_left { a } else { b };
    let star_energy = if from_left { left.energy } else { right.energy };
    let inner_energy = if from_left { energy_l } else { energy_r };
    let of_l = with_total_energy(l, field, gamma);
    let of_r = with_total_energy(r, field, gamma);
    let outer_energy = if from_left { of_l[4] } else { of_r[4] };
    let outer_push = if from_left { p_l } else { p_r };
    let is_outside = beyond_l | beyond_r;
    let is_star = before_l | before_r;
    let between = [star[0], middle, va, vb, push, field, ba, bb, star[8]];
    let inside = if is_star { star } else { between };
    let inside_energy = if is_star { star_energy } else { inner_energy };
    let state = if is_outside { outside } else { inside };
    let energy = if is_outside {
        outer_energy
    } else {
        inside_energy
    };
    let total = if is_outside { outer_push } else { push };
    flux_of_state(&state, total, energy, &at_face, law[1])
}
