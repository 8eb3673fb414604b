//! The table `[particles]`.

use super::initial::InitialParticlesConfig;
use super::moved_by::MovedBy;
use crate::declare::PerLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Shape of the cloud with which a particle deposits mass and gathers forces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ParticlesConfig {
    /// Cloud shape for mass deposit and force gather.
    pub cloud: Cloud,
    /// Largest number of cells that a particle may cross along an axis in one step of its level.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub courant: f64,
    /// Factor f of the acceleration limit dt <= f * sqrt(cell width / |a|); 0 disables the limit.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub acceleration: f64,
    /// Width of the coarse-fine boundary zone, in coarse cells on either side of the boundary. Particles in
    /// the zone have clouds as wide as coarse cells and gather the potential of the coarse level, which
    /// removes their self-force; 0 disables the zone.
    #[schemars(range(min = 0, max = 2))]
    pub zone: u32,
    /// Cost of one particle step in units of one cell update, for load balancing.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub weight: f64,
    /// Refinement by particles.
    pub refine: RefineConfig,
    /// Permutes the particles in memory at each root step. Results must not change; this is a self-test.
    pub shuffle: bool,
    /// Species by name.
    pub species: BTreeMap<String, SpeciesConfig>,
}

impl Default for ParticlesConfig {
    fn default() -> Self {
        Self {
            cloud: Cloud::Cic,
            courant: 0.5,
            acceleration: 0.5,
            zone: 2,
            weight: 2.0,
            refine: RefineConfig::default(),
            shuffle: false,
            species: BTreeMap::new(),
        }
    }
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

/// Refinement by particles of all species. Each key is a number, or a list with one number per level from 0;
/// levels beyond the end of a list are not refined. The deck's flag buffer is added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RefineConfig {
    /// Refines patches (8^3 cells) that contain more particles than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0.0))]
    pub per_patch: Option<PerLevel<f64>>,
    /// Keeps the eight children of a patch while one of them contains more particles than this. Does not
    /// refine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0.0))]
    pub kept_per_patch: Option<PerLevel<f64>>,
    /// Refines cells that contain more particles than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0.0))]
    pub per_cell: Option<PerLevel<f64>>,
    /// Refines cells that contain more particle mass than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0.0, "unit" = "mass"))]
    pub mass_per_cell: Option<PerLevel<f64>>,
}

/// Particle species.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpeciesConfig {
    /// Mass of each particle. If absent, each particle has its own mass, given by `initial`. Particles with
    /// mass 0 feel gravity but are no source of it.
    #[serde(default)]
    #[schemars(range(min = 0.0), extend("unit" = "mass"))]
    pub mass: Option<f64>,
    /// What moves the particles.
    #[serde(default)]
    pub moved_by: MovedBy,
    /// Seed of the random displacements of `mass-fluxes` tracers.
    #[serde(default)]
    pub seed: u32,
    /// Names of additional numbers stored for each particle.
    #[serde(default)]
    pub scalars: Vec<String>,
    /// Which particles are entities, to which plugins can attach components. Default: `each` if a rank starts
    /// with at most 10 million particles, else `on-demand`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
            None => on_a_rank <= 10_000_000,
        }
    }
}

/// Which particles of a species are entities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EntityPolicy {
    /// Each particle from the start; takes about 80 bytes more per particle.
    Each,
    /// Only the particles that a plugin asks for.
    OnDemand,
}
