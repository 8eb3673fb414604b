//! Octets, the unit in which ranks store patches.

use super::{Topology, offset};
use crate::hilbert::{bits_for, hilbert_index, hilbert_key};
use rayon::prelude::*;

/// Levels of patches that may lie near an octet, relative to its own.
#[derive(Clone, Copy)]
pub enum NeighbourLevel {
    /// Its own level, at and around its patches.
    Same = 1,
    /// The coarser level, at and around its parent.
    Coarser = 2,
    /// The finer level, at and around its patches.
    Finer = 4,
}

/// Value of unclassified surroundings: anything may be near.
pub(crate) const UNKNOWN: u8 = u8::MAX;

/// Eight patches with a common half index. Masks have bit `z y x` for each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Octet {
    /// Key of the parent: the keys of the eight patches without their last three bits.
    pub key: u64,
    /// First of the eight rows, a multiple of 8.
    pub first: u32,
    /// Mask of the patches owned by this rank.
    pub owned: u8,
    /// Mask of the halo patches stored on this rank.
    pub copied: u8,
    /// Which patches of other ranks may be near, as bits of [`NeighbourLevel`]; maintained for octets with patches of
    /// this rank.
    pub(super) near: u8,
}

impl Octet {
    /// Creates an octet with masks of owned and halo patches; it has no rows yet.
    #[must_use]
    pub fn new(key: u64, owned: u8, copied: u8) -> Self {
        Self {
            key,
            first: u32::MAX,
            owned,
            copied,
            near: UNKNOWN,
        }
    }

    /// Returns the rows of the patches in `mask`.
    #[inline]
    pub fn rows(&self, mask: u8) -> impl Iterator<Item = u32> + use<> {
        let first = self.first;
        (0..8)
            .filter(move |c| mask >> c & 1 == 1)
            .map(move |c| first + c)
    }

    /// Returns `true` if such patches of other ranks may be near.
    #[inline]
    pub fn is_near(&self, patches: NeighbourLevel) -> bool {
        self.near & patches as u8 != 0
    }
}

/// Returns the octant of a patch in its octet, as bits z y x.
#[must_use]
pub fn side(index: [i32; 3]) -> u32 {
    (index[0] & 1 | (index[1] & 1) << 1 | (index[2] & 1) << 2) as u32
}

/// Parents are examined in blocks of `2^BLOCK` patches along an axis, with one result for all of their octets.
const BLOCK: u32 = 2;

impl Topology {
    /// Returns the octets of this rank on `level`, ascending, that may lie near `patches` of other ranks.
    pub fn octets_near_others(
        &self,
        level: usize,
        patches: NeighbourLevel,
    ) -> impl ParallelIterator<Item = &Octet> {
        let shared = self.sharing.levels.get(level);
        let shared = shared.filter(|shared| shared.near & patches as u8 != 0);
        let octets = shared.map_or(&[][..], |shared| &shared.octets);
        let octets = octets.par_iter().with_min_len(256);
        octets.filter(move |octet| octet.owned != 0 && octet.is_near(patches))
    }

    /// Classifies the surroundings of `octets` of `level`, ascending, where they are unknown. Returns their union.
    pub(super) fn classify_surroundings(&self, level: usize, octets: &mut [Octet]) -> u8 {
        let (mut latest, mut union) = (None, 0);
        for octet in octets.iter_mut().filter(|octet| octet.owned != 0) {
            if octet.near == UNKNOWN {
                let block = octet.key >> (3 * BLOCK);
                octet.near = match latest {
                    Some((known, near)) if known == block => near,
                    _ => self.remote_levels_near(level, block),
                };
                latest = Some((block, octet.near));
            }
            union |= octet.near;
        }
        union
    }

    /// Returns the bits of remote patches near a block of `level`.
    fn remote_levels_near(&self, level: usize, block: u64) -> u8 {
        let above = level < self.max_level && !self.is_interior(level + 1, BLOCK + 2, block);
        let beneath = level > 0 && !self.is_interior(level - 1, BLOCK, block);
        let beside = !self.is_interior(level, BLOCK + 1, block);
        let bit = |is: bool, near: NeighbourLevel| if is { near as u8 } else { 0 };
        bit(beside, NeighbourLevel::Same)
            | bit(beneath, NeighbourLevel::Coarser)
            | bit(above, NeighbourLevel::Finer)
    }

    /// Returns `true` if this rank owns all patches of `level` in a block and in the 26 blocks around it. The block has
    /// `2^bits` patches along an axis.
    pub fn is_interior(&self, level: usize, bits: u32, key: u64) -> bool {
        let own = self.partition().keys(level, self.rank());
        if own == (0..u64::MAX) {
            return true;
        }
        let Some(finest) = bits_for(self.domain.root, level).checked_sub(bits) else {
            return false;
        };
        let blocks = self.domain.root.map(|n| (((n << level) - 1) >> bits) + 1);
        let index = hilbert_index(key, finest).map(|i| i as i32);
        (0..27).all(|d| {
            let step = offset(d);
            let mut place = [0; 3];
            for a in 0..3 {
                place[a] = index[a] + step[a];
                if !(0..blocks[a]).contains(&place[a]) {
                    if !self.domain.periodic[a] {
                        // outside the domain
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
