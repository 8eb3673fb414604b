//! Particles on a device that go to other columns as they are: to other leaves where patches are refined or go, and beside what comes in pages.

use super::kernels::Memory;
use super::lists::{Held, Home, OnDevice, Stretch, pieces};
use nestar_engine::device::{DeviceError, Shape};
use nestar_engine::field::{Above, Refined};
use nestar_engine::mesh::Topology;
use nestar_kernels::particles::device::{BENEATH, STAY, Shift, Stack};

/// Threads of a block.
const THREADS: u32 = 128;

/// Pieces of the two lists of a level's patches that go elsewhere, as [`Shift::pieces`].
pub(super) struct Ways {
    level: usize,
    lists: [Vec<u32>; 2],
}

impl Ways {
    fn from(level: usize) -> Self {
        let lists = Default::default();
        Self { level, lists }
    }

    /// Adds the particles of a patch on a way to a row.
    fn add(&mut self, home: &Home, row: u32, way: i32) {
        for (list, stretch) in home.lists.iter().enumerate() {
            self.add_list(list, *stretch, (row, way));
        }
    }

    fn add_list(&mut self, list: usize, stretch: Stretch, (row, way): (u32, i32)) {
        let pieces: Vec<u32> = pieces((row, stretch)).collect();
        for &[row, first, count] in pieces.as_chunks().0 {
            self.lists[list].extend([row, way as u32, first, count]);
        }
    }

    fn are_none(&self) -> bool {
        self.lists.iter().all(Vec::is_empty)
    }
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
            let mut new = Vec::new();
            for (at, ways) in [((level, 1), up), ((level + 1, 0), down)] {
                if !ways.are_none() {
                    new.push((at, self.shifted(topology, at, Some(ways), |_| 0)?));
                }
            }
            // what both come from stands until now
            for (at, new) in new {
                self.replace(topology, at, new);
            }
        }
        Ok(records)
    }

    /// New columns for a list of a level, with what it has and what comes from elsewhere on `ways`; behind that each row has room for `more`, and
    /// the cursors say where.
    pub(super) fn shifted(
        &self,
        topology: &Topology,
        (level, list): (usize, usize),
        ways: Option<Ways>,
        more: impl Fn(u32) -> u32,
    ) -> Result<(Held, Vec<Stretch>), DeviceError> {
        let rows = topology.rows(level);
        let mut own = Ways::from(level);
        for &row in rows {
            own.add_list(list, self.homes[row as usize].lists[list], (row, STAY));
        }
        let all: Vec<Ways> = ways.into_iter().chain([own]).collect();
        let (device, memory) = (&self.kernels.device, &mut *self.kernels.memory());
        let pieces = all.iter().flat_map(|ways| &ways.lists);
        let pieces: Vec<u32> = pieces.flatten().copied().collect();
        memory.pieces.set(device, &pieces)?;
        let mut counts = vec![0; topology.capacity() + 1];
        let cursors = memory.cursors.provide(device, counts.len())?;
        device.fill_zero(cursors, 0..counts.len())?;
        self.shift(memory, &all, Stack::default())?;
        if let Some(cursors) = memory.cursors.buffer() {
            device.download(cursors, 0, &mut counts)?;
        }
        for &row in rows {
            counts[row as usize] += more(row);
        }
        let new = self.provide((topology, level), &mut counts)?;
        memory.cursors.set(device, &counts)?;
        self.shift(memory, &all, new.0.stack())?;
        Ok(new)
    }

    /// Starts the kernel on pieces, which stand one list behind the other.
    fn shift(&self, memory: &Memory, all: &[Ways], to: Stack) -> Result<(), DeviceError> {
        let kernels = &*self.kernels;
        let mut pieces = memory.pieces.address();
        for ways in all {
            for (list, own) in ways.lists.iter().enumerate() {
                let given = Shift {
                    from: self.held[ways.level][list].stack(),
                    pieces: pieces.into(),
                    to,
                    cursors: memory.cursors.address().into(),
                    numbers: self.numbers(),
                };
                let shape = Shape::of(own.len() / 4, THREADS);
                kernels.device.launch(&kernels.shift, shape, &given)?;
                pieces += 4 * own.len() as u64;
            }
        }
        Ok(())
    }
}
