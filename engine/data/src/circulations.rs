//! Circulation registers: record the circulations along edges on both sides of coarse-fine borders, for fields on faces
//! that change by a curl (Balsara, J. Comput. Phys. 174, 614, 2001).
//!
//! Registers belong to a patch and are written by that patch alone. At synchronisation, a coarse leaf patch reads those of
//! the fine patches that touch its edges, up to three of the patches around an edge. Those of other ranks are received before.

use super::registers::{pack_values, unpack_values};
use super::store::Piece;
use nestar_device::Real;
use nestar_engine_device::parallel::SharedCells;
use nestar_engine_mesh::Topology;
use nestar_engine_mesh::topology::links::remote_at_edges;
use nestar_kernels::PATCH;
use nestar_kernels::mesh::circulations::{
    FINE_SURFACE, SURFACE, average_surface, copy_surface, edge_in_child, fine_surface_index,
    step_beside, surface_index, touches_edges,
};
use nestar_kernels::mesh::fluxes::flux_mismatch;
use nestar_kernels::mesh::{COARSER, Centring, direction};

/// Marks a patch without registers.
const NONE: u32 = u32::MAX;

/// The registers between level `l` and `l + 1`.
struct LevelPair<R> {
    /// Leaf patches of level `l` beside a refined one.
    coarse: Vec<u32>,
    /// Patches of level `l + 1` beside a coarser one. Those of this rank come before those of other ranks that touch leaf
    /// patches of level `l` here.
    fine: Vec<u32>,
    /// Coarse circulations of the latest step, `[slot][component][SURFACE]`.
    coarse_edges: SharedCells<R>,
    /// Fine circulations of the first fine step within the coarse step, `[slot][component][FINE_SURFACE]`.
    reference: SharedCells<R>,
    /// Sum of `dt * (circulation - reference)` over the later fine steps, exactly 0 for constant circulations.
    change: SharedCells<R>,
    /// Fine circulations of the tentative step; they count once it is accepted.
    attempt: SharedCells<R>,
    /// `true` after the first fine step within the coarse step.
    begun: bool,
}

/// All circulation registers of a field in one precision.
pub struct CirculationRegisters<R> {
    components: usize,
    pairs: Vec<LevelPair<R>>,
    /// Slot of each row among the coarse-side registers of its level.
    coarse_slot: Vec<u32>,
    /// Slot of each row among the fine-side registers of its level.
    fine_slot: Vec<u32>,
}

impl<R: Real> CirculationRegisters<R> {
    /// Creates registers for `components` components on `levels` levels; none are in use.
    #[must_use]
    pub fn new(components: usize, levels: usize) -> Self {
        let pair = || LevelPair {
            coarse: Vec::new(),
            fine: Vec::new(),
            coarse_edges: SharedCells::default(),
            reference: SharedCells::default(),
            change: SharedCells::default(),
            attempt: SharedCells::default(),
            begun: false,
        };
        Self {
            components,
            pairs: (0..levels).map(|_| pair()).collect(),
            coarse_slot: Vec::new(),
            fine_slot: Vec::new(),
        }
    }

    /// Returns the memory in use, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let values = |pair: &LevelPair<R>| pair.coarse_edges.len() + 3 * pair.attempt.len();
        let values: usize = self.pairs.iter().map(values).sum();
        values * size_of::<R>() + self.coarse_slot.len() * 8
    }

    /// Rebuilds the registers between `level` and `level + 1` after a regrid; all become zero.
    pub fn rebuild(&mut self, topology: &Topology, level: usize) {
        let Self {
            components,
            pairs,
            coarse_slot,
            fine_slot,
        } = self;
        coarse_slot.resize(topology.capacity(), NONE);
        fine_slot.resize(topology.capacity(), NONE);
        let pair = &mut pairs[level];
        let refined = |n: i32| u32::try_from(n).is_ok_and(|n| !topology.is_leaf(n));
        let leaves = topology.rows(level).iter().copied();
        let leaves = leaves.filter(|&row| topology.is_leaf(row));
        let beside = |row: u32, is: &dyn Fn(i32) -> bool| {
            let around = topology.neighbours(row);
            (0..27).any(|d| touches_edges(d) && is(around[d as usize]))
        };
        let coarse = leaves.filter(|&row| beside(row, &refined)).collect();
        let fine = topology.rows(level + 1).iter().copied();
        let fine = fine.filter(|&row| beside(row, &|n| n == COARSER));
        let fine = fine.chain(remote_at_edges(topology, level)).collect();
        relist(&mut pair.coarse, coarse, coarse_slot);
        relist(&mut pair.fine, fine, fine_slot);
        let zero = R::lit(0.0);
        pair.coarse_edges
            .reset(pair.coarse.len() * *components * SURFACE, zero);
        for values in [&mut pair.reference, &mut pair.change, &mut pair.attempt] {
            values.reset(pair.fine.len() * *components * FINE_SURFACE, zero);
        }
    }

    /// Returns `true` if `row` has registers on either side.
    #[must_use]
    pub fn has_register(&self, row: u32) -> bool {
        self.coarse_slot[row as usize] != NONE || self.fine_slot[row as usize] != NONE
    }

    /// Records the circulations of the tentative step along the edges of `row` on `level`, `[component][648]`, per length
    /// and time. Values inside the patch are not read.
    ///
    /// # Safety
    /// Only one user of a row at a time.
    pub unsafe fn record(&self, level: usize, row: u32, edges: &[R]) {
        let coarse = self.coarse_slot[row as usize];
        if coarse != NONE {
            let range = range_of(coarse, self.components * SURFACE);
            // SAFETY: a slot belongs to one row; exclusivity is the caller's contract.
            let surface = unsafe { self.pairs[level].coarse_edges.slice_mut(range) };
            copy_surface(surface, edges);
        }
        let fine = self.fine_slot[row as usize];
        if fine != NONE {
            let range = range_of(fine, self.components * FINE_SURFACE);
            // SAFETY: as above.
            let surface = unsafe { self.pairs[level - 1].attempt.slice_mut(range) };
            average_surface(surface, edges);
        }
    }

    /// Accepts a step of `level` of length `dt`: adds its circulations to the sums for the coarser level.
    /// The sums of the finer level restart.
    pub fn commit(&mut self, level: usize, dt: f64) {
        self.pairs[level].begun = false;
        let Some(pair) = level.checked_sub(1).map(|below| &mut self.pairs[below]) else {
            return;
        };
        let attempt = pair.attempt.as_mut_slice();
        if std::mem::replace(&mut pair.begun, true) {
            let sums = pair.change.as_mut_slice().iter_mut();
            for ((sum, reference), edge) in sums.zip(pair.reference.as_mut_slice()).zip(attempt) {
                *sum += R::lit(dt) * (*edge - *reference);
            }
        } else {
            pair.reference.as_mut_slice().copy_from_slice(attempt);
            pair.change.as_mut_slice().fill(R::lit(0.0));
        }
    }

    /// Returns the leaf patches of `level` beside refined ones.
    #[must_use]
    pub fn corrected(&self, level: usize) -> &[u32] {
        &self.pairs[level].coarse
    }

    /// Sets `surface`, `[component][SURFACE]`, to the time-integrated fine minus coarse circulations along the edges of
    /// `row` that refined patches touch, over a coarse step of length `dt`; all others are 0.
    ///
    /// # Panics
    /// If `row` is none of [`CirculationRegisters::corrected`].
    pub fn mismatch(&self, topology: &Topology, level: usize, row: u32, dt: R, surface: &mut [R]) {
        let pair = &self.pairs[level];
        let range = range_of(self.coarse_slot[row as usize], self.components * SURFACE);
        // SAFETY: registers are written only during `Advance`, never at synchronisation.
        let coarse = unsafe { pair.coarse_edges.slice(range) };
        for c in 0..self.components {
            let [x, y, z] = Centring::Edge.lengths(c, [PATCH; 3]);
            for n in 0..x * y * z {
                let at = [n % x, n / x % y, n / (x * y)];
                let Some(to) = surface_index(c, at) else {
                    continue;
                };
                surface[to] = match self.fine_edge(topology, row, c, at) {
                    None => R::lit(0.0),
                    Some(from) => {
                        // SAFETY: as above.
                        let value =
                            |values: &SharedCells<R>| unsafe { values.slice(from..from + 1)[0] };
                        flux_mismatch(coarse[to], value(&pair.reference), value(&pair.change), dt)
                    }
                };
            }
        }
    }

    /// Finds the fine register of an edge on the surface of `row`: its index among all of the level; `None` if no refined
    /// patch touches the edge. Patches at faces come before the one across the edge; all hold the same bits.
    fn fine_edge(&self, topology: &Topology, row: u32, c: usize, at: [usize; 3]) -> Option<usize> {
        let (component, at) = (c as i32, at.map(|i| i as i32));
        (0..3).find_map(|n| {
            // without a neighbour, the step leads to the row itself, a leaf
            let step = step_beside(n, component, at);
            let beside = topology.neighbours(row)[direction(step)];
            let beside = u32::try_from(beside).ok()?;
            let children = topology.first_child(beside)?;
            let edge = edge_in_child(component, at, step);
            let slot = self.fine_slot[children as usize + edge.child as usize];
            let inside = fine_surface_index(c, edge.at.map(|i| i as usize));
            let inside = inside.filter(|_| slot != NONE);
            let inside = inside.expect("a fine patch at a coarse edge has registers");
            Some(slot as usize * self.components * FINE_SURFACE + inside)
        })
    }
}

impl<R: Real + bytemuck::Pod> CirculationRegisters<R> {
    /// Packs fine-side registers between `level` and `level + 1`: reference and change of each row.
    pub(super) fn pack(&self, level: usize, rows: &[Piece], out: &mut [u8]) {
        let pair = &self.pairs[level];
        let ranges = rows.iter().map(|row| self.fine_range(row));
        pack_values([&pair.reference, &pair.change], ranges, out);
    }

    /// Sets fine-side registers from the bytes of [`CirculationRegisters::pack`].
    pub(super) fn unpack(&mut self, level: usize, rows: &[Piece], bytes: &[u8]) {
        let ranges: Vec<_> = rows.iter().map(|row| self.fine_range(row)).collect();
        let pair = &mut self.pairs[level];
        unpack_values([&mut pair.reference, &mut pair.change], ranges, bytes);
    }

    fn fine_range(&self, of: &Piece) -> std::ops::Range<usize> {
        let slot = self.fine_slot[of.row as usize];
        range_of(slot, self.components * FINE_SURFACE)
    }
}

/// Returns the values of a slot.
fn range_of(slot: u32, length: usize) -> std::ops::Range<usize> {
    slot as usize * length..(slot as usize + 1) * length
}

/// Replaces a list of rows and their slots.
fn relist(list: &mut Vec<u32>, rows: Vec<u32>, slots: &mut [u32]) {
    for &row in list.iter() {
        slots[row as usize] = NONE;
    }
    for (slot, &row) in rows.iter().enumerate() {
        slots[row as usize] = slot as u32;
    }
    *list = rows;
}
