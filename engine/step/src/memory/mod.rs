//! Memory limits: the need of requested patches is compared with the available memory before they are
//! created.

pub mod machine;

mod decision;
mod demand;

pub use decision::{MemoryDecision, limit_to_memory, shortage};
pub use demand::{
    ParticleDemand, RegridDemand, StoredParticles, field_bytes, needed, needed_per_rank,
    particle_demand,
};
pub use machine::{MemorySharers, headroom};

use bevy_ecs::prelude::*;
use nestar_engine_device::format_bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Name of the fields in messages, and the word that joins further consumers.
const FIELDS: &str = "fields";
const AND: &str = " and ";

/// Names the origin of a memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitSource {
    /// `run.memory_limit`.
    Limit,
    /// The machine.
    Machine,
    /// The device.
    Device,
}

/// Limits the memory of the fields and tables of a run or a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLimit {
    /// Bytes.
    pub bytes: u64,
    /// Origin of the limit.
    pub source: LimitSource,
}

/// Describes patches that do not fit into memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    /// What needs memory, such as `fields`.
    pub consumers: String,
    /// Bytes needed in total.
    pub needed: u64,
    /// Bytes of particles among them.
    pub particles: u64,
    /// The exceeded limit.
    pub limit: MemoryLimit,
    /// Level of the patches.
    pub level: usize,
    /// Number of requested new patches.
    pub patches: u64,
    /// Rank that lacks memory; `None` for the run as a whole.
    pub rank: Option<usize>,
    /// `true` if the run can continue from a snapshot as if it had had the memory.
    pub resumable: bool,
}

impl Shortage {
    /// Describes what does not fit.
    #[must_use]
    pub fn description(&self) -> String {
        let (whose, there) = match (self.rank, self.limit.source) {
            (_, LimitSource::Limit) => (String::new(), "run.memory_limit allows"),
            (None, LimitSource::Machine) => (String::new(), "this machine has"),
            (None, LimitSource::Device) => (String::new(), "the device has"),
            (Some(rank), LimitSource::Machine) => {
                (format!(" of rank {rank}"), "its part of the machine has")
            }
            (Some(rank), LimitSource::Device) => {
                (format!(" of rank {rank}"), "its part of the device has")
            }
        };
        let patches = match self.level {
            0 => format!("with the {} patches of the root grid", self.patches),
            level => format!("with {} new patches of level {level}", self.patches),
        };
        let particles = match self.particles {
            0 => String::new(),
            particles => format!(" ({} of it for {})", format_bytes(particles), self.groups()),
        };
        format!(
            "{patches} the {}{whose} need {}{particles}, {there} {}",
            self.consumers,
            format_bytes(self.needed),
            format_bytes(self.limit.bytes)
        )
    }

    /// Returns the groups of particles that need memory, such as `particles`.
    fn groups(&self) -> &str {
        self.consumers
            .strip_prefix(FIELDS)
            .map_or("", |rest| rest.trim_start_matches(AND))
    }

    /// Names ways to get more memory.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self.limit.source {
            LimitSource::Limit => "a larger run.memory_limit (MiB)",
            _ if self.rank.is_some() => "more ranks with memory of their own",
            LimitSource::Machine => "a machine with more memory",
            LimitSource::Device => "a device with more memory",
        }
    }

    /// Returns `true` if only the root regrid at the end of the root step is missing. The present state is
    /// then a valid restart point; otherwise levels have advanced without a regrid.
    #[must_use]
    pub fn is_at_root_step_end(&self) -> bool {
        self.level == 1
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "too little memory: {}", self.description())?;
        let cap = "run.out_of_memory = \"cap\" (the patches that fit)";
        let more = self.remedy();
        if self.resumable {
            write!(
                f,
                "\nthe run can be continued from its latest snapshot, with {more} or {cap}"
            )
        } else if self.level == 0 {
            let fewer = match self.particles > self.needed / 2 {
                true => self.groups(),
                false => "domain.cells",
            };
            write!(
                f,
                "\ntake {more}, fewer {fewer} or run.precision = \"single\""
            )
        } else {
            write!(
                f,
                "\ntake {more}, {cap}, run.precision = \"single\", a lower mesh.max_level or criteria that refine less"
            )
        }
    }
}

/// Records what memory has prevented so far.
#[derive(Resource, Clone, Debug, Default)]
pub struct MemoryGuard {
    /// Under `stop`: shortage that prevents all further regrids. The run ends after the current root step,
    /// and its state is written if [`Shortage::is_at_root_step_end`].
    pub shortage: Option<Shortage>,
    /// Under `cap`: the first refinement that was reduced.
    pub first_cap: Option<Shortage>,
    /// Under `cap`: number of patches not refined, over all regrids.
    pub capped: u64,
}
