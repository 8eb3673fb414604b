//! Dissociation of H2 by H and by H2 at any density, in detailed balance with three-body formation at high density, cm^3/s.
use super::fits::{Temperature, polynomial};
use super::molecules::{rate, three_body};
use super::{BOLTZMANN, K21, MYR, ThreeBody};
use nestar_device::math::{exp, ln, log10, pow};

/// H2 + H -> 3H by collisions: Martin, Schwarz & Mandy (1996), table 1.
const COLLISIONS: [f64; 21] = [
    -1.784_239e2,
    -6.842_243e1,
    4.320_243e1,
    -4.633_167,
    6.970_086e1,
    4.087_038e4,
    -2.370_570e4,
    1.288_953e2,
    -5.391_334e1,
    5.315_517,
    -1.973_427e1,
    1.678_095e4,
    -2.578_611e4,
    1.482_123e1,
    -4.890_915,
    4.749_030e-1,
    -1.338_283e2,
    -1.164_408,
    8.227_443e-1,
    5.864_073e-1,
    -2.056_313,
];
/// H2 + H -> 3H by tunnelling: Martin, Schwarz & Mandy (1996), table 2.
const TUNNELLING: [f64; 21] = [
    -1.427_664e2,
    4.270_741e1,
    -2.027_365,
    -2.582_097e-1,
    2.136_094e1,
    2.753_531e4,
    -2.146_779e4,
    6.034_928e1,
    -2.743_096e1,
    2.676_150,
    -1.128_215e1,
    1.425_455e4,
    -2.312_520e4,
    9.305_564,
    -2.464_009,
    1.985_955e-1,
    7.430_600e2,
    -1.174_242,
    7.502_286e-1,
    2.358_848e-1,
    2.937_507,
];
/// Thermodynamic functions of H2 below and above 6000 K: McBride, Zehe & Gordon (2002), NASA/TP-2002-211556.
const MOLECULE: [[f64; 9]; 2] = [
    [
        5.608_128_01e5,
        -8.371_504_74e2,
        2.975_364_532,
        1.252_249_124e-3,
        -3.740_716_19e-7,
        5.936_625_2e-11,
        -3.606_994_1e-15,
        5.339_824_41e3,
        -2.202_774_769,
    ],
    [
        4.966_884_12e8,
        -3.147_547_149e5,
        7.984_121_88e1,
        -8.414_789_21e-3,
        4.753_248_35e-7,
        -1.371_873_492e-11,
        1.605_461_756e-16,
        2.488_433_516e6,
        -6.695_728_11e2,
    ],
];
/// Those of H at all temperatures: only `a3`, `b1` and `b2` are not 0.
const ATOM: [f64; 9] = [
    0.0,
    0.0,
    2.5,
    0.0,
    0.0,
    0.0,
    0.0,
    2.547_370_801e4,
    -4.466_828_53e-1,
];
/// Pressure of the standard state, erg/cm^3.
const BAR: f64 = 1e6;

/// Returns the Gibbs energy over RT in the standard state.
fn gibbs(c: &[f64; 9], t: f64) -> f64 {
    let log = ln(t);
    let enthalpy = -c[0] / (t * t)
        + c[1] * log / t
        + polynomial(&[c[2], c[3] / 2.0, c[4] / 3.0, c[5] / 4.0, c[6] / 5.0], t)
        + c[7] / t;
    let entropy = -c[0] / (2.0 * t * t) - c[1] / t
        + c[2] * log
        + polynomial(&[0.0, c[3], c[4] / 2.0, c[5] / 3.0, c[6] / 4.0], t)
        + c[8];
    enthalpy - entropy
}

/// Returns the natural logarithm of Saha's constant `n(H)^2/n(H2)`, per cm^3. Above 20000 K, where the data end, it keeps its value.
pub fn saha(t: Temperature) -> f64 {
    let t = t.within(1.0, 2e4);
    let molecule = &MOLECULE[usize::from(!t.below(6e3))];
    gibbs(molecule, t.t) - 2.0 * gibbs(&ATOM, t.t) + ln(BAR / (BOLTZMANN * t.t))
}

/// Fit of Martin, Schwarz & Mandy (1996) at one temperature: decimal logarithms of the limits, in two terms, and critical densities.
#[derive(Clone, Copy, Debug)]
struct DensityFit {
    dense: [f64; 2],
    thin: [f64; 2],
    critical: [f64; 2],
    power: f64,
}

impl DensityFit {
    fn at(c: &[f64; 21], t: f64) -> Self {
        let x = log10(t);
        let first = pow(10.0, polynomial(&c[13..16], x) + c[16] / t);
        Self {
            dense: [
                polynomial(&c[..4], x) + c[4] * log10(1.0 + c[5] / t),
                c[6] / t,
            ],
            thin: [
                polynomial(&c[7..10], x) + c[10] * log10(1.0 + c[11] / t),
                c[12] / t,
            ],
            critical: [first, first * pow(10.0, c[17])],
            power: c[18] + c[19] * exp(-t / 1850.0) + c[20] * exp(-t / 440.0),
        }
    }

    /// Returns the rate where the thin limits have these weights.
    fn rate(&self, weights: [f64; 2]) -> f64 {
        let term = |k: usize| self.dense[k] - weights[k] * (self.dense[k] - self.thin[k]);
        pow(10.0, term(0) + term(1))
    }

    /// Returns the rate at a density.
    fn at_density(&self, density: f64) -> f64 {
        self.rate(
            self.critical
                .map(|n| 1.0 / (1.0 + pow(density / n, self.power))),
        )
    }
}

/// Rates of the dissociation of H2 at one temperature.
#[derive(Clone, Copy, Debug)]
pub struct Dissociation {
    fits: [DensityFit; 2],
    /// Natural logarithms of the rates by H and by H2 in local thermal equilibrium.
    dense: [f64; 2],
    /// Those at low density.
    thin: [f64; 2],
    /// Critical density of H2 with H2.
    critical: f64,
}

impl Dissociation {
    /// Returns the rates at a temperature.
    ///
    /// In local thermal equilibrium, the rates are those of three-body formation (by `choice`, and reaction 21) times Saha's constant. At
    /// low density, collisions with H follow Martin, Schwarz & Mandy (1996), and with H2 Martin, Keogh & Mandy (1998). Critical densities
    /// are those of Martin, Schwarz & Mandy (1996), and with H2 of Glover & Abel (2008), equation 17.
    #[must_use]
    pub fn at(t: Temperature, choice: ThreeBody) -> Self {
        let fitted = t.within(500.0, 1e6).t;
        let fits = [&COLLISIONS, &TUNNELLING].map(|c| DensityFit::at(c, fitted));
        let saha = saha(t);
        let x = log10(t.within(500.0, 3e4).t / 1e4);
        let by_h2 = 5.996e-30 * t.pow(4.1881) / pow(1.0 + 6.761e-6 * t.t, 5.6881);
        Self {
            fits,
            dense: [
                ln(three_body(t, choice)) + saha,
                ln(rate(K21, t, choice)) + saha,
            ],
            thin: [
                ln(sum(&fits, |fit| fit.rate([1.0; 2]))),
                ln(by_h2) - 54_657.4 / t.t,
            ],
            critical: pow(10.0, polynomial(&[4.845, -1.3, 1.62], x)),
        }
    }

    /// Returns the rates by H and by H2 at a density of hydrogen nuclei per cm^3, in cm^3 per Myr.
    ///
    /// Logarithms lie between those of the limits, by H with the weights of Martin, Schwarz & Mandy (1996).
    #[must_use]
    pub fn rates(&self, density: f64) -> [f64; 2] {
        let dense = ln(sum(&self.fits, |fit| fit.rate([0.0; 2])));
        let there = ln(sum(&self.fits, |fit| fit.at_density(density)));
        let weights = [
            (dense - there) / (dense - self.thin[0]),
            1.0 / (1.0 + density / self.critical),
        ];
        let mix = |k: usize| self.dense[k] - weights[k] * (self.dense[k] - self.thin[k]);
        [MYR * exp(mix(0)), MYR * exp(mix(1))]
    }

    /// Returns the rates by H and by H2 in local thermal equilibrium, in cm^3 per Myr.
    #[must_use]
    pub fn dense(&self) -> [f64; 2] {
        self.dense.map(|log| MYR * exp(log))
    }
}

fn sum(fits: &[DensityFit; 2], rate: impl Fn(&DensityFit) -> f64) -> f64 {
    rate(&fits[0]) + rate(&fits[1])
}
