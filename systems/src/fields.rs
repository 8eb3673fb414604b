//! Fields and resources that plugins share.

pub mod quantities;

pub use crate::units::SCALE_FACTOR;
use crate::units::Units;
use bevy_ecs::prelude::*;
use nestar_deck::{Curve, Deck, DeckError};
use nestar_device::device;
use nestar_engine::data::criteria::NamedQuantity;
use nestar_engine::data::{Components, Field};
use nestar_engine::mesh::Levels;
use nestar_engine::{Engine, Error};
use nestar_kernels::hydro::{
    BarotropicStates, DualEnergy, DualStates, EquationOfState, FaceFieldStates, GasStates,
    LawConstants, MagneticMethod, MagneticStates, RiemannSolver,
};
use nestar_kernels::mesh::{ShareSets, StateRules};
use std::sync::Arc;

/// Gas, per unit volume: density, momentum x y z, total energy (unless the equation of state has none), magnetic field x y z and its cleaning
/// variable (with a table `[mhd]`), internal energy (with `hydro.dual_energy`), then passive scalars (mass densities).
pub struct Gas;

impl Field for Gas {
    const NAME: &'static str = "gas";
}

/// Gravitational constant, length^3/(mass time^2). Exists if the deck has a table `[gravity]`.
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct GravitationalConstant(pub f64);

/// Returns the factor of gravitational accelerations at `time`: matter is accelerated by this factor times the negative slope of
/// [`Potential`]. It is the scale factor, because comoving units of time change with it.
#[must_use]
pub fn gravity_strength(levels: &Levels, time: f64) -> f64 {
    levels.numbers_at(time)[SCALE_FACTOR]
}

/// Mean density of all matter in the domain, as [`Potential`] was last solved with it. Exists with a table `[gravity]` in a domain that is closed
/// by periodic or reflecting faces.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub struct MeanDensity(pub f64);

/// Critical density at a time of the clock, code units. Exists in an expanding universe.
#[derive(Resource, Clone)]
pub struct CriticalDensity(pub Arc<dyn Fn(f64) -> f64 + Send + Sync>);

/// Perturbations of a homogeneous initial state, which a plugin defines.
#[derive(Resource, Clone)]
pub struct InitialPerturbations(pub Arc<dyn PerturbationField>);

/// Matter that the initial perturbations move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerturbedMatter {
    /// Gas.
    Gas,
    /// Particles.
    Particles,
}

/// Perturbations of the initial state at points of the domain, in code units.
pub trait PerturbationField: Send + Sync {
    /// Prepares the perturbations of one kind of matter, before others of its functions are called.
    ///
    /// # Errors
    /// A file with them is missing or invalid.
    fn prepare(&self, deck: &Deck, matter: PerturbedMatter) -> Result<(), DeckError>;
    /// Returns the level whose waves matter on a lattice with these numbers of points has: the coarsest one with as many cells along each axis,
    /// or the finest one with perturbations.
    fn level_of_lattice(&self, points: [u64; 3]) -> usize;
    /// Returns the density over the mean density, minus 1, by the waves of a level. A level beyond those with perturbations has the waves of the
    /// finest one; so do the functions below.
    fn overdensity(&self, point: [f64; 3], level: usize) -> f64;
    /// Returns the displacement of matter from a point.
    fn displacement(&self, point: [f64; 3], level: usize) -> [f64; 3];
    /// Returns the velocity of the matter that is displaced from a point.
    fn velocity(&self, point: [f64; 3], level: usize) -> [f64; 3];
    /// Returns the velocity of the gas that is at a point.
    fn flow(&self, point: [f64; 3], level: usize) -> [f64; 3];
    /// Returns the share of gas in all matter.
    fn gas_share(&self) -> f64;
    /// Returns the temperature of the gas in kelvin.
    fn temperature_k(&self) -> f64;
}

/// Gravitational potential of all matter.
pub struct Potential;

impl Field for Potential {
    const NAME: &'static str = "potential";
}

/// Gravitational potential of all matter on each level, without the contribution of finer levels. Its boundary values
/// come from [`Potential`] on the next coarser level. Matter near coarse-fine faces that is deposited with the cell width
/// of the coarser level exerts almost no force on itself in this potential. [`Potential`] contains the finer level's
/// representation of the same matter as well.
///
/// Like [`Potential`], it has two time levels: a finer level reads it at its own time. It equals [`Potential`] on the
/// finest level, and on all levels with `coupling = "one-way"`. Its ghost cells at a coarser level contain the coarser
/// level's own potential, which is not its boundary condition; use [`Potential`] there.
///
/// It exists if the deck has a table `[gravity]` and a plugin requests it with
/// [`Declare::request`](crate::declare::Declare::request). It costs one more multigrid cycle per step on levels with finer
/// levels and one more solve of the root level; elsewhere it is a copy. It is at the end of the step of the level from
/// [`Advance::Potential`](crate::order::Advance::Potential) on.
pub struct OwnPotential;

impl Field for OwnPotential {
    const NAME: &'static str = "own_potential";
}

/// Exists if a plugin reads [`OwnPotential`].
#[derive(Resource)]
pub struct OwnPotentialRequested;

/// Density of all matter on a level without the particles on coarser levels and in the boundary zone. The cloud of each particle is as
/// wide as a cell of the level. Exists with [`PairAcceleration`].
pub struct InnerMatter;

impl Field for InnerMatter {
    const NAME: &'static str = "inner_matter";
}

/// Density of all matter on a level without particles, but with those on finer levels that are outside the boundary zone of
/// the next finer level. Their clouds are as wide as a cell of this level.
pub struct OuterMatter;

impl Field for OuterMatter {
    const NAME: &'static str = "outer_matter";
}

/// Gravitational potential of [`InnerMatter`] on each level but the root level. Its boundary values come from
/// [`OuterPotential`] on the next coarser level.
pub struct InnerPotential;

impl Field for InnerPotential {
    const NAME: &'static str = "inner_potential";
}

/// Gravitational potential of [`OuterMatter`] on each level with finer levels.
pub struct OuterPotential;

impl Field for OuterPotential {
    const NAME: &'static str = "outer_potential";
}

/// Two accelerations on each level: by [`InnerPotential`] with the table `[external]`, and by [`OwnPotential`] without what
/// [`OuterPotential`] contributes. A particle outside the boundary zone of a level feels the sum of the first one on its level
/// and the second one on the next coarser level. Two particles then attract each other through the potentials of one level
/// only, which are symmetric. Exists if a plugin requests it with [`Declare::request`](crate::declare::Declare::request).
pub struct PairAcceleration;

impl Field for PairAcceleration {
    const NAME: &'static str = "pair_acceleration";
}

/// Exists if a plugin reads [`PairAcceleration`].
#[derive(Resource)]
pub struct PairAccelerationRequested;

/// Acceleration of freely falling matter in the cells of each level, along x, y, z: by self-gravity, the table
/// `[external]` and plugins. If a plugin requests [`OwnPotential`], three more components follow that use the own
/// potential of each level. It has two time levels and exists if a plugin requests it with
/// [`Declare::request`](crate::declare::Declare::request). It is at the end of the step of the level from
/// [`Advance::Couple`](crate::order::Advance::Couple) on.
pub struct Acceleration;

impl Field for Acceleration {
    const NAME: &'static str = "acceleration";
}

impl Acceleration {
    /// Returns the components of each vector of the field: one or two vectors.
    pub fn triples(components: usize) -> impl Iterator<Item = Components> {
        let triple = |first: usize| Components::of(&[first, first + 1, first + 2]);
        (0..components).step_by(3).map(triple)
    }
}

/// Exists if a plugin reads [`Acceleration`].
#[derive(Resource)]
pub struct AccelerationRequested;

/// Present if reflecting faces mirror the attracting matter, and with it the field [`Acceleration`].
#[derive(Resource)]
pub struct AccelerationMirrored;

/// Density of the particles of all species, from the latest deposit of the level. Exists if the deck has a table
/// `[particles]`.
pub struct ParticleDensity;

impl Field for ParticleDensity {
    const NAME: &'static str = "particle_density";
}

/// Mass flux of the gas through cell faces in the latest step, per area and time, along the positive axes. Exists if a
/// plugin requests it with [`Declare::request`](crate::declare::Declare::request). Each step of the gas fills it for
/// systems after [`Advance::Fluid`](crate::order::Advance::Fluid). It includes first-order fluxes of corrected cells, but
/// not flux corrections at level boundaries, which come later.
pub struct MassFlux;

impl Field for MassFlux {
    const NAME: &'static str = "mass_flux";
}

/// External potential and acceleration, an [`ExternalState`] in each cell, on each level at its own time. Exists if the
/// deck has a table `[external]`.
pub struct External;

impl Field for External {
    const NAME: &'static str = "external";
}

/// State of [`External`].
#[device]
#[derive(Clone, Copy)]
pub struct ExternalState<R> {
    /// Potential, length^2 / time^2.
    pub potential: R,
    /// Acceleration along x, y, z by the potential and by the additional formulas, length / time^2.
    pub acceleration: [R; 3],
}

/// Number of components of [`Gas`] with an energy, and of primitive variables: density, velocity, pressure.
pub const GAS_COMPONENTS: usize = 5;

/// A derived field that a plugin defines.
#[derive(Clone)]
pub struct Derived {
    /// Name in criteria, formulas and plots.
    pub name: String,
    /// Unit in code units, for example `time`; `1` if dimensionless.
    pub units: String,
    /// One-sentence description.
    pub doc: String,
    /// Function and its inputs.
    pub number: NamedQuantity,
    /// Scalars that the function reads after the gas components.
    pub scalars: Vec<String>,
    /// `true` if the function sees the gas in its rest frame ([`Register::at_rest`](crate::register::Register::at_rest)).
    pub at_rest: bool,
}

/// Builds a derived field once the components of the gas are known.
pub type DerivedMaker =
    Box<dyn FnOnce(&mut Engine, &GasModel) -> Result<Derived, Error> + Send + Sync>;

/// Conversion factors of the gas to physical units, at a scale factor of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GasUnits {
    /// Mean molecular weight, in units of the hydrogen mass.
    pub mean_molecular_weight: f64,
    /// Kelvin per code unit of pressure over density.
    pub kelvin: f64,
    /// Particles per cubic centimetre per code unit of density.
    pub number_density: f64,
    /// Scale factor at the start of the run; 1 without expansion.
    pub first_scale_factor: f64,
}

impl GasUnits {
    /// Default mean molecular weight: ionised gas of primordial composition.
    pub const IONISED: f64 = 0.6;

    /// Returns the factors for a mean molecular weight.
    #[must_use]
    pub fn of(units: &Units, mean_molecular_weight: f64) -> Self {
        Self {
            mean_molecular_weight,
            kelvin: units.temperature() * mean_molecular_weight,
            number_density: units.number_density() / mean_molecular_weight,
            first_scale_factor: 1.0,
        }
    }

    /// Returns kelvin per code unit of pressure over density in the initial state.
    #[must_use]
    pub fn initial_kelvin(&self) -> f64 {
        let a = self.first_scale_factor;
        self.kelvin / (a * a)
    }

    /// Returns particles per cubic centimetre per code unit of density in the initial state.
    #[must_use]
    pub fn initial_number_density(&self) -> f64 {
        let a = self.first_scale_factor;
        self.number_density / (a * a * a)
    }
}

/// Levels whose gas has lost mass to particles in the present step. Energy that gravity still owes to the whole gas is not for the rest.
#[derive(Resource, Clone, Debug, Default)]
pub struct GasLosses(pub Vec<bool>);

impl GasLosses {
    /// Notes a loss on a level.
    pub fn note(&mut self, level: usize) {
        let levels = self.0.len().max(level + 1);
        self.0.resize(levels, false);
        self.0[level] = true;
    }

    /// Returns `true` if there was a loss on a level, and forgets it.
    pub(crate) fn take(&mut self, level: usize) -> bool {
        self.0.get_mut(level).is_some_and(std::mem::take)
    }
}

/// Floors of the gas at which cooling and chemistry end as well; 0: off. A resource while there is a table `[floors]`.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub struct GasFloors {
    /// Lowest temperature, kelvin.
    pub temperature_k: f64,
    /// Smallest Jeans length in cells of the finest level.
    pub jeans_cells: f64,
}

impl GasFloors {
    /// Sets the temperature floor at `path` of another table to that of `[floors]`, if there is one, unless the deck gives it. `own` reads
    /// the key.
    ///
    /// # Errors
    /// The deck gives two different values.
    pub fn hold_temperature(
        self,
        deck: &mut Deck,
        path: &str,
        own: impl Fn(&mut Deck) -> Result<f64, DeckError>,
    ) -> Result<(), DeckError> {
        hold_floor(
            deck,
            [path, "floors.temperature_k"],
            self.temperature_k,
            own,
        )
    }

    /// Sets the smallest Jeans length at `path` of another table, as [`GasFloors::hold_temperature`].
    ///
    /// # Errors
    /// The deck gives two different values.
    pub fn hold_jeans(
        self,
        deck: &mut Deck,
        path: &str,
        own: impl Fn(&mut Deck) -> Result<f64, DeckError>,
    ) -> Result<(), DeckError> {
        hold_floor(deck, [path, "floors.jeans_cells"], self.jeans_cells, own)
    }
}

/// Sets the key `path` to the value `floor` of the key `of_gas`, unless the deck gives both.
fn hold_floor(
    deck: &mut Deck,
    [path, of_gas]: [&str; 2],
    floor: f64,
    own: impl Fn(&mut Deck) -> Result<f64, DeckError>,
) -> Result<(), DeckError> {
    if floor == 0.0 {
        return Ok(());
    }
    deck.fill(path, of_gas, floor);
    let own = own(deck)?;
    if own == floor {
        return Ok(());
    }
    let why = format!(
        "`{path}` is {own}, but `{of_gas}`, which holds for all of the gas, is {floor}: remove `{path}`"
    );
    Err(deck.error_at(path, why))
}

/// Formula of the pressure at a temperature, of a plugin that defines `temperature_k`. Initial states and inflow that give a temperature use
/// it. The plugin inserts it as a resource before the gas is built.
#[derive(Resource, Clone)]
pub struct PressureFormula {
    /// Formula of `density` in code units, `temperature_k`, `scale_factor` (1 without expansion) and, for each scalar, `fraction_NAME`.
    pub text: String,
    /// Tabulated functions that it calls.
    pub curves: Vec<(String, Arc<Curve>)>,
}

/// Properties of the gas other than its field values.
#[derive(Resource, Clone)]
pub struct GasModel {
    /// Equation of state.
    pub equation: EquationOfState,
    /// Its constants.
    pub law: LawConstants,
    /// Exponent of the density in the pressure at constant entropy: ratio of specific heats, polytropic exponent, or 1 for isothermal gas.
    pub gamma: f64,
    /// Names of the passive scalars, in component order.
    pub scalars: Vec<String>,
    /// Default mass fraction of each scalar.
    pub initial: Vec<f64>,
    /// `true` for scalars that are mass fractions, between 0 and 1.
    pub fractions: Vec<bool>,
    /// Sets of scalars whose fractions sum to 1 in every cell, by component.
    pub sets: ShareSets,
    /// Derived fields of plugins.
    pub derived: Vec<Derived>,
    /// Conversion to physical units; `None` without a table `[units]`.
    pub physical: Option<GasUnits>,
    /// Pressure at a temperature; `None`: that of the constant mean molecular weight.
    pub pressure_formula: Option<PressureFormula>,
    /// `true` if the gas is not advanced.
    pub frozen: bool,
    /// The Riemann solver.
    pub riemann: RiemannSolver,
    /// Treatment of a magnetic field; if set, the field, with GLM its cleaning variable too, is stored after the first five components.
    pub magnetic: Option<MagneticMethod>,
    /// Dual-energy thresholds; if set, the internal energy is stored after the first five components and those of a magnetic field.
    pub dual: Option<DualEnergy>,
}

/// Largest deviation from 1 of the sum of given fractions of a set.
pub const SET_TOLERANCE: f64 = 1e-6;

impl GasModel {
    /// Returns a gas whose scalars belong to no set and default to 0.
    #[must_use]
    pub fn plain(gamma: f64, scalars: &[&str]) -> Self {
        Self {
            equation: EquationOfState::GammaLaw,
            law: gamma.into(),
            gamma,
            scalars: scalars.iter().map(ToString::to_string).collect(),
            initial: vec![0.0; scalars.len()],
            fractions: vec![true; scalars.len()],
            sets: ShareSets::default(),
            derived: Vec::new(),
            physical: None,
            pressure_formula: None,
            frozen: false,
            riemann: RiemannSolver::Hllc,
            magnetic: None,
            dual: None,
        }
    }

    /// Returns `true` if a plugin defines this derived field.
    #[must_use]
    pub(crate) fn replaces(&self, name: &str) -> bool {
        self.derived.iter().any(|derived| derived.name == name)
    }

    /// Returns the component of the internal energy, if it is stored.
    #[must_use]
    pub(crate) fn internal_energy(&self) -> Option<usize> {
        self.dual.map(|_| GAS_COMPONENTS + self.field_components())
    }

    /// Returns the component of the first scalar.
    #[must_use]
    pub(crate) fn first_scalar(&self) -> usize {
        self.equation.components() + self.field_components() + usize::from(self.dual.is_some())
    }

    /// Returns the number of components of the magnetic field in a cell.
    #[must_use]
    pub(crate) fn field_components(&self) -> usize {
        self.magnetic.map_or(0, MagneticMethod::components)
    }

    /// Returns `true` if the magnetic field is one on cell faces, whose means are components of the gas.
    #[must_use]
    pub(crate) fn has_face_field(&self) -> bool {
        self.magnetic == Some(MagneticMethod::ConstrainedTransport)
    }

    /// Returns the component of the magnetic field along x, which those along y and z and the cleaning variable follow.
    #[must_use]
    pub fn magnetic_field(&self) -> Option<usize> {
        self.magnetic.map(|_| GAS_COMPONENTS)
    }

    /// Returns density, velocity and pressure of a conserved state.
    #[must_use]
    pub fn primitive(&self, state: &[f64]) -> [f64; GAS_COMPONENTS] {
        self.equation.primitive(state, self.law)
    }

    /// Returns density, velocity and pressure of a state with all components; the pressure follows from the internal energy if that is stored.
    pub(crate) fn primitive_of_all(&self, state: &[f64]) -> [f64; GAS_COMPONENTS] {
        let mut primitive = self.primitive(state);
        if let Some(internal) = self.internal_energy() {
            primitive[4] = (self.gamma - 1.0) * state[internal];
        }
        primitive
    }

    /// Reduces all conserved quantities of a state by the factor `kept`; a magnetic field stays.
    pub(crate) fn reduce(&self, state: &mut [f64], kept: f64) {
        let first = self.magnetic_field().unwrap_or_default();
        let field = first..first + self.field_components();
        let conserved = state.iter_mut().enumerate();
        let conserved = conserved.filter(|(n, _)| !field.contains(n));
        conserved.for_each(|(_, value)| *value *= kept);
    }

    /// Returns constant and exponent of gas without energy, whose pressure is `constant * density^exponent`; `None` with an energy.
    #[must_use]
    pub fn polytrope(&self) -> Option<[f64; 2]> {
        (!self.equation.has_energy()).then_some([self.law.0[0], self.gamma])
    }

    /// Returns the rules for valid states.
    #[must_use]
    pub(crate) fn states(&self) -> StateRules {
        let rules = match self.dual {
            None if self.polytrope().is_some() => StateRules::of::<BarotropicStates, 4>(),
            None if self.has_face_field() => StateRules::of::<FaceFieldStates, 8>(),
            None if self.magnetic.is_some() => StateRules::of::<MagneticStates, 9>(),
            None => StateRules::of::<GasStates, 5>(),
            Some(dual) => {
                let rules = match self.magnetic {
                    None => StateRules::of::<DualStates, 6>(),
                    Some(MagneticMethod::ConstrainedTransport) => StateRules::of::<DualStates, 9>(),
                    Some(MagneticMethod::Glm) => StateRules::of::<DualStates, 10>(),
                };
                rules.with_thresholds([dual.kinetic, dual.magnetic])
            }
        };
        rules.with_sets(self.sets)
    }

    /// Returns the components of the gas, then those of the named scalars, as components for functions. An energy that the gas does not
    /// have is read as 0, and a function that returns it is refused.
    ///
    /// # Errors
    /// A name is not that of a scalar.
    pub fn components(&self, scalars: &[&str]) -> Result<Components, Error> {
        Ok(self.chosen(self.component_numbers(scalars)?))
    }

    /// Returns the components of the gas in its rest frame, as [`GasModel::component_numbers_at_rest`], for functions.
    ///
    /// # Errors
    /// A name is not that of a scalar.
    pub(crate) fn components_at_rest(&self, scalars: &[&str]) -> Result<Components, Error> {
        Ok(self.chosen(self.component_numbers_at_rest(scalars)?))
    }

    /// Returns components of the gas for functions, which must not return an energy that the gas does not have.
    fn chosen(&self, mut numbers: Vec<usize>) -> Components {
        if !self.equation.has_energy() {
            numbers[GAS_COMPONENTS - 1] = Components::ABSENT;
        }
        Components::of(&numbers)
    }

    /// Returns the components of the gas for functions whose state is a `Conserved`; an energy that it does not have is read as 0.
    #[must_use]
    pub(crate) fn without_scalars(&self) -> Components {
        match self.equation.has_energy() {
            true => Components::default(),
            false => Components::of(&[0, 1, 2, 3, Components::ZERO]),
        }
    }

    /// Returns the components of the gas in its rest frame, then those of scalars, as [`GasModel::component_numbers`].
    /// With the dual-energy formalism the momentum is replaced by zero and the total energy by the internal energy. A
    /// function then returns the internal energy, from which the total energy follows.
    ///
    /// # Errors
    /// A name is not that of a scalar.
    pub(crate) fn component_numbers_at_rest(&self, scalars: &[&str]) -> Result<Vec<usize>, Error> {
        let mut numbers = self.component_numbers(scalars)?;
        if let Some(internal) = self.internal_energy() {
            numbers[1..4].fill(Components::ZERO);
            numbers[4] = internal;
        }
        Ok(numbers)
    }

    /// Returns the components of the gas, then those of the named scalars. An energy that the gas does not have is read as 0.
    ///
    /// # Errors
    /// A name is not that of a scalar.
    pub(crate) fn component_numbers(&self, scalars: &[&str]) -> Result<Vec<usize>, Error> {
        let mut numbers: Vec<usize> = (0..self.equation.components()).collect();
        numbers.resize(GAS_COMPONENTS, Components::ZERO);
        for name in scalars {
            let Some(n) = self.scalars.iter().position(|own| own == name) else {
                return Err(Error::Setup(format!(
                    "the gas has no scalar {name:?}: declare it in the method `declare` of the plugin, or in hydro.scalars; \
                     scalars: {:?}",
                    self.scalars
                )));
            };
            numbers.push(self.first_scalar() + n);
        }
        Ok(numbers)
    }

    /// Returns the scalar indices of each set.
    pub(crate) fn scalar_sets(
        &self,
    ) -> impl Iterator<Item = impl Iterator<Item = usize> + Clone + '_> {
        let first = self.first_scalar();
        let scalars = move |set| self.sets.members(set).map(move |c| c - first);
        (1..=self.sets.count()).map(scalars)
    }

    /// Describes an invalid set at a point; `fraction` returns the fraction of a scalar, and sums may deviate from 1 by
    /// `tolerance`.
    #[must_use]
    pub(crate) fn invalid_set(
        &self,
        tolerance: f64,
        fraction: impl Fn(usize) -> f64,
    ) -> Option<String> {
        self.scalar_sets().find_map(|scalars| {
            let sum: f64 = scalars.clone().map(&fraction).sum();
            let sound = (sum - 1.0).abs() <= tolerance;
            if sound && scalars.clone().all(|n| fraction(n) >= 0.0) {
                return None;
            }
            let each: Vec<String> = scalars
                .map(|n| format!("{} = {}", self.scalars[n], fraction(n)))
                .collect();
            Some(format!(
                "the fractions of a set are {}, in sum {sum}; they must not be negative and sum to 1",
                each.join(", ")
            ))
        })
    }
}

impl GasModel {
    /// Describes an invalid set at a point, or a scalar that is no mass fraction; `table` is the table of the deck that gives the
    /// fractions.
    #[must_use]
    pub(crate) fn invalid_scalar(
        &self,
        table: &str,
        fraction: impl Fn(usize) -> f64,
    ) -> Option<String> {
        if let Some(why) = self.invalid_set(SET_TOLERANCE, &fraction) {
            return Some(why);
        }
        let bounds = -SET_TOLERANCE..=1.0 + SET_TOLERANCE;
        let wrong = |n: &usize| self.fractions[*n] && !bounds.contains(&fraction(*n));
        let n = (0..self.scalars.len()).find(wrong)?;
        let (name, value) = (&self.scalars[n], fraction(n));
        value.is_finite().then(|| {
            format!(
                "`{table}.scalars.{name}` is {value}, but mass fractions are between 0 and 1: change it, or add {name:?} to \
                 `hydro.quantities` if it is no mass fraction"
            )
        })
    }
}

/// Magnetic field on cell faces, each along the normal of its face. The gas has the means of both faces of a cell.
pub struct MagneticFaces;

impl Field for MagneticFaces {
    const NAME: &'static str = "magnetic_faces";
}

/// Density of all matter that is a source of gravity.
pub struct Matter;

impl Field for Matter {
    const NAME: &'static str = "matter";
}

/// Indices of the scalars that the initial state sets, if it can tell.
#[derive(Resource)]
pub struct InitialScalars(pub Vec<usize>);

/// Declarations of plugins about the gas.
#[derive(Resource, Default)]
pub struct GasDeclarations {
    /// Names and default mass fractions.
    pub scalars: Vec<(String, f64)>,
    /// Names of scalars whose fractions sum to 1.
    pub sets: Vec<Vec<String>>,
    /// Derived fields.
    pub derived: Vec<DerivedMaker>,
    /// `true` if a plugin reads [`MassFlux`].
    pub mass_fluxes: bool,
}

impl GasDeclarations {
    /// Adds the declared names to `names` and the sets to `sets`, without duplicates.
    pub fn join(&self, names: &mut Vec<String>, sets: &mut Vec<Vec<String>>) {
        for (name, _) in &self.scalars {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        for set in &self.sets {
            if !sets.contains(set) {
                sets.push(set.clone());
            }
        }
    }

    /// Returns the default mass fraction of a scalar.
    #[must_use]
    pub fn initial(&self, name: &str) -> f64 {
        let found = self.scalars.iter().find(|(own, _)| own == name);
        found.map_or(0.0, |(_, fraction)| *fraction)
    }
}
