//! The local Lax-Friedrichs flux.
use super::flux_of_state;
use crate::hydro::eos::{conserved_from_primitive, sound_speed};
use nestar_device::{Lane, device};

/// Returns the local Lax-Friedrichs flux between the states `l` and `r`, `(F_L + F_R) / 2 - a (U_R - U_L) / 2`, where `a` is the largest `|v| +
/// c` (Rusanov 1961; Toro 2009, eq. 10.55).
#[device]
pub fn flux_llf<R: Lane>(l: &[R; 5], r: &[R; 5], gamma: R) -> [R; 5] {
    let u_l = conserved_from_primitive(l, gamma);
    let u_r = conserved_from_primitive(r, gamma);
    let f_l = flux_of_state(l, u_l[4]);
    let f_r = flux_of_state(r, u_r[4]);
    let fastest_l = l[1].abs() + sound_speed(l[0], l[4], gamma);
    let fastest_r = r[1].abs() + sound_speed(r[0], r[4], gamma);
    let a = fastest_l.max(fastest_r);
    let mut f = [0.0; 5];
    for v in 0..5 {
        f[v] = 0.5 * (f_l[v] + f_r[v]) - 0.5 * a * (u_r[v] - u_l[v]);
    }
    f
}
