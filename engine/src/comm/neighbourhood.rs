//! Which patches of others a rank's own patches touch, by places alone.

use crate::mesh::Topology;
use crate::mesh::topology::octet::NeighbourLevel;
use crate::mesh::topology::octet::Octet;
use crate::mesh::topology::octet::side;
use crate::mesh::topology::offset;
use nestar_kernels::mesh::{SELF, face_direction};
use rayon::prelude::*;

/// Patches of an octet: its key, and the eight as bits z y x.
pub(super) type OctetPart = (u64, u8);

/// Sorts parts by key and joins those of one octet.
pub(super) fn merge_parts(mut parts: Vec<OctetPart>) -> Vec<OctetPart> {
    parts.sort_unstable();
    parts.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 |= next.1;
        }
        same
    });
    parts
}

/// Others' patches of the root grid that those of `owned` have among their 26 neighbours.
pub(super) fn root_neighbours(topology: &Topology, owned: &[OctetPart]) -> Vec<OctetPart> {
    let touched = |&(key, mask): &OctetPart| {
        let half = topology.octet_place(0, key);
        let own = (0..8).filter(move |c| mask >> c & 1 == 1);
        own.flat_map(move |c| {
            let index = std::array::from_fn(|a| 2 * half[a] + (c >> a & 1));
            neighbours_at(topology, 0, index, None)
        })
    };
    merge_parts(owned.par_iter().flat_map_iter(touched).collect())
}

/// Others' patches among the 27 at and around `index` of `level`; `row` is the one held there, if any. Its neighbours are
/// believed where they prove true: they may be of a time before the latest change.
fn neighbours_at(
    topology: &Topology,
    level: usize,
    index: [i32; 3],
    row: Option<u32>,
) -> impl Iterator<Item = OctetPart> {
    let own = move |d: usize, place: [i32; 3]| {
        let next = row.and_then(|row| u32::try_from(topology.neighbours(row)[d]).ok());
        let there =
            |&next: &u32| topology.level(next) == Some(level) && topology.index(next) == place;
        next.filter(there)
            .is_some_and(|next| topology.is_owned(next))
    };
    (0..27).filter_map(move |d| {
        let place = topology.place_beside(level, index, offset(d))?;
        if own(d, place) {
            return None;
        }
        let key = topology.key_at(level, place);
        let owner = topology.partition().owner(level, key);
        (owner != topology.rank()).then(|| (key >> 3, 1 << side(place)))
    })
}

/// Others' patches of `level`, 1 or finer, that the own ones have among their 26 neighbours. Needs the families of `level` and
/// the neighbours of the parents.
pub(super) fn level_neighbours(topology: &Topology, level: usize) -> Vec<OctetPart> {
    let touched = |octet: &Octet| {
        let parent = topology.parent(octet.first);
        let around = parent.map(|parent| *topology.neighbours(parent));
        let directions = (0..27).filter(|&d| d != SELF);
        directions.filter_map(move |d| {
            let next = u32::try_from(around?[d]).ok()?;
            remote_children(topology, next).map(|key| (key, children_facing(offset(d))))
        })
    };
    let near = topology.octets_near_others(level, NeighbourLevel::Same);
    merge_parts(near.flat_map_iter(touched).collect())
}

/// The key of the octet below the patch of `row`, if there is one and another rank owns it. What is own is always held.
fn remote_children(topology: &Topology, row: u32) -> Option<u64> {
    let first = topology.first_child(row);
    let own = first.is_some_and(|first| topology.is_owned(first));
    (!own && !topology.is_leaf(row)).then(|| topology.key(row))
}

/// The children of a patch that touch what it lies `step` away from.
fn children_facing(step: [i32; 3]) -> u8 {
    let touches = |c: i32| (0..3).all(|a| step[a] == 0 || (c >> a & 1) == i32::from(step[a] < 0));
    (0..8).filter(|&c| touches(c)).map(|c| 1 << c).sum()
}

/// Others' patches of `level` among the parents of the own octets of the finer level and what surrounds those.
pub(super) fn parents_with_neighbours(topology: &Topology, level: usize) -> Vec<OctetPart> {
    let touched = |octet: &Octet| {
        let parent = topology.octet_place(level + 1, octet.key);
        let held = topology.octet(level, octet.key >> 3);
        neighbours_at(
            topology,
            level,
            parent,
            held.map(|held| held.first + side(parent)),
        )
    };
    let near = topology.octets_near_others(level + 1, NeighbourLevel::Coarser);
    merge_parts(near.flat_map_iter(touched).collect())
}

/// Others' octets of `level` beside the faces of own leaf patches of the coarser level: no values, only registers.
pub(super) fn fine_octets_at_faces(topology: &Topology, level: usize) -> Vec<OctetPart> {
    let Some(coarser) = level.checked_sub(1) else {
        return Vec::new();
    };
    let touched = |row: u32| {
        let around = topology.neighbours(row);
        let leaf = topology.is_leaf(row);
        let faces = (0..6).filter(move |_| leaf);
        faces.filter_map(move |face| {
            let next = u32::try_from(around[face_direction(face)]).ok()?;
            remote_children(topology, next).map(|key| (key, 0))
        })
    };
    let near = topology.octets_near_others(coarser, NeighbourLevel::Finer);
    let rows = near.flat_map_iter(|octet| octet.rows(octet.owned));
    merge_parts(rows.flat_map_iter(touched).collect())
}
