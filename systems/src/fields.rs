//! The vocabulary that plugins share: which fields there are, and how to read a cell of them.

pub mod quantities;
pub(crate) mod rates;

use crate::units::Units;
use bevy_ecs::prelude::*;
use nestar_device::device;
use nestar_engine::data::criteria::NamedQuantity;
use nestar_engine::data::{Components, Field};
use nestar_engine::{Engine, Error};
use nestar_kernels::hydro::{DualEnergy, DualStates, GasStates};
use nestar_kernels::mesh::{ShareSets, StateRules};

/// Gas: density, momentum x y z, total energy, the internal energy if `hydro.dual_energy` asks for it, then the passive scalars (mass densities), per unit volume.
pub struct Gas;

impl Field for Gas {
    const NAME: &'static str = "gas";
}

/// Newton's constant, length^3/(mass time^2). There if the deck has a table `[gravity]`.
#[derive(Resource, Clone, Copy, Debug, PartialEq)]
pub struct GravitationalConstant(pub f64);

/// Gravitational potential of all matter.
pub struct Potential;

impl Field for Potential {
    const NAME: &'static str = "potential";
}

/// The gravitational potential of all matter, on each level without what finer levels add to its equation: its border comes from
/// [`Potential`] on the next coarser level. Matter beside coarse-fine faces whose cloud is as wide as a cell of the coarser level feels next to no
/// force on itself by it, where [`Potential`] has what the finer level knows of the cloud.
///
/// It has two time levels, as [`Potential`] has: a finer level reads it at its own time. On a level that hears of no finer one, which is
/// the finest level, and every level with `coupling = "one-way"`, it holds the values of [`Potential`]. Ghost cells of a level beside a coarser
/// one are made of that one's own potential, which is not its border: [`Potential`] is right there.
///
/// It is there if the deck has a table `[gravity]` and a plugin asked for it:
/// [`Declare::own_potential`](crate::declare::Declare::own_potential).
pub struct OwnPotential;

impl Field for OwnPotential {
    const NAME: &'static str = "own_potential";
}

/// There if somebody reads [`OwnPotential`].
#[derive(Resource)]
pub struct OwnPotentialAsked;

/// What everything that falls freely is accelerated by in the cells of each level, along x, y, z: by self-gravity, by what the table `[external]`
/// says, and by plugins. Where somebody asked for [`OwnPotential`] three more components follow, in which gravity has each level's own
/// potential. It has two time levels, and is there where a plugin asked for it:
/// [`Declare::acceleration`](crate::declare::Declare::acceleration).
pub struct Acceleration;

impl Field for Acceleration {
    const NAME: &'static str = "acceleration";
}

impl Acceleration {
    /// The vectors of which the field has so many components: one, or two.
    pub fn triples(components: usize) -> impl Iterator<Item = Components> {
        let triple = |first: usize| Components::of(&[first, first + 1, first + 2]);
        (0..components).step_by(3).map(triple)
    }
}

/// There if somebody reads [`Acceleration`].
#[derive(Resource)]
pub struct AccelerationAsked;

/// Density of the particles of all species, as the level last felt it. It is there if the deck has a table `[particles]`.
pub struct ParticleDensity;

impl Field for ParticleDensity {
    const NAME: &'static str = "particle_density";
}

/// Mass that the gas sends through the faces of its cells in the latest step, by area and time, along the positive axes. It is there where a
/// plugin asked for it: [`Declare::mass_fluxes`](crate::declare::Declare::mass_fluxes).
pub struct MassFlux;

impl Field for MassFlux {
    const NAME: &'static str = "mass_flux";
}

/// What acts on all matter from outside the simulation, an [`ExternalState`] in each cell, on each level at the time that it has reached. It is
/// there if the deck has a table `[external]`.
pub struct External;

impl Field for External {
    const NAME: &'static str = "external";
}

/// The state of [`External`].
#[device]
#[derive(Clone, Copy)]
pub struct ExternalState<R> {
    /// Potential, length^2 / time^2.
    pub potential: R,
    /// Acceleration along x, y, z by the potential and by what has none, length / time^2.
    pub acceleration: [R; 3],
}

/// Components of [`Gas`] that there always are.
pub const GAS_COMPONENTS: usize = 5;

/// A number in a cell that a plugin gives a name.
#[derive(Clone)]
pub struct Derived {
    /// Name, in criteria, formulas and pictures.
    pub name: String,
    /// Unit in code units, for example `time`; `1` for a pure number.
    pub units: String,
    /// A sentence for people.
    pub doc: String,
    /// What it is made of.
    pub number: NamedQuantity,
    /// The scalars that it is made of behind the gas.
    pub scalars: Vec<String>,
    /// Whether that is the gas in its own frame ([`GasModel::numbers_at_rest`]).
    pub at_rest: bool,
}

/// Makes a number with a name when it is known what the gas is made of.
pub type Naming = Box<dyn FnOnce(&mut Engine, &GasModel) -> Result<Derived, Error> + Send + Sync>;

/// What units make of the gas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GasUnits {
    /// Mean mass of a particle in masses of hydrogen atoms.
    pub mean_molecular_weight: f64,
    /// Kelvin in a code pressure over density.
    pub kelvin: f64,
    /// Particles per cubic centimetre in a code density.
    pub number_density: f64,
}

impl GasUnits {
    /// Mean molecular weight of ionised gas of primordial composition, where nothing else is said.
    pub const IONISED: f64 = 0.6;

    /// Of gas of a mean molecular weight.
    #[must_use]
    pub fn of(units: &Units, mean_molecular_weight: f64) -> Self {
        Self {
            mean_molecular_weight,
            kelvin: units.temperature() * mean_molecular_weight,
            number_density: units.number_density() / mean_molecular_weight,
        }
    }
}

/// What is known of the gas beyond its values.
#[derive(Resource, Clone)]
pub struct GasModel {
    /// Ratio of specific heats.
    pub gamma: f64,
    /// Names of the passive scalars, in the order of their components.
    pub scalars: Vec<String>,
    /// Mass fraction of each scalar where nothing else says what it is.
    pub initial: Vec<f64>,
    /// Scalars whose fractions sum to 1 in every cell, by component.
    pub sets: ShareSets,
    /// Numbers that plugins have named.
    pub derived: Vec<Derived>,
    /// Its temperature and number density; none without units.
    pub physical: Option<GasUnits>,
    /// Whether it stands still.
    pub frozen: bool,
    /// Whether fluxes know two waves only, which mixes gas at contacts.
    pub two_waves: bool,
    /// How the internal energy is carried, which is stored behind the components that there always are, if it is.
    pub dual: Option<DualEnergy>,
}

/// How far the fractions of a set may be from 1 in sum where they are given.
pub const SET_TOLERANCE: f64 = 1e-6;

impl GasModel {
    /// A gas whose scalars belong to no set, and are 0 where nothing else is said.
    #[must_use]
    pub fn plain(gamma: f64, scalars: &[&str]) -> Self {
        Self {
            gamma,
            scalars: scalars.iter().map(ToString::to_string).collect(),
            initial: vec![0.0; scalars.len()],
            sets: ShareSets::default(),
            derived: Vec::new(),
            physical: None,
            frozen: false,
            two_waves: false,
            dual: None,
        }
    }

    /// The component of the internal energy, if it is stored.
    #[must_use]
    pub fn internal_energy(&self) -> Option<usize> {
        self.dual.map(|_| GAS_COMPONENTS)
    }

    /// The component of the first scalar.
    #[must_use]
    pub fn first_scalar(&self) -> usize {
        GAS_COMPONENTS + usize::from(self.dual.is_some())
    }

    /// What is known of states.
    #[must_use]
    pub fn states(&self) -> StateRules {
        let rules = match self.dual {
            None => StateRules::of::<GasStates, 5>(),
            Some(dual) => StateRules::of::<DualStates, 6>().with_threshold(dual.kinetic),
        };
        rules.with_sets(self.sets)
    }

    /// As [`GasModel::numbers`], for functions.
    ///
    /// # Errors
    /// A name that is no scalar's.
    pub fn components(&self, scalars: &[&str]) -> Result<Components, Error> {
        Ok(Components::of(&self.numbers(scalars)?))
    }

    /// As [`GasModel::numbers`] of gas in its own frame, for functions of its heat: without momentum, and with the internal energy in
    /// place of the total one, where the gas carries it. What they give for the energy is the internal one then, and the total
    /// energy follows.
    ///
    /// # Errors
    /// A name that is no scalar's.
    pub fn numbers_at_rest(&self, scalars: &[&str]) -> Result<Vec<usize>, Error> {
        let mut numbers = self.numbers(scalars)?;
        if let Some(internal) = self.internal_energy() {
            numbers[1..4].fill(Components::ZERO);
            numbers[4] = internal;
        }
        Ok(numbers)
    }

    /// The components of the gas, then those of some scalars.
    ///
    /// # Errors
    /// A name that is no scalar's.
    pub fn numbers(&self, scalars: &[&str]) -> Result<Vec<usize>, Error> {
        let mut numbers: Vec<usize> = (0..GAS_COMPONENTS).collect();
        for name in scalars {
            let Some(n) = self.scalars.iter().position(|own| own == name) else {
                return Err(Error::Setup(format!(
                    "the gas has no scalar {name:?}: declare it in the method `declare` of the plugin, or in hydro.scalars; \
                     there are {:?}",
                    self.scalars
                )));
            };
            numbers.push(self.first_scalar() + n);
        }
        Ok(numbers)
    }

    /// The scalars of each set, as numbers.
    pub fn scalar_sets(&self) -> impl Iterator<Item = impl Iterator<Item = usize> + Clone + '_> {
        let first = self.first_scalar();
        let scalars = move |set| self.sets.members(set).map(move |c| c - first);
        (1..=self.sets.count()).map(scalars)
    }

    /// What is wrong with the fractions of sets at a point, `fraction` of each scalar; their sum may be off by `tolerance`.
    #[must_use]
    pub fn wrong_set(&self, tolerance: f64, fraction: impl Fn(usize) -> f64) -> Option<String> {
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

/// The density of all matter that attracts.
pub struct Matter;

impl Field for Matter {
    const NAME: &'static str = "matter";
}

/// Numbers of the scalars that the initial state gives, where it can tell.
#[derive(Resource)]
pub struct InitialScalars(pub Vec<usize>);

/// What plugins have declared of the gas.
#[derive(Resource, Default)]
pub struct Declared {
    /// Names, and mass fractions where nothing else says what they are.
    pub scalars: Vec<(String, f64)>,
    /// Names of those whose fractions sum to 1.
    pub sets: Vec<Vec<String>>,
    /// Numbers with names.
    pub derived: Vec<Naming>,
    /// Whether somebody reads [`MassFlux`].
    pub mass_fluxes: bool,
}

impl Declared {
    /// Adds the names to `names` and the sets to `sets`, unless they are there.
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

    /// Mass fraction of a scalar where nothing else says what it is.
    #[must_use]
    pub fn initial(&self, name: &str) -> f64 {
        let found = self.scalars.iter().find(|(own, _)| own == name);
        found.map_or(0.0, |(_, fraction)| *fraction)
    }
}
