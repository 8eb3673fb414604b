//! Converts initial positions to root patches, offsets and cells, also before the particles are created.

use super::super::MassQuantum;
use super::super::deposit::DepositWeights;
use super::super::pages::ParticleReal;
use super::super::species::SpeciesMap;
use super::{BATCH, InitialSources, ParticleSource, RecordBuilder};
use bevy_ecs::prelude::*;
use nestar_engine::mesh::{Domain, Topology, parallel};
use nestar_engine::{Error, in_precision};
use nestar_kernels::{CELLS, PATCH};
use rayon::prelude::*;

/// Units of an offset per patch width: 2^64.
const WIDTH: f64 = 18_446_744_073_709_551_616.0;

/// Index of a root patch, and the offset in units of 2^-64 of its width.
pub(super) type PatchPosition = ([i32; 3], [u64; 3]);

/// Largest distance from a periodic domain in domain widths; beyond it a position has no significant digits.
const FARTHEST: f64 = 1e6;

/// Returns the root patch of a position and the offset in it. Returns `None` outside a domain that is not
/// periodic, or too far from a periodic one.
pub(super) fn locate<R: ParticleReal>(
    domain: &Domain,
    position: [f64; 3],
) -> Option<PatchPosition> {
    let (mut index, mut offset) = ([0; 3], [0; 3]);
    for axis in 0..3 {
        let (left, right) = (domain.left_edge[axis], domain.right_edge[axis]);
        let patches = f64::from(domain.root[axis]);
        let mut along = (position[axis] - left) / (right - left) * patches;
        if domain.periodic[axis] {
            if along.abs() > FARTHEST * patches {
                return None;
            }
            along -= patches * (along / patches).floor();
        }
        // also if the division rounds up
        if along >= patches && (domain.periodic[axis] || position[axis] <= right) {
            along = patches.next_down();
        }
        if !(0.0..patches).contains(&along) {
            return None;
        }
        let whole = along.floor();
        index[axis] = whole as i32;
        offset[axis] = R::widen(R::narrow(((along - whole) * WIDTH) as u64));
    }
    Some((index, offset))
}

/// Returns the positions of at most `most` particles, evenly sampled from a source, for the cost estimate.
pub(in crate::particles) fn initial_positions(
    source: &dyn ParticleSource,
    domain: &Domain,
    most: u64,
) -> Vec<[f64; 3]> {
    let (count, most) = (source.count(), most.min(source.count()));
    let id = |n: u64| (u128::from(count) * u128::from(n) / u128::from(most)) as u64;
    let width = domain.cell_width(0).map(|width| width * PATCH as f64);
    let found = (0..most).into_par_iter().filter_map(|n| {
        let made = source.make(id(n)).ok()??;
        let (index, offset) = locate::<f64>(domain, made.position)?;
        Some([0, 1, 2].map(|axis| {
            let along = f64::from(index[axis]) + offset[axis] as f64 / WIDTH;
            domain.left_edge[axis] + along * width[axis]
        }))
    });
    found.collect()
}

/// Cells of all initial particles, while the initial hierarchy is estimated part by part.
#[derive(Resource, Default)]
pub struct InitialCells {
    /// `true` if a criterion needs them.
    wanted: bool,
    /// Names of the species whose cells are needed; none: all.
    species: Vec<String>,
    /// `true` if they have been located.
    found: bool,
    /// Finest level with criteria.
    finest: usize,
    /// Cells of that level as Morton keys, ascending, with the mass of each particle.
    offsets: Vec<(u128, f64)>,
}

impl InitialCells {
    /// Requests the cells of the species with these names for a criterion, or of all if there are none.
    pub fn request(&mut self, species: &[String]) {
        (self.wanted, self.species) = (true, species.to_vec());
    }

    /// Forgets the cells when the particles exist.
    pub fn clear(&mut self) {
        (self.found, self.offsets) = (false, Vec::new());
    }

    /// Locates all particles on the first call, and sets the mass quantum.
    ///
    /// # Errors
    /// As when the particles are created.
    pub(super) fn locate(
        &mut self,
        topology: &Topology,
        species: &SpeciesMap,
        sources: &InitialSources,
        quantum: &mut MassQuantum,
    ) -> Result<(), Error> {
        if !self.wanted || self.found {
            return Ok(());
        }
        (self.found, self.finest) = (true, topology.max_level.saturating_sub(1));
        let mut lightest = Vec::new();
        let (mut count, mut largest) = (0, 0.0);
        for (species, source) in species.0.iter().zip(&sources.0) {
            let before = self.offsets.len();
            let maker = RecordBuilder::of(species, &**source, &topology.domain);
            let one = (!species.pool.columns.masses).then_some(species.mass);
            in_precision!(species.precision(), R => {
                self.add::<R>(&maker, one).map_err(Error::Setup)?;
            });
            let own = self.offsets[before..].iter().map(|(_, mass)| *mass);
            (count, largest) = (
                count + own.len() as u64,
                own.clone().fold(largest, f64::max),
            );
            let least = own.filter(|mass| *mass > 0.0).fold(f64::INFINITY, f64::min);
            lightest.push((&*species.name, least));
            if !self.species.is_empty() && !self.species.contains(&species.name) {
                self.offsets.truncate(before);
            }
        }
        self.offsets.par_sort_unstable_by_key(|(key, _)| *key);
        quantum.set_quantum(count as f64 * largest)?;
        let below_quantum = quantum.below_quantum(lightest.into_iter());
        below_quantum.map_or(Ok(()), |why| Err(Error::Setup(why)))
    }

    /// Adds the particles of a species; `one` is the mass of each, if all have the same.
    fn add<R: ParticleReal>(
        &mut self,
        maker: &RecordBuilder,
        one: Option<f64>,
    ) -> Result<(), String> {
        let count = maker.source.count();
        let batches: Vec<u64> = (0..count).step_by(BATCH as usize).collect();
        let made = parallel::map(&batches, |&first| {
            let ids = first..count.min(first + BATCH);
            let placed = ids.filter_map(|id| maker.placed::<R>(id).transpose());
            let key = |made: Result<(super::InitialParticle, PatchPosition), String>| {
                let (made, offset) = made?;
                let mass = one.unwrap_or_else(|| R::lit(made.mass).to_f64());
                Ok((self.key(offset), mass))
            };
            placed.map(key).collect::<Result<Vec<_>, String>>()
        });
        let made: Vec<_> = made.into_iter().collect::<Result<_, String>>()?;
        self.offsets.extend(made.into_iter().flatten());
        Ok(())
    }

    /// Returns the Morton key of the cell at a position.
    fn key(&self, (index, offset): PatchPosition) -> u128 {
        let cells = PATCH.ilog2() + self.finest as u32;
        let cell = |axis: usize| (index[axis] as u64) << cells | offset[axis] >> (64 - cells);
        key([0, 1, 2].map(cell))
    }

    /// Deposits each particle in its cell, in patches of a level, `[row][cell]`.
    pub fn in_cells(&self, topology: &Topology, weights: DepositWeights, level: usize) -> Vec<u64> {
        let rows = topology.rows(level);
        let mut sums = vec![0; rows.len() * CELLS];
        let finer = 3 * (self.finest - level);
        parallel::for_each_chunk(&mut sums, CELLS, 1, |n, sums| {
            let first = key(topology.index(rows[n]).map(|i| i as u64)) * CELLS as u128;
            let before = |key: u128| self.offsets.partition_point(|(own, _)| *own < key << finer);
            for (key, mass) in &self.offsets[before(first)..before(first + CELLS as u128)] {
                sums[cell((key >> finer) as usize % CELLS)] += weights.of(*mass);
            }
        });
        sums
    }
}

/// Interleaves the bits of three numbers (Morton key); those of the first are lowest.
fn key(of: [u64; 3]) -> u128 {
    let bits = (0..42u32).take_while(|bit| of.iter().any(|number| number >> bit > 0));
    bits.fold(0, |key, bit| {
        let three = (0..3).map(|axis| u128::from(of[axis] >> bit & 1) << axis);
        key | three.sum::<u128>() << (3 * bit)
    })
}

/// Returns the cell of a patch with a Morton key.
fn cell(key: usize) -> usize {
    let along = |axis: usize| {
        (0..3)
            .map(|bit| (key >> (3 * bit + axis) & 1) << bit)
            .sum::<usize>()
    };
    along(0) + PATCH * (along(1) + PATCH * along(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn morton_keys_match_cells() {
        for n in 0..CELLS {
            let at = [n % 8, n / 8 % 8, n / 64].map(|i| i as u64);
            assert_eq!(cell(key(at) as usize), n);
            let far = [5, 0, 1023].map(|i: u64| i << 3);
            let there = [0, 1, 2].map(|a| far[a] + at[a]);
            assert_eq!(key(there), key([5, 0, 1023]) * 512 + key(at));
        }
    }
}
