//! Functions of particles: one line registers them, and systems call them.
//!
//! A function gets the mass, the velocity and the chosen scalars of one particle of a species. It runs on host pages or on the lists of a
//! device, with the same bits.

use super::Motion;
use super::device::{COLLECTIONS, FunctionKernel, REDUCTIONS, UPDATES};
use super::diagnostics::scale_of;
use super::function_call::{
    CalledParticle, FunctionCall, FunctionReduction, ParticleCollect, ParticleMap, ParticleValue,
    RecordOf, StateColumns, lists_of, numbers,
};
use super::mass_quantum::MassQuantum;
use super::selected_particle::SelectedParticle;
use super::species::{Species, SpeciesMap};
use crate::order::{Advance, Limit};
use bevy_ecs::prelude::*;
use bevy_ecs::system::{IntoSystem, SystemParam};
use nestar_device::{CellState, ParticleFn, ParticleInputs, Real};
use nestar_engine::comm::{DiagnosticColumns, Ranks, RanksError, Reduce, Reduction};
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::data::{LevelRows, Parameters, ParticleSet};
use nestar_engine::device::DeviceError;
use nestar_engine::mesh::{LevelClock, Levels, Topology};
use nestar_engine::step::{Catalogue, CatalogueEntry, StepLimits};
use nestar_engine::{Engine, Error, in_precision};
use nestar_kernels::mesh::order::{order_key, value_of_key};
use nestar_kernels::particles::functions::{LARGEST, MAGNITUDE, SMALLEST, SUM};

/// Particles of a species with chosen scalars. Its methods add `#[device]` functions of particles to a simulation. Their state is the mass,
/// the velocity and these scalars, in this order.
pub struct ParticleSelection<'a> {
    sim: &'a mut Engine,
    columns: StateColumns,
}

impl<'a> ParticleSelection<'a> {
    /// Selects a species and some of its scalars. Call it in `Plugin::build`.
    ///
    /// # Errors
    /// There is no such species, or it lacks a scalar.
    pub fn of(sim: &'a mut Engine, species: &str, scalars: &[&str]) -> Result<Self, Error> {
        let Some(all) = sim.world.get_resource::<SpeciesMap>() else {
            return Err(Error::Setup(format!(
                "a plugin adds a function of particles of the species {species:?}: add a table [particles.species.{species}]"
            )));
        };
        let columns = StateColumns::of(all.named(species)?, scalars);
        match columns {
            Ok(columns) => Ok(Self { sim, columns }),
            Err([key, why]) => Err(sim.deck.error_at(&key, why).into()),
        }
    }

    /// Adds a source: each particle is set to the result of `M` once per step of the level that moves it, after its drift. The function
    /// returns the mass, the velocity, and optionally scalars. Forces in the same step are those of the new masses.
    ///
    /// # Errors
    /// The function reads or returns other numbers than the selected ones.
    pub fn source<M: ParticleMap>(
        self,
        parameters: impl Into<Parameters<M::Parameters>>,
    ) -> Result<(), Error>
    where
        M::Parameters: Send + Sync,
    {
        let Self { sim, columns } = self;
        let (parameters, fits) = (parameters.into(), columns.fits_map::<M>());
        fits.map_err(Error::Setup)?;
        prepare::<M>(sim, &columns, UPDATES);
        let update = move |mut particles: ParticleAccess| {
            let parameters = parameters.at(particles.clock.middle);
            particles.chosen(&columns)?.update::<M>(&parameters)
        };
        let name = M::ITEM.name;
        let update = IntoSystem::into_system(update).with_name(format!("particle source {name}"));
        sim.system_in(Advance::Predict, update)
            .in_sequence()
            .keeps_particles();
        catalogue_entry(sim, "source", name, M::DOC);
        Ok(())
    }

    /// Adds a time-step limit: the smallest value of `M` for the particles that a level moves, in units of time. The run log shows `name`.
    ///
    /// # Errors
    /// The function reads more numbers than the selected ones.
    pub fn limit<M: ParticleValue>(
        self,
        name: &'static str,
        parameters: impl Into<Parameters<M::Parameters>>,
    ) -> Result<(), Error>
    where
        M::Parameters: Send + Sync,
    {
        let Self { sim, columns } = self;
        let (parameters, fits) = (parameters.into(), columns.fits::<M>());
        fits.map_err(Error::Setup)?;
        prepare::<M>(sim, &columns, REDUCTIONS);
        let limit = move |rows: LevelRows,
                          mut particles: ParticleAccess,
                          mut limits: ResMut<StepLimits>|
              -> Result<(), Error> {
            if rows.is_estimate() {
                limits.leave_out(name);
                return Ok(());
            }
            let parameters = parameters.at(particles.clock.middle);
            let mut chosen = particles.chosen(&columns)?;
            let smallest = chosen.reduce::<M>(&parameters)?;
            if limits.wants_places()
                && let Some(text) = chosen.place_of::<M>(smallest, &parameters)?
            {
                limits.place(name, smallest, text);
            }
            limits.propose(name, smallest);
            Ok(())
        };
        let limit = IntoSystem::into_system(limit).with_name(format!("particle limit {name}"));
        sim.system_in(Limit::Propose, limit)
            .in_sequence()
            .keeps_particles();
        catalogue_entry(sim, "limit", name, M::DOC).unit("time");
        Ok(())
    }

    /// Adds a column of the diagnostics: `M` for all particles of the species, reduced. [`Reduce::Integral`] is the sum, in integers with
    /// 62 bits for the number of particles times the largest magnitude. Without particles it is 0, and the others are NaN.
    /// `.unit("mass")` sets the unit that lists show.
    ///
    /// # Errors
    /// The function reads more numbers than the selected ones.
    pub fn column<M: ParticleValue>(
        self,
        name: &'static str,
        reduce: Reduce,
        parameters: impl Into<Parameters<M::Parameters>>,
    ) -> Result<&'a mut CatalogueEntry, Error>
    where
        M::Parameters: Send + Sync,
    {
        let Self { sim, columns } = self;
        let (parameters, fits) = (parameters.into(), columns.fits::<M>());
        fits.map_err(Error::Setup)?;
        prepare::<M>(sim, &columns, REDUCTIONS);
        DiagnosticColumns::add_numbers(&mut sim.world, [name], move |world| {
            let levels = world.resource::<Levels>();
            let parameters = parameters.at(levels.numbers_at(levels.time(0)));
            world.resource_scope(|world, mut all: Mut<SpeciesMap>| {
                let column = ColumnCall::<M> {
                    world,
                    name,
                    columns: &columns,
                    parameters: &parameters,
                };
                column.value(&mut all, reduce).map(|value| vec![value])
            })
        });
        Ok(catalogue_entry(sim, "column", name, M::DOC))
    }
}

impl ParticleSelection<'_> {
    /// Checks that a function that is called by [`ChosenParticles::collect`] can read the selected numbers, and starts to compile it for a
    /// device.
    ///
    /// # Errors
    /// The function reads more numbers than the selected ones.
    pub fn prepare_collect<M: ParticleCollect>(self) -> Result<(), Error> {
        self.columns.fits::<M>().map_err(Error::Setup)?;
        prepare::<M>(self.sim, &self.columns, COLLECTIONS);
        Ok(())
    }
}

/// Starts to compile a function for a device. The first use reports errors.
fn prepare<M: ParticleFn>(sim: &Engine, columns: &StateColumns, kernel: FunctionKernel) {
    let all = sim.world.resource::<SpeciesMap>();
    let own = all.0.iter().find(|own| own.name == columns.species);
    if let Some(lists) = own.and_then(|own| own.on_device.as_ref()) {
        let _ = lists.kernels().of_function(kernel, M::ITEM);
    }
}

/// Adds a function of particles to the catalogue.
fn catalogue_entry<'a>(
    sim: &'a mut Engine,
    kind: &'static str,
    name: &str,
    doc: &str,
) -> &'a mut CatalogueEntry {
    let catalogue = sim.world.resource_mut::<Catalogue>().into_inner();
    catalogue.add(kind, name, doc).of("particles")
}

/// Particles in a step of a level, for systems that call functions of particles.
#[derive(SystemParam)]
pub struct ParticleAccess<'w> {
    topology: Res<'w, Topology>,
    clock: Res<'w, LevelClock>,
    quantum: Res<'w, MassQuantum>,
    tables: Option<Res<'w, DeviceTopology>>,
    motion: ResMut<'w, Motion>,
    species: ResMut<'w, SpeciesMap>,
    ranks: Res<'w, Ranks>,
}

impl ParticleAccess<'_> {
    /// Selects the particles of a species that the level moves, for functions whose state is the mass, the velocity and these scalars.
    ///
    /// # Errors
    /// There is no such species, or it lacks a scalar.
    pub fn of(&mut self, species: &str, scalars: &[&str]) -> Result<ChosenParticles<'_>, Error> {
        let columns = columns_of(&self.species, species, scalars)?;
        self.chosen(&columns)
    }

    fn chosen(&mut self, columns: &StateColumns) -> Result<ChosenParticles<'_>, Error> {
        let step = ParticleStep {
            topology: &self.topology,
            tables: self.tables.as_deref(),
            clock: *self.clock,
            quanta_per_mass: self.quantum.quanta_per_mass,
            ranks: &self.ranks,
        };
        ChosenParticles::of(step, &mut self.motion, &mut self.species, columns.clone())
    }
}

/// Returns the columns of a species of a name.
pub(super) fn columns_of(
    all: &SpeciesMap,
    species: &str,
    scalars: &[&str],
) -> Result<StateColumns, Error> {
    let columns = StateColumns::of(all.named(species)?, scalars);
    columns.map_err(|[_, why]| Error::Setup(why))
}

/// What functions of particles depend on in a step of a level.
#[derive(Clone, Copy)]
pub(super) struct ParticleStep<'a> {
    pub topology: &'a Topology,
    pub tables: Option<&'a DeviceTopology>,
    pub clock: LevelClock,
    pub quanta_per_mass: f64,
    pub ranks: &'a Ranks,
}

impl<'a> ParticleStep<'a> {
    fn call<'b, M: ParticleFn>(
        &self,
        columns: &'b StateColumns,
        parameters: &'b M::Parameters,
    ) -> FunctionCall<'b, M>
    where
        'a: 'b,
    {
        FunctionCall {
            topology: self.topology,
            tables: self.tables,
            columns,
            clock: self.clock,
            quanta_per_mass: self.quanta_per_mass,
            parameters,
        }
    }
}

/// A particle with its record.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedParticle<T> {
    /// The particle.
    pub particle: SelectedParticle,
    /// The record.
    pub record: T,
}

/// Particles of a species that a level moves, with chosen scalars.
pub struct ChosenParticles<'a> {
    step: ParticleStep<'a>,
    motion: &'a mut Motion,
    species: &'a mut Species,
    columns: StateColumns,
}

impl<'a> ChosenParticles<'a> {
    /// Selects the species of the columns.
    pub(super) fn of(
        step: ParticleStep<'a>,
        motion: &'a mut Motion,
        all: &'a mut SpeciesMap,
        columns: StateColumns,
    ) -> Result<Self, Error> {
        let known = all.named(&columns.species).map(|_| ());
        let mut all = all.0.iter_mut();
        match all.find(|own| own.name == columns.species) {
            Some(species) => Ok(Self {
                step,
                motion,
                species,
                columns,
            }),
            None => Err(known.err().unwrap_or_else(|| Error::Setup(columns.species))),
        }
    }

    /// Sets each particle to the result of `M`: mass, velocity, and optionally scalars. All ranks call it.
    ///
    /// # Errors
    /// The function reads or returns other numbers than the selected ones; a result is not finite; a mass is negative or below the quantum
    /// of the deposit, or changes although all particles share it; the device or another rank has failed.
    pub fn update<M: ParticleMap>(&mut self, parameters: &M::Parameters) -> Result<(), Error> {
        self.columns.fits_map::<M>().map_err(Error::Setup)?;
        let call = self.step.call::<M>(&self.columns, parameters);
        let sums = self.species.update_by(&call)?;
        let ranks = self.step.ranks;
        let mut all = [sums.gained, sums.changed, u64::from(sums.invalid > 0)];
        ranks.communicator().reduce(Reduction::Sum, &mut all)?;
        let [gained, changed, invalid] = all;
        if invalid > 0 {
            let own = match sums.invalid {
                0 => None,
                id => Some(invalid_result(self.species, &call, !id)?),
            };
            let why = ranks.first_error(own)?;
            return Err(Error::Fault(why.unwrap_or_default()));
        }
        if sums.grown > 0 {
            self.species.mass_gain += sums.grown as f64 / self.step.quanta_per_mass;
        }
        if let Some(known) = &mut self.species.audited {
            known.quanta = known.quanta.wrapping_add(gained);
        }
        // as after births, densities that were deposited before are those of other masses
        self.motion.has_changed[self.step.clock.level] |= changed > 0;
        Ok(())
    }

    /// Returns the smallest value of `M` on this rank: NaN if any value is NaN, infinity without particles.
    ///
    /// # Errors
    /// The function reads more numbers than the selected ones; the device fails.
    pub fn reduce<M: ParticleValue>(&mut self, parameters: &M::Parameters) -> Result<f64, Error> {
        self.columns.fits::<M>().map_err(Error::Setup)?;
        let call = self.step.call::<M>(&self.columns, parameters);
        let by = FunctionReduction {
            what: SMALLEST,
            scale: 1.0,
        };
        let key = self.species.reduce_by(&call, by)?;
        Ok(-value_of_key(key.max(order_key(f64::NEG_INFINITY))))
    }

    /// Returns the particles of this rank for which `M` has a record: patches in Hilbert order, the coarser level first, and in a patch by
    /// identity. On a device, eight bytes are fetched for each of at most two lists if there is none.
    ///
    /// # Errors
    /// The function reads more numbers than the selected ones; the device fails or its memory does not suffice.
    pub fn collect<M: ParticleCollect>(
        &mut self,
        parameters: &M::Parameters,
    ) -> Result<Vec<RecordedParticle<RecordOf<M>>>, Error> {
        self.columns.fits::<M>().map_err(Error::Setup)?;
        let call = self.step.call::<M>(&self.columns, parameters);
        let found = self.species.collect_by(&call)?;
        let decode = |(particle, numbers): (SelectedParticle, Vec<f64>)| RecordedParticle {
            particle,
            record: RecordOf::<M>::read(&mut |_, n| numbers[n], 0, 0),
        };
        Ok(found.into_iter().map(decode).collect())
    }

    /// Describes the particle with a value of `M` on this rank.
    fn place_of<M: ParticleValue>(
        &mut self,
        value: f64,
        parameters: &M::Parameters,
    ) -> Result<Option<String>, DeviceError> {
        let call = self.step.call::<M>(&self.columns, parameters);
        let is_it = |own: f64| own == value || (own.is_nan() && value.is_nan());
        particle_with(self.species, &call, &is_it)
    }
}

/// Describes a particle before a call.
fn described<R: Real>(particle: &CalledParticle<R>, columns: &StateColumns) -> (u64, String)
where
    for<'a> CalledParticle<'a, R>: ParticleInputs<R>,
{
    let place = particle.place();
    let state = particle.numbers.map(Real::to_f64);
    let text = format!(
        "particle {} of particles.species.{} at {:?} on level {}, which has {}",
        particle.id,
        columns.species,
        place.position.map(Real::to_f64),
        place.level,
        columns.describe(&state)
    );
    (particle.id, text)
}

/// Describes the particle with the smallest identity whose value satisfies a condition; fetches all particles.
fn particle_with<M: ParticleValue>(
    species: &mut Species,
    call: &FunctionCall<M>,
    is_it: &(dyn Fn(f64) -> bool + Sync),
) -> Result<Option<String>, DeviceError> {
    species.fetch()?;
    let mut found = Vec::new();
    for at in lists_of(call.clock.level) {
        found.extend(in_precision!(species.precision(), R => {
            let tell = |particle: &CalledParticle<R>, value: R| {
                is_it(Real::to_f64(value)).then(|| described(particle, call.columns))
            };
            species.told_on_host::<M, R, _>(call, at, tell)
        }));
    }
    Ok(found
        .into_iter()
        .map(|told| told.what)
        .min()
        .map(|(_, text)| text))
}

/// Describes the invalid result for a particle; fetches all particles.
fn invalid_result<M: ParticleMap>(
    species: &mut Species,
    call: &FunctionCall<M>,
    id: u64,
) -> Result<String, DeviceError> {
    species.fetch()?;
    let mut found = Vec::new();
    for at in lists_of(call.clock.level) {
        found.extend(in_precision!(species.precision(), R => {
            let tell = |particle: &CalledParticle<R>, result: M::Result<R>| {
                (particle.id == id).then(|| {
                    let (new, count) = numbers::<R, _>(&result);
                    let new = call.columns.describe(&new.map(Real::to_f64)[..count]);
                    format!("`{}` gives {}: {new}", M::ITEM.name, described(particle, call.columns).1)
                })
            };
            species.told_on_host::<M, R, _>(call, at, tell)
        }));
    }
    let rule = match species.pool.columns.masses {
        true => format!(
            "must be 0 or at least the mass quantum {:e}",
            1.0 / call.quanta_per_mass
        ),
        false => format!(
            "cannot change: remove `particles.species.{}.mass` to give each particle its own",
            species.name
        ),
    };
    let what = found.pop().map_or_else(String::new, |told| told.what);
    Ok(format!(
        "{what}. Numbers must be finite, and the mass {rule}"
    ))
}

/// A column of the diagnostics.
struct ColumnCall<'a, M: ParticleFn> {
    world: &'a World,
    name: &'static str,
    columns: &'a StateColumns,
    parameters: &'a M::Parameters,
}

impl<M: ParticleValue> ColumnCall<'_, M> {
    /// Returns the value over all ranks.
    fn value(&self, all: &mut SpeciesMap, reduce: Reduce) -> Result<f64, RanksError> {
        let ranks = self.world.resource::<Ranks>();
        let own = all.0.iter_mut();
        let found = own.into_iter().find(|own| own.name == self.columns.species);
        let Some(species) = found else {
            return Ok(f64::NAN);
        };
        // non-negative numbers have the order of their bits, and NaN comes last
        let most = f64::from_bits(ranks.max(self.reduced(species, MAGNITUDE, 1.0)?)?);
        if !most.is_finite() {
            let own = self.place_of_fault(species)?;
            let why = ranks.first_error(own)?.unwrap_or_default();
            return Err(RanksError::Device(DeviceError::Setup(why)));
        }
        let rows = 0..self.world.resource::<Topology>().capacity() as u32;
        let count = ranks.sum(rows.map(|row| species.count(row) as u64).sum())?;
        if reduce == Reduce::Integral {
            let bits = 62 - (u64::BITS - count.leading_zeros()) as i32;
            let scale = scale_of(most, bits);
            let sum = ranks.sum(self.reduced(species, SUM, scale)?)?;
            return Ok(if most == 0.0 {
                0.0
            } else {
                sum as i64 as f64 / scale
            });
        }
        let what = match reduce {
            Reduce::Smallest => SMALLEST,
            _ => LARGEST,
        };
        let key = ranks.max(self.reduced(species, what, 1.0)?)?;
        Ok(match (count, what) {
            (0, _) => f64::NAN,
            (_, SMALLEST) => -value_of_key(key),
            _ => value_of_key(key),
        })
    }

    /// Reduces the values on this rank.
    fn reduced(&self, species: &mut Species, what: i32, scale: f64) -> Result<u64, DeviceError> {
        let (by, mut all) = (FunctionReduction { what, scale }, 0);
        for step in self.steps() {
            let call = step.call::<M>(self.columns, self.parameters);
            all = by.joined(all, species.reduce_by(&call, by)?);
        }
        Ok(all)
    }

    /// Describes a particle of this rank whose value is not finite.
    fn place_of_fault(&self, species: &mut Species) -> Result<Option<String>, DeviceError> {
        for step in self.steps() {
            let call = step.call::<M>(self.columns, self.parameters);
            let found = particle_with(species, &call, &|value| !value.is_finite())?;
            if let Some(text) = found {
                return Ok(Some(format!(
                    "column {}: `{}` gives a value that is not finite for {text}",
                    self.name,
                    M::ITEM.name
                )));
            }
        }
        Ok(None)
    }

    /// Returns all levels, as they are between two steps.
    fn steps(&self) -> impl Iterator<Item = ParticleStep<'_>> {
        let (topology, levels) = (
            self.world.resource::<Topology>(),
            self.world.resource::<Levels>(),
        );
        let time = levels.time(0);
        let numbers = levels.numbers_at(time);
        (0..=topology.finest()).map(move |level| ParticleStep {
            topology,
            tables: self.world.get_resource::<DeviceTopology>(),
            clock: LevelClock {
                level,
                time,
                end: time,
                cell_width: topology.domain.cell_width(level),
                numbers,
                middle: numbers,
                ..LevelClock::default()
            },
            quanta_per_mass: self.world.resource::<MassQuantum>().quanta_per_mass,
            ranks: self.world.resource::<Ranks>(),
        })
    }
}
