//! Predicts patches, halo patches, messages, bytes and times of a partition.
//!
//! One process builds the parts of all ranks one after the other, with the functions of a run. The [`TreeOutline`] of
//! the whole hierarchy answers requests for halo patches. What a rank sends is derived from what the others receive.

pub mod cost_model;
mod tree_outline;

#[cfg(test)]
mod tests;

pub use cost_model::{
    DataSizes, ExtraTraffic, HierarchyShape, LevelTraffic, MachineModel, RootStep, RootStepTimes,
    TrafficEstimators,
};
pub use tree_outline::TreeOutline;

use super::halo::layers;
use super::hierarchy::ExchangePlans;
use nestar_engine_mesh::{Cost, HilbertPartition, LevelWork, Topology, parallel};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Messages and rows of a rank in one exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MessageCount {
    /// Number of messages, one per peer.
    pub messages: u64,
    /// Number of rows; for fluxes, number of fine faces.
    pub items: u64,
    /// Number of cells that steps of the receiver read, a box per row; 0 for averages and fluxes.
    #[serde(skip)]
    pub cells: u64,
}

/// Both directions of one exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// What the rank sends.
    pub sent: MessageCount,
    /// What the rank receives.
    pub received: MessageCount,
}

/// A rank's part of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LevelLoad {
    /// Number of own patches.
    pub patches: u64,
    /// Number of particles in own patches.
    pub items: u64,
    /// Work of a step; a patch without particles has 512 times 64.
    #[serde(skip)]
    pub work: u64,
    /// Number of stored rows: own patches, halo patches, and the rest of their octets.
    #[serde(rename = "held_rows")]
    pub stored_rows: u64,
    /// Halo values, from their owners.
    pub halo: Traffic,
    /// Averages of children, to the owners of their parents on this level.
    pub averages: Traffic,
    /// Fluxes of fine faces, to the owners of the adjacent patches of this level.
    pub fluxes: Traffic,
}

impl LevelLoad {
    /// Returns the number of halo patches.
    #[must_use]
    pub fn halo_patches(&self) -> u64 {
        self.halo.received.items
    }
}

/// Predicted partition of a hierarchy among ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionEstimate {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of levels with patches.
    pub levels: usize,
    /// Number of peers of each rank.
    pub neighbours: Vec<u32>,
    /// Steps, regrids and extra traffic of a root step.
    pub root_step: RootStep,
    /// Layers of ghost cells that steps read.
    layers: usize,
    /// Loads by rank, then by level.
    loads: Vec<LevelLoad>,
}

impl PartitionEstimate {
    /// Partitions `outline` evenly among `ranks` ranks; steps read `layers` layers of ghost cells.
    ///
    /// # Panics
    /// `ranks` is zero.
    #[must_use]
    pub fn new(outline: &TreeOutline, ranks: usize, layers: usize) -> Self {
        assert!(ranks > 0, "at least one rank");
        Self::with_cuts(outline, outline.cuts(ranks), layers)
    }

    /// As [`PartitionEstimate::new`], for a given partition.
    ///
    /// In a run a partition stays as long as it is balanced well enough.
    #[must_use]
    pub fn with_cuts(outline: &TreeOutline, cuts: HilbertPartition, layers: usize) -> Self {
        let (ranks, levels) = (cuts.ranks(), outline.levels());
        let cuts = Arc::new(cuts);
        let part = |rank| {
            let (topology, plans) = outline.part(&cuts, rank);
            let level = |level| ReceivedTraffic::of(&topology, &plans, level, layers);
            (0..levels).map(level).collect()
        };
        let parts: Vec<Vec<ReceivedTraffic>> = parallel::map_indices(ranks, part);
        let mut loads: Vec<LevelLoad> = parts.iter().flatten().map(|part| part.load).collect();
        for (n, load) in loads.iter_mut().enumerate() {
            let (rank, level) = (n / levels, n % levels);
            let patches = outline.loads(level, cuts.keys(level, rank));
            load.items = patches.iter().map(|patch| patch.count).sum();
            let work: u64 = patches.iter().map(|patch| patch.work).sum();
            load.work = load.patches * Cost::ONE + work;
        }
        let mut peers = vec![BTreeSet::new(); ranks];
        for (n, incoming) in parts.iter().flatten().enumerate() {
            let (to, level) = (n / levels, n % levels);
            for &(from, exchange, flow) in &incoming.flows {
                exchange(&mut loads[n]).received.add(flow);
                exchange(&mut loads[from * levels + level]).sent.add(flow);
                peers[to].insert(from);
                peers[from].insert(to);
            }
        }
        Self {
            ranks,
            levels,
            neighbours: peers.iter().map(|peers| peers.len() as u32).collect(),
            root_step: RootStep::with_halved_steps(levels),
            layers,
            loads,
        }
    }

    /// Replaces the default root step, in which each level takes twice as many steps as the coarser one.
    #[must_use]
    pub fn with_root_step(self, root_step: RootStep) -> Self {
        Self { root_step, ..self }
    }

    /// Returns the load of `rank` on `level`.
    #[must_use]
    pub fn load(&self, rank: usize, level: usize) -> &LevelLoad {
        &self.loads[rank * self.levels + level]
    }

    /// Returns the loads of `rank` by level.
    #[must_use]
    pub fn rank(&self, rank: usize) -> &[LevelLoad] {
        &self.loads[rank * self.levels..][..self.levels]
    }

    /// Returns the ranks that have patches.
    #[must_use]
    pub fn busy(&self) -> Vec<usize> {
        let busy = |&rank: &usize| self.weight(rank) > 0;
        (0..self.ranks).filter(busy).collect()
    }

    /// Returns the relative excess of the busiest ranks over the mean work, over all steps of a root step.
    ///
    /// Ranks wait for each other in every step of a level.
    #[must_use]
    pub fn imbalance(&self) -> f64 {
        let mut work = LevelWork::default();
        for level in 0..self.levels {
            let of_ranks = || (0..self.ranks).map(|rank| self.load(rank, level).work);
            let steps = self.root_step.steps[level];
            work.add(LevelWork {
                all: of_ranks().sum::<u64>() * steps,
                busiest: of_ranks().max().unwrap_or(0) * steps,
            });
        }
        work.imbalance(self.ranks)
    }

    /// Returns the number of rows that `rank` stores.
    #[must_use]
    pub fn stored_rows(&self, rank: usize) -> u64 {
        self.rank(rank).iter().map(|load| load.stored_rows).sum()
    }

    /// Returns the number of patch updates of `rank` in a root step.
    #[must_use]
    pub fn weight(&self, rank: usize) -> u64 {
        let levels = self.rank(rank).iter().zip(&self.root_step.steps);
        levels.map(|(load, steps)| load.patches * steps).sum()
    }

    /// Returns the number of particles of `rank`.
    #[must_use]
    pub fn items(&self, rank: usize) -> u64 {
        self.rank(rank).iter().map(|load| load.items).sum()
    }
}

impl MessageCount {
    fn add(&mut self, more: Self) {
        self.messages += more.messages;
        self.items += more.items;
        self.cells += more.cells;
    }
}

/// Selects one of the exchanges of a load.
type ExchangeOf = fn(&mut LevelLoad) -> &mut Traffic;

/// A rank's part of a level and its incoming traffic.
struct ReceivedTraffic {
    /// Load without traffic.
    load: LevelLoad,
    /// Sender, exchange and size of each received message.
    flows: Vec<(usize, ExchangeOf, MessageCount)>,
}

impl ReceivedTraffic {
    fn of(topology: &Topology, plans: &ExchangePlans, level: usize, layers: usize) -> Self {
        let reads = layers::HaloReads::new(topology, level..level + 1);
        reads.record(topology, level);
        let mut flows: Vec<(usize, ExchangeOf, MessageCount)> = Vec::new();
        let mut add = |from, exchange, items: usize, cells| {
            let (messages, items) = (1, items as u64);
            let flow = MessageCount {
                messages,
                items,
                cells,
            };
            flows.push((from, exchange, flow));
        };
        for from in &plans.halo[level].receives {
            let cells = from.rows.iter().map(|&row| reads.cells(row, layers)).sum();
            add(from.peer, |load| &mut load.halo, from.rows.len(), cells);
        }
        for from in &plans.averages[level].receives {
            add(from.peer, |load| &mut load.averages, from.rows.len(), 0);
        }
        for (peer, faces) in &plans.faces[level].receives {
            add(*peer, |load| &mut load.fluxes, faces.len(), 0);
        }
        let load = LevelLoad {
            patches: topology.rows(level).len() as u64,
            stored_rows: 8 * topology.octets(level).len() as u64,
            ..LevelLoad::default()
        };
        Self { load, flows }
    }
}
