//! The table `[particles]`.

use super::initial::InitialParticlesConfig;
use super::moved_by::MovedBy;
use crate::declare::PerLevel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How wide the cloud is as which a particle attracts and is attracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cloud {
    /// All of it in its cell: the roughest and fastest.
    Ngp,
    /// A box as wide as a cell: for many particles.
    Cic,
    /// A triangle, three cells wide: for few particles that matter.
    Tsc,
}

impl Cloud {
    /// Cells that it covers along an axis.
    #[must_use]
    pub fn width(self) -> i32 {
        match self {
            Self::Ngp => 1,
            Self::Cic => 2,
            Self::Tsc => 3,
        }
    }
}

/// Particles: dark matter, stars and whatever else falls freely. They move by kick, drift and kick, each with the steps of the level
/// that contains it, attract and are attracted as clouds that keep their mass to the last bit, and leave the box through faces that are
/// neither periodic nor reflecting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ParticlesConfig {
    /// How wide their clouds are.
    pub cloud: Cloud,
    /// Most widths of a cell that a particle moves along an axis in a step of its level.
    #[schemars(range(max = 1.0), extend("exclusiveMinimum" = 0.0))]
    pub courant: f64,
    /// Root of the most widths of a cell through which a particle is accelerated in a step: dt <= factor * sqrt(width / |a|); 0: no limit.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub acceleration: f64,
    /// Cells of the coarser level on either side of a border between levels in which particles have clouds as wide as those cells, and feel the
    /// coarser level's own potential: they do not feel themselves. With 0 they do.
    #[schemars(range(min = 0, max = 2))]
    pub zone: u32,
    /// How many cells a step of a particle costs as much as: ranks share patches out by it.
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub weight: f64,
    /// Where particles want a finer mesh.
    pub refine: RefineConfig,
    /// Whether particles change places in memory at each root step, which must not change anything: a test of this program.
    pub shuffle: bool,
    /// The species, by name.
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
    /// Whether something moves any of the species; without species they fall, which plugins make.
    #[must_use]
    pub fn moves(&self, what: MovedBy) -> bool {
        let mut species = self.species.values();
        species.any(|species| species.moved_by == what)
            || (self.species.is_empty() && what == MovedBy::Fall)
    }
}

/// Where particles of all species want a finer mesh: numbers, or lists with one number for each level from 0; none refines a level behind its
/// list's end. The flag buffer of the deck is added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RefineConfig {
    /// Patches, 8^3 cells, with more particles than this, all of the patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0.0))]
    pub per_patch: Option<PerLevel<f64>>,
    /// The eight children of a patch of this level stay while one of them has more particles than this; it refines nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0.0))]
    pub kept_per_patch: Option<PerLevel<f64>>,
    /// Cells with more particles than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0.0))]
    pub per_cell: Option<PerLevel<f64>>,
    /// Cells with particles of more mass than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0.0, "unit" = "mass"))]
    pub mass_per_cell: Option<PerLevel<f64>>,
}

/// A kind of particle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpeciesConfig {
    /// Mass of each particle; absent: each has its own, which the initial state says. Particles without mass are attracted and attract nothing.
    #[serde(default)]
    #[schemars(range(min = 0.0), extend("unit" = "mass"))]
    pub mass: Option<f64>,
    /// What moves its particles.
    #[serde(default)]
    pub moved_by: MovedBy,
    /// Another seed, other ways of what moves by chance.
    #[serde(default)]
    pub seed: u32,
    /// Names of further numbers that each particle keeps.
    #[serde(default)]
    pub scalars: Vec<String>,
    /// Which of its particles are entities, to which plugins attach components; absent: each, if a rank begins with no more than 10 million.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entities: Option<EntityPolicy>,
    /// What the run begins with.
    pub initial: InitialParticlesConfig,
}

impl SpeciesConfig {
    /// Whether each particle is an entity where a rank begins with so many.
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
    /// Each, from the beginning on: about 80 bytes of memory more.
    Each,
    /// Those that a plugin asks for.
    OnDemand,
}
