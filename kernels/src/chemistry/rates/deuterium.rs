//! Reactions of D, D+ and HD, cm^3/s.
use super::fits::{Temperature, decimal_polynomial, polynomial};
use super::{K50, K51, K52, K53, K54};
use nestar_device::math::{exp, log10, pow};

/// H2 + D+ -> HD + H+: Galli & Palla (2002) after Gerlich (1982), of log10 T.
const EXCHANGE: [f64; 3] = [0.417, 0.846, -0.137];
/// H2 + D -> HD + H: Clark et al. (2011) after Mielke et al. (2003), of log10 T.
const NEUTRAL: [f64; 6] = [-56.4737, 5.88886, 7.19692, 2.25069, -2.16903, 0.317_887];

/// H+ + D -> H + D+: Savin (2002), valid below 2e5 K; above, by its first power.
fn charge_to_deuterium(t: Temperature) -> f64 {
    if t.below(2e5) {
        2.0e-10 * t.pow(0.402) * t.boltzmann(37.1) - 3.31e-17 * t.pow(1.48)
    } else {
        2.5e-8 * pow(t.t / 2e5, 0.402)
    }
}

/// H2 + D -> HD + H.
fn neutral(t: Temperature) -> f64 {
    if t.below(2000.0) {
        decimal_polynomial(&NEUTRAL, t.t)
    } else {
        3.17e-10 * t.boltzmann(5207.0)
    }
}

/// HD + H -> H2 + D: Galli & Palla (2002), constant below 200 K, where the fit rises again.
fn neutral_back(t: Temperature) -> f64 {
    let t = t.within(200.0, f64::INFINITY);
    5.25e-11 * exp(-4430.0 / t.t + 1.739e5 / (t.t * t.t))
}

/// Reactions 50 to 55; 50 and 51 Savin (2002), 52, 53 and 55 Galli & Palla (2002), 54 Clark et al. (2011).
pub(super) fn rate(column: usize, t: Temperature) -> f64 {
    match column {
        K50 => charge_to_deuterium(t),
        K51 => 2.06e-10 * t.pow(0.396) * t.boltzmann(33.0) + 2.03e-9 * t.pow(-0.332),
        K52 => 1e-9 * polynomial(&EXCHANGE, log10(t.within(1.0, 1e4).t)),
        K53 => 1.1e-9 * t.boltzmann(488.0),
        K54 => neutral(t),
        _ => neutral_back(t),
    }
}
