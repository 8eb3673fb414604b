//! Deposits on a device, and beside one.

use super::super::device::{self, BLOCK, Kernels, LEAST, Memory, OnDevice};
use super::super::species::{AllSpecies, Species};
use super::super::units::power_of_two;
use super::{Deposit, Weights};
use nestar_device::{Address, Number};
use nestar_engine::device::{DeviceError, Shape};
use nestar_engine::field::device::DeviceTopology;
use nestar_engine::in_precision;
use nestar_engine::mesh::Topology;
use nestar_kernels::particles::device::{Clouds, Finish};
use nestar_kernels::{CELLS, PATCH, particles};

/// Threads of a block that finishes the sums of a patch.
const THREADS: u32 = 256;

impl Kernels {
    /// Empties the sums of a level, and those in covered cells of the next coarser one.
    fn clear(
        &self,
        memory: &mut Memory,
        topology: &Topology,
        level: usize,
    ) -> Result<(), DeviceError> {
        let mut slots = vec![-1; topology.capacity()];
        let below = level.checked_sub(1);
        for level in below.into_iter().chain([level]) {
            for (slot, &row) in topology.rows(level).iter().enumerate() {
                slots[row as usize] = slot as i32;
            }
        }
        memory.slots.set(&self.device, &slots)?;
        let cells = topology.rows(level).len() * CELLS;
        let sums = memory.sums.provide(&self.device, cells)?;
        self.device.fill_zero(sums, 0..cells)?;
        if let Some(below) = below {
            let cells = topology.rows(below).len() * CELLS;
            let wide = memory.wide.provide(&self.device, cells)?;
            self.device.fill_zero(wide, 0..cells)?;
        }
        Ok(())
    }
}

impl Deposit<'_> {
    /// Adds all species; `tables` is there if fields live on a device.
    ///
    /// # Errors
    /// The device fails.
    pub fn add_all(
        &mut self,
        all: &mut AllSpecies,
        tables: Option<&DeviceTopology>,
    ) -> Result<(), DeviceError> {
        if let Some((kernels, tables)) = all.kernels().zip(tables) {
            self.add_on_device(all, (&kernels, tables), None)?;
            let rows = self.topology.rows(self.level);
            let sums = read(&kernels, rows.len())?;
            for (&row, sums) in rows.iter().zip(sums.chunks_exact(CELLS)) {
                self.add(row, sums);
            }
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

    /// Sums of the species on a device, which stay there; where `density` names an address, and what a unit is there, they go on as densities.
    ///
    /// # Errors
    /// The device fails.
    pub fn add_on_device(
        &self,
        all: &mut AllSpecies,
        (kernels, tables): (&Kernels, &DeviceTopology),
        density: Option<(u64, f64)>,
    ) -> Result<(), DeviceError> {
        let (topology, level) = (self.topology, self.level);
        let mut memory = kernels.memory();
        kernels.clear(&mut memory, topology, level)?;
        let addresses = [memory.sums.address(), memory.wide.address()];
        let slots = memory.slots.address();
        drop(memory);
        let weights = self.clouds.weights;
        let all = all.0.iter_mut().filter(|species| counts(species, weights));
        for species in all {
            let one = weights.of(species.mass);
            if let Some(lists) = species.settled(topology, Some(tables))? {
                lists.add(self, tables, (slots, addresses, one))?;
            }
        }
        let (density, per_unit) = density.unwrap_or_default();
        let finish = Finish::<Number> {
            rows: tables.rows(level).into(),
            tables: device::tables(tables),
            slots: slots.into(),
            sums: addresses[0].into(),
            wide: if level > 0 {
                addresses[1].into()
            } else {
                Address::NONE
            },
            per_unit,
            density: density.into(),
        };
        let rows = topology.rows(level).len();
        kernels
            .device
            .launch(&kernels.finish, Shape::of(rows, THREADS), &finish)
    }
}

/// Whether a species adds anything.
fn counts(species: &Species, weights: Weights) -> bool {
    matches!(weights, Weights::Ones) || species.has_mass()
}

/// Whether all that count are where kernels move them.
pub fn all_are_on_device(all: &AllSpecies, weights: Weights) -> bool {
    let mut all = all.0.iter().filter(|species| counts(species, weights));
    all.all(Species::is_on_device)
}

/// The sums that were made last, `[row][cell]`.
pub fn read(kernels: &Kernels, rows: usize) -> Result<Vec<u64>, DeviceError> {
    let mut sums = vec![0; rows * CELLS];
    if let Some(buffer) = kernels.memory().sums.buffer() {
        kernels.device.download(buffer, 0, &mut sums)?;
    }
    Ok(sums)
}

impl OnDevice {
    /// Adds the particles to sums.
    fn add(
        &mut self,
        deposit: &Deposit,
        tables: &DeviceTopology,
        (slots, [sums, wide], one): (u64, [u64; 2], u64),
    ) -> Result<(), DeviceError> {
        let (topology, level, clouds) = (deposit.topology, deposit.level, &deposit.clouds);
        let hosts = level.saturating_sub(1)..=topology.finest();
        for (host, list) in hosts.flat_map(|host| [(host, 0), (host, 1)]) {
            if !self.holds(host, list) {
                continue;
            }
            // with clouds as wide as cells of the coarser level
            let wider = level > 0 && host <= level;
            let mut from = self.list((topology, device::tables(tables)), host, list)?;
            let width = topology.domain.cell_width(host);
            let given = particles::device::Deposit {
                from: from.list,
                clouds: Clouds {
                    width: clouds.width,
                    zone: clouds.zone as i32,
                },
                slots: slots.into(),
                sums: sums.into(),
                wide: if wider { wide.into() } else { Address::NONE },
                per_width: width.map(|width| 1.0 / (PATCH as f64 * width)),
                dt: deposit.lags[host + list],
                most: power_of_two(host as i32 - level as i32) / PATCH as f64,
                scale: match clouds.weights {
                    Weights::Masses(scale) => scale,
                    Weights::Ones => 0.0,
                },
                one,
                finer: host.saturating_sub(level) as i32,
                beside: host < level,
            };
            let blocks = if wider { 2 } else { 1 };
            from.shape.shared = blocks * BLOCK * size_of::<u64>() as u32;
            from.shape.threads = from.shape.threads.max(LEAST);
            // of those that look ahead or back also velocities and accelerations
            let columns = if given.dt == 0.0 { 3 } else { 9 };
            let bytes = (columns + usize::from(self.columns.masses)) * self.columns.number;
            let kernel = &self.kernels.deposit;
            self.kernels.work(kernel, (&from, bytes), &given)?;
        }
        Ok(())
    }
}
