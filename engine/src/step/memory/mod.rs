//! Memory: what the patches asked for will take, against what there is, before any of it is taken.

pub mod machine;

mod demand;
mod items;
mod restrain;
mod room;

pub use demand::{RegridDemand, field_bytes, needed, needed_per_rank};
pub use items::{ParticleDemand, StoredParticles, particle_demand};
pub use restrain::{MemoryDecision, limit_to_memory, shortage};
pub use room::{MemorySharers, headroom};

use crate::device::format_bytes;
use bevy_ecs::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What takes memory in any run, and what joins it with other consumers.
const FIELDS: &str = "fields";
const AND: &str = " and ";

/// Who says how much memory there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitSource {
    /// `run.memory_limit`.
    Limit,
    /// The machine.
    Machine,
    /// The device.
    Device,
}

/// Memory that the fields and tables of a run, or of one of its ranks, may take in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryLimit {
    /// Bytes.
    pub bytes: u64,
    /// Who says so.
    pub source: LimitSource,
}

/// Patches that do not fit into memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    /// What takes memory, such as `fields`.
    pub consumers: String,
    /// Bytes that this would take with them.
    pub needed: u64,
    /// Bytes of items among them.
    pub items: u64,
    /// What there is.
    pub limit: MemoryLimit,
    /// Level of the patches.
    pub level: usize,
    /// How many new patches were asked for.
    pub patches: u64,
    /// The rank that lacks memory; none where the run as a whole does.
    pub rank: Option<usize>,
    /// Whether there is a snapshot from which the run continues as if it had had the memory.
    pub resumable: bool,
}

impl Shortage {
    /// What does not fit.
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
        let items = match self.items {
            0 => String::new(),
            items => format!(" ({} of it for {})", format_bytes(items), self.groups()),
        };
        format!(
            "{patches} the {}{whose} need {}{items}, {there} {}",
            self.consumers,
            format_bytes(self.needed),
            format_bytes(self.limit.bytes)
        )
    }

    /// The groups of items that take memory, such as `particles`.
    fn groups(&self) -> &str {
        self.consumers
            .strip_prefix(FIELDS)
            .map_or("", |rest| rest.trim_start_matches(AND))
    }

    /// Where more memory comes from.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self.limit.source {
            LimitSource::Limit => "a larger run.memory_limit (MiB)",
            _ if self.rank.is_some() => "more ranks with memory of their own",
            LimitSource::Machine => "a machine with more memory",
            LimitSource::Device => "a device with more memory",
        }
    }

    /// Whether all that is missing of the root step is its last part, the regrid of the root level: then the present state is
    /// one from which a run continues as if it had had the memory. Otherwise levels have gone on without a regrid.
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
            let fewer = match self.items > self.needed / 2 {
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

/// What memory has denied so far.
#[derive(Resource, Clone, Debug, Default)]
pub struct MemoryGuard {
    /// Under `stop`: why no level is regridded any more. The run ends behind the present root step, whose outcome is kept if
    /// [`Shortage::is_at_root_step_end`].
    pub shortage: Option<Shortage>,
    /// Under `cap`: the first refinement that was cut short.
    pub first_cap: Option<Shortage>,
    /// Under `cap`: patches that were not refined, every regrid counted.
    pub capped: u64,
}
