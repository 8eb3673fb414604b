//! Items whose patches go or are refined, while the hierarchy changes.

use super::migration::{child_index, migrate};
use super::{Ranks, RanksError};
use crate::data::{
    FaultBox, InitialEstimate, MigrationBatch, ParticleEntityIndex, ParticleKinds, ParticleSet,
};
use crate::mesh::topology::octet::Octet;
use crate::mesh::topology::octet::side;
use crate::mesh::{Changes, Topology};
use bevy_ecs::prelude::*;

/// Items without a leaf of their own while the hierarchy changes.
#[derive(Default)]
pub(crate) struct Displaced {
    /// Those of patches that are no longer there, by kind in the order of registration.
    parcels: Vec<Vec<MigrationBatch>>,
    /// The levels and indices of those patches: kinds that take items to other leaves themselves have lifted them in this order.
    gone: Vec<(usize, [i32; 3])>,
    /// Patches that have children now, each with its level: their items stay in them until they are delivered, a portion at a time.
    refined: Vec<(usize, u32)>,
}

/// Bytes of the records that leave refined patches at a time, about.
const BATCH_BYTES: usize = 1 << 28;

impl Displaced {
    /// Takes the items out of `gone`, patches of the level `fine` that go or move: their rows, which nobody else uses yet, with their
    /// indices; those of the patches of the coarser level that are refined will follow. What goes wrong stands in [`FaultBox`].
    pub fn detach(
        &mut self,
        world: &mut World,
        fine: usize,
        changes: &Changes,
        gone: impl FnOnce(&Topology) -> Vec<(u32, [i32; 3])>,
    ) {
        let kinds = world.resource::<ParticleKinds>().all();
        if kinds.is_empty() || world.contains_resource::<InitialEstimate>() {
            return;
        }
        let refined = changes.refine.iter().map(|&row| (fine - 1, row));
        self.refined.extend(refined);
        let gone = gone(world.resource::<Topology>());
        let rows: Vec<u32> = gone.iter().map(|(row, _)| *row).collect();
        let places = gone.iter().map(|(_, index)| (fine, *index));
        self.gone.extend(places.clone());
        for (n, kind) in kinds.into_iter().enumerate() {
            self.parcels
                .resize_with(self.parcels.len().max(n + 1), Vec::new);
            let displaced = &mut self.parcels[n];
            kind.scope(world, |world, items| {
                if let Some(shifts) = items.remap_on_regrid() {
                    shifts.detach(&rows);
                }
                match items.take_all(&rows) {
                    Ok(records) => displaced.extend(parcels(places.clone(), records)),
                    Err(error) => {
                        world.resource::<FaultBox>().check(Err(error));
                    }
                }
            });
        }
    }

    /// The items of own patches that have children: the initial state was made anew there.
    pub fn in_refined_patches(world: &World) -> Self {
        let topology = world.resource::<Topology>();
        let of_level = |level| topology.rows(level).iter().map(move |&row| (level, row));
        let patches = (0..=topology.finest()).flat_map(of_level);
        Self {
            refined: patches.filter(|(_, row)| !topology.is_leaf(*row)).collect(),
            ..Self::default()
        }
    }

    /// Takes the items to their leaves. All ranks call this, and end where one fails.
    ///
    /// # Errors
    /// As [`deliver`].
    pub fn reinsert(mut self, world: &mut World) -> Result<(), RanksError> {
        if world.contains_resource::<InitialEstimate>() {
            return Ok(());
        }
        for (n, kind) in world
            .resource::<ParticleKinds>()
            .all()
            .into_iter()
            .enumerate()
        {
            let mut displaced = self.parcels.get_mut(n).map(std::mem::take);
            let mut delivered = Ok(());
            kind.scope(world, |world, items| {
                let mut displaced = displaced.take().unwrap_or_default();
                delivered = remap(world, items, &self.gone, &self.refined)
                    .map(|left| displaced.extend(left))
                    .and_then(|()| migrate_in_batches(world, items, displaced, &self.refined));
            });
            delivered?;
        }
        Ok(())
    }
}

/// Lets items go to leaves of this rank without their records, where their kind does that: from patches that are `gone`, each by its level and index, and
/// from `refined` ones. What is left of the former.
fn remap(
    world: &World,
    items: &mut dyn ParticleSet,
    gone: &[(usize, [i32; 3])],
    refined: &[(usize, u32)],
) -> Result<Vec<MigrationBatch>, RanksError> {
    let Some(shifts) = items.remap_on_regrid() else {
        return Ok(Vec::new());
    };
    let topology = world.resource::<Topology>();
    let is_own_leaf = |row: u32| topology.is_owned(row) && topology.is_leaf(row);
    let above = |&(level, index): &(usize, [i32; 3])| {
        let row = topology.find(level.checked_sub(1)?, index.map(|i| i >> 1))?;
        is_own_leaf(row).then_some((row, side(index) as usize))
    };
    let children = |&(_, row): &(usize, u32)| {
        let first = topology.first_child(row)?;
        (first..first + 8).all(is_own_leaf).then_some((row, first))
    };
    let above: Vec<_> = gone.iter().map(above).collect();
    let refined: Vec<_> = refined.iter().filter_map(children).collect();
    let records = shifts.reinsert(topology, &above, &refined)?;
    Ok(parcels(gone.iter().copied(), records).collect())
}

/// Takes items to their leaves: those of `parcels`, and those of `refined` patches. All ranks call this.
fn migrate_in_batches(
    world: &World,
    items: &mut dyn ParticleSet,
    mut displaced: Vec<MigrationBatch>,
    mut refined: &[(usize, u32)],
) -> Result<(), RanksError> {
    let topology = world.resource::<Topology>();
    let others = (
        world.resource::<Ranks>(),
        world.resource::<ParticleEntityIndex>(),
    );
    loop {
        let (now, rest) = refined.split_at(batch_length(items, refined));
        let rows: Vec<u32> = now.iter().map(|(_, row)| *row).collect();
        let places = now.iter().map(|&(level, row)| (level, topology.index(row)));
        displaced.extend(parcels(places, items.take_all(&rows)?));
        migrate(topology, others, items, std::mem::take(&mut displaced))?;
        refined = rest;
        if !others.0.any(!refined.is_empty())? {
            return Ok(());
        }
    }
}

/// How many of some patches have as many items as go at a time; one at least, if there is any.
fn batch_length(items: &dyn ParticleSet, patches: &[(usize, u32)]) -> usize {
    let mut bytes = 0;
    let full = |(_, row): &(usize, u32)| {
        let before = bytes;
        bytes += items.count(*row) * items.record_bytes();
        before > 0 && bytes > BATCH_BYTES
    };
    patches.iter().position(full).unwrap_or(patches.len())
}

/// Records of patches as parcels, where there are any; each patch by its level and index.
fn parcels(
    places: impl Iterator<Item = (usize, [i32; 3])>,
    records: Vec<Vec<u8>>,
) -> impl Iterator<Item = MigrationBatch> {
    let all = places
        .zip(records)
        .map(|((level, index), records)| MigrationBatch {
            level,
            index,
            records,
        });
    all.filter(|parcel| !parcel.records.is_empty())
}

/// The patches of the octets `before` of `level` that this rank has no longer, by row and index.
pub(crate) fn removed_patches(
    topology: &Topology,
    level: usize,
    before: &[Octet],
) -> Vec<(u32, [i32; 3])> {
    let patches = |octet: &Octet| {
        let now = topology.octet(level, octet.key).map_or(0, |now| now.owned);
        let (half, first) = (topology.octet_place(level, octet.key), octet.first);
        octet
            .rows(octet.owned & !now)
            .map(move |row| (row, child_index(half, (row - first) as usize)))
    };
    before.iter().flat_map(patches).collect()
}
