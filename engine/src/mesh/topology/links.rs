//! The links between the patches that a rank holds: families and neighbours.

use super::shared::{LEAF, side};
use super::{MISSING, Table, Topology, offset};
use nestar_kernels::mesh::{COARSER, OUTSIDE, SELF};
use rayon::prelude::*;

impl Topology {
    /// Tells the patches of `level` who their parents are, and those their children, as far as they are held.
    pub(crate) fn link_families(&mut self, level: usize) {
        if level > self.max_level {
            return;
        }
        let sharing = self.sharing.take().expect("the hierarchy is shared");
        if level > 0 {
            for octet in &sharing.levels[level - 1].octets {
                for row in octet.rows(u8::MAX) {
                    let child = &mut self.first_child[row as usize];
                    *child = (*child).min(if *child == LEAF { LEAF } else { MISSING });
                }
            }
        }
        for octet in &sharing.levels[level].octets {
            let parents = level
                .checked_sub(1)
                .map(|below| &sharing.levels[below].octets);
            let parent = parents.and_then(|octets| {
                let found = octets.binary_search_by_key(&(octet.key >> 3), |octet| octet.key);
                let place = self.index[octet.first as usize].map(|i| i >> 1);
                found.ok().map(|n| octets[n].first + side(place))
            });
            // children that are about to go are none any more
            if let Some(parent) = parent.filter(|&row| !self.is_leaf(row)) {
                self.first_child[parent as usize] = octet.first as i32;
            }
            let code = if level == 0 { -1 } else { MISSING };
            let parent = parent.map_or(code, |row| row as i32);
            self.parent[octet.first as usize..][..8].fill(parent);
        }
        self.sharing = Some(sharing);
    }

    /// Fills the neighbour tables of the own patches of `level`; those of their parents must be complete.
    pub(crate) fn link_owned(&mut self, level: usize) {
        let table = Table(self.neighbours.as_mut_ptr());
        self.levels[level]
            .par_iter()
            .with_min_len(256)
            .for_each(|&row| {
                let around = if level == 0 {
                    self.neighbours_from_places(0, row)
                } else {
                    // SAFETY: the row lies inside the table; entries of the coarser level are only read here.
                    let around = unsafe { table.get(self.parent[row as usize] as u32) };
                    self.neighbours_from_parent(row, &around)
                };
                // SAFETY: the row lies inside the table; the rows of a level are distinct.
                unsafe { table.set(row, around) };
            });
    }

    /// Fills the neighbour tables of the copies of `level` that are parents of own patches.
    pub(crate) fn link_copies(&mut self, level: usize) {
        for n in 0..self.octets(level + 1).len() {
            let octet = self.octets(level + 1)[n];
            let Ok(parent) = u32::try_from(self.parent[octet.first as usize]) else {
                continue;
            };
            if octet.owned != 0 && !self.is_owned(parent) {
                self.neighbours[parent as usize] = self.neighbours_from_places(level, parent);
            }
        }
    }

    /// The neighbours of a row as far as they are held, found by their places.
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
}
