//! Reactions of H-, H2 and H2+, cm^3/s (with three bodies cm^6/s).
use super::fits::{Temperature, decimal_polynomial, exp_polynomial, polynomial};
use super::{K7, K8, K9, K11, K12, K14, K15, K16, K17, K18, K19, K21, ThreeBody};
use nestar_device::math::{exp, ln, pow};

/// H + H+ -> H2+: Latif et al. (2015), of log10 T.
const RADIATIVE_ASSOCIATION: [f64; 4] = [-18.20, -3.194, 1.786, -0.2072];
/// H2 + H+ -> H2+ + H: Savin et al. (2004), of ln T, without the factor exp(-21237.15/T).
const CHARGE_EXCHANGE: [f64; 8] = [
    -3.323_218_3e-7,
    3.373_538_2e-7,
    -1.449_136_8e-7,
    3.417_280_5e-8,
    -4.781_372_0e-9,
    3.973_154_2e-10,
    -1.817_141_1e-11,
    3.531_193_2e-13,
];
/// H- + e -> H + 2e: Abel et al. (1997), reaction 14, of ln T in eV.
const BY_ELECTRONS: [f64; 9] = [
    -18.018_493_342_73,
    2.360_852_208_681,
    -0.282_744_306_170_4,
    0.016_233_166_395_67,
    -0.033_650_120_313_629_99,
    0.011_783_297_827_11,
    -0.001_656_194_699_504,
    0.000_106_827_520_267_8,
    -2.631_285_809_207e-6,
];
/// H- + H -> 2H + e: Abel et al. (1997), reaction 15, of ln T in eV.
const BY_HYDROGEN: [f64; 10] = [
    -20.372_608_965_333_24,
    1.139_449_335_841_631,
    -0.142_101_352_155_414_8,
    0.008_464_455_386_63,
    -0.001_432_764_121_299_2,
    0.000_201_225_028_479_1,
    0.000_086_639_632_430_9,
    -0.000_025_850_096_802_64,
    2.455_501_197_039_2e-6,
    -8.068_382_461_18e-8,
];

/// H- + H -> H2 + e: Kreckel et al. (2010).
pub(super) fn associative_detachment(t: Temperature) -> f64 {
    let above = t.pow(0.098_493) + 0.328_52 * t.pow(0.5561) + 2.771e-7 * t.pow(2.1826);
    let below =
        1.0 + 6.191e-3 * t.pow(1.0461) + 8.9712e-11 * t.pow(3.0424) + 3.2576e-14 * t.pow(3.7741);
    1.35e-9 * above / below
}

/// H + H+ -> H2+: Latif et al. (2015).
fn association(t: Temperature) -> f64 {
    if t.below(30.0) {
        return 2.1e-20 * pow(t.t / 30.0, -0.15);
    }
    decimal_polynomial(&RADIATIVE_ASSOCIATION, t.within(30.0, 3.2e4).t)
}

/// H2 + H+ -> H2+ + H: Savin et al. (2004), valid from 100 to 30000 K.
fn exchange(t: Temperature) -> f64 {
    t.boltzmann(21_237.15) * polynomial(&CHARGE_EXCHANGE, ln(t.within(100.0, 3e4).t))
}

/// H- + e -> H + 2e; nothing below 0.04 eV, where the fit ends.
fn detachment_by_electrons(t: Temperature) -> f64 {
    let from = 0.04 * super::KELVIN_PER_EV;
    exp_polynomial(&BY_ELECTRONS, t.within(from, f64::INFINITY).ev())
}

/// H- + H -> 2H + e.
fn detachment_by_hydrogen(t: Temperature) -> f64 {
    if t.below(0.1 * super::KELVIN_PER_EV) {
        return 2.56e-9 * pow(t.ev(), 1.781_86);
    }
    exp_polynomial(&BY_HYDROGEN, t.ev())
}

/// 3H -> H2 + H.
pub(super) fn three_body(t: Temperature, choice: ThreeBody) -> f64 {
    match choice {
        ThreeBody::Glover08 => 7.7e-31 * t.pow(-0.464),
        ThreeBody::PallaSalpeterStahler83 => 5.5e-29 / t.t,
        ThreeBody::AbelBryanNorman02 => {
            let power = if t.below(300.0) { -0.38 } else { -1.0 };
            1.3e-32 * pow(t.t / 300.0, power)
        }
        ThreeBody::FlowerHarris07 => 1.44e-26 * t.pow(-1.54),
        ThreeBody::Forrey13 => 6e-32 * t.pow(-0.25) + 2e-31 * t.pow(-0.5),
    }
}

/// Reactions 7 to 22: 7 Stancil, Lepp & Dalgarno (1998), 8 Kreckel et al. (2010), 9 Latif et al. (2015), 11 Savin et al. (2004),
/// 12 Trevisan & Tennyson (2002), 14, 15 and 18 Abel et al. (1997), 16 Croft, Dickinson & Gadea (1999),
/// 17 Shapiro & Kang (1987), 19 Dalgarno & Lepp (1987), 21 Cohen & Westberg (1983), 22 by choice.
pub(super) fn rate(column: usize, t: Temperature, choice: ThreeBody) -> f64 {
    match column {
        K7 => 3.0e-16 * pow(t.t / 300.0, 0.95) * exp(-t.t / 9320.0),
        K8 => associative_detachment(t),
        K9 => association(t),
        K11 => exchange(t),
        K12 => 4.4886e-9 * t.pow(0.109_127) * t.boltzmann(101_858.0),
        K14 => detachment_by_electrons(t),
        K15 => detachment_by_hydrogen(t),
        K16 => 2.4e-6 * (1.0 + t.t / 2e4) / t.t.sqrt(),
        K17 if t.below(1e4) => 1e-8 * t.pow(-0.4),
        K17 => 4e-4 * t.pow(-1.4) * t.boltzmann(15_100.0),
        K18 if t.below(617.0) => 1e-8,
        K18 => 1.32e-6 * t.pow(-0.76),
        K19 => 5e-7 * (100.0 / t.t).sqrt(),
        K21 => 2.8e-31 * t.pow(-0.6),
        _ => three_body(t, choice),
    }
}
