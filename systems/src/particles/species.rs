//! Describes a species of particles (what moves it, the source of its initial particles) and owns its data.

use super::device::{Arrivals, CountedStep, DeviceParticles, DeviceStep, ListId, ParticleKernels};
pub use super::pages::PatchParticles;
use super::pages::{PagePool, ParticleColumns};
use super::patch_exchange::DriftResult;
use crate::units::ACCELERATION;
use nestar_deck::deck;
use nestar_device::random::Stream;
use nestar_device::{Lane, Real};
use nestar_engine::comm::Comm;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::data::{MigrationBatch, ParticleGroup, ParticleSet, Precision};
use nestar_engine::device::{DeviceError, Kernel};
use nestar_engine::in_precision;
use nestar_engine::mesh::Topology;
use std::mem::take;
use std::sync::{Arc, OnceLock};

/// What moves particles.
#[deck]
#[derive(Default)]
pub enum MovedBy {
    /// Gravity: collisionless particles.
    #[default]
    Fall,
    /// The velocity of the gas: massless tracers that follow streamlines.
    Gas,
    /// The mass fluxes of the gas: massless Monte Carlo tracers, which jump between cells with the mass flux.
    /// They sample the gas mass at all times, up to Poisson noise. Positions within a cell have no meaning.
    MassFluxes,
}

/// An initial particle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitialParticle {
    /// Position, code length.
    pub position: [f64; 3],
    /// Velocity, code units.
    pub velocity: [f64; 3],
    /// Mass; ignored if all particles have the same mass.
    pub mass: f64,
    /// Scalars, in the order of the species; missing ones are 0.
    pub scalars: Vec<f64>,
}

/// Creates particles from their numbers.
pub trait ParticleSource: Send + Sync {
    /// Number of particles, including those that are not kept.
    fn count(&self) -> u64;
    /// Returns the identity of a particle, unique in the species: its number, unless a file gives another.
    fn identity(&self, number: u64) -> u64 {
        number
    }
    /// Creates a particle. Returns `None` if it is not kept.
    ///
    /// # Errors
    /// The condition is not a number.
    fn make(&self, number: u64) -> Result<Option<InitialParticle>, String>;
    /// Describes the origin of a particle in messages, for example the row of a file.
    fn origin(&self, _number: u64) -> String {
        String::new()
    }
    /// Explains why a particle may be outside the domain; empty if unknown.
    fn outside_hint(&self, _number: u64) -> String {
        String::new()
    }
    /// Mass of each particle, if the source determines it.
    fn mass(&self) -> Option<f64> {
        None
    }
}

/// Particles of a species on all ranks, plus those that have left the domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Inventory {
    pub count: u64,
    /// Mass in quanta.
    pub quanta: u64,
}

/// A species of particles.
pub struct Species {
    /// Name.
    pub name: String,
    /// Mass of each particle, if all have the same.
    pub mass: f64,
    /// What moves its particles.
    pub moved_by: MovedBy,
    /// Random numbers of Monte Carlo tracers.
    pub stream: Stream,
    /// Unit of accelerations.
    pub(super) acceleration_units: String,
    /// Names of the scalars.
    pub scalars: Vec<String>,
    /// Upper limit of the initial number of particles.
    pub expected: u64,
    /// Source of the initial particles.
    pub(super) source: Option<Arc<dyn ParticleSource>>,
    /// Cost of a particle step in cell updates.
    pub weight: f64,
    /// Deck keys that determine the layout of records.
    pub(super) keys: Vec<String>,
    /// Pool of pages.
    pub pool: PagePool,
    pub(super) precision: Precision,
    pub(super) patches: Vec<PatchParticles>,
    /// Particles on a device, if kernels move them; further ones may wait in host pages.
    pub(super) on_device: Option<DeviceParticles>,
    /// Arrivals during a drift step on the device.
    pub(super) arrivals: Option<Arrivals>,
    /// `true` if host pages may have particles to be uploaded.
    pub(super) needs_upload: bool,
    /// `true` if each particle is an entity.
    pub(super) entities: bool,
    /// Index of particles: identity and row, ascending; built on demand after particles have moved.
    pub(super) rows: OnceLock<Vec<(u64, u32)>>,
    /// Mass added by plugins since the last check of the total mass.
    pub(super) mass_gain: f64,
    /// Identities of particles that have left the domain since the engine last asked.
    pub(super) escaped: Vec<u64>,
    /// Result of the last audit.
    pub(super) audited: Option<Inventory>,
}

impl Species {
    /// Creates a species without particles.
    #[must_use]
    pub fn new(name: &str, precision: Precision, mass: Option<f64>, scalars: Vec<String>) -> Self {
        let columns = ParticleColumns {
            number: precision.bytes(),
            masses: mass.is_none(),
            scalars: scalars.len(),
        };
        Self {
            name: name.into(),
            mass: mass.unwrap_or_default(),
            moved_by: MovedBy::Fall,
            stream: Stream {
                seed: 0,
                purpose: 0,
                step: 0,
            },
            acceleration_units: ACCELERATION.into(),
            scalars,
            expected: 0,
            source: None,
            weight: 0.0,
            keys: Vec::new(),
            pool: PagePool::new(columns),
            precision,
            patches: Vec::new(),
            on_device: None,
            arrivals: None,
            needs_upload: true,
            entities: false,
            rows: OnceLock::new(),
            mass_gain: 0.0,
            escaped: Vec::new(),
            audited: None,
        }
    }

    /// Returns the number of the scalar `mass_remainder`, which holds what the stored masses lack by rounding to single precision, if the
    /// species has it. Births and changes of particles fill it in, and selected particles have the sum as their mass.
    #[must_use]
    pub(super) fn mass_remainder(&self) -> Option<usize> {
        self.scalars
            .iter()
            .position(|name| name == "mass_remainder")
    }

    /// Splits a mass into the part that is stored and the remainder.
    #[must_use]
    pub(super) fn split_mass(&self, mass: f64) -> [f64; 2] {
        let stored = in_precision!(self.precision, R => R::lit(mass).to_f64());
        [stored, mass - stored]
    }

    /// Tells the audit (`run.audit`) that a plugin has created or removed particles; the next audit takes the
    /// new numbers. [`Species::change`] calls it for changed masses. A call on one rank is enough.
    pub fn recount(&mut self) {
        self.audited = None;
    }

    /// Moves the species to a device. The second kernel moves the particles.
    pub(super) fn go_to_device(
        &mut self,
        kernels: &Arc<ParticleKernels>,
        mover: &Kernel,
        levels: usize,
    ) {
        let (kernels, mover) = (kernels.clone(), mover.clone());
        self.on_device = Some(DeviceParticles::new(
            kernels,
            mover,
            self.pool.columns,
            levels,
        ));
    }

    /// Returns `true` if kernels move the particles.
    #[must_use]
    pub fn is_on_device(&self) -> bool {
        self.on_device.is_some()
    }

    /// Uploads waiting particles and returns the device store, or `None` if the host moves the particles.
    /// `tables` is present if fields are on a device.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice.
    pub(super) fn upload(
        &mut self,
        topology: &Topology,
        tables: Option<&DeviceTopology>,
    ) -> Result<Option<&mut DeviceParticles>, DeviceError> {
        let Some(lists) = self.on_device.as_mut().filter(|_| tables.is_some()) else {
            return Ok(None);
        };
        if take(&mut self.needs_upload) {
            for at in (0..=topology.finest()).flat_map(ListId::both) {
                lists.insert_from_host(topology, at, &mut self.patches, &self.pool)?;
            }
        }
        Ok(Some(lists))
    }

    /// Downloads all particles to host pages; kernels upload them again when needed.
    ///
    /// # Errors
    /// The device fails.
    pub fn fetch(&mut self) -> Result<(), DeviceError> {
        let Some(lists) = &mut self.on_device else {
            return Ok(());
        };
        self.needs_upload = true;
        let (patches, pool) = (&mut self.patches, &self.pool);
        lists.fetch(|row, list, records| {
            let records = records.chunks_exact(pool.columns.bytes() + 1);
            records.for_each(|record| patches[row][list].push(pool, &record[..record.len() - 1]));
        })
    }

    /// Starts the drift step: advances and counts the particles, and packs those that leave. Arrivals are
    /// collected until [`Species::finish_device_step`].
    ///
    /// # Errors
    /// As [`Species::upload`].
    pub(super) fn begin_device_step(
        &mut self,
        step: &DeviceStep,
        tables: &DeviceTopology,
    ) -> Result<(DriftResult, Option<CountedStep>), DeviceError> {
        let Some(lists) = self.upload(step.topology, Some(tables))? else {
            return Ok((DriftResult::default(), None));
        };
        let drifted = lists.step(step)?;
        self.arrivals = Some(Arrivals::default());
        Ok(drifted)
    }

    /// Exchanges particles with devices of other ranks. Returns arrivals for patches that are not on the
    /// device. Collective.
    ///
    /// # Errors
    /// The device fails or its memory does not suffice; another rank or the transport has failed.
    pub(super) fn exchange(
        &mut self,
        step: &DeviceStep,
        counted: &CountedStep,
        others: &Comm,
    ) -> Result<Vec<MigrationBatch>, DeviceError> {
        match self.on_device.as_ref().zip(self.arrivals.as_mut()) {
            Some((lists, arrivals)) => lists.exchange(step, counted, arrivals, others),
            None => Ok(Vec::new()),
        }
    }

    /// Finishes the step that [`Species::begin_device_step`] started.
    ///
    /// # Errors
    /// As there.
    pub(super) fn finish_device_step(
        &mut self,
        step: &DeviceStep,
        counted: CountedStep,
    ) -> Result<(), DeviceError> {
        let Some((lists, arrivals)) = self.on_device.as_mut().zip(self.arrivals.take()) else {
            return Ok(());
        };
        let rest = lists.insert(step, counted, arrivals)?;
        rest.iter()
            .try_for_each(|(row, records)| self.put(*row, records))
    }

    /// Precision of the numbers.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Returns `true` if its particles have mass.
    #[must_use]
    pub fn has_mass(&self) -> bool {
        self.mass > 0.0 || self.pool.columns.masses
    }

    /// Calls `work` for each patch with particles in host pages; these are all particles after
    /// [`Species::fetch`].
    pub fn for_each_patch(&mut self, mut work: impl FnMut(u32, &mut PatchParticles)) {
        self.forget_rows();
        let patches = self.patches.iter_mut().enumerate();
        for (row, patch) in patches.filter(|(_, patch)| count(patch) > 0) {
            work(row as u32, patch);
        }
    }

    /// Permutes the particles in their patches, on the host or on a device.
    ///
    /// # Errors
    /// The device fails.
    pub fn shuffle(&mut self) -> Result<(), DeviceError> {
        self.fetch()?;
        // also exercises compaction in many batches
        self.on_device
            .iter_mut()
            .for_each(|lists| lists.double_buffer_limit = 0);
        for patch in &mut self.patches {
            patch.iter_mut().for_each(|rows| rows.shuffle(&self.pool));
        }
        Ok(())
    }

    /// Takes the particles of patches out for parallel work; empty patches are left out.
    pub fn take_patches(&mut self, rows: impl Iterator<Item = u32>) -> Vec<(u32, PatchParticles)> {
        let mut detached = self.take_all_patches(rows);
        detached.retain(|(_, patch)| count(patch) > 0);
        detached
    }

    /// Takes the particles of patches out, including empty patches.
    pub fn take_all_patches(
        &mut self,
        rows: impl Iterator<Item = u32>,
    ) -> Vec<(u32, PatchParticles)> {
        rows.map(|row| (row, take(&mut self.patches[row as usize])))
            .collect()
    }

    /// Puts the particles of patches back.
    pub fn restore_patches(&mut self, detached: Vec<(u32, PatchParticles)>) {
        for (row, patch) in detached {
            self.patches[row as usize] = patch;
        }
    }

    /// Returns the bytes of the offset along an axis in a record.
    pub(super) fn offset_in(&self, axis: usize) -> std::ops::Range<usize> {
        let number = self.pool.columns.number;
        8 + axis * number..8 + (axis + 1) * number
    }
}

/// Returns the number of particles of a patch.
#[must_use]
pub fn count(patch: &PatchParticles) -> usize {
    patch[0].count() + patch[1].count()
}

/// All species by number, and the number of the first one among all particle sets of the run.
#[derive(bevy_ecs::prelude::Resource, Default)]
pub struct SpeciesMap(pub Vec<Species>, pub(super) usize);

impl SpeciesMap {
    /// Returns the kernels, if particles are on a device.
    pub(super) fn kernels(&self) -> Option<Arc<ParticleKernels>> {
        let mut lists = self
            .0
            .iter()
            .filter_map(|species| species.on_device.as_ref());
        lists.next().map(|lists| lists.kernels().clone())
    }

    /// Downloads all particles to host pages.
    ///
    /// # Errors
    /// The device fails.
    pub fn fetch(&mut self) -> Result<(), DeviceError> {
        self.0.iter_mut().try_for_each(Species::fetch)
    }

    /// Returns the species that gravity moves.
    pub fn falling(&mut self) -> impl Iterator<Item = &mut Species> {
        self.moved_by(MovedBy::Fall)
    }

    /// Returns the species that are moved this way.
    pub fn moved_by(&mut self, what: MovedBy) -> impl Iterator<Item = &mut Species> {
        let all = self.0.iter_mut();
        all.filter(move |species| species.moved_by == what)
    }
}

impl ParticleGroup for SpeciesMap {
    fn registered(&mut self, first: usize) {
        self.1 = first;
    }

    fn kinds(&self) -> usize {
        self.0.len()
    }

    fn kind(&self, n: usize) -> &dyn ParticleSet {
        &self.0[n]
    }

    fn kind_mut(&mut self, n: usize) -> &mut dyn ParticleSet {
        &mut self.0[n]
    }
}

#[cfg(test)]
mod tests {
    use super::super::pages::PAGE;
    use super::{ParticleSet, Precision, Species};

    #[test]
    fn the_memory_estimate_of_particles_is_accurate() {
        for (precision, patches, most) in
            [(Precision::Double, 300, 700), (Precision::Single, 2000, 9)]
        {
            let mut species = Species::new("dark", precision, None, vec![]);
            species.resize_rows(patches).unwrap();
            let (mut count, mut pages) = (0, 0);
            for row in 0..patches {
                // distinct counts, by multiplication with a coprime number
                let particles = row * 7919 % (most + 1);
                let records = vec![0; particles * species.record_bytes()];
                species.put(row as u32, &records).unwrap();
                (count, pages) = (count + particles, pages + particles.div_ceil(PAGE));
            }
            let page = 8 * species.pool.columns.page_words() + 16;
            let taken = (pages * page + patches * 64) as f64;
            let estimate = species.memory(count as u64, patches as u64) as f64;
            assert!(
                (0.6..1.4).contains(&(estimate / taken)),
                "{estimate} {taken}"
            );
        }
        assert_eq!(
            Species::new("dark", Precision::Double, None, vec![]).memory(0, 0),
            0
        );
    }
}
