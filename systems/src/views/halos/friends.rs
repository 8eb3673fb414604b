//! Friends of friends (Davis et al. 1985): groups of points that are connected by pairs closer than the linking length.
//!
//! The diagonals of cells are shorter than the linking length, so that all points of a cell are friends (Creasey 2018). Cells with
//! points are sorted by their place. Each thread looks for friends of some cells in the cells around, until one pair is found, and joins
//! the cells in a forest (Anderson & Woll 1991). The groups do not depend on the order in which threads do this, nor on that of the points.

use super::space::Space;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Length of a cell's diagonal over the linking length.
const DIAGONAL: f64 = 0.9999;
/// Cells with points that a thread takes at a time.
const BATCH: usize = 4096;

/// Returns the groups of at least `least` points, each as the numbers of its points, in any order. There are fewer than 2^32 points,
/// and all are in the box.
pub fn groups(
    points: &[[f64; 3]],
    space: &Space,
    linking_length: f64,
    least: usize,
) -> Vec<Vec<u32>> {
    if points.is_empty() {
        return Vec::new();
    }
    let cells = Cells::new(points, space, linking_length);
    let forest = Forest::new(cells.keys.len());
    let batches = 0..cells.keys.len().div_ceil(BATCH);
    batches.into_par_iter().for_each(|batch| {
        let all = batch * BATCH..((batch + 1) * BATCH).min(cells.keys.len());
        cells.join(all, points, &forest);
    });
    cells.members(&forest, least)
}

/// Place of a cell: `y` and `z` in one number, and `x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    row: u64,
    x: u32,
}

/// A point in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    place: Place,
    point: u32,
}

/// Cells with points.
struct Cells<'a> {
    space: &'a Space,
    linking_length_squared: f64,
    /// Cells along each axis.
    counts: [u64; 3],
    /// Cells along each axis in which friends may be.
    reach: [i64; 3],
    /// Places, ascending.
    keys: Vec<Place>,
    /// First entry of each cell, and the number of entries.
    starts: Vec<u32>,
    /// Points by cell.
    entries: Vec<u32>,
}

impl<'a> Cells<'a> {
    fn new(points: &[[f64; 3]], space: &'a Space, linking_length: f64) -> Self {
        let widest = DIAGONAL * linking_length / 3.0f64.sqrt();
        let counts = space.lengths.map(|length| (length / widest) as u64 + 1);
        let reach = [0, 1, 2].map(|axis| {
            let width = space.lengths[axis] / counts[axis] as f64;
            (linking_length / width) as i64 + 1
        });
        let entry = |(number, point): (usize, &[f64; 3])| {
            let [x, y, z] = space.cell(*point, counts);
            Entry {
                place: Place {
                    row: z * counts[1] + y,
                    x: x as u32,
                },
                point: number as u32,
            }
        };
        let mut sorted: Vec<Entry> = points.par_iter().enumerate().map(entry).collect();
        sorted.par_sort_unstable();
        let (mut keys, mut starts) = (Vec::new(), Vec::new());
        for (n, entry) in sorted.iter().enumerate() {
            if keys.last() != Some(&entry.place) {
                keys.push(entry.place);
                starts.push(n as u32);
            }
        }
        starts.push(points.len() as u32);
        Self {
            space,
            linking_length_squared: linking_length * linking_length,
            counts,
            reach,
            keys,
            starts,
            entries: sorted.iter().map(|entry| entry.point).collect(),
        }
    }

    /// Returns the points of a cell.
    fn of(&self, cell: usize) -> &[u32] {
        &self.entries[self.starts[cell] as usize..self.starts[cell + 1] as usize]
    }

    /// Returns the rows, as offsets along y and z, in which a cell looks for friends: half of those around it, as the other cells look for
    /// friends, too.
    fn rows(&self) -> Vec<[i64; 2]> {
        let [_, ry, rz] = self.reach;
        let beside = (0..=ry).map(|y| [y, 0]);
        let above = (1..=rz).flat_map(|z| (-ry..=ry).map(move |y| [y, z]));
        beside.chain(above).collect()
    }

    /// Joins some cells with those around that have friends of their points.
    fn join(&self, cells: std::ops::Range<usize>, points: &[[f64; 3]], forest: &Forest) {
        let rows = self.rows();
        // places where the last searches of each row and piece ended
        let mut hints = vec![[cells.start; 2]; rows.len()];
        for cell in cells {
            let Place { row, x } = self.keys[cell];
            let [y, z] = [row % self.counts[1], row / self.counts[1]].map(|n| n as i64);
            for ([dy, dz], hints) in rows.iter().zip(&mut hints) {
                let first = match [dy, dz] {
                    [0, 0] => 1,
                    _ => -self.reach[0],
                };
                let (y, z) = (self.shifted(1, y + dy), self.shifted(2, z + dz));
                let (Some(y), Some(z)) = (y, z) else {
                    continue;
                };
                let row = z * self.counts[1] + y;
                let range = [i64::from(x) + first, i64::from(x) + self.reach[0]];
                let pieces = self.space.ranges(0, self.counts[0], range);
                for (piece, hint) in pieces.zip(hints) {
                    let ends = piece.map(|x| Place { row, x: x as u32 });
                    *hint = self.join_with(cell, ends, *hint, points, forest);
                }
            }
        }
    }

    /// Returns a place along an axis in the box; `None` if it is outside.
    fn shifted(&self, axis: usize, at: i64) -> Option<u64> {
        let cells = self.counts[axis] as i64;
        match self.space.periodic[axis] {
            true => Some(at.rem_euclid(cells) as u64),
            false => (0..cells).contains(&at).then_some(at as u64),
        }
    }

    /// Joins a cell with those from one place to another in a row. Returns the number of the first of these; `hint` is a number near
    /// it.
    fn join_with(
        &self,
        cell: usize,
        [first, last]: [Place; 2],
        hint: usize,
        points: &[[f64; 3]],
        forest: &Forest,
    ) -> usize {
        let start = self.search(first, hint);
        let others = self.keys[start..].iter().take_while(|key| **key <= last);
        for other in (start..).zip(others).map(|(other, _)| other) {
            if other != cell
                && forest.root(cell) != forest.root(other)
                && self.are_friends(cell, other, points)
            {
                forest.join(cell, other);
            }
        }
        start
    }

    /// Returns the number of the first cell that is not before a place.
    fn search(&self, place: Place, hint: usize) -> usize {
        let is_before = |key: &Place| *key < place;
        if hint > 0 && self.keys.get(hint - 1).is_some_and(|key| !is_before(key)) {
            return self.keys[..hint].partition_point(is_before);
        }
        let (mut from, mut step) = (hint.min(self.keys.len()), 1);
        while self.keys.get(from + step).is_some_and(is_before) {
            from += step;
            step *= 2;
        }
        let end = (from + step).min(self.keys.len());
        from + self.keys[from..end].partition_point(is_before)
    }

    /// Returns `true` if a pair of points of two cells is not farther apart than the linking length.
    fn are_friends(&self, one: usize, other: usize, points: &[[f64; 3]]) -> bool {
        self.of(one).iter().any(|&a| {
            let a = points[a as usize];
            self.of(other).iter().any(|&b| {
                self.space.distance_squared(a, points[b as usize]) <= self.linking_length_squared
            })
        })
    }

    /// Returns the points of each tree with at least `least` points.
    fn members(&self, forest: &Forest, least: usize) -> Vec<Vec<u32>> {
        let roots: Vec<u32> = (0..self.keys.len())
            .into_par_iter()
            .map(|cell| forest.root(cell))
            .collect();
        let mut sizes = vec![0u32; roots.len()];
        for (cell, &root) in roots.iter().enumerate() {
            sizes[root as usize] += self.of(cell).len() as u32;
        }
        let mut groups = Vec::new();
        let mut numbers = vec![u32::MAX; roots.len()];
        for (cell, &size) in sizes.iter().enumerate() {
            if size as usize >= least {
                numbers[cell] = groups.len() as u32;
                groups.push(Vec::with_capacity(size as usize));
            }
        }
        for (cell, &root) in roots.iter().enumerate() {
            if let Some(group) = groups.get_mut(numbers[root as usize] as usize) {
                group.extend_from_slice(self.of(cell));
            }
        }
        groups
    }
}

/// Trees of cells that several threads join.
struct Forest(Vec<AtomicU32>);

impl Forest {
    /// Creates a tree of each cell.
    fn new(cells: usize) -> Self {
        Self((0..cells as u32).map(AtomicU32::new).collect())
    }

    fn parent(&self, cell: u32) -> u32 {
        self.0[cell as usize].load(Ordering::Relaxed)
    }

    /// Returns the root of the tree of a cell, and shortens the way to it.
    fn root(&self, cell: usize) -> u32 {
        let mut cell = cell as u32;
        loop {
            let parent = self.parent(cell);
            let above = self.parent(parent);
            if above == parent {
                return parent;
            }
            // another thread may have changed it, also to an ancestor
            let _ = self.0[cell as usize].compare_exchange_weak(
                parent,
                above,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            cell = above;
        }
    }

    /// Joins the trees of two cells. The smaller root stays one.
    fn join(&self, one: usize, other: usize) {
        loop {
            let (a, b) = (self.root(one), self.root(other));
            if a == b {
                return;
            }
            let (low, high) = (a.min(b), a.max(b));
            let changed = self.0[high as usize].compare_exchange(
                high,
                low,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if changed.is_ok() {
                return;
            }
        }
    }
}
