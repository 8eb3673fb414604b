//! In-place compaction: plans batches of patches that overwrite only memory that earlier batches have read, and scatters
//! the particles batch by batch.

use super::kernels::{KernelBuffers, ListLaunch};
use super::lists::{DeviceParticles, ListId, PageBuffer, RowSpan};
use super::predict::{DeviceStep, SourceList};
use nestar_engine::device::{DeviceError, LaunchShape};
use nestar_kernels::particles::device::{CHUNK, DriftParameters, PageArray, PlaceStagedParameters};
use std::ops::Range;

/// Number of batches above which a list gets more memory, because each batch is a kernel launch.
const MAX_BATCHES: usize = 12;

/// Memory of a list of particles.
#[derive(Clone, Copy)]
pub(super) struct Capacity {
    /// Capacity in rows.
    pub rows: usize,
    /// Lists of up to this number of particles are double-buffered.
    pub double_buffer_limit: usize,
    /// `true` to accept any number of batches instead of more memory.
    pub low_memory: bool,
}

impl Capacity {
    fn headroom(self, particles: usize) -> usize {
        match self.low_memory {
            true => 0,
            false => headroom(particles, self.double_buffer_limit),
        }
    }

    /// Returns the largest number of batches for this number of particles.
    fn batches(self, particles: usize) -> usize {
        match self.low_memory {
            true => usize::MAX,
            false if particles <= self.double_buffer_limit => 2,
            false => MAX_BATCHES,
        }
    }
}

/// Returns the headroom in rows that keeps the number of batches small; short lists get the full size.
pub(super) fn headroom(particles: usize, double_buffer_limit: usize) -> usize {
    (particles / 5).max(particles.min(double_buffer_limit))
}

/// Plan of an in-place compaction: new rows of the particles of each patch, and batches of patches.
#[derive(Debug)]
pub(super) struct CompactionPlan {
    /// New rows of each patch.
    pub spans: Vec<RowSpan>,
    /// Patches of each batch.
    pub batches: Vec<Range<usize>>,
    /// First row in use.
    pub first: usize,
    /// Number of particles.
    pub used: usize,
    /// Capacity needed, in rows.
    pub capacity: usize,
}

impl CompactionPlan {
    /// Plans one batch into separate memory.
    pub fn separate(counts: &[u32]) -> Self {
        let all = std::iter::once(0..counts.len());
        Self::from(0, counts, all.collect())
    }

    /// Plans batches within the memory of the particles, which may have to grow. Returns `None` if the
    /// particles are not in the order of the patches.
    pub fn in_place(old: &[RowSpan], counts: &[u32], capacity: Capacity) -> Option<Self> {
        let used = counts.iter().map(|&count| count as usize).sum();
        let (begins, ends) = bounds(old)?;
        let most = capacity.batches(used);
        let plan = Self::from(0, counts, Vec::new());
        plan.forward(&begins, most).or_else(|| {
            let top = |rows| Self::from(rows - used, counts, Vec::new());
            let here = (capacity.rows >= used).then(|| top(capacity.rows).backward(&ends, most));
            let more = smallest_end(&ends, counts) + capacity.headroom(used);
            here.flatten()
                .or_else(|| top(more).backward(&ends, usize::MAX))
        })
    }

    fn from(first: usize, counts: &[u32], batches: Vec<Range<usize>>) -> Self {
        let mut next = first;
        let spans = counts.iter().map(|&count| {
            let first = next as u32;
            next += count as usize;
            RowSpan { first, count }
        });
        Self {
            spans: spans.collect(),
            batches,
            first,
            used: next - first,
            capacity: next,
        }
    }

    /// Splits the patches into batches from first to last, if possible.
    fn forward(mut self, begins: &[usize], most: usize) -> Option<Self> {
        let end = |n: usize| (self.spans[n].first + self.spans[n].count) as usize;
        self.batches = batches(begins.len(), most, |from, last| end(last) <= begins[from])?;
        Some(self)
    }

    /// Splits the patches into batches from last to first, if possible.
    fn backward(mut self, ends: &[usize], most: usize) -> Option<Self> {
        let mirrored = |n: usize| ends.len() - 1 - n;
        let begin = |n: usize| self.spans[mirrored(n)].first as usize;
        let fits = |from: usize, last| begin(last) >= ends[mirrored(from)];
        let batches = batches(ends.len(), most, fits)?;
        let batches = batches
            .into_iter()
            .map(|batch| ends.len() - batch.end..ends.len() - batch.start);
        self.batches = batches.collect();
        Some(self)
    }
}

/// Returns two bounds per patch: the first old row of this and all later patches, and the end of this and all
/// earlier ones. Returns `None` if the patches are not in order.
fn bounds(old: &[RowSpan]) -> Option<(Vec<usize>, Vec<usize>)> {
    let mut end = 0;
    let mut ends = Vec::with_capacity(old.len());
    for span in old {
        if span.count > 0 {
            if (span.first as usize) < end {
                return None;
            }
            end = (span.first + span.count) as usize;
        }
        ends.push(end);
    }
    let mut begin = usize::MAX;
    let mut begins = vec![begin; old.len()];
    for (span, to) in old.iter().zip(&mut begins).rev() {
        if span.count > 0 {
            begin = span.first as usize;
        }
        *to = begin;
    }
    Some((begins, ends))
}

/// Returns the smallest end of the new rows such that each patch fits above its old rows, from the last patch
/// on.
fn smallest_end(ends: &[usize], counts: &[u32]) -> usize {
    let (mut later, mut smallest_end) = (0, 0);
    for (end, &count) in ends.iter().zip(counts).rev() {
        later += count as usize;
        smallest_end = smallest_end.max(end + later);
    }
    smallest_end
}

/// Fills each batch with as many patches as fit. Returns `None` if a patch does not fit, or if more than
/// `most` batches are needed.
fn batches(
    count: usize,
    most: usize,
    fits: impl Fn(usize, usize) -> bool,
) -> Option<Vec<Range<usize>>> {
    let (mut batches, mut from) = (Vec::new(), 0);
    while from < count {
        let fitting = (from..count).take_while(|&last| fits(from, last)).count();
        if fitting == 0 || batches.len() == most {
            return None;
        }
        batches.push(from..from + fitting);
        from += fitting;
    }
    Some(batches)
}

/// New rows of a list, in its own memory or in separate memory.
pub(super) struct ReservedRows {
    pub plan: CompactionPlan,
    pub separate: Option<PageBuffer>,
}

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

#[cfg(test)]
mod tests {
    use super::super::lists::DOUBLE_BUFFER_LIMIT;
    use super::*;

    /// Moves particles as the kernels do: a batch reads all of its patches before it writes.
    fn check(
        old: &[RowSpan],
        counts: &[u32],
        rows: usize,
        double_buffer_limit: usize,
    ) -> CompactionPlan {
        check_in(
            old,
            counts,
            Capacity {
                rows,
                double_buffer_limit,
                low_memory: false,
            },
        )
    }

    fn check_in(old: &[RowSpan], counts: &[u32], capacity: Capacity) -> CompactionPlan {
        let plan = CompactionPlan::in_place(old, counts, capacity).expect("a plan");
        let mut rows = vec![None; plan.capacity.max(capacity.rows)];
        for (patch, span) in old.iter().enumerate() {
            let own = &mut rows[span.first as usize..][..span.count as usize];
            own.fill(Some(patch));
        }
        for batch in &plan.batches {
            for patch in batch.clone() {
                let RowSpan { first, count } = old[patch];
                let own = &rows[first as usize..][..count as usize];
                assert!(
                    own.iter().all(|&row| row == Some(patch)),
                    "{patch} {plan:?}"
                );
            }
            for patch in batch.clone() {
                let RowSpan { first, count } = plan.spans[patch];
                assert_eq!(count, counts[patch]);
                // a value that is no patch number
                rows[first as usize..][..count as usize].fill(Some(usize::MAX));
            }
        }
        let mut seen: Vec<usize> = plan.batches.iter().flat_map(Clone::clone).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..counts.len()).collect::<Vec<_>>());
        plan
    }

    fn random(n: u64) -> u64 {
        let n = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (n ^ n >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
    }

    #[test]
    fn repeated_compactions_overwrite_only_memory_already_read() {
        let patches = 300;
        let mut counts: Vec<u32> = (0..patches).map(|n| random(n) as u32 % 6_000).collect();
        let plan = CompactionPlan::separate(&counts);
        let (mut old, mut capacity) = (plan.spans, plan.capacity);
        for step in 0..40 {
            for (n, count) in counts.iter_mut().enumerate() {
                let change = random(step * patches + n as u64 + 7) as i64 % 600 - 297;
                *count = (i64::from(*count) + change).max(0) as u32;
            }
            let plan = check(&old, &counts, capacity, 0);
            assert!(plan.batches.len() <= 2 * MAX_BATCHES);
            assert!(
                plan.capacity.max(capacity) <= plan.used * 4 / 3,
                "{step} {} {}",
                plan.capacity,
                plan.used
            );
            (old, capacity) = (plan.spans, capacity.max(plan.capacity));
        }
    }

    #[test]
    fn double_buffered_lists_take_one_batch() {
        let counts = [0, 64, 3, 0, 500];
        let old = CompactionPlan::separate(&counts);
        let up = check(
            &old.spans,
            &[5, 60, 1, 0, 501],
            old.capacity,
            DOUBLE_BUFFER_LIMIT,
        );
        assert_eq!((up.batches.len(), up.first), (1, up.capacity - 567));
        let down = check(
            &up.spans,
            &[7, 58, 1, 0, 501],
            up.capacity,
            DOUBLE_BUFFER_LIMIT,
        );
        assert_eq!((down.batches.len(), down.first), (1, 0));
    }

    #[test]
    fn a_patch_with_nearly_all_particles_fits() {
        let counts = [10, 3_000_000, 20];
        let old = CompactionPlan::separate(&counts);
        let plan = check(
            &old.spans,
            &[3_000_000, 20, 10],
            old.capacity,
            DOUBLE_BUFFER_LIMIT,
        );
        check(
            &plan.spans,
            &[1, 0, 4_000_000],
            plan.capacity,
            DOUBLE_BUFFER_LIMIT,
        );
    }

    #[test]
    fn low_memory_takes_more_batches() {
        let counts: Vec<u32> = (0..500).map(|n| random(n) as u32 % 90).collect();
        let old = CompactionPlan::separate(&counts);
        let reversed = counts.iter().rev().copied().collect::<Vec<_>>();
        let with = |low_memory| Capacity {
            rows: old.capacity,
            double_buffer_limit: 0,
            low_memory,
        };
        let [ample, scarce] = [false, true].map(|is| check_in(&old.spans, &reversed, with(is)));
        assert!(scarce.capacity < ample.capacity && scarce.batches.len() > ample.batches.len());
        assert!(scarce.capacity < old.capacity + 2000, "{}", scarce.capacity);
    }

    #[test]
    fn another_order_of_patches_needs_separate_memory() {
        let swapped = [7, 0].map(|first| RowSpan { first, count: 7 });
        let capacity = Capacity {
            rows: 100,
            double_buffer_limit: DOUBLE_BUFFER_LIMIT,
            low_memory: false,
        };
        assert!(CompactionPlan::in_place(&swapped, &[7, 7], capacity).is_none());
        let plan = check(&[RowSpan::default(); 2], &[7, 7], 0, DOUBLE_BUFFER_LIMIT);
        assert_eq!((plan.batches.len(), plan.capacity), (1, 14));
    }
}
