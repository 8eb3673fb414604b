//! One rank's part of a hierarchy that several ranks share: its own patches, and copies of those that they touch.
//!
//! Rows come by octets: the eight children of a patch, or the eight places of the root grid with a common half index. An
//! octet is held whole as soon as one of its patches is needed; of the root grid it may belong to several ranks.

use super::octet::{Octet, UNKNOWN, side};
use super::{MISSING, Topology};
use crate::mesh::cuts::RootCurve;
use crate::mesh::hilbert::{bits_for, hilbert_index, hilbert_key};
use crate::mesh::{Changes, Cost, HilbertPartition, LevelWork};
use bevy_ecs::prelude::*;
use std::sync::Arc;

/// `first_child` of a patch without children.
pub(super) const LEAF: i32 = -1;

/// What makes a topology a part of a shared one.
pub(super) struct SharedHierarchy {
    rank: usize,
    cuts: Arc<HilbertPartition>,
    pub(super) levels: Vec<SharedLevel>,
    /// Per row: the rank that owns the patch.
    owner: Vec<u32>,
    /// Entities whose patches are gone, or belong to another rank now.
    orphans: Vec<Entity>,
}

#[derive(Default)]
pub(super) struct SharedLevel {
    /// What is held of the level, by key.
    pub(super) octets: Vec<Octet>,
    /// Rows of the copies, octet by octet.
    copies: Vec<u32>,
    /// Patches of all ranks.
    count: usize,
    work: LevelWork,
}

impl Topology {
    /// Makes an empty hierarchy the part that `rank` has of one that is cut by `cuts`.
    pub fn share_among_ranks(&mut self, rank: usize, cuts: Arc<HilbertPartition>) {
        self.sharing = Some(Box::new(SharedHierarchy {
            rank,
            cuts,
            levels: (0..=self.max_level)
                .map(|_| SharedLevel::default())
                .collect(),
            owner: Vec::new(),
            orphans: Vec::new(),
        }));
    }

    /// Whether other ranks own parts of the hierarchy.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.sharing.is_some()
    }

    /// Where the levels are cut.
    ///
    /// # Panics
    /// If the hierarchy is not shared.
    #[must_use]
    pub fn partition(&self) -> &HilbertPartition {
        &self.sharing().cuts
    }

    /// Cuts `level` anew; what is held follows when the caller says so.
    pub(crate) fn set_partition(&mut self, level: usize, starts: Vec<u64>) {
        Arc::make_mut(&mut self.sharing_mut().cuts).set(level, starts);
        for level in level.saturating_sub(1)..(level + 2).min(self.max_level + 1) {
            let mut octets = std::mem::take(&mut self.sharing_mut().levels[level].octets);
            octets.iter_mut().for_each(|octet| octet.near = UNKNOWN);
            self.look_around(level, &mut octets);
            self.sharing_mut().levels[level].octets = octets;
        }
    }

    fn sharing(&self) -> &SharedHierarchy {
        self.sharing.as_ref().expect("the hierarchy is shared")
    }

    fn sharing_mut(&mut self) -> &mut SharedHierarchy {
        self.sharing.as_mut().expect("the hierarchy is shared")
    }

    /// This rank.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.sharing.as_ref().map_or(0, |sharing| sharing.rank)
    }

    /// Patches of `level` on all ranks.
    #[must_use]
    pub fn count(&self, level: usize) -> usize {
        match &self.sharing {
            None => self.rows(level).len(),
            Some(sharing) => sharing.levels.get(level).map_or(0, |level| level.count),
        }
    }

    pub(crate) fn set_count(&mut self, level: usize, count: usize) {
        self.sharing_mut().levels[level].count = count;
    }

    /// Work of a step of `level`.
    #[must_use]
    pub fn work(&self, level: usize) -> LevelWork {
        let level_of =
            |sharing: &SharedHierarchy| sharing.levels.get(level).map(|level| level.work);
        match &self.sharing {
            None => {
                let all = self.rows(level).len() as u64 * Cost::ONE;
                LevelWork { all, busiest: all }
            }
            Some(sharing) => level_of(sharing).unwrap_or_default(),
        }
    }

    pub(crate) fn set_work(&mut self, level: usize, work: LevelWork) {
        self.sharing_mut().levels[level].work = work;
    }

    /// Rows of the copies that this rank keeps of others' patches of `level`; empty on one rank.
    #[must_use]
    pub fn copies(&self, level: usize) -> &[u32] {
        let level = self.sharing.as_ref().and_then(|s| s.levels.get(level));
        level.map_or(&[], |level| &level.copies)
    }

    /// What is held of `level`, by key; empty on one rank.
    #[must_use]
    pub fn octets(&self, level: usize) -> &[Octet] {
        let level = self.sharing.as_ref().and_then(|s| s.levels.get(level));
        level.map_or(&[], |level| &level.octets)
    }

    /// The octet with `key`, if it is held.
    #[must_use]
    pub fn octet(&self, level: usize, key: u64) -> Option<&Octet> {
        let octets = self.octets(level);
        let found = octets.binary_search_by_key(&key, |octet| octet.key);
        found.ok().map(|n| &octets[n])
    }

    /// The rank that owns the patch of a row in use.
    #[must_use]
    pub fn owner(&self, row: u32) -> usize {
        let sharing = self.sharing.as_ref();
        sharing.map_or(0, |sharing| sharing.owner[row as usize] as usize)
    }

    /// Whether this rank owns the patch of a row in use.
    #[must_use]
    pub fn is_owned(&self, row: u32) -> bool {
        let sharing = self.sharing.as_ref();
        sharing.is_none_or(|s| s.owner[row as usize] as usize == s.rank)
    }

    /// The rank that owns the patch at `index` of `level`, whether that is held here or not; 0 where nothing is shared.
    #[must_use]
    pub fn owner_at(&self, level: usize, index: [i32; 3]) -> usize {
        let (sharing, key) = (self.sharing.as_ref(), || self.key_at(level, index));
        sharing.map_or(0, |sharing| sharing.cuts.owner(level, key()))
    }

    /// Key of the patch at `index` of `level`.
    #[must_use]
    pub fn key_at(&self, level: usize, index: [i32; 3]) -> u64 {
        hilbert_key(index.map(|i| i as u32), bits_for(self.domain.root, level))
    }

    /// Half index of the octet with `key` of `level`: its parent's index.
    #[must_use]
    pub fn octet_place(&self, level: usize, key: u64) -> [i32; 3] {
        hilbert_index(key, bits_for(self.domain.root, level) - 1).map(|i| i as i32)
    }

    /// The place `step` patches away from `index` on `level`; `None` outside the domain.
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

    /// The row held for the patch at `index` of `level`, copied or not.
    #[must_use]
    pub fn find(&self, level: usize, index: [i32; 3]) -> Option<u32> {
        if !self.is_shared() {
            return self.descend(level, index);
        }
        let half = index.map(|i| (i >> 1) as u32);
        let key = hilbert_key(half, bits_for(self.domain.root, level) - 1);
        let octet = self.octet(level, key)?;
        let row = octet.first + side(index);
        (self.level[row as usize] >= 0).then_some(row)
    }

    /// The row of the patch at `index` of `level`, found from the root patch that contains it.
    fn descend(&self, level: usize, index: [i32; 3]) -> Option<u32> {
        let key = self.key_at(0, index.map(|i| i >> level));
        let root = self.rows(0);
        let found = root.binary_search_by_key(&key, |&row| self.key(row)).ok()?;
        (0..level).rev().try_fold(root[found], |row, below| {
            Some(self.first_child(row)? + side(index.map(|i| i >> below)))
        })
    }

    /// The root patches that this rank owns: octets with masks, by key.
    pub(crate) fn own_root(&self) -> Vec<(u64, u8)> {
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

    /// Enters changes of own patches: whether they have children, which the caller makes or removes.
    pub(crate) fn mark_children(&mut self, changes: &Changes) {
        for &row in &changes.refine {
            debug_assert!(self.is_leaf(row));
            self.first_child[row as usize] = MISSING;
        }
        for &row in &changes.coarsen {
            debug_assert!(!self.is_leaf(row));
            self.first_child[row as usize] = LEAF;
        }
    }

    /// First children of all rows; -1 for a leaf, [`MISSING`] where they are not held.
    #[must_use]
    pub fn first_child_table(&self) -> &[i32] {
        &self.first_child
    }

    /// The eight rows of an octet of `level` in Hilbert order.
    pub(crate) fn hilbert_ordered(&self, level: usize, first: u32) -> [u32; 8] {
        self.ordered_octet(first, bits_for(self.domain.root, level))
    }

    /// Takes the entities whose patches are gone, or belong to another rank now.
    pub(crate) fn take_orphans(&mut self) -> Vec<Entity> {
        std::mem::take(&mut self.sharing_mut().orphans)
    }

    /// Holds `octets` of `level`, ascending by key, and nothing else; rows of octets that stay are kept, `first` is given.
    /// Patches that are new here count as leaves. The caller links the level.
    pub(crate) fn set_octets(&mut self, level: usize, mut octets: Vec<Octet>) {
        let old = std::mem::take(&mut self.sharing_mut().levels[level].octets);
        let mut kept = old.iter().peekable();
        for octet in &mut octets {
            while let Some(gone) = kept.next_if(|old| old.key < octet.key) {
                self.release(gone.first);
            }
            if let Some(same) = kept.next_if(|old| old.key == octet.key) {
                octet.first = same.first;
                if same.owned != 0 {
                    octet.near = same.near;
                }
            }
        }
        for gone in kept {
            self.release(gone.first);
        }
        for octet in &mut octets {
            if octet.first == u32::MAX {
                octet.first = self.take_octet();
                self.settle(level, octet);
            } else if octet.owned == u8::MAX && octet.rows(u8::MAX).all(|row| self.is_owned(row)) {
                // as before
                continue;
            }
            self.assign(level, octet);
        }
        self.look_around(level, &mut octets);
        let shared = &mut self.sharing_mut().levels[level];
        shared.copies.clear();
        let copies = octets.iter().flat_map(|octet| octet.rows(octet.copied));
        shared.copies.extend(copies);
        // rows that stay keep their order
        let same = owned(&old).eq(owned(&octets));
        shared.octets = octets;
        if !same {
            self.list(level, &old);
        }
    }

    fn release(&mut self, first: u32) {
        for row in first..first + 8 {
            self.level[row as usize] = -1;
            self.disown(row);
        }
        self.free_octets.push(first / 8);
    }

    /// Gives up the entity of a row.
    fn disown(&mut self, row: u32) {
        let entity = std::mem::replace(&mut self.entity[row as usize], Entity::PLACEHOLDER);
        if entity != Entity::PLACEHOLDER {
            self.sharing_mut().orphans.push(entity);
        }
    }

    /// Fills the rows of a new octet.
    fn settle(&mut self, level: usize, octet: &Octet) {
        let half = self.octet_place(level, octet.key);
        for c in 0..8 {
            let index = std::array::from_fn(|a| 2 * half[a] + (c >> a & 1));
            let row = octet.first + c as u32;
            // an octet of the root grid may stick out of the domain
            if (0..3).all(|a| index[a] < self.domain.root[a] << level) {
                self.occupy(row, level, index, MISSING);
            }
            self.neighbours[row as usize] = [MISSING; 27];
        }
    }

    /// Notes who owns the patches of an octet.
    fn assign(&mut self, level: usize, octet: &Octet) {
        let capacity = self.capacity();
        let sharing = self.sharing_mut();
        sharing.owner.resize(capacity, 0);
        // the children of a patch stay together
        let one = (level > 0).then(|| sharing.cuts.owner(level, octet.key << 3));
        for row in octet.rows(u8::MAX) {
            if self.level[row as usize] < 0 {
                continue;
            }
            let owner = one.unwrap_or_else(|| self.partition().owner(level, self.key(row)));
            let sharing = self.sharing_mut();
            sharing.owner[row as usize] = owner as u32;
            if owner != sharing.rank {
                self.disown(row);
            }
        }
    }

    /// Lists the own patches of `level` in Hilbert order; those of `old`, which were listed before, need not be ordered again.
    fn list(&mut self, level: usize, old: &[Octet]) {
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

    /// Notes which of the patches of `rows`, all in one octet, have children anywhere, by the octet's bits of `refined`.
    pub(crate) fn set_refined(&mut self, rows: impl Iterator<Item = u32>, refined: u8) {
        for row in rows {
            let has = refined >> (row % 8) & 1 == 1;
            self.first_child[row as usize] = if has { MISSING } else { LEAF };
        }
    }

    /// Which patches of an octet have children anywhere.
    #[must_use]
    pub fn refined(&self, octet: &Octet) -> u8 {
        let has = |c: u32| u8::from(self.first_child[(octet.first + c) as usize] != LEAF) << c;
        (0..8).map(has).sum()
    }
}

/// The octets with own patches, and which those are.
fn owned(octets: &[Octet]) -> impl Iterator<Item = (u64, u8)> {
    let owned = octets.iter().filter(|octet| octet.owned != 0);
    owned.map(|octet| (octet.key, octet.owned))
}
