//! Predicts bytes and seconds of a partition with a simple model of the machine and of a root step.

use super::{LevelLoad, MessageCount, PartitionEstimate, Traffic};
use bevy_ecs::prelude::*;
use nestar_engine_data::{StoreRef, Stores};
use nestar_kernels::mesh::fluxes::QUARTER;
use serde::Serialize;
use std::sync::Arc;

/// Shape of a hierarchy, passed to traffic estimators.
#[derive(Clone, Copy, Debug)]
pub struct HierarchyShape<'a> {
    /// Number of patches of each level, of all ranks.
    pub patches: &'a [usize],
    /// Number of one number of steps per level in a root step, starting with 1.
    pub steps: &'a [u64],
}

/// Communication of a level in a root step in addition to halo exchanges of fields.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExtraTraffic {
    /// Number of exchanges of one halo layer with one number per cell.
    pub exchanges: f64,
    /// Bytes that pass through host memory, summed over ranks.
    pub host_bytes: f64,
}

type TrafficEstimator = Arc<dyn Fn(&HierarchyShape) -> Vec<ExtraTraffic> + Send + Sync>;

/// Estimators of additional traffic that plugins have registered.
#[derive(Resource, Clone, Default)]
pub struct TrafficEstimators(Vec<TrafficEstimator>);

impl TrafficEstimators {
    /// Adds an estimator, which returns the additional traffic by level.
    pub fn add(
        &mut self,
        estimator: impl Fn(&HierarchyShape) -> Vec<ExtraTraffic> + Send + Sync + 'static,
    ) {
        self.0.push(Arc::new(estimator));
    }
}

/// Activities of a root step, by level.
#[derive(Clone, Debug, PartialEq)]
pub struct RootStep {
    /// Number of steps.
    pub steps: Vec<u64>,
    /// Number of regrids of the level, which change its children.
    pub regrids: Vec<f64>,
    /// Additional traffic for which steps wait.
    pub waits: Vec<ExtraTraffic>,
}

impl RootStep {
    /// Creates a root step in which each level takes twice as many steps as the coarser one.
    ///
    /// It has no regrids and no additional traffic.
    #[must_use]
    pub fn with_halved_steps(levels: usize) -> Self {
        Self {
            steps: (0..levels).map(|level| 1 << level).collect(),
            regrids: vec![0.0; levels],
            waits: vec![ExtraTraffic::default(); levels],
        }
    }

    /// Creates the root step of a run in `world` with the given `patches` and `steps` of each level.
    ///
    /// Level `n` is regridded every `intervals[n]` steps.
    ///
    /// # Panics
    /// `patches` and `steps` have different lengths.
    #[must_use]
    pub fn of(world: &World, patches: &[usize], steps: Vec<u64>, intervals: &[u32]) -> Self {
        assert_eq!(patches.len(), steps.len(), "one number of steps per level");
        let regrids = steps.iter().enumerate().map(|(level, &steps)| {
            let interval = intervals.get(level);
            interval.map_or(0.0, |&every| steps as f64 / f64::from(every.max(1)))
        });
        let regrids = regrids.collect();
        let shape = HierarchyShape {
            patches,
            steps: &steps,
        };
        let mut waits = vec![ExtraTraffic::default(); steps.len()];
        for estimator in world
            .get_resource::<TrafficEstimators>()
            .iter()
            .flat_map(|all| &all.0)
        {
            for (sum, own) in waits.iter_mut().zip(estimator(&shape)) {
                sum.exchanges += own.exchanges;
                sum.host_bytes += own.host_bytes;
            }
        }
        Self {
            steps,
            regrids,
            waits,
        }
    }
}

/// Number of cells of a patch.
const CELLS: u64 = nestar_engine_mesh::CELLS as u64;
/// Number of reductions in a step of a level: its time step, that of the finer level, acceptance of the step.
const AGREEMENTS: f64 = 3.0;

/// Sizes of data, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSizes {
    /// State of a cell, all fields.
    pub cell: u64,
    /// Fluxes through a face of a fine patch, all fields.
    pub face: u64,
    /// One number.
    pub number: u64,
}

/// Performance of a rank's machine and its network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MachineModel {
    /// Cell updates per second, including the particles in the cells.
    pub rate: f64,
    /// Latency of a message, seconds.
    pub latency: f64,
    /// Bandwidth into and out of a rank, bytes per second.
    pub bandwidth: f64,
    /// Fixed cost of a level step on several ranks, seconds.
    pub step: f64,
    /// Fixed cost of an exchange for which a step waits, seconds.
    pub exchange: f64,
    /// Bandwidth of host memory, bytes per second, of all ranks together.
    pub host: f64,
    /// Cost of a regrid on several ranks per halo patch of the level and the next finer one, seconds.
    pub regrid: f64,
}

/// Traffic of a rank in one direction in one step of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LevelTraffic {
    /// Number of messages.
    pub messages: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Predicted times of a root step, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RootStepTimes {
    /// With equal work on all ranks and no communication.
    pub ideal: f64,
    /// Without communication; ranks wait for each other in every step of a level.
    #[serde(rename = "without_messages")]
    pub balanced: f64,
    /// With communication that overlaps computation.
    pub overlapped: f64,
    /// With communication that does not overlap computation.
    pub waiting: f64,
}

impl RootStepTimes {
    /// Returns the ratio of the ideal time to `time`.
    #[must_use]
    pub fn efficiency(&self, time: f64) -> f64 {
        self.ideal / time
    }
}

impl DataSizes {
    /// Returns the sizes of the fields of `world`, and the largest halo width that is read.
    #[must_use]
    pub fn of(world: &World) -> (Self, usize) {
        let registry = world.resource::<Stores>();
        // The values on the faces of a patch are counted with its cells.
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
    /// Returns the number of halo updates of `level` per step.
    ///
    /// There is one for its own next step, and one for the first step of a finer level.
    #[must_use]
    pub fn exchanges(&self, level: usize) -> u64 {
        1 + u64::from(level + 1 < self.levels)
    }

    /// Returns what `rank` sends and receives in one step of `level`, without refinement criteria and regrids.
    ///
    /// Data of two levels for one peer counts as two messages.
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

    /// Returns the predicted times of a root step.
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
        // The rate includes the particles in the cells.
        let seconds =
            all(|load| load.patches * CELLS) / machine.rate / all(|load| load.work).max(1.0);
        for level in 0..self.levels {
            self.add_level(level, seconds, sizes, machine, &mut times);
            let more = self.extra_time(level, sizes, machine);
            times.overlapped += more;
            times.waiting += more;
        }
        times
    }

    /// Adds the steps of a level; a unit of work takes `seconds`.
    fn add_level(
        &self,
        level: usize,
        seconds: f64,
        sizes: &DataSizes,
        machine: &MachineModel,
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

    /// Returns the additional time of a level in a root step on several ranks.
    ///
    /// This is the cost that does not shrink with the parts, that of additional exchanges, and that of regrids.
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
