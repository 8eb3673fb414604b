//! The engine's tables of a deck.

mod faces;

pub(crate) use faces::LIST;
pub use faces::{AxisBoundaries, AxisBoundary, Boundary, BoundaryKind};

use super::limits::LevelSteps;
use crate::data::Precision;
use crate::device::DeviceChoice;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a run simulates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RootConfig {
    /// The initial condition: the name of a registered scenario, `formula`, or `zarr`.
    pub scenario: String,
}

impl Default for RootConfig {
    fn default() -> Self {
        Self {
            scenario: "formula".into(),
        }
    }
}

/// The simulated box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DomainConfig {
    /// Cells of level 0 along x, y, z; multiples of 8, each axis its own.
    #[schemars(inner(range(min = 8, max = 65536)))]
    pub cells: [u32; 3],
    /// Lower edge along x, y, z.
    #[schemars(extend("unit" = "length"))]
    pub left_edge: [f64; 3],
    /// Upper edge along x, y, z.
    #[schemars(extend("unit" = "length"))]
    pub right_edge: [f64; 3],
    /// Boundary conditions: one word for all faces, or a table such as `{ x = ["outflow", "reflecting"], y = "periodic", z = "outflow" }`.
    pub boundary: Boundary,
}

impl Default for DomainConfig {
    fn default() -> Self {
        Self {
            cells: [64; 3],
            left_edge: [0.0; 3],
            right_edge: [1.0; 3],
            boundary: Boundary::All(BoundaryKind::Periodic),
        }
    }
}

/// What the `[time]` table of a deck says to the engine; the table has an owner who may add keys of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSettings {
    /// Simulation time at which the run ends.
    pub end: f64,
    /// Most root steps; 0: no limit.
    pub max_steps: u64,
    /// How the steps of the levels relate.
    pub levels: LevelSteps,
    /// Under `adaptive`: largest relative stretch of a step to meet the coarser level.
    pub increase: f64,
    /// Under `adaptive`: largest relative cut of a step that saves the finer level a short one.
    pub decrease: f64,
    /// Longest step of any level; may be infinite.
    pub max_step: f64,
    /// Factor of a step that is taken again because cells came out unphysical.
    pub retry_factor: f64,
    /// How often a step is taken again before the run stops.
    pub retries: u32,
}

impl Default for TimeSettings {
    fn default() -> Self {
        Self {
            end: 1.0,
            max_steps: 0,
            levels: LevelSteps::Adaptive,
            increase: 0.1,
            decrease: 0.1,
            max_step: f64::INFINITY,
            retry_factor: 0.8,
            retries: 10,
        }
    }
}

/// Where and when snapshots are written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OutputConfig {
    /// Directory of the run; relative to the working directory.
    pub directory: String,
    /// Simulation time between snapshots; 0: none by time.
    #[schemars(range(min = 0.0), extend("unit" = "time"))]
    pub interval: f64,
    /// Root steps between snapshots; 0: none by steps.
    pub steps: u64,
    /// Wall seconds between snapshots; 0: none by wall time.
    #[schemars(range(min = 0.0), extend("unit" = "second"))]
    pub wall_interval: f64,
    /// Whether the initial state is written.
    pub initial: bool,
    /// Whether the final state is written.
    #[serde(rename = "final")]
    pub last: bool,
    /// Most memory of a host that snapshot values wait in while the run goes on, which its ranks share; a quarter of the pools if
    /// that is less.
    #[schemars(range(min = 1, max = 1_048_576), extend("unit" = "MiB"))]
    pub buffer: u32,
    /// Derived fields that snapshots hold beside the state, such as `["temperature_k", "mach"]`: names of
    /// `nestar list fields`, those of plugins among them. A restart does not read them.
    pub derived: Vec<String>,
}

impl Default for OutputConfig {
    fn default() -> Self {
        Self {
            directory: "out/run".into(),
            interval: 0.0,
            steps: 0,
            wall_interval: 0.0,
            initial: true,
            last: true,
            buffer: 1024,
            derived: Vec::new(),
        }
    }
}

/// What happens when the patches that a run asks for do not fit into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutOfMemory {
    /// The run ends with a snapshot from which it can be continued.
    Stop,
    /// The run goes on with the patches that fit. Reproducible, on any number of ranks, where run.memory_limit says how many
    /// do; what machines and devices have is neither the same everywhere nor foreseen exactly.
    Cap,
}

/// The machine a run uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// Device.
    pub device: DeviceChoice,
    /// Floating-point precision of the fields.
    pub precision: Precision,
    /// Threads of a rank; 0: its share of the cores, beside a device at most 16 of them.
    #[schemars(range(min = 0, max = 4096))]
    pub threads: u32,
    /// Whether every regrid is followed by a check of the whole hierarchy.
    pub audit: bool,
    /// Whether cells that a call of a stiff source has not done wait in a queue, over which a device calls it next; otherwise each cell is
    /// called until it is done before its thread takes another. The bits are the same, the speed differs. CPUs have no queue.
    pub queue: bool,
    /// Most memory for the fields and their tables, on the device where there is one, and the items that the run begins with, such as
    /// particles; 0: all that is there. Where several ranks
    /// share a run, of all of them together, every patch counted once whoever keeps copies of it: a limit means the same on any
    /// number of ranks; `nestar check` says what a job needs with the copies. What each rank's machine or device has is looked after
    /// besides.
    #[schemars(range(min = 0, max = 1_099_511_627_776_u64), extend("unit" = "MiB"))]
    pub memory_limit: u64,
    /// What happens when the patches asked for would take more.
    pub out_of_memory: OutOfMemory,
    /// Where several ranks share a run: the most work that one rank has of a level, over the mean, that is let be; beyond it patches
    /// move between the ranks.
    #[schemars(range(min = 1.0))]
    pub imbalance: f64,
    /// States of plugins and components of patches that a restart does not take from the snapshot: what no plugin keeps any more
    /// is dropped, what others keep begins as they make it. Where several have one name, their groups in the snapshot come before it, such as
    /// `state/driving`.
    pub reset_states: Vec<String>,
    /// A snapshot (NNNNNN.zarr), or the directory of a run, whose latest is taken: its state in place of the initial one. A
    /// relative path leads from the deck's folder.
    pub start_from: String,
    /// Components of fields, by their names in snapshots, that a restart does not find in the snapshot, such as `{ scalar_smoke = 0 }`:
    /// a number, or a formula of x, y, z and the names in the snapshot (`"0.1*scalar_dye"`), for the values at cells, refined ones
    /// included; where all of a field is new also `"initial"`, as a new run begins.
    pub added: BTreeMap<String, AddedComponent>,
    /// Names in a snapshot that a restart leaves behind, since the run does not have them: of fields, and of arrays of particles, such as
    /// `particles/stars/age`.
    pub dropped: Vec<String>,
}

/// What a component of a field begins with at a restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AddedComponent {
    /// A number everywhere.
    Number(f64),
    /// A formula, or `initial`.
    Formula(String),
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            device: DeviceChoice::Auto,
            precision: Precision::Double,
            threads: 0,
            audit: false,
            queue: true,
            memory_limit: 0,
            out_of_memory: OutOfMemory::Stop,
            imbalance: 1.05,
            reset_states: Vec::new(),
            start_from: String::new(),
            added: BTreeMap::new(),
            dropped: Vec::new(),
        }
    }
}

/// What the plugin that owns the mesh table tells the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshSettings {
    /// Finest level, 0 for a uniform grid.
    pub max_level: usize,
    /// Steps of a level between two regrids, per level.
    pub regrid_interval: Vec<u32>,
    /// Cells around a flagged cell that are refined with it, 0 to 8, per level that may be refined.
    pub flag_buffer: Vec<u32>,
}
