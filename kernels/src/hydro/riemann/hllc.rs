//! The HLLC Riemann solver.
use super::wave_speeds;
use crate::hydro::eos::total_energy;
use nestar_device::{Lane, device};

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
