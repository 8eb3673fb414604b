//! Lists patches that move to other ranks when a level is repartitioned.

use crate::mesh::Topology;
use crate::mesh::topology::octet::Octet;

/// Returns the patches of the octets `before` that now belong to other ranks: the owner, the octet and the mask of
/// patches (z y x).
pub(super) fn departures<'a>(
    topology: &'a Topology,
    level: usize,
    before: &'a [Octet],
) -> impl Iterator<Item = (usize, &'a Octet, u8)> {
    let own = topology.rank();
    let parts = before.iter().flat_map(move |octet| {
        let mut parts: Vec<(usize, &Octet, u8)> = Vec::new();
        if level > 0 {
            let owner = topology.partition().owner(level, octet.key << 3);
            parts.push((owner, octet, octet.owned));
            return parts;
        }
        for row in topology.hilbert_ordered(0, octet.first) {
            let patch = octet.owned & 1 << (row - octet.first);
            if patch == 0 {
                continue;
            }
            let owner = topology.partition().owner(0, topology.key(row));
            match parts.last_mut() {
                Some((peer, _, patches)) if *peer == owner => *patches |= patch,
                _ => parts.push((owner, octet, patch)),
            }
        }
        parts
    });
    parts.filter(move |(peer, ..)| *peer != own)
}
