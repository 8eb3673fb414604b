//! Which patches of others a rank's own patches touch, by places alone.

use crate::mesh::Topology;
use crate::mesh::topology::offset;
use crate::mesh::topology::shared::{Octet, side};
use rayon::prelude::*;

/// Patches of an octet: its key, and the eight as bits z y x.
pub(super) type Part = (u64, u8);

/// Sorts parts by key and joins those of one octet.
pub(super) fn joined(mut parts: Vec<Part>) -> Vec<Part> {
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

/// Others' patches of `level` that the own patches of `owned` have among their 26 neighbours. Needs the families of
/// `level`, and whether the patches around the parents have children.
pub(super) fn beside(topology: &Topology, level: usize, owned: &[Part]) -> Vec<Part> {
    let touched = |&part: &Part| {
        let mut found = Vec::new();
        if level == 0 {
            beside_root(topology, part, &mut found);
        } else {
            beside_octet(topology, level, part.0, &mut found);
        }
        found
    };
    joined(owned.par_iter().flat_map_iter(touched).collect())
}

fn beside_root(topology: &Topology, (key, mask): Part, found: &mut Vec<Part>) {
    let half = topology.octet_place(0, key);
    for c in (0..8).filter(|c| mask >> c & 1 == 1) {
        let index = std::array::from_fn(|a| 2 * half[a] + (c >> a & 1));
        around(topology, 0, index, found);
    }
}

/// Adds those of the 27 places around `index` that others own.
fn around(topology: &Topology, level: usize, index: [i32; 3], found: &mut Vec<Part>) {
    for d in 0..27 {
        let Some(place) = topology.place_beside(level, index, offset(d)) else {
            continue;
        };
        let key = topology.key_at(level, place);
        if topology.cuts().owner(level, key) != topology.rank() {
            found.push((key >> 3, 1 << side(place)));
        }
    }
}

fn beside_octet(topology: &Topology, level: usize, key: u64, found: &mut Vec<Part>) {
    let parent = topology.octet_place(level, key);
    for d in (0..27).filter(|&d| d != nestar_kernels::mesh::SELF) {
        let step = offset(d);
        let Some(place) = topology.place_beside(level - 1, parent, step) else {
            continue;
        };
        let key = topology.key_at(level - 1, place);
        let refined = topology
            .find(level - 1, place)
            .is_some_and(|row| !topology.is_leaf(row));
        if refined && topology.cuts().owner(level, key << 3) != topology.rank() {
            found.push((key, facing(step)));
        }
    }
}

/// The children of a patch that touch what it lies `step` away from.
fn facing(step: [i32; 3]) -> u8 {
    let touches = |c: i32| (0..3).all(|a| step[a] == 0 || (c >> a & 1) == i32::from(step[a] < 0));
    (0..8).filter(|&c| touches(c)).map(|c| 1 << c).sum()
}

/// Others' patches of `level` among the parents of the own octets of the finer level and what surrounds those.
pub(super) fn below(topology: &Topology, level: usize, finer: &[Octet]) -> Vec<Part> {
    let touched = |octet: &Octet| {
        let mut found = Vec::new();
        if octet.owned != 0 {
            let parent = topology.octet_place(level + 1, octet.key);
            around(topology, level, parent, &mut found);
        }
        found
    };
    joined(finer.par_iter().flat_map_iter(touched).collect())
}

/// Others' octets of `level` beside the faces of own leaf patches of the coarser level: no values, only registers.
pub(super) fn beyond_faces(topology: &Topology, level: usize) -> Vec<Part> {
    let Some(coarser) = level.checked_sub(1) else {
        return Vec::new();
    };
    let touched = |&row: &u32| {
        let around = topology.neighbours(row);
        let leaf = topology.is_leaf(row);
        let beyond = (0..6).filter_map(move |face| {
            let next = u32::try_from(around[nestar_kernels::mesh::face_direction(face)]);
            next.ok().filter(|&next| leaf && !topology.is_leaf(next))
        });
        beyond.filter_map(|next| {
            let key = topology.key(next);
            let owner = topology.cuts().owner(level, key << 3);
            (owner != topology.rank()).then_some((key, 0))
        })
    };
    let rows = topology.rows(coarser).par_iter().with_min_len(1024);
    joined(rows.flat_map_iter(touched).collect())
}
