//! Memory of lists: new places for their particles, what they need more, and what they give back.

use super::super::columns::{PAGE, ParticleColumns};
use super::lists::{DeviceParticles, PageBuffer};
use super::turns::{Capacity, CompactionPlan, DOUBLE_BUFFER_LIMIT, RowSpan, headroom};
use nestar_engine::device::{DeviceError, Growable};
use nestar_engine::mesh::Topology;
use nestar_kernels::particles::device::PageArray;

/// New places of a list, in memory of their own or in that of the list.
pub(super) struct Placement {
    pub plan: CompactionPlan,
    separate: Option<PageBuffer>,
}

impl PageBuffer {
    /// Rows that it has memory for.
    fn room(&self, columns: ParticleColumns) -> usize {
        let words = self.words.as_ref().map_or(0, Growable::len);
        words / columns.page_words() * PAGE
    }

    /// Gives memory back that is more than it needs by far, and behind all particles.
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
    /// Places for the particles of a list of a level, of which each row has so many; `counts` becomes where those of each row begin. Where it can be
    /// they are in the memory of the list, in which patches then take turns.
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

    /// Places in the memory of a list, of which more is taken if need be; none: other memory has to be.
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

    /// The same in memory of their own.
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

    /// Where the new places of a list of a level are.
    pub(super) fn page_array_of(
        &self,
        (level, list): (usize, usize),
        new: &Placement,
    ) -> PageArray {
        let held = new.separate.as_ref().unwrap_or(&self.buffers[level][list]);
        held.page_array(self.columns)
    }

    /// Takes new places over.
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

    /// Gives the memory of lists back that have no particles.
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

/// Of rows, in their order.
fn of_rows(rows: &[u32], counts: &[u32]) -> Vec<u32> {
    rows.iter().map(|&row| counts[row as usize]).collect()
}

/// Says where the particles of each row begin by a plan.
fn begin(rows: &[u32], counts: &mut [u32], plan: &CompactionPlan) {
    for (&row, span) in rows.iter().zip(&plan.spans) {
        counts[row as usize] = span.first;
    }
}
