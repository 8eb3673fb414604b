//! Roe's Riemann solver.
use super::flux_of_state;
use super::hlle::hlle_between;
use crate::hydro::eos::{conserved_from_primitive, sound_speed};
use nestar_device::{Lane, device};

/// Returns the mean of a velocity or specific enthalpy, weighted by the roots of the densities: `(rho_L x_L + rho_R x_R + m (x_L + x_R)) w` with
/// `m = sqrt(rho_L rho_R)`, `w = 1 / (rho_L + rho_R + 2 m)`.
#[device]
fn averaged<R: Lane>(l: &[R; 5], r: &[R; 5], v: usize, mean: R, weight: R) -> R {
    ((l[0] * l[v] + r[0] * r[v]) + mean * (l[v] + r[v])) * weight
}

/// Returns 1 if density and internal energy of a conserved state are positive, else 0.
#[device]
fn is_positive<R: Lane>(u: &[R; 5]) -> R {
    let kinetic = 0.5 * (u[1] * u[1] + (u[2] * u[2] + u[3] * u[3]));
    let sane = (u[0] > 0.0) & (u[4] > kinetic / u[0]);
    if sane { 1.0 } else { 0.0 }
}

/// Returns the flux of Roe's solver between the states `l` and `r` (Roe 1981, J. Comput. Phys. 43, 357; Toro 2009, sec. 11.2).
///
/// The speeds of the acoustic waves are bounded from below by the entropy fix of Harten & Hyman 1983 (J. Comput. Phys. 50, 235). If density or
/// pressure between the waves is not positive, the flux is that of the two outer waves (HLLE), as in Schive et al. 2018, sec. 2.2. In single
/// precision the product of the two densities must be in range, as in [`wave_speeds`](super::wave_speeds).
#[device]
pub fn flux_roe<R: Lane>(l: &[R; 5], r: &[R; 5], gamma: R) -> [R; 5] {
    let c_l = sound_speed(l[0], l[4], gamma);
    let c_r = sound_speed(r[0], r[4], gamma);
    let mean = (l[0] * r[0]).sqrt();
    let weight = 1.0 / ((l[0] + r[0]) + 2.0 * mean);
    let u = averaged(l, r, 1, mean, weight);
    let v = averaged(l, r, 2, mean, weight);
    let w = averaged(l, r, 3, mean, weight);
    let (du, dv, dw) = (r[1] - l[1], r[2] - l[2], r[3] - l[3]);
    let (drho, dp) = (r[0] - l[0], r[4] - l[4]);
    // without cancellation: the square of the sound speed at the averaged enthalpy
    let shear = 0.5 * (gamma - 1.0) * mean * (du * du + (dv * dv + dw * dw));
    let c2 = ((gamma * (l[4] + r[4]) + mean * (c_l * c_l + c_r * c_r)) + shear) * weight;
    let c = c2.sqrt();
    let kinetic = 0.5 * (u * u + (v * v + w * w));
    let enthalpy = c2 / (gamma - 1.0) + kinetic;

    let pressure_part = dp / c2;
    let velocity_part = mean * (du / c);
    let slow = 0.5 * (pressure_part - velocity_part);
    let fast = 0.5 * (pressure_part + velocity_part);
    let entropy = drho - pressure_part;
    let (shear_v, shear_w) = (mean * dv, mean * dw);
    let of_slow = [1.0, u - c, v, w, enthalpy - u * c];
    let of_fast = [1.0, u + c, v, w, enthalpy + u * c];

    let (speed_slow, speed_fast) = (u - c, u + c);
    let fix_slow = (speed_slow - (l[1] - c_l)).max((r[1] - c_r) - speed_slow);
    let fix_fast = (speed_fast - (l[1] + c_l)).max((r[1] + c_r) - speed_fast);
    let wave_slow = speed_slow.abs().max(fix_slow.max(0.0)) * slow;
    let wave_fast = speed_fast.abs().max(fix_fast.max(0.0)) * fast;
    let wave_entropy = u.abs() * entropy;
    let (wave_v, wave_w) = (u.abs() * shear_v, u.abs() * shear_w);
    let carried = (wave_slow + wave_fast) + wave_entropy;
    let dissipation = [
        carried,
        (wave_slow * of_slow[1] + wave_fast * of_fast[1]) + wave_entropy * u,
        carried * v + wave_v,
        carried * w + wave_w,
        (wave_slow * of_slow[4] + wave_fast * of_fast[4])
            + (wave_entropy * kinetic + (wave_v * v + wave_w * w)),
    ];

    let u_l = conserved_from_primitive(l, gamma);
    let u_r = conserved_from_primitive(r, gamma);
    let f_l = flux_of_state(l, u_l[4]);
    let f_r = flux_of_state(r, u_r[4]);
    let mut behind_slow = [0.0; 5];
    let mut behind_fast = [0.0; 5];
    for n in 0..5 {
        behind_slow[n] = u_l[n] + slow * of_slow[n];
        behind_fast[n] = u_r[n] - fast * of_fast[n];
    }
    let sane = is_positive(&behind_slow).min(is_positive(&behind_fast));
    let slowest = speed_slow.min(l[1] - c_l).min(0.0);
    let fastest = speed_fast.max(r[1] + c_r).max(0.0);
    let outer = hlle_between(l, r, slowest, fastest, gamma);
    let mut f = [0.0; 5];
    for n in 0..5 {
        let roe = 0.5 * (f_l[n] + f_r[n]) - 0.5 * dissipation[n];
        f[n] = if sane > 0.0 { roe } else { outer[n] };
    }
    f
}
