//! Deposits particles on a device.
//!
//! Sums are stored in slots: those of own patches, then those of patches of other ranks. Where all neighbours are own
//! patches, kernels find the slots through the topology tables. Elsewhere the host builds explicit tables of 27 slots,
//! because not every receiving patch is stored on this rank.

use super::super::device::{
    self, BLOCK, DeviceParticles, LEAST, ListId, ListLaunch, ParticleKernels,
};
use super::super::mass_quantum::power_of_two;
use super::super::species::{Species, SpeciesMap};
use super::remote_sums::DestinationRanks;
use super::{Deposit, DepositWeights};
use nestar_device::{Address, Number};
use nestar_engine::comm::Comm;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::device::{Device, DeviceError, LaunchShape, ReusableBuffer};
use nestar_engine::mesh::{Topology, offset};
use nestar_engine::{Error, in_precision};
use nestar_kernels::mesh::{COARSER, OUTSIDE};
use nestar_kernels::particles::device::{CloudShape, DensityParameters};
use nestar_kernels::{CELLS, PATCH, particles};
use std::collections::BTreeMap;
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
    /// Returns the slot table of a level and clears the sums. Hand it back with
    /// [`ParticleKernels::keep_places`].
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
    /// Deposits all species. `tables` is present if fields are on a device.
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
        let weights = self.clouds.weights;
        for species in &mut all.0 {
            if !counts(species, weights) || species.is_on_device() {
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
        let all = all.0.iter_mut().filter(|species| counts(species, weights));
        for species in all {
            let one = weights.of(species.mass);
            if let Some(lists) = species.upload(self.topology, Some(tables))? {
                lists.add(self, sums, one)?;
            }
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

/// Returns `true` if a species contributes to the deposit.
fn counts(species: &Species, weights: DepositWeights) -> bool {
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

impl DeviceParticles {
    /// Adds the particles to the sums.
    fn add(&mut self, deposit: &Deposit, on: DeviceSums, one: u64) -> Result<(), DeviceError> {
        let (topology, level) = (deposit.topology, deposit.level);
        let hosts = level.saturating_sub(1)..=topology.finest();
        for ListId { level: host, list } in hosts.flat_map(ListId::both) {
            if !self.holds(host, list) {
                continue;
            }
            let mut from = self.list(topology, device::tables(on.tables), host, list)?;
            let args = on.args(deposit, &from, host, list, one);
            let wider = level > 0 && host <= level;
            let blocks = if wider { 2 } else { 1 };
            from.shape.shared = blocks * BLOCK * size_of::<u64>() as u32;
            from.shape.threads = from.shape.threads.max(LEAST);
            // predicted positions also need velocities and accelerations
            let columns = if args.dt == 0.0 { 3 } else { 9 };
            let bytes = (columns + usize::from(self.columns.masses)) * self.columns.number;
            let kernel = &self.kernels.deposit;
            self.kernels.work(kernel, &from, bytes, &args)?;
        }
        Ok(())
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
    ) -> particles::device::DepositParameters {
        let [slots, shared, shared_wide, slot_tables] = self.slot_table.addresses();
        let (level, clouds, [sums, wide]) = (deposit.level, &deposit.clouds, self.addresses);
        // clouds as wide as coarse cells are possible
        let wider = level > 0 && host <= level;
        let width = deposit.topology.domain.cell_width(host);
        particles::device::DepositParameters {
            from: from.list,
            clouds: CloudShape {
                width: clouds.width,
                zone: clouds.zone as i32,
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
        }
    }
}

/// Marks a missing slot.
const NOWHERE: i32 = -1;

/// Slots of the sums of a level, and of coarse sums in the cells that the level covers.
#[derive(Default)]
pub struct SlotTable {
    /// By row of the level: slot of its sums. By row of the next coarser level: slot of its coarse sums, if
    /// its children are own patches.
    pub slots: Vec<i32>,
    /// Own patches.
    pub own: usize,
    /// Patches of other ranks that may receive mass; their slots follow those of own patches.
    pub others: Vec<[i32; 3]>,
    /// Own octets.
    pub own_octets: usize,
    /// First patch of each octet that may receive coarse sums: own octets, then those of other ranks.
    pub octets: Vec<[i32; 3]>,
    /// The ranks that own them.
    pub receivers: DestinationRanks,
    on_device: SlotBuffers,
}

/// Device copies of the tables.
#[derive(Default)]
struct SlotBuffers {
    slots: ReusableBuffer<i32>,
    shared: [ReusableBuffer<i32>; 2],
    tables: ReusableBuffer<i32>,
}

impl SlotTable {
    /// Builds the slot table of a level.
    ///
    /// # Errors
    /// Device memory does not suffice.
    pub fn new(device: &Device, topology: &Topology, level: usize) -> Result<Self, DeviceError> {
        let mut builder = SlotTableBuilder::new(topology, level);
        let mut on_device = SlotBuffers::default();
        on_device.slots.set(device, &builder.table.slots)?;
        if topology.is_shared() {
            let shared = [builder.own_sums(), builder.coarser_sums()];
            for (kept, shared) in on_device.shared.iter_mut().zip(shared) {
                kept.set(device, &shared)?;
            }
            on_device
                .tables
                .set(device, builder.tables.as_flattened())?;
        }
        let mut table = builder.table;
        let owners = [&table.others, &table.octets].map(|slots| {
            let owners = slots.iter().map(|&index| topology.owner_at(level, index));
            owners.collect()
        });
        table.receivers = DestinationRanks::new(device, topology.rank(), owners)?;
        table.on_device = on_device;
        Ok(table)
    }

    /// Returns the addresses of the slots, of the table indices for fine and coarse sums, and of the tables.
    pub fn addresses(&self) -> [u64; 4] {
        let SlotBuffers {
            slots,
            shared: [own, coarser],
            tables,
        } = &self.on_device;
        [
            slots.address(),
            own.address(),
            coarser.address(),
            tables.address(),
        ]
    }

    /// Number of slots of the level.
    pub fn count(&self) -> usize {
        self.own + self.others.len()
    }
}

/// Builds a slot table.
struct SlotTableBuilder<'a> {
    topology: &'a Topology,
    level: usize,
    table: SlotTable,
    tables: Vec<[i32; 27]>,
    /// Slots of other ranks by patch index: of the level, of its octets.
    foreign: [BTreeMap<[i32; 3], i32>; 2],
}

impl<'a> SlotTableBuilder<'a> {
    /// Starts with the slots of own patches.
    fn new(topology: &'a Topology, level: usize) -> Self {
        let mut table = SlotTable {
            slots: vec![NOWHERE; topology.capacity()],
            own: topology.rows(level).len(),
            ..SlotTable::default()
        };
        for (slot, &row) in topology.rows(level).iter().enumerate() {
            table.slots[row as usize] = slot as i32;
            if let Some(parent) = topology.parent(row)
                && table.slots[parent as usize] == NOWHERE
            {
                table.slots[parent as usize] = table.octets.len() as i32;
                let first = topology.index(row).map(|i| i & !1);
                table.octets.push(first);
            }
        }
        table.own_octets = table.octets.len();
        Self {
            topology,
            level,
            table,
            tables: Vec::new(),
            foreign: Default::default(),
        }
    }

    /// Returns, by row of the level and finer ones, the table of the surrounding slots where neighbours are
    /// not all own patches.
    fn own_sums(&mut self) -> Vec<i32> {
        let topology = self.topology;
        let (mut numbers, mut known) = (vec![NOWHERE; topology.capacity()], BTreeMap::new());
        for host in self.level..=topology.finest() {
            for &row in topology.rows(host) {
                let index = topology.index(row).map(|i| i >> (host - self.level));
                let parent = topology.parent(row).filter(|&p| topology.is_owned(p));
                numbers[row as usize] = match parent.filter(|_| host > self.level) {
                    Some(parent) => numbers[parent as usize],
                    None if host == self.level && self.is_interior(row) => NOWHERE,
                    None => *known.entry(index).or_insert_with(|| {
                        let centre = (host == self.level).then_some(row);
                        let refined = centre.is_none_or(|row| !topology.is_leaf(row));
                        self.table(self.level, index, centre, |builder, index, row| {
                            builder.own_slot(index, row, refined)
                        })
                    }),
                };
            }
        }
        numbers
    }

    /// Returns, by row of the level and the next coarser one, the table of the surrounding slots of coarse
    /// sums.
    fn coarser_sums(&mut self) -> Vec<i32> {
        let topology = self.topology;
        let (mut numbers, mut known) = (vec![NOWHERE; topology.capacity()], BTreeMap::new());
        let Some(below) = self.level.checked_sub(1) else {
            return numbers;
        };
        for &row in topology.rows(below) {
            if !self.is_interior_below(row) {
                let index = topology.index(row);
                numbers[row as usize] = self.table(below, index, Some(row), Self::octet_slot);
            }
        }
        for &row in topology.rows(self.level) {
            let index = topology.index(row).map(|i| i >> 1);
            let parent = topology.parent(row).filter(|&p| topology.is_owned(p));
            numbers[row as usize] = match parent {
                Some(parent) => numbers[parent as usize],
                None => *known
                    .entry(index)
                    .or_insert_with(|| self.table(below, index, None, Self::octet_slot)),
            };
        }
        numbers
    }

    /// Returns `true` if all neighbours of an own patch are own patches.
    fn is_interior(&self, row: u32) -> bool {
        let around = self.topology.neighbours(row).iter();
        let mut around = around.map(|&beside| (beside, u32::try_from(beside)));
        around.all(|(code, beside)| match beside {
            Ok(beside) => self.topology.is_owned(beside),
            Err(_) => code == OUTSIDE || code == COARSER,
        })
    }

    /// Returns `true` if all refined neighbours of an own coarse patch have own children.
    fn is_interior_below(&self, row: u32) -> bool {
        let topology = self.topology;
        let is_own = |row: u32| {
            let child = topology.first_child(row);
            topology.is_leaf(row) || child.is_some_and(|child| topology.is_owned(child))
        };
        let mut around = topology.neighbours(row).iter();
        around.all(|&code| match u32::try_from(code) {
            Ok(beside) => is_own(beside),
            Err(_) => code == OUTSIDE || code == COARSER,
        })
    }

    /// Builds the table of slots around a patch and returns its index. `row` is the patch's row if it is
    /// stored on this rank.
    fn table(
        &mut self,
        level: usize,
        index: [i32; 3],
        row: Option<u32>,
        slot: impl Fn(&mut Self, [i32; 3], Option<u32>) -> i32,
    ) -> i32 {
        let topology = self.topology;
        let table = std::array::from_fn(|d| {
            let Some(there) = topology.place_beside(level, index, offset(d)) else {
                return OUTSIDE;
            };
            let beside = row.and_then(|row| u32::try_from(topology.neighbours(row)[d]).ok());
            slot(self, there, beside.or_else(|| topology.find(level, there)))
        });
        self.tables.push(table);
        self.tables.len() as i32 - 1
    }

    /// Returns the slot of a patch of the level. All neighbours exist around a `refined` patch.
    fn own_slot(&mut self, index: [i32; 3], row: Option<u32>, refined: bool) -> i32 {
        if self.topology.owner_at(self.level, index) == self.topology.rank() {
            return row.map_or(NOWHERE, |row| self.table.slots[row as usize]);
        }
        if !refined && row.is_none() {
            return NOWHERE;
        }
        let (foreign, others) = (&mut self.foreign[0], &mut self.table.others);
        *foreign.entry(index).or_insert_with(|| {
            others.push(index);
            (self.table.own + others.len()) as i32 - 1
        })
    }

    /// Returns the slot of the coarse sums of a refined coarse patch.
    fn octet_slot(&mut self, index: [i32; 3], row: Option<u32>) -> i32 {
        let Some(row) = row.filter(|&row| !self.topology.is_leaf(row)) else {
            return NOWHERE;
        };
        let first = index.map(|i| 2 * i);
        if self.topology.owner_at(self.level, first) == self.topology.rank() {
            return self.table.slots[row as usize];
        }
        let octets = &mut self.table.octets;
        *self.foreign[1].entry(first).or_insert_with(|| {
            octets.push(first);
            octets.len() as i32 - 1
        })
    }
}
