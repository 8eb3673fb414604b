//! Bytes and seconds of a forecast, on a machine that few numbers describe.

use super::{LevelLoad, MessageCount, PartitionEstimate, RootStep, Traffic};
use crate::data::{StoreRef, Stores};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::fluxes::QUARTER;
use serde::Serialize;

/// Cells of a patch.
const CELLS: u64 = crate::mesh::CELLS as u64;
/// Numbers that all ranks agree on in a step of a level: its limit, that of the next finer level, and whether it stands.
const AGREEMENTS: f64 = 3.0;

/// How large things are, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSizes {
    /// The state of a cell, all fields.
    pub cell: u64,
    /// The fluxes through a face of a fine patch, all fields.
    pub face: u64,
    /// A number.
    pub number: u64,
}

/// The machine of one rank, and what connects it to the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineModel {
    /// Cells that a rank updates in a second, with what lies in them.
    pub rate: f64,
    /// Seconds that a message takes before its first byte.
    pub latency: f64,
    /// Bytes a second into a rank, and out of it.
    pub bandwidth: f64,
    /// Seconds that a step of a level takes longer on several ranks, whatever it has to do.
    pub step: f64,
    /// Seconds that an exchange takes for which a step waits, beside those for its bytes.
    pub exchange: f64,
    /// Bytes a second through the memory of hosts, of all ranks together.
    pub host: f64,
    /// Seconds that a regrid takes longer on several ranks, for each copy that a rank holds of the level and the next finer one.
    pub regrid: f64,
}

/// What a rank sends or receives in one step of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LevelTraffic {
    /// Messages.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Seconds of a root step with all that happens in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RootStepTimes {
    /// If all ranks had equal parts and nothing had to be sent.
    pub ideal: f64,
    /// If nothing had to be sent: the ranks wait for each other in every step of a level.
    #[serde(rename = "without_messages")]
    pub balanced: f64,
    /// If messages travel while cells are updated.
    pub overlapped: f64,
    /// If messages travel while nothing else happens.
    pub waiting: f64,
}

impl RootStepTimes {
    /// The share of a time that the ideal one is.
    #[must_use]
    pub fn efficiency(&self, time: f64) -> f64 {
        self.ideal / time
    }
}

impl DataSizes {
    /// Those of the fields of `world`; also the most layers of copies that are read.
    #[must_use]
    pub fn of(world: &World) -> (Self, usize) {
        let registry = world.resource::<Stores>();
        // the values on the sides of a patch count with its cells
        let bytes = |field: &StoreRef| {
            let row = field.of(world).row_bytes() as u64;
            row.div_ceil(CELLS)
        };
        let all = registry.all();
        let number = all
            .first()
            .map_or(0, |field| field.of(world).precision().bytes());
        let cell: u64 = all.iter().map(bytes).sum();
        let sizes = Self {
            cell,
            face: 2 * QUARTER as u64 * cell,
            number: number as u64,
        };
        let layers = registry.layers(world);
        (sizes, layers.last().map_or(0, |most| most.cells()))
    }
}

impl PartitionEstimate {
    /// How often copies of `level` are brought up to date in one of its steps: for its own next step, and where a finer level
    /// exists for the first step of that as well.
    #[must_use]
    pub fn exchanges(&self, level: usize) -> u64 {
        1 + u64::from(level + 1 < self.levels)
    }

    /// What `rank` sends and receives in one step of `level`, but for what criteria and changes of the hierarchy ask for. What
    /// goes to a rank for two levels at once counts as a message of each.
    #[must_use]
    pub fn traffic(&self, rank: usize, level: usize, sizes: &DataSizes) -> [LevelTraffic; 2] {
        let load = self.load(rank, level);
        let times = self.exchanges(level);
        let sides: [fn(&Traffic) -> &MessageCount; 2] = [|t| &t.sent, |t| &t.received];
        sides.map(|side| {
            let (halo, averages, fluxes) =
                (side(&load.halo), side(&load.averages), side(&load.fluxes));
            let cells = times * halo.cells + CELLS * averages.items;
            LevelTraffic {
                messages: times * halo.messages + averages.messages + fluxes.messages,
                bytes: cells * sizes.cell + fluxes.items * sizes.face,
            }
        })
    }

    /// The time of a root step.
    #[must_use]
    pub fn times(&self, sizes: &DataSizes, machine: &MachineModel) -> RootStepTimes {
        let mut times = RootStepTimes::default();
        let all = |of: fn(&LevelLoad) -> u64| {
            let ranks =
                (0..self.ranks).flat_map(|rank| self.rank(rank).iter().zip(&self.root_step.steps));
            ranks
                .map(|(load, steps)| (of(load) * steps) as f64)
                .sum::<f64>()
        };
        // the rate is that of cells with what lies in them
        let seconds =
            all(|load| load.patches * CELLS) / machine.rate / all(|load| load.work).max(1.0);
        for level in 0..self.levels {
            self.add_level(level, seconds, (sizes, machine), &mut times);
            let more = self.extra_time(level, sizes, machine);
            times.overlapped += more;
            times.waiting += more;
        }
        times
    }

    /// Adds the steps of a level, of which a unit of work takes so many seconds.
    fn add_level(
        &self,
        level: usize,
        seconds: f64,
        (sizes, machine): (&DataSizes, &MachineModel),
        times: &mut RootStepTimes,
    ) {
        let steps = self.root_step.steps[level] as f64;
        let stages = self.ranks.next_power_of_two().trailing_zeros();
        let agreement = AGREEMENTS * f64::from(stages) * machine.latency;
        let (mut all, mut most, mut overlapped, mut waiting) = (0.0, 0.0f64, 0.0f64, 0.0f64);
        for rank in 0..self.ranks {
            let computing = self.load(rank, level).work as f64 * seconds;
            let [sent, received] = self.traffic(rank, level, sizes);
            let messages = sent.messages.max(received.messages) as f64;
            let bytes = sent.bytes.max(received.bytes);
            let sending = messages * machine.latency + bytes as f64 / machine.bandwidth;
            all += computing;
            most = most.max(computing);
            overlapped = overlapped.max(computing.max(sending));
            waiting = waiting.max(computing + sending);
        }
        times.ideal += steps * all / self.ranks as f64;
        times.balanced += steps * most;
        times.overlapped += steps * (overlapped + agreement);
        times.waiting += steps * (waiting + agreement);
    }

    /// What a level takes in a root step on several ranks beside its work and the messages of the fields' states: what does not get less with
    /// the parts, exchanges that plugins foretell, and regrids.
    fn extra_time(&self, level: usize, sizes: &DataSizes, machine: &MachineModel) -> f64 {
        if self.ranks == 1 {
            return 0.0;
        }
        let most = |of: &dyn Fn(usize) -> u64| (0..self.ranks).map(of).max().unwrap_or(0) as f64;
        let layer =
            most(&|rank| self.load(rank, level).halo.received.cells) / self.layers.max(1) as f64;
        let exchange = machine.exchange + layer * sizes.number as f64 / machine.bandwidth;
        let copies = |level: usize| match level < self.levels {
            true => most(&|rank| self.load(rank, level).halo_patches()),
            false => 0.0,
        };
        let RootStep {
            steps,
            regrids,
            waits,
        } = &self.root_step;
        steps[level] as f64 * machine.step
            + waits[level].exchanges * exchange
            + waits[level].host_bytes / machine.host
            + regrids[level] * machine.regrid * (copies(level) + copies(level + 1))
    }
}
