//! Interface to particles in a general sense: any number of records per patch.
//!
//! A [`Store`](super::Store) has a fixed number of values per patch; particles are created, removed and moved. The
//! engine migrates them between patches and ranks, and writes and reads them in snapshots.

use super::failure::FaultBox;
use super::field_spec::Component;
use super::level::InitialEstimate;
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use nestar_engine_device::DeviceError;
use nestar_engine_mesh::{AuditError, Domain, Topology, parallel};
use nestar_snapshot::DataType;

/// A set of particles that a plugin keeps in patches, any number in each.
///
/// Every particle belongs to the leaf patch that contains it. When a patch is refined or coarsened, its particles move
/// to the children or to the parent. Results must not depend on the order of particles within a patch.
///
/// A plugin creates particles on the root level in the phase `Initialise`; the engine moves them to finer levels.
/// Later, particles that leave their patch are sent by `Comm::migrate`.
///
/// A particle is transferred as a record of fixed size with its position relative to its patch.
pub trait ParticleSet: Send + Sync {
    /// Returns the name in messages and snapshots: letters, digits and `_`.
    fn name(&self) -> &str;
    /// Returns the version of the record format; increase it when the meaning of a record changes.
    fn version(&self) -> u32;
    /// Returns the size of a record, at least 1 byte.
    fn record_bytes(&self) -> usize;
    /// Returns the snapshot group of the set and the name of a single member: letters, digits and `_`.
    fn group(&self) -> [&str; 2] {
        ["items", "item"]
    }
    /// Returns the snapshot arrays. Those stored in the record cover each of its bytes once.
    fn columns(&self) -> Vec<ParticleColumn> {
        vec![ParticleColumn::record(self.record_bytes())]
    }
    /// Returns deck keys that affect the meaning of a record. A continued run keeps their values unless overridden.
    fn keys(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns the deck key that decides whether a column exists, if there is one.
    fn key_of(&self, _column: &str) -> Option<String> {
        None
    }
    /// Computes the values of a derived column for a particle in a patch.
    fn derive(&self, _column: &str, _record: &[u8], _patch: &PatchPlace) -> [f64; 3] {
        [0.0; 3]
    }

    /// Returns the identity in a record, unique in the kind for all times. Particles without one are never entities
    /// ([`ParticleId`](super::ParticleId)).
    fn identity(&self, _record: &[u8]) -> Option<u64> {
        None
    }
    /// Returns `true` if all particles are entities; otherwise those that were asked for are. Constant during a run.
    fn are_entities(&self) -> bool {
        false
    }
    /// Returns the identities of the particles in a patch, in any order.
    ///
    /// # Errors
    /// The device fails.
    fn identities(&self, row: u32) -> Result<Vec<u64>, DeviceError> {
        let records = self.copy(row)?;
        let records = records.chunks_exact(self.record_bytes());
        Ok(records.filter_map(|record| self.identity(record)).collect())
    }
    /// Returns the row of the patch that contains particle `id`, or `None` if it is not on this rank.
    ///
    /// # Errors
    /// The device fails.
    fn row_of(&self, topology: &Topology, id: u64) -> Result<Option<u32>, DeviceError> {
        for row in rows(topology, self) {
            if self.identities(row)?.contains(&id) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
    /// Takes the identities of particles removed since the last call, for example by leaving the domain.
    fn take_removed(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Returns the largest initial number of particles on all ranks, if it is known in advance; otherwise 0. Constant
    /// during a run.
    fn expected_count(&self) -> u64 {
        0
    }
    /// Estimates the memory of `count` particles in `_patches` patches, bytes.
    fn memory(&self, count: u64, _patches: u64) -> u64 {
        count.saturating_mul(self.record_bytes() as u64)
    }

    /// Returns initial positions of a uniform sample of at most `_most` particles, code length. `None` if they are not
    /// known in advance.
    fn initial_positions(&self, _domain: &Domain, _most: u64) -> Option<Vec<[f64; 3]>> {
        None
    }

    /// Returns the work of a particle step in units of a cell step, used for load balancing. At least 0 and constant
    /// during a run.
    fn weight(&self) -> f64 {
        0.0
    }

    /// Returns the number of particles in a patch.
    fn count(&self, row: u32) -> usize;

    /// Resizes the set to `rows` rows; new rows are empty.
    ///
    /// # Errors
    /// The memory does not suffice.
    fn resize_rows(&mut self, rows: usize) -> Result<(), DeviceError>;
    /// Returns the records of a patch in the order of their identities, which does not depend on history.
    ///
    /// # Errors
    /// The device fails.
    fn copy(&self, row: u32) -> Result<Vec<u8>, DeviceError>;
    /// Calls [`ParticleSet::copy`] for many patches, in the order of `rows`, with few requests to a device.
    ///
    /// # Errors
    /// As [`ParticleSet::copy`].
    fn copy_all(&self, rows: &[u32]) -> Result<Vec<Vec<u8>>, DeviceError> {
        let copies = parallel::map(rows, |&row| self.copy(row));
        copies.into_iter().collect()
    }
    /// Removes all particles from a patch and returns their records in any order.
    ///
    /// # Errors
    /// The device fails.
    fn take(&mut self, row: u32) -> Result<Vec<u8>, DeviceError>;
    /// Inserts particles into a patch.
    ///
    /// # Errors
    /// The memory does not suffice, or the device fails.
    fn put(&mut self, row: u32, records: &[u8]) -> Result<(), DeviceError>;
    /// Calls [`ParticleSet::take`] for many patches, in the order of `rows`; large sets do it in parallel.
    ///
    /// # Errors
    /// As [`ParticleSet::take`].
    fn take_all(&mut self, rows: &[u32]) -> Result<Vec<Vec<u8>>, DeviceError> {
        rows.iter().map(|&row| self.take(row)).collect()
    }
    /// Calls [`ParticleSet::put`] for many patches; a patch may occur several times.
    ///
    /// # Errors
    /// As [`ParticleSet::put`].
    fn put_all(&mut self, records: Vec<(u32, Vec<u8>)>) -> Result<(), DeviceError> {
        let mut each = records.into_iter();
        each.try_for_each(|(row, records)| self.put(row, &records))
    }

    /// Returns the in-place remapping to other leaves after a regrid, if the set has one; otherwise the engine moves
    /// records.
    fn remap_on_regrid(&mut self) -> Option<&mut dyn RemapOnRegrid> {
        None
    }

    /// Converts a record of a patch to one of the child that contains the particle. Returns the child as bits z y x.
    fn to_child(&self, record: &mut [u8]) -> usize;
    /// Converts a record of `child`, given as bits z y x, to one of the parent.
    fn to_parent(&self, child: usize, record: &mut [u8]);
}

/// A patch with children on this rank: its row, and the first of the eight consecutive rows of its children.
pub type RefinedPatch = (u32, u32);
/// The leaf on this rank that covers a removed patch: its row, and the octant of the patch (bits z y x).
pub type CoveringLeaf = (u32, usize);

/// Moves particles in place to other leaves of the rank when the hierarchy changes, for sets on a device. The rest
/// migrates as records.
pub trait RemapOnRegrid {
    /// Detaches the particles of patches about to be removed, in the order of `rows`.
    fn detach(&mut self, rows: &[u32]);
    /// Reinserts all detached particles into the leaf that covers each patch. Without such a leaf on this rank, returns
    /// their records.
    /// Particles of refined patches move to the children.
    ///
    /// # Errors
    /// The memory does not suffice, or the device fails.
    fn reinsert(
        &mut self,
        topology: &Topology,
        lifted: &[Option<CoveringLeaf>],
        refined: &[RefinedPatch],
    ) -> Result<Vec<Vec<u8>>, DeviceError>;
}

/// Returns the rows that contain particles.
pub(super) fn rows<I: ParticleSet + ?Sized>(
    topology: &Topology,
    items: &I,
) -> impl Iterator<Item = u32> {
    let rows = 0..topology.capacity() as u32;
    rows.filter(|&row| items.count(row) > 0)
}

/// Particle records for delivery to the leaf that contains them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationBatch {
    /// Level of an existing or removed patch.
    pub level: usize,
    /// Index of the patch on its level, in patches.
    pub index: [i32; 3],
    /// Records relative to that patch.
    pub records: Vec<u8>,
}

/// Several kinds of particles in one resource, such as the species of a deck.
pub trait ParticleGroup: Resource<Mutability = Mutable> {
    /// Receives the number of its first kind among all kinds of the run.
    fn registered(&mut self, _first: usize) {}
    /// Returns the number of kinds.
    fn kinds(&self) -> usize;
    /// Returns kind number `n`.
    fn kind(&self, n: usize) -> &dyn ParticleSet;
    /// Returns kind number `n` for writing.
    fn kind_mut(&mut self, n: usize) -> &mut dyn ParticleSet;
}

impl<I: ParticleSet + Resource<Mutability = Mutable>> ParticleGroup for I {
    fn kinds(&self) -> usize {
        1
    }

    fn kind(&self, _: usize) -> &dyn ParticleSet {
        self
    }

    fn kind_mut(&mut self, _: usize) -> &mut dyn ParticleSet {
        self
    }
}

/// A registered particle set, for access in the world.
#[derive(Clone)]
pub struct ParticleSetRef {
    /// Name of the set.
    pub name: String,
    /// Path in snapshots: group, `/`, name.
    pub path: String,
    /// Number of the kind in its resource.
    number: usize,
    of: fn(&World, usize) -> &dyn ParticleSet,
    scope: fn(&mut World, usize, ParticleSetWork),
}

/// A function of a particle set and the rest of the world.
type ParticleSetWork<'a> = &'a mut dyn FnMut(&World, &mut dyn ParticleSet);

impl ParticleSetRef {
    /// Returns the particle set in `world`.
    #[must_use]
    pub fn of<'a>(&self, world: &'a World) -> &'a dyn ParticleSet {
        (self.of)(world, self.number)
    }

    /// Calls `work` with the particle set and the rest of the world.
    pub fn scope(&self, world: &mut World, mut work: impl FnMut(&World, &mut dyn ParticleSet)) {
        (self.scope)(world, self.number, &mut work);
    }

    /// Resizes the set to the rows of the hierarchy; errors are reported in [`FaultBox`].
    pub(crate) fn resize_rows(&self, world: &mut World) {
        self.scope(world, |world, items| {
            let followed = items.resize_rows(world.resource::<Topology>().capacity());
            world.resource::<FaultBox>().check(followed);
        });
    }
}

/// All registered particle sets.
#[derive(Resource, Clone, Default)]
pub struct ParticleKinds(Vec<ParticleSetRef>);

impl ParticleKinds {
    /// Adds the kinds of a resource.
    pub fn add<G: ParticleGroup>(&mut self, group: &mut G) {
        group.registered(self.0.len());
        self.0
            .extend((0..group.kinds()).map(|number| ParticleSetRef {
                name: group.kind(number).name().into(),
                path: format!(
                    "{}/{}",
                    group.kind(number).group()[0],
                    group.kind(number).name()
                ),
                number,
                of: |world, n| world.resource::<G>().kind(n),
                scope: |world, n, work| {
                    world.resource_scope(|world, mut group: Mut<G>| work(world, group.kind_mut(n)));
                },
            }));
    }

    /// Returns all sets in the order of registration.
    #[must_use]
    pub fn all(&self) -> Vec<ParticleSetRef> {
        self.0.clone()
    }

    /// Checks that all particles are in leaves of this rank.
    ///
    /// # Errors
    /// The first other patch that contains particles.
    pub fn audit(&self, world: &World) -> Result<(), AuditError> {
        let topology = world.resource::<Topology>();
        let kinds = match world.contains_resource::<InitialEstimate>() {
            // no particles migrate
            true => &[][..],
            false => &self.0,
        };
        let is_home =
            |row| topology.level(row).is_some() && topology.is_owned(row) && topology.is_leaf(row);
        for kind in kinds {
            let items = kind.of(world);
            let mut rows = 0..topology.capacity() as u32;
            if let Some(row) = rows.find(|&row| items.count(row) > 0 && !is_home(row)) {
                return Err(AuditError(format!(
                    "row {row} contains {} particles of `{}` but is not a leaf of this rank",
                    items.count(row),
                    kind.name
                )));
            }
        }
        Ok(())
    }
}

/// A particle array of snapshots. Its values are either bytes of the record, which a restart reads, or derived from it
/// for analysis.
#[derive(Clone, Debug, PartialEq)]
pub struct ParticleColumn {
    /// Name, unit and description.
    pub what: Component,
    /// Type of the values. In the record they are little-endian, as in memory.
    pub data_type: DataType,
    /// Name and length of the second dimension; `None` for one value per particle.
    pub along: Option<(&'static str, usize)>,
    /// Offset of the values in the record, bytes; `None` if [`ParticleSet::derive`](super::ParticleSet::derive)
    /// computes them.
    pub at: Option<usize>,
}

impl ParticleColumn {
    /// Describes a value at byte `at` of the record.
    #[must_use]
    pub fn stored(what: Component, data_type: DataType, at: usize) -> Self {
        Self {
            what,
            data_type,
            along: None,
            at: Some(at),
        }
    }

    /// Describes an f64 that is derived from the record.
    #[must_use]
    pub fn derived(what: Component) -> Self {
        Self {
            at: None,
            ..Self::stored(what, DataType::F64, 0)
        }
    }

    /// Returns the column with three values per particle, along x, y and z.
    #[must_use]
    pub fn vector(self) -> Self {
        Self {
            along: Some(("axis", 3)),
            ..self
        }
    }

    /// Describes whole records of `length` bytes as one array.
    #[must_use]
    pub fn record(length: usize) -> Self {
        let what = Component {
            long_name: "record of an item, as its plugin encodes it".into(),
            ..Component::scalar("record")
        };
        Self {
            along: Some(("byte", length)),
            ..Self::stored(what, DataType::U8, 0)
        }
    }

    /// Returns the number of values per particle.
    #[must_use]
    pub fn values(&self) -> usize {
        self.along.map_or(1, |(_, length)| length)
    }

    /// Returns the number of bytes per particle.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.values() * self.data_type.size()
    }
}

/// Checks that the columns cover every byte of a record of `length` bytes exactly once.
pub fn check_columns(columns: &[ParticleColumn], length: usize) -> Result<(), String> {
    for (n, column) in columns.iter().enumerate() {
        let name = &column.what.name;
        if columns[..n].iter().any(|other| other.what.name == *name) {
            return Err(format!("two columns have the name `{name}`"));
        }
        let others = columns[..n].iter().filter_map(|other| other.along);
        if let Some((along, length)) = column.along
            && others
                .into_iter()
                .any(|(other, n)| other == along && n != length)
        {
            return Err(format!(
                "the dimension `{along}` has another length in column `{name}` than in earlier columns"
            ));
        }
        let fits = column.data_type == DataType::F64 && column.values() <= 3;
        if column.at.is_none() && !fits {
            return Err(format!(
                "column `{name}`: derived columns have up to three f64 values"
            ));
        }
    }
    let mut kept: Vec<_> = columns.iter().filter_map(|c| Some((c.at?, c))).collect();
    kept.sort_unstable_by_key(|(at, _)| *at);
    let mut end = 0;
    for (at, column) in kept {
        if at != end {
            let name = &column.what.name;
            return Err(format!(
                "column `{name}` begins at byte {at} of the record, but the columns before it end at {end}"
            ));
        }
        end += column.bytes();
    }
    match end == length {
        true => Ok(()),
        false => Err(format!(
            "columns hold {end} bytes of a record, which has {length}"
        )),
    }
}

/// Position of a patch in the hierarchy.
#[derive(Clone, Copy, Debug)]
pub struct PatchPlace<'a> {
    /// Domain of the run.
    pub domain: &'a Domain,
    /// Level of the patch.
    pub level: usize,
    /// Index of the patch on its level, in patches.
    pub index: [i32; 3],
}

impl PatchPlace<'_> {
    /// Returns the position of a point of the patch, code length. `shares` are its coordinates in units of the patch
    /// width.
    #[must_use]
    pub fn at(&self, shares: [f64; 3]) -> [f64; 3] {
        let width = self.domain.cell_width(self.level);
        [0, 1, 2].map(|axis| {
            let patches = f64::from(self.index[axis]) + shares[axis];
            self.domain.left_edge[axis] + patches * (nestar_engine_mesh::PATCH as f64 * width[axis])
        })
    }
}

#[cfg(test)]
mod columns_tests {
    use super::{ParticleColumn, check_columns};
    use crate::Component;
    use nestar_snapshot::DataType;

    #[test]
    fn columns_hold_records_once() {
        let id = || ParticleColumn::stored(Component::scalar("id"), DataType::U64, 0);
        let speed =
            |at| ParticleColumn::stored(Component::scalar("speed"), DataType::F32, at).vector();
        let place = || ParticleColumn::derived(Component::scalar("place")).vector();
        assert_eq!(check_columns(&[speed(8), place(), id()], 20), Ok(()));
        assert_eq!(check_columns(&[ParticleColumn::record(7)], 7), Ok(()));
        let why = |columns: &[ParticleColumn]| check_columns(columns, 20).expect_err("refused");
        assert!(why(&[id(), speed(4)]).contains("begins at byte 4"));
        assert!(why(&[id(), speed(9)]).contains("end at 8"));
        assert!(why(&[id()]).contains("8 bytes of a record, which has 20"));
        assert!(why(&[id(), speed(8), id()]).contains("the name `id`"));
        let wide = |along| ParticleColumn {
            along: Some((along, 4)),
            ..place()
        };
        assert!(why(&[id(), speed(8), wide("axis")]).contains("another length"));
        assert!(why(&[id(), speed(8), wide("corner")]).contains("up to three"));
    }
}
