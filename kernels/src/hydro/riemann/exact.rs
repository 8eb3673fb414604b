//! Exact solution of the Riemann problem for the ideal gas (Toro 2009, ch. 4), including vacuum between the states.
//!
//! Scalar only, because it iterates. A one-dimensional state is `[density, velocity, pressure]`.
use super::super::eos::{sound_speed, total_energy};
use super::flux_of_state;
use nestar_device::math::pow;
use nestar_device::simd::Simd;
use nestar_device::{Lane, Real, device};

/// Lanes of the widest vector.
const WIDEST: usize = 16;

/// Largest number of Newton iterations; usually fewer than ten are needed.
#[device]
pub const ITERATIONS: i32 = 40;

/// Returns the velocity change across the wave between the state `w` (sound speed `c`) and the star pressure `p`, and its derivative (eqs.
/// 4.6, 4.7, 4.37). The wave is a shock if the pressure rises, a rarefaction if it falls.
#[device]
pub fn wave<R: Real>(p: R, w: &[R; 3], c: R, gamma: R) -> (R, R) {
    if p > w[2] {
        let a = 2.0 / ((gamma + 1.0) * w[0]);
        let b = (gamma - 1.0) / (gamma + 1.0) * w[2];
        let root = (a / (p + b)).sqrt();
        ((p - w[2]) * root, root * (1.0 - 0.5 * (p - w[2]) / (b + p)))
    } else {
        let ratio = p / w[2];
        let power = pow(ratio, (gamma - 1.0) / (2.0 * gamma));
        // the derivative's exponent is one less
        (
            2.0 * c / (gamma - 1.0) * (power - 1.0),
            power / (ratio * (w[0] * c)),
        )
    }
}

/// Returns pressure and velocity between the two outer waves, by Newton's method (sec. 4.3). The states must not produce a vacuum.
#[device]
pub fn star<R: Real>(l: &[R; 3], r: &[R; 3], gamma: R) -> (R, R) {
    let c_l = sound_speed(l[0], l[2], gamma);
    let c_r = sound_speed(r[0], r[2], gamma);
    let jump = r[1] - l[1];
    // eq. 4.47, never below a small part of the lower pressure: from below the root the iteration is monotonic
    let floor = 0.000001 * l[2].min(r[2]);
    let linear = 0.5 * (l[2] + r[2]) - 0.125 * jump * ((l[0] + r[0]) * (c_l + c_r));
    let mut p = linear.max(floor);
    let mut n = 0i32;
    while n < ITERATIONS {
        let (f_l, d_l) = wave(p, l, c_l, gamma);
        let (f_r, d_r) = wave(p, r, c_r, gamma);
        let old = p;
        p = (p - ((f_l + f_r) + jump) / (d_l + d_r)).max(0.1 * p);
        n += 1;
        if (p - old).abs() <= 2.0 * R::EPSILON * p {
            break;
        }
    }
    let (f_l, _d_l) = wave(p, l, c_l, gamma);
    let (f_r, _d_r) = wave(p, r, c_r, gamma);
    (p, 0.5 * (l[1] + r[1]) + 0.5 * (f_r - f_l))
}

/// Returns the state at speed `s` inside the fan of a left rarefaction from `w` (eq. 4.56).
#[device]
fn inside_fan<R: Real>(w: &[R; 3], c: R, s: R, gamma: R) -> [R; 3] {
    let share = 2.0 / (gamma + 1.0) + (gamma - 1.0) / ((gamma + 1.0) * c) * (w[1] - s);
    let power = pow(share, 2.0 / (gamma - 1.0));
    let velocity = 2.0 / (gamma + 1.0) * ((c + 0.5 * (gamma - 1.0) * w[1]) + s);
    [w[0] * power, velocity, w[2] * (power * share * share)]
}

/// Returns the state at speed `s`, left of the contact, for given star pressure and velocity (sec. 4.5).
#[device]
fn left_of_contact<R: Real>(w: &[R; 3], p: R, u: R, s: R, gamma: R) -> [R; 3] {
    let c = sound_speed(w[0], w[2], gamma);
    let ratio = p / w[2];
    if p > w[2] {
        let k = (gamma - 1.0) / (gamma + 1.0);
        let shock = w[1]
            - c * ((gamma + 1.0) / (2.0 * gamma) * ratio + (gamma - 1.0) / (2.0 * gamma)).sqrt();
        if s <= shock {
            *w
        } else {
            [w[0] * (ratio + k) / (k * ratio + 1.0), u, p]
        }
    } else {
        let tail = u - c * pow(ratio, (gamma - 1.0) / (2.0 * gamma));
        if s <= w[1] - c {
            *w
        } else if s < tail {
            inside_fan(w, c, s, gamma)
        } else {
            [w[0] * pow(ratio, 1.0 / gamma), u, p]
        }
    }
}

/// Returns the state at speed `s` left of a vacuum (eqs. 4.76, 4.77); density and pressure are zero in the vacuum itself.
#[device]
fn left_of_vacuum<R: Real>(w: &[R; 3], s: R, gamma: R) -> [R; 3] {
    let c = sound_speed(w[0], w[2], gamma);
    if s <= w[1] - c {
        *w
    } else if s < w[1] + 2.0 * c / (gamma - 1.0) {
        inside_fan(w, c, s, gamma)
    } else {
        [0.0, s, 0.0]
    }
}

/// Returns the self-similar solution at `x / t = s`, and `true` if it belongs to gas from the left.
#[device]
pub fn sample<R: Real>(l: &[R; 3], r: &[R; 3], s: R, gamma: R) -> ([R; 3], bool) {
    let c_l = sound_speed(l[0], l[2], gamma);
    let c_r = sound_speed(r[0], r[2], gamma);
    let mirrored = [r[0], -r[1], r[2]];
    // pressure positivity, eq. 4.40
    if 2.0 * (c_l + c_r) / (gamma - 1.0) <= r[1] - l[1] {
        let from_left = s <= l[1] + 2.0 * c_l / (gamma - 1.0);
        if from_left {
            return (left_of_vacuum(l, s, gamma), true);
        }
        let w = left_of_vacuum(&mirrored, -s, gamma);
        return ([w[0], -w[1], w[2]], false);
    }
    let (p, u) = star(l, r, gamma);
    if s <= u {
        return (left_of_contact(l, p, u, s, gamma), true);
    }
    let w = left_of_contact(&mirrored, p, -u, -s, gamma);
    ([w[0], -w[1], w[2]], false)
}

/// Returns the exact (Godunov) flux between the states `l` and `r`.
#[device]
pub fn flux_exact<R: Real>(l: &[R; 5], r: &[R; 5], gamma: R) -> [R; 5] {
    let (w, from_left) = sample(&[l[0], l[1], l[4]], &[r[0], r[1], r[4]], 0.0, gamma);
    let a = if from_left { l[2] } else { r[2] };
    let b = if from_left { l[3] } else { r[3] };
    let energy = total_energy(w[0], [w[1], a, b], w[2], gamma);
    flux_of_state(&[w[0], w[1], a, b, w[2]], energy)
}

/// Returns [`flux_exact`] for each lane.
#[inline(always)]
pub(super) fn flux_in_each_lane<V: Simd>(l: &[V; 5], r: &[V; 5], gamma: V) -> [V; 5] {
    let mut values = [[V::E::lit(0.0); WIDEST]; 11];
    // SAFETY: no lane type is wider than an array
    unsafe {
        for v in 0..5 {
            l[v].store(values[v].as_mut_ptr());
            r[v].store(values[5 + v].as_mut_ptr());
        }
        gamma.store(values[10].as_mut_ptr());
        for lane in 0..V::N {
            let state = |first: usize| [0, 1, 2, 3, 4].map(|v| values[first + v][lane]);
            let f = flux_exact(&state(0), &state(5), values[10][lane]);
            for v in 0..5 {
                values[v][lane] = f[v];
            }
        }
        [0, 1, 2, 3, 4].map(|v| V::load(values[v].as_ptr()))
    }
}
