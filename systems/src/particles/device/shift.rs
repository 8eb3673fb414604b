//! Particles on a device that go to other columns as they are: to other leaves where patches are refined or go, and beside what comes in pages.

use super::kernels::Memory;
use super::lists::{Home, OnDevice, pieces};
use super::room::New;
use super::turns::Stretch;
use nestar_engine::device::{DeviceError, Shape};
use nestar_engine::field::{Above, Refined};
use nestar_engine::mesh::Topology;
use nestar_kernels::particles::device::{BENEATH, STAY, Shift, Stack};
use std::ops::Range;

/// Threads of a block.
const THREADS: u32 = 128;

/// Pieces of the two lists of a level's patches that go elsewhere, as [`Shift::pieces`], and how many particles they have.
struct Ways {
    level: usize,
    lists: [Vec<u32>; 2],
    particles: usize,
}

/// What comes to a list, and whether what the list has is with it.
struct Coming(New, bool);

impl Ways {
    fn from(level: usize) -> Self {
        Self {
            level,
            lists: Default::default(),
            particles: 0,
        }
    }

    /// Adds the particles of a patch on a way to a row.
    fn add(&mut self, home: &Home, row: u32, way: i32) {
        for (list, stretch) in home.lists.iter().enumerate() {
            self.add_list(list, *stretch, (row, way));
        }
    }

    fn add_list(&mut self, list: usize, stretch: Stretch, to: (u32, i32)) {
        self.lists[list].extend(pieces_to(stretch, to));
        self.particles += stretch.count as usize;
    }
}

/// Particles on a way to a row, as [`Shift::pieces`].
fn pieces_to(stretch: Stretch, (row, way): (u32, i32)) -> Vec<u32> {
    let pieces: Vec<u32> = pieces((row, stretch)).collect();
    let pieces = pieces.as_chunks().0.iter();
    let pieces = pieces.map(|&[row, first, count]| [row, way as u32, first, count]);
    pieces.flatten().collect()
}

impl OnDevice {
    /// Keeps the particles of patches that will be gone apart, in this order.
    pub fn lift(&mut self, rows: &[u32]) {
        for &row in rows {
            self.lifted.push(self.homes[row as usize]);
            self.forget(row);
        }
    }

    /// As [`Shifts::land`](nestar_engine::field::Shifts::land).
    ///
    /// # Errors
    /// The device fails, or its memory does not suffice.
    pub fn land_lifted(
        &mut self,
        topology: &Topology,
        above: &[Option<Above>],
        refined: &[Refined],
    ) -> Result<Vec<Vec<u8>>, DeviceError> {
        let lifted = std::mem::take(&mut self.lifted);
        let lifted: Vec<_> = lifted.into_iter().zip(above).collect();
        // what goes to no leaf here leaves nothing on the device
        let gone = lifted.iter().map(|(home, above)| match above {
            None => *home,
            Some(_) => Home::default(),
        });
        let records = self.records_of(&gone.collect::<Vec<_>>())?;
        for level in 0..self.held.len() - 1 {
            let mut up = Ways::from(level + 1);
            for (home, above) in lifted.iter().filter(|(home, _)| home.level == level + 1) {
                if let Some((row, child)) = **above {
                    up.add(home, row, child as i32);
                }
            }
            let mut down = Ways::from(level);
            let is_here = |row: u32| topology.level(row) == Some(level);
            for &(row, first) in refined.iter().filter(|(row, _)| is_here(*row)) {
                down.add(&self.homes[row as usize], first, BENEATH);
                self.forget(row);
            }
            let mut coming = Vec::new();
            for (at, ways) in [((level, 1), up), ((level + 1, 0), down)] {
                if ways.particles > 0 {
                    coming.push((at, self.coming(topology, at, ways)?));
                }
            }
            // what both come from has stood until now
            for (at, Coming(coming, is_all)) in coming {
                let new = match is_all {
                    true => coming,
                    false => self.joined(topology, at, Some(coming), |_| 0)?,
                };
                self.replace(topology, at, new)?;
            }
        }
        self.trim()?;
        Ok(records)
    }

    /// What comes to a list on its ways, in memory of its own; with what the list has where that is less.
    fn coming(
        &self,
        topology: &Topology,
        (level, list): (usize, usize),
        ways: Ways,
    ) -> Result<Coming, DeviceError> {
        let rows = topology.rows(level);
        let mut own = Ways::from(level);
        for &row in rows {
            own.add_list(list, self.homes[row as usize].lists[list], (row, STAY));
        }
        let is_all = ways.particles >= own.particles;
        let all: Vec<Ways> = std::iter::once(ways).chain(is_all.then_some(own)).collect();
        let (device, memory) = (&self.kernels.device, &mut *self.kernels.memory());
        let pieces = all.iter().flat_map(|ways| &ways.lists);
        let pieces: Vec<u32> = pieces.flatten().copied().collect();
        memory.pieces.set(device, &pieces)?;
        let mut counts = vec![0; topology.capacity() + 1];
        let cursors = memory.cursors.provide(device, counts.len())?;
        device.fill_zero(cursors, 0..counts.len())?;
        self.shift_all(memory, &all, Stack::default())?;
        if let Some(cursors) = memory.cursors.buffer() {
            device.download(cursors, 0, &mut counts)?;
        }
        let new = self.provide_apart(rows, &mut counts)?;
        memory.cursors.set(device, &counts)?;
        self.shift_all(memory, &all, self.stack_of((level, list), &new))?;
        Ok(Coming(new, is_all))
    }

    /// New places for what a list of a level has, in turns, and what comes to it; behind that each row has room for `more`, and the cursors say where.
    pub(super) fn joined(
        &mut self,
        topology: &Topology,
        (level, list): (usize, usize),
        coming: Option<New>,
        more: impl Fn(u32) -> u32,
    ) -> Result<New, DeviceError> {
        let (at, rows) = ((level, list), topology.rows(level));
        let stretches = rows.iter().map(|&row| self.homes[row as usize].lists[list]);
        let stretches: Vec<Stretch> = stretches.collect();
        let (mut counts, mut all) = (vec![0; topology.capacity() + 1], Vec::new());
        let mut starts = vec![0];
        for (&row, stretch) in rows.iter().zip(&stretches) {
            counts[row as usize] = stretch.count + more(row);
            all.extend(pieces_to(*stretch, (row, STAY)));
            starts.push(all.len() / 4);
        }
        if let Some(coming) = &coming {
            for (&row, stretch) in rows.iter().zip(&coming.plan.stretches) {
                counts[row as usize] += stretch.count;
                all.extend(pieces_to(*stretch, (row, STAY)));
            }
        }
        let old = self.held[level][list].stack(self.columns);
        let new = self.provide(topology, at, &mut counts)?;
        let (to, memory) = (self.stack_of(at, &new), &mut *self.kernels.memory());
        memory.pieces.set(&self.kernels.device, &all)?;
        memory.cursors.set(&self.kernels.device, &counts)?;
        for turn in &new.plan.turns {
            self.shift(memory, old, starts[turn.start]..starts[turn.end], to)?;
        }
        if let Some(coming) = &coming {
            let own = starts[rows.len()];
            self.shift(memory, self.stack_of(at, coming), own..all.len() / 4, to)?;
        }
        Ok(new)
    }

    /// Starts the kernel on all ways, whose pieces stand one list behind the other.
    fn shift_all(&self, memory: &Memory, all: &[Ways], to: Stack) -> Result<(), DeviceError> {
        let mut first = 0;
        for ways in all {
            for (list, own) in ways.lists.iter().enumerate() {
                let (from, end) = (&self.held[ways.level][list], first + own.len() / 4);
                self.shift(memory, from.stack(self.columns), first..end, to)?;
                first = end;
            }
        }
        Ok(())
    }

    /// Starts the kernel on some pieces.
    fn shift(
        &self,
        memory: &Memory,
        from: Stack,
        pieces: Range<usize>,
        to: Stack,
    ) -> Result<(), DeviceError> {
        let given = Shift {
            from,
            pieces: (memory.pieces.address() + 16 * pieces.start as u64).into(),
            to,
            cursors: memory.cursors.address().into(),
            numbers: self.numbers(),
        };
        let kernels = &*self.kernels;
        kernels
            .device
            .launch(&kernels.shift, Shape::of(pieces.len(), THREADS), &given)
    }
}
