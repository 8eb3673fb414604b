//! Cooling by lines: of atoms and ions with electrons (erg cm^3/s), and of H2 and HD (erg cm^3/s per collision partner, erg/s in local thermal
//! equilibrium).

use super::atoms::{dielectronic, hep_radiative, lambda_h, lambda_hep, rate};
use super::fits::{Temperature, decimal_polynomial};
use super::{
    BOLTZMANN, COOL_HEII, COOL_HI, COOL_HII, H2_BY_E, H2_BY_H, H2_BY_H2, H2_BY_HE, H2_BY_HP,
    H2_LTE, H2Cooling, HD_BY_H, K1, K5, Recombination,
};
use nestar_device::math::{exp, log10, pow};

/// Energy lost by an ionisation of H, He, He+, erg: 13.6, 24.6 and 54.4 eV.
const IONISATION: [f64; 3] = [2.18e-11, 3.94e-11, 8.72e-11];
/// Energy lost by a dielectronic recombination of He+, erg (40.6 eV, Cen 1992).
const DIELECTRONIC: f64 = 6.5e-11;

/// Returns the reduction factor of excitation at high temperatures: Cen (1992).
fn high_temperature_factor(t: Temperature) -> f64 {
    1.0 + (t.t / 1e5).sqrt()
}

/// Free-free emission by an ion of charge 1: Cen (1992), with the Gaunt factor of Spitzer & Hart.
fn free_free(t: Temperature) -> f64 {
    let x = 5.5 - log10(t.t);
    1.43e-27 * t.t.sqrt() * (1.1 + 0.34 * exp(-x * x / 3.0))
}

/// Recombination of a hydrogenic ion: Hui & Gnedin (1997), appendix A.
fn hydrogenic(t: Temperature, lambda: f64, case: Recombination) -> f64 {
    match case {
        Recombination::CaseA => {
            1.778e-29 * t.t * pow(lambda, 1.965) / pow(1.0 + pow(lambda / 0.541, 0.502), 2.697)
        }
        Recombination::CaseB => {
            3.435e-30 * t.t * pow(lambda, 1.970) / pow(1.0 + pow(lambda / 2.25, 0.376), 3.720)
        }
    }
}

/// Returns the sum of all losses by He+ and electrons.
fn cooling_by_hep(t: Temperature, case: Recombination) -> f64 {
    let excitation = 5.54e-17 * t.boltzmann(473_638.0) * t.pow(-0.397) / high_temperature_factor(t);
    let ionisation = IONISATION[2] * rate(K5, t, case);
    let recombination = BOLTZMANN * t.t * hep_radiative(t, case) + DIELECTRONIC * dielectronic(t);
    excitation + ionisation + recombination + free_free(t)
}

/// Cooling by a pair: excitation of H by Black (1981) and Cen (1992), of He+ by Cen (1992), ionisation, recombination, free-free.
pub(super) fn atomic_cooling(column: usize, t: Temperature, case: Recombination) -> f64 {
    match column {
        COOL_HI => {
            7.5e-19 * t.boltzmann(118_348.0) / high_temperature_factor(t)
                + IONISATION[0] * rate(K1, t, case)
        }
        COOL_HEII => cooling_by_hep(t, case),
        COOL_HII => hydrogenic(t, lambda_h(t), case) + free_free(t),
        _ => 8.0 * hydrogenic(t, lambda_hep(t), case) + 4.0 * free_free(t),
    }
}

/// H2 with H: Galli & Palla (1998), equation A7, of log10 T.
const GALLI_PALLA: [f64; 5] = [-103.0, 97.59, -48.05, 10.80, -0.9032];
/// H2 with H: Lique (2015), of log10 T/1000 K, from 100 to 5000 K.
const BY_H: [f64; 8] = [
    -24.079_506_09,
    4.541_828_10,
    -2.402_068_96,
    -0.753_552_92,
    4.692_581_78,
    -2.795_735_74,
    -3.147_660_75,
    2.507_513_33,
];
/// H2 with He: Glover & Abel (2008), table 8.
const BY_HE: [f64; 6] = [
    -23.689_237,
    2.189_237_2,
    -0.815_204_38,
    0.290_362_81,
    -0.165_961_84,
    0.191_913_75,
];
/// H2 with H2: Glover & Abel (2008), table 8.
const BY_H2: [f64; 6] = [
    -23.962_112,
    2.094_337_40,
    -0.771_514_36,
    0.436_933_53,
    -0.149_132_16,
    -0.033_638_326,
];
/// H2 with H+: Glover & Abel (2008) as revised by Glover (2015).
const BY_HP: [f64; 6] = [
    -22.089_523,
    1.571_471_1,
    0.015_391_166,
    -0.236_199_85,
    -0.510_022_21,
    0.321_687_30,
];
/// H2 with electrons below 500 K: Glover (2015).
const BY_E_COLD: [f64; 9] = [
    -21.928_796,
    16.815_730,
    96.743_155,
    343.191_80,
    734.716_51,
    983.675_76,
    801.812_47,
    364.144_46,
    70.609_154,
];
/// H2 with electrons above 500 K: Glover (2015).
const BY_E_WARM: [f64; 9] = [
    -22.921_189,
    1.680_275_8,
    0.933_106_22,
    4.040_662_7,
    -4.727_403_6,
    -8.807_701_7,
    8.916_718_3,
    6.438_069_8,
    -6.370_115_6,
];
/// HD with H: Wrathmall, Gusdorf & Flower (2007), of log10 T/1000 K.
const HD_WITH_H: [f64; 6] = [
    -23.175_780,
    1.503_526_1,
    0.408_714_03,
    0.178_493_11,
    -0.077_291_388,
    0.100_313_26,
];
/// HD in equilibrium: Coppola et al. (2011), of log10 T.
const HD_EQUILIBRIUM: [f64; 6] = [-55.5725, 56.649, -37.9102, 12.698, -2.024_24, 0.122_393];

/// H2 in local thermal equilibrium: Hollenbach & McKee (1979), rotation and vibration.
fn h2_equilibrium(t: Temperature) -> f64 {
    let x = t.within(13.0, 1e5).t / 1e3;
    let rotation = 9.5e-22 * pow(x, 3.76) / (1.0 + 0.12 * pow(x, 2.1)) * exp(-pow(0.13 / x, 3.0))
        + 3e-24 * exp(-0.51 / x);
    rotation + 6.7e-19 * exp(-5.86 / x) + 1.6e-18 * exp(-11.7 / x)
}

/// Returns the rate of each collision partner from its fit.
fn glover_abel(column: usize, t: Temperature) -> f64 {
    let x = t.within(10.0, 1e4).t / 1e3;
    match column {
        H2_BY_H if t.below(100.0) => 0.0,
        H2_BY_H => decimal_polynomial(&BY_H, t.within(100.0, 5e3).t / 1e3),
        H2_BY_HE => decimal_polynomial(&BY_HE, x),
        H2_BY_H2 => decimal_polynomial(&BY_H2, x),
        H2_BY_HP => decimal_polynomial(&BY_HP, x),
        _ if t.below(100.0) => 0.0,
        _ if t.below(500.0) => decimal_polynomial(&BY_E_COLD, x),
        _ => decimal_polynomial(&BY_E_WARM, x),
    }
}

/// Returns line cooling by H2, by the selected fit, and by HD.
pub(super) fn molecular_cooling(column: usize, t: Temperature, choice: H2Cooling) -> f64 {
    match (column, choice) {
        (H2_LTE, _) => h2_equilibrium(t),
        (H2_BY_H, H2Cooling::GalliPalla98) => {
            decimal_polynomial(&GALLI_PALLA, t.within(13.0, 1e5).t)
        }
        (H2_BY_HE..=H2_BY_E, H2Cooling::GalliPalla98) => 0.0,
        (H2_BY_H..=H2_BY_E, H2Cooling::GloverAbel08) => glover_abel(column, t),
        (HD_BY_H, _) => decimal_polynomial(&HD_WITH_H, t.within(10.0, 6e3).t / 1e3),
        _ => decimal_polynomial(&HD_EQUILIBRIUM, t.within(10.0, 3e4).t),
    }
}
