//! Manages the memory of lists: reserves new rows, commits them, and returns unused memory.

use super::super::pages::{PAGE, ParticleColumns};
use super::compaction::{Capacity, CompactionPlan, ReservedRows, headroom};
use super::lists::{DOUBLE_BUFFER_LIMIT, DeviceParticles, ListId, PageBuffer, RowSpan};
use nestar_engine::device::{DeviceError, Growable};
use nestar_engine::mesh::Topology;
use nestar_kernels::particles::device::PageArray;

impl PageBuffer {
    /// Capacity in rows.
    fn capacity(&self, columns: ParticleColumns) -> usize {
        let words = self.words.as_ref().map_or(0, Growable::len);
        words / columns.page_words() * PAGE
    }

    /// Shrinks memory that is much larger than needed and free at its end.
    fn trim(
        &mut self,
        columns: ParticleColumns,
        double_buffer_limit: usize,
    ) -> Result<(), DeviceError> {
        let (rows, wanted) = (
            self.capacity(columns),
            self.used + headroom(self.used, double_buffer_limit),
        );
        match &mut self.words {
            Some(words)
                if self.first == 0 && rows > wanted + (wanted / 4).max(DOUBLE_BUFFER_LIMIT / 4) =>
            {
                words.shrink(wanted.div_ceil(PAGE) * columns.page_words())
            }
            _ => Ok(()),
        }
    }
}

impl DeviceParticles {
    /// Reserves rows for the given counts per row of the hierarchy, in place if possible. `counts` becomes
    /// their exclusive scan.
    pub(super) fn reserve(
        &mut self,
        topology: &Topology,
        at: ListId,
        counts: &mut [u32],
    ) -> Result<ReservedRows, DeviceError> {
        let rows = topology.rows(at.level);
        match self.plan(rows, at, &of_rows(rows, counts))? {
            Some(plan) => {
                write_starts(rows, counts, &plan);
                Ok(ReservedRows {
                    plan,
                    separate: None,
                })
            }
            None => self.reserve_separate(rows, counts),
        }
    }

    /// Plans an in-place compaction and grows the list if needed. Returns `None` if separate memory is
    /// needed.
    fn plan(
        &mut self,
        rows: &[u32],
        ListId { level, list }: ListId,
        counts: &[u32],
    ) -> Result<Option<CompactionPlan>, DeviceError> {
        let (columns, double_buffer_limit) = (self.columns, self.double_buffer_limit);
        let old = rows
            .iter()
            .map(|&row| self.patches[row as usize].lists[list]);
        let old: Vec<RowSpan> = old.collect();
        let buffer = &mut self.buffers[level][list];
        let rows = buffer.capacity(columns);
        for low_memory in [false, true] {
            let capacity = Capacity {
                rows,
                double_buffer_limit,
                low_memory,
            };
            let Some(plan) = CompactionPlan::in_place(&old, counts, capacity) else {
                break;
            };
            match self.kernels.grow(columns, &mut buffer.words, plan.capacity) {
                Ok(true) => return Ok(Some(plan)),
                Ok(false) => break,
                Err(DeviceError::Memory { .. }) if !low_memory => (),
                Err(e) => return Err(e),
            }
        }
        Ok(None)
    }

    /// Reserves rows in separate memory.
    pub(super) fn reserve_separate(
        &self,
        rows: &[u32],
        counts: &mut [u32],
    ) -> Result<ReservedRows, DeviceError> {
        let plan = CompactionPlan::separate(&of_rows(rows, counts));
        write_starts(rows, counts, &plan);
        let mut buffer = PageBuffer {
            used: plan.used,
            ..PageBuffer::default()
        };
        self.kernels
            .grow(self.columns, &mut buffer.words, plan.capacity)?;
        let separate = Some(buffer);
        Ok(ReservedRows { plan, separate })
    }

    /// Returns the page array of the new rows.
    pub(super) fn page_array_of(
        &self,
        ListId { level, list }: ListId,
        new: &ReservedRows,
    ) -> PageArray {
        let buffer = new.separate.as_ref().unwrap_or(&self.buffers[level][list]);
        buffer.page_array(self.columns)
    }

    /// Makes reserved rows the rows of a list.
    pub(super) fn commit(
        &mut self,
        topology: &Topology,
        ListId { level, list }: ListId,
        ReservedRows { plan, separate }: ReservedRows,
    ) -> Result<(), DeviceError> {
        for (&row, span) in topology.rows(level).iter().zip(plan.spans) {
            let patch = &mut self.patches[row as usize];
            patch.level = level;
            patch.lists[list] = span;
        }
        let buffer = &mut self.buffers[level][list];
        if let Some(separate) = separate {
            buffer.words = separate.words;
        }
        (buffer.first, buffer.used) = (plan.first, plan.used);
        (buffer.shape, buffer.largest) = (None, None);
        buffer.trim(self.columns, self.double_buffer_limit)
    }

    /// Returns the memory of lists without particles.
    pub(super) fn trim(&mut self) -> Result<(), DeviceError> {
        let mut counts = vec![[0; 2]; self.buffers.len()];
        for patch in &self.patches {
            for (count, span) in counts[patch.level].iter_mut().zip(patch.lists) {
                *count += span.count as usize;
            }
        }
        let all = self.buffers.iter_mut().flatten();
        for (buffer, _) in all.zip(counts.as_flattened()).filter(|(_, n)| **n == 0) {
            buffer.empty();
            buffer.trim(self.columns, self.double_buffer_limit)?;
        }
        Ok(())
    }
}

/// Selects the counts of rows, in their order.
fn of_rows(rows: &[u32], counts: &[u32]) -> Vec<u32> {
    rows.iter().map(|&row| counts[row as usize]).collect()
}

/// Writes the first row of each patch in a plan to `counts`.
fn write_starts(rows: &[u32], counts: &mut [u32], plan: &CompactionPlan) {
    for (&row, span) in rows.iter().zip(&plan.spans) {
        counts[row as usize] = span.first;
    }
}
