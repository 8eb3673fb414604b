//! Finds patches of other ranks beside own patches, from positions alone.

use crate::mesh::Topology;
use crate::mesh::topology::octet::NeighbourLevel;
use crate::mesh::topology::octet::Octet;
use crate::mesh::topology::octet::side;
use crate::mesh::topology::offset;
use nestar_kernels::mesh::{SELF, face_direction};
use rayon::prelude::*;

/// Patches of an octet: its key, and the patches as a bit mask (z y x).
pub(super) type OctetPart = (u64, u8);

/// Sorts parts by key and merges parts of the same octet.
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

/// Returns root patches of other ranks among the 26 neighbours of `owned` patches.
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

/// Returns patches of other ranks among the 27 patches at and around `index` of `level`.
///
/// `row` is the row held at `index`, if any. Its neighbour list may predate the latest regrid, so each entry is
/// verified.
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

/// Returns patches of other ranks on `level` (1 or finer) among the 26 neighbours of own patches.
///
/// Needs the family links of `level` and the neighbour lists of the parents.
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

/// Returns the key of the octet of children of `row`, if it exists and another rank owns it.
///
/// Own octets are always held.
fn remote_children(topology: &Topology, row: u32) -> Option<u64> {
    let first = topology.first_child(row);
    let own = first.is_some_and(|first| topology.is_owned(first));
    (!own && !topology.is_leaf(row)).then(|| topology.key(row))
}

/// Returns the mask of the children of a patch that touch the patch from which it is `step` away.
fn children_facing(step: [i32; 3]) -> u8 {
    let touches = |c: i32| (0..3).all(|a| step[a] == 0 || (c >> a & 1) == i32::from(step[a] < 0));
    (0..8).filter(|&c| touches(c)).map(|c| 1 << c).sum()
}

/// Returns patches of other ranks on `level` among the parents of own finer octets and the neighbours of these parents.
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

/// Returns octets of other ranks on `level` at the faces of own leaf patches of the coarser level.
///
/// They hold no values, only flux registers.
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
