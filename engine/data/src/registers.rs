//! Flux registers: record fluxes through coarse-fine faces from both sides (Berger & Colella, J. Comput. Phys. 82, 64,
//! 1989).
//!
//! A register belongs to one face of one patch and is written by that patch alone. At synchronisation, the coarse patch
//! reads the registers of its fine neighbours.

use super::store::Piece;
use nestar_device::Real;
use nestar_engine_device::parallel::SharedCells;
use nestar_engine_mesh::Topology;
use nestar_engine_mesh::topology::links::remote_faces;
use nestar_kernels::mesh::fluxes::{FACE, FineFlux, QUARTER, fine_means, with_share};
use nestar_kernels::mesh::{COARSER, face_direction};
use std::ops::Range;

/// Marks a face without register.
const NONE: u32 = u32::MAX;

/// The registers between level `l` and `l + 1`.
struct LevelPair<R> {
    /// Faces of leaf patches of level `l` with a refined neighbour, (row, face), grouped by row.
    coarse: Vec<(u32, u8)>,
    /// Rows of `coarse` with their ranges of slots.
    corrected: Vec<(u32, Range<usize>)>,
    /// Faces of patches of level `l + 1` with a coarser neighbour, (row, face). Those of this rank come before those of
    /// other ranks that touch leaf patches of level `l` here.
    fine: Vec<(u32, u8)>,
    /// Coarse fluxes of the latest step, `[slot][component][8][8]`.
    coarse_flux: SharedCells<R>,
    /// Fine fluxes of the first fine step within the coarse step, `[slot][component][4][4]`.
    reference: SharedCells<R>,
    /// Sum of `dt * (flux - reference)` over the later fine steps. Exactly 0 for constant fluxes, so that a state at
    /// rest stays at rest at a coarse-fine face.
    change: SharedCells<R>,
    /// Fine fluxes of the tentative step; they count once it is accepted.
    attempt: SharedCells<R>,
    /// Sums of coarse and fine fluxes over the stages of a step. The stages alternate between these and `coarse_flux` and `attempt`: each reads
    /// the sums before it and writes the others, so that it can be repeated. Empty if steps have one stage.
    stages: [SharedCells<R>; 2],
    /// `true` after the first fine step within the coarse step.
    begun: bool,
}

impl<R: Real> LevelPair<R> {
    /// Resizes the registers to the listed faces and sets them to zero.
    fn reset(&mut self, components: usize, has_stages: bool) {
        let zero = R::lit(0.0);
        let fine = self.fine.len() * components * QUARTER;
        let coarse = self.coarse.len() * components * FACE;
        self.coarse_flux.reset(coarse, zero);
        if has_stages {
            self.stages[0].reset(coarse, zero);
            self.stages[1].reset(fine, zero);
        }
        self.reference.reset(fine, zero);
        self.change.reset(fine, zero);
        self.attempt.reset(fine, zero);
    }
}

/// The fine-side registers of a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FineSide {
    /// Fluxes of the tentative step.
    Tentative,
    /// Sum of `dt * (flux - reference)` over the steps since the last step of the coarser level.
    Change,
}

/// A stage of a step whose fluxes are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageShare {
    /// Number of the stage, from 0 on.
    pub stage: usize,
    /// Number of stages of the step.
    pub stages: usize,
    /// Share of the stage in the fluxes of the step.
    pub share: f64,
}

impl StageShare {
    /// Returns `true` if the sum up to this stage is stored in the registers of the tentative step, as that of the last stage is.
    #[must_use]
    pub fn is_tentative(&self) -> bool {
        (self.stages - 1 - self.stage).is_multiple_of(2)
    }
}

/// All flux registers of a field in one precision.
pub struct FluxRegisters<R> {
    components: usize,
    has_stages: bool,
    pairs: Vec<LevelPair<R>>,
    /// Slot of each row and face among the coarse-side registers of its level.
    coarse_slot: Vec<[u32; 6]>,
    /// Slot of each row and face among the fine-side registers of its level.
    fine_slot: Vec<[u32; 6]>,
}

impl<R: Real> FluxRegisters<R> {
    /// Creates registers for `components` components on `levels` levels and steps of `stages` stages; none are in use.
    #[must_use]
    pub fn new(components: usize, levels: usize, stages: usize) -> Self {
        let pair = || LevelPair {
            coarse: Vec::new(),
            corrected: Vec::new(),
            fine: Vec::new(),
            coarse_flux: SharedCells::default(),
            reference: SharedCells::default(),
            change: SharedCells::default(),
            attempt: SharedCells::default(),
            stages: [SharedCells::default(), SharedCells::default()],
            begun: false,
        };
        Self {
            components,
            has_stages: stages > 1,
            pairs: (0..levels).map(|_| pair()).collect(),
            coarse_slot: Vec::new(),
            fine_slot: Vec::new(),
        }
    }

    /// Returns the memory in use, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let values: usize = self
            .pairs
            .iter()
            .map(|p| {
                let stages = p.stages[0].len() + p.stages[1].len();
                p.coarse_flux.len() + 3 * p.attempt.len() + stages
            })
            .sum();
        values * size_of::<R>() + self.coarse_slot.len() * 48
    }

    /// Rebuilds the registers between `level` and `level + 1` after a regrid; all become zero.
    pub fn rebuild(&mut self, topology: &Topology, level: usize) {
        self.coarse_slot.resize(topology.capacity(), [NONE; 6]);
        self.fine_slot.resize(topology.capacity(), [NONE; 6]);
        let pair = &mut self.pairs[level];
        clear(&mut pair.coarse, &mut self.coarse_slot);
        clear(&mut pair.fine, &mut self.fine_slot);
        for &row in topology.rows(level) {
            if topology.is_leaf(row) {
                list_faces(
                    topology,
                    row,
                    &mut pair.coarse,
                    &mut self.coarse_slot,
                    |n| u32::try_from(n).is_ok_and(|n| !topology.is_leaf(n)),
                );
            }
        }
        pair.corrected.clear();
        for (slot, &(row, _)) in pair.coarse.iter().enumerate() {
            match pair.corrected.last_mut() {
                Some((last, range)) if *last == row => range.end = slot + 1,
                _ => pair.corrected.push((row, slot..slot + 1)),
            }
        }
        for &row in topology.rows(level + 1) {
            list_faces(topology, row, &mut pair.fine, &mut self.fine_slot, |n| {
                n == COARSER
            });
        }
        for (row, face) in remote_faces(topology, level) {
            self.fine_slot[row as usize][face as usize] = pair.fine.len() as u32;
            pair.fine.push((row, face));
        }
        pair.reset(self.components, self.has_stages);
    }

    /// Returns `true` if face `face` of `row` has a register on either side.
    #[must_use]
    pub fn has_register(&self, row: u32, face: usize) -> bool {
        self.coarse_slot[row as usize][face] != NONE || self.fine_slot[row as usize][face] != NONE
    }

    /// Returns the coarse-side register of a face of a patch of `level`, `[component][8][8]`.
    ///
    /// # Safety
    /// Only one user of a row at a time.
    #[must_use]
    #[allow(
        clippy::mut_from_ref,
        reason = "patches write their own registers from several threads; exclusivity is the caller's contract"
    )]
    pub unsafe fn coarse_mut(&self, level: usize, row: u32, face: usize) -> Option<&mut [R]> {
        let length = self.components * FACE;
        match self.coarse_slot[row as usize][face] as usize {
            slot if slot == NONE as usize => None,
            // SAFETY: a slot belongs to one row; exclusivity is the caller's contract.
            slot => Some(unsafe {
                self.pairs[level]
                    .coarse_flux
                    .slice_mut(slot * length..(slot + 1) * length)
            }),
        }
    }

    /// Returns a fine-side register of a face of a patch of `level`, `[component][4][4]`.
    ///
    /// # Safety
    /// As [`FluxRegisters::coarse_mut`].
    #[must_use]
    #[allow(
        clippy::mut_from_ref,
        reason = "patches write their own registers from several threads; exclusivity is the caller's contract"
    )]
    pub unsafe fn fine_mut(
        &self,
        level: usize,
        row: u32,
        face: usize,
        side: FineSide,
    ) -> Option<&mut [R]> {
        let length = self.components * QUARTER;
        let slot = self.fine_slot[row as usize][face];
        (slot != NONE).then(|| {
            let (pair, slot) = (&self.pairs[level - 1], slot as usize);
            let values = match side {
                FineSide::Tentative => &pair.attempt,
                FineSide::Change => &pair.change,
            };
            // SAFETY: as above.
            unsafe { values.slice_mut(slot * length..(slot + 1) * length) }
        })
    }

    /// Records the flux through face `face` of `row`, `[component][8][8]`. With a step length `adds`, it is added to
    /// the fluxes of the step.
    ///
    /// # Safety
    /// As [`FluxRegisters::coarse_mut`].
    pub unsafe fn record(
        &self,
        level: usize,
        row: u32,
        face: usize,
        flux: &[R],
        adds: Option<f64>,
    ) {
        // SAFETY: the caller's contract.
        if let Some(coarse) = unsafe { self.coarse_mut(level, row, face) } {
            match adds {
                None => coarse.copy_from_slice(flux),
                Some(_) => coarse
                    .iter_mut()
                    .zip(flux)
                    .for_each(|(sum, &flux)| *sum += flux),
            }
        }
        let side = adds.map_or(FineSide::Tentative, |_| FineSide::Change);
        // SAFETY: the caller's contract.
        let Some(fine) = (unsafe { self.fine_mut(level, row, face, side) }) else {
            return;
        };
        let registers = fine.iter_mut().zip(fine_means(flux));
        match adds {
            None => registers.for_each(|(register, mean)| *register = mean),
            Some(dt) => registers.for_each(|(register, mean)| *register += R::lit(dt) * mean),
        }
    }

    /// Records the flux through face `face` of `row` in a stage of a step, `[component][8][8]`: its share is added to those of earlier stages.
    /// A stage can be repeated.
    ///
    /// # Safety
    /// As [`FluxRegisters::coarse_mut`].
    pub unsafe fn record_stage(
        &self,
        level: usize,
        row: u32,
        face: usize,
        flux: &[R],
        stage: StageShare,
    ) {
        let (coarse, fine) = (
            self.coarse_slot[row as usize][face],
            self.fine_slot[row as usize][face],
        );
        if coarse != NONE {
            let length = self.components * FACE;
            let range = coarse as usize * length..(coarse as usize + 1) * length;
            let pair = &self.pairs[level];
            // SAFETY: a slot belongs to one row; exclusivity is the caller's contract.
            let both = [&pair.coarse_flux, &pair.stages[0]]
                .map(|values| unsafe { values.slice_mut(range.clone()) });
            add_stage(both, flux.iter().copied(), stage);
        }
        if fine != NONE {
            let length = self.components * QUARTER;
            let range = fine as usize * length..(fine as usize + 1) * length;
            let pair = &self.pairs[level - 1];
            // SAFETY: as above.
            let both = [&pair.attempt, &pair.stages[1]]
                .map(|values| unsafe { values.slice_mut(range.clone()) });
            add_stage(both, fine_means(flux), stage);
        }
    }

    /// Accepts a step of `level` of length `dt`: adds its fluxes to the sums for the coarser level.
    /// The sums of the finer level restart.
    pub fn commit(&mut self, level: usize, dt: f64) {
        self.pairs[level].begun = false;
        let Some(pair) = level.checked_sub(1).map(|below| &mut self.pairs[below]) else {
            return;
        };
        let attempt = pair.attempt.as_mut_slice();
        if std::mem::replace(&mut pair.begun, true) {
            let sums = pair.change.as_mut_slice().iter_mut();
            for ((sum, reference), flux) in sums.zip(pair.reference.as_mut_slice()).zip(attempt) {
                *sum += R::lit(dt) * (*flux - *reference);
            }
        } else {
            pair.reference.as_mut_slice().copy_from_slice(attempt);
            pair.change.as_mut_slice().fill(R::lit(0.0));
        }
    }

    /// Returns the patches of `level` with coarse-side registers and their slots.
    #[must_use]
    pub fn corrected(&self, level: usize) -> &[(u32, Range<usize>)] {
        &self.pairs[level].corrected
    }

    /// Returns face and coarse-side fluxes of slot `slot` of `level`.
    #[must_use]
    pub fn coarse(&self, level: usize, slot: usize) -> (usize, &[R]) {
        let length = self.components * FACE;
        let pair = &self.pairs[level];
        let range = slot * length..(slot + 1) * length;
        // SAFETY: registers are written only during `Advance`, never at synchronisation.
        (pair.coarse[slot].1 as usize, unsafe {
            pair.coarse_flux.slice(range)
        })
    }

    /// Returns the fluxes of the four fine patches across face `face` of `row`, by quarter (`2*slow + fast`).
    #[must_use]
    pub fn fine(
        &self,
        topology: &Topology,
        level: usize,
        row: u32,
        face: usize,
    ) -> [FineFlux<'_, R>; 4] {
        let beyond = topology.neighbours(row)[face_direction(face)] as u32;
        let first = topology
            .first_child(beyond)
            .expect("a coarse-side register has a refined neighbour");
        let length = self.components * QUARTER;
        let [slow, fast] = [[2, 1], [2, 0], [1, 0]][face / 2];
        let pair = &self.pairs[level];
        std::array::from_fn(|q| {
            // across a lower face lies the upper half of the neighbour
            let child = (1 - face as u32 % 2) << (face / 2)
                | (q as u32 & 1) << fast
                | (q as u32 >> 1) << slow;
            let slot = self.fine_slot[(first + child) as usize][face ^ 1] as usize;
            let range = slot * length..(slot + 1) * length;
            // SAFETY: registers are written only during `Advance`, never at synchronisation.
            unsafe {
                FineFlux {
                    reference: pair.reference.slice(range.clone()),
                    change: pair.change.slice(range),
                }
            }
        })
    }
}

impl<R: Real + bytemuck::Pod> FluxRegisters<R> {
    /// Packs fine-side registers between `level` and `level + 1`: reference and change.
    pub(super) fn pack(&self, level: usize, faces: &[Piece], out: &mut [u8]) {
        let pair = &self.pairs[level];
        let ranges = faces.iter().map(|face| self.fine_range(face));
        pack_values([&pair.reference, &pair.change], ranges, out);
    }

    /// Sets fine-side registers from the bytes of [`FluxRegisters::pack`].
    pub(super) fn unpack(&mut self, level: usize, faces: &[Piece], bytes: &[u8]) {
        let ranges: Vec<_> = faces.iter().map(|face| self.fine_range(face)).collect();
        let pair = &mut self.pairs[level];
        unpack_values([&mut pair.reference, &mut pair.change], ranges, bytes);
    }

    fn fine_range(&self, face: &Piece) -> Range<usize> {
        let length = self.components * QUARTER;
        let slot = self.fine_slot[face.row as usize][face.face()] as usize;
        slot * length..(slot + 1) * length
    }
}

/// Packs the values of each range from reference and change.
pub(super) fn pack_values<R: bytemuck::Pod>(
    from: [&SharedCells<R>; 2],
    ranges: impl Iterator<Item = Range<usize>>,
    mut out: &mut [u8],
) {
    for (range, values) in ranges.flat_map(|range| from.map(|values| (range.clone(), values))) {
        // SAFETY: registers are written only during `Advance`, never at synchronisation.
        let bytes: &[u8] = bytemuck::cast_slice(unsafe { values.slice(range) });
        let (part, rest) = out.split_at_mut(bytes.len());
        part.copy_from_slice(bytes);
        out = rest;
    }
}

/// Sets reference and change from the bytes of [`pack_values`].
pub(super) fn unpack_values<R: bytemuck::Pod>(
    mut to: [&mut SharedCells<R>; 2],
    ranges: Vec<Range<usize>>,
    mut bytes: &[u8],
) {
    for range in ranges {
        for values in &mut to {
            let values = bytemuck::cast_slice_mut(&mut values.as_mut_slice()[range.clone()]);
            let (part, rest) = bytes.split_at(values.len());
            values.copy_from_slice(part);
            bytes = rest;
        }
    }
}

/// Adds the share of a stage in the fluxes of a step to the sum of earlier stages. The sums of the stages alternate between both registers,
/// that of the tentative step and that of the stages.
fn add_stage<R: Real>(
    [tentative, stages]: [&mut [R]; 2],
    flux: impl Iterator<Item = R>,
    stage: StageShare,
) {
    let share = R::lit(stage.share);
    let (to, from) = match stage.is_tentative() {
        true => (tentative, stages),
        false => (stages, tentative),
    };
    for ((to, from), flux) in to.iter_mut().zip(from).zip(flux) {
        let earlier = match stage.stage {
            0 => R::lit(0.0),
            _ => *from,
        };
        *to = with_share(earlier, flux, share);
    }
}

fn clear(list: &mut Vec<(u32, u8)>, slots: &mut [[u32; 6]]) {
    for (row, face) in list.drain(..) {
        slots[row as usize][face as usize] = NONE;
    }
}

fn list_faces(
    topology: &Topology,
    row: u32,
    list: &mut Vec<(u32, u8)>,
    slots: &mut [[u32; 6]],
    has_register: impl Fn(i32) -> bool,
) {
    for face in 0..6 {
        if has_register(topology.neighbours(row)[face_direction(face)]) {
            slots[row as usize][face] = list.len() as u32;
            list.push((row, face as u8));
        }
    }
}
