//! Which patches of a level to refine and which to coarsen, so that proper nesting holds at all times.
//!
//! Neighbouring patches, diagonals included, differ by one level at most. Therefore a patch may be refined only if all
//! its 26 neighbours exist on its level (or lie outside the domain), and the children of a patch may go only if no
//! refined patch of the finer level touches them. A wish that nesting forbids is passed down to the coarser level, which
//! grants it when it regrids.

use super::topology::octet::Octet;
use super::topology::offset;
use super::{Changes, Topology};
use bevy_ecs::prelude::*;
use nestar_kernels::mesh::{COARSER, direction};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the flagging systems asked for.
#[derive(Resource, Default)]
pub struct RefineRequests {
    /// Per row: the sectors (bit `direction(d)` of 27) that flagged cells and their buffers reach.
    sectors: Vec<u32>,
    /// Per row: its children stay for now, if it has any.
    kept: Vec<bool>,
    /// Per row: a finer patch nearby needs this patch refined.
    requested: Vec<AtomicBool>,
    /// Working space: per row, whether its children must stay.
    required: Vec<AtomicBool>,
    /// Rows of the finer level that stay whatever the criteria say.
    staying: Vec<u32>,
    /// Rows of the level that get no children, ascending.
    closed: Vec<u32>,
}

impl RefineRequests {
    /// Makes room for `rows` rows.
    pub fn resize(&mut self, rows: usize) {
        self.sectors.resize(rows, 0);
        self.kept.resize(rows, false);
        self.requested.resize_with(rows, AtomicBool::default);
        self.required.resize_with(rows, AtomicBool::default);
    }

    /// Forgets what stood at `row` (it has a new patch).
    pub fn forget(&mut self, row: u32) {
        self.clear(&[row]);
        set(&self.requested[row as usize], false);
    }

    /// Takes back what the patches `rows` asked for.
    pub fn clear(&mut self, rows: &[u32]) {
        for &row in rows {
            self.sectors[row as usize] = 0;
            self.kept[row as usize] = false;
        }
    }

    /// Sets what the next decision about a level has to leave: own patches of the finer level that stay, and own patches of the
    /// level that are not refined.
    pub(crate) fn pin(&mut self, staying: Vec<u32>, mut closed: Vec<u32>) {
        closed.sort_unstable();
        (self.staying, self.closed) = (staying, closed);
    }

    /// Adds to the sectors that patch `row` asks for.
    pub fn add(&mut self, row: u32, sectors: u32) {
        self.sectors[row as usize] |= sectors;
    }

    /// Lets the children of the own patch `row` stay in the next decision about its level, if it has any. It refines nothing: criteria that want
    /// more of patches that are not there than of those that are keep these with it, such that they do not come and go.
    pub fn keep(&mut self, row: u32) {
        self.kept[row as usize] = true;
    }

    /// The sectors that patch `row` asks for.
    pub(crate) fn sectors(&self, row: u32) -> u32 {
        self.sectors[row as usize]
    }

    /// Sets the sectors that the copy `row` of another rank's patch asks for.
    pub(crate) fn replace(&mut self, row: u32, sectors: u32) {
        self.sectors[row as usize] = sectors;
    }

    pub(crate) fn is_required(&self, row: u32) -> bool {
        get(&self.required[row as usize])
    }

    /// Adds another rank's mark.
    pub(crate) fn require_if(&self, row: u32, marked: bool) {
        if marked {
            set(&self.required[row as usize], true);
        }
    }

    pub(crate) fn is_requested(&self, row: u32) -> bool {
        get(&self.requested[row as usize])
    }

    /// Adds another rank's mark.
    pub(crate) fn request_if(&self, row: u32, marked: bool) {
        if marked {
            set(&self.requested[row as usize], true);
        }
    }

    /// Which patches of an octet a finer patch needs refined, as bits z y x.
    pub(crate) fn requested(&self, octet: &Octet) -> u8 {
        let marked = octet.rows(u8::MAX).filter(|&row| self.is_requested(row));
        marked.map(|row| 1 << (row - octet.first)).sum()
    }

    /// Restores what [`RefineRequests::requested`] gave, of some `patches` of an octet.
    pub(crate) fn set_requested(&self, octet: &Octet, patches: u8, wished: u8) {
        for row in octet.rows(patches) {
            let marked = wished >> (row - octet.first) & 1 == 1;
            set(&self.requested[row as usize], marked);
        }
    }

    /// The own patches of `level`, as positions in [`Topology::rows`], that a finer patch needs refined: kept in snapshots (as
    /// positions in the whole level), since the next regrid of the level still honours them.
    #[must_use]
    pub fn nesting_requests(&self, topology: &Topology, level: usize) -> Vec<u32> {
        let rows = topology.rows(level).iter().enumerate();
        rows.filter(|(_, row)| get(&self.requested[**row as usize]))
            .map(|(n, _)| n as u32)
            .collect()
    }

    /// [`RefineRequests::nesting_requests`] of every level that has patches.
    #[must_use]
    pub fn all_nesting_requests(&self, topology: &Topology) -> Vec<Vec<u32>> {
        let levels = 0..=topology.finest();
        levels
            .map(|level| self.nesting_requests(topology, level))
            .collect()
    }

    /// Restores what [`RefineRequests::nesting_requests`] gave.
    pub fn set_nesting_requests(&mut self, topology: &Topology, level: usize, positions: &[u32]) {
        for &n in positions {
            if let Some(&row) = topology.rows(level).get(n as usize) {
                set(&self.requested[row as usize], true);
            }
        }
    }

    /// Whether any flagged cell or buffer reaches patch `row`, or a finer patch needs it refined.
    fn wanted(&self, topology: &Topology, row: u32, finer_exists: bool) -> bool {
        let around = topology.neighbours(row);
        (finer_exists && get(&self.requested[row as usize]))
            || (0..27)
                .any(|d| around[d] >= 0 && self.sectors[around[d] as usize] >> (26 - d) & 1 == 1)
    }

    /// Passes what `row` of the level wants but cannot have to the coarser patches that stand in the way.
    fn pass_down(&self, topology: &Topology, row: u32, wanted: bool) {
        let around = topology.neighbours(row);
        let sectors = self.sectors[row as usize];
        for d in 0..27 {
            if around[d] == COARSER
                && (wanted || sectors >> d & 1 == 1)
                && let Some(coarse) = coarse_neighbour(topology, row, d)
            {
                set(&self.requested[coarse as usize], true);
            }
        }
    }

    /// Decides how to change the children of `level`'s patches, where one rank has them all.
    pub fn decide(&mut self, topology: &Topology, level: usize) -> Changes {
        self.prepare(topology, level);
        self.choose(topology, level)
    }

    /// Marks which children must stay, and forgets what was wished of the coarser level.
    pub(crate) fn prepare(&self, topology: &Topology, level: usize) {
        self.require(topology, level);
        if let Some(below) = level.checked_sub(1) {
            for &row in topology.rows(below).iter().chain(topology.copies(below)) {
                set(&self.requested[row as usize], false);
            }
        }
    }

    /// Decides about `level`'s own patches once all marks stand; those passed down to the coarser level are set here.
    pub(crate) fn choose(&self, topology: &Topology, level: usize) -> Changes {
        let finer_exists = topology.count(level + 1) > 0;
        let may_refine = level < topology.max_level;
        let decide = |&row: &u32| {
            let closed = self.closed.binary_search(&row).is_ok();
            let wanted = !closed && self.wanted(topology, row, finer_exists);
            self.pass_down(topology, row, wanted);
            match topology.is_leaf(row) {
                true if wanted && may_refine && nestable(topology, row) => Some((row, true)),
                false if !wanted && !self.stays(row) => Some((row, false)),
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

    /// Whether the children of `row` stay although nobody wants it refined.
    fn stays(&self, row: u32) -> bool {
        self.kept[row as usize] || get(&self.required[row as usize])
    }

    /// Finds the patches of `level` whose children must stay because one of them is pinned, or a refined child is among them or
    /// touches them.
    fn require(&self, topology: &Topology, level: usize) {
        for &row in topology.rows(level).iter().chain(topology.copies(level)) {
            set(&self.required[row as usize], false);
        }
        for &row in &self.staying {
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

/// Marks that several tasks set to the same value need no order among them; the end of the parallel loop publishes them.
fn set(mark: &AtomicBool, value: bool) {
    mark.store(value, Ordering::Relaxed);
}

fn get(mark: &AtomicBool) -> bool {
    mark.load(Ordering::Relaxed)
}

/// Whether all neighbours of `row` exist on its level or lie outside the domain.
fn nestable(topology: &Topology, row: u32) -> bool {
    !topology.neighbours(row).contains(&COARSER)
}

/// The patch of the next coarser level that covers the place of neighbour `d` of `row`.
pub(crate) fn coarse_neighbour(topology: &Topology, row: u32, d: usize) -> Option<u32> {
    let parent = topology.parent(row)?;
    let index = topology.index(row);
    let step = offset(d);
    let place = std::array::from_fn(|a| ((index[a] & 1) + step[a]).div_euclid(2));
    u32::try_from(topology.neighbours(parent)[direction(place)]).ok()
}
