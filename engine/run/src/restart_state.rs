//! State besides fields that a bitwise restart needs: clocks, counters and refinement requests.

use crate::snapshot::PatchOffsets;
use bevy_ecs::prelude::World;
use nestar_engine_comm::{Ranks, RanksError, cells_repaired_between_levels};
use nestar_engine_data::Stores;
use nestar_engine_data::operators::RepairedOnHost;
use nestar_engine_mesh::nesting::RefineRequests;
use nestar_engine_mesh::{Clock, Levels, Topology};
use nestar_engine_step::{Engine, Error, RunCounters};
use nestar_kernels::mesh::parameters::RepairedCells;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The attribute `restart` of a snapshot; floats are stored exactly as hexadecimal bits.
#[derive(Serialize, Deserialize)]
pub(super) struct RestartState {
    pub clocks: Vec<ClockState>,
    pub initial_totals: Vec<String>,
    /// Names of the components of `initial_totals`; empty in snapshots that have all components of the run.
    #[serde(default)]
    totals: Vec<String>,
    cell_updates: u64,
    retried_steps: u64,
    #[serde(alias = "mended_cells")]
    fallback_cells: u64,
    #[serde(default, alias = "mended_averages")]
    repaired_averages: u64,
    #[serde(default, alias = "mended_corrections")]
    repaired_corrections: u64,
    /// Per level: numbers of patches that finer patches need refined.
    wishes: Vec<Vec<u32>>,
}

impl RestartState {
    /// Returns the number of totals expected for a run with `components` components.
    pub fn totals(&self, components: usize) -> usize {
        match self.totals.len() {
            0 => components,
            named => named,
        }
    }

    /// Returns the initial total of component `n`, named `name`.
    pub fn initial_total(&self, n: usize, name: &str) -> Option<&str> {
        let n = match self.totals[..] {
            [] => Some(n),
            _ => self.totals.iter().position(|known| known == name),
        };
        n.and_then(|n| self.initial_totals.get(n))
            .map(String::as_str)
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct ClockState {
    pub time: String,
    dt: String,
    steps: u64,
    since_regrid: u32,
    /// Time of the split sources if they are ahead of the level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    split: Option<String>,
}

fn hex(value: f64) -> String {
    format!("{:016x}", value.to_bits())
}

pub(super) fn from_hex(text: &str) -> Result<f64, Error> {
    let bits = u64::from_str_radix(text, 16);
    bits.map(f64::from_bits).map_err(|_| {
        Error::Snapshot(format!(
            "the attribute `restart` holds {text:?}, not 16 hexadecimal digits"
        ))
    })
}

/// Returns the attribute `restart` of the present state; complete on the first rank. Collective.
///
/// # Errors
/// A device fails; another rank has failed.
pub(super) fn state(
    sim: &Engine,
    initial_totals: &[f64],
    offsets: &PatchOffsets,
) -> Result<Map<String, Value>, Error> {
    let world = &sim.world;
    let (levels, topology) = (world.resource::<Levels>(), world.resource::<Topology>());
    let counters = world.resource::<RunCounters>();
    let clock = |level: usize| {
        let clock = levels.clock(level);
        ClockState {
            time: hex(clock.time),
            dt: hex(clock.dt),
            steps: clock.steps,
            since_regrid: clock.since_regrid,
            split: (clock.split != clock.time).then(|| hex(clock.split)),
        }
    };
    let repaired = cells_repaired_between_levels(world)?;
    let names = Stores::totalled(world);
    let state = RestartState {
        clocks: (0..=topology.max_level).map(clock).collect(),
        initial_totals: initial_totals.iter().copied().map(hex).collect(),
        totals: names.into_iter().map(|c| c.name.clone()).collect(),
        cell_updates: counters.cell_updates,
        retried_steps: counters.retried_steps,
        fallback_cells: counters.fallback_cells,
        repaired_averages: repaired.averages,
        repaired_corrections: repaired.corrections,
        wishes: refine_requests(world, offsets)?,
    };
    Ok(match serde_json::to_value(state) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    })
}

/// Collects the refinement requests of finer patches, by level and patch number, on the first rank.
fn refine_requests(world: &World, offsets: &PatchOffsets) -> Result<Vec<Vec<u32>>, Error> {
    let (topology, ranks) = (world.resource::<Topology>(), world.resource::<Ranks>());
    let mut wishes = world
        .resource::<RefineRequests>()
        .all_nesting_requests(topology);
    for (level, positions) in wishes.iter_mut().enumerate() {
        let first = offsets.own(level).start as u32;
        positions.iter_mut().for_each(|position| *position += first);
    }
    let received = ranks.gather_on_first(|| {
        let level = |positions: &Vec<u32>| [&[positions.len() as u32], &positions[..]].concat();
        let words: Vec<u32> = wishes.iter().flat_map(level).collect();
        bytemuck::cast_slice(&words).to_vec()
    })?;
    // messages arrive in the order of ranks, which is that of the patches
    for message in received {
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(&message.bytes);
        let mut rest = words.as_slice();
        for positions in &mut wishes {
            let count = rest.split_off_first().copied().unwrap_or(0);
            let theirs = rest.split_off(..count as usize);
            positions.extend(theirs.ok_or_else(|| {
                RanksError::Transport(format!(
                    "rank {} sends too few refinement requests",
                    message.peer
                ))
            })?);
        }
    }
    Ok(wishes)
}

/// Restores the clocks of all levels.
pub(super) fn restore_clocks(sim: &mut Engine, state: &RestartState) -> Result<(), Error> {
    for (level, clock) in state.clocks.iter().enumerate().take(sim.levels()) {
        let (time, dt) = (from_hex(&clock.time)?, from_hex(&clock.dt)?);
        let split = clock.split.as_deref().map_or(Ok(time), from_hex)?;
        let clock = Clock {
            time,
            dt,
            steps: clock.steps,
            since_regrid: clock.since_regrid,
            split,
        };
        sim.world.resource_mut::<Levels>().set(level, clock);
    }
    Ok(())
}

/// Restores counters and the refinement requests of own patches.
pub(super) fn restore_rest(sim: &mut Engine, state: &RestartState, offsets: &PatchOffsets) {
    let mut counters = sim.world.resource_mut::<RunCounters>();
    counters.cell_updates = state.cell_updates;
    counters.retried_steps = state.retried_steps;
    counters.fallback_cells = state.fallback_cells;
    // the counter is summed over ranks
    if sim.world.resource::<Ranks>().rank() == 0 {
        sim.world.resource_mut::<RepairedOnHost>().0 = RepairedCells {
            averages: state.repaired_averages,
            corrections: state.repaired_corrections,
        };
    }
    sim.world.resource_scope(
        |world, mut requests: bevy_ecs::prelude::Mut<RefineRequests>| {
            let levels = state.wishes.iter().enumerate().take(offsets.levels());
            for (level, wishes) in levels {
                let own = offsets.own(level);
                let wishes = wishes.iter().map(|&position| position as usize);
                let wishes = wishes.filter(|position| own.contains(position));
                let positions: Vec<u32> = wishes.map(|n| (n - own.start) as u32).collect();
                requests.set_nesting_requests(world.resource::<Topology>(), level, &positions);
            }
        },
    );
}
