//! Creates the initial particles. Each particle is a function of its number, so that each rank can create a
//! part of them.

mod bodies;
mod formulas;
mod lattice;
mod parquet;
#[cfg(test)]
mod parquet_tests;
mod positions;
mod random;
mod region;
mod sphere;
mod table;
#[cfg(test)]
mod tests;

use super::MassQuantum;
use super::pages::{ParticleColumns, ParticleReal};
pub use super::species::{InitialParticle, ParticleSource};
use super::species::{Species, SpeciesMap};
use crate::fields::InitialPerturbations;
use crate::order::Initialise;
use crate::spheres::NamedSpheres;
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;
use bodies::Body;
pub(super) use formulas::zeros;
pub use lattice::LatticeInitial;
use nestar_deck::{Deck, DeckError};
use nestar_engine::comm::{Comm, Ranks};
use nestar_engine::data::{LevelRows, MigrationBatch};
use nestar_engine::mesh::{Domain, Topology, parallel};
use nestar_engine::{Engine, Error, in_precision};
pub(super) use positions::{InitialCells, initial_positions};
use positions::{PatchPosition, locate};
pub use random::RandomInitial;
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sphere::SphereInitial;
use std::ops::Range;
use std::sync::Arc;
pub use table::TableInitial;

/// Source of the initial particles of a species.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum InitialParticlesConfig {
    /// No particles; plugins create them.
    None {},
    /// Bodies, listed one by one.
    Bodies {
        /// The bodies; the first has identity 0.
        bodies: Vec<Body>,
    },
    /// Particles on a lattice, with displacements.
    Lattice(LatticeInitial),
    /// Random particles, given by formulas.
    Random(RandomInitial),
    /// Particles of spheres in equilibrium.
    Sphere(SphereInitial),
    /// Particles from a file.
    Table(TableInitial),
}

/// Properties of a species that its source needs.
pub(super) struct SpeciesInfo<'a> {
    /// Name.
    pub name: &'a str,
    /// Mass of each particle, if given in the deck.
    pub mass: Option<f64>,
    /// Names of the scalars.
    pub scalars: &'a [String],
}

/// Creates the source of a species.
///
/// # Errors
/// A formula, a number or a file is invalid; the mass is given twice or not at all.
pub(super) fn source(
    sim: &mut Engine,
    species: &SpeciesInfo,
    initial: &InitialParticlesConfig,
) -> Result<Arc<dyn ParticleSource>, Error> {
    let name = species.name;
    let path = &format!("particles.species.{name}.initial");
    let purpose = format!("particles of {name}");
    let source: Arc<dyn ParticleSource> = match initial {
        InitialParticlesConfig::None {} => Arc::new(bodies::BodySource::default()),
        InitialParticlesConfig::Bodies { bodies } => {
            let lacks = bodies.iter().position(|body| body.mass.is_none());
            if let Some(n) = lacks.filter(|_| species.mass.is_none()) {
                return Err(missing_mass(&sim.deck, &format!("{path}.bodies[{n}]"), name).into());
            }
            Arc::new(bodies::BodySource::new(&sim.deck, path, species, bodies)?)
        }
        InitialParticlesConfig::Lattice(lattice) => {
            let domain = sim.world.resource::<Topology>().domain;
            let perturbations = sim.world.get_resource::<InitialPerturbations>();
            let perturbations = perturbations.map(|all| all.0.clone());
            Arc::new(lattice.points(&sim.deck, path, species, &domain, perturbations)?)
        }
        InitialParticlesConfig::Random(random) => {
            let stream = sim.random_stream(&purpose, random.seed)?;
            Arc::new(random.draws(&sim.deck, path, species, stream)?)
        }
        InitialParticlesConfig::Sphere(sphere) => {
            let stream = sim.random_stream(&purpose, sphere.seed)?;
            let spheres = sim.world.get_resource::<NamedSpheres>();
            Arc::new(sphere.parts(&sim.deck, path, spheres, stream)?)
        }
        InitialParticlesConfig::Table(table) => Arc::new(table.rows(&sim.deck, path, species)?),
    };
    if source.mass().is_some() && species.mass.is_some() {
        let key = format!("particles.species.{name}.mass");
        let why = format!("`{key}` follows from `initial`: remove it");
        return Err(sim.deck.error_at(&key, why).into());
    }
    Ok(source)
}

/// Returns the error about a missing mass in the table `path`.
fn missing_mass(deck: &Deck, path: &str, species: &str) -> DeckError {
    let why = format!(
        "`{path}.mass` is missing: give it, or the mass of each particle, `particles.species.{species}.mass` (0 \
         for particles that are no source of gravity)"
    );
    deck.error_at(path, why)
}

/// Sources of all species.
pub(super) type ParticleSources = Vec<Arc<dyn ParticleSource>>;

/// Sources of the initial particles of all species.
#[derive(Resource)]
pub(super) struct InitialSources(pub ParticleSources);

/// Registers the system that creates the particles.
pub(super) fn register(sim: &mut Engine, sources: ParticleSources) {
    sim.world.insert_resource(InitialSources(sources));
    sim.world.init_resource::<InitialCells>();
    sim.system_in(Initialise::State, create_particles);
}

/// Particles created by a thread at a time.
const BATCH: u64 = 1 << 14;
/// Particles created by a rank before they are delivered; during delivery they need twice their memory.
const PORTION: u64 = 1 << 19;

/// Returns the particle numbers of a rank, in portions of at most `most`. All ranks have the same number of
/// portions.
fn portions(rank: u64, size: u64, count: u64, most: u64) -> impl Iterator<Item = Range<u64>> {
    let share = move |rank: u64| (u128::from(count) * u128::from(rank) / u128::from(size)) as u64;
    let (start, end) = (share(rank), share(rank + 1));
    let firsts = (0..count.div_ceil(size)).step_by(most as usize);
    firsts.map(move |first| end.min(start + first)..end.min(start + first + most))
}

/// Input of the creation of particles.
#[derive(SystemParam)]
struct InitialInput<'w> {
    topology: Res<'w, Topology>,
    ranks: Res<'w, Ranks>,
    sources: Res<'w, InitialSources>,
}

/// Creates all particles when the root level is filled; from there they move to finer levels.
fn create_particles(
    rows: LevelRows,
    InitialInput {
        topology,
        ranks,
        sources,
    }: InitialInput,
    mut species: ResMut<SpeciesMap>,
    mut quantum: ResMut<MassQuantum>,
    mut cells: ResMut<InitialCells>,
    mut others: Comm,
) -> Result<(), Error> {
    if rows.is_estimate() {
        return cells.locate(&topology, &species, &sources, &mut quantum);
    }
    if rows.level() > 0 {
        return Ok(());
    }
    cells.clear();
    let (rank, size) = (ranks.rank() as u64, ranks.size() as u64);
    quantum.reset();
    for (species, source) in species.0.iter_mut().zip(&sources.0) {
        species.recount();
        let maker = RecordBuilder::of(species, &**source, &topology.domain);
        for ids in portions(rank, size, source.count(), PORTION) {
            let made = in_precision!(species.precision(), R => maker.all::<R>(ids));
            // all ranks deliver, and all stop if one fails
            let wrong = others.first_error(made.as_ref().err().cloned())?;
            if let Some(why) = wrong {
                return Err(Error::Setup(why));
            }
            others.migrate(&topology, species, made.unwrap_or_default())?;
        }
    }
    quantum.choose(&mut species, &others)
}

/// Builds the records of a species.
struct RecordBuilder<'a> {
    name: String,
    columns: ParticleColumns,
    domain: &'a Domain,
    source: &'a dyn ParticleSource,
}

/// Contiguous records, and the number of the root patch of each.
#[derive(Default)]
struct RecordBatch {
    patches: Vec<u64>,
    bytes: Vec<u8>,
}

impl<'a> RecordBuilder<'a> {
    fn of(species: &Species, source: &'a dyn ParticleSource, domain: &'a Domain) -> Self {
        Self {
            name: species.name.clone(),
            columns: species.pool.columns,
            domain,
            source,
        }
    }

    /// Creates the particles with these numbers, sorted by root patch.
    fn all<R: ParticleReal>(&self, ids: Range<u64>) -> Result<Vec<MigrationBatch>, String> {
        let batches: Vec<u64> = (ids.start..ids.end).step_by(BATCH as usize).collect();
        let made = parallel::map(&batches, |&first| {
            let mut records = RecordBatch::default();
            for id in first..ids.end.min(first + BATCH) {
                self.one::<R>(id, &mut records)?;
            }
            Ok(records)
        });
        let made: Vec<RecordBatch> = made.into_iter().collect::<Result<_, String>>()?;
        let numbered = made.iter().enumerate().flat_map(|(batch, made)| {
            let patches = made.patches.iter().enumerate();
            patches.map(move |(n, patch)| (*patch, batch as u32, n as u32))
        });
        let mut all: Vec<(u64, u32, u32)> = numbered.collect();
        all.par_sort_unstable();
        let of_patch: Vec<_> = all.chunk_by(|a, b| a.0 == b.0).collect();
        let length = self.columns.bytes() + 1;
        let parcel = |own: &&[(u64, u32, u32)]| {
            let mut records = Vec::with_capacity(own.len() * length);
            for (_, batch, n) in *own {
                let from = &made[*batch as usize].bytes[*n as usize * length..];
                records.extend_from_slice(&from[..length]);
            }
            MigrationBatch {
                level: 0,
                index: self.index(own[0].0),
                records,
            }
        };
        Ok(parallel::map(&of_patch, parcel))
    }

    /// Returns the number of a root patch.
    fn number(&self, index: [i32; 3]) -> u64 {
        let [x, y, z] = index.map(|i| i as u64);
        let [along_x, along_y, _] = self.domain.root.map(|n| n as u64);
        x + along_x * (y + along_y * z)
    }

    /// Returns the root patch of a number.
    fn index(&self, number: u64) -> [i32; 3] {
        let [along_x, along_y, _] = self.domain.root.map(|n| n as u64);
        let (x, rest) = (number % along_x, number / along_x);
        [x, rest % along_y, rest / along_y].map(|i| i as i32)
    }

    /// Checks that all attributes are finite in the precision of the run.
    fn check<R: ParticleReal>(
        &self,
        id: u64,
        velocity: &[f64; 3],
        mass: f64,
        scalars: &[f64],
    ) -> Result<(), String> {
        let is_finite = |number: &f64| R::lit(*number).to_f64().is_finite();
        let square = velocity.iter().map(|v| v * v).sum::<f64>();
        let numbers = velocity.iter().chain(scalars);
        let finite = numbers.chain([&mass, &square]).all(is_finite);
        let vanishes = mass > 0.0 && R::lit(mass).to_f64() == 0.0;
        // a mass of the whole species is checked with the species
        let and_mass = if self.columns.masses {
            format!(", the mass {mass}")
        } else {
            String::new()
        };
        match finite && mass >= 0.0 && !vanishes {
            true => Ok(()),
            false => Err(format!(
                "particle {} of particles.species.{}{} has the velocity {velocity:?}{and_mass} and the scalars \
                 {scalars:?}: these values and the square of the velocity must be finite in the precision of the \
                 run, and the mass must not be negative or underflow to 0",
                self.source.identity(id),
                self.name,
                self.source.origin(id)
            )),
        }
    }

    /// Creates a particle and finds its root patch and its offset.
    fn placed<R: ParticleReal>(
        &self,
        id: u64,
    ) -> Result<Option<(InitialParticle, PatchPosition)>, String> {
        let made = self.source.make(id);
        let name = self.source.identity(id);
        let made = made.map_err(|why| format!("particle {name}{}: {why}", self.source.origin(id)));
        let Some(mut made) = made? else {
            return Ok(None);
        };
        made.scalars.resize(self.columns.scalars, 0.0);
        self.check::<R>(id, &made.velocity, made.mass, &made.scalars)?;
        if let Some(offset) = locate::<R>(self.domain, made.position) {
            return Ok(Some((made, offset)));
        }
        let (left, right) = (self.domain.left_edge, self.domain.right_edge);
        let wraps = match self.domain.periodic.contains(&true) {
            true => " (periodic axes wrap positions up to a million widths away)",
            false => "",
        };
        Err(format!(
            "particle {name} of particles.species.{}{} is at {:?}, outside the domain from {left:?} to {right:?}{wraps}{}",
            self.name,
            self.source.origin(id),
            made.position,
            self.source.outside_hint(id)
        ))
    }

    /// Appends the record of a particle.
    fn one<R: ParticleReal>(&self, id: u64, records: &mut RecordBatch) -> Result<(), String> {
        let Some((made, (index, offsets))) = self.placed::<R>(id)? else {
            return Ok(());
        };
        records.patches.push(self.number(index));
        let record = &mut records.bytes;
        record.extend(self.source.identity(id).to_le_bytes());
        for offset in offsets {
            record.extend_from_slice(bytemuck::bytes_of(&R::narrow(offset)));
        }
        let masses = self.columns.masses.then_some(made.mass);
        let numbers = made.velocity.into_iter().chain([0.0; 3]).chain(masses);
        for number in numbers.chain(made.scalars) {
            record.extend_from_slice(bytemuck::bytes_of(&R::lit(number)));
        }
        record.push(0);
        Ok(())
    }
}
