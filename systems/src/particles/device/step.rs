//! The first half of a step on a device.

use super::super::leavers::Drifted;
use super::super::units::Lost;
use super::kernels::Listed;
use super::lists::OnDevice;
use nestar_engine::device::DeviceError;
use nestar_engine::field::Parcel;
use nestar_engine::mesh::{Topology, offset};
use nestar_kernels::PATCH;
use nestar_kernels::particles::device::{Move, Stack, Tables};

/// Identities of what leaves the box in a step for which there is room at first.
const ROOM: usize = 4096;

/// A step of a level.
pub struct Step<'a> {
    /// The hierarchy.
    pub topology: &'a Topology,
    /// The same on the device.
    pub tables: Tables,
    /// The level whose step it is.
    pub level: usize,
    /// Length of the step.
    pub dt: f64,
    /// Faces that reflect, as bits `2 * axis + side`.
    pub walls: u32,
    /// Units of a mass of 1.
    pub scale: f64,
    /// The mass of each particle, where all have one.
    pub mass: f64,
}

impl Step<'_> {
    /// Parameters for particles in patches of a level; the `stay`ing ones go to a list and a stack.
    fn given(&self, (from, level): (&Listed, usize), stay: [i32; 2]) -> Move {
        let width = self.topology.domain.cell_width(level);
        Move {
            from: from.list,
            to: [Stack::default(); 4],
            cursors: 0.into(),
            tags: 0.into(),
            lost: 0.into(),
            gone: 0.into(),
            room: 0,
            rate: width.map(|width| self.dt / (PATCH as f64 * width)),
            half: 0.5 * self.dt,
            scale: self.scale,
            mass: self.mass,
            rows: self.topology.capacity() as i64,
            walls: self.walls,
            stay,
            own: level == self.level,
            keys: 0.into(),
            places: 0.into(),
        }
    }
}

impl OnDevice {
    /// Kicks the particles that a level moves by half of its step, moves them, and deals them to their patches.
    ///
    /// # Errors
    /// The device fails, or its memory does not suffice.
    pub fn step(&mut self, step: &Step) -> Result<Drifted, DeviceError> {
        let (level, place) = (step.level, (step.topology, step.tables));
        let mut lists = vec![(level, 0), (level, 1)];
        lists.extend(level.checked_sub(1).map(|below| (below, 1)));
        let mut sources = Vec::new();
        for &(host, list) in &lists {
            if self.holds(host, list) {
                let listed = self.list(place, host, list)?;
                let stay = if host == level { [0, 0] } else { [1, 2] };
                sources.push((step.given((&listed, host), stay), listed));
            }
        }
        if sources.is_empty() {
            return Ok(Drifted::default());
        }
        let (mut counts, mut drifted) = self.counted(step, &mut sources)?;
        if drifted.fault.is_some() {
            return Ok(drifted);
        }
        let rows = step.topology.capacity() + 1;
        let elsewhere = std::mem::take(&mut counts[rows - 1]) as usize;
        let mut new = Vec::new();
        for &(host, list) in &lists {
            let counts = &mut counts[list * rows..][..rows];
            new.push(self.provide((step.topology, host), counts)?);
        }
        let stacks: Vec<Stack> = new.iter().map(|(held, _)| held.stack()).collect();
        let out = self.kernels.columns(self.columns, elsewhere)?;
        let out_stack = Stack {
            words: out.0.address().into(),
            room: out.1 as i64,
        };
        self.deal(&counts, &mut sources, (&stacks, out_stack), elsewhere)?;
        for (&at, new) in lists.iter().zip(new) {
            self.replace(step.topology, at, new);
        }
        if elsewhere > 0 {
            drifted.parcels = self.parcels(step, out_stack, elsewhere)?;
        }
        self.kernels.give_back(out.0);
        Ok(drifted)
    }

    /// How many particles each row gets, `[list][rows + 1]`, and what leaves the box.
    fn counted(
        &self,
        step: &Step,
        sources: &mut [(Move, Listed)],
    ) -> Result<(Vec<u32>, Drifted), DeviceError> {
        let counted = self.count_with_room(step, sources, ROOM)?;
        match counted.1.lost.count as usize {
            // more have left than expected: once more, with room for the identities of all
            gone if gone > ROOM => self.count_with_room(step, sources, gone),
            _ => Ok(counted),
        }
    }

    /// The same, with room for so many identities of what leaves.
    fn count_with_room(
        &self,
        step: &Step,
        sources: &mut [(Move, Listed)],
        room: usize,
    ) -> Result<(Vec<u32>, Drifted), DeviceError> {
        let kernels = &*self.kernels;
        let memory = &mut *kernels.memory();
        let mut counts = vec![0; 2 * (step.topology.capacity() + 1)];
        let cursors = memory.cursors.provide(&kernels.device, counts.len())?;
        let gone = memory.gone.provide(&kernels.device, room)?;
        let particles = sources.iter().map(|(_, listed)| listed.particles).sum();
        let keys = memory.keys.provide(&kernels.device, particles)?.address();
        let places = memory.places.provide(&kernels.device, particles)?.address();
        let mut before = 0;
        kernels.device.fill_zero(cursors, 0..counts.len())?;
        kernels.device.fill_zero(&kernels.words, 0..3)?;
        // places, velocities and accelerations
        let bytes = 9 * self.columns.number;
        for (given, listed) in sources {
            given.cursors = cursors.address().into();
            given.lost = kernels.words.address().into();
            (given.gone, given.room) = (gone.address().into(), room as i64);
            given.keys = (keys + before).into();
            given.places = (places + 4 * before).into();
            before += listed.particles as u64;
            kernels.work(&kernels.count, (listed, bytes), given)?;
        }
        let mut words = [0; 3];
        kernels.device.download(cursors, 0, &mut counts)?;
        kernels.device.download(&kernels.words, 0, &mut words)?;
        let [count, mass, fault] = words;
        let mut identities = vec![0; room.min(count as usize)];
        kernels.device.download(gone, 0, &mut identities)?;
        let drifted = Drifted {
            lost: Lost { count, mass },
            gone: identities,
            fault: fault.checked_sub(1),
            ..Drifted::default()
        };
        Ok((counts, drifted))
    }

    /// Puts all particles to their places; `starts` says where those of each row begin.
    fn deal(
        &self,
        starts: &[u32],
        sources: &mut [(Move, Listed)],
        (stacks, out): (&[Stack], Stack),
        elsewhere: usize,
    ) -> Result<(), DeviceError> {
        let kernels = &*self.kernels;
        let mut memory = kernels.memory();
        memory.cursors.set(&kernels.device, starts)?;
        let tags = memory.tags.provide(&kernels.device, elsewhere.max(1))?;
        let tags = tags.address();
        let bytes = 2 * self.columns.bytes();
        for (given, listed) in sources {
            for (to, stack) in given.to.iter_mut().zip(stacks) {
                *to = *stack;
            }
            given.to[3] = out;
            given.tags = tags.into();
            given.cursors = memory.cursors.address().into();
            kernels.work(&kernels.deal, (listed, bytes), given)?;
        }
        Ok(())
    }

    /// What goes to patches that the kernel does not deal to.
    fn parcels(&self, step: &Step, out: Stack, count: usize) -> Result<Vec<Parcel>, DeviceError> {
        let mut tags = vec![0u64; count];
        let memory = self.kernels.memory();
        if let Some(buffer) = memory.tags.buffer() {
            self.kernels.device.download(buffer, 0, &mut tags)?;
        }
        drop(memory);
        let records = self.packed(out, 0..count, 0)?;
        let records = records.chunks_exact(self.columns.bytes() + 1);
        let parcel = |(tag, record): (u64, &[u8])| {
            let (row, d) = ((tag / 64) as u32, (tag % 32) as usize);
            let (topology, mut records) = (step.topology, record.to_vec());
            if let Some(mark) = records.last_mut() {
                *mark = u8::from(tag & 32 != 0);
            }
            let level = topology.level(row)?;
            let index = topology.place_beside(level, topology.index(row), offset(d))?;
            Some(Parcel {
                level,
                index,
                records,
            })
        };
        Ok(tags.into_iter().zip(records).filter_map(parcel).collect())
    }
}
