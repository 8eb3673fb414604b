//! Rates of reactions and cooling from published fits, in cgs and kelvin, and the columns of the lookup table.
mod atoms;
mod deuterium;
mod dissociation;
mod fits;
mod lines;
mod molecules;

pub use dissociation::{Dissociation, saha};
pub use fits::Temperature;
use nestar_device::device;

/// Seconds in a Myr (Julian years).
pub const MYR: f64 = 3.155_76e13;
/// Boltzmann's constant, erg/K.
pub const BOLTZMANN: f64 = 1.380_649e-16;
/// Kelvin in an electronvolt.
pub const KELVIN_PER_EV: f64 = 11_604.518;

/// Recombination of ionised gas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recombination {
    /// To all levels: photons of recombination escape.
    #[default]
    CaseA,
    /// To all levels but the lowest: its photons ionise again nearby.
    CaseB,
}

/// The rate of H + H + H -> H2 + H.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreeBody {
    /// Glover (2008): 7.7e-31 T^-0.464.
    #[default]
    Glover08,
    /// Palla, Salpeter & Stahler (1983): 5.5e-29 / T.
    PallaSalpeterStahler83,
    /// Abel, Bryan & Norman (2002): 1.3e-32 (T/300)^-0.38 below 300 K, (T/300)^-1 above.
    AbelBryanNorman02,
    /// Flower & Harris (2007): 1.44e-26 T^-1.54.
    FlowerHarris07,
    /// Forrey (2013): 6e-32 T^-0.25 + 2e-31 T^-0.5.
    Forrey13,
}

/// Cooling by lines of H2 at low density.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum H2Cooling {
    /// Collisions with H: Galli & Palla (1998); in equilibrium Hollenbach & McKee (1979).
    #[default]
    GalliPalla98,
    /// Collisions with H, He, H2, H+ and electrons: Glover & Abel (2008), H by Lique (2015).
    GloverAbel08,
}

/// Options of the rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateChoices {
    /// Recombination of H+, He+ and He++.
    pub recombination: Recombination,
    /// Three-body formation of H2.
    pub three_body: ThreeBody,
    /// Lines of H2.
    pub h2_cooling: H2Cooling,
}

macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident = $n:literal;)*) => {$(
        $(#[$doc])*
        #[device]
        pub const $name: usize = $n;
    )*};
}

columns! {
    /// H + e -> H+ + 2e.
    K1 = 0;
    /// H+ + e -> H.
    K2 = 1;
    /// He + e -> He+ + 2e.
    K3 = 2;
    /// He+ + e -> He.
    K4 = 3;
    /// He+ + e -> He++ + 2e.
    K5 = 4;
    /// He++ + e -> He+.
    K6 = 5;
    /// H + H -> H+ + e + H.
    K57 = 6;
    /// H + He -> H+ + e + He.
    K58 = 7;
    /// Cooling by H and electrons: excitation, ionisation.
    COOL_HI = 8;
    /// Cooling by He+ and electrons: excitation, ionisation, recombination, free-free.
    COOL_HEII = 9;
    /// Cooling by H+ and electrons: recombination, free-free.
    COOL_HII = 10;
    /// Cooling by He++ and electrons: recombination, free-free.
    COOL_HEIII = 11;
    /// H + e -> H-.
    K7 = 12;
    /// H- + H -> H2 + e.
    K8 = 13;
    /// H + H+ -> H2+.
    K9 = 14;
    /// H2 + H+ -> H2+ + H.
    K11 = 15;
    /// H2 + e -> 2H + e.
    K12 = 16;
    /// H- + e -> H + 2e.
    K14 = 17;
    /// H- + H -> 2H + e.
    K15 = 18;
    /// H- + H+ -> 2H.
    K16 = 19;
    /// H- + H+ -> H2+ + e.
    K17 = 20;
    /// H2+ + e -> 2H.
    K18 = 21;
    /// H2+ + H- -> H2 + H.
    K19 = 22;
    /// 2H + H2 -> 2 H2.
    K21 = 23;
    /// 3H -> H2 + H.
    K22 = 24;
    /// Lines of H2 in local thermal equilibrium, per molecule.
    H2_LTE = 25;
    /// Lines of H2 excited by H.
    H2_BY_H = 26;
    /// Lines of H2 excited by He.
    H2_BY_HE = 27;
    /// Lines of H2 excited by H2.
    H2_BY_H2 = 28;
    /// Lines of H2 excited by H+.
    H2_BY_HP = 29;
    /// Lines of H2 excited by electrons.
    H2_BY_E = 30;
    /// H+ + D -> H + D+.
    K50 = 31;
    /// H + D+ -> H+ + D.
    K51 = 32;
    /// H2 + D+ -> HD + H+.
    K52 = 33;
    /// HD + H+ -> H2 + D+.
    K53 = 34;
    /// H2 + D -> HD + H.
    K54 = 35;
    /// HD + H -> H2 + D.
    K55 = 36;
    /// Lines of HD excited by H.
    HD_BY_H = 37;
    /// Lines of HD in local thermal equilibrium, per molecule.
    HD_LTE = 38;
}

/// Returns the number of table columns of a network of 6, 9 or 12 species.
#[must_use]
pub const fn columns(species: usize) -> usize {
    match species {
        6 => 12,
        9 => 31,
        _ => 39,
    }
}

/// Returns the value of a column at a temperature, in Myr, cm^3 and kelvin.
#[must_use]
pub fn value(column: usize, t: Temperature, choices: RateChoices) -> f64 {
    let energy = MYR / BOLTZMANN;
    match column {
        K1..=K58 => MYR * atoms::rate(column, t, choices.recombination),
        COOL_HI..=COOL_HEIII => energy * lines::atomic_cooling(column, t, choices.recombination),
        K7..=K22 => MYR * molecules::rate(column, t, choices.three_body),
        K50..=K55 => MYR * deuterium::rate(column, t),
        _ => energy * lines::molecular_cooling(column, t, choices.h2_cooling),
    }
}
