//! Configuration structs of the deck tables that belong to the engine, and facts that snapshots record.

use super::limits::LevelSteps;
use bevy_ecs::prelude::*;
use nestar_deck::{CodeUnits, Deck, DeckError, OpenTable, TableSchema, UnitsConfig, deck};
use nestar_engine_data::{BoundaryCondition, Precision};
use nestar_engine_device::DeviceChoice;
use nestar_engine_mesh::PATCH;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the list of scenarios in [`TableSchema::with_words`](nestar_deck::TableSchema::with_words).
pub const SCENARIOS: &str = "scenarios";

/// Selects the initial condition.
#[deck]
pub struct RootConfig {
    /// Initial condition: the name of a scenario, `formula` or `zarr`.
    #[key(default = "formula".into())]
    #[schemars(extend("words" = SCENARIOS))]
    pub scenario: String,
    /// Further columns of `diagnostics.csv`.
    #[key(default = Vec::new())]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<ColumnConfig>,
}

/// Reduction of a formula over the leaf cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reduction {
    /// Sum of the value times the volume of the cell.
    Integral,
    /// Mean, weighted by volume and `weight`.
    Mean,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
}

/// A column of the diagnostics: a reduction of a formula over the leaf cells.
#[deck]
pub struct ColumnConfig {
    /// Column name in `diagnostics.csv`; only letters, digits and `_`.
    pub name: String,
    /// Formula of the quantities of refinement criteria (`nestar list fields`), x, y, z, r and t.
    pub formula: String,
    /// How the values of all cells become one number.
    pub reduction: Reduction,
    /// Condition, a formula: cells count where it is not 0. Without such a cell, an integral is 0, a mean NaN and an extreme infinite.
    #[serde(rename = "where")]
    pub condition: Option<String>,
    /// Weight of a mean per volume, a formula; default: 1.
    pub weight: Option<String>,
}

/// States that numbers of cells are multiples of the cells of a patch.
fn of_whole_patches(schema: &mut schemars::Schema) {
    if let Some(items) = schema.get_mut("items") {
        items["multipleOf"] = PATCH.into();
    }
}

/// Defines the simulation box.
#[deck]
pub struct DomainConfig {
    /// Root-grid cells along x, y, z; each a multiple of 8.
    #[key(default = [64; 3], min = 8, max = 65536)]
    #[schemars(transform = of_whole_patches)]
    pub cells: [u32; 3],
    /// Lower edge along x, y, z.
    #[key(default = [0.0; 3], unit = "length")]
    pub left_edge: [f64; 3],
    /// Upper edge along x, y, z.
    #[key(default = [1.0; 3], unit = "length")]
    pub right_edge: [f64; 3],
    /// Boundary conditions: one word for all faces, or a table such as
    /// `{ x = ["outflow", "reflecting"], y = "periodic", z = "outflow" }`.
    #[key(default = Boundary::All(BoundaryKind::Periodic))]
    pub boundary: Boundary,
}

/// Holds the settings that the engine needs from the `[time]` table; the table's owner may add keys.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeSettings {
    /// Simulation time at which the run ends.
    pub end: f64,
    /// Maximum number of root steps; 0: no limit.
    pub max_steps: u64,
    /// Relation between the time steps of the levels.
    pub levels: LevelSteps,
    /// For `adaptive`: largest relative increase of a step that lets it end at the coarser level's time.
    pub increase: f64,
    /// For `adaptive`: largest relative decrease of a step that saves the finer level a short step.
    pub decrease: f64,
    /// Upper limit for the steps of all levels; may be infinite.
    pub max_step: f64,
    /// Factor by which a step is shortened before it is retried because of unphysical cells.
    pub retry_factor: f64,
    /// Maximum number of retries before the run stops.
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

/// Controls where and when snapshots are written.
#[deck]
pub struct OutputConfig {
    /// Directory of the run, relative to the working directory.
    #[key(default = "out/run".into())]
    pub directory: String,
    /// Simulation time between snapshots; 0: no snapshots by time.
    #[key(default = 0.0, unit = "time", min = 0.0)]
    pub interval: f64,
    /// Simulation times of further snapshots, ascending.
    #[key(default = Vec::new(), unit = "time")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<f64>,
    /// Root steps between snapshots; 0: no snapshots by step.
    #[key(default = 0)]
    pub steps: u64,
    /// Wall-clock seconds between snapshots; 0: no snapshots by wall time.
    #[key(default = 0.0, unit = "second", min = 0.0)]
    pub wall_interval: f64,
    /// Write the initial state.
    #[key(default = true)]
    pub initial: bool,
    /// Write the final state.
    #[key(default = true)]
    #[serde(rename = "final")]
    pub last: bool,
    /// Limit on the host memory used to buffer snapshots, in MiB; shared by the ranks of a host. At most a
    /// quarter of the field memory is used.
    #[key(default = 1024, unit = "MiB", min = 1, max = 1_048_576)]
    pub buffer: u32,
    /// Derived fields to write in addition to the state, such as `["mach"]`.
    /// `nestar list fields` shows all names, including those of plugins. A restart does not read them.
    #[key(default = Vec::new())]
    pub derived: Vec<String>,
    /// Views: small series such as slices, which grow in `views/NAME.zarr`.
    #[key(default = Vec::new())]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub view: Vec<OpenTable>,
}

/// Selects what happens when requested patches do not fit into memory.
#[deck]
pub enum OutOfMemory {
    /// Stop with a snapshot from which the run can be continued.
    Stop,
    /// Continue with the patches that fit. With run.memory_limit the result is reproducible on any number of
    /// ranks; limits of machines and devices vary and are only estimated.
    Cap,
}

/// Describes how a run uses the machine, and how it restarts.
#[deck]
pub struct RunConfig {
    /// Compute device.
    #[key(default = DeviceChoice::Auto)]
    pub device: DeviceChoice,
    /// Floating-point precision of the fields.
    #[key(default = Precision::Double)]
    pub precision: Precision,
    /// Threads per rank; 0: the rank's share of the cores, at most 16 when it uses a device.
    #[key(default = 0, min = 0, max = 4096)]
    pub threads: u32,
    /// Check the whole hierarchy after every regrid, and values on faces that patches share after every step.
    #[key(default = false)]
    pub audit: bool,
    /// Seconds without progress after which the run ends with status 5, naming rank, level and system; 0: no
    /// limit. Output, and work before the first initial state is computed, are not counted.
    #[key(default = 3600.0, unit = "s", min = 0, max = 1e7)]
    pub watchdog: f64,
    /// Sub-cycle stiff sources on a device through a queue of unfinished cells. Otherwise each thread
    /// sub-cycles one cell to its end. Results have the same bits. CPUs use no queue.
    #[key(default = true)]
    pub queue: bool,
    /// Memory limit in MiB for fields, their tables and the initial particles; 0: all available memory. It
    /// applies to the memory of the device if there is one. The limit is for all ranks together and excludes
    /// halo patches, so that its effect does not depend on the number of ranks. `nestar check` estimates the
    /// memory with halo patches. The memory of each machine or device is checked in addition.
    #[key(default = 0, unit = "MiB", min = 0, max = 1_099_511_627_776_u64)]
    pub memory_limit: u64,
    /// Reaction when requested patches exceed the available memory.
    #[key(default = OutOfMemory::Stop)]
    pub out_of_memory: OutOfMemory,
    /// Load imbalance per level (largest work of a rank over the mean) above which patches move between
    /// ranks.
    #[key(default = 1.05, min = 1.0)]
    pub imbalance: f64,
    /// Plugin states and patch components that a restart does not read from the snapshot. They start from
    /// their initial value, or are dropped if no plugin has them. Prefix ambiguous names by their group in
    /// the snapshot, such as `state/driving`.
    #[key(default = Vec::new())]
    pub reset_states: Vec<String>,
    /// Absolute path of the folder of the files that the deck names; default: the folder of the deck. `run.toml` and snapshots have it,
    /// so that they work in any place.
    #[key(default = String::new())]
    #[serde(skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// Start from this snapshot (NNNNNN.zarr), or from the latest snapshot of this run directory, instead of
    /// the initial condition. Relative paths start at the deck's folder.
    #[key(default = String::new())]
    pub start_from: String,
    /// Field components that a restart adds because the snapshot lacks them, such as `{ scalar_smoke = 0 }`.
    /// Values are a number or a formula of x, y, z and the components in the snapshot (`"0.1*scalar_dye"`),
    /// evaluated in every cell, also in covered cells. If a whole field is new, `"initial"` sets its initial
    /// condition.
    #[key(default = BTreeMap::new())]
    pub added: BTreeMap<String, AddedComponent>,
    /// Names in the snapshot that a restart ignores because the run does not have them. They are field
    /// components, or particle arrays such as `particles/stars/age`.
    #[key(default = Vec::new())]
    pub dropped: Vec<String>,
}

/// Defines the initial value of a field component that is added at a restart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AddedComponent {
    /// A uniform value.
    #[schemars(extend("unit" = "of the component"))]
    Number(f64),
    /// A formula, or `initial`.
    Formula(String),
}

/// Holds the settings that the plugin with the mesh table passes to the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshSettings {
    /// Finest level; 0 for a uniform grid.
    pub max_level: usize,
    /// Steps between two regrids, per level.
    pub regrid_interval: Vec<u32>,
    /// Width in cells, 0 to 8, of the refined layer around flagged cells, per level that may be refined.
    pub flag_buffer: Vec<u32>,
}

/// Names a boundary condition: one of the engine's words or a word of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum BoundaryKind {
    /// The opposite face continues the domain.
    Periodic,
    /// Zero gradient: the state of the nearest cell.
    Outflow,
    /// A wall: mirror image with reversed normal velocity.
    Reflecting,
    /// A condition that a plugin has registered under this word.
    Registered(String),
}

/// Name of the list of words in schemas.
pub(crate) const LIST: &str = "boundary";

impl BoundaryKind {
    /// The engine's own words with their documentation.
    pub const BUILT_IN: [(&'static str, &'static str); 3] = [
        ("periodic", "The domain continues at the opposite face."),
        ("outflow", "Zero gradient: the state of the nearest cell."),
        (
            "reflecting",
            "A wall: mirror image with reversed normal velocity.",
        ),
    ];
    /// Returns the condition that a word names.
    #[must_use]
    pub fn of(word: &str) -> Self {
        match word {
            "periodic" => Self::Periodic,
            "outflow" => Self::Outflow,
            "reflecting" => Self::Reflecting,
            _ => Self::Registered(word.into()),
        }
    }

    /// Returns the word.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Periodic => "periodic",
            Self::Outflow => "outflow",
            Self::Reflecting => "reflecting",
            Self::Registered(word) => word,
        }
    }

    pub(crate) fn is_built_in(&self) -> bool {
        !matches!(self, Self::Registered(_))
    }
}

impl From<String> for BoundaryKind {
    fn from(word: String) -> Self {
        Self::of(&word)
    }
}

impl From<BoundaryKind> for String {
    fn from(kind: BoundaryKind) -> Self {
        kind.word().into()
    }
}

/// Accepts any text; [`tables`] inserts the known words.
impl JsonSchema for BoundaryKind {
    fn schema_name() -> Cow<'static, str> {
        "BoundaryKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "words": LIST })
    }
}

/// Converts to the rule for fields without rules of their own: zero gradient, periodic or reflecting.
impl From<&BoundaryKind> for BoundaryCondition {
    fn from(kind: &BoundaryKind) -> Self {
        match kind {
            BoundaryKind::Periodic => Self::Periodic,
            BoundaryKind::Reflecting => Self::Reflecting,
            _ => Self::Outflow,
        }
    }
}

/// Boundary conditions of the two faces of an axis: one word for both, or [lower, upper].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AxisBoundary {
    /// Both faces.
    Both(BoundaryKind),
    /// Lower and upper face.
    Each([BoundaryKind; 2]),
}

impl AxisBoundary {
    /// Returns the conditions of the lower and the upper face.
    #[must_use]
    pub fn sides(&self) -> [BoundaryKind; 2] {
        match self {
            Self::Both(kind) => [kind, kind].map(Clone::clone),
            Self::Each(sides) => sides.clone(),
        }
    }
}

/// Boundary conditions of the faces of the three axes.
#[deck]
#[derive(Eq)]
pub struct AxisBoundaries {
    /// Faces across x.
    pub x: AxisBoundary,
    /// Faces across y.
    pub y: AxisBoundary,
    /// Faces across z.
    pub z: AxisBoundary,
}

/// Boundary conditions of all faces: one word, or a table of the axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Boundary {
    /// All faces.
    All(BoundaryKind),
    /// A condition for each axis.
    Axes(AxisBoundaries),
}

impl Boundary {
    /// Returns the conditions as `[axis][side]`.
    #[must_use]
    pub fn faces(&self) -> [[BoundaryKind; 2]; 3] {
        match self {
            Self::All(kind) => [[kind, kind]; 3].map(|sides| sides.map(Clone::clone)),
            Self::Axes(axes) => [axes.x.sides(), axes.y.sides(), axes.z.sides()],
        }
    }

    /// Returns the deck path of the word for a face.
    pub(crate) fn path(&self, axis: usize, side: usize) -> String {
        let Self::Axes(axes) = self else {
            return "domain.boundary".into();
        };
        let (name, of_axis) = [("x", &axes.x), ("y", &axes.y), ("z", &axes.z)][axis];
        match of_axis {
            AxisBoundary::Both(_) => format!("domain.boundary.{name}"),
            AxisBoundary::Each(_) => format!("domain.boundary.{name}[{side}]"),
        }
    }
}

/// Holds the engine's tables of the deck, resolved.
#[derive(Resource, Clone, Debug)]
pub struct Settings {
    /// `[domain]`.
    pub domain: DomainConfig,
    /// `[time]`.
    pub time: TimeSettings,
    /// `[output]`.
    pub output: OutputConfig,
    /// `[run]`.
    pub run: RunConfig,
    /// `[units]`.
    pub units: CodeUnits,
    /// Settings of the mesh, from the plugin that owns its table.
    pub mesh: MeshSettings,
}

/// Checks that the list `times` of the table at `path` ascends.
///
/// # Errors
/// A time is not after the one before.
pub fn check_times(deck: &Deck, path: &str, times: &[f64]) -> Result<(), DeckError> {
    let unordered = (1..times.len()).find(|&n| times[n] <= times[n - 1]);
    unordered.map_or(Ok(()), |n| {
        let key = format!("{path}.times[{n}]");
        let message = format!(
            "`{key}` is {:?}, but must be after {:?}",
            times[n],
            times[n - 1]
        );
        Err(deck.error_at(&key, message))
    })
}

/// Number of steps that no run can take.
pub(super) const TOO_MANY_STEPS: f64 = 1e12;

/// Largest number of snapshots of a run.
const MAX_SNAPSHOTS: f64 = 1e6;

impl Settings {
    /// Checks the intervals of `deck` for a run from time `begin` to `time.end`.
    ///
    /// # Errors
    /// An interval is shorter than four times the resolution of the time, or `output.interval` asks for more than a million snapshots. If
    /// `time.max_steps` ends the run, only the resolution at `begin` matters.
    pub fn check_intervals(&self, deck: &Deck, begin: f64) -> Result<(), DeckError> {
        self.check_length(deck, "time.max_step", self.time.max_step, begin)?;
        self.check_longest_step(deck, begin)?;
        let (interval, steps) = (self.output.interval, self.output.steps);
        check_times(deck, "output", &self.output.times)?;
        self.check_interval(deck, ("output.interval", "snapshots"), interval, begin)?;
        self.check_steps(deck, ("output.steps", "snapshots"), steps, begin)
    }

    /// Checks that the longest step asks for a possible number of steps.
    fn check_longest_step(&self, deck: &Deck, begin: f64) -> Result<(), DeckError> {
        let (end, longest) = (self.time.end, self.time.max_step);
        let count = (end - begin) / longest;
        if self.time.max_steps > 0 || count <= TOO_MANY_STEPS {
            return Ok(());
        }
        let message = format!(
            "`time.max_step` = {longest:e} asks for {count:.1e} steps until `time.end` = {end:e}, more than {TOO_MANY_STEPS:e}; set a \
             longer step, or check the units"
        );
        Err(deck.error_at("time.max_step", message))
    }

    /// Checks that an interval can advance the time.
    fn check_length(
        &self,
        deck: &Deck,
        key: &str,
        interval: f64,
        begin: f64,
    ) -> Result<(), DeckError> {
        let limited = self.time.max_steps > 0;
        let latest = if limited {
            begin
        } else {
            self.time.end.max(begin)
        };
        let resolution = 4.0 * f64::EPSILON * latest.abs();
        if interval <= 0.0 || interval >= resolution {
            return Ok(());
        }
        let message = format!(
            "`{key}` = {interval:e} is too short to advance the time {latest:e}, which has a resolution of {resolution:.1e}; \
             set a longer interval, or check the units of `{key}` and `time.end`"
        );
        Err(deck.error_at(key, message))
    }

    /// Checks the interval at the key `key` of output, which `what` names, for a run from time `begin` to `time.end`.
    ///
    /// # Errors
    /// See [`Self::check_intervals`].
    pub fn check_interval(
        &self,
        deck: &Deck,
        (key, what): (&str, &str),
        interval: f64,
        begin: f64,
    ) -> Result<(), DeckError> {
        self.check_length(deck, key, interval, begin)?;
        let count = (self.time.end - begin) / interval;
        match interval > 0.0 {
            true => self.check_count(deck, (key, what), interval, count),
            false => Ok(()),
        }
    }

    /// Checks the number of steps between two outputs, which `what` names, at the key `key`.
    ///
    /// # Errors
    /// See [`Self::check_intervals`].
    pub fn check_steps(
        &self,
        deck: &Deck,
        (key, what): (&str, &str),
        steps: u64,
        begin: f64,
    ) -> Result<(), DeckError> {
        // a step is at most this long
        let count = (self.time.end - begin) / self.time.max_step / steps as f64;
        match steps > 0 {
            true => self.check_count(deck, (key, what), steps as f64, count),
            false => Ok(()),
        }
    }

    /// Checks that a run writes `count` outputs, or one at every step.
    fn check_count(
        &self,
        deck: &Deck,
        (key, what): (&str, &str),
        value: f64,
        count: f64,
    ) -> Result<(), DeckError> {
        let count = match self.time.max_steps {
            0 => count,
            steps => count.min(steps as f64),
        };
        if count > MAX_SNAPSHOTS {
            let end = self.time.end;
            let message = format!(
                "`{key}` = {value:e} asks for {count:.1e} {what} until `time.end` = {end:e}, more than {MAX_SNAPSHOTS:e}; \
                 set a larger value, or check the units"
            );
            return Err(deck.error_at(key, message));
        }
        Ok(())
    }
}

/// Holds numbers that plugins store as attributes of snapshots, by attribute name.
#[derive(Resource, Clone, Default)]
pub struct RunFacts {
    /// Numbers that are the same in all snapshots.
    pub constant: BTreeMap<String, f64>,
    /// Numbers that depend on the simulation time of the snapshot.
    pub of_time: Vec<FactsOfTime>,
}

/// Attributes of a snapshot as a function of its simulation time.
pub type FactsOfTime = Arc<dyn Fn(f64) -> Vec<(String, f64)> + Send + Sync>;

impl RunFacts {
    /// Returns the attributes of a snapshot at `time`.
    #[must_use]
    pub fn at(&self, time: f64) -> BTreeMap<String, f64> {
        let mut all = self.constant.clone();
        all.extend(self.of_time.iter().flat_map(|facts| facts(time)));
        all
    }
}

/// Scale factor of code units that change with the simulation time, if a plugin defines it.
#[derive(Resource, Clone, Default)]
pub struct ChangingUnits(pub Option<ScaleFactorOfTime>);

/// Scale factor as a function of the simulation time.
pub type ScaleFactorOfTime = Arc<dyn Fn(f64) -> f64 + Send + Sync>;

/// Collects the plugins' notes to the user, such as an unfavourable choice of settings. They are reported at the start of a run and
/// after each root step.
#[derive(Resource, Clone, Debug, Default)]
pub struct Remarks(pub Vec<String>);

/// Lists the deck keys that must not change at a restart. They give the values of a snapshot their meaning.
/// An override of a key is an explicit consent.
#[derive(Resource, Clone, Debug)]
pub struct KeptKeys(pub Vec<&'static str>);

impl Default for KeptKeys {
    fn default() -> Self {
        let units = ["units.length_cgs", "units.mass_cgs", "units.time_cgs"];
        Self([&["domain.boundary", "run.precision"], &units[..]].concat())
    }
}

/// Returns the schemas of the engine's tables, for `nestar list` and `nestar schema`. `boundaries` holds the
/// registered boundary words with their documentation.
#[must_use]
pub fn tables(boundaries: &[(String, String)]) -> Vec<TableSchema> {
    vec![
        domain_table(boundaries),
        TableSchema::of::<OutputConfig>("output"),
        TableSchema::of::<RunConfig>("run"),
        TableSchema::of::<UnitsConfig>("units"),
    ]
}

/// Returns the schema of `[domain]` with the registered boundary words and their documentation.
fn domain_table(registered: &[(String, String)]) -> TableSchema {
    let built_in = BoundaryKind::BUILT_IN.into_iter();
    let registered = registered.iter().map(|(word, doc)| (&**word, &**doc));
    let mut words: Vec<(&str, &str)> = built_in.chain(registered).collect();
    let mut seen = Vec::new();
    words.retain(|(word, _)| {
        let new = !seen.contains(word);
        seen.push(*word);
        new
    });
    TableSchema::of::<DomainConfig>("domain").with_words(LIST, &words)
}
