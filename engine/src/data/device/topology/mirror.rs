//! What stands in the tables of a device, so that only what differs has to travel.

use super::AROUND;
use crate::mesh::Topology;
use nestar_kernels::mesh::{COARSER, OUTSIDE};
use rayon::prelude::*;

/// Entries of a row of all tables: neighbours with their codes, parent, first child, index with level.
pub(super) const WORDS: usize = AROUND + 6;
/// Among the codes of a row: another rank owns the patch.
const COPY: i32 = 4;
/// Rows that a task compares.
const TASK: usize = 1024;

/// The tables and lists of a device as they were written last. Memory: 136 bytes a row, and 4 bytes an own patch.
#[derive(Default)]
pub(super) struct Mirror {
    rows: Vec<[i32; WORDS]>,
    lists: Vec<Vec<u32>>,
}

impl Mirror {
    /// Takes the tables of `topology` over; the rows in use that were different before, ascending.
    pub(super) fn update(&mut self, topology: &Topology) -> Vec<u32> {
        // tables of a device begin with zeros
        self.rows.resize(topology.capacity(), [0; WORDS]);
        let tasks = self.rows.par_chunks_mut(TASK).enumerate();
        let changed = tasks.map(|(task, rows)| {
            let first = (task * TASK) as u32;
            let differs = |(row, words): (u32, &mut [i32; WORDS])| {
                (topology.level(row).is_some() && take(topology, row, words)).then_some(row)
            };
            (first..)
                .zip(rows)
                .filter_map(differs)
                .collect::<Vec<u32>>()
        });
        changed.collect::<Vec<_>>().concat()
    }

    /// Takes the list of `level` over; whether it was different before.
    pub(super) fn update_list(&mut self, level: usize, rows: &[u32]) -> bool {
        if self.lists.len() <= level {
            self.lists.resize(level + 1, Vec::new());
        }
        let differs = self.lists[level] != rows;
        if differs {
            self.lists[level].clear();
            self.lists[level].extend_from_slice(rows);
        }
        differs
    }

    /// The words of some rows.
    pub(super) fn words(&self, rows: &[u32]) -> Vec<[i32; WORDS]> {
        let rows = rows.par_iter().with_min_len(TASK);
        rows.map(|&row| self.rows[row as usize]).collect()
    }
}

/// Sets `words` to what the tables say of a row in use; whether that is new.
fn take(topology: &Topology, row: u32, words: &mut [i32; WORDS]) -> bool {
    let neighbours = topology.neighbours(row);
    let [x, y, z] = topology.index(row);
    let level = topology.level(row).map_or(0, |level| level as i32);
    let parent = topology.parent_table()[row as usize];
    let child = topology.first_child_table()[row as usize];
    let rest = [parent, child, x, y, z, level];
    let copy = if topology.is_owned(row) { 0 } else { COPY };
    if words[..27] == neighbours[..] && words[27] & COPY == copy && words[AROUND..] == rest {
        return false;
    }
    let has = |code, bit| if neighbours.contains(&code) { bit } else { 0 };
    words[..27].copy_from_slice(neighbours);
    words[27] = has(COARSER, 1) | has(OUTSIDE, 2) | copy;
    words[AROUND..].copy_from_slice(&rest);
    true
}
