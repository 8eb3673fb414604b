//! The power spectrum of matter in linear theory.

use super::background::integral;
use super::spectrum_table::SpectrumTable;
use crate::fields::PerturbedMatter;
use nestar_device::math::{cos, exp, ln, pow, sin, sqrt};
use std::f64::consts::{E, PI};

/// Shape of the spectrum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Cold dark matter and baryons with acoustic oscillations (Eisenstein & Hu 1998, ApJ 496, 605, equations 15 to 24).
    EisensteinHu,
    /// The same without oscillations (equations 26 and 28 to 31).
    NoWiggle,
    /// A power of the wave number.
    PowerLaw,
}

/// Parameters of the spectrum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpectrumParameters {
    /// Shape.
    pub shape: Shape,
    /// Density parameter of all matter.
    pub omega_m: f64,
    /// Density parameter of baryons.
    pub omega_b: f64,
    /// Hubble constant over 100 km/s/Mpc.
    pub h: f64,
    /// Power of the wave number in the primordial spectrum.
    pub n_s: f64,
    /// Amplitude.
    pub normalisation: Normalisation,
}

/// Amplitude of a spectrum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Normalisation {
    /// Root of the mean square of the density contrast today in spheres of 8 Mpc/h.
    Sigma8(f64),
    /// Primordial amplitude.
    Primordial(PrimordialAmplitude),
}

/// Amplitude of the primordial perturbations of curvature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrimordialAmplitude {
    /// Variance of the curvature for each unit of the logarithm of the wave number at the pivot, A_s.
    pub a_s: f64,
    /// Wave number of the pivot, 1/Mpc.
    pub pivot: f64,
    /// Growing mode today, over the scale factor while matter dominates.
    pub growth: f64,
}

impl PrimordialAmplitude {
    /// Returns the power over `k^n_s T^2`, for wave numbers in h/Mpc and powers in (Mpc/h)^3. The curvature `zeta` gives the density contrast
    /// `2/5 (c k/H0)^2 D T zeta/omega_m` (Dodelson & Schmidt, Modern Cosmology, 2020, section 8.1).
    fn factor(&self, parameters: &SpectrumParameters) -> f64 {
        let SpectrumParameters {
            omega_m, h, n_s, ..
        } = *parameters;
        let hubble_length = SPEED_OF_LIGHT / 100.0;
        let square = hubble_length * hubble_length;
        let per_curvature = 0.4 * square * self.growth / omega_m;
        2.0 * PI * PI * self.a_s * pow(h / self.pivot, n_s - 1.0) * per_curvature * per_curvature
    }
}

/// Speed of light, km/s.
const SPEED_OF_LIGHT: f64 = 299_792.458;

/// Temperature of the microwave background over 2.7 K.
const THETA: f64 = 2.7255 / 2.7;

/// Power spectrum of the density contrast today.
#[derive(Clone, Debug)]
pub struct Spectrum {
    source: Source,
    /// Factor of the spectrum.
    amplitude: f64,
}

/// What the power is computed from.
#[derive(Clone, Debug)]
enum Source {
    Formula(Formula),
    Table {
        table: SpectrumTable,
        /// Share of gas in all matter.
        gas: f64,
    },
}

/// A transfer function in closed form.
#[derive(Clone, Debug)]
struct Formula {
    parameters: SpectrumParameters,
    acoustic: Acoustic,
}

/// Numbers of the transfer function with oscillations that do not depend on the wave number.
#[derive(Clone, Copy, Debug)]
struct Acoustic {
    /// Wave number of the horizon at equality, 1/Mpc.
    k_eq: f64,
    /// Sound horizon, Mpc.
    sound: f64,
    /// Wave number of Silk damping, 1/Mpc.
    k_silk: f64,
    alpha_c: f64,
    beta_c: f64,
    alpha_b: f64,
    beta_b: f64,
    beta_node: f64,
}

impl Acoustic {
    /// Computes the numbers (equations 2 to 12, 14, 15, 23 and 24 of Eisenstein & Hu 1998).
    fn of(parameters: &SpectrumParameters) -> Self {
        let SpectrumParameters {
            omega_m,
            omega_b,
            h,
            ..
        } = *parameters;
        let (m, b, share) = (omega_m * h * h, omega_b * h * h, omega_b / omega_m);
        let theta4 = THETA * THETA * THETA * THETA;
        let z_eq = 2.5e4 * m / theta4;
        let k_eq = 7.46e-2 * m / (THETA * THETA);
        let b1 = 0.313 * pow(m, -0.419) * (1.0 + 0.607 * pow(m, 0.674));
        let b2 = 0.238 * pow(m, 0.223);
        let z_d = 1291.0 * pow(m, 0.251) / (1.0 + 0.659 * pow(m, 0.828)) * (1.0 + b1 * pow(b, b2));
        let momentum = |z: f64| 31.5 * b / theta4 * (1e3 / z);
        let (r_d, r_eq) = (momentum(z_d), momentum(z_eq));
        let ratio = (sqrt(1.0 + r_d) + sqrt(r_d + r_eq)) / (1.0 + sqrt(r_eq));
        let sound = 2.0 / (3.0 * k_eq) * sqrt(6.0 / r_eq) * ln(ratio);
        let k_silk = 1.6 * pow(b, 0.52) * pow(m, 0.73) * (1.0 + pow(10.4 * m, -0.95));
        let a1 = pow(46.9 * m, 0.670) * (1.0 + pow(32.1 * m, -0.532));
        let a2 = pow(12.0 * m, 0.424) * (1.0 + pow(45.0 * m, -0.582));
        let c1 = 0.944 / (1.0 + pow(458.0 * m, -0.708));
        let c2 = pow(0.395 * m, -0.0266);
        let y = (1.0 + z_eq) / (1.0 + z_d);
        let root = sqrt(1.0 + y);
        let g = y * (-6.0 * root + (2.0 + 3.0 * y) * ln((root + 1.0) / (root - 1.0)));
        Self {
            k_eq,
            sound,
            k_silk,
            alpha_c: pow(a1, -share) * pow(a2, -share * share * share),
            beta_c: 1.0 / (1.0 + c1 * (pow(1.0 - share, c2) - 1.0)),
            alpha_b: 2.07 * k_eq * sound * pow(1.0 + r_d, -0.75) * g,
            beta_b: 0.5 + share + (3.0 - 2.0 * share) * sqrt(17.2 * m * 17.2 * m + 1.0),
            beta_node: 8.41 * pow(m, 0.435),
        }
    }

    /// Returns the transfer function at the wave number `k` in 1/Mpc, for this share of baryons.
    fn transfer(&self, k: f64, share: f64) -> f64 {
        let q = k / (13.41 * self.k_eq);
        let pressureless = |alpha: f64, beta: f64| {
            let log = ln(E + 1.8 * beta * q);
            log / (log + (14.2 / alpha + 386.0 / (1.0 + 69.9 * pow(q, 1.08))) * q * q)
        };
        let ks = k * self.sound;
        let f = 1.0 / (1.0 + pow(ks / 5.4, 4.0));
        let dark = f * pressureless(1.0, self.beta_c)
            + (1.0 - f) * pressureless(self.alpha_c, self.beta_c);
        let node = self.beta_node / ks;
        let shifted = ks / pow(1.0 + node * node * node, 1.0 / 3.0);
        let damped = self.beta_b / ks;
        let baryons = (pressureless(1.0, 1.0) / (1.0 + (ks / 5.2) * (ks / 5.2))
            + self.alpha_b / (1.0 + damped * damped * damped) * exp(-pow(k / self.k_silk, 1.4)))
            * sin(shifted)
            / shifted;
        share * baryons + (1.0 - share) * dark
    }
}

impl Formula {
    /// Returns the transfer function at the wave number `k` in h/Mpc.
    fn transfer(&self, k: f64) -> f64 {
        let SpectrumParameters {
            shape,
            omega_m,
            omega_b,
            h,
            ..
        } = self.parameters;
        let share = omega_b / omega_m;
        match shape {
            Shape::EisensteinHu => self.acoustic.transfer(k * h, share),
            Shape::PowerLaw => 1.0,
            Shape::NoWiggle => {
                let (m, b) = (omega_m * h * h, omega_b * h * h);
                let sound = 44.5 * ln(9.83 / m) / sqrt(1.0 + 10.0 * pow(b, 0.75));
                let alpha =
                    1.0 - 0.328 * ln(431.0 * m) * share + 0.38 * ln(22.3 * m) * share * share;
                let gamma =
                    omega_m * h * (alpha + (1.0 - alpha) / (1.0 + pow(0.43 * k * h * sound, 4.0)));
                let q = k * THETA * THETA / gamma;
                let log = ln(2.0 * E + 1.8 * q);
                log / (log + (14.2 + 731.0 / (1.0 + 62.5 * q)) * q * q)
            }
        }
    }
}

impl Spectrum {
    /// Creates a spectrum in closed form with its normalisation.
    #[must_use]
    pub fn new(parameters: SpectrumParameters) -> Self {
        let formula = Formula {
            parameters,
            acoustic: Acoustic::of(&parameters),
        };
        let amplitude = match parameters.normalisation {
            Normalisation::Sigma8(_) => 1.0,
            Normalisation::Primordial(primordial) => primordial.factor(&parameters),
        };
        let spectrum = Self {
            source: Source::Formula(formula),
            amplitude,
        };
        match parameters.normalisation {
            Normalisation::Sigma8(sigma8) => spectrum.with_sigma8(sigma8),
            Normalisation::Primordial(_) => spectrum,
        }
    }

    /// Creates a spectrum from a table, whose powers are multiplied by `factor`; `gas` is the share of gas in all matter.
    #[must_use]
    pub fn tabulated(table: SpectrumTable, gas: f64, factor: f64) -> Self {
        Self {
            source: Source::Table { table, gas },
            amplitude: factor,
        }
    }

    /// Changes the amplitude to this root of the mean square of the density contrast today in spheres of 8 Mpc/h.
    #[must_use]
    pub fn with_sigma8(mut self, sigma8: f64) -> Self {
        self.amplitude = 1.0;
        let ratio = sigma8 / self.sigma(8.0);
        self.amplitude = ratio * ratio;
        self
    }

    /// Returns `true` if gas and dark matter have powers of their own.
    #[must_use]
    pub fn is_by_species(&self) -> bool {
        matches!(&self.source, Source::Table { table, .. } if table.is_by_species())
    }

    /// Returns the power of gas or of dark matter at the wave number `k` in h/Mpc, in (Mpc/h)^3.
    #[must_use]
    pub fn power_of(&self, k: f64, of: PerturbedMatter) -> f64 {
        match &self.source {
            Source::Formula(_) => self.power(k),
            Source::Table { table, .. } => self.amplitude * table.power(k, of),
        }
    }

    /// Returns the power of all matter at the wave number `k` in h/Mpc, in (Mpc/h)^3.
    #[must_use]
    pub fn power(&self, k: f64) -> f64 {
        match &self.source {
            Source::Formula(formula) => {
                let transfer = formula.transfer(k);
                self.amplitude * pow(k, formula.parameters.n_s) * transfer * transfer
            }
            Source::Table { table, gas } => self.amplitude * table.total(k, *gas),
        }
    }

    /// Returns the root of the mean square of the density contrast in spheres of `radius` in Mpc/h.
    #[must_use]
    pub fn sigma(&self, radius: f64) -> f64 {
        let per_log = |x: f64| {
            let k = exp(x) / radius;
            let kr = k * radius;
            let window = match kr < 1e-2 {
                true => 1.0 - 0.1 * kr * kr,
                false => 3.0 * (sin(kr) - kr * cos(kr)) / (kr * kr * kr),
            };
            k * k * k * self.power(k) * window * window / (2.0 * PI * PI)
        };
        // the oscillations of the window become dense in the logarithm: steps are short where it still counts
        let range = [ln(1e-5), ln(300.0)];
        let steps = 2000;
        let step = (range[1] - range[0]) / f64::from(steps);
        let one = |n: i32| {
            let from = range[0] + step * f64::from(n);
            integral(from, from + step, per_log)
        };
        sqrt((0..steps).map(one).sum::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::super::background::{Background, DensityParameters};
    use super::{Normalisation, PrimordialAmplitude, Shape, Spectrum, SpectrumParameters};

    /// The universe of the preset `planck2018`.
    fn planck(normalisation: Normalisation) -> Spectrum {
        Spectrum::new(SpectrumParameters {
            shape: Shape::EisensteinHu,
            omega_m: 0.3111,
            omega_b: 0.049,
            h: 0.6766,
            n_s: 0.9665,
            normalisation,
        })
    }

    fn growth() -> f64 {
        let parameters = DensityParameters {
            matter: 0.3111,
            dark_energy: 0.6889,
            radiation: 0.0,
            w0: -1.0,
            wa: 0.0,
        };
        let background = Background::new(parameters, 0.02, 1.0);
        background.expect("an expanding universe").growth(1.0)
    }

    /// Against the same formulas in Python, with growth and variance by Simpson's rule (40000 steps).
    #[test]
    fn the_primordial_amplitude_gives_the_power_of_an_independent_quadrature() {
        let amplitude = PrimordialAmplitude {
            a_s: 2.1e-9,
            pivot: 0.05,
            growth: growth(),
        };
        let spectrum = planck(Normalisation::Primordial(amplitude));
        let errors = [
            spectrum.sigma(8.0) / 0.830_469_415_500_8 - 1.0,
            spectrum.power(0.1) / 5_878.324_416_004 - 1.0,
        ];
        println!("sigma8, power: {errors:?}");
        assert!(errors[0].abs() < 1e-7, "{errors:?}");
        assert!(errors[1].abs() < 1e-7, "{errors:?}");
    }

    /// Both normalisations of one spectrum agree, and the power is proportional to the amplitude, at any pivot.
    #[test]
    fn both_normalisations_agree() {
        let [base, other] = [(2.1e-9, 0.05), (2.1e-9, 0.002)].map(|(a_s, pivot)| {
            let growth = 0.79;
            planck(Normalisation::Primordial(PrimordialAmplitude {
                a_s,
                pivot,
                growth,
            }))
        });
        let same = planck(Normalisation::Sigma8(base.sigma(8.0)));
        for k in [0.001, 0.05, 3.0] {
            assert!((same.power(k) / base.power(k) - 1.0).abs() < 1e-13, "{k}");
        }
        let ratio = base.power(0.1) / other.power(0.1);
        let tilt = 25.0_f64.powf(1.0 - 0.9665);
        assert!((ratio / tilt - 1.0).abs() < 1e-13, "{ratio}");
    }
}
