//! Deposits particles on a device.

use super::super::device::{
    self, BLOCK, DeviceParticles, LEAST, ListId, ListLaunch, ParticleKernels,
};
use super::super::mass_quantum::power_of_two;
use super::super::species::{Species, SpeciesMap};
use super::super::wall_bits;
use super::slot_table::SlotTable;
use super::{Deposit, DepositWeights};
use nestar_device::{Address, Number};
use nestar_engine::comm::Comm;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::{DeviceError, LaunchShape};
use nestar_engine::mesh::Topology;
use nestar_engine::{Error, in_precision};
use nestar_kernels::particles::device::{
    CloudShape, DEPOSIT_LISTS, DensityParameters, DepositListsParameters, DepositParameters,
};
use nestar_kernels::{CELLS, PATCH};
use std::sync::PoisonError;

/// Threads per block of kernels on the sums of a patch.
pub(super) const THREADS: u32 = 256;

/// Destination of a deposit on a device.
#[derive(Clone, Copy)]
pub(super) struct DeviceSums<'a> {
    pub kernels: &'a ParticleKernels,
    tables: &'a DeviceTopology,
    pub slot_table: &'a SlotTable,
    /// Addresses of the sums of the level and of the next coarser one.
    pub addresses: [u64; 2],
}

impl ParticleKernels {
    /// Returns the slot table of a level and clears the sums. It is handed back with
    /// [`ParticleKernels::keep_slot_table`].
    fn slot_table(
        &self,
        tables: &DeviceTopology,
        deposit: &Deposit,
    ) -> Result<SlotTable, DeviceError> {
        let mut memory = self.memory();
        let (topology, level) = (deposit.topology, deposit.level);
        let known = memory.slot_tables.remove(&level);
        let known = known.filter(|(revision, _)| *revision == tables.revision());
        let slot_table = match known {
            Some((_, slot_table)) => slot_table,
            None => SlotTable::new(&self.device, topology, level)?,
        };
        let cells = slot_table.count() * CELLS;
        let sums = memory.sums.provide(&self.device, cells)?;
        self.device.fill_zero(sums, 0..cells)?;
        let cells = slot_table.octets.len() * CELLS;
        let wide = memory.wide.provide(&self.device, cells)?;
        self.device.fill_zero(wide, 0..cells)?;
        Ok(slot_table)
    }

    /// Keeps the slot table of a level for the next deposit, with the revision of the topology tables.
    fn keep_slot_table(&self, level: usize, revision: u64, slot_table: SlotTable) {
        let mut memory = self.memory();
        memory.slot_tables.insert(level, (revision, slot_table));
    }
}

impl Deposit<'_> {
    /// Deposits the species. `tables` is present if fields are on a device.
    ///
    /// # Errors
    /// The device fails.
    pub fn add_all(
        &mut self,
        all: &mut SpeciesMap,
        tables: Option<&DeviceTopology>,
    ) -> Result<(), DeviceError> {
        self.allocate();
        if let Some((kernels, tables)) = all.kernels().zip(tables) {
            self.fetch_from_device(all, &kernels, tables)?;
        }
        for species in &mut all.0 {
            if !self.counts(species) || species.is_on_device() {
                continue;
            }
            in_precision!(species.precision(), R => match self.clouds.width {
                1 => self.add_species::<R, 1>(species),
                2 => self.add_species::<R, 2>(species),
                _ => self.add_species::<R, 3>(species),
            });
        }
        Ok(())
    }

    /// Deposits the species on a device and adds the result to the host sums and messages.
    fn fetch_from_device(
        &mut self,
        all: &mut SpeciesMap,
        kernels: &ParticleKernels,
        tables: &DeviceTopology,
    ) -> Result<(), DeviceError> {
        let slot_table = kernels.slot_table(tables, self)?;
        let sums = self.add_species_on_device(all, kernels, tables, &slot_table)?;
        let messages = sums.messages()?;
        self.messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(messages);
        let rows = self.topology.rows(self.level);
        let sums = read(kernels, rows.len())?;
        for (&row, sums) in rows.iter().zip(sums.chunks_exact(CELLS)) {
            self.add(row, sums);
        }
        kernels.keep_slot_table(self.level, tables.revision(), slot_table);
        Ok(())
    }

    /// Deposits the species on a device, exchanges mass with other ranks and keeps the sums there. If
    /// `density` gives an address and a density per quantum, densities are written as well. Collective, as
    /// [`Deposit::finish`].
    ///
    /// # Errors
    /// The device fails; another rank or the transport has failed.
    pub fn add_on_device(
        &self,
        all: &mut SpeciesMap,
        kernels: &ParticleKernels,
        tables: &DeviceTopology,
        density: Option<(u64, f64)>,
        others: &Comm,
    ) -> Result<(), Error> {
        let (topology, level) = (self.topology, self.level);
        let slot_table = kernels.slot_table(tables, self)?;
        let sums = self.add_species_on_device(all, kernels, tables, &slot_table)?;
        if topology.is_shared() {
            sums.exchange(topology, level, others)?;
        }
        let (density, per_unit) = density.unwrap_or_default();
        sums.finish(topology, level, density, per_unit)?;
        kernels.keep_slot_table(level, tables.revision(), slot_table);
        Ok(())
    }

    /// Adds the species on a device to the sums there.
    fn add_species_on_device<'a>(
        &self,
        all: &mut SpeciesMap,
        kernels: &'a ParticleKernels,
        tables: &'a DeviceTopology,
        slot_table: &'a SlotTable,
    ) -> Result<DeviceSums<'a>, DeviceError> {
        let memory = kernels.memory();
        let addresses = [memory.sums.address(), memory.wide.address()];
        drop(memory);
        let sums = DeviceSums {
            kernels,
            tables,
            slot_table,
            addresses,
        };
        let weights = self.clouds.weights;
        let mut lists = Vec::new();
        for species in all.0.iter_mut().filter(|species| self.counts(species)) {
            let one = weights.of(species.mass);
            if let Some(particles) = species.upload(self.topology, Some(tables))? {
                lists.extend(particles.deposit_lists(self, sums, one)?);
            }
        }
        for group in lists.chunks(DEPOSIT_LISTS) {
            launch(kernels, group)?;
        }
        Ok(sums)
    }
}

impl DeviceSums<'_> {
    /// Distributes coarse mass to children and computes densities.
    fn finish(
        self,
        topology: &Topology,
        level: usize,
        density: u64,
        per_unit: f64,
    ) -> Result<(), DeviceError> {
        let [slots, ..] = self.slot_table.addresses();
        let finish = DensityParameters::<Number> {
            rows: self.tables.rows(level).into(),
            tables: device::tables(self.tables),
            slots: slots.into(),
            sums: self.addresses[0].into(),
            wide: if level > 0 {
                self.addresses[1].into()
            } else {
                Address::NONE
            },
            per_unit,
            density: density.into(),
        };
        let shape = LaunchShape::of(topology.rows(level).len(), THREADS);
        let kernels = self.kernels;
        kernels.device.launch(&kernels.density, shape, &finish)
    }
}

/// Returns `true` if a species contributes to a deposit of all species.
pub(super) fn counts(species: &Species, weights: DepositWeights) -> bool {
    matches!(weights, DepositWeights::Ones) || species.has_mass()
}

/// Returns `true` if all contributing species are on the device.
pub fn all_are_on_device(all: &SpeciesMap, weights: DepositWeights) -> bool {
    let mut all = all.0.iter().filter(|species| counts(species, weights));
    all.all(Species::is_on_device)
}

/// Downloads the latest sums, `[row][cell]`.
pub fn read(kernels: &ParticleKernels, rows: usize) -> Result<Vec<u64>, DeviceError> {
    let mut sums = vec![0; rows * CELLS];
    if let Some(buffer) = kernels.memory().sums.buffer() {
        kernels.device.download(buffer, 0, &mut sums)?;
    }
    Ok(sums)
}

impl Deposit<'_> {
    /// Returns `true` if clouds of particles on level `host` may be as wide as cells of the next coarser level.
    fn is_wider(&self, host: usize) -> bool {
        self.level > 0 && host <= self.level
    }
}

/// A list of particles that is deposited.
struct DepositList {
    args: DepositParameters,
    launch: ListLaunch,
    /// Memory traffic, bytes.
    bytes: usize,
}

/// Deposits up to [`DEPOSIT_LISTS`] lists by one launch: small lists then share the device.
fn launch(kernels: &ParticleKernels, group: &[DepositList]) -> Result<(), DeviceError> {
    let mut blocks = 0;
    let ends: Vec<i32> = (group.iter())
        .map(|list| {
            blocks += list.launch.shape.blocks;
            blocks as i32
        })
        .collect();
    let last = group.len() - 1;
    let parameters = DepositListsParameters {
        lists: std::array::from_fn(|n| group[n.min(last)].args),
        ends: std::array::from_fn(|n| ends[n.min(last)]),
    };
    let largest = |of: fn(&LaunchShape) -> u32| {
        let shapes = group.iter().map(|list| of(&list.launch.shape));
        shapes.fold(0, u32::max)
    };
    let shape = LaunchShape {
        shared: largest(|shape| shape.shared),
        ..LaunchShape::of(blocks as usize, largest(|shape| shape.threads))
    };
    let particles = group.iter().map(|list| list.launch.particles).sum();
    let bytes = group.iter().map(|list| list.bytes).sum();
    kernels.deposit.count_work(particles, bytes);
    kernels.device.launch(&kernels.deposit, shape, &parameters)
}

impl DeviceParticles {
    /// Returns the lists with particles that a deposit adds to the sums.
    fn deposit_lists(
        &mut self,
        deposit: &Deposit,
        on: DeviceSums,
        one: u64,
    ) -> Result<Vec<DepositList>, DeviceError> {
        let (topology, mut lists) = (deposit.topology, Vec::new());
        for ListId { level: host, list } in deposit.hosts().flat_map(ListId::both) {
            if !self.holds(host, list) {
                continue;
            }
            let mut launch = self.list(topology, device::tables(on.tables), host, list)?;
            let args = on.args(deposit, &launch, host, list, one);
            let wider = deposit.is_wider(host);
            let blocks = if wider { 2 } else { 1 };
            launch.shape.shared = blocks * BLOCK * size_of::<u64>() as u32;
            launch.shape.threads = launch.shape.threads.max(LEAST);
            // predicted positions also need velocities and accelerations
            let columns = if args.dt == 0.0 && args.newer == 0 {
                3
            } else {
                9
            };
            let each = (columns + usize::from(self.columns.masses)) * self.columns.number;
            let bytes = launch.particles * each;
            lists.push(DepositList {
                args,
                launch,
                bytes,
            });
        }
        Ok(lists)
    }
}

impl DeviceSums<'_> {
    /// Returns kernel parameters for a list of particles in patches of level `host`. `one` is the weight of a
    /// particle if all have the same mass.
    fn args(
        self,
        deposit: &Deposit,
        from: &ListLaunch,
        host: usize,
        list: usize,
        one: u64,
    ) -> DepositParameters {
        let [slots, shared, shared_wide, slot_tables] = self.slot_table.addresses();
        let (level, clouds, [sums, wide]) = (deposit.level, &deposit.clouds, self.addresses);
        let wider = deposit.is_wider(host);
        let width = deposit.topology.domain.cell_width(host);
        DepositParameters {
            from: from.list,
            clouds: CloudShape {
                width: clouds.width,
                zone: clouds.zone as i32,
                walls: wall_bits(clouds.walls),
            },
            slots: slots.into(),
            shared: shared.into(),
            shared_wide: shared_wide.into(),
            slot_tables: slot_tables.into(),
            sums: sums.into(),
            wide: if wider { wide.into() } else { Address::NONE },
            per_width: width.map(|width| 1.0 / (PATCH as f64 * width)),
            dt: deposit.time_offsets[host + list],
            most: power_of_two(host as i32 - level as i32) / PATCH as f64,
            quanta_per_mass: match clouds.weights {
                DepositWeights::Masses(quanta_per_mass) => quanta_per_mass,
                DepositWeights::Ones => 0.0,
            },
            one,
            finer: host.saturating_sub(level) as i32,
            beside: host < level,
            only_zone: clouds.has_only_zone(host),
            zone_times: deposit.zone_times(host, list),
            newer: clouds.without.map_or(0, |deep| deep.newer),
        }
    }
}
