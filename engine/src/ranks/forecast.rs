//! What sharing a hierarchy out to many ranks would be like: patches, copies, messages, bytes, times.
//!
//! Every rank's part is built as in a run, by the same functions, one process building all parts one after the other. Only
//! the questions of a rank to the others are answered by the [`Outline`] of the whole hierarchy, and what a rank sends is what
//! the others receive from it.

mod outline;
pub mod times;

#[cfg(test)]
mod tests;

pub use outline::Outline;
pub use times::{LevelTraffic, Machine, Sizes, Times};

use super::build::Shares;
use super::halos::layers;
use crate::mesh::{Cuts, LevelWork, Topology};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What goes into or out of a rank in one exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flow {
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
    pub sent: Flow,
    /// What the rank receives.
    pub received: Flow,
}

/// A rank's part of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Own patches.
    pub patches: u64,
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

impl Load {
    /// Copies of other ranks' patches.
    #[must_use]
    pub fn copies(&self) -> u64 {
        self.halo.received.items
    }
}

/// A hierarchy shared out to a number of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of levels that have patches.
    pub levels: usize,
    /// Per rank: other ranks that it sends to or receives from.
    pub neighbours: Vec<u32>,
    /// Rank by rank, the levels.
    loads: Vec<Load>,
}

impl Forecast {
    /// Shares `outline` out to `ranks` ranks; steps read `layers` layers of ghost cells.
    ///
    /// # Panics
    /// If there is no rank.
    #[must_use]
    pub fn new(outline: &Outline, ranks: usize, layers: usize) -> Self {
        assert!(ranks > 0, "one rank at least");
        Self::with_cuts(outline, outline.cuts(ranks), layers)
    }

    /// As [`Forecast::new`], cut by `cuts`: in a run they stay as long as the balance lets them.
    #[must_use]
    pub fn with_cuts(outline: &Outline, cuts: Cuts, layers: usize) -> Self {
        let (ranks, levels) = (cuts.ranks(), outline.levels());
        let cuts = Arc::new(cuts);
        let part = |rank| {
            let (topology, shares) = outline.part(&cuts, rank);
            let level = |level| Arrivals::of(&topology, &shares, level, layers);
            (0..levels).map(level).collect()
        };
        let parts: Vec<Vec<Arrivals>> = (0..ranks).into_par_iter().map(part).collect();
        let mut loads: Vec<Load> = parts.iter().flatten().map(|part| part.load).collect();
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
            loads,
        }
    }

    /// What `rank` has of `level`.
    #[must_use]
    pub fn load(&self, rank: usize, level: usize) -> &Load {
        &self.loads[rank * self.levels + level]
    }

    /// The levels of `rank`.
    #[must_use]
    pub fn rank(&self, rank: usize) -> &[Load] {
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
            let patches = || (0..self.ranks).map(|rank| self.load(rank, level).patches);
            work.add(LevelWork {
                all: patches().sum::<u64>() << level,
                busiest: patches().max().unwrap_or(0) << level,
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
        let levels = self.rank(rank).iter().enumerate();
        levels.map(|(level, load)| load.patches << level).sum()
    }
}

impl Flow {
    fn add(&mut self, more: Self) {
        self.messages += more.messages;
        self.items += more.items;
        self.cells += more.cells;
    }
}

/// Which of a rank's exchanges.
type Exchange = fn(&mut Load) -> &mut Traffic;

/// A rank's part of a level, and what it receives.
struct Arrivals {
    /// Without traffic.
    load: Load,
    /// By sender and exchange, a message each.
    flows: Vec<(usize, Exchange, Flow)>,
}

impl Arrivals {
    fn of(topology: &Topology, shares: &Shares, level: usize, layers: usize) -> Self {
        let reads = layers::Reads::new(topology);
        reads.look(topology, level);
        let mut flows: Vec<(usize, Exchange, Flow)> = Vec::new();
        let mut add = |from, exchange, items: usize, cells| {
            let (messages, items) = (1, items as u64);
            let flow = Flow {
                messages,
                items,
                cells,
            };
            flows.push((from, exchange, flow));
        };
        for from in &shares.copies[level].receives {
            let cells = from.rows.iter().map(|&row| reads.cells(row, layers)).sum();
            add(from.peer, |load| &mut load.halo, from.rows.len(), cells);
        }
        for from in &shares.averages[level].receives {
            add(from.peer, |load| &mut load.averages, from.rows.len(), 0);
        }
        for (peer, faces) in &shares.faces[level].receives {
            add(*peer, |load| &mut load.fluxes, faces.len(), 0);
        }
        let load = Load {
            patches: topology.rows(level).len() as u64,
            held: 8 * topology.octets(level).len() as u64,
            ..Load::default()
        };
        Self { load, flows }
    }
}
