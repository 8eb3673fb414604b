//! The table `[hydro]`.

use crate::fields::GasUnits;
use crate::fields::quantities::needs_units;
use crate::units::Units;
use nestar_deck::{Deck, DeckError};
use nestar_kernels::hydro::{
    DualEnergy, FluidMethod, Limiter, Reconstruction, RiemannSolver, Scheme,
};
use nestar_kernels::mesh::ShareSets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident => $target:ident: $($(#[$word_doc:meta])* $word:ident),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $($(#[$word_doc])* $word),+
        }
        impl From<$name> for $target {
            fn from(word: $name) -> Self {
                match word {
                    $($name::$word => $target::$word),+
                }
            }
        }
    };
}

choice! {
    /// Time integration of the gas.
    SchemeWord => Scheme:
    /// MUSCL-Hancock.
    MusclHancock,
    /// Van Leer predictor-corrector.
    #[serde(rename = "vl")]
    VanLeer,
}
choice! {
    /// Reconstruction of face states, in primitive variables.
    ReconstructionWord => Reconstruction:
    /// Piecewise linear.
    Plm,
    /// Piecewise parabolic; with `muscl-hancock` smooth extrema keep their height and strong shocks are flattened.
    Ppm,
}
choice! {
    /// Slope limiter.
    LimiterWord => Limiter:
    /// Generalised minmod.
    Minmod,
    /// Van Leer.
    VanLeer,
    /// Van Albada.
    VanAlbada,
    /// Monotonized central.
    MonotonizedCentral,
}
choice! {
    /// Riemann solver.
    RiemannWord => RiemannSolver:
    /// Three waves.
    Hllc,
    /// Two waves.
    Hlle,
    /// The exact solution.
    Exact,
}

/// Whether the internal energy of the gas is carried beside its total energy: `true`, `false` or a table of thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DualEnergyChoice {
    /// With the usual thresholds, or not at all.
    Switch(bool),
    /// With these thresholds.
    Thresholds(DualEnergyConfig),
}

impl DualEnergyChoice {
    /// As the kernels take it.
    #[must_use]
    pub fn thresholds(self) -> Option<DualEnergy> {
        match self {
            Self::Switch(on) => on.then(DualEnergy::default),
            Self::Thresholds(given) => Some(DualEnergy {
                kinetic: given.kinetic,
                gradient: given.gradient,
                jump: given.jump,
            }),
        }
    }
}

/// Where the gas takes its internal energy from its own equation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DualEnergyConfig {
    /// Where the total energy leaves less than so much of the kinetic energy.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub kinetic: f64,
    /// Or less than so much of density times the square of the largest change of velocity to a neighbouring cell.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gradient: f64,
    /// But not where gas meets in a jump: where so much of the change of velocity over four cells lies within two, and is faster than
    /// sound.
    #[schemars(range(min = 0.5, max = 1.0))]
    pub jump: f64,
}

impl Default for DualEnergyConfig {
    fn default() -> Self {
        let DualEnergy {
            kinetic,
            gradient,
            jump,
        } = DualEnergy::default();
        Self {
            kinetic,
            gradient,
            jump,
        }
    }
}

/// Gas dynamics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HydroConfig {
    /// Ratio of specific heats.
    #[schemars(extend("exclusiveMinimum" = 1.0), range(max = 3.0))]
    pub gamma: f64,
    /// Time integration.
    pub scheme: SchemeWord,
    /// Reconstruction of face states.
    pub reconstruction: ReconstructionWord,
    /// Slope limiter; `ppm` with `muscl-hancock` has limits of its own.
    pub limiter: LimiterWord,
    /// Parameter of the minmod limiter, from 1 (most diffusive) to 2.
    #[schemars(range(min = 1.0, max = 2.0))]
    pub minmod_theta: f64,
    /// Riemann solver.
    pub riemann: RiemannWord,
    /// Names of passive scalars: letters, digits and `_`, at most 59.
    pub scalars: Vec<String>,
    /// Sets of scalars that are all the gas consists of, such as `[["hydrogen", "helium"]]`: their fractions sum to 1 in every cell.
    pub scalar_sets: Vec<Vec<String>>,
    /// Mean mass of a particle of the gas in masses of hydrogen atoms, for its temperature in kelvin; absent: 0.6, that of ionised gas, in
    /// a deck with a table `[units]`, where alone it means something.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1000.0))]
    pub mean_molecular_weight: Option<f64>,
    /// Whether the internal energy is carried beside the total energy, so that cold gas that moves fast keeps its temperature: `true`, or
    /// thresholds such as `{ kinetic = 3e-2, gradient = 0.2, jump = 0.6 }`. With `muscl-hancock` only.
    pub dual_energy: DualEnergyChoice,
    /// Whether the gas stands still, for runs of particles alone: it attracts, but nothing moves it.
    pub frozen: bool,
}

impl Default for HydroConfig {
    fn default() -> Self {
        Self {
            gamma: 5.0 / 3.0,
            scheme: SchemeWord::MusclHancock,
            reconstruction: ReconstructionWord::Plm,
            limiter: LimiterWord::MonotonizedCentral,
            minmod_theta: 1.5,
            riemann: RiemannWord::Hllc,
            scalars: Vec::new(),
            scalar_sets: Vec::new(),
            mean_molecular_weight: None,
            dual_energy: DualEnergyChoice::Switch(false),
            frozen: false,
        }
    }
}

impl HydroConfig {
    /// The choices as the kernels take them.
    #[must_use]
    pub fn method(&self) -> FluidMethod {
        FluidMethod {
            scheme: self.scheme.into(),
            reconstruction: self.reconstruction.into(),
            limiter: self.limiter.into(),
            riemann: self.riemann.into(),
            minmod_theta: self.minmod_theta,
            dual: self.dual_energy.thresholds(),
        }
    }

    /// What units make of the gas, if there are any.
    ///
    /// # Errors
    /// A mean molecular weight without units.
    pub fn physical(
        &self,
        deck: &Deck,
        units: Option<Units>,
    ) -> Result<Option<GasUnits>, DeckError> {
        let given = self.mean_molecular_weight;
        if given.is_some() && units.is_none() {
            let key = "mean_molecular_weight";
            return Err(needs_units(deck, &format!("hydro.{key}"), key));
        }
        Ok(units.map(|units| GasUnits::of(&units, given.unwrap_or(GasUnits::IONISED))))
    }

    /// How the gas is advanced, if its choices go together.
    ///
    /// # Errors
    /// The internal energy is to be carried by another scheme than `muscl-hancock`.
    pub fn checked_method(&self, deck: &Deck) -> Result<FluidMethod, DeckError> {
        let method = self.method();
        if method.dual.is_some() && method.scheme != Scheme::MusclHancock {
            let why = "the internal energy is carried with hydro.scheme = \"muscl-hancock\" only; set that, or leave the key out";
            return Err(deck.error_at("hydro.dual_energy", why));
        }
        Ok(method)
    }

    /// The scalars' names.
    ///
    /// # Errors
    /// A name twice, empty or with other characters; too many.
    pub fn checked_scalars(&self, deck: &Deck) -> Result<Vec<String>, DeckError> {
        for (n, name) in self.scalars.iter().enumerate() {
            let path = format!("hydro.scalars[{n}]");
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(deck.error_at(
                    &path,
                    format!("a scalar's name has letters, digits and `_` only, found {name:?}"),
                ));
            }
            if self.scalars[..n].contains(name) {
                return Err(deck.error_at(&path, format!("the scalar {name:?} stands here twice")));
            }
        }
        let most = nestar_kernels::mesh::MAX_COMPONENTS - self.method().gas_components();
        if self.scalars.len() > most {
            return Err(deck.error_at(
                "hydro.scalars",
                format!("at most {most} scalars, found {}", self.scalars.len()),
            ));
        }
        Ok(self.scalars.clone())
    }

    /// The scalars that belong together, by component of the gas.
    ///
    /// # Errors
    /// A set of fewer than two scalars, a name that is no scalar's or stands in two sets.
    pub fn checked_sets(&self, deck: &Deck) -> Result<ShareSets, DeckError> {
        let mut taken: Vec<usize> = Vec::new();
        let mut sets = ShareSets::default();
        for (n, names) in self.scalar_sets.iter().enumerate() {
            let wrong = |m: usize, why: String| {
                Err(deck.error_at(&format!("hydro.scalar_sets[{n}][{m}]"), why))
            };
            let mut components = Vec::new();
            for (m, name) in names.iter().enumerate() {
                let Some(scalar) = self.scalars.iter().position(|known| known == name) else {
                    return wrong(m, format!("{name:?} is none of hydro.scalars"));
                };
                if taken.contains(&scalar) {
                    return wrong(m, format!("{name:?} belongs to a set already"));
                }
                taken.push(scalar);
                components.push(self.method().gas_components() + scalar);
            }
            if components.len() < 2 {
                let path = format!("hydro.scalar_sets[{n}]");
                return Err(deck.error_at(&path, "a set has at least two scalars"));
            }
            sets = sets.with(&components);
        }
        Ok(sets)
    }
}
