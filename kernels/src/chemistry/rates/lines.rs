//! Cooling by atoms and ions with electrons, erg cm^3/s.
use super::atoms::{dielectronic, hep_radiative, lambda_h, lambda_hep, rate};
use super::fits::Temperature;
use super::{BOLTZMANN, COOL_HEII, COOL_HI, COOL_HII, K1, K5, Recombination};
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
pub(super) fn cooling(column: usize, t: Temperature, case: Recombination) -> f64 {
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
