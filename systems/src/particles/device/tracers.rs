//! Moves tracers on a device.

use super::super::vector_window::BLOCK;
use super::kernels::{LEAST, ListLaunch};
use super::lists::{DeviceParticles, ListId, pieces};
use crate::fields::Gas;
use nestar_device::random::Stream;
use nestar_device::{Address, Number};
use nestar_engine::data::device::{DeviceTopology, DeviceView};
use nestar_engine::device::{DeviceError, LaunchShape};
use nestar_engine::mesh::{LevelClock, Topology};
use nestar_engine::step::FieldView;
use nestar_kernels::PATCH;
use nestar_kernels::particles::field_kernels::{
    AdvectParameters, CHILD, JUMP, JumpParameters, STOP,
};

/// Shared memory that the gather may declare itself, bytes.
const DECLARED: usize = 1024;
/// Blocks per multiprocessor if blocks gather into global memory.
const GATHERING: u32 = 2;

/// Step of a level for tracers.
pub struct TracerStep<'a> {
    /// Hierarchy, and its topology tables on the device.
    pub context: (&'a Topology, &'a DeviceTopology),
    /// Step.
    pub clock: &'a LevelClock,
    /// Gas on the level.
    pub gas: &'a FieldView<'a, Gas>,
}

impl DeviceParticles {
    /// Sets the velocities of tracers to their mean over the step. Deferred tracers in own patches are
    /// included; the finer level overwrites theirs.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice.
    pub fn advect(&mut self, step: &TracerStep) -> Result<(), DeviceError> {
        let (level, time) = (step.clock.level, step.clock.time);
        let own = step.gas.states_on_device();
        for at in ListId::both(level) {
            self.advect_list(step, at, &own)?;
        }
        match level.checked_sub(1) {
            Some(below) => self.advect_list(
                step,
                ListId {
                    level: below,
                    list: 1,
                },
                &step.gas.coarser_on_device(time),
            ),
            None => Ok(()),
        }
    }

    /// Advects a list of a level by the states of gas on that level.
    fn advect_list(
        &mut self,
        step: &TracerStep,
        ListId { level: host, list }: ListId,
        states: &[(f64, DeviceView)],
    ) -> Result<(), DeviceError> {
        let ([(old, before), ..], [.., (new, after)]) = (states, states) else {
            return Ok(());
        };
        if !self.holds(host, list) {
            return Ok(());
        }
        let (topology, tables) = step.context;
        let from = self.list(topology, super::tables(tables), host, list)?;
        self.buffers[host][list].largest = None;
        let clock = step.clock;
        let width = topology.domain.cell_width(host);
        let weight = |time: f64| match states.len() {
            1 => 1.0,
            _ => (time - old) / (new - old),
        };
        self.launch_advect(
            from,
            AdvectParameters {
                from: from.list,
                before: *before,
                after: *after,
                both: states.len() > 1,
                blocks: Address::NONE,
                values: ((3 + step.gas.components()) * BLOCK) as i64,
                weights: [clock.time, clock.end].map(weight),
                rate: width.map(|width| clock.dt / (PATCH as f64 * width)),
            },
        )
    }

    /// Launches the kernel: on all chunks at once if shared memory suffices, else on as many as run
    /// concurrently.
    fn launch_advect(
        &self,
        from: ListLaunch,
        mut args: AdvectParameters<Number>,
    ) -> Result<(), DeviceError> {
        let kernels = &*self.kernels;
        let limits = kernels.device.limits();
        let block = args.values as usize * self.columns.number;
        let (mut shape, mut memory) = (from.shape, kernels.memory());
        let (all, mut most) = (shape.blocks, shape.blocks.max(1));
        shape.threads = shape.threads.max(LEAST);
        if block + DECLARED <= limits.shared_per_block as usize {
            shape.shared = block as u32;
        } else {
            most = most.min(GATHERING * limits.multiprocessors);
            let words = most as usize * block.div_ceil(8);
            let blocks = memory.blocks.provide(&kernels.device, words)?;
            args.blocks = blocks.address().into();
        }
        // offsets and velocities
        let bytes = 9 * self.columns.number;
        self.mover
            .count_work(from.particles, from.particles * bytes);
        for first in (0..all).step_by(most as usize) {
            shape.blocks = most.min(all - first);
            // a chunk has three words
            args.from.chunks = (from.list.chunks.number() + 12 * u64::from(first)).into();
            kernels.device.launch(&self.mover, shape, &args)?;
        }
        Ok(())
    }

    /// Draws the jumps of Monte Carlo tracers from the mass fluxes of the step.
    ///
    /// # Errors
    /// The device fails.
    pub fn jump(
        &mut self,
        step: &TracerStep,
        mass: Address<Number>,
        stream: Stream,
    ) -> Result<(), DeviceError> {
        let level = step.clock.level;
        let (topology, tables) = step.context;
        let hosts = [Some(level), Some(level), level.checked_sub(1)];
        for (host, list) in hosts.into_iter().zip([0, 1, 1]) {
            let Some(host) = host.filter(|&host| self.holds(host, list)) else {
                continue;
            };
            let from = self.list(topology, super::tables(tables), host, list)?;
            self.buffers[host][list].largest = None;
            let (dt, width) = (step.clock.dt, topology.domain.cell_width(level));
            let args = JumpParameters {
                from: from.list,
                what: if host == level { JUMP } else { STOP },
                gas: step.gas.on_device().level,
                mass,
                rates: width.map(|width| dt / width),
                speeds: width.map(|width| width / dt),
                stream: stream.at_step(step.clock.step),
                number: 2 * level as u32,
            };
            // offsets and velocities, read and written
            let bytes = 8 + 12 * self.columns.number;
            self.kernels.work(&self.mover, &from, bytes, &args)?;
        }
        Ok(())
    }

    /// Assigns Monte Carlo tracers in new patches to one of the eight cells that replace theirs. `number` is
    /// the index of the random number in the stream.
    ///
    /// # Errors
    /// The device fails.
    pub fn assign_children(
        &mut self,
        topology: &Topology,
        tables: &DeviceTopology,
        gas: &FieldView<Gas>,
        rows: &[u32],
        stream: Stream,
        number: u32,
    ) -> Result<(), DeviceError> {
        let patches = rows
            .iter()
            .map(|&row| (row, self.patches[row as usize].lists[0]));
        let all: Vec<u32> = patches.flat_map(|(row, span)| pieces(row, span)).collect();
        if all.is_empty() {
            return Ok(());
        }
        let mut from = self.list(topology, super::tables(tables), gas.level(), 0)?;
        let (kernels, memory) = (&*self.kernels, &mut *self.kernels.memory());
        memory.pieces.set(&kernels.device, &all)?;
        from.list.chunks = memory.pieces.address().into();
        from.shape = LaunchShape::of(all.len() / 3, from.shape.threads);
        let args = JumpParameters {
            from: from.list,
            what: CHILD,
            gas: gas.on_device().level,
            mass: Address::NONE,
            rates: [0.0; 3],
            speeds: [0.0; 3],
            stream,
            number,
        };
        // identities and offsets, read and written
        kernels.work(&self.mover, &from, 8 + 6 * self.columns.number, &args)
    }
}
