//! Functions of particles on a device.

use super::kernels::ParticleKernels;
use super::lists::{DeviceParticles, ListId};
use crate::particles::function_call::{
    FunctionCall, FunctionReduction, NumberedRecord, UpdateSums,
};
use crate::particles::selected_particle::decode_words;
use nestar_device::{Item, Lane, Parameter, ParticleFn, Precise};
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::parallel::lock;
use nestar_engine::device::{DeviceError, Kernel};
use nestar_engine::in_precision;
use nestar_kernels::particles::functions::{
    CALLS, COLLECT, FunctionInput, FunctionParameters, REDUCE, UPDATE, items, named,
};

/// A kernel that calls a function: its source and its name.
#[derive(Clone, Copy)]
pub(in crate::particles) struct FunctionKernel(&'static str, &'static str);

/// Sets particles to the results.
pub(in crate::particles) const UPDATES: FunctionKernel = FunctionKernel(UPDATE, "particles_update");
/// Reduces the results.
pub(in crate::particles) const REDUCTIONS: FunctionKernel =
    FunctionKernel(REDUCE, "particles_reduce");

/// Lists particles with records.
pub(in crate::particles) const COLLECTIONS: FunctionKernel =
    FunctionKernel(COLLECT, "particles_collect");

/// Particles for which the first launch of a list has room.
const ROOM: usize = 1 << 12;

/// Options of a launch besides the call.
#[derive(Clone, Copy, Default)]
struct LaunchOptions {
    /// Address and capacity of a list of particles.
    out: u64,
    room: usize,
    what: i32,
    scale: f64,
}

impl ParticleKernels {
    /// Returns a kernel for a function. The first call starts to compile it.
    ///
    /// # Errors
    /// The device refuses.
    pub(in crate::particles) fn of_function(
        &self,
        FunctionKernel(text, name): FunctionKernel,
        function: &'static Item,
    ) -> Result<Kernel, DeviceError> {
        let (mut known, key) = (lock(&self.functions), (name, function.path()));
        if let Some(kernel) = known.get(&key) {
            return Ok(kernel.clone());
        }
        let mut all = items();
        all.push(function);
        let source = self.text.program(&all, &[CALLS, &named(function), text]);
        let kernel = self
            .device
            .compile("particle_functions", &source)?
            .kernel(name)?;
        known.insert(key, kernel.clone());
        Ok(kernel)
    }
}

impl DeviceParticles {
    /// Launches a kernel for a list, if it has particles.
    fn launch_function<M: ParticleFn>(
        &mut self,
        kernel: FunctionKernel,
        call: &FunctionCall<M>,
        at: ListId,
        options: LaunchOptions,
    ) -> Result<(), DeviceError> {
        let Some(tables) = self.tables_for(call.tables, at) else {
            return Ok(());
        };
        let kernels = self.kernels.clone();
        let kernel = kernels.of_function(kernel, M::ITEM)?;
        let from = self.list(call.topology, super::tables(tables), at.level, at.list)?;
        let bytes = 8 + self.numbers() as usize * self.columns.number;
        in_precision!(kernels.precision, R => {
            let input = FunctionInput::<R> {
                from: from.list,
                level: call.level_of(at),
                columns: call.columns.columns,
                mass: R::lit(call.columns.mass),
                quanta_per_mass: call.quanta_per_mass,
                words: kernels.words.address().into(),
                out: options.out.into(),
                room: options.room as i64,
                what: options.what,
                scale: options.scale,
            };
            let parameters = call.parameters.precise::<R>();
            let mut all = FunctionParameters { input, parameters };
            kernels.tables.bind(|place| all.bind(place))?;
            kernels.work(&kernel, &from, bytes, &all)
        })
    }

    /// Returns the topology tables if a list may have particles.
    fn tables_for<'a>(
        &self,
        tables: Option<&'a DeviceTopology>,
        at: ListId,
    ) -> Option<&'a DeviceTopology> {
        tables.filter(|_| self.holds(at.level, at.list))
    }

    /// Sets the particles of lists to the results of a function.
    ///
    /// # Errors
    /// The device fails.
    pub(in crate::particles) fn update<M: ParticleFn>(
        &mut self,
        call: &FunctionCall<M>,
        lists: impl Iterator<Item = ListId>,
    ) -> Result<UpdateSums, DeviceError> {
        let kernels = self.kernels.clone();
        kernels.device.fill_zero(&kernels.words, 0..4)?;
        for at in lists {
            self.launch_function(UPDATES, call, at, LaunchOptions::default())?;
            self.buffers[at.level][at.list].largest = None;
        }
        let mut sums = [0u64; 4];
        kernels.device.download(&kernels.words, 0, &mut sums)?;
        Ok(bytemuck::cast(sums))
    }

    /// Reduces the results of a function for the particles of lists.
    ///
    /// # Errors
    /// The device fails.
    pub(in crate::particles) fn reduce<M: ParticleFn>(
        &mut self,
        call: &FunctionCall<M>,
        lists: impl Iterator<Item = ListId>,
        by: FunctionReduction,
    ) -> Result<u64, DeviceError> {
        let kernels = self.kernels.clone();
        kernels.device.fill_zero(&kernels.words, 0..1)?;
        let options = LaunchOptions {
            what: by.what,
            scale: by.scale,
            ..LaunchOptions::default()
        };
        for at in lists {
            self.launch_function(REDUCTIONS, call, at, options)?;
        }
        let mut found = [0u64];
        kernels.device.download(&kernels.words, 0, &mut found)?;
        Ok(found[0])
    }

    /// Returns the particles of a list for which a function has a record of `count` numbers, in any order.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice.
    pub(in crate::particles) fn collect<M: ParticleFn>(
        &mut self,
        call: &FunctionCall<M>,
        at: ListId,
        count: usize,
    ) -> Result<Vec<NumberedRecord>, DeviceError> {
        if self.tables_for(call.tables, at).is_none() {
            return Ok(Vec::new());
        }
        let kernels = self.kernels.clone();
        let of_particle = self.numbers() as usize + 2;
        let width = of_particle + count;
        let mut room = ROOM.min(self.buffers[at.level][at.list].used);
        loop {
            let mut memory = kernels.memory();
            let out = memory.packed_sums.provide(&kernels.device, room * width)?;
            kernels.device.fill_zero(&kernels.words, 0..1)?;
            let options = LaunchOptions {
                out: out.address(),
                room,
                ..LaunchOptions::default()
            };
            self.launch_function(COLLECTIONS, call, at, options)?;
            let mut found = [0u64];
            kernels.device.download(&kernels.words, 0, &mut found)?;
            let found = found[0] as usize;
            if found > room {
                room = found;
                continue;
            }
            let mut words = vec![0u64; found * width];
            if found > 0 {
                kernels.device.download(out, 0, &mut words)?;
            }
            let mass = (!self.columns.masses).then_some(call.columns.mass);
            let decode = |words: &[u64]| {
                let (particle, record) = words.split_at(of_particle);
                let record = record.iter().map(|bits| f64::from_bits(*bits));
                let particle = decode_words(call.topology, at.level, mass, particle);
                (particle, record.collect())
            };
            return Ok(words.chunks_exact(width).map(decode).collect());
        }
    }
}
