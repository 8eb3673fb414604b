//! A species: what its particles have, and where they are.

use super::columns::ParticleColumns;
use super::device::{Arrivals, DeviceParticles, ParticleKernels};
use super::made::ParticleSource;
use super::moved_by::MovedBy;
use super::rows::PagePool;
pub use super::rows::PatchParticles;
use nestar_device::random::Stream;
use nestar_engine::data::device::DeviceTopology;
use nestar_engine::data::{ParticleGroup, ParticleSet, Precision};
use nestar_engine::device::{DeviceError, Kernel};
use nestar_engine::mesh::Topology;
use std::mem::take;
use std::sync::{Arc, OnceLock};

/// What all ranks have of a species, and what has left the box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Inventory {
    pub count: u64,
    /// Units of mass.
    pub units: u64,
}

/// A kind of particle.
pub struct Species {
    /// Its name.
    pub name: String,
    /// The mass of each, where all have one.
    pub mass: f64,
    /// What moves its particles.
    pub moved_by: MovedBy,
    /// The numbers that particles draw which move by chance.
    pub stream: Stream,
    /// Names of the scalars.
    pub scalars: Vec<String>,
    /// How many the run begins with at most.
    pub expected: u64,
    /// What makes those that the run begins with.
    pub(super) source: Option<Arc<dyn ParticleSource>>,
    /// How many cells a step of one is as much work as.
    pub weight: f64,
    /// Keys of the deck that say what the records mean.
    pub(super) keys: Vec<String>,
    /// Pages.
    pub pool: PagePool,
    pub(super) precision: Precision,
    pub(super) patches: Vec<PatchParticles>,
    /// Where kernels move the particles: those that are there, beside what stands in pages.
    pub(super) on_device: Option<DeviceParticles>,
    /// What comes in the middle of a step of theirs.
    pub(super) arrivals: Option<Arrivals>,
    /// Whether pages may hold any that a device should have.
    pub(super) needs_upload: bool,
    /// Whether each particle is an entity.
    pub(super) entities: bool,
    /// The row of each particle by identity, ascending; made when somebody asks for one after particles have gone from patch to patch.
    pub(super) rows: OnceLock<Vec<(u64, u32)>>,
    /// By how much plugins have made particles heavier since somebody looked whether their mass fits.
    pub(super) mass_gain: f64,
    /// The identities of those that have left the box since the engine asked for them.
    pub(super) escaped: Vec<u64>,
    /// What the audit last found.
    pub(super) audited: Option<Inventory>,
}

impl Species {
    /// A species without particles.
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

    /// Tells the audit (`run.audit`) that a plugin has made or taken particles, as [`Species::change`] tells it of masses: it takes them as they are from its next
    /// look on. One rank that calls this suffices.
    pub fn recount(&mut self) {
        self.audited = None;
    }

    /// Lets kernels move the particles, on a hierarchy of so many levels; the second of them says how.
    pub(super) fn go_to_device(
        &mut self,
        kernels: (&Arc<ParticleKernels>, &Kernel),
        levels: usize,
    ) {
        let kernels = (kernels.0.clone(), kernels.1.clone());
        self.on_device = Some(DeviceParticles::new(kernels, self.pool.columns, levels));
    }

    /// Whether kernels move the particles.
    #[must_use]
    pub fn is_on_device(&self) -> bool {
        self.on_device.is_some()
    }

    /// The particles on a device, all of them, where kernels move them; `tables` is there if fields live on one.
    ///
    /// # Errors
    /// The device fails, or its memory does not suffice.
    pub(super) fn upload(
        &mut self,
        topology: &Topology,
        tables: Option<&DeviceTopology>,
    ) -> Result<Option<&mut DeviceParticles>, DeviceError> {
        let Some(lists) = self.on_device.as_mut().filter(|_| tables.is_some()) else {
            return Ok(None);
        };
        if take(&mut self.needs_upload) {
            for at in (0..=topology.finest()).flat_map(|level| [(level, 0), (level, 1)]) {
                lists.insert_from_host(topology, at, (&mut self.patches, &self.pool))?;
            }
        }
        Ok(Some(lists))
    }

    /// Takes all particles to the host's pages, where systems that ask for them find them; kernels take them back.
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

    /// Precision of the numbers.
    #[must_use]
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Whether its particles attract.
    #[must_use]
    pub fn has_mass(&self) -> bool {
        self.mass > 0.0 || self.pool.columns.masses
    }

    /// Calls `work` with each row that has particles in pages: all, after [`Species::fetch`].
    pub fn for_each_patch(&mut self, mut work: impl FnMut(u32, &mut PatchParticles)) {
        self.forget_rows();
        let patches = self.patches.iter_mut().enumerate();
        for (row, patch) in patches.filter(|(_, patch)| count(patch) > 0) {
            work(row as u32, patch);
        }
    }

    /// Lets particles change places in their patches; kernels that move them get them back in the new order.
    ///
    /// # Errors
    /// The device fails.
    pub fn shuffle(&mut self) -> Result<(), DeviceError> {
        self.fetch()?;
        // and few of them have their turns together
        self.on_device
            .iter_mut()
            .for_each(|lists| lists.double_buffer_limit = 0);
        for patch in &mut self.patches {
            patch.iter_mut().for_each(|rows| rows.shuffle(&self.pool));
        }
        Ok(())
    }

    /// Takes the particles of some patches out, to work on them side by side; patches without any are left out.
    pub fn take_patches(&mut self, rows: impl Iterator<Item = u32>) -> Vec<(u32, PatchParticles)> {
        let mut detached = self.take_all_patches(rows);
        detached.retain(|(_, patch)| count(patch) > 0);
        detached
    }

    /// The same of patches with or without any.
    pub fn take_all_patches(
        &mut self,
        rows: impl Iterator<Item = u32>,
    ) -> Vec<(u32, PatchParticles)> {
        rows.map(|row| (row, take(&mut self.patches[row as usize])))
            .collect()
    }

    /// Puts them back.
    pub fn restore_patches(&mut self, detached: Vec<(u32, PatchParticles)>) {
        for (row, patch) in detached {
            self.patches[row as usize] = patch;
        }
    }

    /// Where the places stand in a record, by axis.
    pub(super) fn place_in(&self, axis: usize) -> std::ops::Range<usize> {
        let number = self.pool.columns.number;
        8 + axis * number..8 + (axis + 1) * number
    }
}

/// Particles of a patch.
#[must_use]
pub fn count(patch: &PatchParticles) -> usize {
    patch[0].count() + patch[1].count()
}

/// All species, by number, and the number that the first one has among all items of the run.
#[derive(bevy_ecs::prelude::Resource, Default)]
pub struct SpeciesMap(pub Vec<Species>, pub(super) usize);

impl SpeciesMap {
    /// What kernels move particles, if any.
    pub(super) fn kernels(&self) -> Option<Arc<ParticleKernels>> {
        let mut lists = self
            .0
            .iter()
            .filter_map(|species| species.on_device.as_ref());
        lists.next().map(|lists| lists.kernels().clone())
    }

    /// Takes all particles to the host's pages.
    ///
    /// # Errors
    /// The device fails.
    pub fn fetch(&mut self) -> Result<(), DeviceError> {
        self.0.iter_mut().try_for_each(Species::fetch)
    }

    /// Those that fall.
    pub fn falling(&mut self) -> impl Iterator<Item = &mut Species> {
        self.moved_by(MovedBy::Fall)
    }

    /// Those that something moves.
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
    use super::super::columns::PAGE;
    use super::{ParticleSet, Precision, Species};

    #[test]
    fn the_memory_of_particles_is_foreseen() {
        for (precision, patches, most) in
            [(Precision::Double, 300, 700), (Precision::Single, 2000, 9)]
        {
            let mut species = Species::new("dark", precision, None, vec![]);
            species.resize_rows(patches).unwrap();
            let (mut count, mut pages) = (0, 0);
            for row in 0..patches {
                // numbers of all kinds, by a multiplication without common factors
                let particles = row * 7919 % (most + 1);
                let records = vec![0; particles * species.record_bytes()];
                species.put(row as u32, &records).unwrap();
                (count, pages) = (count + particles, pages + particles.div_ceil(PAGE));
            }
            let page = 8 * species.pool.columns.page_words() + 16;
            let taken = (pages * page + patches * 64) as f64;
            let foreseen = species.memory(count as u64, patches as u64) as f64;
            assert!(
                (0.6..1.4).contains(&(foreseen / taken)),
                "{foreseen} {taken}"
            );
        }
        assert_eq!(
            Species::new("dark", Precision::Double, None, vec![]).memory(0, 0),
            0
        );
    }
}
