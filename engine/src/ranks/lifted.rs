//! Items whose patches go or are refined, while the hierarchy changes.

use super::items::{beneath, deliver};
use super::{Ranks, RanksError};
use crate::field::{FaultBox, InParts, ItemEntities, ItemKinds, Items, Parcel};
use crate::mesh::topology::octet::Octet;
use crate::mesh::topology::octet::side;
use crate::mesh::{Changes, Topology};
use bevy_ecs::prelude::*;

/// Items without a leaf of their own while the hierarchy changes.
#[derive(Default)]
pub(crate) struct Lifted {
    /// Those of patches that are no longer there, by kind in the order of registration.
    parcels: Vec<Vec<Parcel>>,
    /// The levels and indices of those patches: kinds that take items to other leaves themselves have lifted them in this order.
    gone: Vec<(usize, [i32; 3])>,
    /// Patches that have children now, each with its level: their items stay in them until they are delivered, a portion at a time.
    refined: Vec<(usize, u32)>,
}

/// Bytes of the records that leave refined patches at a time, about.
const PORTION: usize = 1 << 28;

impl Lifted {
    /// Takes the items out of `gone`, patches of the level `fine` that go or move: their rows, which nobody else uses yet, with their
    /// indices; those of the patches of the coarser level that are refined will follow. What goes wrong stands in [`FaultBox`].
    pub fn take(
        &mut self,
        world: &mut World,
        fine: usize,
        changes: &Changes,
        gone: impl FnOnce(&Topology) -> Vec<(u32, [i32; 3])>,
    ) {
        let kinds = world.resource::<ItemKinds>().all();
        if kinds.is_empty() || world.contains_resource::<InParts>() {
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
            let lifted = &mut self.parcels[n];
            kind.scope(world, |world, items| {
                if let Some(shifts) = items.shifts() {
                    shifts.lift(&rows);
                }
                match items.take_all(&rows) {
                    Ok(records) => lifted.extend(parcels(places.clone(), records)),
                    Err(error) => {
                        world.resource::<FaultBox>().check(Err(error));
                    }
                }
            });
        }
    }

    /// The items of own patches that have children: the initial state was made anew there.
    pub fn astray(world: &World) -> Self {
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
    pub fn settle(mut self, world: &mut World) -> Result<(), RanksError> {
        if world.contains_resource::<InParts>() {
            return Ok(());
        }
        for (n, kind) in world.resource::<ItemKinds>().all().into_iter().enumerate() {
            let mut lifted = self.parcels.get_mut(n).map(std::mem::take);
            let mut delivered = Ok(());
            kind.scope(world, |world, items| {
                let mut lifted = lifted.take().unwrap_or_default();
                delivered = shift(world, items, &self.gone, &self.refined)
                    .map(|left| lifted.extend(left))
                    .and_then(|()| settle(world, items, lifted, &self.refined));
            });
            delivered?;
        }
        Ok(())
    }
}

/// Lets items go to leaves of this rank without their records, where their kind does that: from patches that are `gone`, each by its level and index, and
/// from `refined` ones. What is left of the former.
fn shift(
    world: &World,
    items: &mut dyn Items,
    gone: &[(usize, [i32; 3])],
    refined: &[(usize, u32)],
) -> Result<Vec<Parcel>, RanksError> {
    let Some(shifts) = items.shifts() else {
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
    let records = shifts.land(topology, &above, &refined)?;
    Ok(parcels(gone.iter().copied(), records).collect())
}

/// Takes items to their leaves: those of `parcels`, and those of `refined` patches. All ranks call this.
fn settle(
    world: &World,
    items: &mut dyn Items,
    mut lifted: Vec<Parcel>,
    mut refined: &[(usize, u32)],
) -> Result<(), RanksError> {
    let topology = world.resource::<Topology>();
    let others = (world.resource::<Ranks>(), world.resource::<ItemEntities>());
    loop {
        let (now, rest) = refined.split_at(portion(items, refined));
        let rows: Vec<u32> = now.iter().map(|(_, row)| *row).collect();
        let places = now.iter().map(|&(level, row)| (level, topology.index(row)));
        lifted.extend(parcels(places, items.take_all(&rows)?));
        deliver(topology, others, items, std::mem::take(&mut lifted))?;
        refined = rest;
        if !others.0.any(!refined.is_empty())? {
            return Ok(());
        }
    }
}

/// How many of some patches have as many items as go at a time; one at least, if there is any.
fn portion(items: &dyn Items, patches: &[(usize, u32)]) -> usize {
    let mut bytes = 0;
    let full = |(_, row): &(usize, u32)| {
        let before = bytes;
        bytes += items.count(*row) * items.record_bytes();
        before > 0 && bytes > PORTION
    };
    patches.iter().position(full).unwrap_or(patches.len())
}

/// Records of patches as parcels, where there are any; each patch by its level and index.
fn parcels(
    places: impl Iterator<Item = (usize, [i32; 3])>,
    records: Vec<Vec<u8>>,
) -> impl Iterator<Item = Parcel> {
    let all = places.zip(records).map(|((level, index), records)| Parcel {
        level,
        index,
        records,
    });
    all.filter(|parcel| !parcel.records.is_empty())
}

/// The patches of the octets `before` of `level` that this rank has no longer, by row and index.
pub(crate) fn gone(topology: &Topology, level: usize, before: &[Octet]) -> Vec<(u32, [i32; 3])> {
    let patches = |octet: &Octet| {
        let now = topology.octet(level, octet.key).map_or(0, |now| now.owned);
        let (half, first) = (topology.octet_place(level, octet.key), octet.first);
        octet
            .rows(octet.owned & !now)
            .map(move |row| (row, beneath(half, (row - first) as usize)))
    };
    before.iter().flat_map(patches).collect()
}
