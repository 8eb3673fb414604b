//! Memory of lists: new places for their particles, what they need more, and what they give back.

use super::super::columns::{Columns, PAGE};
use super::lists::{Held, OnDevice};
use super::turns::{FEW, Plan, Room, Stretch, spare};
use nestar_engine::device::{DeviceError, Growable};
use nestar_engine::mesh::Topology;
use nestar_kernels::particles::device::Stack;

/// New places of a list, in memory of their own or in that of the list.
pub(super) struct New {
    pub plan: Plan,
    apart: Option<Held>,
}

impl Held {
    /// Rows that it has memory for.
    fn room(&self, columns: Columns) -> usize {
        let words = self.words.as_ref().map_or(0, Growable::len);
        words / columns.page_words() * PAGE
    }

    /// Gives memory back that is more than it needs by far, and behind all particles.
    fn trim(&mut self, columns: Columns, few: usize) -> Result<(), DeviceError> {
        let (rows, wanted) = (self.room(columns), self.used + spare(self.used, few));
        match &mut self.words {
            Some(words) if self.first == 0 && rows > wanted + (wanted / 4).max(FEW / 4) => {
                words.shrink(wanted.div_ceil(PAGE) * columns.page_words())
            }
            _ => Ok(()),
        }
    }
}

impl OnDevice {
    /// Places for the particles of a list of a level, of which each row has so many; `counts` becomes where those of each row begin. Where it can be
    /// they are in the memory of the list, in which patches then take turns.
    pub(super) fn provide(
        &mut self,
        topology: &Topology,
        at: (usize, usize),
        counts: &mut [u32],
    ) -> Result<New, DeviceError> {
        let rows = topology.rows(at.0);
        match self.plan(rows, at, &of_rows(rows, counts))? {
            Some(plan) => {
                begin(rows, counts, &plan);
                Ok(New { plan, apart: None })
            }
            None => self.provide_apart(rows, counts),
        }
    }

    /// Places in the memory of a list, of which more is taken if need be; none: other memory has to be.
    fn plan(
        &mut self,
        rows: &[u32],
        (level, list): (usize, usize),
        counts: &[u32],
    ) -> Result<Option<Plan>, DeviceError> {
        let (columns, few) = (self.columns, self.few);
        let old = rows.iter().map(|&row| self.homes[row as usize].lists[list]);
        let old: Vec<Stretch> = old.collect();
        let held = &mut self.held[level][list];
        let rows = held.room(columns);
        for is_scarce in [false, true] {
            let room = Room {
                rows,
                few,
                is_scarce,
            };
            let Some(plan) = Plan::within(&old, counts, room) else {
                break;
            };
            match self.kernels.grow(columns, &mut held.words, plan.room) {
                Ok(true) => return Ok(Some(plan)),
                Ok(false) => break,
                Err(DeviceError::Memory { .. }) if !is_scarce => (),
                Err(e) => return Err(e),
            }
        }
        Ok(None)
    }

    /// The same in memory of their own.
    pub(super) fn provide_apart(
        &self,
        rows: &[u32],
        counts: &mut [u32],
    ) -> Result<New, DeviceError> {
        let plan = Plan::apart(&of_rows(rows, counts));
        begin(rows, counts, &plan);
        let mut held = Held {
            used: plan.used,
            ..Held::default()
        };
        self.kernels
            .grow(self.columns, &mut held.words, plan.room)?;
        let apart = Some(held);
        Ok(New { plan, apart })
    }

    /// Where the new places of a list of a level are.
    pub(super) fn stack_of(&self, (level, list): (usize, usize), new: &New) -> Stack {
        let held = new.apart.as_ref().unwrap_or(&self.held[level][list]);
        held.stack(self.columns)
    }

    /// Takes new places over.
    pub(super) fn replace(
        &mut self,
        topology: &Topology,
        (level, list): (usize, usize),
        New { plan, apart }: New,
    ) -> Result<(), DeviceError> {
        for (&row, stretch) in topology.rows(level).iter().zip(plan.stretches) {
            let home = &mut self.homes[row as usize];
            home.level = level;
            home.lists[list] = stretch;
        }
        let held = &mut self.held[level][list];
        if let Some(apart) = apart {
            held.words = apart.words;
        }
        (held.first, held.used) = (plan.first, plan.used);
        (held.shape, held.largest) = (None, None);
        held.trim(self.columns, self.few)
    }

    /// Gives the memory of lists back that have no particles.
    pub(super) fn trim(&mut self) -> Result<(), DeviceError> {
        let mut counts = vec![[0; 2]; self.held.len()];
        for home in &self.homes {
            for (count, stretch) in counts[home.level].iter_mut().zip(home.lists) {
                *count += stretch.count as usize;
            }
        }
        let all = self.held.iter_mut().flatten();
        for (held, _) in all.zip(counts.as_flattened()).filter(|(_, n)| **n == 0) {
            held.empty();
            held.trim(self.columns, self.few)?;
        }
        Ok(())
    }
}

/// Of rows, in their order.
fn of_rows(rows: &[u32], counts: &[u32]) -> Vec<u32> {
    rows.iter().map(|&row| counts[row as usize]).collect()
}

/// Says where the particles of each row begin by a plan.
fn begin(rows: &[u32], counts: &mut [u32], plan: &Plan) {
    for (&row, stretch) in rows.iter().zip(&plan.stretches) {
        counts[row as usize] = stretch.first;
    }
}
