//! The table `[cosmology]`.

use super::background::{Background, DensityParameters};
use crate::units::{GRAVITATIONAL_CONSTANT, PARSEC};
use nestar_deck::{CodeUnits, Deck, DeckError, Expansion, deck};

/// A published set of parameters.
#[deck]
pub enum Preset {
    /// Planck Collaboration (2020, A&A 641, A6), last column of table 2: h = 0.6766, matter 0.3111, baryons 0.0490, flat.
    Planck2018,
    /// Einstein-de Sitter universe: all matter, h = 0.5.
    Eds,
}

/// An expanding universe, in comoving coordinates. Lengths are comoving, and the deck needs no table `[units]`.
#[deck]
pub struct CosmologyConfig {
    /// Set of parameters from which the keys below take their defaults.
    #[key(default = Preset::Planck2018)]
    pub preset: Preset,
    /// Density parameter of all matter today.
    #[key(above = 0.0, max = 10.0)]
    pub omega_m: Option<f64>,
    /// Density parameter of dark energy today. The curvature is what is missing to 1.
    #[key(min = -10.0, max = 10.0)]
    pub omega_lambda: Option<f64>,
    /// Density parameter of radiation today.
    #[key(default = 0.0, min = 0.0, max = 1.0)]
    pub omega_r: f64,
    /// Hubble constant over 100 km/s/Mpc.
    #[key(above = 0.0, max = 10.0)]
    pub h: Option<f64>,
    /// Equation of state of dark energy today: pressure over energy density.
    #[key(default = -1.0, min = -5.0, max = 1.0)]
    pub w0: f64,
    /// Change of the equation of state: `w = w0 + wa*(1 - a)`.
    #[key(default = 0.0, min = -5.0, max = 5.0)]
    pub wa: f64,
    /// Redshift at the start.
    #[key(default = 99.0, max = 1e5)]
    pub start_redshift: f64,
    /// Redshift at the end.
    #[key(default = 0.0, min = -0.9)]
    pub end_redshift: f64,
    /// Redshifts of snapshots, descending.
    #[key(default = Vec::new())]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub redshifts: Vec<f64>,
    /// Largest relative growth of the scale factor in a time step.
    #[key(default = 0.02, min = 1e-6, max = 0.2)]
    pub max_expansion: f64,
    /// Comoving unit of length.
    #[key(default = "Mpc/h".into())]
    pub length: String,
}

/// Hubble constant of 100 km/s/Mpc, in 1/s.
const HUNDRED: f64 = 1e7 / (1e6 * PARSEC);

/// The universe of a deck.
pub(super) struct Universe {
    pub background: Background,
    /// Density parameters.
    pub parameters: DensityParameters,
    /// Hubble constant over 100 km/s/Mpc.
    pub h: f64,
    /// Scale factors at the start and the end.
    pub range: [f64; 2],
    /// Code units today: those of comoving quantities.
    pub units: CodeUnits,
}

impl CosmologyConfig {
    /// Returns the density parameters.
    fn parameters(&self) -> DensityParameters {
        let [matter, dark_energy] = match self.preset {
            Preset::Planck2018 => [0.3111, 0.6889],
            Preset::Eds => [1.0, 0.0],
        };
        let matter = self.omega_m.unwrap_or(matter);
        DensityParameters {
            matter,
            dark_energy: self.omega_lambda.unwrap_or(match self.omega_m {
                Some(matter) => 1.0 - matter - self.omega_r,
                None => dark_energy - self.omega_r,
            }),
            radiation: self.omega_r,
            w0: self.w0,
            wa: self.wa,
        }
    }

    /// Returns the Hubble constant over 100 km/s/Mpc.
    fn hubble(&self) -> f64 {
        self.h.unwrap_or(match self.preset {
            Preset::Planck2018 => 0.6766,
            Preset::Eds => 0.5,
        })
    }

    /// Checks the redshifts.
    fn check(&self, deck: &Deck) -> Result<(), DeckError> {
        let [start, end] = [self.start_redshift, self.end_redshift];
        if start <= end {
            let why = format!(
                "the run must start at a larger redshift than it ends: found {start} and cosmology.end_redshift = {end}"
            );
            return Err(deck.error_at("cosmology.start_redshift", why));
        }
        let mut latest = start;
        for &redshift in &self.redshifts {
            if redshift >= latest || redshift < end {
                let why = format!(
                    "redshifts must descend from below {start} to {end}, found {redshift} after {latest}"
                );
                return Err(deck.error_at("cosmology.redshifts", why));
            }
            latest = redshift;
        }
        Ok(())
    }

    /// Computes the universe.
    ///
    /// # Errors
    /// Redshifts do not descend; the unit of length is none; the universe recollapses before the end.
    pub(super) fn universe(&self, deck: &Deck) -> Result<Universe, DeckError> {
        self.check(deck)?;
        let (parameters, h) = (self.parameters(), self.hubble());
        let range = [self.start_redshift, self.end_redshift].map(|z| 1.0 / (1.0 + z));
        let background = Background::new(parameters, range[0], range[1]).map_err(|a| {
            let why = format!(
                "this universe stops expanding at redshift {:.4} and does not connect the redshifts {} and {}: change omega_m, omega_lambda, \
                 or the redshifts",
                1.0 / a - 1.0,
                self.start_redshift,
                self.end_redshift
            );
            deck.error_at("cosmology", why)
        })?;
        let numbers = vec![("h".to_string(), h)];
        let length = CodeUnits::length_with(&self.length, &numbers);
        let length = length.map_err(|why| {
            deck.error_at("cosmology.length", format!("`cosmology.length` {why}"))
        })?;
        let rate = HUNDRED * h;
        let density = parameters.matter * 3.0 * rate * rate
            / (8.0 * std::f64::consts::PI * GRAVITATIONAL_CONSTANT);
        let units = CodeUnits {
            length_cgs: length,
            mass_cgs: density * length * length * length,
            time_cgs: 1.0 / rate,
            name: format!("comoving: {}, mean density of matter, 1/H0", self.length),
            numbers,
            expansion: Some(Expansion {
                scale_factor: 1.0,
                powers: [1, 0, 2],
            }),
        };
        Ok(Universe {
            background,
            parameters,
            h,
            range,
            units,
        })
    }
}
