//! Defines the table `[chemistry]`.

use super::radiation::{Radiation, RadiationConfig};
use nestar_deck::{Deck, DeckError, deck};
use nestar_kernels::chemistry::{
    Background, H2Cooling, Network, RateChoices, Recombination, ThreeBody, Tolerances,
};

/// Recombination of ionised gas.
#[deck]
pub enum RecombinationConfig {
    /// Case A: to all levels; recombination photons escape.
    CaseA,
    /// Case B: to all levels except the ground state, whose photons ionise nearby gas.
    CaseB,
}

/// Rate of the three-body reaction H + H + H -> H2 + H.
#[deck]
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

/// H2 line cooling.
#[deck]
pub enum H2CoolingConfig {
    /// Excitation by H (Galli & Palla 1998).
    GalliPalla98,
    /// Excitation by H, He, H2, H+ and electrons (Glover & Abel 2008; by H after Lique 2015).
    GloverAbel08,
}

/// Initial abundances.
#[deck]
pub enum InitialSpecies {
    /// Ionisation equilibrium of atoms and ions, without molecules, at the density and pressure of the scenario, or at
    /// `initial.temperature_k`.
    Equilibrium,
    /// Mass fractions given by the scenario, for example in `[initial.scalars]`; species that are not given are
    /// neutral.
    Given,
}

/// Non-equilibrium primordial chemistry with heating and cooling. Species are scalars of the gas (mass fractions): HI,
/// HII, HeI, HeII, HeIII; with 9 species also HM (H-), H2I, H2II; with 12 also DI, DII, HDI. Electrons follow from
/// charge conservation. Needs a table `[units]`.
#[deck]
pub struct ChemistryConfig {
    /// Number of species: 6 (H, He, their ions and electrons), 9 (also H-, H2, H2+) or 12 (also D, D+, HD).
    #[key(default = 9)]
    pub species: u32,
    /// Mass fraction of hydrogen; the rest is helium.
    #[key(default = 0.76, above = 0.0, max = 1.0)]
    pub hydrogen_fraction: f64,
    /// Number of deuterium nuclei per hydrogen nucleus, with 12 species.
    #[key(default = 2.6e-5, min = 0.0, max = 0.1)]
    pub deuterium: f64,
    /// Initial abundances.
    #[key(default = InitialSpecies::Equilibrium)]
    pub initial: InitialSpecies,
    /// Temperature floor of the gas. Default: the temperature of the microwave background, 2.725 (1 + redshift) K.
    #[key(unit = "K", above = 0.0)]
    pub floor_k: Option<f64>,
    /// Redshift of the microwave background, for Compton heating and cooling. Default: none.
    #[key(min = 0.0)]
    pub redshift: Option<f64>,
    /// Heating rate in addition to photo-ionisation: a number or a formula of x, y, z, r, t and the density.
    #[key(default = "0".into(), unit = "erg/s/hydrogen nucleus")]
    #[serde(deserialize_with = "crate::fields::quantities::text")]
    #[schemars(schema_with = "crate::fields::quantities::number_or_formula")]
    pub heating: String,
    /// Photo-electric heating rate by dust in gas colder than 2e4 K; 8.5e-26 in the solar neighbourhood.
    #[key(default = 0.0, unit = "erg/s/hydrogen nucleus", min = 0.0, max = 1e-10)]
    pub photoelectric: f64,
    /// Radiation background at `redshift`, in addition to the rates below: a table of rates by redshift, or a text file
    /// (`.csv`) or Zarr group (`.zarr`) with the same columns, relative to the deck.
    pub radiation: Option<RadiationConfig>,
    /// Photo-ionisation rates of H, He and He+, uniform in space.
    #[key(default = [0.0; 3], unit = "1/s", min = 0.0)]
    pub photo_ionisation: [f64; 3],
    /// Heat per photo-ionisation of H, He and He+.
    #[key(default = [0.0; 3], unit = "eV", min = 0.0)]
    pub photo_heating_ev: [f64; 3],
    /// Photo-detachment rate of H- and photo-dissociation rates of H2 (also HD) and H2+.
    #[key(default = [0.0; 3], unit = "1/s", min = 0.0)]
    pub photo_dissociation: [f64; 3],
    /// Recombination rates: case A or case B.
    #[key(default = RecombinationConfig::CaseA)]
    pub recombination: RecombinationConfig,
    /// Rate of three-body H2 formation.
    #[key(default = ThreeBodyConfig::Glover08)]
    pub three_body: ThreeBodyConfig,
    /// H2 line cooling.
    #[key(default = H2CoolingConfig::GalliPalla98)]
    pub h2_cooling: H2CoolingConfig,
    /// Relative error tolerance of a sub-step.
    #[key(default = 1e-2, min = 1e-12, max = 0.5)]
    pub tolerance: f64,
    /// Abundance per hydrogen nucleus below which errors are ignored.
    #[key(default = 1e-8, above = 0.0, max = 0.01)]
    pub absolute_tolerance: f64,
    /// Limits the time step to this fraction of the cooling time or of the thermal response time, whichever is shorter;
    /// 0: no limit (sub-steps do not need one). The cooling time is the energy over the sum of the absolute cooling and
    /// heating rates; the response time is that of a small energy perturbation at fixed species. Both are finite in
    /// equilibrium. Gas at the floor is not limited.
    #[key(default = 0.0, zero_or = 1e-6)]
    pub courant: f64,
    /// Refines cells if sound crosses fewer cells than this in a cooling time; 0: off.
    #[key(default = 0.0, min = 0.0)]
    pub length_cells: f64,
    /// Largest number of sub-steps per cell and step; a cell that needs more stops the run.
    #[key(default = 1000, min = 1, max = 1000000)]
    pub max_substeps: u32,
}

/// Temperature of the microwave background today, in kelvin.
const BACKGROUND_K: f64 = 2.725;

impl ChemistryConfig {
    /// Reads the table of a deck.
    ///
    /// # Errors
    /// The number of species is invalid; the mass fractions leave no helium.
    pub(super) fn read(deck: &mut Deck) -> Result<Self, DeckError> {
        let config: Self = deck.table("chemistry")?;
        if ![6, 9, 12].contains(&config.species) {
            let why = "`chemistry.species` must be 6 (H, He, their ions and electrons), 9 (also H-, H2, H2+) or 12 (also D, D+, HD)";
            return Err(deck.error_at("chemistry.species", why));
        }
        if config.helium_fraction() <= 0.0 {
            let why =
                "`chemistry.hydrogen_fraction` leaves no helium: use a value below 1, such as 0.76";
            return Err(deck.error_at("chemistry.hydrogen_fraction", why));
        }
        Ok(config)
    }

    /// Returns the number of deuterium nuclei per hydrogen nucleus.
    fn deuterium_nuclei(&self) -> f64 {
        if self.species == 12 {
            self.deuterium
        } else {
            0.0
        }
    }

    /// Returns the mass fraction of deuterium.
    pub(super) fn deuterium_fraction(&self) -> f64 {
        2.0 * self.deuterium_nuclei() * self.hydrogen_fraction
    }

    /// Returns the mass fraction of helium.
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

    /// Returns the uniform rates and a radiation background together, at a redshift of the microwave background.
    pub(super) fn background(&self, more: &Radiation, redshift: Option<f64>) -> Background {
        let [h, he, hep] = self.photo_ionisation;
        let [hm, h2, h2p] = self.photo_dissociation;
        let own = [h, he, hep, hm, h2, h2p];
        let photo: [f64; 6] = std::array::from_fn(|n| own[n] + more.rates[n]);
        let heat = |n: usize| own[n] * self.photo_heating_ev[n] + more.heats[n];
        Background {
            photo,
            heat_ev: std::array::from_fn(|n| match photo[n] > 0.0 {
                true => heat(n) / photo[n],
                false => 0.0,
            }),
            redshift,
        }
    }

    /// Returns the lowest temperature at a redshift, kelvin.
    pub(super) fn floor(&self, redshift: Option<f64>) -> f64 {
        let background = BACKGROUND_K * (1.0 + redshift.unwrap_or(0.0));
        self.floor_k.unwrap_or(background)
    }

    /// Returns the network without radiation, which has its temperature floor at redshift 0.
    pub(super) fn network(&self) -> Network<f64> {
        let precision = Tolerances {
            relative: self.tolerance,
            absolute: self.absolute_tolerance,
            floor_k: self.floor(None),
        };
        let helium = self.helium_fraction() / (4.0 * self.hydrogen_fraction);
        let elements = [helium, self.deuterium_nuclei()];
        let species = self.species as usize;
        let dark = Background::default();
        Network::new(species, self.choices(), elements, &dark, precision)
    }
}
