//! What sharing a hierarchy out to many ranks would be like, counted on one: patches, copies, messages, bytes, times.
//!
//! The cuts are those that a run makes, the counts those of the plans that its ranks agree on; one pass over the patches
//! serves all ranks.

mod count;
pub mod times;

#[cfg(test)]
mod tests;

pub use times::{LevelTraffic, Machine, Sizes, Times};

use super::balance::{Starts, work};
use crate::mesh::{Cuts, Domain, LevelWork, Topology};
use count::Counter;
use rayon::prelude::*;

/// What goes into or out of a rank in one exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Messages: other ranks at the far end.
    pub messages: u64,
    /// Rows; for fluxes, faces of fine patches.
    pub items: u64,
    /// Cells of the rows that the receiver's steps read, of each row a box; 0 for fluxes.
    pub cells: u64,
}

/// Both directions of one exchange.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// What the rank sends.
    pub sent: Flow,
    /// What the rank receives.
    pub received: Flow,
}

/// A rank's part of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Own patches.
    pub patches: u64,
    /// Rows held: own patches, copies, and what completes their octets.
    pub held: u64,
    /// Values of copies, from their owners.
    pub halo: Traffic,
    /// Averages of children, to the owners of their parents on this level; before, those send what the parents are.
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
    /// Shares `topology`, the whole hierarchy on one rank, out to `ranks` ranks; steps read `layers` layers of ghost cells.
    ///
    /// Time goes with the patches plus the pairs of ranks that touch.
    ///
    /// # Panics
    /// If there is no rank, or `topology` is one rank's part of a shared hierarchy.
    #[must_use]
    pub fn new(topology: &Topology, ranks: usize, layers: u32) -> Self {
        assert!(ranks > 0, "one rank at least");
        Self::with_cuts(topology, &cuts(topology, ranks), layers)
    }

    /// As [`Forecast::new`], cut by `cuts`: in a run they stay as long as the balance lets them.
    ///
    /// # Panics
    /// If `topology` is one rank's part of a shared hierarchy.
    #[must_use]
    pub fn with_cuts(topology: &Topology, cuts: &Cuts, layers: u32) -> Self {
        assert!(
            !topology.is_shared(),
            "a forecast needs the whole hierarchy"
        );
        Counter::new(topology, cuts, layers).count()
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

    /// What the busiest ranks have above the mean, as a share of it, over the steps of a root step: ranks wait for each other in
    /// every step of a level.
    #[must_use]
    pub fn imbalance(&self) -> f64 {
        let mut work = LevelWork::default();
        for level in 0..self.levels {
            let patches = |rank: usize| self.load(rank, level).patches;
            let busiest = (0..self.ranks).map(patches).max().unwrap_or(0);
            let all: u64 = (0..self.ranks).map(patches).sum();
            work.add(LevelWork {
                all: all << level,
                busiest: busiest << level,
            });
        }
        work.imbalance(self.ranks)
    }

    /// Patches of `rank` weighted by the steps that their levels take in a root step.
    #[must_use]
    pub fn weight(&self, rank: usize) -> u64 {
        let levels = self.rank(rank).iter().enumerate();
        levels.map(|(level, load)| load.patches << level).sum()
    }
}

/// The cuts of a hierarchy whose levels have just been shared out evenly, as [`super::build::propose`] makes them.
#[must_use]
pub fn cuts(topology: &Topology, ranks: usize) -> Cuts {
    let mut cuts = Cuts::new(topology.domain.root, ranks, topology.max_level + 1);
    for level in 1..=topology.finest() {
        let coarser = topology.rows(level - 1).par_iter().with_min_len(1024);
        let refined = coarser.filter(|&&row| !topology.is_leaf(row));
        let parents: Vec<u64> = refined.map(|&row| topology.key(row)).collect();
        let work = work(parents.iter().copied());
        let starts = Starts::new(&parents, &work, 0, work.iter().sum(), ranks);
        cuts.set(level, starts.keys);
    }
    cuts
}

/// The root grid of `domain` without any field, to be refined by [`refine`].
#[must_use]
pub fn outline(domain: Domain, max_level: usize) -> Topology {
    let mut topology = Topology::new(domain, max_level);
    topology.create_root();
    topology
}

/// Gives those patches of `level` children that are no leaves, the patches being in Hilbert order.
///
/// # Errors
/// There is not one flag for every patch of the level; the finest level allowed has children.
pub fn refine(topology: &mut Topology, level: usize, leaf: &[bool]) -> Result<(), String> {
    let rows = topology.rows(level).to_vec();
    if rows.len() != leaf.len() {
        let (patches, flags) = (rows.len(), leaf.len());
        return Err(format!("level {level} has {patches} patches, not {flags}"));
    }
    let refined: Vec<u32> = rows
        .iter()
        .zip(leaf)
        .filter(|(_, leaf)| !**leaf)
        .map(|(row, _)| *row)
        .collect();
    if refined.is_empty() {
        return Ok(());
    }
    if level >= topology.max_level {
        return Err(format!(
            "level {level} is the finest one allowed, but has children"
        ));
    }
    for row in refined {
        topology.create_children(row);
    }
    topology.relink(level + 1);
    Ok(())
}
