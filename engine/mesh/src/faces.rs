//! Coarse-fine faces between patches of different ranks.

use super::Topology;
use super::nesting::coarse_neighbour;
use super::topology::octet::NeighbourLevel;
use nestar_kernels::mesh::{COARSER, face_direction};
use rayon::prelude::*;

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
        let beyond = u32::try_from(topology.neighbours(row)[face_direction(face)]).ok();
        let first = beyond.and_then(|beyond| topology.first_child(beyond));
        let first = first.filter(|&first| !topology.is_owned(first));
        let children = first.into_iter().flat_map(move |first| {
            // across a lower face lies the upper half of the neighbour
            let near = 1 - face as u32 % 2;
            let touching = (0..8).filter(move |child| child >> (face / 2) & 1 == near);
            touching.map(move |child| first + child)
        });
        children.map(move |row| (row, face as u8 ^ 1))
    });
    touching.collect::<Vec<_>>().into_iter()
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
