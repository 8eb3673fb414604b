//! The deal of a step on a device: particles go to their new places, of which some are those of others that have been dealt before.

use super::kernels::{Listed, Memory};
use super::lists::OnDevice;
use super::room::New;
use super::step::{Source, Step};
use nestar_engine::device::{DeviceError, Shape};
use nestar_kernels::particles::device::{CHUNK, Move, Put, Stack};

/// Particles of a source that are dealt at a time.
struct Turn {
    at: (usize, usize),
    given: Move,
    listed: Listed,
}

impl OnDevice {
    /// Puts all particles to their places that stay on this rank; `starts` says where those of each row begin, in these stacks.
    pub(super) fn deal(
        &self,
        (step, new): (&Step, &[New]),
        (starts, stacks): (&[u32], [Stack; 4]),
        sources: &[Source],
    ) -> Result<(), DeviceError> {
        let kernels = &*self.kernels;
        let memory = &mut *kernels.memory();
        memory.cursors.set(&kernels.device, starts)?;
        let mut free = vec![0; starts.len()];
        let mut turns = self.turns((step, new), sources, &mut free);
        for Turn { given, .. } in &mut turns {
            (given.to, given.cursors) = (stacks, memory.cursors.address().into());
        }
        let mut aside = 0;
        if free.iter().any(|&turn| turn > 0) {
            memory.free_from.set(&kernels.device, &free)?;
            for Turn { given, .. } in &mut turns {
                given.free_from = memory.free_from.address().into();
            }
            aside = self.set_aside(memory, sources, &turns)?;
        }
        let bytes = 2 * self.columns.bytes();
        for Turn { given, listed, .. } in &turns {
            kernels.work(&kernels.deal, (listed, bytes), given)?;
        }
        self.put(memory, aside, stacks)
    }

    /// The turns of all sources in their order; `free` becomes the first turn in which the places of each row are free.
    fn turns(
        &self,
        (step, new): (&Step, &[New]),
        sources: &[Source],
        free: &mut [u32],
    ) -> Vec<Turn> {
        let mut turns = Vec::new();
        for (at @ (level, list), new) in step.lists().into_iter().zip(new) {
            let Some(source) = sources.iter().find(|source| source.at == at) else {
                continue;
            };
            let rows = step.topology.rows(level);
            let (mut piece, mut firsts) = (0, vec![0]);
            for &row in rows {
                piece += (self.homes[row as usize].lists[list].count as usize).div_ceil(CHUNK);
                firsts.push(piece);
            }
            for (n, patches) in new.plan.turns.iter().enumerate() {
                let turn = turns.len() as u32;
                let own = &rows[patches.clone()];
                // what the first turn puts overwrites nothing
                for &row in own.iter().filter(|_| n > 0) {
                    free[list * step.rows() + row as usize] = turn;
                }
                let count = |&row: &u32| self.homes[row as usize].lists[list].count as usize;
                let pieces = firsts[patches.start]..firsts[patches.end];
                let listed = source.listed.part(pieces, own.iter().map(count).sum());
                let given = Move {
                    from: listed.list,
                    turn,
                    ..source.given
                };
                turns.push(Turn { at, given, listed });
            }
        }
        turns
    }

    /// Takes those to other memory whose places are not free when it is their turn; how many.
    fn set_aside(
        &self,
        memory: &mut Memory,
        sources: &[Source],
        turns: &[Turn],
    ) -> Result<usize, DeviceError> {
        let kernels = &*self.kernels;
        let particles: usize = turns.iter().map(|turn| turn.listed.particles).sum();
        let mut room = particles / 64 + self.few.min(1024);
        loop {
            let stack = self.pages(&mut memory.aside, room)?;
            let tags = memory.tags.provide(&kernels.device, room)?.address();
            kernels.device.fill_zero(&kernels.words, 0..1)?;
            for Source { listed, at, .. } in sources {
                let of_source = |turn: &&Turn| turn.at == *at;
                let Some(first) = turns.iter().find(of_source) else {
                    continue;
                };
                let given = Move {
                    from: listed.list,
                    to: [stack; 4],
                    tags: tags.into(),
                    room: room as i64,
                    aside: kernels.words.address().into(),
                    ..first.given
                };
                // all are looked at, few are taken
                kernels.work(&kernels.aside, (listed, 1), &given)?;
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

    /// Puts so many to their places that were set aside.
    fn put(&self, memory: &Memory, count: usize, to: [Stack; 4]) -> Result<(), DeviceError> {
        let kernels = &*self.kernels;
        let given = Put {
            from: self.stack_at(memory.aside.address()),
            tags: memory.tags.address().into(),
            to,
            count: count as i64,
            numbers: self.numbers(),
        };
        let shape = Shape::of(count.div_ceil(128).min(1 << 14), 128);
        kernels.device.launch(&kernels.put, shape, &given)
    }
}
