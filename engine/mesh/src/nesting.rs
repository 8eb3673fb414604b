//! Selects the patches of a level to refine and to coarsen, subject to proper nesting.
//!
//! Neighbouring patches, including diagonal ones, differ by at most one level. A patch may be refined only if its 26
//! neighbours exist on its level or lie outside the domain. Its children may be removed only if no refined patch of the
//! finer level touches them. A refinement blocked by this rule is requested from the coarser level, which grants it at
//! its next regrid.

use super::Topology;
use super::patch::RefinementFlags;
use super::topology::shared_hierarchy::Octet;
use super::topology::{Changes, offset};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::{COARSER, direction};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// Refinement requests of the criteria and of finer levels.
#[derive(Resource, Default)]
pub struct RefineRequests {
    /// Flags of the criteria, per row.
    flags: Vec<RefinementFlags>,
    /// `true` if a finer patch nearby requests the refinement of the row.
    requested: Vec<AtomicBool>,
    /// Scratch memory: `true` if the children of the row must stay.
    required: Vec<AtomicBool>,
    /// Rows of the finer level that stay regardless of the criteria.
    pinned: Vec<u32>,
    /// Rows of the level that must not be refined, ascending.
    unrefinable: Vec<u32>,
}

impl RefineRequests {
    /// Resizes the tables to `rows` rows.
    pub fn resize(&mut self, rows: usize) {
        self.flags.resize(rows, RefinementFlags::default());
        self.requested.resize_with(rows, AtomicBool::default);
        self.required.resize_with(rows, AtomicBool::default);
    }

    /// Clears all requests of `row`, which has a new patch.
    pub fn forget(&mut self, row: u32) {
        self.set_flags(row, RefinementFlags::default());
        set(&self.requested[row as usize], false);
    }

    /// Sets the flags of the patch in `row`.
    #[inline]
    pub fn set_flags(&mut self, row: u32, flags: RefinementFlags) {
        self.flags[row as usize] = flags;
    }

    /// Restricts the next decision about a level: patches of the finer level that stay, and patches not to refine.
    pub fn pin(&mut self, pinned: Vec<u32>, mut unrefinable: Vec<u32>) {
        unrefinable.sort_unstable();
        (self.pinned, self.unrefinable) = (pinned, unrefinable);
    }

    /// Returns the sectors requested by patch `row`.
    #[inline]
    pub fn sectors(&self, row: u32) -> u32 {
        self.flags[row as usize].sectors()
    }

    /// Returns `true` if existing grandchildren need the children of patch `row`.
    #[inline]
    pub fn is_required(&self, row: u32) -> bool {
        get(&self.required[row as usize])
    }

    /// Adds a mark from another rank.
    #[inline]
    pub fn require_if(&self, row: u32, marked: bool) {
        if marked {
            set(&self.required[row as usize], true);
        }
    }

    /// Returns `true` if finer patches request the refinement of patch `row`.
    #[inline]
    pub fn is_requested(&self, row: u32) -> bool {
        get(&self.requested[row as usize])
    }

    /// Adds a request from another rank.
    #[inline]
    pub fn request_if(&self, row: u32, marked: bool) {
        if marked {
            set(&self.requested[row as usize], true);
        }
    }

    /// Returns the patches of an octet whose refinement is requested by finer patches, as bits z y x.
    #[inline]
    pub fn requested(&self, octet: &Octet) -> u8 {
        let marked = octet.rows(u8::MAX).filter(|&row| self.is_requested(row));
        marked.map(|row| 1 << (row - octet.first)).sum()
    }

    /// Restores the result of [`RefineRequests::requested`] for some `patches` of an octet.
    pub fn set_requested(&self, octet: &Octet, patches: u8, requested: u8) {
        for row in octet.rows(patches) {
            let marked = requested >> (row - octet.first) & 1 == 1;
            set(&self.requested[row as usize], marked);
        }
    }

    /// Returns the patches of `level` whose refinement is requested by finer patches, as positions in
    /// [`Topology::rows`].
    /// Snapshots contain them, as positions in the whole level, for the next regrid.
    #[must_use]
    pub fn nesting_requests(&self, topology: &Topology, level: usize) -> Vec<u32> {
        let rows = topology.rows(level).iter().enumerate();
        rows.filter(|(_, row)| get(&self.requested[**row as usize]))
            .map(|(n, _)| n as u32)
            .collect()
    }

    /// Returns [`RefineRequests::nesting_requests`] of every level with patches.
    #[must_use]
    pub fn all_nesting_requests(&self, topology: &Topology) -> Vec<Vec<u32>> {
        let levels = 0..=topology.finest();
        levels
            .map(|level| self.nesting_requests(topology, level))
            .collect()
    }

    /// Restores the result of [`RefineRequests::nesting_requests`].
    pub fn set_nesting_requests(&mut self, topology: &Topology, level: usize, positions: &[u32]) {
        for &n in positions {
            if let Some(&row) = topology.rows(level).get(n as usize) {
                set(&self.requested[row as usize], true);
            }
        }
    }

    /// Returns `true` if a marked cell or buffer reaches patch `row`, or a finer patch requests its refinement.
    fn wants_refinement(&self, topology: &Topology, row: u32, finer_exists: bool) -> bool {
        let around = topology.neighbours(row);
        (finer_exists && get(&self.requested[row as usize]))
            || (0..27)
                .any(|d| around[d] >= 0 && self.sectors(around[d] as u32) >> (26 - d) & 1 == 1)
    }

    /// Requests the refinement of coarser patches that block `row` or its buffers.
    fn request_coarser(&self, topology: &Topology, row: u32, wanted: bool) {
        let around = topology.neighbours(row);
        let sectors = self.sectors(row);
        for d in 0..27 {
            if around[d] == COARSER
                && (wanted || sectors >> d & 1 == 1)
                && let Some(coarse) = coarse_neighbour(topology, row, d)
            {
                set(&self.requested[coarse as usize], true);
            }
        }
    }

    /// Marks children that must stay, and clears the requests to the coarser level.
    pub fn prepare(&self, topology: &Topology, level: usize) {
        self.mark_required(topology, level);
        if let Some(below) = level.checked_sub(1) {
            for &row in topology.rows(below).iter().chain(topology.copies(below)) {
                set(&self.requested[row as usize], false);
            }
        }
    }

    /// Decides about the patches of `level` on this rank once all marks are complete.
    /// Sets requests to the coarser level.
    pub fn choose(&self, topology: &Topology, level: usize) -> Changes {
        let finer_exists = topology.count(level + 1) > 0;
        let may_refine = level < topology.max_level;
        let decide = |&row: &u32| {
            let unrefinable = self.unrefinable.binary_search(&row).is_ok();
            let wanted = !unrefinable && self.wants_refinement(topology, row, finer_exists);
            self.request_coarser(topology, row, wanted);
            match topology.is_leaf(row) {
                true if wanted && may_refine && can_refine(topology, row) => Some((row, true)),
                false if !wanted && !self.must_stay(row) => Some((row, false)),
                _ => None,
            }
        };
        let decided: Vec<(u32, bool)> = topology
            .rows(level)
            .par_iter()
            .with_min_len(1024)
            .filter_map(decide)
            .collect();
        let these = |refine: bool| {
            let rows = decided.iter().filter(|(_, refines)| *refines == refine);
            rows.map(|(row, _)| *row).collect()
        };
        Changes {
            refine: these(true),
            coarsen: these(false),
        }
    }

    /// Returns `true` if the children of `row` stay without a request.
    fn must_stay(&self, row: u32) -> bool {
        self.flags[row as usize].keeps_children() || get(&self.required[row as usize])
    }

    /// Marks patches of `level` whose children must stay.
    /// A child is pinned, or a refined patch is among the children or touches them.
    fn mark_required(&self, topology: &Topology, level: usize) {
        for &row in topology.rows(level).iter().chain(topology.copies(level)) {
            set(&self.required[row as usize], false);
        }
        for &row in &self.pinned {
            if let Some(parent) = topology.parent(row) {
                set(&self.required[parent as usize], true);
            }
        }
        let fine = topology.rows(level + 1).par_iter().with_min_len(1024);
        fine.filter(|&&row| !topology.is_leaf(row))
            .for_each(|&row| {
                for &n in topology.neighbours(row) {
                    if let Some(parent) = u32::try_from(n).ok().and_then(|n| topology.parent(n)) {
                        set(&self.required[parent as usize], true);
                    }
                }
            });
    }
}

/// Sets a mark. Concurrent tasks only set the same value; the end of the parallel loop publishes it.
fn set(mark: &AtomicBool, value: bool) {
    mark.store(value, Ordering::Relaxed);
}

fn get(mark: &AtomicBool) -> bool {
    mark.load(Ordering::Relaxed)
}

/// Returns `true` if all neighbours of `row` exist on its level or lie outside the domain.
fn can_refine(topology: &Topology, row: u32) -> bool {
    !topology.neighbours(row).contains(&COARSER)
}

/// Returns the patch of the next coarser level at the place of neighbour `d` of `row`.
pub(crate) fn coarse_neighbour(topology: &Topology, row: u32, d: usize) -> Option<u32> {
    let parent = topology.parent(row)?;
    let index = topology.index(row);
    let step = offset(d);
    let place = std::array::from_fn(|a| ((index[a] & 1) + step[a]).div_euclid(2));
    u32::try_from(topology.neighbours(parent)[direction(place)]).ok()
}
