//! The AUFS Riemann solver.
use crate::hydro::eos::{conserved_from_primitive, sound_speed};
use nestar_device::{Lane, device};

/// Returns the flux of artificially upstream flux vector splitting between the states `l` and `r` (Sun & Takayama 2003, J. Comput. Phys. 189,
/// 305), which Luo et al. 2016 use.
///
/// The flux is split at two speeds, that of the contact `s1` and that of the outer wave on its upwind side, `s2`. A contact at rest has `s1 =
/// 0` and stays exact; a shear layer at rest is diffused.
#[device]
pub fn flux_aufs<R: Lane>(l: &[R; 5], r: &[R; 5], gamma: R) -> [R; 5] {
    let c_l = sound_speed(l[0], l[4], gamma);
    let c_r = sound_speed(r[0], r[4], gamma);
    let s1 = 0.5 * (l[1] + r[1]);
    let between = s1 + (c_l - c_r) / (gamma - 1.0);
    let sound = 0.5 * (c_l + c_r) + 0.25 * ((gamma - 1.0) * (l[1] - r[1]));
    let forth = s1 > 0.0;
    let slowest = (l[1] - c_l).min(between - sound).min(0.0);
    let fastest = (r[1] + c_r).max(between + sound).max(0.0);
    let s2 = if forth { slowest } else { fastest };
    let share = s1 / (s1 - s2);

    let mean = 0.5 * (c_l + c_r);
    let half = 0.5 / mean;
    let work_l = l[4] * (l[1] * l[1] + (l[2] * l[2] + l[3] * l[3]));
    let work_r = r[4] * (r[1] * r[1] + (r[2] * r[2] + r[3] * r[3]));
    let jump = l[4] - r[4];
    let pressure = [
        half * jump,
        0.5 * (l[4] + r[4]) + half * (l[4] * l[1] - r[4] * r[1]),
        half * (l[4] * l[2] - r[4] * r[2]),
        half * (l[4] * l[3] - r[4] * r[3]),
        0.5 * (l[4] * l[1] + r[4] * r[1])
            + half * (mean * mean * jump / (gamma - 1.0) + 0.5 * (work_l - work_r)),
    ];
    let w = if forth { *l } else { *r };
    let u = conserved_from_primitive(&w, gamma);
    let through = w[1] - s2;
    let upwind = [
        u[0] * through,
        u[1] * through + w[4],
        u[2] * through,
        u[3] * through,
        u[4] * through + w[4] * w[1],
    ];
    let mut f = [0.0; 5];
    for n in 0..5 {
        f[n] = (1.0 - share) * pressure[n] + share * upwind[n];
    }
    f
}
