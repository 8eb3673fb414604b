//! Reads and changes single particles, for tests, diagnostics and plugins that work on few particles.

use super::mass_quantum::power_of_two;
use super::species::{Species, SpeciesMap};
use nestar_engine::Error;
use nestar_engine::data::{ParticleId, ParticleSet, PatchPlace};
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::Topology;
use rayon::prelude::*;

/// A particle.
#[derive(Clone, Debug, PartialEq)]
pub struct Particle {
    /// Identity, unique in the species for the whole run.
    pub id: u64,
    /// Level of the leaf that contains it.
    pub level: usize,
    /// Position, code length.
    pub position: [f64; 3],
    /// Velocity, code units.
    pub velocity: [f64; 3],
    /// Acceleration, code units.
    pub acceleration: [f64; 3],
    /// Mass.
    pub mass: f64,
    /// Scalars, in the order of the species.
    pub scalars: Vec<f64>,
}

impl Particle {
    /// Returns `true` if velocity, mass and scalars are finite and the mass is not negative.
    pub(super) fn is_sound(&self) -> bool {
        let mut numbers = self.velocity.iter().chain(&self.scalars);
        numbers.all(|number| number.is_finite()) && self.mass.is_finite() && self.mass >= 0.0
    }
}

impl SpeciesMap {
    /// Returns the species of a name.
    ///
    /// # Errors
    /// The name is unknown.
    pub fn named(&self, name: &str) -> Result<&Species, Error> {
        let found = self.0.iter().find(|species| species.name == name);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.0.iter().map(|species| &*species.name).collect();
            Error::Setup(format!("unknown species {name:?}; the deck has {known:?}"))
        })
    }
}

impl Species {
    /// Returns the particles of this rank, sorted by identity.
    ///
    /// # Errors
    /// The device fails.
    pub fn particles(&self, topology: &Topology) -> Result<Vec<Particle>, DeviceError> {
        let mut all = Vec::new();
        for level in 0..=topology.finest() {
            for &row in topology.rows(level) {
                let records = self.copy(row)?;
                let records = records.chunks_exact(self.record_bytes());
                all.extend(records.map(|record| self.decode(topology, level, row, record)));
            }
        }
        all.sort_unstable_by_key(|particle| particle.id);
        Ok(all)
    }

    /// Returns the position of the particle of a record, code length.
    pub(super) fn position(&self, record: &[u8], patch: &PatchPlace) -> [f64; 3] {
        patch.at([0, 1, 2].map(|axis| offset(&record[self.offset_in(axis)])))
    }

    /// Decodes the record of a particle in the patch of a row.
    pub(super) fn decode(
        &self,
        topology: &Topology,
        level: usize,
        row: u32,
        record: &[u8],
    ) -> Particle {
        let patch = PatchPlace {
            domain: &topology.domain,
            level,
            index: topology.index(row),
        };
        let mut words = record[8..].chunks_exact(self.pool.columns.number).skip(3);
        let mut number = || number(words.next().unwrap_or_default());
        let velocity = [(); 3].map(|()| number());
        Particle {
            id: record.first_chunk().map_or(0, |id| u64::from_le_bytes(*id)),
            level,
            position: self.position(record, &patch),
            velocity,
            acceleration: [(); 3].map(|()| number()),
            mass: match self.pool.columns.masses {
                true => number(),
                false => self.mass,
            },
            scalars: self.scalars.iter().map(|_| number()).collect(),
        }
    }

    /// Writes the velocity, the mass and the scalars of a particle to its record.
    pub(super) fn encode(&self, particle: &Particle, record: &mut [u8]) {
        let width = self.pool.columns.number;
        let mut words = record[8 + 3 * width..].chunks_exact_mut(width);
        let mut write = |number: f64| match words.next() {
            Some(word) if width == 4 => word.copy_from_slice(&(number as f32).to_le_bytes()),
            Some(word) => word.copy_from_slice(&number.to_le_bytes()),
            None => {}
        };
        let masses = self.pool.columns.masses.then_some(particle.mass);
        let numbers = particle.velocity.into_iter().chain(particle.acceleration);
        let scalars = particle.scalars.iter().copied().take(self.scalars.len());
        numbers.chain(masses).chain(scalars).for_each(&mut write);
    }
}

/// Returns the offset in patch widths.
fn offset(bytes: &[u8]) -> f64 {
    match bytes.first_chunk() {
        // below the upper edge also if the conversion rounds up
        Some(eight) => (u64::from_le_bytes(*eight) as f64 / power_of_two(64)).min(1f64.next_down()),
        None => f64::from(u32::from_le_bytes(four(bytes))) / power_of_two(32),
    }
}

fn number(bytes: &[u8]) -> f64 {
    match bytes.first_chunk() {
        Some(eight) => f64::from_le_bytes(*eight),
        None => f64::from(f32::from_le_bytes(four(bytes))),
    }
}

fn four(bytes: &[u8]) -> [u8; 4] {
    bytes.first_chunk().copied().unwrap_or_default()
}

impl SpeciesMap {
    /// Returns the species of a particle, or `None` if the identifier is of another kind.
    #[must_use]
    pub fn of(&self, item: &ParticleId) -> Option<&Species> {
        self.0.get(item.kind().checked_sub(self.1)?)
    }

    /// Returns the species of a particle, mutably.
    pub fn of_mut(&mut self, item: &ParticleId) -> Option<&mut Species> {
        self.0.get_mut(item.kind().checked_sub(self.1)?)
    }

    /// Returns a particle, or `None` if this rank does not have it. The first call after a step builds an
    /// index of all particles; further calls read one patch.
    ///
    /// # Errors
    /// The device fails.
    pub fn particle(
        &self,
        topology: &Topology,
        item: &ParticleId,
    ) -> Result<Option<Particle>, DeviceError> {
        let found = self.of(item);
        let found = found.map(|species| species.particle(topology, item.id()));
        found.transpose().map(Option::flatten)
    }

    /// Changes the velocity, the scalars and, if each particle has its own, the mass of a particle. Returns
    /// `true` if this rank has it. The position and the acceleration stay.
    ///
    /// # Errors
    /// The mass is negative or not finite; the device fails.
    pub fn change(
        &mut self,
        topology: &Topology,
        item: &ParticleId,
        change: impl FnOnce(&mut Particle),
    ) -> Result<bool, DeviceError> {
        let found = self.of_mut(item);
        found.map_or(Ok(false), |s| s.change(topology, item.id(), change))
    }
}

impl Species {
    /// Returns the particle with an identity, as [`SpeciesMap::particle`].
    ///
    /// # Errors
    /// The device fails.
    pub fn particle(&self, topology: &Topology, id: u64) -> Result<Option<Particle>, DeviceError> {
        let Some(row) = self.row_of(topology, id)? else {
            return Ok(None);
        };
        let (level, records) = (topology.level(row).unwrap_or_default(), self.copy(row)?);
        let mut records = records.chunks_exact(self.record_bytes());
        let record = records.find(|record| self.identity(record) == Some(id));
        Ok(record.map(|record| self.decode(topology, level, row, record)))
    }

    /// Changes the particle with an identity, as [`SpeciesMap::change`].
    ///
    /// # Errors
    /// As there.
    pub fn change(
        &mut self,
        topology: &Topology,
        id: u64,
        change: impl FnOnce(&mut Particle),
    ) -> Result<bool, DeviceError> {
        let Some(row) = self.row_of(topology, id)? else {
            return Ok(false);
        };
        let (level, length) = (topology.level(row).unwrap_or_default(), self.record_bytes());
        let (rows, mut wrong) = (std::mem::take(&mut self.rows), false);
        let mut records = self.take(row)?;
        let mut all = records.chunks_exact_mut(length);
        if let Some(record) = all.find(|record| self.identity(record) == Some(id)) {
            let before = self.decode(topology, level, row, record);
            let mut particle = before.clone();
            change(&mut particle);
            wrong = particle.mass.is_nan() || particle.mass < 0.0 || particle.mass.is_infinite();
            self.mass_gain += (particle.mass - before.mass).max(0.0);
            if particle.mass != before.mass {
                self.recount();
            }
            self.encode(if wrong { &before } else { &particle }, record);
        }
        self.put(row, &records)?;
        // the particle stays in its patch
        self.rows = rows;
        match wrong {
            false => Ok(true),
            true => Err(DeviceError::Setup(format!(
                "a plugin gives particle {id} of particles.species.{} a mass that is negative or not finite",
                self.name
            ))),
        }
    }

    /// Invalidates the index of particles.
    pub(super) fn forget_rows(&mut self) {
        self.rows.take();
    }

    /// Returns the row of the patch that contains a particle.
    pub(super) fn find(&self, topology: &Topology, id: u64) -> Result<Option<u32>, DeviceError> {
        let rows = match self.rows.get() {
            Some(rows) => rows,
            None => {
                let rows = self.places(topology)?;
                self.rows.get_or_init(|| rows)
            }
        };
        let found = rows.binary_search_by_key(&id, |(id, _)| *id);
        Ok(found.ok().map(|n| rows[n].1))
    }

    /// Returns the identities of all particles, ascending, with the rows of their patches.
    fn places(&self, topology: &Topology) -> Result<Vec<(u64, u32)>, DeviceError> {
        let rows = self.occupied_rows(topology);
        let of_patches = rows.iter().zip(self.identities(&rows)?);
        let mut all: Vec<(u64, u32)> = of_patches
            .flat_map(|(&row, identities)| identities.into_iter().map(move |id| (id, row)))
            .collect();
        all.par_sort_unstable();
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestar_engine::comm::SingleRank;
    use nestar_engine::comm::hierarchy::{ExchangePlans, root};
    use nestar_engine::data::Precision;

    #[test]
    fn changed_attributes_are_decoded_again() {
        for precision in [Precision::Single, Precision::Double] {
            let scalars = vec!["metals".to_string(), "birth".into()];
            let species = Species::new("stars", precision, None, scalars);
            let mut topology = Topology::new(
                nestar_engine::mesh::Domain {
                    root: [1; 3],
                    left_edge: [0.0; 3],
                    right_edge: [1.0; 3],
                    periodic: [true; 3],
                },
                0,
            );
            root(&mut topology, &SingleRank, &mut ExchangePlans::default()).unwrap();
            let mut record: Vec<u8> = (0..species.record_bytes()).map(|n| n as u8).collect();
            let before = species.decode(&topology, 0, 0, &record);
            let mut particle = before.clone();
            particle.velocity = [1.5, -2.0, 0.25];
            particle.mass = 3.0;
            particle.scalars = vec![0.5, -8.0];
            species.encode(&particle, &mut record);
            assert_eq!(species.decode(&topology, 0, 0, &record), particle);
            species.encode(&before, &mut record);
            assert!(record.iter().enumerate().all(|(n, byte)| *byte == n as u8));
        }
    }
}
