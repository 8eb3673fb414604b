//! Which of a rank's own octets may touch patches of other ranks, by places alone: lists of what ranks exchange look at no
//! others, so that they cost as much as the border of a part, not as the part.

use super::octet::{NeighbourLevel, Octet, UNKNOWN};
use super::{Topology, offset};
use crate::mesh::hilbert::{bits_for, hilbert_index, hilbert_key};
use rayon::prelude::*;

/// Parents are looked at in blocks of `2^BLOCK` of them along an axis: one answer for all of their octets.
const BLOCK: u32 = 2;

impl Topology {
    /// The own octets of `level`, ascending, but for those around which all such patches are this rank's own.
    pub(crate) fn octets_near_others(
        &self,
        level: usize,
        patches: NeighbourLevel,
    ) -> impl ParallelIterator<Item = &Octet> {
        let octets = self.octets(level).par_iter().with_min_len(256);
        octets.filter(move |octet| octet.owned != 0 && octet.is_near(patches))
    }

    /// Looks around the own ones among `octets` of `level`, ascending, of which nothing is known.
    pub(super) fn look_around(&self, level: usize, octets: &mut [Octet]) {
        let mut latest = None;
        let unknown = |octet: &&mut Octet| octet.owned != 0 && octet.near == UNKNOWN;
        for octet in octets.iter_mut().filter(unknown) {
            let block = octet.key >> (3 * BLOCK);
            octet.near = match latest {
                Some((known, near)) if known == block => near,
                _ => self.near_block(level, block),
            };
            latest = Some((block, octet.near));
        }
    }

    /// What is near the octets of a block of `level`.
    fn near_block(&self, level: usize, block: u64) -> u8 {
        let above = level < self.max_level && !self.is_interior(level + 1, BLOCK + 2, block);
        let beneath = level > 0 && !self.is_interior(level - 1, BLOCK, block);
        let beside = !self.is_interior(level, BLOCK + 1, block);
        let bit = |is: bool, near: NeighbourLevel| if is { near as u8 } else { 0 };
        bit(beside, NeighbourLevel::Same)
            | bit(beneath, NeighbourLevel::Coarser)
            | bit(above, NeighbourLevel::Finer)
    }

    /// Whether this rank owns all patches of `level` in the block with `key` of `2^bits` patches along an axis, and in the 26
    /// blocks around it.
    pub(crate) fn is_interior(&self, level: usize, bits: u32, key: u64) -> bool {
        let Some(finest) = bits_for(self.domain.root, level).checked_sub(bits) else {
            return false;
        };
        let own = self.partition().keys(level, self.rank());
        let blocks = self.domain.root.map(|n| (((n << level) - 1) >> bits) + 1);
        let index = hilbert_index(key, finest).map(|i| i as i32);
        (0..27).all(|d| {
            let step = offset(d);
            let mut place = [0; 3];
            for a in 0..3 {
                place[a] = index[a] + step[a];
                if !(0..blocks[a]).contains(&place[a]) {
                    if !self.domain.periodic[a] {
                        // there are no patches
                        return true;
                    }
                    place[a] = place[a].rem_euclid(blocks[a]);
                }
            }
            let first = hilbert_key(place.map(|i| i as u32), finest) << (3 * bits);
            let last = first + ((1 << (3 * bits)) - 1);
            own.contains(&first) && own.contains(&last)
        })
    }
}
