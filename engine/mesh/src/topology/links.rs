//! Links the patches stored on a rank: parents, children, neighbours, and coarse-fine faces and edges between ranks.

use super::shared_hierarchy::{LEAF, NeighbourLevel, Octet, side};
use super::{MISSING, Topology, offset};
use crate::nesting::coarse_neighbour;
use nestar_kernels::mesh::{COARSER, OUTSIDE, SELF, direction, face_direction};
use rayon::prelude::*;

impl Topology {
    /// Links the patches of `level` with their parents, as far as these are stored here.
    pub fn link_families(&mut self, level: usize) {
        if level > self.max_level {
            return;
        }
        let levels = std::mem::take(&mut self.sharing.levels);
        if level > 0 {
            for octet in &levels[level - 1].octets {
                for row in octet.rows(u8::MAX) {
                    let child = &mut self.first_child[row as usize];
                    *child = (*child).min(if *child == LEAF { LEAF } else { MISSING });
                }
            }
        }
        let below = level.checked_sub(1).map(|below| &levels[below]);
        let parents = below.map_or(&[][..], |below| &below.octets);
        // both lists ascend
        let mut n = 0;
        for octet in &levels[level].octets {
            let key = octet.key >> 3;
            n += parents[n..].iter().take_while(|p| p.key < key).count();
            let parent = parents.get(n).filter(|parents| parents.key == key);
            let parent = parent.map(|parents| {
                let place = self.index[octet.first as usize].map(|i| i >> 1);
                parents.first + side(place)
            });
            // children about to be removed are no longer linked
            if let Some(parent) = parent.filter(|&row| !self.is_leaf(row)) {
                self.first_child[parent as usize] = octet.first as i32;
            }
            let code = if level == 0 { -1 } else { MISSING };
            let parent = parent.map_or(code, |row| row as i32);
            self.parent[octet.first as usize..][..8].fill(parent);
        }
        self.sharing.levels = levels;
    }

    /// Fills the neighbour tables of the patches of `level` on this rank; those of their parents must be complete.
    pub fn link_owned(&mut self, level: usize) {
        let table = NeighbourTable(self.neighbours.as_mut_ptr());
        self.levels[level]
            .par_iter()
            .with_min_len(256)
            .for_each(|&row| {
                let around = if level == 0 {
                    self.neighbours_from_places(0, row)
                } else {
                    // SAFETY: the row lies inside the table; entries of the coarser level are only read.
                    let around = unsafe { table.get(self.parent[row as usize] as u32) };
                    self.neighbours_from_parent(row, &around)
                };
                // SAFETY: the row lies inside the table; the rows of a level are distinct.
                unsafe { table.set(row, around) };
            });
    }

    /// Fills the neighbour tables of halo patches of `level` that are parents of patches of this rank.
    pub fn link_copies(&mut self, level: usize) {
        if self.copies(level).is_empty() {
            return;
        }
        let copied_parent = |octet: &Octet| {
            let parent = u32::try_from(self.parent[octet.first as usize]).ok();
            parent.filter(|&parent| octet.owned != 0 && !self.is_owned(parent))
        };
        let octets = self.octets(level + 1).par_iter().with_min_len(64);
        let parents = octets.filter_map(copied_parent);
        let linked = parents.map(|row| (row, self.neighbours_from_places(level, row)));
        for (row, around) in linked.collect::<Vec<_>>() {
            self.neighbours[row as usize] = around;
        }
    }

    /// Finds the stored neighbours of a row by their indices.
    fn neighbours_from_places(&self, level: usize, row: u32) -> [i32; 27] {
        let index = self.index(row);
        std::array::from_fn(|d| {
            if d == SELF {
                return row as i32;
            }
            let Some(place) = self.place_beside(level, index, offset(d)) else {
                return OUTSIDE;
            };
            if let Some(row) = self.find(level, place) {
                return row as i32;
            }
            let parent = level
                .checked_sub(1)
                .and_then(|below| self.find(below, place.map(|i| i >> 1)));
            match parent {
                Some(parent) if self.is_leaf(parent) => COARSER,
                _ => MISSING,
            }
        })
    }

    /// Derives the neighbours of a row from those of its parent.
    pub(super) fn neighbours_from_parent(&self, row: u32, around: &[i32; 27]) -> [i32; 27] {
        let i = self.index(row);
        let relations =
            &NEIGHBOUR_RELATIONS[(i[0] & 1 | (i[1] & 1) << 1 | (i[2] & 1) << 2) as usize];
        std::array::from_fn(|d| {
            if d == SELF {
                return row as i32;
            }
            let (beside, child) = relations[d];
            let parent = around[usize::from(beside)];
            if parent < 0 {
                return parent;
            }
            match self.first_child[parent as usize] {
                LEAF => COARSER,
                MISSING => MISSING,
                first => first + i32::from(child),
            }
        })
    }
}

/// The neighbour tables, for tasks that write distinct rows.
struct NeighbourTable(*mut [i32; 27]);

// SAFETY: access follows the contracts of `get` and `set`.
unsafe impl Sync for NeighbourTable {}

impl NeighbourTable {
    /// Returns a copy of a row.
    ///
    /// # Safety
    /// The row must lie inside the table, and nothing may write it meanwhile.
    unsafe fn get(&self, row: u32) -> [i32; 27] {
        // SAFETY: the caller's contract
        unsafe { *self.0.add(row as usize) }
    }

    /// Writes a row.
    ///
    /// # Safety
    /// The row must lie inside the table, and nothing else may access it meanwhile.
    unsafe fn set(&self, row: u32, neighbours: [i32; 27]) {
        // SAFETY: the caller's contract
        unsafe { *self.0.add(row as usize) = neighbours };
    }
}

/// Neighbour relations by the octant of a child (bits z y x) and the direction of a neighbour.
/// Each entry is the direction from the child's parent to the neighbour's parent, and the octant of the neighbour.
const NEIGHBOUR_RELATIONS: [[(u8, u8); 27]; 8] = {
    let mut relations = [[(0, 0); 27]; 8];
    let mut n = 0;
    while n < 8 * 27 {
        let (side, d) = (n / 27, n % 27);
        let step = offset(d);
        let (mut parent, mut child, mut a) = ([0; 3], 0, 0);
        while a < 3 {
            let place = (side >> a & 1) as i32 + step[a];
            parent[a] = place.div_euclid(2);
            child |= (place.rem_euclid(2) as u8) << a;
            a += 1;
        }
        relations[side][d] = (direction(parent) as u8, child);
        n += 1;
    }
    relations
};

/// A face of a patch: its row, and the face (x-, x+, y-, y+, z-, z+).
pub type PatchFace = (u32, u8);

/// Faces by peer rank, in an order known to both sides.
type PeerFaces = Vec<(usize, Vec<PatchFace>)>;

/// Faces whose fine fluxes are sent to the rank of the coarse patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FacePlan {
    /// Faces of fine patches on this rank.
    pub sends: PeerFaces,
    /// Faces of fine patches on other ranks.
    pub receives: PeerFaces,
}

impl FacePlan {
    /// Returns `true` if no fluxes are sent or received.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty()
    }
}

/// Lists the faces between `level` and the next finer level that separate two ranks.
#[must_use]
pub fn between_ranks(topology: &Topology, level: usize) -> FacePlan {
    let outside = |row: u32| {
        (0..6).filter_map(move |face| {
            let d = face_direction(face);
            if topology.neighbours(row)[d] != COARSER {
                return None;
            }
            let coarse = coarse_neighbour(topology, row, d)?;
            let sent = (topology.owner(coarse), (row, face as u8));
            (!topology.is_owned(coarse)).then_some(sent)
        })
    };
    let near = topology.octets_near_others(level + 1, NeighbourLevel::Coarser);
    let rows = near.flat_map_iter(|octet| octet.rows(octet.owned));
    let sends = rows.flat_map_iter(outside).collect();
    let remote = remote_faces(topology, level);
    let receives = remote.map(|face| (topology.owner(face.0), face)).collect();
    FacePlan {
        sends: by_peer(topology, sends),
        receives: by_peer(topology, receives),
    }
}

/// Returns the faces of other ranks' fine patches that touch leaf patches of `level` on this rank.
pub fn remote_faces(topology: &Topology, level: usize) -> impl Iterator<Item = PatchFace> {
    let near = topology.octets_near_others(level, NeighbourLevel::Finer);
    let rows = near.flat_map_iter(|octet| octet.rows(octet.owned));
    let leaves = rows.filter(|&row| topology.is_leaf(row));
    let faces = leaves.flat_map_iter(|row| (0..6).map(move |face| (row, face)));
    let touching = faces.flat_map_iter(|(row, face)| {
        let children = remote_children(topology, row, face_direction(face));
        children.map(move |row| (row, face as u8 ^ 1))
    });
    touching.collect::<Vec<_>>().into_iter()
}

/// Returns the children of the neighbour of `row` in direction `d` that touch `row`, if they are stored here and belong to
/// another rank.
fn remote_children(topology: &Topology, row: u32, d: usize) -> impl Iterator<Item = u32> + use<> {
    let beyond = u32::try_from(topology.neighbours(row)[d]).ok();
    let first = beyond.and_then(|beyond| topology.first_child(beyond));
    let first = first.filter(|&first| !topology.is_owned(first));
    let facing = children_facing(offset(d));
    let children = (0..8).filter(move |child| facing >> child & 1 == 1);
    let all = first.map(|first| children.map(move |child| first + child));
    all.into_iter().flatten()
}

/// Returns the mask of the children of a patch that touch the patch from which it is `step` away.
#[must_use]
pub fn children_facing(step: [i32; 3]) -> u8 {
    let touches = |c: i32| (0..3).all(|a| step[a] == 0 || (c >> a & 1) == i32::from(step[a] < 0));
    (0..8).filter(|&c| touches(c)).map(|c| 1 << c).sum()
}

/// Returns the directions in which refined neighbours of a leaf may provide it with values on edges. Refined neighbours in
/// other directions have the same values as one of these.
pub fn edge_providers(topology: &Topology, leaf: u32) -> impl Iterator<Item = usize> {
    let refined = |n: i32| u32::try_from(n).is_ok_and(|n| !topology.is_leaf(n));
    at_edges(topology.neighbours(leaf), refined)
}

/// Returns the directions of faces, and of edges at whose two faces no neighbour is `fine`.
fn at_edges(around: &[i32; 27], fine: impl Fn(i32) -> bool) -> impl Iterator<Item = usize> {
    (0..27).filter(move |&d| {
        let step = offset(d);
        let axes = || (0..3).filter(|&a| step[a] != 0);
        let is_coarse = |without: usize| {
            let mut face = step;
            face[without] = 0;
            !fine(around[direction(face)])
        };
        match axes().count() {
            1 => true,
            2 => axes().all(is_coarse),
            _ => false,
        }
    })
}

/// Returns the distinct fine patches of other ranks that provide values on edges to leaf patches of `level` on this rank,
/// by owner, then along the Hilbert curve.
#[must_use]
pub fn remote_at_edges(topology: &Topology, level: usize) -> Vec<u32> {
    let near = topology.octets_near_others(level, NeighbourLevel::Finer);
    let rows = near.flat_map_iter(|octet| octet.rows(octet.owned));
    let leaves = rows.filter(|&row| topology.is_leaf(row));
    let providers = leaves.flat_map_iter(|row| {
        edge_providers(topology, row).flat_map(move |d| remote_children(topology, row, d))
    });
    let providers = providers.map(|row| (topology.owner(row), row)).collect();
    let providers = in_order(topology, providers);
    providers.map(|(_, row)| row).collect()
}

/// Returns the fine patches of this rank that provide values on edges to leaf patches of `level` of other ranks, with these
/// ranks: by rank, then along the Hilbert curve.
pub fn provided_at_edges(topology: &Topology, level: usize) -> impl Iterator<Item = (usize, u32)> {
    let near = topology.octets_near_others(level + 1, NeighbourLevel::Coarser);
    let rows = near.flat_map_iter(|octet| octet.rows(octet.owned));
    let provided = rows.flat_map_iter(|row| {
        let around = topology.neighbours(row);
        let coarse = at_edges(around, |n| n != COARSER).filter(|&d| around[d] == COARSER);
        let coarse = coarse.filter_map(move |d| coarse_neighbour(topology, row, d));
        let others = coarse.filter(|&coarse| !topology.is_owned(coarse));
        others.map(move |coarse| (topology.owner(coarse), row))
    });
    in_order(topology, provided.collect())
}

/// Sorts rows by rank, then along the Hilbert curve, and removes repeated ones.
fn in_order(
    topology: &Topology,
    mut rows: Vec<(usize, u32)>,
) -> impl Iterator<Item = (usize, u32)> + use<> {
    rows.sort_unstable_by_key(|&(peer, row)| (peer, topology.key(row)));
    rows.dedup();
    rows.into_iter()
}

/// Sorts faces by rank, then along the Hilbert curve.
fn by_peer(topology: &Topology, faces: Vec<(usize, PatchFace)>) -> PeerFaces {
    let mut keyed: Vec<_> = faces
        .into_iter()
        .map(|(peer, (row, face))| (peer, topology.key(row), face, row))
        .collect();
    keyed.sort_unstable();
    let mut lists: PeerFaces = Vec::new();
    for (peer, _, face, row) in keyed {
        match lists.last_mut() {
            Some((last, list)) if *last == peer => list.push((row, face)),
            _ => lists.push((peer, vec![(row, face)])),
        }
    }
    lists
}
