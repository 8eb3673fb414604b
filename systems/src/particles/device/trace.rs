//! Where gas takes tracers on a device.

use super::super::around::BLOCK;
use super::kernels::{LEAST, Listed};
use super::lists::{OnDevice, pieces};
use crate::fields::Gas;
use nestar_device::random::Stream;
use nestar_device::{Address, Number};
use nestar_engine::device::{DeviceError, Shape};
use nestar_engine::field::device::{DeviceTopology, DeviceView};
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::View;
use nestar_kernels::PATCH;
use nestar_kernels::particles::movers::{CHILD, Draw, Lead, STOP, WAY};

/// Bytes of shared memory that the gather may declare itself, at most.
const DECLARED: usize = 1024;
/// Blocks on a multiprocessor where a block gathers into global memory.
const GATHERING: u32 = 2;

/// A step of a level, for tracers.
pub struct Traced<'a> {
    /// The hierarchy, and the same on the device.
    pub place: (&'a Topology, &'a DeviceTopology),
    /// The step.
    pub clock: &'a LevelClock,
    /// Gas on the level.
    pub gas: &'a View<'a, Gas>,
}

impl OnDevice {
    /// Gives the particles that a level moves the mean velocities of its step; of its own patches also those that wait for the finer level, which
    /// will say anew.
    ///
    /// # Errors
    /// The device fails, or its memory does not suffice.
    pub fn lead(&mut self, traced: &Traced) -> Result<(), DeviceError> {
        let (level, time) = (traced.clock.level, traced.clock.time);
        let own = traced.gas.states_on_device();
        self.lead_list(traced, (level, 0), &own)?;
        self.lead_list(traced, (level, 1), &own)?;
        match level.checked_sub(1) {
            Some(below) => self.lead_list(traced, (below, 1), &traced.gas.coarser_on_device(time)),
            None => Ok(()),
        }
    }

    /// The same of a list of the patches of a level, by states of gas on that.
    fn lead_list(
        &mut self,
        traced: &Traced,
        (host, list): (usize, usize),
        states: &[(f64, DeviceView)],
    ) -> Result<(), DeviceError> {
        let ([(old, before), ..], [.., (new, after)]) = (states, states) else {
            return Ok(());
        };
        if !self.holds(host, list) {
            return Ok(());
        }
        let (topology, tables) = traced.place;
        let from = self.list((topology, super::tables(tables)), host, list)?;
        self.held[host][list].largest = None;
        let clock = traced.clock;
        let width = topology.domain.cell_width(host);
        let weight = |time: f64| match states.len() {
            1 => 1.0,
            _ => (time - old) / (new - old),
        };
        self.start_lead(
            from,
            Lead {
                from: from.list,
                before: *before,
                after: *after,
                both: states.len() > 1,
                blocks: Address::NONE,
                values: ((3 + traced.gas.components()) * BLOCK) as i64,
                weights: [clock.time, clock.end].map(weight),
                rate: width.map(|width| clock.dt / (PATCH as f64 * width)),
            },
        )
    }

    /// Starts the kernel: on all pieces at once where blocks have room for what they gather, else on as many as work at a time.
    fn start_lead(&self, from: Listed, mut given: Lead<Number>) -> Result<(), DeviceError> {
        let kernels = &*self.kernels;
        let limits = kernels.device.limits();
        let block = given.values as usize * self.columns.number;
        let (mut shape, mut memory) = (from.shape, kernels.memory());
        let (all, mut most) = (shape.blocks, shape.blocks.max(1));
        shape.threads = shape.threads.max(LEAST);
        if block + DECLARED <= limits.shared_per_block as usize {
            shape.shared = block as u32;
        } else {
            most = most.min(GATHERING * limits.multiprocessors);
            let words = most as usize * block.div_ceil(8);
            let blocks = memory.blocks.provide(&kernels.device, words)?;
            given.blocks = blocks.address().into();
        }
        // places and velocities
        let bytes = 9 * self.columns.number;
        self.mover.works_on(from.particles, from.particles * bytes);
        for first in (0..all).step_by(most as usize) {
            shape.blocks = most.min(all - first);
            // three words say where a piece is
            given.from.chunks = (from.list.chunks.number() + 12 * u64::from(first)).into();
            kernels.device.launch(&self.mover, shape, &given)?;
        }
        Ok(())
    }

    /// Lets the particles that a level moves draw where its step takes them: by mass fluxes, which stand in a bank.
    ///
    /// # Errors
    /// The device fails.
    pub fn draw(
        &mut self,
        traced: &Traced,
        mass: Address<Number>,
        stream: Stream,
    ) -> Result<(), DeviceError> {
        let level = traced.clock.level;
        let (topology, tables) = traced.place;
        let hosts = [Some(level), Some(level), level.checked_sub(1)];
        for (host, list) in hosts.into_iter().zip([0, 1, 1]) {
            let Some(host) = host.filter(|&host| self.holds(host, list)) else {
                continue;
            };
            let from = self.list((topology, super::tables(tables)), host, list)?;
            self.held[host][list].largest = None;
            let (dt, width) = (traced.clock.dt, topology.domain.cell_width(level));
            let given = Draw {
                from: from.list,
                what: if host == level { WAY } else { STOP },
                gas: traced.gas.on_device().level,
                mass,
                rates: width.map(|width| dt / width),
                speeds: width.map(|width| width / dt),
                stream: stream.at_step(traced.clock.step),
                number: 2 * level as u32,
            };
            // places and velocities, read and written
            let bytes = 8 + 12 * self.columns.number;
            self.kernels.work(&self.mover, (&from, bytes), &given)?;
        }
        Ok(())
    }

    /// Lets the particles in some patches of a level, which are new, draw which of the cells that a coarser one has become they take: by gas, and
    /// with this number of the stream.
    ///
    /// # Errors
    /// The device fails.
    pub fn divide(
        &mut self,
        (topology, tables): (&Topology, &DeviceTopology),
        (gas, rows): (&View<Gas>, &[u32]),
        (stream, number): (Stream, u32),
    ) -> Result<(), DeviceError> {
        let homes = rows
            .iter()
            .map(|&row| (row, self.homes[row as usize].lists[0]));
        let all: Vec<u32> = homes.flat_map(pieces).collect();
        if all.is_empty() {
            return Ok(());
        }
        let mut from = self.list((topology, super::tables(tables)), gas.level(), 0)?;
        let (kernels, memory) = (&*self.kernels, &mut *self.kernels.memory());
        memory.pieces.set(&kernels.device, &all)?;
        from.list.chunks = memory.pieces.address().into();
        from.shape = Shape::of(all.len() / 3, from.shape.threads);
        let given = Draw {
            from: from.list,
            what: CHILD,
            gas: gas.on_device().level,
            mass: Address::NONE,
            rates: [0.0; 3],
            speeds: [0.0; 3],
            stream,
            number,
        };
        // identities, and places, read and written
        kernels.work(&self.mover, (&from, 8 + 6 * self.columns.number), &given)
    }
}
