//! The mass of particles in the cells of a level, as whole units: sums are the same in any order, and no unit is lost.
//!
//! A particle has one cloud, as wide as a cell of its own level, or of the next coarser one beside that. What a level gets of it is what its
//! cells contain of that cloud. Parts of wider clouds that lie in cells of the level are dealt to them evenly.

mod block;
mod blocks;
mod on_device;
mod seen;

use super::Motion;
use super::columns::Precise;
use super::species::{Patch, Species, count};
use super::units::power_of_two;
use super::zone::{Zone, cell_of};
use block::Block;
use blocks::Blocks;
use nestar_engine::mesh::Topology;
use nestar_engine::ranks::{Letter, OtherRanks, RanksError};
use nestar_kernels::mesh::SELF;
use nestar_kernels::{CELLS, PATCH};
use rayon::prelude::*;
use seen::Seen;
pub use seen::Weights;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The clouds of particles.
#[derive(Clone, Copy)]
pub(super) struct Clouds {
    /// Cells that they cover along an axis.
    pub width: i32,
    /// Cells of the coarser level beside borders between levels.
    pub zone: usize,
    pub weights: Weights,
}

/// The sums of a level at a time.
pub(super) struct Deposit<'a> {
    pub topology: &'a Topology,
    pub clouds: Clouds,
    pub level: usize,
    /// The time of the particles that each level moves, less that of the sums.
    pub lags: Vec<f64>,
    /// Where the sums of a row stand, by row.
    slots: Vec<u32>,
    /// `[slot][cell]`.
    sums: Vec<AtomicU64>,
    letters: Mutex<Vec<Letter>>,
}

/// What a letter holds: sums of the patch itself, or of its parent, of which the patch is the first child.
const OWN: u8 = 0;
const OF_PARENT: u8 = 1;
/// A row that is not this rank's.
const NONE: u32 = u32::MAX;

impl<'a> Deposit<'a> {
    /// Empty sums of the mass of a level in units, of clouds.
    pub fn new(
        topology: &'a Topology,
        (motion, scale): (&'a Motion, f64),
        level: usize,
        lags: Vec<f64>,
    ) -> Self {
        let clouds = Clouds {
            width: motion.cloud,
            zone: motion.zone,
            weights: Weights::Masses(scale),
        };
        Self::of(topology, clouds, level, lags)
    }

    /// Empty sums of a level that stands with all finer ones, all of a particle in its cell.
    pub fn in_cells(topology: &'a Topology, weights: Weights, level: usize) -> Self {
        let clouds = Clouds {
            width: 1,
            zone: 0,
            weights,
        };
        Self::of(topology, clouds, level, vec![0.0; topology.max_level + 3])
    }

    fn of(topology: &'a Topology, clouds: Clouds, level: usize, lags: Vec<f64>) -> Self {
        let rows = topology.rows(level);
        let mut slots = vec![NONE; topology.capacity()];
        for (slot, &row) in rows.iter().enumerate() {
            slots[row as usize] = slot as u32;
        }
        let sums = (0..rows.len() * CELLS).map(|_| AtomicU64::new(0)).collect();
        Self {
            topology,
            clouds,
            level,
            lags,
            slots,
            sums,
            letters: Mutex::default(),
        }
    }

    /// How the particles are seen that level `host` has, or the next finer one moves there.
    fn seen<R: Precise>(&self, species: &Species, host: usize, list: usize) -> Seen<R> {
        let width = self.topology.domain.cell_width(host);
        let cells = PATCH as f64;
        Seen {
            dt: R::lit(self.lags[host + list]),
            per_width: width.map(|width| R::lit(1.0 / (cells * width))),
            most: power_of_two(host as i32 - self.level as i32) / cells,
            weights: self.clouds.weights,
            one: self.clouds.weights.of(species.mass),
            cloud: self.clouds.width,
        }
    }

    /// Adds the particles of some patches of `host`, this level or a finer one, that lie in one patch of this level.
    fn inside<R: Precise>(&self, species: &Species, host: usize, patches: &mut [(u32, Patch)]) {
        let finer = host - self.level;
        let Some((row, _)) = patches.first() else {
            return;
        };
        let index = self.topology.index(*row);
        let mut blocks = Blocks {
            finer,
            own: Block::new(index.map(|i| i >> finer)),
            coarser: (finer == 0 && host > 0).then(|| Block::new(index.map(|i| i >> 1))),
        };
        for (row, patch) in patches {
            let zone = Zone::of(self.topology, *row, self.clouds.zone);
            let index = self.topology.index(*row);
            for (list, rows) in patch.iter_mut().enumerate() {
                let seen = self.seen::<R>(species, host, list);
                for (page, count) in rows.pages::<R>(species.pool.columns) {
                    (0..count).for_each(|n| blocks.add((&seen, &page, n), (&zone, index)));
                }
            }
        }
        self.scatter(blocks.own, finer > 0);
        blocks
            .coarser
            .into_iter()
            .for_each(|block| self.deal_out(block));
    }

    /// Adds what the clouds of particles in leaves of the next coarser level have in cells of this one.
    fn beside<R: Precise>(&self, species: &Species, row: u32, patch: &mut Patch) {
        let host = self.level - 1;
        let index = self.topology.index(row);
        let mut block = Block::new(index);
        let zone = Zone::of(self.topology, row, self.clouds.zone);
        for (list, rows) in patch.iter_mut().enumerate() {
            let seen = self.seen::<R>(species, host, list);
            for (page, count) in rows.pages::<R>(species.pool.columns) {
                for n in 0..count {
                    let (place, step) = seen.place(&page, n);
                    if zone.is_inner(cell_of(place, step)) {
                        continue;
                    }
                    let patch = [0, 1, 2].map(|a| i64::from(index[a] + step[a]));
                    block.add_cloud((place, patch, 0), seen.weight(&page, n), seen.cloud);
                }
            }
        }
        self.deal_out(block);
    }

    /// Adds a block of this level to the patches that there are; around a patch that is refined there are all.
    fn scatter(&self, mut block: Block, refined: bool) {
        block.fold(self.topology, self.level);
        for (step, part) in block.by_patch() {
            let index = self.topology.place_beside(self.level, block.index, step);
            let Some(index) = index else { continue };
            let row = self.topology.find(self.level, index);
            if self.owner(index) != self.topology.rank() {
                if refined || row.is_some() {
                    self.send(index, OWN, &part.cells());
                }
            } else if let Some(row) = row {
                part.lines()
                    .for_each(|(first, line)| self.add(row, first, line));
            }
        }
    }

    /// Takes what a block of the coarser level has in cells that this level covers to this level's patches.
    fn deal_out(&self, mut block: Block) {
        let below = self.level - 1;
        block.fold(self.topology, below);
        for (step, part) in block.by_patch() {
            let index = self.topology.place_beside(below, block.index, step);
            let row = index.and_then(|index| self.topology.find(below, index));
            if let Some((index, row)) = index.zip(row)
                && !self.topology.is_leaf(row)
            {
                self.send(index.map(|i| 2 * i), OF_PARENT, &part.cells());
            }
        }
    }

    /// The rank that has, or would have, a patch of this level.
    fn owner(&self, index: [i32; 3]) -> usize {
        match self.topology.is_shared() {
            true => self
                .topology
                .cuts()
                .owner(self.level, self.topology.key_at(self.level, index)),
            false => 0,
        }
    }

    fn send(&self, index: [i32; 3], what: u8, cells: &[u64; CELLS]) {
        let mut bytes = Vec::with_capacity(8 * CELLS + 1);
        bytes.extend_from_slice(bytemuck::cast_slice(cells));
        bytes.push(what);
        let mut letters = self
            .letters
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        letters.push((index, bytes));
    }

    /// Adds mass to cells of a row from the first one on.
    #[inline(always)]
    fn add(&self, row: u32, first: usize, cells: &[u64]) {
        let slot = self.slots[row as usize] as usize;
        for (sum, &mass) in self.sums[slot * CELLS + first..].iter().zip(cells) {
            if mass > 0 {
                sum.fetch_add(mass, Relaxed);
            }
        }
    }

    /// Deals mass in the cells of a patch to the cells of its children, of which `first` is the first: eighths, and what is left over to the first
    /// ones.
    fn deal(&self, first: u32, cells: &[u64]) {
        for child in 0..8u32 {
            let corner = [0, 1, 2].map(|a| (child >> a & 1) as usize * PATCH / 2);
            let dealt = |cell: usize| {
                let at = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
                let [x, y, z] = [0, 1, 2].map(|a| corner[a] + at[a] / 2);
                let mass = cells[x + PATCH * (y + PATCH * z)];
                let eighth = (at[0] & 1) + 2 * (at[1] & 1) + 4 * (at[2] & 1);
                mass / 8 + u64::from((eighth as u64) < mass % 8)
            };
            let dealt: Vec<u64> = (0..CELLS).map(dealt).collect();
            self.add(first + child, 0, &dealt);
        }
    }

    fn add_species<R: Precise>(&self, species: &mut Species) {
        for host in self.level.saturating_sub(1)..=self.topology.finest() {
            let rows = self.topology.rows(host).iter().copied();
            let beside = host < self.level;
            let rows = rows.filter(|&row| !beside || self.meets_finer(row));
            let mut lifted = species.lift(rows);
            let lent = &*species;
            if beside {
                lifted
                    .par_iter_mut()
                    .for_each(|(row, patch)| self.beside::<R>(lent, *row, patch));
            } else {
                let mut groups = self.groups(host, &mut lifted);
                groups
                    .par_iter_mut()
                    .for_each(|patches| self.inside::<R>(lent, host, patches));
            }
            species.lower(lifted);
        }
    }

    /// Whether a leaf has a finer patch beside it.
    fn meets_finer(&self, row: u32) -> bool {
        let around = self.topology.neighbours(row).iter().enumerate();
        self.topology.is_leaf(row)
            && around.filter(|(d, _)| *d != SELF).any(|(_, &beside)| {
                u32::try_from(beside).is_ok_and(|beside| !self.topology.is_leaf(beside))
            })
    }

    /// Patches of `host` that follow each other and lie in one patch of this level, a few particles at a time.
    fn groups<'b>(
        &self,
        host: usize,
        mut patches: &'b mut [(u32, Patch)],
    ) -> Vec<&'b mut [(u32, Patch)]> {
        let finer = host - self.level;
        let above = |row: u32| self.topology.index(row).map(|i| i >> finer);
        let mut groups = Vec::new();
        while let Some((row, patch)) = patches.first() {
            let (index, mut number, mut length) = (above(*row), count(patch), 1);
            while let Some((row, patch)) = patches.get(length)
                && above(*row) == index
                && number < 1 << 14
            {
                (number, length) = (number + count(patch), length + 1);
            }
            let (group, rest) = patches.split_at_mut(length);
            groups.push(group);
            patches = rest;
        }
        groups
    }

    /// Sends what other ranks' patches get, and adds what has come; the sums of own rows, `[row][cell]`. All ranks call this.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn finish(self, others: &OtherRanks) -> Result<Vec<u64>, RanksError> {
        let letters = std::mem::take(
            &mut *self
                .letters
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        let mut dealt: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (row, bytes) in others.post(self.topology, self.level, joined(letters))? {
            let (cells, what) = bytes.split_at(8 * CELLS);
            let cells: Vec<u64> = bytemuck::pod_collect_to_vec(cells);
            match what[0] {
                // the sums of all ranks are dealt at once: what is left over goes to the same cells on any number of ranks
                OF_PARENT => {
                    let sums = dealt.entry(row).or_insert_with(|| vec![0; CELLS]);
                    sums.iter_mut()
                        .zip(cells)
                        .for_each(|(sum, mass)| *sum += mass);
                }
                _ => self.add(row, 0, &cells),
            }
        }
        dealt.iter().for_each(|(&row, cells)| self.deal(row, cells));
        Ok(self.sums.into_iter().map(AtomicU64::into_inner).collect())
    }
}

/// One letter of each kind to a patch: sums are added up before they are dealt, so that it does not matter who made which part of them.
fn joined(letters: Vec<Letter>) -> Vec<Letter> {
    let mut all: BTreeMap<([i32; 3], u8), Vec<u64>> = BTreeMap::new();
    for (index, bytes) in letters {
        let (cells, what) = bytes.split_at(8 * CELLS);
        let sums = all
            .entry((index, what[0]))
            .or_insert_with(|| vec![0; CELLS]);
        let cells: Vec<u64> = bytemuck::pod_collect_to_vec(cells);
        sums.iter_mut()
            .zip(cells)
            .for_each(|(sum, mass)| *sum += mass);
    }
    let letter = |((index, what), sums): (([i32; 3], u8), Vec<u64>)| {
        let mut bytes: Vec<u8> = bytemuck::cast_slice(&sums).to_vec();
        bytes.push(what);
        (index, bytes)
    };
    all.into_iter().map(letter).collect()
}
