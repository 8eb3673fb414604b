//! Ionisation and recombination of H and He, cm^3/s.
use super::fits::{Temperature, exp_polynomial};
use super::{K1, K2, K3, K4, K5, K6, K57, Recombination};
use nestar_device::math::pow;

/// H + e -> H+ + 2e: polynomial of ln T in eV, Abel et al. (1997), reaction 1.
const H_IONISATION: [f64; 9] = [
    -32.713_967_863_75,
    13.536_556_090_57,
    -5.739_328_757_388,
    1.563_154_982_022,
    -0.287_705_600_439_1,
    0.034_825_597_737_369_99,
    -0.002_631_976_175_59,
    0.000_111_954_395_386_1,
    -2.039_149_852_002e-6,
];
/// He + e -> He+ + 2e: Abel et al. (1997), reaction 3.
const HE_IONISATION: [f64; 9] = [
    -44.098_648_865_610_01,
    23.915_965_634_69,
    -10.753_230_198_21,
    3.058_038_757_198,
    -0.568_511_890_988_4,
    0.067_953_912_337_9,
    -0.005_009_056_101_857_001,
    0.000_206_723_615_750_7,
    -3.649_161_410_833e-6,
];
/// He+ + e -> He++ + 2e: Abel et al. (1997), reaction 5.
const HEP_IONISATION: [f64; 9] = [
    -68.710_409_902_12,
    43.933_476_326_35,
    -18.480_669_935_68,
    4.701_626_486_759_002,
    -0.769_246_633_449_2,
    0.081_130_420_973_03,
    -0.005_324_020_628_287_001,
    0.000_197_570_531_222_1,
    -3.165_581_065_665e-6,
];

/// 2 x 157807 K / T, as Hui & Gnedin (1997) write the ionisation threshold of H.
pub(super) fn lambda_h(t: Temperature) -> f64 {
    315_614.0 / t.t
}

/// That of He.
pub(super) fn lambda_he(t: Temperature) -> f64 {
    570_670.0 / t.t
}

/// That of He+.
pub(super) fn lambda_hep(t: Temperature) -> f64 {
    1_263_030.0 / t.t
}

/// Dielectronic recombination of He+: Aldrovandi & Péquignot (1973).
pub(super) fn dielectronic(t: Temperature) -> f64 {
    1.9e-3 * t.pow(-1.5) * t.boltzmann(4.7e5) * (1.0 + 0.3 * t.boltzmann(9.4e4))
}

/// Radiative recombination of He+: Hui & Gnedin (1997), appendix A.
pub(super) fn hep_radiative(t: Temperature, case: Recombination) -> f64 {
    match case {
        Recombination::CaseA => 3e-14 * pow(lambda_he(t), 0.654),
        Recombination::CaseB => 1.26e-14 * pow(lambda_he(t), 0.75),
    }
}

/// Recombination of a hydrogenic ion: Hui & Gnedin (1997), appendix A.
fn hydrogenic(lambda: f64, case: Recombination) -> f64 {
    match case {
        Recombination::CaseA => {
            1.269e-13 * pow(lambda, 1.503) / pow(1.0 + pow(lambda / 0.522, 0.470), 1.923)
        }
        Recombination::CaseB => {
            2.753e-14 * pow(lambda, 1.5) / pow(1.0 + pow(lambda / 2.74, 0.407), 2.242)
        }
    }
}

/// Ionisation threshold of H, kelvin, in collisions of neutral atoms.
const NEUTRAL_THRESHOLD: f64 = 157_800.0;

/// Reactions 1 to 6, 57 and 58; the last two Lenzuni, Chernoff & Salpeter (1991), after Gealy & van Zyl (1987) and van Zyl, Le & Amme
/// (1981).
pub(super) fn rate(column: usize, t: Temperature, case: Recombination) -> f64 {
    match column {
        K1 => exp_polynomial(&H_IONISATION, t.ev()),
        K2 => hydrogenic(lambda_h(t), case),
        K3 => exp_polynomial(&HE_IONISATION, t.ev()),
        K4 => hep_radiative(t, case) + dielectronic(t),
        K5 => exp_polynomial(&HEP_IONISATION, t.ev()),
        K6 => 2.0 * hydrogenic(lambda_hep(t), case),
        K57 => 1.2e-17 * t.pow(1.2) * t.boltzmann(NEUTRAL_THRESHOLD),
        _ => 1.75e-17 * t.pow(1.3) * t.boltzmann(NEUTRAL_THRESHOLD),
    }
}
