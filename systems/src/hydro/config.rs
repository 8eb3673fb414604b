//! Defines the table `[hydro]`.

use crate::fields::GasUnits;
use crate::fields::quantities::needs_units;
use crate::units::Units;
use crate::word::Word;
use nestar_deck::{Deck, DeckError, deck};
use nestar_kernels::choice::Choice;
use nestar_kernels::hydro::{
    DualEnergy, EquationOfState, FluidMethod, LawConstants, Limiter, MagneticMethod,
    Reconstruction, RiemannSolver, Scheme, ShockCure, Variables,
};
use nestar_kernels::mesh::ShareSets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Dual-energy formalism: `true`, `false` or a table of thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DualEnergyChoice {
    /// On with the default thresholds, or off.
    Switch(bool),
    /// On with these thresholds.
    Thresholds(DualEnergyConfig),
}

impl DualEnergyChoice {
    /// Returns the thresholds for the kernels, of gas with a magnetic field if `has_field` is set; `None` if switched off.
    #[must_use]
    pub fn thresholds(self, has_field: bool) -> Option<DualEnergy> {
        match self {
            Self::Switch(on) if has_field => on.then(DualEnergy::with_field),
            Self::Switch(on) => on.then(DualEnergy::default),
            Self::Thresholds(given) => Some(DualEnergy {
                kinetic: given.kinetic,
                gradient: given.gradient,
                jump: given.jump,
                magnetic: given.magnetic,
            }),
        }
    }
}

/// Thresholds of the dual-energy formalism: where the internal energy is taken from its own equation.
#[deck]
#[derive(Copy)]
pub struct DualEnergyConfig {
    /// The separate internal energy is used if the thermal energy is less than this fraction of the kinetic energy.
    #[key(default = DualEnergy::default().kinetic, min = 0.0, max = 1.0)]
    pub kinetic: f64,
    /// It is also used if the thermal energy is less than this factor times `density * dv^2`, where dv is the largest
    /// velocity difference to a neighbouring cell.
    #[key(default = DualEnergy::default().gradient, min = 0.0, max = 1.0)]
    pub gradient: f64,
    /// It is not used in shocks: where the velocity difference over four cells is supersonic, and more than this
    /// fraction of it is between two of the cells.
    #[key(default = DualEnergy::default().jump, min = 0.5, max = 1.0)]
    pub jump: f64,
    /// With a magnetic field, it is also used if the thermal energy is less than this fraction of the magnetic energy.
    #[key(default = DualEnergy::default().magnetic, min = 0.0, max = 1.0)]
    pub magnetic: f64,
}

/// Gas dynamics.
#[deck]
pub struct HydroConfig {
    /// Equation of state. Gas that is isothermal or polytropic has no energy: its pressure follows from the density.
    #[key(default = Word(EquationOfState::GammaLaw))]
    pub eos: Word<EquationOfState>,
    /// Ratio of specific heats, or the exponent of polytropic gas; not for isothermal gas.
    #[key(default = 5.0 / 3.0, above = 1.0, max = 3.0)]
    pub gamma: f64,
    /// Sound speed of isothermal gas.
    #[key(unit = "length/time", above = 0.0)]
    pub sound_speed: Option<f64>,
    /// Constant K of polytropic gas, whose pressure is `K * density^gamma`, in code units.
    #[key(above = 0.0)]
    pub polytropic_constant: Option<f64>,
    /// Time integration.
    #[key(default = Word(Scheme::MusclHancock))]
    pub scheme: Word<Scheme>,
    /// Reconstruction of face states.
    #[key(default = Word(Reconstruction::Plm))]
    pub reconstruction: Word<Reconstruction>,
    /// Variables whose slopes are limited; `ppm` with `muscl-hancock` and `ctu` takes `primitive` only.
    #[key(default = Word(Variables::Primitive))]
    pub variables: Word<Variables>,
    /// Slope limiter. `weno-z` has none, and `ppm` has its own where it preserves extrema: in primitive variables, except with `vl`.
    #[key(default = Word(Limiter::MonotonizedCentral))]
    pub limiter: Word<Limiter>,
    /// Parameter of the limiters minmod and hybrid, from 1 (most diffusive) to 2.
    #[key(default = 1.5, min = 1.0, max = 2.0)]
    pub minmod_theta: f64,
    /// Flattens the states at faces in strong shocks, which damps the noise behind slow ones (Colella & Woodward 1984). Not with `vl`.
    /// Default: only with `ppm` where it preserves extrema.
    pub flattening: Option<bool>,
    /// Riemann solver. Default: `hllc`, with a table `[mhd]` `hlld`.
    pub riemann: Option<Word<RiemannSolver>>,
    /// Fluxes in shocks along the mesh. Without a cure, such shocks break up if they are strong. Shocks at rest break up
    /// with every choice of `riemann`, others unless it is `hlle`.
    #[key(default = Word(ShockCure::Hlle))]
    pub shock_cure: Word<ShockCure>,
    /// Names of passive scalars; a name consists of letters, digits and `_`. The largest number of scalars is 59, or 56 with `mhd.method = "ct"`
    /// and 55 with `"glm"`; `dual_energy`, which is the default with `[mhd]`, reduces each of these by one.
    #[key(default = Vec::new())]
    pub scalars: Vec<String>,
    /// Sets of scalars that make up all of the gas, such as `[["hydrogen", "helium"]]`: their mass fractions sum to 1
    /// in every cell.
    #[key(default = Vec::new())]
    pub scalar_sets: Vec<Vec<String>>,
    /// Scalars that are no mass fractions, such as an age or an entropy: amounts per mass of any value. All others are between 0 and 1 in
    /// initial states and inflows.
    #[key(default = Vec::new())]
    pub quantities: Vec<String>,
    /// Mean molecular weight in units of the hydrogen mass, for temperatures in kelvin. Only with a table `[units]`;
    /// default: 0.6, ionised gas.
    #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1000.0))]
    pub mean_molecular_weight: Option<f64>,
    /// Does not advance the gas, for runs with particles only. The mass of the gas still attracts.
    #[key(default = false)]
    pub frozen: bool,
    /// Dual-energy formalism: integrates the internal energy in addition to the total energy, which avoids round-off
    /// in the temperature of cold supersonic gas, and keeps the pressure of strongly magnetised gas. `true`, `false`, or thresholds such as
    /// `{ kinetic = 3e-2, gradient = 0.2, jump = 0.6, magnetic = 1e-3 }`, which are those of `true`; with a table `[mhd]`, `true` has 1e-3 for the
    /// first two. Not with `vl` and `ctu`. Default: `false`; with a table `[mhd]` `true`, if the
    /// scheme is `muscl-hancock` and there is neither `[viscosity]` nor `[conduction]`.
    pub dual_energy: Option<DualEnergyChoice>,
    /// Treatment of a magnetic field, from the table `[mhd]`.
    #[serde(skip)]
    #[key(default = None)]
    pub magnetic: Option<MagneticMethod>,
}

/// Magnetic field. The gas then has a field, whose initial values are in the table `[initial]`, in units in which the magnetic permeability is
/// 1: its pressure is `B^2 / 2`.
#[deck]
pub struct MhdConfig {
    /// Treatment of the divergence of the field.
    pub method: Word<MagneticMethod>,
}

/// Returns the first table of the deck that does not know gas with a magnetic field and two energies.
fn diffusive_table(deck: &Deck) -> Option<&'static str> {
    let mut tables = ["viscosity", "conduction"].into_iter();
    tables.find(|table| deck.has(table))
}

/// Returns the part of a scheme that changes total energies of the gas only.
fn part_for_gas_alone(scheme: Scheme) -> Option<&'static str> {
    match scheme {
        Scheme::VanLeer => Some("the predictor"),
        Scheme::Ctu => Some("the correction of states at faces"),
        Scheme::MusclHancock | Scheme::Rk2 | Scheme::Rk3 => None,
    }
}

/// Checks what the dual-energy formalism excludes.
///
/// # Errors
/// The scheme does not know it, or a table does not know it with a magnetic field.
fn check_dual_energy(deck: &Deck, method: &FluidMethod) -> Result<(), DeckError> {
    if let Some(part) = part_for_gas_alone(method.scheme) {
        let why = format!(
            "{part} of hydro.scheme = {:?} does not know the dual-energy formalism: set hydro.scheme = \"muscl-hancock\", \"rk2\" or \"rk3\", or remove this key",
            method.scheme.word()
        );
        return Err(deck.error_at("hydro.dual_energy", why));
    }
    match diffusive_table(deck).filter(|_| method.magnetic.is_some()) {
        None => Ok(()),
        Some(table) => {
            let why = format!(
                "[{table}] does not know gas with a magnetic field and hydro.dual_energy: remove `hydro.dual_energy`, which is then false, or this table"
            );
            Err(deck.error_at(table, why))
        }
    }
}

impl HydroConfig {
    /// Returns the numerical method for the kernels.
    #[must_use]
    pub fn method(&self) -> FluidMethod {
        FluidMethod {
            equation: self.eos.0,
            scheme: self.scheme.0,
            reconstruction: self.reconstruction.0,
            variables: self.variables.0,
            limiter: self.limiter.0,
            riemann: self.riemann(),
            shock_cure: self.shock_cure.0,
            flattening: self.flattening,
            minmod_theta: self.minmod_theta,
            dual: (self.dual_energy).and_then(|dual| dual.thresholds(self.magnetic.is_some())),
            magnetic: self.magnetic,
        }
    }

    /// Reads the tables `[hydro]` and `[mhd]` of a deck.
    ///
    /// # Errors
    /// A table is invalid.
    pub fn of(deck: &mut Deck) -> Result<Self, DeckError> {
        let mut config: Self = deck.table("hydro")?;
        if deck.has("mhd") {
            let field: MhdConfig = deck.table("mhd")?;
            config.magnetic = Some(field.method.0);
        }
        if config.dual_energy.is_none() {
            let on = config.dual_by_default(deck);
            config.dual_energy = Some(DualEnergyChoice::Switch(on));
            deck.resolve("hydro.dual_energy", on);
        }
        Ok(config)
    }

    /// Returns `true` if the dual-energy formalism is used unless the deck says otherwise: with a magnetic field, where all parts support it.
    fn dual_by_default(&self, deck: &Deck) -> bool {
        let supported = self.scheme.0 == Scheme::MusclHancock && self.eos.0.has_energy();
        self.magnetic.is_some() && supported && diffusive_table(deck).is_none()
    }

    /// Returns the Riemann solver.
    #[must_use]
    pub fn riemann(&self) -> RiemannSolver {
        match (&self.riemann, self.magnetic) {
            (Some(given), _) => given.0,
            (None, None) => RiemannSolver::Hllc,
            (None, Some(_)) => RiemannSolver::Hlld,
        }
    }

    /// Returns the constants of the equation of state.
    #[must_use]
    pub fn law(&self) -> LawConstants {
        let given = |constant: Option<f64>| constant.unwrap_or(f64::NAN);
        match self.eos.0 {
            EquationOfState::GammaLaw => self.gamma.into(),
            EquationOfState::Isothermal => {
                let sound_speed = given(self.sound_speed);
                LawConstants([sound_speed * sound_speed, 0.0])
            }
            EquationOfState::Polytropic => {
                LawConstants([given(self.polytropic_constant), self.gamma])
            }
        }
    }

    /// Returns the exponent of the density in the pressure at constant entropy.
    #[must_use]
    pub fn exponent(&self) -> f64 {
        match self.eos.0 {
            EquationOfState::GammaLaw | EquationOfState::Polytropic => self.gamma,
            EquationOfState::Isothermal => 1.0,
        }
    }

    /// Checks the equation of state and what it excludes.
    ///
    /// # Errors
    /// A constant is missing, or belongs to another equation of state; see also [`Self::check_without_energy`].
    fn check_equation(&self, deck: &Deck, method: &FluidMethod) -> Result<(), DeckError> {
        let word = self.eos.0.word();
        let constants = [
            (
                "sound_speed",
                self.sound_speed.is_some(),
                EquationOfState::Isothermal,
            ),
            (
                "polytropic_constant",
                self.polytropic_constant.is_some(),
                EquationOfState::Polytropic,
            ),
        ];
        for (key, is_given, of) in constants {
            let path = format!("hydro.{key}");
            if is_given && of != self.eos.0 {
                let why = format!(
                    "`{path}` belongs to hydro.eos = {:?}, but the gas is {word:?}: remove this key, or change hydro.eos",
                    of.word()
                );
                return Err(deck.error_at(&path, why));
            }
            if !is_given && of == self.eos.0 {
                let why = format!("hydro.eos = {word:?} needs `{path}` (a number above 0)");
                return Err(deck.error_at("hydro.eos", why));
            }
        }
        match method.equation.has_energy() {
            true => Ok(()),
            false => self.check_without_energy(deck, method),
        }
    }

    /// Checks what a magnetic field excludes, and what needs one.
    ///
    /// # Errors
    /// A key or table does not go with the field, or needs one.
    fn check_field(&self, deck: &Deck, method: &FluidMethod) -> Result<(), DeckError> {
        let solver = method.riemann.word();
        if method.magnetic.is_none() {
            if method.riemann.needs_field() {
                let why = format!(
                    "hydro.riemann = {solver:?} needs a magnetic field: add a table [mhd], or use \"hllc\""
                );
                return Err(deck.error_at("hydro.riemann", why));
            }
            return Ok(());
        }
        let excluded = [
            (
                "hydro.scheme",
                method.scheme == Scheme::VanLeer,
                "its predictor does not know magnetic fields: set it to \"muscl-hancock\", \"rk2\" or \"rk3\"",
            ),
            (
                "hydro.scheme",
                method.scheme == Scheme::Ctu,
                "its correction of states at faces does not know magnetic fields: set it to \"muscl-hancock\", \"rk2\" or \"rk3\"",
            ),
            (
                "hydro.scheme",
                method.has_face_field() && method.has_stages(),
                "fields on faces (mhd.method = \"ct\") advance in one stage: set it to \"muscl-hancock\", or mhd.method to \"glm\"",
            ),
            (
                "hydro.eos",
                !method.equation.has_energy(),
                "magnetic fields need an energy: set it to \"gamma-law\"",
            ),
            (
                "hydro.variables",
                method.variables == Variables::Characteristic,
                "slopes with a magnetic field are limited in primitive variables: remove it",
            ),
            (
                "hydro.frozen",
                self.frozen,
                "a magnetic field needs gas that moves: remove it, or the table [mhd]",
            ),
        ];
        if let Some((key, _, why)) = excluded.iter().find(|(_, is_given, _)| *is_given) {
            return Err(deck.error_at(key, format!("`{key}` with a table [mhd]: {why}")));
        }
        if method.riemann_item().is_none() {
            let why = format!(
                "hydro.riemann = {solver:?} does not know magnetic fields: use \"hlld\", \"lhlld\", \"hlle\", \"hll\" or \"llf\""
            );
            return Err(deck.error_at("hydro.riemann", why));
        }
        Ok(())
    }

    /// Checks what gas without energy excludes.
    ///
    /// # Errors
    /// A key or table needs an energy, or a ratio of specific heats of isothermal gas.
    fn check_without_energy(&self, deck: &Deck, method: &FluidMethod) -> Result<(), DeckError> {
        let word = self.eos.0.word();
        if method.equation == EquationOfState::Isothermal && deck.has("hydro.gamma") {
            let why = "isothermal gas has no ratio of specific heats: remove `hydro.gamma`";
            return Err(deck.error_at("hydro.gamma", why));
        }
        if method.riemann_item().is_none() {
            let why = format!(
                "hydro.riemann = {:?} needs an energy, which hydro.eos = {word:?} does not have: use \"hllc\", \"hlle\", \"hll\" or \"llf\"",
                method.riemann.word()
            );
            return Err(deck.error_at("hydro.riemann", why));
        }
        let needs_energy = [
            ("hydro.dual_energy", method.dual.is_some()),
            ("gravity.energy", deck.has("gravity.energy")),
            ("cooling", deck.has("cooling")),
            ("chemistry", deck.has("chemistry")),
            ("floors", deck.has("floors")),
            ("viscosity", deck.has("viscosity")),
            ("conduction", deck.has("conduction")),
            ("sources.heating", deck.has("sources.heating")),
        ];
        match needs_energy.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((key, _)) => {
                let why = format!(
                    "`{key}` acts on the energy of the gas, and hydro.eos = {word:?} has none: remove it, or set hydro.eos = \"gamma-law\" and remove the constants of {word:?} gas"
                );
                Err(deck.error_at(key, why))
            }
        }
    }

    /// Returns the units of the gas, if the deck has a table `[units]`.
    ///
    /// # Errors
    /// A mean molecular weight is given without units.
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

    /// Returns the numerical method if its choices are compatible.
    ///
    /// # Errors
    /// The equation of state or a magnetic field excludes something that the deck has; the dual-energy formalism is combined with the scheme
    /// `vl` or `ctu`; characteristic variables are combined with a reconstruction without limited slopes; `weno-z` is combined with a scheme
    /// with half steps; flattening is combined with the scheme `vl`.
    pub fn checked_method(&self, deck: &Deck) -> Result<FluidMethod, DeckError> {
        let method = self.method();
        self.check_equation(deck, &method)?;
        self.check_field(deck, &method)?;
        if method.dual.is_some() {
            check_dual_energy(deck, &method)?;
        }
        if method.variables == Variables::Characteristic && !method.limits_slopes() {
            let why = "characteristic variables need slopes to limit: set hydro.reconstruction = \"plm\", or \"ppm\" with hydro.scheme = \"vl\", \"rk2\" or \"rk3\", or \
                       remove this key";
            return Err(deck.error_at("hydro.variables", why));
        }
        if self.flattening == Some(true) && method.scheme == Scheme::VanLeer {
            let why = "the predictor of hydro.scheme = \"vl\" does not know flattening: set hydro.scheme = \"muscl-hancock\", \"rk2\" or \"rk3\", or remove this key";
            return Err(deck.error_at("hydro.flattening", why));
        }
        if method.reconstruction == Reconstruction::WenoZ && !method.has_stages() {
            let why = "\"weno-z\" needs a scheme without half steps: set hydro.scheme = \"rk2\" or \"rk3\", or choose another reconstruction";
            return Err(deck.error_at("hydro.reconstruction", why));
        }
        Ok(method)
    }

    /// Returns remarks on keys of the deck that have no effect with its other choices.
    #[must_use]
    pub fn remarks(&self, deck: &Deck) -> Vec<String> {
        let method = self.method();
        let no_slopes = (!method.limits_slopes()).then(|| {
            let (scheme, kind) = (method.scheme.word(), method.reconstruction.word());
            format!("hydro.reconstruction = {kind:?} with hydro.scheme = {scheme:?} has no slopes to limit")
        });
        let has_theta = [Limiter::Minmod, Limiter::Hybrid].contains(&method.limiter);
        let no_theta = (!has_theta).then(|| {
            format!(
                "hydro.limiter = {:?} has no parameter",
                method.limiter.word()
            )
        });
        let no_edges = (method.reconstruction == Reconstruction::Constant
            && self.flattening == Some(true))
        .then(|| "hydro.reconstruction = \"constant\" has no edges to flatten".to_string());
        let reasons = [
            ("hydro.limiter", no_slopes.clone()),
            ("hydro.minmod_theta", no_slopes.or(no_theta)),
            ("hydro.flattening", no_edges),
        ];
        let given = reasons.into_iter().filter(|(key, _)| deck.has(key));
        given
            .filter_map(|(key, why)| Some(format!("{key} has no effect: {}", why?)))
            .collect()
    }

    /// Returns the names of the scalars.
    ///
    /// # Errors
    /// A name is empty, duplicate or has other characters; there are too many names.
    pub fn checked_scalars(&self, deck: &Deck) -> Result<Vec<String>, DeckError> {
        for (n, name) in self.scalars.iter().enumerate() {
            let path = format!("hydro.scalars[{n}]");
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(deck.error_at(
                    &path,
                    format!("the name of a scalar must have only letters, digits and `_`, found {name:?}"),
                ));
            }
            if self.scalars[..n].contains(name) {
                return Err(deck.error_at(&path, format!("the scalar {name:?} is listed twice")));
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

    /// Returns `true` for each scalar that is a mass fraction.
    ///
    /// # Errors
    /// A name of `quantities` is unknown or belongs to a set.
    pub fn checked_fractions(&self, deck: &Deck) -> Result<Vec<bool>, DeckError> {
        for (n, name) in self.quantities.iter().enumerate() {
            let wrong = |why: &str| {
                let path = format!("hydro.quantities[{n}]");
                Err(deck.error_at(&path, format!("{name:?} {why}")))
            };
            if !self.scalars.contains(name) {
                return wrong("is not in hydro.scalars");
            }
            if self.scalar_sets.iter().flatten().any(|own| own == name) {
                return wrong("belongs to a set, whose scalars are mass fractions");
            }
        }
        let is_fraction = |name: &String| !self.quantities.contains(name);
        Ok(self.scalars.iter().map(is_fraction).collect())
    }

    /// Returns the sets of scalars, by component of the gas.
    ///
    /// # Errors
    /// A set has fewer than two scalars; a name is unknown or belongs to two sets.
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
                    return wrong(m, format!("{name:?} is not in hydro.scalars"));
                };
                if taken.contains(&scalar) {
                    return wrong(m, format!("{name:?} already belongs to a set"));
                }
                taken.push(scalar);
                components.push(self.method().gas_components() + scalar);
            }
            if components.len() < 2 {
                let path = format!("hydro.scalar_sets[{n}]");
                return Err(deck.error_at(&path, "a set must have at least two scalars"));
            }
            sets = sets.with(&components);
        }
        Ok(sets)
    }
}
