//! Detaches particles of removed or refined patches during a regrid and reinserts them.

use super::migration::{child_index, migrate};
use super::{Ranks, RanksError};
use crate::data::{
    FaultBox, InitialEstimate, MigrationBatch, ParticleEntityIndex, ParticleKinds, ParticleSet,
};
use crate::mesh::topology::octet::Octet;
use crate::mesh::topology::octet::side;
use crate::mesh::{Changes, Topology};
use bevy_ecs::prelude::*;

/// Particles without a leaf patch during a regrid.
#[derive(Default)]
pub(crate) struct Displaced {
    /// Particles of removed patches, by kind in order of registration.
    parcels: Vec<Vec<MigrationBatch>>,
    /// Levels and indices of the removed patches, in the order in which they were passed to kinds that move particles
    /// themselves.
    gone: Vec<(usize, [i32; 3])>,
    /// Refined patches, each with its level. Their particles stay in them and are delivered in batches.
    refined: Vec<(usize, u32)>,
}

/// Approximate size of a batch of records that leaves refined patches, bytes.
const BATCH_BYTES: usize = 1 << 28;

impl Displaced {
    /// Detaches the particles of removed or moved patches of level `fine`.
    ///
    /// `gone` returns the rows, which nobody uses yet, and the indices of these patches. Particles of coarse patches
    /// that `changes` refines are moved later. Errors are stored in [`FaultBox`].
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

    /// Collects the particles in own patches with children, after initial conditions were created again.
    pub fn in_refined_patches(world: &World) -> Self {
        let topology = world.resource::<Topology>();
        let of_level = |level| topology.rows(level).iter().map(move |&row| (level, row));
        let patches = (0..=topology.finest()).flat_map(of_level);
        Self {
            refined: patches.filter(|(_, row)| !topology.is_leaf(*row)).collect(),
            ..Self::default()
        }
    }

    /// Delivers the particles to their leaves. Collective; an error on one rank ends all ranks.
    ///
    /// # Errors
    /// As [`migrate`].
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

/// Lets kinds that support it move particles to leaves of this rank without records.
///
/// Particles come from removed patches, given by level and index, and from `refined` patches. Returns the remaining
/// particles of removed patches.
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

/// Delivers the particles of `displaced` and of `refined` patches to their leaves, in batches. Collective.
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

/// Returns the number of patches in the next batch, at least one if there are any.
fn batch_length(items: &dyn ParticleSet, patches: &[(usize, u32)]) -> usize {
    let mut bytes = 0;
    let full = |(_, row): &(usize, u32)| {
        let before = bytes;
        bytes += items.count(*row) * items.record_bytes();
        before > 0 && bytes > BATCH_BYTES
    };
    patches.iter().position(full).unwrap_or(patches.len())
}

/// Converts records of patches, each given by level and index, to batches; empty ones are dropped.
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

/// Returns the row and index of the patches of `before` that this rank no longer owns.
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
