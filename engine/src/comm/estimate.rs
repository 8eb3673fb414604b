//! What sharing a hierarchy out to many ranks would be like: patches, copies, messages, bytes, times.
//!
//! Every rank's part is built as in a run, by the same functions, one process building all parts one after the other. Only
//! the questions of a rank to the others are answered by the [`Outline`] of the whole hierarchy, and what a rank sends is what
//! the others receive from it.

pub mod cost_model;
mod particle_load;
mod root_step;
mod tree_outline;

#[cfg(test)]
mod tests;

pub use cost_model::{DataSizes, LevelTraffic, MachineModel, RootStepTimes};
pub use root_step::{ExtraTraffic, HierarchyShape, RootStep, TrafficEstimators};
pub use tree_outline::TreeOutline;

use super::halo::layers;
use super::hierarchy::ExchangePlans;
use crate::mesh::{Cost, HilbertPartition, LevelWork, Topology};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What goes into or out of a rank in one exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MessageCount {
    /// Messages: other ranks at the far end.
    pub messages: u64,
    /// Rows; for fluxes, faces of fine patches.
    pub items: u64,
    /// Cells of the rows that the receiver's steps read, of each row a box; 0 for averages and fluxes.
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
    /// Own patches.
    pub patches: u64,
    /// Items in them.
    pub items: u64,
    /// Work of a step: of a patch alone 512 times 64.
    #[serde(skip)]
    pub work: u64,
    /// Rows held: own patches, copies, and what completes their octets.
    #[serde(rename = "held_rows")]
    pub held: u64,
    /// Values of copies, from their owners.
    pub halo: Traffic,
    /// Averages of children, to the owners of their parents on this level.
    pub averages: Traffic,
    /// Fluxes through faces of the finer level, to the owners of the patches of this level before them.
    pub fluxes: Traffic,
}

impl LevelLoad {
    /// Copies of other ranks' patches.
    #[must_use]
    pub fn halo_patches(&self) -> u64 {
        self.halo.received.items
    }
}

/// A hierarchy shared out to a number of ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionEstimate {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of levels that have patches.
    pub levels: usize,
    /// Per rank: other ranks that it sends to or receives from.
    pub neighbours: Vec<u32>,
    /// What happens in a root step.
    pub root_step: RootStep,
    /// Layers of ghost cells that steps read.
    layers: usize,
    /// Rank by rank, the levels.
    loads: Vec<LevelLoad>,
}

impl PartitionEstimate {
    /// Shares `outline` out to `ranks` ranks; steps read `layers` layers of ghost cells.
    ///
    /// # Panics
    /// If there is no rank.
    #[must_use]
    pub fn new(outline: &TreeOutline, ranks: usize, layers: usize) -> Self {
        assert!(ranks > 0, "one rank at least");
        Self::with_cuts(outline, outline.cuts(ranks), layers)
    }

    /// As [`Forecast::new`], cut by `cuts`: in a run they stay as long as the balance lets them.
    #[must_use]
    pub fn with_cuts(outline: &TreeOutline, cuts: HilbertPartition, layers: usize) -> Self {
        let (ranks, levels) = (cuts.ranks(), outline.levels());
        let cuts = Arc::new(cuts);
        let part = |rank| {
            let (topology, shares) = outline.part(&cuts, rank);
            let level = |level| ReceivedTraffic::of(&topology, &shares, level, layers);
            (0..levels).map(level).collect()
        };
        let parts: Vec<Vec<ReceivedTraffic>> = (0..ranks).into_par_iter().map(part).collect();
        let mut loads: Vec<LevelLoad> = parts.iter().flatten().map(|part| part.load).collect();
        for (n, load) in loads.iter_mut().enumerate() {
            let (rank, level) = (n / levels, n % levels);
            let loads = outline.loads(level, cuts.keys(level, rank));
            load.items = loads.iter().map(|loads| loads.count).sum();
            let work: u64 = loads.iter().map(|loads| loads.work).sum();
            load.work = load.patches * Cost::ONE + work;
        }
        let mut peers = vec![BTreeSet::new(); ranks];
        for (n, arrivals) in parts.iter().flatten().enumerate() {
            let (to, level) = (n / levels, n % levels);
            for &(from, exchange, flow) in &arrivals.flows {
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

    /// The same where something else happens in a root step than that each level takes twice as many steps as the coarser one.
    #[must_use]
    pub fn with_root_step(self, root_step: RootStep) -> Self {
        Self { root_step, ..self }
    }

    /// What `rank` has of `level`.
    #[must_use]
    pub fn load(&self, rank: usize, level: usize) -> &LevelLoad {
        &self.loads[rank * self.levels + level]
    }

    /// The levels of `rank`.
    #[must_use]
    pub fn rank(&self, rank: usize) -> &[LevelLoad] {
        &self.loads[rank * self.levels..][..self.levels]
    }

    /// The ranks that have patches.
    #[must_use]
    pub fn busy(&self) -> Vec<usize> {
        let busy = |&rank: &usize| self.weight(rank) > 0;
        (0..self.ranks).filter(busy).collect()
    }

    /// What the busiest ranks have above the mean, as a share of it, over the steps of a root step: ranks wait for each other in
    /// every step of a level.
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

    /// Rows that `rank` holds.
    #[must_use]
    pub fn held(&self, rank: usize) -> u64 {
        self.rank(rank).iter().map(|load| load.held).sum()
    }

    /// Patches of `rank` weighted by the steps that their levels take in a root step.
    #[must_use]
    pub fn weight(&self, rank: usize) -> u64 {
        let levels = self.rank(rank).iter().zip(&self.root_step.steps);
        levels.map(|(load, steps)| load.patches * steps).sum()
    }

    /// Items that `rank` has.
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

/// Which of a rank's exchanges.
type ExchangeOf = fn(&mut LevelLoad) -> &mut Traffic;

/// A rank's part of a level, and what it receives.
struct ReceivedTraffic {
    /// Without traffic.
    load: LevelLoad,
    /// By sender and exchange, a message each.
    flows: Vec<(usize, ExchangeOf, MessageCount)>,
}

impl ReceivedTraffic {
    fn of(topology: &Topology, shares: &ExchangePlans, level: usize, layers: usize) -> Self {
        let reads = layers::HaloReads::new(topology);
        reads.look(topology, level);
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
        for from in &shares.halo[level].receives {
            let cells = from.rows.iter().map(|&row| reads.cells(row, layers)).sum();
            add(from.peer, |load| &mut load.halo, from.rows.len(), cells);
        }
        for from in &shares.averages[level].receives {
            add(from.peer, |load| &mut load.averages, from.rows.len(), 0);
        }
        for (peer, faces) in &shares.faces[level].receives {
            add(*peer, |load| &mut load.fluxes, faces.len(), 0);
        }
        let load = LevelLoad {
            patches: topology.rows(level).len() as u64,
            held: 8 * topology.octets(level).len() as u64,
            ..LevelLoad::default()
        };
        Self { load, flows }
    }
}
