//! Which of a rank's own octets may touch patches of other ranks, by places alone: lists of what ranks exchange look at no
//! others, so that they cost as much as the border of a part, not as the part.

use super::shared::Octet;
use super::{Topology, offset};
use crate::mesh::hilbert::{bits_for, hilbert_index, hilbert_key};
use rayon::prelude::*;

/// Parents are looked at in blocks of `2^BLOCK` of them along an axis.
const BLOCK: u32 = 2;

impl Topology {
    /// The own among `octets`, whose keys are those of patches of a coarser level, but for those deep inside this rank's part of
    /// `level`: their parents and what surrounds these, refined `finer` times to the patches of `level`, are all its own.
    /// In the order of `octets`, which ascend.
    pub(crate) fn near_others<'a>(
        &'a self,
        level: usize,
        octets: &'a [Octet],
        finer: u32,
    ) -> impl ParallelIterator<Item = &'a Octet> {
        // beyond the finest level there is nobody
        let octets = if level > self.max_level { &[] } else { octets };
        let blocks = octets.par_chunk_by(|a, b| a.key >> (3 * BLOCK) == b.key >> (3 * BLOCK));
        let crossed = blocks.filter(move |block| {
            let key = block[0].key >> (3 * BLOCK);
            !self.is_interior(level, BLOCK + finer, key)
        });
        crossed.flat_map_iter(|block| block.iter().filter(|octet| octet.owned != 0))
    }

    /// Whether this rank owns all patches of `level` in the block with `key` of `2^bits` patches along an axis, and in the 26
    /// blocks around it.
    pub(crate) fn is_interior(&self, level: usize, bits: u32, key: u64) -> bool {
        let Some(finest) = bits_for(self.domain.root, level).checked_sub(bits) else {
            return false;
        };
        let own = self.cuts().keys(level, self.rank());
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
