//! The table `[particles]` and its checks.

use super::initial::{InitialParticlesConfig, LatticeInitial, RandomInitial, TableInitial, zeros};
use super::species::MovedBy;
use crate::declare::PerLevel;
use crate::fields::GasModel;
use nestar_deck::deck;
use nestar_engine::{Engine, Error};
use std::collections::BTreeMap;

/// Shape of the cloud with which a particle deposits mass and gathers forces.
#[deck]
pub enum Cloud {
    /// Nearest grid point: the whole particle in one cell; fastest and least accurate.
    Ngp,
    /// Cloud in cell: a box one cell wide; for many particles.
    Cic,
    /// Triangular-shaped cloud: three cells wide; for few particles.
    Tsc,
}

impl Cloud {
    /// Returns the cells that the cloud covers along an axis.
    #[must_use]
    pub fn width(self) -> i32 {
        match self {
            Self::Ngp => 1,
            Self::Cic => 2,
            Self::Tsc => 3,
        }
    }
}

/// Collisionless particles (dark matter, stars, planets) and tracers of gas.
///
/// Particles are integrated with kick-drift-kick at the step of the level that contains them. Mass is
/// deposited and forces are gathered with the same cloud, and the deposited mass is conserved to the last
/// bit. Particles leave the domain through faces that are neither periodic nor reflecting.
#[deck]
pub struct ParticlesConfig {
    /// Cloud shape for mass deposit and force gather.
    #[key(default = Cloud::Cic)]
    pub cloud: Cloud,
    /// Largest number of cells that a particle may cross along an axis in one step of its level.
    #[key(default = 0.5, min = 1e-6, max = 1.0)]
    pub courant: f64,
    /// Factor f of the acceleration limit dt <= f * sqrt(cell width / |a|); 0 disables the limit.
    #[key(default = 0.5, zero_or = 1e-6, max = 1.0)]
    pub acceleration: f64,
    /// Width of the coarse-fine boundary zone, in coarse cells on either side of the boundary; 0: no zone.
    /// Particles in the zone move as those of the coarse level do, which balances forces across the boundary. With 2 more
    /// of a level has its own resolution, but up to 2% of a force remains unbalanced.
    #[key(default = 3, min = 0, max = 3)]
    pub zone: u32,
    /// Cost of one particle step in units of one cell update, for load balancing.
    #[key(default = 2.0, min = 0.0, max = 1000.0)]
    pub weight: f64,
    /// Refinement by particles.
    #[key(default = RefineConfig::default())]
    pub refine: RefineConfig,
    /// Test of determinism: permutes the particles in memory at each root step, which must not change results.
    #[key(default = false)]
    pub shuffle: bool,
    /// Species by name.
    #[key(default = BTreeMap::new())]
    pub species: BTreeMap<String, SpeciesConfig>,
}

impl ParticlesConfig {
    /// Returns `true` if a species is moved this way. Without species, plugins create particles that fall.
    #[must_use]
    pub fn moves(&self, what: MovedBy) -> bool {
        let mut species = self.species.values();
        species.any(|species| species.moved_by == what)
            || (self.species.is_empty() && what == MovedBy::Fall)
    }
}

/// Refinement by particles of all species, or of some. Each other key is a number, or a list with one number per level from 0;
/// levels beyond the end of a list are not refined. The deck's flag buffer is added.
#[deck]
pub struct RefineConfig {
    /// Names of the species that count; default: all.
    #[key(default = Vec::new())]
    pub species: Vec<String>,
    /// Refines patches (8^3 cells) that contain more particles than this.
    #[schemars(extend("minimum" = 0.0))]
    pub per_patch: Option<PerLevel<f64>>,
    /// Keeps the eight children of a patch while one of them contains more particles than this. Does not
    /// refine.
    #[schemars(extend("minimum" = 0.0))]
    pub kept_per_patch: Option<PerLevel<f64>>,
    /// Refines cells that contain more particles than this.
    #[schemars(extend("minimum" = 0.0))]
    pub per_cell: Option<PerLevel<f64>>,
    /// Refines cells that contain more particle mass than this.
    #[key(unit = "mass")]
    #[schemars(extend("minimum" = 0.0))]
    pub mass_per_cell: Option<PerLevel<f64>>,
    /// Refines the surroundings of single particles, such as sinks and young stars.
    #[key(default = Vec::new())]
    pub near: Vec<NearConfig>,
}

/// Refinement around the particles of a species that has the scalar `birth_time`.
#[deck]
pub struct NearConfig {
    /// Name of the species.
    pub species: String,
    /// Only particles younger than this. Default: all.
    #[key(unit = "time", above = 0.0)]
    pub younger: Option<f64>,
    /// Number of cells around a particle that are refined, at most 8. The flag buffer of the deck is the least number.
    #[key(default = 0, max = 8)]
    pub cells: u32,
    /// Finest level. Default: `mesh.max_level`.
    pub level: Option<u32>,
}

/// Particle species.
#[deck]
pub struct SpeciesConfig {
    /// Mass of each particle. If absent, each particle has its own mass, given by `initial`. Particles with
    /// mass 0 feel gravity but are no source of it.
    #[key(unit = "mass", min = 0.0)]
    pub mass: Option<f64>,
    /// What moves the particles.
    #[key(default = MovedBy::default())]
    pub moved_by: MovedBy,
    /// Seed of the random displacements of `mass-fluxes` tracers.
    #[key(default = 0)]
    pub seed: u32,
    /// Names of additional numbers stored for each particle.
    #[key(default = Vec::new())]
    pub scalars: Vec<String>,
    /// Which particles are entities, to which plugins can attach components. Default: `each` if a rank starts
    /// with at most 10 million particles, else `on-demand`; `on-demand` for `initial = { kind = "none" }`.
    pub entities: Option<EntityPolicy>,
    /// Initial particles.
    pub initial: InitialParticlesConfig,
}

impl SpeciesConfig {
    /// Returns `true` if each particle is an entity, given the initial number of particles on a rank.
    #[must_use]
    pub fn are_entities(&self, on_a_rank: u64) -> bool {
        match self.entities {
            Some(which) => which == EntityPolicy::Each,
            None => on_a_rank <= 10_000_000 && self.initial != InitialParticlesConfig::None {},
        }
    }
}

/// Which particles of a species are entities.
#[deck]
pub enum EntityPolicy {
    /// Each particle from the start; takes about 80 bytes more per particle.
    Each,
    /// Only the particles that a plugin asks for.
    OnDemand,
}

impl InitialParticlesConfig {
    /// Returns the first key below `initial` that gives a mass.
    fn key_of_mass(&self) -> Option<String> {
        let given = match self {
            Self::Lattice(LatticeInitial { mass, .. }) => mass,
            Self::Random(RandomInitial { mass, .. }) => mass,
            Self::Table(TableInitial { mass, .. }) => mass,
            Self::Bodies { bodies } => {
                let n = bodies.iter().position(|body| body.mass.is_some())?;
                return Some(format!("bodies[{n}].mass"));
            }
            Self::None {} | Self::Sphere(_) => return None,
        };
        given.as_ref().map(|_| "mass".into())
    }

    /// Returns the first key below `initial` that gives a velocity other than 0.
    fn key_of_velocity(&self) -> Option<String> {
        let given = match self {
            Self::Lattice(LatticeInitial { velocity, .. })
            | Self::Random(RandomInitial { velocity, .. }) => *velocity != zeros(),
            Self::Table(TableInitial { velocity, .. }) => velocity.is_some(),
            Self::Bodies { bodies } => {
                let n = bodies.iter().position(|body| body.velocity != [0.0; 3])?;
                return Some(format!("bodies[{n}].velocity"));
            }
            Self::None {} | Self::Sphere(_) => false,
        };
        given.then(|| "velocity".into())
    }
}

/// Names of built-in particle attributes, which scalars must not use.
const RESERVED: [&str; 7] = [
    "id",
    "offset",
    "position",
    "velocity",
    "acceleration",
    "mass",
    "moved_by_finer",
];

/// Name that selects all species.
const ALL_SPECIES: &str = "all";
/// Rule for names, used in messages.
const NAME_RULE: &str = "use at most 100 letters a to z, digits and `_`";
/// Longest name; snapshots have files with these names.
const MAX_LENGTH: usize = 100;

/// Returns `true` if a word is a valid name in snapshots.
fn is_valid_name(word: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=MAX_LENGTH).contains(&word.len()) && word.chars().all(fits)
}

/// Returns a key that contradicts another one or has no effect, with the reason.
fn key_without_effect(own: &SpeciesConfig) -> Option<(String, &'static str)> {
    let traces = own.moved_by != MovedBy::Fall;
    let initial = |key: String| format!(".initial.{key}");
    if let Some(key) = own.initial.key_of_mass() {
        let why = match (traces, own.mass) {
            (true, _) => "a tracer of gas has no mass: remove it",
            (_, Some(_)) => "the species gives the `mass` of each particle: leave one of them out",
            (false, None) => return None,
        };
        return Some((initial(key), why));
    }
    let key = own.initial.key_of_velocity().filter(|_| traces)?;
    let why = "tracers move with the gas and have no velocity of their own: remove it";
    Some((initial(key), why))
}

/// Refuses a species with an invalid or duplicate name, an invalid mass, or keys without effect.
pub(super) fn check(
    sim: &Engine,
    config: &ParticlesConfig,
    name: &str,
    own: &SpeciesConfig,
) -> Result<(), Error> {
    let refuse = |key: &str, why: String| {
        let key = format!("particles.species.{name}{key}");
        Err(sim.deck.error_at(&key, why).into())
    };
    if !is_valid_name(name) {
        let why = format!("{name:?} is not a valid species name: {NAME_RULE}");
        let error = sim.deck.error_at_key("particles.species", name, why);
        return Err(error.into());
    }
    if name == ALL_SPECIES {
        let why = format!("{name:?} selects all species in plots: choose another name");
        return refuse("", why);
    }
    key_without_effect(own).map_or(Ok(()), |(key, why)| refuse(&key, why.into()))?;
    let others = config.species.keys();
    if let Some(other) = others
        .into_iter()
        .find(|other| format!("{other}_lost") == name)
    {
        let why = format!(
            "the diagnostics of {other:?} have columns with this name: choose another name"
        );
        return refuse("", why);
    }
    if own.mass.is_some_and(|mass| !mass.is_finite()) {
        return refuse(".mass", "must be a finite number".into());
    }
    if let Some((key, why)) = unsupported_with_frozen_gas(sim, own) {
        return refuse(key, why.into());
    }
    let mut before = (0..own.scalars.len()).map(|n| &own.scalars[..=n]);
    match before.find_map(invalid_scalar) {
        Some(why) => refuse(".scalars", why),
        None => Ok(()),
    }
}

/// Returns the key that is not supported with frozen gas, with the reason.
fn unsupported_with_frozen_gas(
    sim: &Engine,
    own: &SpeciesConfig,
) -> Option<(&'static str, &'static str)> {
    let gas = sim.world.get_resource::<GasModel>()?;
    let why = match own.moved_by {
        _ if !gas.frozen => return None,
        MovedBy::MassFluxes => "frozen gas has no mass fluxes",
        MovedBy::Gas if sim.settings.time.max_step.is_infinite() => {
            "frozen gas does not limit the time step of these tracers: add `time.max_step`"
        }
        _ => return None,
    };
    Some((".moved_by", why))
}

/// Returns why the last of several scalar names is invalid.
fn invalid_scalar(names: &[String]) -> Option<String> {
    let (scalar, before) = names.split_last()?;
    if !is_valid_name(scalar) {
        return Some(format!("{scalar:?} is not a valid name: {NAME_RULE}"));
    }
    // components of vectors are columns of tables as well, such as `position_x`
    let ends = ["_x", "_y", "_z"].iter();
    let vectors = ends.filter_map(|end| scalar.strip_suffix(end));
    let mut words = vectors.chain([&**scalar]);
    let taken = words.any(|word| RESERVED.contains(&word)) || before.contains(scalar);
    taken.then(|| format!("{scalar:?} is the name of another particle attribute"))
}
