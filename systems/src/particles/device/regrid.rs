//! Moves particles on a device when patches are refined or removed, and makes space for uploads.

use super::compaction::ReservedRows;
use super::kernels::KernelBuffers;
use super::lists::RowSpan;
use super::lists::{DeviceParticles, ListId, PatchSpans, pieces};
use nestar_engine::data::{CoveringLeaf, RefinedPatch};
use nestar_engine::device::{DeviceError, LaunchShape};
use nestar_engine::mesh::Topology;
use nestar_kernels::particles::device::{PageArray, RemapParameters, SAME_PATCH, TO_CHILDREN};
use std::ops::Range;

/// Threads per block.
const THREADS: u32 = 128;

/// Chunks to be moved from both lists of a level, as [`RemapParameters::pieces`], and their number of
/// particles.
struct RemapPieces {
    level: usize,
    lists: [Vec<u32>; 2],
    particles: usize,
}

/// Particles that join a list, and whether they include those of the list.
struct Joining(ReservedRows, bool);

impl RemapPieces {
    fn from(level: usize) -> Self {
        Self {
            level,
            lists: Default::default(),
            particles: 0,
        }
    }

    /// Adds the particles of a patch, to be moved to a row.
    fn add(&mut self, patch: &PatchSpans, row: u32, relation: i32) {
        for (list, span) in patch.lists.iter().enumerate() {
            self.add_list(list, *span, row, relation);
        }
    }

    fn add_list(&mut self, list: usize, span: RowSpan, row: u32, relation: i32) {
        self.lists[list].extend(pieces_to(span, row, relation));
        self.particles += span.count as usize;
    }
}

/// Splits particles into chunks with a target, as [`RemapParameters::pieces`].
fn pieces_to(span: RowSpan, row: u32, relation: i32) -> Vec<u32> {
    let pieces: Vec<u32> = pieces(row, span).collect();
    let pieces = pieces.as_chunks().0.iter();
    let pieces = pieces.map(|&[row, first, count]| [row, relation as u32, first, count]);
    pieces.flatten().collect()
}

impl DeviceParticles {
    /// Detaches the particles of patches that are about to be removed, in this order.
    pub fn detach(&mut self, rows: &[u32]) {
        for &row in rows {
            self.detached.push(self.patches[row as usize]);
            self.forget(row);
        }
    }

    /// Moves particles of removed patches to their new leaves, and those of refined patches to the children.
    /// Returns the records of particles without a leaf on this rank.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice.
    pub fn reinsert_detached(
        &mut self,
        topology: &Topology,
        above: &[Option<CoveringLeaf>],
        refined: &[RefinedPatch],
    ) -> Result<Vec<Vec<u8>>, DeviceError> {
        let detached = std::mem::take(&mut self.detached);
        let detached: Vec<_> = detached.into_iter().zip(above).collect();
        // particles without a leaf here leave the device
        let gone = detached.iter().map(|(patch, above)| match above {
            None => *patch,
            Some(_) => PatchSpans::default(),
        });
        let records = self.records_of(&gone.collect::<Vec<_>>(), self.numbers())?;
        for level in 0..self.buffers.len() - 1 {
            let mut up = RemapPieces::from(level + 1);
            for (patch, above) in detached
                .iter()
                .filter(|(patch, _)| patch.level == level + 1)
            {
                if let Some((row, child)) = **above {
                    up.add(patch, row, child as i32);
                }
            }
            let mut down = RemapPieces::from(level);
            let is_here = |row: u32| topology.level(row) == Some(level);
            for &(row, first) in refined.iter().filter(|(row, _)| is_here(*row)) {
                down.add(&self.patches[row as usize], first, TO_CHILDREN);
                self.forget(row);
            }
            let coarse = ListId { level, list: 1 };
            let fine = ListId {
                level: level + 1,
                list: 0,
            };
            let mut joining = Vec::new();
            for (at, moves) in [(coarse, up), (fine, down)] {
                if moves.particles > 0 {
                    joining.push((at, self.gather_joining(topology, at, moves)?));
                }
            }
            // the sources of both lists must stay in place until here
            for (at, Joining(joining, is_all)) in joining {
                let new = match is_all {
                    true => joining,
                    false => self.append(topology, at, Some(joining), |_| 0)?,
                };
                self.commit(topology, at, new)?;
            }
        }
        self.trim()?;
        Ok(records)
    }

    /// Gathers the particles that join a list in separate memory, together with those of the list where these
    /// are fewer.
    fn gather_joining(
        &self,
        topology: &Topology,
        ListId { level, list }: ListId,
        moves: RemapPieces,
    ) -> Result<Joining, DeviceError> {
        let rows = topology.rows(level);
        let mut own = RemapPieces::from(level);
        for &row in rows {
            own.add_list(
                list,
                self.patches[row as usize].lists[list],
                row,
                SAME_PATCH,
            );
        }
        let is_all = moves.particles >= own.particles;
        let all: Vec<RemapPieces> = std::iter::once(moves)
            .chain(is_all.then_some(own))
            .collect();
        let (device, memory) = (&self.kernels.device, &mut *self.kernels.memory());
        let pieces = all.iter().flat_map(|moves| &moves.lists);
        let pieces: Vec<u32> = pieces.flatten().copied().collect();
        memory.pieces.set(device, &pieces)?;
        let mut counts = vec![0; topology.capacity() + 1];
        let cursors = memory.cursors.provide(device, counts.len())?;
        device.fill_zero(cursors, 0..counts.len())?;
        self.remap_all(memory, &all, PageArray::default())?;
        if let Some(cursors) = memory.cursors.buffer() {
            device.download(cursors, 0, &mut counts)?;
        }
        let new = self.reserve_separate(rows, &mut counts)?;
        memory.cursors.set(device, &counts)?;
        self.remap_all(
            memory,
            &all,
            self.page_array_of(ListId { level, list }, &new),
        )?;
        Ok(Joining(new, is_all))
    }

    /// Compacts a list in place, appends joining particles, and leaves space for `more` particles per row.
    /// Cursors point to this space.
    pub(super) fn append(
        &mut self,
        topology: &Topology,
        ListId { level, list }: ListId,
        joining: Option<ReservedRows>,
        more: impl Fn(u32) -> u32,
    ) -> Result<ReservedRows, DeviceError> {
        let (at, rows) = (ListId { level, list }, topology.rows(level));
        let spans = rows
            .iter()
            .map(|&row| self.patches[row as usize].lists[list]);
        let spans: Vec<RowSpan> = spans.collect();
        let (mut counts, mut all) = (vec![0; topology.capacity() + 1], Vec::new());
        let mut starts = vec![0];
        for (&row, span) in rows.iter().zip(&spans) {
            counts[row as usize] = span.count + more(row);
            all.extend(pieces_to(*span, row, SAME_PATCH));
            starts.push(all.len() / 4);
        }
        if let Some(joining) = &joining {
            for (&row, span) in rows.iter().zip(&joining.plan.spans) {
                counts[row as usize] += span.count;
                all.extend(pieces_to(*span, row, SAME_PATCH));
            }
        }
        let old = self.buffers[level][list].page_array(self.columns);
        let new = self.reserve(topology, at, &mut counts)?;
        let (to, memory) = (self.page_array_of(at, &new), &mut *self.kernels.memory());
        memory.pieces.set(&self.kernels.device, &all)?;
        memory.cursors.set(&self.kernels.device, &counts)?;
        for batch in &new.plan.batches {
            self.remap(memory, old, starts[batch.start]..starts[batch.end], to)?;
        }
        if let Some(joining) = &joining {
            let own = starts[rows.len()];
            self.remap(
                memory,
                self.page_array_of(at, joining),
                own..all.len() / 4,
                to,
            )?;
        }
        Ok(new)
    }

    /// Launches the kernel on all chunks, list by list.
    fn remap_all(
        &self,
        memory: &KernelBuffers,
        all: &[RemapPieces],
        to: PageArray,
    ) -> Result<(), DeviceError> {
        let mut first = 0;
        for moves in all {
            for (list, own) in moves.lists.iter().enumerate() {
                let (from, end) = (&self.buffers[moves.level][list], first + own.len() / 4);
                self.remap(memory, from.page_array(self.columns), first..end, to)?;
                first = end;
            }
        }
        Ok(())
    }

    /// Launches the kernel on a range of chunks.
    fn remap(
        &self,
        memory: &KernelBuffers,
        from: PageArray,
        pieces: Range<usize>,
        to: PageArray,
    ) -> Result<(), DeviceError> {
        let args = RemapParameters {
            from,
            pieces: (memory.pieces.address() + 16 * pieces.start as u64).into(),
            to,
            cursors: memory.cursors.address().into(),
            numbers: self.numbers(),
        };
        let kernels = &*self.kernels;
        kernels.device.launch(
            &kernels.remap,
            LaunchShape::of(pieces.len(), THREADS),
            &args,
        )
    }
}
