//! Where the particles of a run begin, in place of themselves: for criteria that ask before there are any.

use super::super::MassQuantum;
use super::super::columns::ParticleReal;
use super::super::deposit::DepositWeights;
use super::super::species::SpeciesMap;
use super::{BATCH, InitialSources, PatchPosition, RecordBuilder};
use bevy_ecs::prelude::*;
use nestar_engine::mesh::Topology;
use nestar_engine::{Error, in_precision};
use nestar_kernels::{CELLS, PATCH};
use rayon::prelude::*;

/// The places of all particles while the hierarchy that a run begins with is looked at part by part.
#[derive(Resource, Default)]
pub struct InitialCells {
    /// Whether a criterion asks.
    wanted: bool,
    /// Whether they have been found.
    found: bool,
    /// The finest level that is asked about.
    finest: usize,
    /// Cells of that level by their keys along the Z curve, ascending, and the mass of each particle there.
    places: Vec<(u128, f64)>,
}

impl InitialCells {
    /// From now on somebody asks.
    pub fn request(&mut self) {
        self.wanted = true;
    }

    /// The particles themselves are there.
    pub fn clear(&mut self) {
        (self.found, self.places) = (false, Vec::new());
    }

    /// Finds all particles, the first time, and the unit of their mass.
    ///
    /// # Errors
    /// As when they are made.
    pub(super) fn locate(
        &mut self,
        topology: &Topology,
        (species, sources): (&SpeciesMap, &InitialSources),
        units: &mut MassQuantum,
    ) -> Result<(), Error> {
        if !self.wanted || self.found {
            return Ok(());
        }
        (self.found, self.finest) = (true, topology.max_level.saturating_sub(1));
        let mut lightest = Vec::new();
        for (species, source) in species.0.iter().zip(&sources.0) {
            let before = self.places.len();
            let maker = RecordBuilder::of(species, &**source, &topology.domain);
            let one = (!species.pool.columns.masses).then_some(species.mass);
            in_precision!(species.precision(), R => {
                self.add::<R>(&maker, one).map_err(Error::Setup)?;
            });
            let own = self.places[before..].iter().map(|(_, mass)| *mass);
            let least = own.filter(|mass| *mass > 0.0).fold(f64::INFINITY, f64::min);
            lightest.push((&*species.name, least));
        }
        self.places.par_sort_unstable_by_key(|(key, _)| *key);
        let largest = self.places.iter().map(|(_, mass)| *mass);
        units.set_quantum(self.places.len() as u64, largest.fold(0.0, f64::max))?;
        let below_quantum = units.below_quantum(lightest.into_iter());
        below_quantum.map_or(Ok(()), |why| Err(Error::Setup(why)))
    }

    /// Adds the particles of a species, each of mass `one`, or of its own.
    fn add<R: ParticleReal>(
        &mut self,
        maker: &RecordBuilder,
        one: Option<f64>,
    ) -> Result<(), String> {
        let count = maker.source.count();
        let batches: Vec<u64> = (0..count).step_by(BATCH as usize).collect();
        let made = batches.par_iter().map(|&first| {
            let ids = first..count.min(first + BATCH);
            let placed = ids.filter_map(|id| maker.placed::<R>(id).transpose());
            let key = |made: Result<(super::InitialParticle, PatchPosition), String>| {
                let (made, place) = made?;
                let mass = one.unwrap_or_else(|| R::lit(made.mass).to_f64());
                Ok((self.key(place), mass))
            };
            placed.map(key).collect::<Result<Vec<_>, String>>()
        });
        let made: Vec<_> = made.collect::<Result<_, String>>()?;
        self.places.extend(made.into_iter().flatten());
        Ok(())
    }

    /// The key of the cell at a place.
    fn key(&self, (index, place): PatchPosition) -> u128 {
        let cells = PATCH.ilog2() + self.finest as u32;
        let cell = |axis: usize| (index[axis] as u64) << cells | place[axis] >> (64 - cells);
        key([0, 1, 2].map(cell))
    }

    /// What particles count in the cells of the patches of a level that are at hand, `[row][cell]`; all of a particle in its cell.
    pub fn in_cells(&self, topology: &Topology, weights: DepositWeights, level: usize) -> Vec<u64> {
        let rows = topology.rows(level);
        let mut sums = vec![0; rows.len() * CELLS];
        let finer = 3 * (self.finest - level);
        let patches = sums.par_chunks_exact_mut(CELLS).zip(rows);
        patches.for_each(|(sums, &row)| {
            let first = key(topology.index(row).map(|i| i as u64)) * CELLS as u128;
            let before = |key: u128| self.places.partition_point(|(own, _)| *own < key << finer);
            for (key, mass) in &self.places[before(first)..before(first + CELLS as u128)] {
                sums[cell((key >> finer) as usize % CELLS)] += weights.of(*mass);
            }
        });
        sums
    }
}

/// The bits of three numbers in turn, those of the first lowest.
fn key(of: [u64; 3]) -> u128 {
    let bits = (0..42u32).take_while(|bit| of.iter().any(|number| number >> bit > 0));
    bits.fold(0, |key, bit| {
        let three = (0..3).map(|axis| u128::from(of[axis] >> bit & 1) << axis);
        key | three.sum::<u128>() << (3 * bit)
    })
}

/// The cell of a patch with a key.
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
    fn keys_know_cells() {
        for n in 0..CELLS {
            let at = [n % 8, n / 8 % 8, n / 64].map(|i| i as u64);
            assert_eq!(cell(key(at) as usize), n);
            let far = [5, 0, 1023].map(|i: u64| i << 3);
            let there = [0, 1, 2].map(|a| far[a] + at[a]);
            assert_eq!(key(there), key([5, 0, 1023]) * 512 + key(at));
        }
    }
}
