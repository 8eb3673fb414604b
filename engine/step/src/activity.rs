//! What a run is doing: the wall time of each plugin, the present system, and counters.

use crate::Phase;
use bevy_ecs::prelude::*;
use nestar_engine_data::CellTotals;
use nestar_engine_device::parallel::lock;
use nestar_engine_device::{Device, Timeline};
use nestar_engine_mesh::LevelWork;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Owners of time besides plugins: halo exchanges; snapshots, diagnostics and messages; changes of the hierarchy.
const OWNERS: [&str; 3] = ["mesh", "output", "regrid"];

/// Divides the time of a run among plugins, the mesh and the output. Clones refer to the same run.
///
/// Without a GPU, a plugin has the wall time of its systems. With a GPU, it has the time of the GPU's stream from the
/// work of its systems to that of the next plugin, including the time in which the GPU waits for the host.
#[derive(Resource, Clone, Default)]
pub struct Activity(Arc<State>);

struct State {
    clock: Mutex<Clock>,
    /// Number of systems begun so far.
    begun: AtomicU64,
    /// Level of the present phase.
    level: AtomicUsize,
    /// `true` while output is written, and before the first phase.
    is_output: AtomicBool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            clock: Mutex::default(),
            begun: AtomicU64::new(0),
            level: AtomicUsize::new(0),
            is_output: AtomicBool::new(true),
        }
    }
}

/// Times of the owners.
struct Clock {
    /// Names of the owners: `OWNERS`, then plugins.
    names: Vec<String>,
    present: usize,
    since: Instant,
    host: Vec<f64>,
    device: Option<Timeline>,
    system: Option<Arc<str>>,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            names: OWNERS.map(String::from).to_vec(),
            present: Activity::OUTPUT,
            since: Instant::now(),
            host: vec![0.0; OWNERS.len()],
            device: None,
            system: None,
        }
    }
}

impl Clock {
    /// Ends the interval of the present owner.
    fn switch(&mut self, owner: usize) {
        if owner == self.present {
            return;
        }
        self.add_elapsed();
        self.present = owner;
        if let Some(timeline) = &self.device {
            // A failure of the device is reported by the next work on it.
            let _ = timeline.begin(owner);
        }
    }

    /// Adds the host's time so far to the present owner.
    fn add_elapsed(&mut self) {
        let now = Instant::now();
        self.host[self.present] += (now - self.since).as_secs_f64();
        self.since = now;
    }

    /// Adds the time so far, of host and device, to the present owner. Waits for the device.
    fn synchronise(&mut self) {
        self.add_elapsed();
        if let Some(timeline) = &self.device {
            // A failure of the device is reported by the next work on it.
            let _ = timeline.synchronise(self.present);
        }
    }
}

impl Activity {
    /// Number of the mesh as an owner of time.
    pub(super) const MESH: usize = 0;
    const OUTPUT: usize = 1;
    const REGRID: usize = 2;

    /// Returns the owner of the engine's own work in a phase.
    pub(super) fn of_phase(phase: Phase) -> usize {
        match phase {
            Phase::Regrid => Self::REGRID,
            _ => Self::MESH,
        }
    }

    /// Adds the plugins as owners of time; returns the number of each.
    pub(super) fn add_owners(&self, plugins: &[String], device: Option<&Device>) -> Vec<usize> {
        let mut clock = lock(&self.0.clock);
        let number = |name: &String| {
            if name.is_empty() {
                return Self::MESH;
            }
            let known = clock.names.iter().position(|known| known == name);
            known.unwrap_or_else(|| {
                clock.names.push(name.clone());
                clock.names.len() - 1
            })
        };
        let numbers = plugins.iter().map(number).collect();
        let count = clock.names.len();
        clock.host.resize(count, 0.0);
        clock.device = device.and_then(|device| device.timeline(count));
        numbers
    }

    /// Records that a system begins. Without an owner, its time counts to the previous one.
    pub(super) fn begin_system(&self, owner: Option<usize>, system: &Arc<str>) {
        let mut clock = lock(&self.0.clock);
        if let Some(owner) = owner {
            clock.switch(owner);
        }
        clock.system = Some(system.clone());
        self.0.begun.fetch_add(1, Relaxed);
    }

    /// Records that a phase begins on a level. The driver's own work between systems is negligible, except in a regrid;
    /// it counts to the previous owner, which spares a GPU's stream most of the marks.
    pub(super) fn begin_phase(&self, phase: Phase, level: usize) {
        self.0.level.store(level, Relaxed);
        self.0.begun.fetch_add(1, Relaxed);
        if phase == Phase::Regrid {
            self.switch(Self::REGRID);
        } else if self.0.is_output.load(Relaxed) {
            self.switch(Self::MESH);
        }
    }

    /// Records that a phase ends.
    pub(super) fn end_phase(&self, phase: Phase) {
        if phase == Phase::Regrid {
            self.switch(Self::MESH);
        }
    }

    fn switch(&self, owner: usize) {
        lock(&self.0.clock).switch(owner);
        self.0.is_output.store(owner == Self::OUTPUT, Relaxed);
    }

    /// Records that output is written from now on, until the next phase or [`Activity::begin_mesh`].
    pub fn begin_output(&self) {
        self.switch(Self::OUTPUT);
    }

    /// Records that the engine works on the mesh from now on.
    pub fn begin_mesh(&self) {
        self.switch(Self::MESH);
    }

    /// Sets all times to zero.
    pub fn reset(&self) {
        let mut clock = lock(&self.0.clock);
        clock.synchronise();
        clock.host.fill(0.0);
        if let Some(timeline) = &clock.device {
            timeline.reset();
        }
    }

    /// Returns the names of the owners: `mesh`, `output`, `regrid`, then plugins in the order in which they are built.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        lock(&self.0.clock).names.clone()
    }

    /// Returns the seconds of the owners so far. Waits for the device.
    #[must_use]
    pub fn seconds(&self) -> Vec<f64> {
        let mut clock = lock(&self.0.clock);
        clock.synchronise();
        match &clock.device {
            Some(timeline) => (0..clock.names.len())
                .map(|owner| timeline.seconds(owner))
                .collect(),
            None => clock.host.clone(),
        }
    }

    /// Returns the names of the owners and their seconds so far.
    #[must_use]
    pub fn times(&self) -> Vec<(String, f64)> {
        self.names().into_iter().zip(self.seconds()).collect()
    }

    /// Returns how many systems and phases have begun; `None` while output is written.
    #[must_use]
    pub fn progress(&self) -> Option<u64> {
        let is_output = self.0.is_output.load(Relaxed);
        (!is_output).then(|| self.0.begun.load(Relaxed))
    }

    /// Describes the present work: level and system.
    #[must_use]
    pub fn description(&self) -> String {
        let system = lock(&self.0.clock).system.clone();
        let level = self.0.level.load(Relaxed);
        match system {
            Some(system) => format!("level {level}, system `{}`", short_name(&system)),
            None => format!("level {level}, before its first system"),
        }
    }
}

/// Counts the work of a run.
#[derive(Resource, Clone, Debug, Default)]
pub struct RunCounters {
    /// Cell updates of all ranks and levels.
    pub cell_updates: u64,
    /// Work of all steps and its distribution over the ranks.
    pub work: LevelWork,
    /// Steps of all levels.
    pub level_steps: u64,
    /// Regrids of all levels.
    pub regrids: u64,
    /// Steps that were retried with a smaller length.
    pub retried_steps: u64,
    /// Cells of all ranks that fell back to first-order fluxes.
    pub fallback_cells: u64,
    /// Cells of this rank with sub-cycled functions, and the sum of their work (such as sub-steps of
    /// reactions).
    pub subcycled: [u64; 2],
}

impl RunCounters {
    /// Adds the cells and the work of one round of calls.
    pub fn count_subcycles(&mut self, tally: &CellTotals) {
        if let ([_, ..], Some(cells)) = (tally.work(), tally.cells_per_round().first()) {
            let work: u64 = tally.work().iter().map(|work| u64::from(*work)).sum();
            self.subcycled[0] += cells;
            self.subcycled[1] += work;
        }
    }

    /// Returns the mean work per cell; `None` without sub-cycled functions.
    #[must_use]
    pub fn mean_subcycles(&self) -> Option<f64> {
        let [cells, work] = self.subcycled;
        (cells > 0).then(|| work as f64 / cells as f64)
    }
}

/// Returns the name of a system without modules: `restrict<Dye>` for `nestar_engine::data::operators::restrict<…::Dye>`. A closure is
/// named after the enclosing function or plugin.
pub fn short_name(name: &str) -> String {
    if let Some((closure, number)) = name.rsplit_once(" (")
        && closure.ends_with("{{closure}}")
    {
        return format!("{} ({number}", short_name(closure));
    }
    let text = without_modules(name);
    let Some(function) = text.strip_suffix("::{{closure}}") else {
        return text;
    };
    let plugin = function.strip_prefix('<');
    match plugin.and_then(|text| text.strip_suffix(" as Plugin>::build")) {
        Some(plugin) => format!("closure of the plugin {plugin}"),
        None => format!("closure of {function}"),
    }
}

fn without_modules(name: &str) -> String {
    let mut text = String::new();
    let mut rest = name;
    while !rest.is_empty() {
        let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '{' | '}');
        let end = rest.find(|c| !is_path(c)).unwrap_or(rest.len());
        let (path, behind) = rest.split_at(end);
        text.push_str(last_names(path));
        let next = behind.find(is_path).unwrap_or(behind.len());
        text.push_str(&behind[..next]);
        rest = &behind[next..];
    }
    text
}

fn last_names(path: &str) -> &str {
    // the part after a type in brackets, as in `<Drag as Plugin>::build`
    if path.starts_with("::") {
        return path;
    }
    let without_closures = path.trim_end_matches("::{{closure}}");
    without_closures
        .rfind("::")
        .map_or(path, |at| &path[at + 2..])
}

#[cfg(test)]
mod tests {
    use super::short_name;

    #[test]
    fn names_of_types_lose_their_modules() {
        assert_eq!(
            short_name("nestar_engine::data::operations::restrict<nestar_systems::fields::Gas>"),
            "restrict<Gas>"
        );
        assert_eq!(
            short_name("<drag::Drag as nestar_engine::step::Plugin>::build::{{closure}}"),
            "closure of the plugin Drag"
        );
        assert_eq!(short_name("a::b::main::{{closure}}"), "closure of main");
        assert_eq!(
            short_name("a::main::{{closure}} (2)"),
            "closure of main (2)"
        );
        assert_eq!(short_name("split source heat"), "split source heat");
        assert_eq!(short_name("fluid"), "fluid");
    }
}
