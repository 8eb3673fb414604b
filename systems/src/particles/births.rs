//! Particles that are born and end during a run.
//!
//! A plugin names the species whose particles may be born by [`ParticlesOnDemand::allow_births`] and creates them in systems of
//! [`Advance::Predict`](crate::order::Advance::Predict), after the drift: the particles of the level are then at the end of its
//! step, and their density and forces follow in the same step. A newborn receives the second half kick of the step, as the gas
//! from which it forms does.
//!
//! Identities continue from a counter in snapshots. They are given in the order in which particles are added, rank by rank; the
//! ranks of a level follow one another in Hilbert order.

use super::Motion;
use super::functions::{ChosenParticles, ParticleStep, columns_of};
use super::mass_quantum::MassQuantum;
use super::pages::ParticleReal;
use super::selected_particle::SelectedParticle;
use super::species::{MovedBy, Species, SpeciesMap};
use crate::fields::Gas;
use crate::order::Ready;
use bevy_ecs::prelude::*;
use bevy_ecs::system::{IntoSystem, SystemParam};
use nestar_device::{Lane, Real};
use nestar_engine::comm::{Comm, DiagnosticColumns, Ranks, totals};
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::data::{Field, InitialEstimate, MigrationBatch, ParticleSet, Stores};
use nestar_engine::mesh::{LevelClock, Topology, parallel};
use nestar_engine::step::{PluginState, SystemNamed};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::PATCH;
use nestar_kernels::particles::cloud::quanta_of;
use std::ops::Range;

/// A particle to be added to a patch of the level of a system.
#[derive(Clone, Debug, PartialEq)]
pub struct NewParticle {
    /// Row of the patch, a leaf of this rank.
    pub row: u32,
    /// Position in the patch, in units of its width along each axis, from 0 to below 1.
    pub offset: [f64; 3],
    /// Velocity, code units.
    pub velocity: [f64; 3],
    /// Mass, above 0. A scalar `mass_remainder` of the species gets what the stored mass lacks.
    pub mass: f64,
    /// Scalars, in the order of the species; missing ones are 0.
    pub scalars: Vec<f64>,
}

impl NewParticle {
    /// Returns the offset of the centre of a cell, numbered from 0 to 511, x fastest.
    #[must_use]
    pub fn centre_of(cell: usize) -> [f64; 3] {
        let index = [cell % PATCH, cell / PATCH % PATCH, cell / (PATCH * PATCH)];
        index.map(|i| (i as f64 + 0.5) / PATCH as f64)
    }
}

/// Particles of a species that have been born or have ended since the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
struct SpeciesBirths {
    name: String,
    /// `true` if the counters are those of the present run.
    has_begun: bool,
    /// Identity of the next particle.
    next: u64,
    /// Time of the latest birth, or of the start.
    latest: f64,
    born: Counted,
    ended: Counted,
}

/// A number of particles and their mass.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    count: u64,
    /// Mass in quanta.
    quanta: u64,
}

/// Counters of the species whose particles may be born.
#[derive(Resource, Clone, Debug, Default, PartialEq)]
pub struct BirthCounters {
    species: Vec<SpeciesBirths>,
}

impl BirthCounters {
    /// Returns the mass of all particles of a species that have been born, in quanta of the deposit.
    pub(crate) fn born_quanta(&self, species: &str) -> u64 {
        let found = self.species.iter().find(|own| own.name == species);
        found.map_or(0, |own| own.born.quanta)
    }

    /// Returns the time of the latest birth in a species, or of the start of a run with particles; `None` if there has been no particle.
    #[must_use]
    pub fn last_birth(&self, species: &str) -> Option<f64> {
        let found = self.species.iter().find(|own| own.name == species);
        found.filter(|own| own.next > 0).map(|own| own.latest)
    }
}

/// Saved state: for each species the length of its name, the name, and six numbers.
impl PluginState for BirthCounters {
    const VERSION: u32 = 1;

    fn save(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for own in self.species.iter().filter(|own| own.has_begun) {
            bytes.extend((own.name.len() as u64).to_le_bytes());
            bytes.extend(own.name.as_bytes());
            let Counted { count, quanta } = own.born;
            let Counted {
                count: ended,
                quanta: ended_quanta,
            } = own.ended;
            let latest = own.latest.to_bits();
            let numbers = [own.next, latest, count, quanta, ended, ended_quanta];
            bytes.extend(numbers.map(u64::to_le_bytes).as_flattened());
        }
        bytes
    }

    /// Species that are not in the saved state begin with the run.
    fn load(&mut self, bytes: &[u8]) -> Result<(), String> {
        let cut = "it is truncated";
        let mut rest = bytes;
        while let Some((length, tail)) = rest.split_first_chunk() {
            let length = u64::from_le_bytes(*length) as usize;
            let (name, tail) = tail.split_at_checked(length).ok_or(cut)?;
            let (numbers, tail) = tail.split_first_chunk::<48>().ok_or(cut)?;
            let numbers: [u64; 6] = bytemuck::pod_read_unaligned(numbers);
            let [next, latest, count, quanta, ended, ended_quanta] = numbers.map(u64::from_le);
            let own = self.species.iter_mut();
            for own in own.filter(|own| own.name.as_bytes() == name) {
                (own.has_begun, own.next) = (true, next);
                own.latest = f64::from_bits(latest);
                own.born = Counted { count, quanta };
                own.ended = Counted {
                    count: ended,
                    quanta: ended_quanta,
                };
            }
            rest = tail;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => Err(cut.into()),
        }
    }
}

/// Lets plugins create and remove particles during a run.
pub trait ParticlesOnDemand {
    /// Allows births of particles of a species. The mass quantum of the deposit is then chosen for particles and gas together.
    ///
    /// # Errors
    /// There is no such species, its particles share one mass, or it does not fall.
    fn allow_births(&mut self, species: &str) -> Result<(), Error>;
}

impl ParticlesOnDemand for Engine {
    fn allow_births(&mut self, species: &str) -> Result<(), Error> {
        let Some(all) = self.world.get_resource::<SpeciesMap>() else {
            return Err(Error::Setup(format!(
                "a plugin creates particles of the species {species:?}: add a table [particles.species.{species}]"
            )));
        };
        let own = all.named(species)?;
        let key = format!("particles.species.{species}");
        if own.moved_by != MovedBy::Fall {
            let why = "particles that are born fall: remove `moved_by`";
            return Err(self.deck.error_at(&format!("{key}.moved_by"), why).into());
        }
        if !own.pool.columns.masses {
            let why = "particles that are born have masses of their own: remove `mass`, and give `initial` without a mass";
            return Err(self.deck.error_at(&format!("{key}.mass"), why).into());
        }
        own.prepare_selection();
        if !self.world.contains_resource::<BirthCounters>() {
            self.register_state("births", BirthCounters::default())?;
            let has_gravity = self.deck.has("gravity");
            let begin = IntoSystem::into_system(begin_births).with_name("begin_births");
            let mut system = self.system_in(Ready::Deposit, begin);
            system.keeps_particles();
            if has_gravity {
                system.before(SystemNamed("deposit initial particles".into()));
            }
        }
        let counters = self.world.resource_mut::<BirthCounters>().into_inner();
        if counters.species.iter().all(|own| own.name != species) {
            let number = counters.species.len();
            counters.species.push(SpeciesBirths {
                name: species.into(),
                ..SpeciesBirths::default()
            });
            add_columns(&mut self.world, species, number);
        }
        Ok(())
    }
}

/// Adds columns with the number and mass of the particles that have been born and have ended.
fn add_columns(world: &mut World, species: &str, number: usize) {
    let names =
        ["born", "born_mass", "ended", "ended_mass"].map(|what| format!("{species}_{what}"));
    for masses in [&names[1], &names[3]] {
        DiagnosticColumns::set_units(world, masses.clone(), "mass");
    }
    DiagnosticColumns::add_numbers(world, names, move |world| {
        let own = &world.resource::<BirthCounters>().species[number];
        let quantum = world.resource::<MassQuantum>();
        let of = |all: Counted| [all.count as f64, quantum.mass_of(all.quanta)];
        Ok([of(own.born), of(own.ended)].concat())
    });
}

/// Begins the counters of births, and chooses the mass quantum for the mass of particles and gas, once in a run.
///
/// # Errors
/// The masses overflow; the device or another rank has failed.
fn begin_births(world: &mut World) -> Result<(), Error> {
    let is_preview = world.contains_resource::<InitialEstimate>();
    let mut counted = world.resource::<BirthCounters>().species.iter();
    let has_begun = counted.all(|own| own.has_begun);
    if is_preview || has_begun || world.resource::<LevelClock>().level > 0 {
        return Ok(());
    }
    let stores = world.resource::<Stores>().all();
    let gas = match stores.iter().find(|store| store.name == Gas::NAME) {
        Some(store) => totals(world, store)?.first().copied().unwrap_or(0.0),
        None => 0.0,
    };
    let ranks = world.resource::<Ranks>().clone();
    world.resource_scope(|world, mut all: Mut<SpeciesMap>| {
        let topology = world.resource::<Topology>();
        let next: Result<Vec<u64>, Error> = all
            .0
            .iter()
            .map(|species| next_identity(species, topology, &ranks))
            .collect();
        let names = all.0.iter().map(|species| species.name.clone());
        let next: Vec<(String, u64)> = names.zip(next?).collect();
        let time = world.resource::<LevelClock>().time;
        let mut counters = world.resource_mut::<BirthCounters>();
        for own in counters.species.iter_mut().filter(|own| !own.has_begun) {
            own.has_begun = true;
            let found = next.iter().find(|(name, _)| *name == own.name);
            own.next = found.map_or(0, |(_, next)| *next);
            own.latest = time;
        }
        let mut quantum = world.resource_mut::<MassQuantum>();
        let ratio = quantum.choose_with(&mut all, gas, &ranks)?;
        let mut counters = world.resource_mut::<BirthCounters>();
        for own in &mut counters.species {
            for counted in [&mut own.born, &mut own.ended] {
                counted.quanta = (counted.quanta as f64 * ratio) as u64;
            }
        }
        Ok(())
    })
}

/// Returns the first identity above those of all particles of a species.
fn next_identity(species: &Species, topology: &Topology, ranks: &Ranks) -> Result<u64, Error> {
    let identities = species.identities(&species.occupied_rows(topology))?;
    let own = identities
        .iter()
        .flatten()
        .map(|id| id.saturating_add(1))
        .max();
    let next = ranks.max(own.unwrap_or(0))?;
    match next < u64::MAX / 2 {
        true => Ok(next),
        false => Err(Error::Setup(format!(
            "particles.species.{} has the identity {}, after which births cannot continue: give identities below 2^53",
            species.name,
            next - 1
        ))),
    }
}

/// Creates and removes particles in a step of a level. All ranks make the same calls.
#[derive(SystemParam)]
pub struct ParticleBirths<'w> {
    topology: Res<'w, Topology>,
    clock: Res<'w, LevelClock>,
    quantum: Res<'w, MassQuantum>,
    tables: Option<Res<'w, DeviceTopology>>,
    motion: ResMut<'w, Motion>,
    counters: ResMut<'w, BirthCounters>,
    species: ResMut<'w, SpeciesMap>,
    ranks: Comm<'w>,
}

impl ParticleBirths<'_> {
    /// Returns the index of a species for which births are allowed, among all species and among the counters.
    fn numbers_of(&self, species: &str) -> Result<[usize; 2], Error> {
        let counted = self.counters.species.iter();
        let (mut all, mut counted) = (self.species.0.iter(), counted);
        let number = all.position(|own| own.name == species);
        let counter = counted.position(|own| own.name == species);
        match (number, counter) {
            (Some(number), Some(counter)) => Ok([number, counter]),
            _ => Err(Error::Setup(format!(
                "a plugin creates or removes particles of the species {species:?}, for which it has not called `allow_births`"
            ))),
        }
    }

    /// Returns all species.
    #[must_use]
    pub fn species(&self) -> &SpeciesMap {
        &self.species
    }

    /// Adds particles of a species to patches of the current level, in the order given on each rank. Returns the identities
    /// of the new particles of all ranks. Collective, also with nothing to add.
    ///
    /// # Errors
    /// A mass, velocity or scalar is not finite, or a mass is below the quantum of the deposit; the device or another rank
    /// has failed.
    pub fn add(&mut self, species: &str, made: &[NewParticle]) -> Result<Range<u64>, Error> {
        let [number, counter] = self.numbers_of(species)?;
        let own = &mut self.species.0[number];
        let counts = self.ranks.gather(&[made.len() as u64])?;
        let all: u64 = counts.iter().sum();
        if all == 0 {
            return Ok(0..0);
        }
        self.motion.has_changed[self.clock.level] = true;
        let (per_mass, level) = (self.quantum.quanta_per_mass, self.clock.level);
        let wrong = made.iter().find_map(|new| new.fault(own, per_mass));
        let wrong =
            wrong.map(|why| format!("particles.species.{species}, on level {level}: {why}"));
        if let Some(why) = self.ranks.first_error(wrong)? {
            return Err(Error::Setup(why));
        }
        let counters = &mut self.counters.species[counter];
        let identities = counters.next..counters.next + all;
        let first = counters.next + counts[..self.ranks.rank()].iter().sum::<u64>();
        let (batches, quanta) = in_precision!(own.precision(), R => (
            batches::<R>(own, &self.topology, level, made, first),
            quanta_of_all::<R>(made, per_mass),
        ));
        let quanta = self.ranks.sum(quanta)?;
        counters.next += all;
        counters.latest = self.clock.end;
        counters.born.count += all;
        counters.born.quanta += quanta;
        if let Some(known) = &mut own.audited {
            known.count += all;
            known.quanta += quanta;
        }
        let created = batches.iter();
        created.for_each(|batch| self.ranks.note_created(own, &batch.records));
        own.mass_gain += made.iter().map(|new| new.mass).sum::<f64>();
        self.ranks.migrate(&self.topology, own, batches)?;
        Ok(identities)
    }

    /// Returns the ranks.
    #[must_use]
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Selects the particles of a species that the current level moves, for functions whose state is the mass, the velocity and these
    /// scalars, as [`ParticleAccess::of`](super::ParticleAccess::of).
    ///
    /// # Errors
    /// There is no such species, or it lacks a scalar.
    pub fn of(&mut self, species: &str, scalars: &[&str]) -> Result<ChosenParticles<'_>, Error> {
        let columns = columns_of(&self.species, species, scalars)?;
        let step = ParticleStep {
            topology: &self.topology,
            tables: self.tables.as_deref(),
            clock: *self.clock,
            quanta_per_mass: self.quantum.quanta_per_mass,
            ranks: self.ranks.ranks(),
        };
        ChosenParticles::of(step, &mut self.motion, &mut self.species, columns)
    }

    /// Returns the particles of a species that the current level moves and whose scalar lies in an interval, as
    /// [`Species::select`].
    ///
    /// # Errors
    /// The species is unknown; the device fails.
    pub fn select(
        &mut self,
        species: &str,
        scalar: &str,
        bounds: [f64; 2],
    ) -> Result<Vec<SelectedParticle>, Error> {
        let [number, _] = self.numbers_of(species)?;
        let (level, tables) = (self.clock.level, self.tables.as_deref());
        let own = &mut self.species.0[number];
        Ok(own.select(&self.topology, tables, level, scalar, bounds)?)
    }

    /// Sets velocities, masses and scalars of selected particles of this rank to the values that `changed` has. Collective, also without
    /// particles.
    ///
    /// # Errors
    /// A value is not finite, or a mass is negative; the device or another rank has failed.
    pub fn change(&mut self, species: &str, changed: &[SelectedParticle]) -> Result<(), Error> {
        let [number, _] = self.numbers_of(species)?;
        let own = &mut self.species.0[number];
        let wrong = changed.iter().find(|changed| !changed.particle.is_sound());
        let wrong = wrong.map(|wrong| {
            format!("particles.species.{species}: a plugin gives a value that is not finite, or a negative mass: {:?}", wrong.particle)
        });
        if let Some(why) = self.ranks.first_error(wrong)? {
            return Err(Error::Setup(why));
        }
        let (gained, replaced) =
            own.replace(&self.topology, changed, self.quantum.quanta_per_mass)?;
        let missing = (replaced != changed.len()).then(|| {
            format!("particles.species.{species}: a plugin changes particles that have left their patch since they were selected")
        });
        if let Some(why) = self.ranks.first_error(missing)? {
            return Err(Error::Setup(why));
        }
        let gained = self.ranks.sum(gained.cast_unsigned())?.cast_signed();
        if let Some(known) = &mut own.audited {
            known.quanta = known.quanta.wrapping_add_signed(gained);
        }
        self.motion.has_changed[self.clock.level] |= self.ranks.any(!changed.is_empty())?;
        Ok(())
    }

    /// Removes particles of a species; identities of particles on other ranks are left out. Returns the number of removed
    /// particles on all ranks. Collective, also with nothing to remove.
    ///
    /// # Errors
    /// The device or another rank has failed.
    pub fn end(&mut self, species: &str, identities: &[u64]) -> Result<u64, Error> {
        let [number, counter] = self.numbers_of(species)?;
        let per_mass = self.quantum.quanta_per_mass;
        let own = &mut self.species.0[number];
        let mut removed = Counted::default();
        let mut places = Vec::new();
        for &id in identities {
            places.extend(own.row_of(&self.topology, id)?.map(|row| (row, id)));
        }
        places.sort_unstable();
        places.dedup();
        for of_row in places.chunk_by(|a, b| a.0 == b.0) {
            let row = of_row[0].0;
            let level = self.topology.level(row).unwrap_or_default();
            let (mut kept, records) = (Vec::new(), own.take(row)?);
            for record in records.chunks_exact(own.record_bytes()) {
                let particle = own.decode(&self.topology, level, row, record);
                if of_row.binary_search(&(row, particle.id)).is_err() {
                    kept.extend_from_slice(record);
                    continue;
                }
                removed.count += 1;
                removed.quanta += quanta_of(particle.mass, per_mass);
                own.escaped.push(particle.id);
            }
            own.put(row, &kept)?;
        }
        let count = self.ranks.sum(removed.count)?;
        if count > 0 {
            // particles of any level may have ended
            self.motion.has_changed.fill(true);
        }
        let quanta = self.ranks.sum(removed.quanta)?;
        let ended = &mut self.counters.species[counter].ended;
        ended.count += count;
        ended.quanta += quanta;
        if let Some(known) = &mut own.audited {
            known.count -= count;
            known.quanta -= quanta;
        }
        Ok(count)
    }
}

impl Species {
    /// Replaces velocities, masses and scalars of selected particles of this rank. Returns the change of their mass in quanta, and their
    /// number.
    fn replace(
        &mut self,
        topology: &Topology,
        changed: &[SelectedParticle],
        quanta_per_mass: f64,
    ) -> Result<(i64, usize), Error> {
        let precision = self.precision();
        let rounded =
            |mass: f64| in_precision!(precision, R => quanta_of(R::lit(mass), quanta_per_mass));
        let mut by_row: Vec<&SelectedParticle> = changed.iter().collect();
        by_row.sort_unstable_by_key(|changed| (changed.row, changed.particle.id));
        let of_rows: Vec<_> = by_row.chunk_by(|a, b| a.row == b.row).collect();
        let rows: Vec<u32> = of_rows.iter().map(|of_row| of_row[0].row).collect();
        let (mut gained, mut replaced, mut all) = (0i64, 0, Vec::new());
        let length = self.record_bytes();
        for (of_row, mut records) in of_rows.iter().zip(self.take_all(&rows)?) {
            let row = of_row[0].row;
            let level = topology.level(row).unwrap_or_default();
            for record in records.chunks_exact_mut(length) {
                let mut own = self.decode(topology, level, row, record);
                if let Ok(n) = of_row.binary_search_by_key(&own.id, |changed| changed.particle.id) {
                    let new = &of_row[n].particle;
                    gained += rounded(new.mass) as i64 - rounded(own.mass) as i64;
                    self.mass_gain += (new.mass - own.mass).max(0.0);
                    let [mass, remainder] = self.split_mass(new.mass);
                    (own.mass, own.velocity) = (mass, new.velocity);
                    own.scalars.clone_from(&new.scalars);
                    if let Some(n) = self.mass_remainder() {
                        own.scalars[n] = remainder;
                    }
                    self.encode(&own, record);
                    replaced += 1;
                }
            }
            all.push((row, records));
        }
        self.put_all(all)?;
        Ok((gained, replaced))
    }
}

impl NewParticle {
    /// Returns the reason why the particle cannot be added.
    fn fault(&self, species: &Species, quanta_per_mass: f64) -> Option<String> {
        let round = |x: f64| in_precision!(species.precision(), R => R::lit(x).to_f64());
        let numbers = self
            .velocity
            .iter()
            .chain(&self.scalars)
            .chain([&self.mass]);
        let is_sound = numbers.copied().all(|x| round(x).is_finite());
        let is_inside = self.offset.iter().all(|x| (0.0..1.0).contains(x));
        let Self {
            mass,
            velocity,
            scalars,
            ..
        } = self;
        if !is_sound || !is_inside || self.scalars.len() > species.scalars.len() {
            return Some(format!(
                "a new particle has the mass {mass}, the velocity {velocity:?}, the scalars {scalars:?} and the offset {:?} in its \
                 patch: numbers must be finite, offsets from 0 to below 1, and there are {} scalars",
                self.offset,
                species.scalars.len()
            ));
        }
        (mass * quanta_per_mass < 1.0).then(|| {
            format!(
                "a new particle has the mass {mass:e}, below the mass quantum {:e}, which follows from the mass of all particles \
                 and the gas at the start: it would be no source of gravity; raise the least mass of new particles (for stars `star_formation.least_mass`)",
                1.0 / quanta_per_mass
            )
        })
    }
}

/// Returns the mass of new particles in quanta, as stored.
fn quanta_of_all<R: ParticleReal>(made: &[NewParticle], quanta_per_mass: f64) -> u64 {
    made.iter()
        .map(|new| quanta_of(R::lit(new.mass), quanta_per_mass))
        .sum()
}

/// Returns the records of new particles, patch by patch.
fn batches<R: ParticleReal>(
    species: &Species,
    topology: &Topology,
    level: usize,
    made: &[NewParticle],
    first: u64,
) -> Vec<MigrationBatch> {
    let mut id = first;
    let of_rows: Vec<(u64, &[NewParticle])> = made
        .chunk_by(|a, b| a.row == b.row)
        .map(|of_row| {
            id += of_row.len() as u64;
            (id - of_row.len() as u64, of_row)
        })
        .collect();
    parallel::map(&of_rows, |(first, of_row)| {
        let mut records = Vec::with_capacity(of_row.len() * species.record_bytes());
        let numbered = of_row.iter().zip(*first..);
        numbered.for_each(|(new, id)| new.encode::<R>(id, species, &mut records));
        MigrationBatch {
            level,
            index: topology.index(of_row[0].row),
            records,
        }
    })
}

impl NewParticle {
    /// Appends the record of the particle. Its acceleration is set by the closing kick of the step.
    fn encode<R: ParticleReal>(&self, id: u64, species: &Species, record: &mut Vec<u8>) {
        record.extend(id.to_le_bytes());
        for offset in self.offset {
            let units = (offset * 18_446_744_073_709_551_616.0) as u64;
            record.extend_from_slice(bytemuck::bytes_of(&R::narrow(units)));
        }
        let mut scalars = self.scalars.clone();
        scalars.resize(species.scalars.len(), 0.0);
        if let Some(n) = species.mass_remainder() {
            [_, scalars[n]] = species.split_mass(self.mass);
        }
        let numbers = self.velocity.into_iter().chain([0.0; 3]).chain([self.mass]);
        for number in numbers.chain(scalars) {
            record.extend_from_slice(bytemuck::bytes_of(&R::lit(number)));
        }
        record.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_restored_exactly() {
        let of = |name: &str, has_begun: bool| SpeciesBirths {
            name: name.into(),
            has_begun,
            next: 7,
            latest: -0.1,
            born: Counted {
                count: 5,
                quanta: u64::MAX,
            },
            ended: Counted {
                count: 1,
                quanta: 3,
            },
        };
        let empty = |name: &str| SpeciesBirths {
            name: name.into(),
            ..SpeciesBirths::default()
        };
        let saved = BirthCounters {
            species: vec![of("stars", true), of("sparks", false)],
        };
        let bytes = saved.save();
        let mut other = BirthCounters {
            species: vec![empty("sparks"), empty("stars"), empty("new")],
        };
        other.load(&bytes).expect("it fits");
        let expected = vec![empty("sparks"), of("stars", true), empty("new")];
        assert_eq!(other.species, expected);
        assert!(other.load(&bytes[..bytes.len() - 1]).is_err());
    }

    #[test]
    fn centres_of_cells_are_exact() {
        assert_eq!(NewParticle::centre_of(0), [0.0625; 3]);
        assert_eq!(NewParticle::centre_of(511), [0.9375; 3]);
        assert_eq!(NewParticle::centre_of(10), [0.3125, 0.1875, 0.0625]);
    }
}
