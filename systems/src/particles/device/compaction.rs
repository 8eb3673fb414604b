//! Scatters particles to their new rows in the batches of an in-place compaction.

use super::capacity::ReservedRows;
use super::kernels::{KernelBuffers, ListLaunch};
use super::lists::{DeviceParticles, ListId};
use super::predict::{DeviceStep, SourceList};
use nestar_engine::device::{DeviceError, LaunchShape};
use nestar_kernels::particles::device::{CHUNK, DriftParameters, PageArray, PlaceStagedParameters};

/// Particles of a source list that are scattered by one launch.
struct ScatterBatch {
    at: ListId,
    args: DriftParameters,
    launch: ListLaunch,
}

impl DeviceParticles {
    /// Scatters all particles that stay on this rank. `starts` is the exclusive scan of the counts per row in
    /// these page arrays.
    pub(super) fn scatter(
        &self,
        step: &DeviceStep,
        new: &[ReservedRows],
        starts: &[u32],
        page_arrays: [PageArray; 4],
        sources: &[SourceList],
    ) -> Result<(), DeviceError> {
        let kernels = &*self.kernels;
        let memory = &mut *kernels.memory();
        memory.cursors.set(&kernels.device, starts)?;
        let mut free = vec![0; starts.len()];
        let mut batches = self.batches(step, new, sources, &mut free);
        for ScatterBatch { args, .. } in &mut batches {
            (args.to, args.cursors) = (page_arrays, memory.cursors.address().into());
        }
        let mut staged = 0;
        if free.iter().any(|&batch| batch > 0) {
            memory.free_from_batch.set(&kernels.device, &free)?;
            for ScatterBatch { args, .. } in &mut batches {
                args.free_from_batch = memory.free_from_batch.address().into();
            }
            staged = self.stage(memory, sources, &batches)?;
        }
        let bytes = 2 * self.columns.bytes();
        for ScatterBatch { args, launch, .. } in &batches {
            kernels.work(&kernels.scatter, launch, bytes, args)?;
        }
        self.place_staged(memory, staged, page_arrays)
    }

    /// Returns the batches of all sources in order. `free` becomes the first batch in which the target rows
    /// of each patch are free.
    fn batches(
        &self,
        step: &DeviceStep,
        new: &[ReservedRows],
        sources: &[SourceList],
        free: &mut [u32],
    ) -> Vec<ScatterBatch> {
        let mut batches = Vec::new();
        for (at, new) in step.lists().into_iter().zip(new) {
            let ListId { level, list } = at;
            let Some(source) = sources.iter().find(|source| source.at == at) else {
                continue;
            };
            let rows = step.topology.rows(level);
            let (mut piece, mut firsts) = (0, vec![0]);
            for &row in rows {
                piece += (self.patches[row as usize].lists[list].count as usize).div_ceil(CHUNK);
                firsts.push(piece);
            }
            for (n, patches) in new.plan.batches.iter().enumerate() {
                let batch = batches.len() as u32;
                let own = &rows[patches.clone()];
                // the first batch overwrites nothing
                for &row in own.iter().filter(|_| n > 0) {
                    free[list * step.rows() + row as usize] = batch;
                }
                let count = |&row: &u32| self.patches[row as usize].lists[list].count as usize;
                let pieces = firsts[patches.start]..firsts[patches.end];
                let launch = source.launch.part(pieces, own.iter().map(count).sum());
                let args = DriftParameters {
                    from: launch.list,
                    batch,
                    ..source.args
                };
                batches.push(ScatterBatch { at, args, launch });
            }
        }
        batches
    }

    /// Stages particles whose target rows are not free at the time of their batch. Returns their number.
    fn stage(
        &self,
        memory: &mut KernelBuffers,
        sources: &[SourceList],
        batches: &[ScatterBatch],
    ) -> Result<usize, DeviceError> {
        let kernels = &*self.kernels;
        let particles: usize = batches.iter().map(|batch| batch.launch.particles).sum();
        let mut room = particles / 64 + self.double_buffer_limit.min(1024);
        loop {
            let page_array = self.pages(&mut memory.staged, room)?;
            let tags = memory.tags.provide(&kernels.device, room)?.address();
            kernels.device.fill_zero(&kernels.words, 0..1)?;
            for SourceList { launch, at, .. } in sources {
                let of_source = |batch: &&ScatterBatch| batch.at == *at;
                let Some(first) = batches.iter().find(of_source) else {
                    continue;
                };
                let args = DriftParameters {
                    from: launch.list,
                    to: [page_array; 4],
                    tags: tags.into(),
                    room: room as i64,
                    staged: kernels.words.address().into(),
                    ..first.args
                };
                // all particles are read, few are staged
                kernels.work(&kernels.stage, launch, 1, &args)?;
            }
            let mut count = [0];
            kernels.device.download(&kernels.words, 0, &mut count)?;
            let count = count[0] as usize;
            if count <= room {
                return Ok(count);
            }
            room = count;
        }
    }

    /// Moves staged particles to their rows.
    fn place_staged(
        &self,
        memory: &KernelBuffers,
        count: usize,
        to: [PageArray; 4],
    ) -> Result<(), DeviceError> {
        let kernels = &*self.kernels;
        let args = PlaceStagedParameters {
            from: self.page_array_at(memory.staged.address()),
            tags: memory.tags.address().into(),
            to,
            count: count as i64,
            numbers: self.numbers(),
        };
        let shape = LaunchShape::of(count.div_ceil(128).min(1 << 14), 128);
        kernels.device.launch(&kernels.place_staged, shape, &args)
    }
}
