//! HLLE (Harten, Lax & van Leer 1983; Einfeldt et al. 1991, J. Comput. Phys. 92, 273): two waves, positive and diffusive.
use super::super::eos::conserved_from_primitive;
use super::{flux_of_state, wave_speeds};
use nestar_device::{Lane, device};

/// Returns the HLLE flux between the states `l` and `r` (Toro 2009, eq. 10.21). Wave speeds are clamped to their side of zero, so that a
/// supersonic flow takes the upwind flux.
#[device]
pub fn flux_hlle<R: Lane>(l: &[R; 5], r: &[R; 5], gamma: R) -> [R; 5] {
    let (fastest_left, fastest_right) = wave_speeds(l, r, gamma);
    let s_l = fastest_left.min(0.0);
    let s_r = fastest_right.max(0.0);
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
