//! Items: things that lie in patches, any number in each, such as particles. Where a [`Store`](super::Store) has as many values in
//! every patch, items come, go and move; the engine takes them to the patch that holds them, to other ranks, into snapshots and
//! back, whatever they are.

use super::{FaultBox, InitialEstimate, ParticleColumn, PatchPlace};
use crate::device::DeviceError;
use crate::mesh::{AuditError, Domain, Topology};
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;

/// What a plugin keeps in patches in any number. Every item lies in a leaf of the hierarchy, the patch without children that
/// contains it: where a patch is refined its items go to the children, where the children go they go to the parent. In which order the
/// items of a patch stand means nothing.
///
/// A plugin makes them on the root level, when the phase `Initialise` fills it; the engine takes them on to the children as these come. Items
/// that leave their patch later go by [`Comm::migrate`](crate::comm::Comm::migrate).
///
/// An item travels as a record of so many bytes, which says where in its patch it lies, not in which patch.
pub trait ParticleSet: Send + Sync {
    /// Name in messages and snapshots: letters, digits and `_`.
    fn name(&self) -> &str;
    /// Version of the records; count it up when their meaning changes.
    fn version(&self) -> u32;
    /// Bytes of a record, at least 1.
    fn record_bytes(&self) -> usize;
    /// The group of snapshots that holds them, and what one of them is called there: letters, digits and `_`.
    fn group(&self) -> [&str; 2] {
        ["items", "item"]
    }
    /// The arrays of snapshots that they are kept in: those that stand in the record hold each byte of it once.
    fn columns(&self) -> Vec<ParticleColumn> {
        vec![ParticleColumn::record(self.record_bytes())]
    }
    /// Keys of the deck that say what a record means beside its columns: where a snapshot has items of this kind, a continued run keeps these keys
    /// as they were, unless an override says otherwise.
    fn keys(&self) -> Vec<String> {
        Vec::new()
    }
    /// The key of the deck that decides whether there is a column, if there is one.
    fn key_of(&self, _column: &str) -> Option<String> {
        None
    }
    /// The numbers of a column that does not stand in the record, for an item in a patch; as many as the column has.
    fn derive(&self, _column: &str, _record: &[u8], _patch: &PatchPlace) -> [f64; 3] {
        [0.0; 3]
    }

    /// The identity that stands in a record: unique in the kind, for ever. Items without one are never entities ([`ParticleId`](super::ParticleId)).
    fn identity(&self, _record: &[u8]) -> Option<u64> {
        None
    }
    /// Whether each of them is an entity from the beginning of a run on, or those that somebody asks for; the same at any time.
    fn are_entities(&self) -> bool {
        false
    }
    /// The identities in the patch of a row, in any order.
    ///
    /// # Errors
    /// The device fails.
    fn identities(&self, row: u32) -> Result<Vec<u64>, DeviceError> {
        let records = self.copy(row)?;
        let records = records.chunks_exact(self.record_bytes());
        Ok(records.filter_map(|record| self.identity(record)).collect())
    }
    /// The row of the patch in which the item with an identity lies; none if this rank has no such item.
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
    /// The identities of those that have ended since this was asked last: left the domain, been swallowed.
    fn take_removed(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// How many a run begins with at most, on all ranks together, where that is known before they are made; the same at any time.
    fn expected_count(&self) -> u64 {
        0
    }
    /// Bytes of memory that so many items take in so many patches, about.
    fn memory(&self, count: u64, _patches: u64) -> u64 {
        count.saturating_mul(self.record_bytes() as u64)
    }

    /// Where some of those that a run begins with are, code length: those that there are of `most` of the expected ones, or of all if these
    /// are fewer, evenly chosen among them. `None` where that is not known before they are made.
    fn initial_positions(&self, _domain: &Domain, _most: u64) -> Option<Vec<[f64; 3]>> {
        None
    }

    /// How many cells a step of one of them is as much work as: ranks share patches out by it. 0 or more, the same at any time.
    fn weight(&self) -> f64 {
        0.0
    }

    /// How many lie in the patch of a row.
    fn count(&self, row: u32) -> usize;

    /// Makes room for `rows` rows; those that are new hold nothing.
    ///
    /// # Errors
    /// The memory does not suffice.
    fn resize_rows(&mut self, rows: usize) -> Result<(), DeviceError>;
    /// The records of a patch, in an order that does not depend on how they came there: that of their identities.
    ///
    /// # Errors
    /// The device fails.
    fn copy(&self, row: u32) -> Result<Vec<u8>, DeviceError>;
    /// Takes the items out of a patch; their records in any order.
    ///
    /// # Errors
    /// The device fails.
    fn take(&mut self, row: u32) -> Result<Vec<u8>, DeviceError>;
    /// Adds items to a patch.
    ///
    /// # Errors
    /// The memory does not suffice, or the device fails.
    fn put(&mut self, row: u32, records: &[u8]) -> Result<(), DeviceError>;
    /// The same as [`ParticleSet::take`] of many patches, in the order of `rows`: a kind with many items does it side by side.
    ///
    /// # Errors
    /// As there.
    fn take_all(&mut self, rows: &[u32]) -> Result<Vec<Vec<u8>>, DeviceError> {
        rows.iter().map(|&row| self.take(row)).collect()
    }
    /// The same as [`ParticleSet::put`] to many patches, each any number of times.
    ///
    /// # Errors
    /// As there.
    fn put_all(&mut self, records: Vec<(u32, Vec<u8>)>) -> Result<(), DeviceError> {
        let mut each = records.into_iter();
        each.try_for_each(|(row, records)| self.put(row, &records))
    }

    /// What takes them to other leaves without their records, where the hierarchy changes; none: the engine does it by records.
    fn remap_on_regrid(&mut self) -> Option<&mut dyn RemapOnRegrid> {
        None
    }

    /// Makes the record of an item in a patch that of the same item in the child that contains it; the child, as bits z y x.
    fn to_child(&self, record: &mut [u8]) -> usize;
    /// Makes the record of an item in a child, given as bits z y x, that of the same item in the parent.
    fn to_parent(&self, child: usize, record: &mut [u8]);
}

/// A patch of this rank with children, whose items go to them: its row, and the first of the eight consecutive rows of the children.
pub type RefinedPatch = (u32, u32);
/// The leaf of this rank that a patch which is gone was part of: its row, and which child the patch was, as bits z y x.
pub type CoveringLeaf = (u32, usize);

/// Takes items to other leaves of their rank where they are, on a device, when the hierarchy changes. What it leaves goes by records.
pub trait RemapOnRegrid {
    /// Takes the items out of patches that will be gone, and keeps them apart in this order.
    fn detach(&mut self, rows: &[u32]);
    /// Puts down those that were lifted, all of them, into the leaf above each patch; where there is none on this rank, gives their records. Those
    /// of patches that are refined go to their children.
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

/// The rows that hold any.
pub(super) fn rows<I: ParticleSet + ?Sized>(
    topology: &Topology,
    items: &I,
) -> impl Iterator<Item = u32> {
    let rows = 0..topology.capacity() as u32;
    rows.filter(|&row| items.count(row) > 0)
}

/// Records on their way to the leaf that contains them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationBatch {
    /// The level of a patch that is there, or was.
    pub level: usize,
    /// Its index on the level, in patches.
    pub index: [i32; 3],
    /// Records of items as they lie in that patch.
    pub records: Vec<u8>,
}

/// Several kinds of items in one resource, such as species that a deck names.
pub trait ParticleGroup: Resource<Mutability = Mutable> {
    /// Learns the number of its first kind among all of the run.
    fn registered(&mut self, _first: usize) {}
    /// How many kinds.
    fn kinds(&self) -> usize;
    /// A kind, by its number.
    fn kind(&self, n: usize) -> &dyn ParticleSet;
    /// The same, for changing.
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

/// Registered items: how to find them in the world.
#[derive(Clone)]
pub struct ParticleSetRef {
    /// Their name.
    pub name: String,
    /// Their place in snapshots: the group, `/`, the name.
    pub path: String,
    /// Their number in the resource.
    number: usize,
    of: fn(&World, usize) -> &dyn ParticleSet,
    scope: fn(&mut World, usize, ParticleSetWork),
}

/// Work on items while the world is at hand.
type ParticleSetWork<'a> = &'a mut dyn FnMut(&World, &mut dyn ParticleSet);

impl ParticleSetRef {
    /// The items in `world`.
    #[must_use]
    pub fn of<'a>(&self, world: &'a World) -> &'a dyn ParticleSet {
        (self.of)(world, self.number)
    }

    /// Calls `work` with the items and the rest of the world.
    pub fn scope(&self, world: &mut World, mut work: impl FnMut(&World, &mut dyn ParticleSet)) {
        (self.scope)(world, self.number, &mut work);
    }

    /// Makes room for the rows of the hierarchy; what goes wrong stands in [`FaultBox`].
    pub(crate) fn resize_rows(&self, world: &mut World) {
        self.scope(world, |world, items| {
            let followed = items.resize_rows(world.resource::<Topology>().capacity());
            world.resource::<FaultBox>().check(followed);
        });
    }
}

/// All registered items.
#[derive(Resource, Clone, Default)]
pub struct ParticleKinds(Vec<ParticleSetRef>);

impl ParticleKinds {
    /// Adds the kinds of a resource.
    pub(crate) fn add<G: ParticleGroup>(&mut self, group: &mut G) {
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

    /// All of them, in the order of registration.
    #[must_use]
    pub fn all(&self) -> Vec<ParticleSetRef> {
        self.0.clone()
    }

    /// Checks that all items lie in leaves of this rank.
    ///
    /// # Errors
    /// The first patch that is none and holds items.
    pub(crate) fn audit(&self, world: &World) -> Result<(), AuditError> {
        let topology = world.resource::<Topology>();
        let kinds = match world.contains_resource::<InitialEstimate>() {
            // nothing goes anywhere
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
                    "row {row} holds {} of the items `{}`: it is no leaf of this rank",
                    items.count(row),
                    kind.name
                )));
            }
        }
        Ok(())
    }
}
