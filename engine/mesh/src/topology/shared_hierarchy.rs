//! The part of the hierarchy on one rank: its own patches and its halo patches.
//!
//! Rows are allocated by octets: the eight children of a patch, or eight root patches with a common half index. An
//! octet is stored as a whole once one of its patches is needed. Octets of the root grid may belong to several ranks.

use super::{Changes, MISSING, Topology, offset};
use crate::partition::{bits_for, hilbert_index, hilbert_key};
use crate::{HilbertPartition, LevelWork, RootCurve};
use bevy_ecs::prelude::*;
use rayon::prelude::*;
use std::sync::Arc;

/// `first_child` of a patch without children.
pub(super) const LEAF: i32 = -1;

/// Owners of the patches, and the octets stored on this rank.
pub(super) struct SharedHierarchy {
    rank: usize,
    cuts: Arc<HilbertPartition>,
    pub(super) levels: Vec<SharedLevel>,
    /// Rank that owns the patch, per row.
    owner: Vec<u32>,
    /// Entities whose patches were removed or have migrated.
    orphans: Vec<Entity>,
}

#[derive(Default)]
pub(super) struct SharedLevel {
    /// Octets stored here, by key.
    pub(super) octets: Vec<Octet>,
    /// Rows of the halo patches, octet by octet.
    copies: Vec<u32>,
    /// Union of what may lie near the octets; see [`Octet::is_near`].
    pub(super) near: u8,
    /// Number of patches on all ranks.
    count: usize,
    work: LevelWork,
}

impl SharedHierarchy {
    /// Creates the state of an empty hierarchy of one rank.
    pub(super) fn of_one_rank(root: [i32; 3], max_level: usize) -> Self {
        Self::new(
            0,
            Arc::new(HilbertPartition::new(root, 1, max_level + 1)),
            max_level,
        )
    }

    fn new(rank: usize, cuts: Arc<HilbertPartition>, max_level: usize) -> Self {
        Self {
            rank,
            cuts,
            levels: (0..=max_level).map(|_| SharedLevel::default()).collect(),
            owner: Vec::new(),
            orphans: Vec::new(),
        }
    }
}

impl Topology {
    /// Turns an empty hierarchy into the part of `rank` in the partition `cuts`.
    pub fn share_among_ranks(&mut self, rank: usize, cuts: Arc<HilbertPartition>) {
        self.sharing = SharedHierarchy::new(rank, cuts, self.max_level);
    }

    /// Returns `true` if the hierarchy is partitioned among several ranks.
    #[must_use]
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.partition().ranks() > 1
    }

    /// Returns `true` if this rank owns all patches of all levels.
    #[must_use]
    pub fn owns_all(&self) -> bool {
        (0..=self.max_level).all(|level| self.count(level) == self.rows(level).len())
    }

    /// Returns the partition.
    #[must_use]
    pub fn partition(&self) -> &HilbertPartition {
        &self.sharing.cuts
    }

    /// Sets the partition of `level`. The caller adapts the stored octets.
    pub fn set_partition(&mut self, level: usize, starts: Vec<u64>) {
        Arc::make_mut(&mut self.sharing.cuts).set(level, starts);
        for level in level.saturating_sub(1)..(level + 2).min(self.max_level + 1) {
            let mut octets = std::mem::take(&mut self.sharing.levels[level].octets);
            octets.iter_mut().for_each(|octet| octet.near = UNKNOWN);
            let near = self.classify_surroundings(level, &mut octets);
            let shared = &mut self.sharing.levels[level];
            (shared.octets, shared.near) = (octets, near);
        }
    }

    /// Returns the number of this rank.
    #[must_use]
    #[inline]
    pub fn rank(&self) -> usize {
        self.sharing.rank
    }

    /// Returns the number of patches of `level` on all ranks; 0 for levels that do not exist.
    #[must_use]
    #[inline]
    pub fn count(&self, level: usize) -> usize {
        let level = self.sharing.levels.get(level);
        level.map_or(0, |level| level.count)
    }

    /// Sets the number of patches of `level` on all ranks.
    pub fn set_count(&mut self, level: usize, count: usize) {
        self.sharing.levels[level].count = count;
    }

    /// Returns the work of a step of `level`.
    #[must_use]
    pub fn work(&self, level: usize) -> LevelWork {
        let level = self.sharing.levels.get(level);
        level.map(|level| level.work).unwrap_or_default()
    }

    /// Sets the work of a step of `level`.
    pub fn set_work(&mut self, level: usize, work: LevelWork) {
        self.sharing.levels[level].work = work;
    }

    /// Returns the rows of the halo patches of `level`.
    #[must_use]
    #[inline]
    pub fn copies(&self, level: usize) -> &[u32] {
        let level = self.sharing.levels.get(level);
        level.map_or(&[], |level| &level.copies)
    }

    /// Returns the octets of `level` stored here, by key.
    #[must_use]
    #[inline]
    pub fn octets(&self, level: usize) -> &[Octet] {
        let level = self.sharing.levels.get(level);
        level.map_or(&[], |level| &level.octets)
    }

    /// Returns the octet with `key`, if it is stored here.
    #[must_use]
    #[inline]
    pub fn octet(&self, level: usize, key: u64) -> Option<&Octet> {
        let octets = self.octets(level);
        let found = octets.binary_search_by_key(&key, |octet| octet.key);
        found.ok().map(|n| &octets[n])
    }

    /// Returns the rank that owns the patch of a used row.
    #[must_use]
    #[inline]
    pub fn owner(&self, row: u32) -> usize {
        self.sharing.owner[row as usize] as usize
    }

    /// Returns `true` if this rank owns the patch of a used row.
    #[must_use]
    #[inline]
    pub fn is_owned(&self, row: u32) -> bool {
        self.owner(row) == self.sharing.rank
    }

    /// Returns the rank that owns the patch at `index` of `level`, stored here or not.
    #[must_use]
    #[inline]
    pub fn owner_at(&self, level: usize, index: [i32; 3]) -> usize {
        match self.partition().ranks() {
            // needs no key
            1 => 0,
            _ => self.partition().owner(level, self.key_at(level, index)),
        }
    }

    /// Returns the Hilbert key of the patch at `index` of `level`.
    #[must_use]
    #[inline]
    pub fn key_at(&self, level: usize, index: [i32; 3]) -> u64 {
        hilbert_key(index.map(|i| i as u32), bits_for(self.domain.root, level))
    }

    /// Returns the half index of the octet with `key` of `level`: the index of its parent.
    #[must_use]
    #[inline]
    pub fn octet_place(&self, level: usize, key: u64) -> [i32; 3] {
        hilbert_index(key, bits_for(self.domain.root, level) - 1).map(|i| i as i32)
    }

    /// Returns the index `step` patches away from `index` on `level`; `None` outside the domain.
    #[must_use]
    pub fn place_beside(&self, level: usize, index: [i32; 3], step: [i32; 3]) -> Option<[i32; 3]> {
        let mut place = [0; 3];
        for a in 0..3 {
            let patches = self.domain.root[a] << level;
            let i = index[a] + step[a];
            place[a] = if (0..patches).contains(&i) {
                i
            } else if self.domain.periodic[a] {
                i.rem_euclid(patches)
            } else {
                return None;
            };
        }
        Some(place)
    }

    /// Returns the row of the patch at `index` of `level`, if it is stored here.
    #[must_use]
    pub fn find(&self, level: usize, index: [i32; 3]) -> Option<u32> {
        let half = index.map(|i| (i >> 1) as u32);
        let key = hilbert_key(half, bits_for(self.domain.root, level) - 1);
        let octet = self.octet(level, key)?;
        let row = octet.first + side(index);
        (self.level[row as usize] >= 0).then_some(row)
    }

    /// Returns the root patches of this rank: octets with masks, by key.
    pub fn own_root(&self) -> Vec<(u64, u8)> {
        let root = self.domain.root;
        let bits = bits_for(root, 0);
        let mut parts: Vec<(u64, u8)> = Vec::new();
        let own = self.partition().keys(0, self.rank());
        RootCurve { root, bits }.each(&own, &mut |key| {
            let bit = 1 << side(hilbert_index(key, bits).map(|i| i as i32));
            match parts.last_mut() {
                Some((last, mask)) if *last == key >> 3 => *mask |= bit,
                _ => parts.push((key >> 3, bit)),
            }
        });
        parts
    }

    /// Marks own patches as refined or not; the caller creates or removes their children.
    pub fn mark_children(&mut self, changes: &Changes) {
        for &row in &changes.refine {
            debug_assert!(self.is_leaf(row));
            self.first_child[row as usize] = MISSING;
        }
        for &row in &changes.coarsen {
            debug_assert!(!self.is_leaf(row));
            self.first_child[row as usize] = LEAF;
        }
    }

    /// Returns the first children of all rows; -1 for a leaf, [`MISSING`] if not stored here.
    #[must_use]
    pub fn first_child_table(&self) -> &[i32] {
        &self.first_child
    }

    /// Returns the eight rows of an octet of `level` in Hilbert order.
    pub fn hilbert_ordered(&self, level: usize, first: u32) -> [u32; 8] {
        self.ordered_octet(first, bits_for(self.domain.root, level))
    }

    /// Takes the entities whose patches were removed or have migrated.
    pub fn take_orphans(&mut self) -> Vec<Entity> {
        std::mem::take(&mut self.sharing.orphans)
    }

    /// Sets the stored octets of `level`, ascending by key, and sets their `first` row. Octets that stay keep their
    /// rows.
    /// New patches are leaves. The caller links the level.
    pub fn set_octets(&mut self, level: usize, mut octets: Vec<Octet>) {
        let old = std::mem::take(&mut self.sharing.levels[level].octets);
        let mut kept = old.iter().peekable();
        for octet in &mut octets {
            while let Some(gone) = kept.next_if(|old| old.key < octet.key) {
                self.free_octet(gone.first);
            }
            if let Some(same) = kept.next_if(|old| old.key == octet.key) {
                octet.first = same.first;
                if same.owned != 0 {
                    octet.near = same.near;
                }
            }
        }
        for gone in kept {
            self.free_octet(gone.first);
        }
        for octet in &mut octets {
            if octet.first == u32::MAX {
                octet.first = self.allocate_octet();
                self.init_octet(level, octet);
            } else if octet.owned == u8::MAX && octet.rows(u8::MAX).all(|row| self.is_owned(row)) {
                // unchanged
                continue;
            }
            self.set_owners(level, octet);
        }
        let near = self.classify_surroundings(level, &mut octets);
        let shared = &mut self.sharing.levels[level];
        shared.near = near;
        shared.copies.clear();
        let copied = octets.iter().filter(|octet| octet.copied != 0);
        shared
            .copies
            .extend(copied.flat_map(|octet| octet.rows(octet.copied)));
        // rows that stay keep their order
        let same = owned(&old).eq(owned(&octets));
        shared.octets = octets;
        if !same {
            self.list_owned(level, &old);
        }
    }

    fn free_octet(&mut self, first: u32) {
        for row in first..first + 8 {
            self.level[row as usize] = -1;
            self.detach_entity(row);
        }
        self.free_octets.push(first / 8);
    }

    /// Removes the entity of a row and remembers it as an orphan.
    fn detach_entity(&mut self, row: u32) {
        let entity = std::mem::replace(&mut self.entity[row as usize], Entity::PLACEHOLDER);
        if entity != Entity::PLACEHOLDER {
            self.sharing.orphans.push(entity);
        }
    }

    /// Initialises the rows of a new octet.
    fn init_octet(&mut self, level: usize, octet: &Octet) {
        let half = self.octet_place(level, octet.key);
        for c in 0..8 {
            let index = std::array::from_fn(|a| 2 * half[a] + (c >> a & 1));
            let row = octet.first + c as u32;
            // an octet of the root grid may extend beyond the domain
            if (0..3).all(|a| index[a] < self.domain.root[a] << level) {
                self.init_row(row, level, index);
            }
            self.neighbours[row as usize] = [MISSING; 27];
        }
    }

    /// Records the owners of the patches of an octet.
    fn set_owners(&mut self, level: usize, octet: &Octet) {
        let capacity = self.capacity();
        let sharing = &mut self.sharing;
        sharing.owner.resize(capacity, 0);
        // the children of a patch stay together
        let one = (level > 0).then(|| sharing.cuts.owner(level, octet.key << 3));
        for row in octet.rows(u8::MAX) {
            if self.level[row as usize] < 0 {
                continue;
            }
            let owner = one.unwrap_or_else(|| self.partition().owner(level, self.key(row)));
            self.sharing.owner[row as usize] = owner as u32;
            if owner != self.sharing.rank {
                self.detach_entity(row);
            }
        }
    }

    /// Lists the patches of `level` on this rank in Hilbert order, reusing the order of octets in `old`.
    fn list_owned(&mut self, level: usize, old: &[Octet]) {
        let bits = bits_for(self.domain.root, level);
        let listed = std::mem::take(&mut self.levels[level]);
        let (mut rows, mut rest) = (Vec::with_capacity(listed.len()), &listed[..]);
        let mut take = |octet: &Octet| rest.split_off(..octet.owned.count_ones() as usize);
        let mut known = old.iter().filter(|octet| octet.owned != 0).peekable();
        for octet in self.octets(level).iter().filter(|octet| octet.owned != 0) {
            while let Some(gone) = known.next_if(|known| known.key < octet.key) {
                take(gone);
            }
            let same = known.next_if(|known| known.key == octet.key);
            match same.and_then(|same| Some((same.owned, take(same)?))) {
                Some((owned, listed)) if owned == octet.owned => rows.extend_from_slice(listed),
                _ => {
                    let owned = |row: &u32| octet.owned >> (row - octet.first) & 1 == 1;
                    let ordered = self.ordered_octet(octet.first, bits);
                    rows.extend(ordered.into_iter().filter(owned));
                }
            }
        }
        self.levels[level] = rows;
    }

    /// Sets which of `rows`, all in one octet, have children on any rank; `refined` is the mask of the octet.
    pub fn set_refined(&mut self, rows: impl Iterator<Item = u32>, refined: u8) {
        for row in rows {
            let has = refined >> (row % 8) & 1 == 1;
            self.first_child[row as usize] = if has { MISSING } else { LEAF };
        }
    }

    /// Returns the mask of patches of an octet with children on any rank.
    #[must_use]
    #[inline]
    pub fn refined(&self, octet: &Octet) -> u8 {
        let has = |c: u32| u8::from(self.first_child[(octet.first + c) as usize] != LEAF) << c;
        (0..8).map(has).sum()
    }
}

/// Returns the octets with patches of this rank, and their masks.
fn owned(octets: &[Octet]) -> impl Iterator<Item = (u64, u8)> {
    let owned = octets.iter().filter(|octet| octet.owned != 0);
    owned.map(|octet| (octet.key, octet.owned))
}

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
