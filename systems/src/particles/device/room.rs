//! Manages the memory of lists: reserves new rows, commits them, and returns unused memory.

use super::super::columns::{PAGE, ParticleColumns};
use super::lists::{DeviceParticles, PageBuffer};
use super::turns::{Capacity, CompactionPlan, DOUBLE_BUFFER_LIMIT, RowSpan, headroom};
use nestar_engine::device::{DeviceError, Growable};
use nestar_engine::mesh::Topology;
use nestar_kernels::particles::device::PageArray;

/// New rows of a list, in its own memory or in separate memory.
pub(super) struct Placement {
    pub plan: CompactionPlan,
    separate: Option<PageBuffer>,
}

impl PageBuffer {
    /// Capacity in rows.
    fn room(&self, columns: ParticleColumns) -> usize {
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
            self.room(columns),
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
        at: (usize, usize),
        counts: &mut [u32],
    ) -> Result<Placement, DeviceError> {
        let rows = topology.rows(at.0);
        match self.plan(rows, at, &of_rows(rows, counts))? {
            Some(plan) => {
                begin(rows, counts, &plan);
                Ok(Placement {
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
        (level, list): (usize, usize),
        counts: &[u32],
    ) -> Result<Option<CompactionPlan>, DeviceError> {
        let (columns, double_buffer_limit) = (self.columns, self.double_buffer_limit);
        let old = rows
            .iter()
            .map(|&row| self.patches[row as usize].lists[list]);
        let old: Vec<RowSpan> = old.collect();
        let held = &mut self.buffers[level][list];
        let rows = held.room(columns);
        for low_memory in [false, true] {
            let room = Capacity {
                rows,
                double_buffer_limit,
                low_memory,
            };
            let Some(plan) = CompactionPlan::in_place(&old, counts, room) else {
                break;
            };
            match self.kernels.grow(columns, &mut held.words, plan.room) {
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
    ) -> Result<Placement, DeviceError> {
        let plan = CompactionPlan::separate(&of_rows(rows, counts));
        begin(rows, counts, &plan);
        let mut held = PageBuffer {
            used: plan.used,
            ..PageBuffer::default()
        };
        self.kernels
            .grow(self.columns, &mut held.words, plan.room)?;
        let separate = Some(held);
        Ok(Placement { plan, separate })
    }

    /// Returns the page array of the new rows.
    pub(super) fn page_array_of(
        &self,
        (level, list): (usize, usize),
        new: &Placement,
    ) -> PageArray {
        let held = new.separate.as_ref().unwrap_or(&self.buffers[level][list]);
        held.page_array(self.columns)
    }

    /// Makes reserved rows the rows of a list.
    pub(super) fn commit(
        &mut self,
        topology: &Topology,
        (level, list): (usize, usize),
        Placement { plan, separate }: Placement,
    ) -> Result<(), DeviceError> {
        for (&row, span) in topology.rows(level).iter().zip(plan.spans) {
            let home = &mut self.patches[row as usize];
            home.level = level;
            home.lists[list] = span;
        }
        let held = &mut self.buffers[level][list];
        if let Some(separate) = separate {
            held.words = separate.words;
        }
        (held.first, held.used) = (plan.first, plan.used);
        (held.shape, held.largest) = (None, None);
        held.trim(self.columns, self.double_buffer_limit)
    }

    /// Returns the memory of lists without particles.
    pub(super) fn trim(&mut self) -> Result<(), DeviceError> {
        let mut counts = vec![[0; 2]; self.buffers.len()];
        for home in &self.patches {
            for (count, span) in counts[home.level].iter_mut().zip(home.lists) {
                *count += span.count as usize;
            }
        }
        let all = self.buffers.iter_mut().flatten();
        for (held, _) in all.zip(counts.as_flattened()).filter(|(_, n)| **n == 0) {
            held.empty();
            held.trim(self.columns, self.double_buffer_limit)?;
        }
        Ok(())
    }
}

/// Selects the counts of rows, in their order.
fn of_rows(rows: &[u32], counts: &[u32]) -> Vec<u32> {
    rows.iter().map(|&row| counts[row as usize]).collect()
}

/// Writes the first row of each patch in a plan to `counts`.
fn begin(rows: &[u32], counts: &mut [u32], plan: &CompactionPlan) {
    for (&row, span) in rows.iter().zip(&plan.spans) {
        counts[row as usize] = span.first;
    }
}
