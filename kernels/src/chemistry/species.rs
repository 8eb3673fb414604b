//! Species, their sums, and how an increment changes them.
use nestar_device::{Real, device};

/// Index of H+ in [`Abundances`]: first the species that networks solve for (3, 6 or 8), then those that conservation laws eliminate.
#[device]
pub const HII: usize = 0;
/// He+.
#[device]
pub const HEII: usize = 1;
/// He++.
#[device]
pub const HEIII: usize = 2;
/// H-.
#[device]
pub const HM: usize = 3;
/// H2.
#[device]
pub const H2: usize = 4;
/// H2+.
#[device]
pub const H2P: usize = 5;
/// D+.
#[device]
pub const DP: usize = 6;
/// HD.
#[device]
pub const HD: usize = 7;
/// H.
#[device]
pub const HI: usize = 8;
/// He.
#[device]
pub const HEI: usize = 9;
/// D.
#[device]
pub const DI: usize = 10;
/// Number of stored abundances; electrons follow from charge conservation.
#[device]
pub const SPECIES: usize = 11;
/// Index of the electrons among the variables of rates.
#[device]
pub const ELECTRONS: usize = 11;
/// Index of the temperature among the variables of rates.
#[device]
pub const TEMPERATURE: usize = 12;
/// Number of variables of rates: all species, the electrons, the temperature.
#[device]
pub const VARIABLES: usize = 13;

/// Increment of H per increment of a solved species.
#[device]
pub const OF_HI: [f64; 8] = [-1.0, 0.0, 0.0, -1.0, -2.0, -2.0, 0.0, -1.0];
/// Increment of He per increment of a solved species.
#[device]
pub const OF_HEI: [f64; 8] = [0.0, -1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
/// Increment of D per increment of a solved species.
#[device]
pub const OF_DI: [f64; 8] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, -1.0];
/// Increment of the electrons per increment of a solved species.
#[device]
pub const OF_ELECTRONS: [f64; 8] = [1.0, 1.0, 2.0, -1.0, 0.0, 1.0, 1.0, 0.0];
/// Increment of the heat capacity over Boltzmann's constant: 3/2 for each particle, 5/2 for each molecule.
#[device]
pub const OF_HEAT_CAPACITY: [f64; 8] = [1.5, 1.5, 3.0, -1.5, -0.5, 0.0, 1.5, -0.5];
/// Smallest abundance.
#[device]
pub const LEAST: f64 = 1e-20;

/// Abundances per hydrogen nucleus, and the thermal energy per hydrogen nucleus.
#[device]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Abundances<R> {
    /// Abundances in the order of the constants of this module; species that the network lacks are 0.
    pub y: [R; 11],
    /// Thermal energy in kelvin (over Boltzmann's constant).
    pub energy: R,
}

/// Returns the electrons per hydrogen nucleus from charge conservation; at least [`LEAST`].
#[device]
pub fn electrons<R: Real, const S: usize>(s: &Abundances<R>) -> R {
    let mut sum = s.y[HII] + s.y[HEII] + 2.0 * s.y[HEIII];
    if S > 3 {
        sum += s.y[H2P] - s.y[HM];
    }
    if S > 6 {
        sum += s.y[DP];
    }
    sum.max(R::lit(LEAST))
}

/// Returns the heat capacity per hydrogen nucleus over Boltzmann's constant: 3/2 for each atom, ion and electron, 5/2 for each H2 and HD.
#[device]
pub fn heat_capacity<R: Real, const S: usize>(s: &Abundances<R>, electrons: R) -> R {
    let mut single = s.y[HI] + s.y[HII] + s.y[HEI] + s.y[HEII] + s.y[HEIII] + electrons;
    let mut double = R::lit(0.0);
    if S > 3 {
        single = single + s.y[HM] + s.y[H2P];
        double = s.y[H2];
    }
    if S > 6 {
        single = single + s.y[DI] + s.y[DP];
        double += s.y[HD];
    }
    1.5 * single + 2.5 * double
}

/// Returns the temperature in kelvin.
#[device]
pub fn temperature<R: Real, const S: usize>(s: &Abundances<R>) -> R {
    s.energy / heat_capacity::<R, S>(s, electrons::<R, S>(s))
}

/// Returns the sum of hydrogen nuclei.
#[device]
fn hydrogen<R: Real, const S: usize>(s: &Abundances<R>) -> R {
    let mut sum = s.y[HI] + s.y[HII];
    if S > 3 {
        sum = sum + s.y[HM] + 2.0 * (s.y[H2] + s.y[H2P]);
    }
    if S > 6 {
        sum += s.y[HD];
    }
    sum
}

/// Adds increments `d` of the solved species and the energy to `s`. H, He and D change by the increments that the others imply, which
/// preserves their digits if they are small (1 minus the others would not).
#[device]
pub fn add_increment<R: Real, const S: usize, const N: usize>(
    s: &Abundances<R>,
    d: &[R; N],
) -> Abundances<R> {
    let mut v = *s;
    for i in 0..S {
        v.y[i] = s.y[i] + d[i];
    }
    let mut of_h = -d[HII];
    if S > 3 {
        of_h = of_h - d[HM] - 2.0 * (d[H2] + d[H2P]);
    }
    if S > 6 {
        of_h -= d[HD];
        v.y[DI] = s.y[DI] - (d[DP] + d[HD]);
    }
    v.y[HI] = s.y[HI] + of_h;
    v.y[HEI] = s.y[HEI] - (d[HEII] + d[HEIII]);
    v.energy = s.energy + d[S];
    v
}

/// Returns abundances of at least [`LEAST`], scaled by one factor per element to 1 hydrogen, `helium` and `deuterium` nuclei per hydrogen
/// nucleus. Deuterium is scaled first, including HD.
#[device]
pub fn renormalised<R: Real, const S: usize>(
    s: &Abundances<R>,
    helium: R,
    deuterium: R,
) -> Abundances<R> {
    let mut v = *s;
    for i in 0..S {
        v.y[i] = s.y[i].max(R::lit(LEAST));
    }
    v.y[HI] = s.y[HI].max(R::lit(LEAST));
    v.y[HEI] = s.y[HEI].max(R::lit(LEAST));
    if S > 6 {
        v.y[DI] = s.y[DI].max(R::lit(LEAST));
        let factor = deuterium / (v.y[DI] + v.y[DP] + v.y[HD]);
        v.y[DI] *= factor;
        v.y[DP] *= factor;
        v.y[HD] *= factor;
    }
    let he = helium / (v.y[HEI] + v.y[HEII] + v.y[HEIII]);
    v.y[HEI] *= he;
    v.y[HEII] *= he;
    v.y[HEIII] *= he;
    scale_hydrogen::<R, S>(&v)
}

/// Scales the hydrogen outside HD.
#[device]
fn scale_hydrogen<R: Real, const S: usize>(s: &Abundances<R>) -> Abundances<R> {
    let mut v = *s;
    let mut wanted = R::lit(1.0);
    let mut there = hydrogen::<R, S>(s);
    if S > 6 {
        wanted -= s.y[HD];
        there -= s.y[HD];
    }
    let h = wanted / there;
    v.y[HI] = s.y[HI] * h;
    v.y[HII] = s.y[HII] * h;
    if S > 3 {
        v.y[HM] = s.y[HM] * h;
        v.y[H2] = s.y[H2] * h;
        v.y[H2P] = s.y[H2P] * h;
    }
    v
}
