//! Continuing a run from a snapshot, bit for bit.

use crate::error::Error;
use crate::field::operations::{SkippedCorrections, skipped_corrections};
use crate::field::{FieldOperations, FieldRegistry};
use crate::memory;
use crate::mesh::nesting::{Changes, RefineRequests};
use crate::mesh::{Topology, regrid};
use crate::ranks::Ranks;
use crate::simulation::Simulation;
use crate::time::{Clock, Levels, RunCounters, check_faults};
use nestar_snapshot::{LEAF, ORIGIN, Snapshot, Values, latest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// What was restored.
pub struct Restored {
    /// The snapshot.
    pub path: PathBuf,
    /// Its number.
    pub number: u32,
    /// Root steps taken when it was written.
    pub step: u64,
    /// Conserved totals at the start of the simulation.
    pub initial_totals: Vec<f64>,
    /// Settings that differ from those of the snapshot, as people read them.
    pub changes: Vec<String>,
}

/// The attribute `restart` of a snapshot; floats as hexadecimal bits, so that they are exact.
#[derive(Serialize, Deserialize)]
struct State {
    clocks: Vec<ClockState>,
    initial_totals: Vec<String>,
    cell_updates: u64,
    retried_steps: u64,
    mended_cells: u64,
    skipped_corrections: u64,
    /// Per level: positions of the patches that a finer patch needs refined.
    wishes: Vec<Vec<u32>>,
}

#[derive(Serialize, Deserialize)]
struct ClockState {
    time: String,
    dt: String,
    steps: u64,
    since_regrid: u32,
}

fn hex(value: f64) -> String {
    format!("{:016x}", value.to_bits())
}

fn from_hex(text: &str) -> Result<f64, Error> {
    let bits = u64::from_str_radix(text, 16);
    bits.map(f64::from_bits).map_err(|_| {
        Error::Snapshot(format!(
            "the attribute `restart` holds {text:?}, not 16 hexadecimal digits"
        ))
    })
}

/// The attribute `restart` of the present state.
///
/// # Errors
/// A device fails.
pub fn state(sim: &Simulation, initial_totals: &[f64]) -> Result<Map<String, Value>, Error> {
    let world = &sim.world;
    let (levels, topology) = (world.resource::<Levels>(), world.resource::<Topology>());
    let counters = world.resource::<RunCounters>();
    let requests = world.resource::<RefineRequests>();
    let clock = |level: usize| {
        let clock = levels.clock(level);
        ClockState {
            time: hex(clock.time),
            dt: hex(clock.dt),
            steps: clock.steps,
            since_regrid: clock.since_regrid,
        }
    };
    let state = State {
        clocks: (0..=topology.max_level).map(clock).collect(),
        initial_totals: initial_totals.iter().copied().map(hex).collect(),
        cell_updates: counters.cell_updates,
        retried_steps: counters.retried_steps,
        mended_cells: counters.mended_cells,
        skipped_corrections: skipped_corrections(world)?,
        wishes: requests.all_wishes(topology),
    };
    Ok(match serde_json::to_value(state) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    })
}

/// Restores the latest complete snapshot in the run's directory; `None` if there is none.
///
/// # Errors
/// The snapshot is damaged, or of a run with another domain.
pub fn restore(sim: &mut Simulation, directory: &Path) -> Result<Option<Restored>, Error> {
    sim.require_fresh()?;
    let Some((number, path)) = latest(directory).map_err(|e| Error::Snapshot(e.to_string()))?
    else {
        return Ok(None);
    };
    restore_from(sim, number, path.clone())
        .map(Some)
        .map_err(|error| match error {
            Error::Snapshot(why) => Error::Snapshot(format!(
                "{why}\nto continue from the snapshot before it, move {} away",
                path.display()
            )),
            other => other,
        })
}

fn restore_from(sim: &mut Simulation, number: u32, path: PathBuf) -> Result<Restored, Error> {
    let snapshot = Snapshot::open(&path).map_err(|e| Error::Snapshot(e.to_string()))?;
    check_domain(sim, &snapshot)?;
    let restart = Value::Object(snapshot.attributes().restart.clone());
    let state: State = serde_json::from_value(restart).map_err(|e| {
        Error::Snapshot(format!(
            "{}: the attribute `restart` is incomplete: {e}",
            path.display()
        ))
    })?;
    check_state(sim, &snapshot, &state)?;
    require_room(sim, &snapshot)?;
    restore_clocks(sim, &state)?;
    let finest = snapshot.levels().len().saturating_sub(1);
    regrid::create_root(&mut sim.world);
    check_faults(&mut sim.world)?;
    for level in 0..=finest {
        refine_as(sim, &snapshot, level)?;
    }
    restore_clocks(sim, &state)?;
    for level in 0..=finest {
        load_level(sim, &snapshot, level)?;
    }
    restore_rest(sim, &state);
    let initial_totals = state
        .initial_totals
        .iter()
        .map(|t| from_hex(t))
        .collect::<Result<_, _>>()?;
    let step = snapshot.attributes().step;
    let changes = changes(&snapshot.attributes().config, &sim.deck.resolved());
    Ok(Restored {
        path,
        number,
        step,
        initial_totals,
        changes,
    })
}

/// The settings in which two resolved decks differ, but for where a run writes and what it runs on.
fn changes(before: &str, now: &str) -> Vec<String> {
    let (before, now) = (flat(before), flat(now));
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let shown = |value: Option<&String>| value.cloned().unwrap_or_else(|| "absent".into());
    keys.into_iter()
        .filter(|key| {
            !key.starts_with("output.")
                && !["run.threads", "run.audit", "run.device"].contains(&key.as_str())
        })
        .filter(|key| before.get(*key) != now.get(*key))
        .map(|key| {
            format!(
                "{key} = {} (was {})",
                shown(now.get(key)),
                shown(before.get(key))
            )
        })
        .collect()
}

/// The keys of a deck with their whole path, and their values; none if it is no TOML.
fn flat(text: &str) -> BTreeMap<String, String> {
    fn enter(path: &str, value: &toml::Value, out: &mut BTreeMap<String, String>) {
        let toml::Value::Table(table) = value else {
            out.insert(path.to_string(), value.to_string());
            return;
        };
        for (key, value) in table {
            let inner = if path.is_empty() {
                key.clone()
            } else {
                format!("{path}.{key}")
            };
            enter(&inner, value, out);
        }
    }
    let mut out = BTreeMap::new();
    if let Ok(table) = text.parse::<toml::Table>() {
        enter("", &toml::Value::Table(table), &mut out);
    }
    out
}

/// Whether the attribute `restart` fits the rest of the snapshot.
fn check_state(sim: &Simulation, snapshot: &Snapshot, state: &State) -> Result<(), Error> {
    let fields = sim.world.resource::<FieldRegistry>().operations();
    let components: usize = fields
        .iter()
        .map(|field| (field.components)(&sim.world).len())
        .sum();
    let levels = snapshot.levels().len();
    let clocks = state.clocks.iter().take(levels);
    let times: Vec<f64> = clocks
        .map(|clock| from_hex(&clock.time))
        .collect::<Result<_, _>>()?;
    let in_step =
        times.len() == levels && times.iter().all(|&time| time == snapshot.attributes().time);
    if in_step && state.initial_totals.len() == components {
        return Ok(());
    }
    Err(Error::Snapshot(format!(
        "{}: the attribute `restart` does not fit the snapshot: it has {} clocks and {} totals for {levels} levels at time {} \
         and {components} components",
        snapshot.path().display(),
        state.clocks.len(),
        state.initial_totals.len(),
        snapshot.attributes().time,
    )))
}

/// All patches of the snapshot must fit into memory.
fn require_room(sim: &Simulation, snapshot: &Snapshot) -> Result<(), Error> {
    let finer = snapshot.levels().skip(1);
    let finer: u64 = finer.map(|level| level.patches).sum();
    let rows = sim.world.resource::<Topology>().root_rows() + finer as usize;
    let finest = snapshot.levels().len().saturating_sub(1);
    let shortage = memory::shortage(&sim.world, rows, finest, rows);
    shortage.map_or(Ok(()), |shortage| {
        let why = format!("{}: {}", snapshot.path().display(), shortage.fact());
        Err(Error::Snapshot(format!("{why}; take {}", shortage.more())))
    })
}

fn check_domain(sim: &Simulation, snapshot: &Snapshot) -> Result<(), Error> {
    let (attributes, domain) = (snapshot.attributes(), &sim.settings.domain);
    let same = attributes.root_cells == domain.cells.map(u64::from)
        && attributes.domain_left_edge == domain.left_edge
        && attributes.domain_right_edge == domain.right_edge;
    if !same {
        return Err(Error::Setup(format!(
            "{}: this snapshot has {:?} root cells from {:?} to {:?}, the deck {:?} from {:?} to {:?}; \
             continue with the deck of the run (its run.toml)",
            snapshot.path().display(),
            attributes.root_cells,
            attributes.domain_left_edge,
            attributes.domain_right_edge,
            domain.cells,
            domain.left_edge,
            domain.right_edge,
        )));
    }
    let levels = snapshot.levels().len();
    if levels > sim.levels() {
        let most = sim.levels() - 1;
        return Err(Error::Setup(format!(
            "{}: this snapshot has levels up to {}, the deck allows {most}; set mesh.max_level to at least {}",
            snapshot.path().display(),
            levels - 1,
            levels - 1,
        )));
    }
    Ok(())
}

fn restore_clocks(sim: &mut Simulation, state: &State) -> Result<(), Error> {
    for (level, clock) in state.clocks.iter().enumerate().take(sim.levels()) {
        let (time, dt) = (from_hex(&clock.time)?, from_hex(&clock.dt)?);
        let clock = Clock {
            time,
            dt,
            steps: clock.steps,
            since_regrid: clock.since_regrid,
        };
        sim.world.resource_mut::<Levels>().set(level, clock);
    }
    Ok(())
}

/// Gives the patches of `level` the children that the snapshot shows.
fn refine_as(sim: &mut Simulation, snapshot: &Snapshot, level: usize) -> Result<(), Error> {
    let read = |name: &str| {
        snapshot
            .read(level as u8, name)
            .map_err(|e| Error::Snapshot(e.to_string()))
    };
    let (Values::I32(origins), Values::U8(leaf)) = (read(ORIGIN)?, read(LEAF)?) else {
        return Err(Error::Snapshot(format!(
            "{}: level {level}: `origin` or `leaf` has a wrong type",
            snapshot.path().display()
        )));
    };
    let topology = sim.world.resource::<Topology>();
    let rows = topology.rows(level);
    let places: Vec<i32> = rows.iter().flat_map(|&row| topology.origin(row)).collect();
    if places != origins || leaf.len() != rows.len() {
        return Err(Error::Snapshot(format!(
            "{}: the patches of level {level} are not those that the coarser levels announce; the snapshot is damaged",
            snapshot.path().display()
        )));
    }
    let refined = rows.iter().zip(&leaf).filter(|(_, leaf)| **leaf == 0);
    let changes = Changes {
        refine: refined.map(|(row, _)| *row).collect(),
        coarsen: Vec::new(),
    };
    if !changes.refine.is_empty() {
        regrid::apply(&mut sim.world, level, &changes);
    }
    check_faults(&mut sim.world)
}

/// A shard of a component of a level.
struct Part {
    field: FieldOperations,
    component: usize,
    name: String,
    rows: Range<usize>,
}

/// The shards of the components of a level of `patches` patches.
fn parts(sim: &Simulation, patches: usize) -> Vec<Part> {
    let (fields, shard) = (
        sim.world.resource::<FieldRegistry>().operations(),
        Snapshot::shard_patches(patches),
    );
    let mut parts = Vec::new();
    for first in (0..patches).step_by(shard) {
        for field in &fields {
            let components = (field.components)(&sim.world).into_iter().enumerate();
            parts.extend(components.map(|(c, component)| Part {
                field: *field,
                component: c,
                name: component.name,
                rows: first..patches.min(first + shard),
            }));
        }
    }
    parts
}

/// Sets the fields of a level, shard by shard, so that memory is bounded; while one is stored the next is read.
fn load_level(sim: &mut Simulation, snapshot: &Snapshot, level: usize) -> Result<(), Error> {
    let rows = sim.world.resource::<Topology>().rows(level).to_vec();
    let parts = parts(sim, rows.len());
    let wrong = |part: &Part, e: String| {
        let path = snapshot.path().display();
        Error::Snapshot(format!("{path}: level {level}, {}: {e}", part.name))
    };
    let read = |part: &Part| {
        let range = part.rows.start as u64..part.rows.end as u64;
        let values = snapshot.read_patches(level as u8, &part.name, range);
        values.map_err(|e| wrong(part, e.to_string()))
    };
    let mut values = parts.first().map(read);
    for (n, part) in parts.iter().enumerate() {
        let Some(present) = values.take().transpose()? else {
            break;
        };
        let rows = &rows[part.rows.clone()];
        let store = || (part.field.load)(&mut sim.world, level, part.component, rows, &present);
        let (next, stored) = rayon::join(|| parts.get(n + 1).map(read), store);
        stored.map_err(|e| wrong(part, e))?;
        values = next;
    }
    Ok(())
}

fn restore_rest(sim: &mut Simulation, state: &State) {
    let mut counters = sim.world.resource_mut::<RunCounters>();
    counters.cell_updates = state.cell_updates;
    counters.retried_steps = state.retried_steps;
    counters.mended_cells = state.mended_cells;
    // a sum over the ranks
    if sim.world.resource::<Ranks>().rank() == 0 {
        sim.world.resource_mut::<SkippedCorrections>().0 = state.skipped_corrections;
    }
    sim.world.resource_scope(
        |world, mut requests: bevy_ecs::prelude::Mut<RefineRequests>| {
            for (level, positions) in state.wishes.iter().enumerate() {
                requests.set_wishes(world.resource::<Topology>(), level, positions);
            }
        },
    );
}
