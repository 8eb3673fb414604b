//! Deposits particle mass on a level in fixed point: the result does not depend on the order, and no quantum
//! is lost.
//!
//! The cloud of a particle is as wide as a cell of its own level, or of the next coarser level in the boundary
//! zone. Its level and the next finer one receive the part that overlaps their cells; mass deposited in a coarse
//! cell is distributed evenly to its eight child cells. On coarser levels the cloud is as wide as a cell of that
//! level, so that the own potential of a level treats all particles alike. In zones narrower than two cells it
//! stays narrow there, so that it lies in covered cells.
//!
//! `cloud_block.rs` deposits clouds of predicted positions around a patch, `threads.rs` runs
//! tasks in parallel, and `remote_sums.rs` exchanges sums. `device.rs` deposits on a device, in the slots of
//! `slot_table.rs`.

mod cloud_block;
mod device;
mod remote_sums;
mod slot_table;
mod threads;

use super::Motion;
use super::boundary_zone::{BoundaryZone, cell_of};
use super::mass_quantum::power_of_two;
use super::pages::{PAGE, Page, ParticleReal};
use super::species::{PatchParticles, Species};
pub(super) use cloud_block::WIDE as WIDE_CLOUD;
use cloud_block::{CloudBlock, CloudBlocks};
pub(super) use device::all_are_on_device;
use nestar_device::Real;
use nestar_engine::comm::{Comm, PatchMessage, RanksError};
use nestar_engine::mesh::{Levels, Topology, offset, parallel};
use nestar_kernels::mesh::SELF;
use nestar_kernels::particles::cloud::{quanta_of, split};
use nestar_kernels::particles::motion::{displacement, moved};
use nestar_kernels::{CELLS, PATCH};
use remote_sums::{OF_PARENT, OWN};
pub(super) use slot_table::SlotTable;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};
use threads::{PatchGroup, ThreadSums};

/// Weight of particles in a deposit.
#[derive(Clone, Copy, Debug)]
pub enum DepositWeights {
    /// The mass, with this number of quanta per unit mass.
    Masses(f64),
    /// One per particle.
    Ones,
}

impl DepositWeights {
    /// Returns the weight of a particle of a mass.
    #[inline(always)]
    pub fn of(self, mass: impl Real) -> u64 {
        match self {
            Self::Masses(quanta_per_mass) => quanta_of(mass, quanta_per_mass),
            Self::Ones => 1,
        }
    }
}

/// Prediction for the particles of a list, at the time of a deposit.
pub struct PredictedPositions<R> {
    /// Deposit time minus particle time.
    pub dt: R,
    /// Inverse patch width along each axis.
    pub per_width: [R; 3],
    /// Longest displacement in patch widths: one cell of the level of the deposit.
    pub most: f64,
    /// Weight of particles.
    pub weights: DepositWeights,
    /// Weight of a particle if all have the same mass.
    pub one: u64,
    /// Times of the states of [`DeepParticles`], minus particle time.
    pub zone_times: [R; 2],
    /// Weight of the newer state in 2^-32.
    pub newer: u32,
}

impl<R: ParticleReal> PredictedPositions<R> {
    /// Returns the predicted offset of particle `n` and the number of patches it has moved.
    #[inline(always)]
    pub fn offset(&self, page: &Page<R>, n: usize) -> ([u64; 3], [i32; 3]) {
        self.offset_after(page, n, self.dt, self.most)
    }

    /// Returns the offset of particle `n` after a time, and the number of patches it has moved, at most `most`.
    #[inline(always)]
    fn offset_after(&self, page: &Page<R>, n: usize, dt: R, most: f64) -> ([u64; 3], [i32; 3]) {
        let mut offset = page.offset_of(n);
        let mut step = [0; 3];
        if dt == R::lit(0.0) {
            return (offset, step);
        }
        for axis in 0..3 {
            let (v, a) = (page.velocity[axis][n], page.acceleration[axis][n]);
            let by = displacement(v, a, dt, self.per_width[axis]).to_f64();
            let by = by.clamp(-most, most);
            let whole = by.trunc();
            let (to, carry) = moved(offset[axis], by - whole, R::BITS);
            (offset[axis], step[axis]) = (to, whole as i32 + carry);
        }
        (offset, step)
    }

    /// Returns the part of the mass of particle `n` that is outside the boundary zone, by the states of [`DeepParticles`].
    #[inline(always)]
    pub fn deep_part(&self, page: &Page<R>, n: usize, zone: &BoundaryZone, mass: u64) -> u64 {
        let newer = split(mass, self.newer);
        let states = self.zone_times.iter().zip([mass - newer, newer]);
        let part = |(&dt, part)| {
            let (offset, step) = self.offset_after(page, n, dt, 2.0 * self.most);
            if zone.is_inner(cell_of(offset, step)) {
                0
            } else {
                part
            }
        };
        states.map(part).sum()
    }

    /// Predicts all particles of a page, axis by axis.
    #[inline(always)]
    pub fn offsets(&self, page: &Page<R>) -> ([[u64; PAGE]; 3], [[i32; PAGE]; 3]) {
        let (mut offsets, mut steps) = ([[0; PAGE]; 3], [[0; PAGE]; 3]);
        if self.dt == R::lit(0.0) {
            for axis in 0..3 {
                for n in 0..PAGE {
                    offsets[axis][n] = R::widen(page.offset[axis][n]);
                }
            }
            return (offsets, steps);
        }
        for n in 0..PAGE {
            let (offset, step) = self.offset(page, n);
            for axis in 0..3 {
                (offsets[axis][n], steps[axis][n]) = (offset[axis], step[axis]);
            }
        }
        (offsets, steps)
    }

    /// Returns the weight of particle `n`.
    #[inline(always)]
    pub fn weight(&self, page: &Page<R>, n: usize) -> u64 {
        match page.mass.get(n) {
            Some(&mass) => self.weights.of(mass),
            None => self.one,
        }
    }
}

/// Cloud parameters of a deposit.
#[derive(Clone, Copy)]
pub(super) struct DepositClouds {
    /// Cells that a cloud covers along an axis.
    pub width: i32,
    /// Width of the coarse-fine boundary zone in coarse cells.
    pub zone: usize,
    /// Reflecting faces of the domain, `[axis][side]`.
    pub walls: [[bool; 2]; 3],
    pub weights: DepositWeights,
    /// If given, these particles have no clouds.
    pub without: Option<DeepParticles>,
}

/// Particles on a level that are outside its boundary zone, and those on finer levels.
///
/// Where a level reads the potential of such particles on the coarser level, that potential is interpolated between two states.
/// Their masses must be weighted alike: a particle counts with the weights of those states in which it is outside the zone.
#[derive(Clone, Copy)]
pub(super) struct DeepParticles {
    /// The level.
    pub level: usize,
    /// Times of the states of the next coarser level, minus that of the deposit.
    pub states: [f64; 2],
    /// Weight of the newer state in 2^-32.
    pub newer: u32,
}

impl DeepParticles {
    /// Returns the particles that are outside the boundary zone of a level at the time of the deposit.
    pub fn now(level: usize) -> Self {
        Self {
            level,
            states: [0.0; 2],
            newer: 0,
        }
    }

    /// Returns the particles of a level at the end of its step, when the coarser level has taken its step.
    pub fn in_step(level: usize, time: f64, levels: &Levels) -> Self {
        let Some(below) = level.checked_sub(1) else {
            return Self::now(level);
        };
        let (new, dt) = (levels.time(below), levels.clock(below).dt);
        let old = new - dt;
        if time >= new || old >= new {
            return Self::now(level);
        }
        Self {
            level,
            states: [old - time, new - time],
            newer: ((time - old) / (new - old) * power_of_two(32)) as u32,
        }
    }
}

impl DepositClouds {
    /// Returns `true` if only the boundary zone of level `host` has clouds.
    fn has_only_zone(&self, host: usize) -> bool {
        self.without.is_some_and(|deep| deep.level == host)
    }
}

/// Deposit on one level at one time.
pub(super) struct Deposit<'a> {
    pub topology: &'a Topology,
    pub clouds: DepositClouds,
    /// Names of the species that are deposited; none: all.
    species: &'a [String],
    pub level: usize,
    /// Deposit time minus the time of the particles, by the level that moves them.
    pub time_offsets: Vec<f64>,
    /// Index of the sums of each row, or `NONE`.
    slots: Vec<u32>,
    /// Sums `[slot][cell]`; empty while they are on a device.
    sums: Vec<u64>,
    messages: Mutex<Vec<PatchMessage>>,
}

/// Smallest width of the boundary zone at which clouds as wide as coarse cells, of particles deep in a finer level,
/// stay within the covered cells.
pub(super) const WIDE_ZONE: usize = 2;

/// Marks a row of another rank.
const NONE: u32 = u32::MAX;

impl<'a> Deposit<'a> {
    /// Starts a deposit of mass.
    pub fn new(
        topology: &'a Topology,
        motion: &'a Motion,
        quanta_per_mass: f64,
        level: usize,
        time_offsets: Vec<f64>,
    ) -> Self {
        let clouds = DepositClouds {
            width: motion.cloud,
            zone: motion.zone,
            walls: motion.walls,
            weights: DepositWeights::Masses(quanta_per_mass),
            without: None,
        };
        Self::of(topology, clouds, level, time_offsets)
    }

    /// Leaves out some particles.
    pub fn without(mut self, deep: DeepParticles) -> Self {
        self.clouds.without = Some(deep);
        self
    }

    /// Deposits only the species with these names, or all if there are none.
    pub fn of_species(mut self, names: &'a [String]) -> Self {
        self.species = names;
        self
    }

    /// Returns `true` if a species contributes.
    fn counts(&self, species: &Species) -> bool {
        let is_chosen = self.species.is_empty() || self.species.contains(&species.name);
        is_chosen && device::counts(species, self.clouds.weights)
    }

    /// Returns the levels of the particles that have clouds.
    fn hosts(&self) -> RangeInclusive<usize> {
        let finest = self.topology.finest();
        let last = self.clouds.without.map_or(finest, |deep| deep.level);
        self.level.saturating_sub(1)..=last.min(finest)
    }

    /// Starts a deposit of each particle in its cell, on synchronised levels.
    pub fn in_cells(topology: &'a Topology, weights: DepositWeights, level: usize) -> Self {
        let clouds = DepositClouds {
            width: 1,
            zone: 0,
            walls: [[false; 2]; 3],
            weights,
            without: None,
        };
        Self::of(topology, clouds, level, vec![0.0; topology.max_level + 3])
    }

    fn of(
        topology: &'a Topology,
        clouds: DepositClouds,
        level: usize,
        time_offsets: Vec<f64>,
    ) -> Self {
        let rows = topology.rows(level);
        let mut slots = vec![NONE; topology.capacity()];
        for (slot, &row) in rows.iter().enumerate() {
            slots[row as usize] = slot as u32;
        }
        Self {
            topology,
            clouds,
            species: &[],
            level,
            time_offsets,
            slots,
            sums: Vec::new(),
            messages: Mutex::default(),
        }
    }

    /// Allocates the sums on the host.
    fn allocate(&mut self) {
        let rows = self.topology.rows(self.level).len();
        self.sums.resize(rows * CELLS, 0);
    }

    /// Returns the prediction for particles of a list in patches of level `host`.
    fn prediction<R: ParticleReal>(
        &self,
        species: &Species,
        host: usize,
        list: usize,
    ) -> PredictedPositions<R> {
        let width = self.topology.domain.cell_width(host);
        let cells = PATCH as f64;
        PredictedPositions {
            dt: R::lit(self.time_offsets[host + list]),
            per_width: width.map(|width| R::lit(1.0 / (cells * width))),
            most: power_of_two(host as i32 - self.level as i32) / cells,
            weights: self.clouds.weights,
            one: self.clouds.weights.of(species.mass),
            zone_times: self.zone_times(host, list).map(R::lit),
            newer: self.clouds.without.map_or(0, |deep| deep.newer),
        }
    }

    /// Returns the times of the states of [`DeepParticles`] minus the time of the particles of a list.
    fn zone_times(&self, host: usize, list: usize) -> [f64; 2] {
        let dt = self.time_offsets[host + list];
        let states = self.clouds.without.map_or([0.0; 2], |deep| deep.states);
        states.map(|state| dt + state)
    }

    /// Returns the ghost layers that clouds of particles on level `host` can reach.
    fn layers(&self, width: usize, host: usize) -> usize {
        let moves = self.time_offsets[host..host + 2]
            .iter()
            .any(|&dt| dt != 0.0);
        width / 2 + usize::from(moves)
    }

    /// Deposits particles in patches of level `host` (this level or a finer one). Each group lies in one
    /// patch of this level.
    fn deposit_groups<R: ParticleReal, const W: usize>(
        &self,
        species: &Species,
        host: usize,
        groups: Vec<PatchGroup>,
        share: &mut ThreadSums,
    ) {
        let (finer, wide) = (host - self.level, self.layers(W.max(WIDE_CLOUD), host));
        let layers = if finer > 0 {
            wide
        } else {
            self.layers(W, host)
        };
        let mut blocks = CloudBlocks {
            finer,
            are_wide: self.clouds.zone >= WIDE_ZONE,
            only_zone: self.clouds.has_only_zone(host),
            own: CloudBlock::new([0; 3], layers),
            coarser: None,
        };
        for patches in groups {
            let index = self.topology.index(patches[0].0);
            blocks.own.reset(index.map(|i| i >> finer));
            for (row, patch) in patches {
                let zone = BoundaryZone::of(self.topology, *row, self.clouds.zone);
                let index = self.topology.index(*row);
                if blocks.only_zone && !zone.has_inner() {
                    continue;
                }
                if finer == 0 && zone.has_inner() {
                    blocks.coarser = Some(CloudBlock::new(index.map(|i| i >> 1), wide));
                }
                for (list, rows) in patch.iter_mut().enumerate() {
                    let seen = self.prediction::<R>(species, host, list);
                    for (page, count) in rows.read_pages::<R>(species.pool.columns) {
                        blocks.add::<R, W>(&seen, &page, count, &zone, index);
                    }
                }
            }
            self.scatter(&mut blocks.own, finer > 0, share);
            if let Some(block) = blocks.coarser.take() {
                self.send_to_children(block);
            }
        }
    }

    /// Deposits the part of clouds in leaves of the next coarser level that lies in cells of this level.
    fn deposit_coarser<R: ParticleReal, const W: usize>(
        &self,
        species: &Species,
        row: u32,
        patch: &mut PatchParticles,
    ) {
        let host = self.level - 1;
        let index = self.topology.index(row);
        let mut block = CloudBlock::new(index, self.layers(W, host));
        let zone = BoundaryZone::of(self.topology, row, self.clouds.zone);
        for (list, rows) in patch.iter_mut().enumerate() {
            let seen = self.prediction::<R>(species, host, list);
            for (page, count) in rows.read_pages::<R>(species.pool.columns) {
                for n in 0..count {
                    let (offset, step) = seen.offset(&page, n);
                    if zone.is_inner(cell_of(offset, step)) {
                        continue;
                    }
                    let patch = [index[0] + step[0], index[1] + step[1], index[2] + step[2]];
                    block.add_cloud::<W>(offset, patch, 0, seen.weight(&page, n));
                }
            }
        }
        self.send_to_children(block);
    }

    /// Adds a block to the sums of existing patches. All neighbours exist around a refined patch.
    fn scatter(&self, block: &mut CloudBlock, refined: bool, share: &mut ThreadSums) {
        let (topology, level) = (self.topology, self.level);
        block.fold(topology, level, self.clouds.walls);
        let here = topology.find(level, block.index);
        let here = here.filter(|&row| topology.is_owned(row));
        for d in 0..27 {
            let part = block.part(d);
            let beside = here.and_then(|here| u32::try_from(topology.neighbours(here)[d]).ok());
            if let Some(slot) = beside.and_then(|row| self.slot(row)) {
                share.add(slot, &part);
                continue;
            }
            let index = topology.place_beside(level, block.index, offset(d));
            let Some(index) = index.filter(|_| !part.is_empty()) else {
                continue;
            };
            let row = topology.find(level, index);
            if topology.owner_at(level, index) != topology.rank() {
                if refined || row.is_some() {
                    self.send(index, OWN, &part.cells());
                }
            } else if let Some(slot) = row.and_then(|row| self.slot(row)) {
                share.add(slot, &part);
            }
        }
    }

    /// Sends mass in covered coarse cells to the patches that cover them.
    fn send_to_children(&self, mut block: CloudBlock) {
        let below = self.level - 1;
        block.fold(self.topology, below, self.clouds.walls);
        for d in 0..27 {
            let part = block.part(d);
            let index = self.topology.place_beside(below, block.index, offset(d));
            let index = index.filter(|_| !part.is_empty());
            let row = index.and_then(|index| self.topology.find(below, index));
            if let Some((index, row)) = index.zip(row)
                && !self.topology.is_leaf(row)
            {
                self.send(index.map(|i| 2 * i), OF_PARENT, &part.cells());
            }
        }
    }

    /// Returns the index of the sums of an own row.
    fn slot(&self, row: u32) -> Option<usize> {
        let slot = self.slots[row as usize];
        (slot != NONE).then_some(slot as usize)
    }

    fn send(&self, index: [i32; 3], what: u8, cells: &[u64; CELLS]) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push(remote_sums::encode(index, what, cells));
    }

    /// Adds mass to the cells of an own row.
    fn add(&mut self, row: u32, cells: &[u64]) {
        let Some(slot) = self.slot(row) else { return };
        let sums = self.sums[slot * CELLS..].iter_mut().zip(cells);
        sums.for_each(|(sum, &mass)| *sum = sum.wrapping_add(mass));
    }

    /// Distributes mass in the cells of a patch to its eight children: an eighth each, the remainder to the
    /// first ones.
    fn distribute_to_children(&mut self, first: u32, cells: &[u64]) {
        for child in 0..8u32 {
            let corner = [0, 1, 2].map(|a| (child >> a & 1) as usize * PATCH / 2);
            let child_sum = |cell: usize| {
                let at = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
                let [x, y, z] = [0, 1, 2].map(|a| corner[a] + at[a] / 2);
                let mass = cells[x + PATCH * (y + PATCH * z)];
                let octant = (at[0] & 1) + 2 * (at[1] & 1) + 4 * (at[2] & 1);
                let eighth = (mass as i64 >> 3) as u64;
                eighth.wrapping_add(u64::from((octant as u64) < mass % 8))
            };
            let child_sums: Vec<u64> = (0..CELLS).map(child_sum).collect();
            self.add(first + child, &child_sums);
        }
    }

    /// Deposits a species with clouds `W` cells wide.
    fn add_species<R: ParticleReal, const W: usize>(&mut self, species: &mut Species) {
        let mut sums = std::mem::take(&mut self.sums);
        for host in self.hosts() {
            let rows = self.topology.rows(host).iter().copied();
            let beside = host < self.level;
            let rows = rows.filter(|&row| !beside || self.has_refined_neighbour(row));
            let mut detached = species.take_patches(rows);
            let shared = &*species;
            if beside {
                parallel::for_each_mut(&mut detached, |_, (row, patch)| {
                    self.deposit_coarser::<R, W>(shared, *row, patch);
                });
            } else {
                let tasks = self.tasks(host, self.groups(host, &mut detached));
                threads::add_all(&mut sums, tasks, |groups, share| {
                    self.deposit_groups::<R, W>(shared, host, groups, share);
                });
            }
            species.restore_patches(detached);
        }
        self.sums = sums;
    }

    /// Returns `true` if a leaf has a refined neighbour.
    fn has_refined_neighbour(&self, row: u32) -> bool {
        let around = self.topology.neighbours(row).iter().enumerate();
        self.topology.is_leaf(row)
            && around.filter(|(d, _)| *d != SELF).any(|(_, &beside)| {
                u32::try_from(beside).is_ok_and(|beside| !self.topology.is_leaf(beside))
            })
    }

    /// Exchanges mass between ranks and returns the sums of own rows, `[row][cell]`. Collective.
    ///
    /// # Errors
    /// Another rank or the transport has failed.
    pub fn finish(mut self, others: &Comm) -> Result<Vec<u64>, RanksError> {
        let messages =
            std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner));
        let mut coarse_sums: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (row, bytes) in
            others.send_to_patches(self.topology, self.level, remote_sums::merge(messages))?
        {
            let (what, words) = remote_sums::decode(&bytes);
            match (what, self.slot(row)) {
                // distribute the total over all ranks at once: remainders then do not depend on the number of
                // ranks
                (OF_PARENT, _) => {
                    remote_sums::add(
                        &words,
                        coarse_sums.entry(row).or_insert_with(|| vec![0; CELLS]),
                    );
                }
                (_, Some(slot)) => remote_sums::add(&words, &mut self.sums[slot * CELLS..]),
                _ => (),
            }
        }
        coarse_sums
            .iter()
            .for_each(|(&row, cells)| self.distribute_to_children(row, cells));
        Ok(self.sums)
    }
}
