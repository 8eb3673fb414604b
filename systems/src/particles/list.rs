//! Single particles, for tests, diagnostics and plugins that work on few particles.

use super::species::{Species, SpeciesMap};
use super::units::power_of_two;
use nestar_engine::Error;
use nestar_engine::data::{ParticleSet, PatchPlace};
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::Topology;

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
                all.extend(records.map(|record| self.decode(topology, (level, row), record)));
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
        (level, row): (usize, u32),
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
