//! The table `[chemistry]`.

use super::radiation::{Radiation, RadiationConfig};
use nestar_deck::{Deck, DeckError};
use nestar_kernels::chemistry::{
    Background, H2Cooling, Network, RateChoices, Recombination, ThreeBody, Tolerances,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Recombination of ionised gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RecombinationConfig {
    /// To all levels: photons of recombination escape.
    CaseA,
    /// To all levels but the lowest: its photons ionise again nearby.
    CaseB,
}

/// The rate of H + H + H -> H2 + H.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ThreeBodyConfig {
    /// Glover (2008).
    Glover08,
    /// Palla, Salpeter & Stahler (1983).
    PallaSalpeterStahler83,
    /// Abel, Bryan & Norman (2002).
    AbelBryanNorman02,
    /// Flower & Harris (2007).
    FlowerHarris07,
    /// Forrey (2013).
    Forrey13,
}

/// Cooling by lines of H2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum H2CoolingConfig {
    /// Excitation by H: Galli & Palla (1998).
    GalliPalla98,
    /// Excitation by H, He, H2, H+ and electrons: Glover & Abel (2008), by H after Lique (2015).
    GloverAbel08,
}

/// What the species are at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InitialConfig {
    /// Atoms and ions in equilibrium of ionisation at the density and pressure that the scenario gives, without molecules.
    Equilibrium,
    /// Mass fractions that the scenario gives, for example in `[initial.scalars]`; what is not given is neutral.
    Given,
}

/// Primordial chemistry with its heating and cooling: densities of ions and molecules follow from their reactions, not from
/// equilibrium. Species are scalars of the gas, by mass: HI, HII, HeI, HeII, HeIII, with 9 species HM (H-), H2I, H2II, with 12 DI, DII, HDI;
/// electrons follow from charge. Needs `[units]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChemistryConfig {
    /// 6 (H, He, their ions and electrons), 9 (and H-, H2, H2+) or 12 (and D, D+, HD).
    pub species: u32,
    /// Mass fraction of hydrogen; helium is the rest.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub hydrogen_fraction: f64,
    /// Deuterium nuclei per hydrogen nucleus, with 12 species.
    #[schemars(range(min = 0.0, max = 0.1))]
    pub deuterium: f64,
    /// What the species are at the beginning.
    pub initial: InitialConfig,
    /// Lowest temperature of the gas; absent: that of the microwave background, 2.725 (1 + redshift) K.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "unit" = "K"))]
    pub floor_k: Option<f64>,
    /// Redshift of the microwave background, which gas exchanges heat with by Compton scattering; absent: it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub redshift: Option<f64>,
    /// Heating beside that of photo-ionisation, a number or a formula of x, y, z, r, t and the density.
    #[serde(deserialize_with = "crate::fields::rates::text")]
    #[schemars(schema_with = "crate::fields::rates::number_or_formula", extend("unit" = "erg/s/hydrogen nucleus"))]
    pub heating: String,
    /// Photo-electric heating by dust of gas colder than 2e4 K; 8.5e-26 around the sun.
    #[schemars(extend("unit" = "erg/s/hydrogen nucleus"), range(min = 0.0))]
    pub photoelectric: f64,
    /// Radiation that differs by redshift, beside the rates below: a table, or a text file (`.csv`) or Zarr group (`.zarr`) with such columns, relative to
    /// the deck. It is taken at `redshift`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub radiation: Option<RadiationConfig>,
    /// Rates at which photons ionise H, He, He+, the same everywhere.
    #[schemars(inner(range(min = 0.0)), extend("unit" = "1/s"))]
    pub photo_ionisation: [f64; 3],
    /// Heat of such an ionisation.
    #[schemars(inner(range(min = 0.0)), extend("unit" = "eV"))]
    pub photo_heating_ev: [f64; 3],
    /// Rates at which photons take H- (detachment), H2 (as HD) and H2+ (dissociation) apart.
    #[schemars(inner(range(min = 0.0)), extend("unit" = "1/s"))]
    pub photo_dissociation: [f64; 3],
    /// Recombination.
    pub recombination: RecombinationConfig,
    /// Three-body formation of H2.
    pub three_body: ThreeBodyConfig,
    /// Lines of H2.
    pub h2_cooling: H2CoolingConfig,
    /// Relative error of a sub-step.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 0.5))]
    pub tolerance: f64,
    /// Abundance per hydrogen nucleus below which errors do not matter.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 0.01))]
    pub absolute_tolerance: f64,
    /// Limits the step to this part of the time in which cooling and heating together, each counted by itself, would change the energy of gas above the
    /// floor by all of it, or a small difference of it grows or decays at fixed species, whichever is shorter: both stay finite in balance. 0: no limit,
    /// which sub-steps do not need.
    #[schemars(range(min = 0.0))]
    pub courant: f64,
    /// Refines where sound crosses fewer cells than this in the time in which gas cools; 0: nowhere.
    #[schemars(range(min = 0.0))]
    pub length_cells: f64,
    /// Most sub-steps of a cell in a step; a cell that needs more stops the run.
    #[schemars(range(min = 1, max = 1000000))]
    pub max_substeps: u32,
}

impl Default for ChemistryConfig {
    fn default() -> Self {
        Self {
            species: 9,
            hydrogen_fraction: 0.76,
            deuterium: 2.6e-5,
            initial: InitialConfig::Equilibrium,
            floor_k: None,
            redshift: None,
            heating: "0".into(),
            photoelectric: 0.0,
            radiation: None,
            photo_ionisation: [0.0; 3],
            photo_heating_ev: [0.0; 3],
            photo_dissociation: [0.0; 3],
            recombination: RecombinationConfig::CaseA,
            three_body: ThreeBodyConfig::Glover08,
            h2_cooling: H2CoolingConfig::GalliPalla98,
            tolerance: 1e-2,
            absolute_tolerance: 1e-8,
            courant: 0.0,
            length_cells: 0.0,
            max_substeps: 1000,
        }
    }
}

/// Temperature of the microwave background today, kelvin.
const BACKGROUND_K: f64 = 2.725;

impl ChemistryConfig {
    /// The table of a deck.
    ///
    /// # Errors
    /// Another number of species; elements that leave no room for each other.
    pub(super) fn read(deck: &mut Deck) -> Result<Self, DeckError> {
        let config: Self = deck.table("chemistry")?;
        if ![6, 9, 12].contains(&config.species) {
            let why = "`chemistry.species` must be 6 (H, He, their ions and electrons), 9 (and H-, H2, H2+) or 12 (and D, D+, HD)";
            return Err(deck.error_at("chemistry.species", why));
        }
        if config.helium_fraction() <= 0.0 {
            let why = "`chemistry.hydrogen_fraction` leaves no helium: take a number below 1, such as 0.76";
            return Err(deck.error_at("chemistry.hydrogen_fraction", why));
        }
        Ok(config)
    }

    /// Deuterium nuclei per hydrogen nucleus.
    fn deuterium_nuclei(&self) -> f64 {
        if self.species == 12 {
            self.deuterium
        } else {
            0.0
        }
    }

    /// Mass fraction of deuterium.
    pub(super) fn deuterium_fraction(&self) -> f64 {
        2.0 * self.deuterium_nuclei() * self.hydrogen_fraction
    }

    /// Mass fraction of helium.
    pub(super) fn helium_fraction(&self) -> f64 {
        1.0 - self.hydrogen_fraction - self.deuterium_fraction()
    }

    fn choices(&self) -> RateChoices {
        RateChoices {
            recombination: match self.recombination {
                RecombinationConfig::CaseA => Recombination::CaseA,
                RecombinationConfig::CaseB => Recombination::CaseB,
            },
            three_body: match self.three_body {
                ThreeBodyConfig::Glover08 => ThreeBody::Glover08,
                ThreeBodyConfig::PallaSalpeterStahler83 => ThreeBody::PallaSalpeterStahler83,
                ThreeBodyConfig::AbelBryanNorman02 => ThreeBody::AbelBryanNorman02,
                ThreeBodyConfig::FlowerHarris07 => ThreeBody::FlowerHarris07,
                ThreeBodyConfig::Forrey13 => ThreeBody::Forrey13,
            },
            h2_cooling: match self.h2_cooling {
                H2CoolingConfig::GalliPalla98 => H2Cooling::GalliPalla98,
                H2CoolingConfig::GloverAbel08 => H2Cooling::GloverAbel08,
            },
        }
    }

    /// The network, with radiation beside that of the uniform rates.
    pub(super) fn network(&self, more: &Radiation) -> Network<f64> {
        let [h, he, hep] = self.photo_ionisation;
        let [hm, h2, h2p] = self.photo_dissociation;
        let own = [h, he, hep, hm, h2, h2p];
        let photo: [f64; 6] = std::array::from_fn(|n| own[n] + more.rates[n]);
        let heat = |n: usize| own[n] * self.photo_heating_ev[n] + more.heats[n];
        let radiation = Background {
            photo,
            heat_ev: std::array::from_fn(|n| match photo[n] > 0.0 {
                true => heat(n) / photo[n],
                false => 0.0,
            }),
            redshift: self.redshift,
        };
        let background = BACKGROUND_K * (1.0 + self.redshift.unwrap_or(0.0));
        let precision = Tolerances {
            relative: self.tolerance,
            absolute: self.absolute_tolerance,
            floor_k: self.floor_k.unwrap_or(background),
        };
        let helium = self.helium_fraction() / (4.0 * self.hydrogen_fraction);
        let elements = [helium, self.deuterium_nuclei()];
        let species = self.species as usize;
        Network::new(species, self.choices(), elements, &radiation, precision)
    }
}
