//! Sums in the cells in and around a patch.

use nestar_engine::mesh::Topology;
use nestar_kernels::particles::cloud::{lowest, parts, share};
use nestar_kernels::{CELLS, PATCH};

/// Cells along an axis of a patch and what clouds reach around it, particles being at most a cell beyond their patch.
const SIDE: usize = PATCH + 4;
const BLOCK: usize = SIDE * SIDE * SIDE;
/// The first cell of a block, counted from that of the patch.
const FIRST: i64 = -2;

/// Sums in the cells in and around a patch.
pub struct Block {
    /// Index of the patch on the level of the sums.
    pub index: [i32; 3],
    sums: Box<[u64; BLOCK]>,
}

impl Block {
    /// No mass.
    pub fn new(index: [i32; 3]) -> Self {
        Self {
            index,
            sums: Box::new([0; BLOCK]),
        }
    }

    /// Adds mass to a cell, counted from the first of the patch.
    #[inline(always)]
    fn add(&mut self, cell: [i64; 3], mass: u64) {
        let [x, y, z] = cell.map(|i| (i - FIRST) as usize);
        self.sums[x + SIDE * (y + SIDE * z)] += mass;
    }

    /// Takes what lies beyond faces of the domain back into it, as a mirror would.
    pub fn fold(&mut self, topology: &Topology, level: usize) {
        for (axis, stride) in [1, SIDE, SIDE * SIDE].into_iter().enumerate() {
            for side in [-1, 1] {
                let mut step = [0; 3];
                step[axis] = side;
                if topology.place_beside(level, self.index, step).is_some() {
                    continue;
                }
                for (n, depth) in (0..BLOCK).flat_map(|n| [(n, 0), (n, 1)]) {
                    let (first, last) = (2, PATCH + 1);
                    if n / stride % SIDE != 0 {
                        continue;
                    }
                    let (from, to) = match side {
                        -1 => (first - 1 - depth, first + depth),
                        _ => (last + 1 + depth, last - depth),
                    };
                    let beyond = std::mem::take(&mut self.sums[n + from * stride]);
                    self.sums[n + to * stride] += beyond;
                }
            }
        }
    }

    /// The steps to the patches that have any mass, and their parts.
    pub fn by_patch(&self) -> impl Iterator<Item = ([i32; 3], Part<'_>)> {
        let steps = (0..27).map(|d| [d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1]);
        let parts = steps.map(|step| (step, Part::of(self, step)));
        parts.filter(|(_, part)| {
            part.lines()
                .any(|(_, line)| line.iter().any(|&mass| mass > 0))
        })
    }

    /// Adds the cloud of a particle: `patch` is the index of the patch that its place is counted from, on a level that is `finer` levels finer
    /// than that of the block.
    #[inline(always)]
    pub fn add_cloud(
        &mut self,
        (place, patch, finer): ([u64; 3], [i64; 3], usize),
        mass: u64,
        cloud: i32,
    ) {
        let side = PATCH as i64;
        let first = [0, 1, 2].map(|a| side * patch[a] + i64::from(lowest(place[a], cloud)));
        let shares = place.map(|place| share(place, cloud));
        let base = self.index.map(|i| side * i64::from(i));
        let at = |axis: usize, k: usize| ((first[axis] + k as i64) >> finer) - base[axis];
        let cells = cloud as usize;
        let along_z = parts(mass, shares[2], cloud);
        for k in 0..cells {
            let along_y = parts(along_z[k], shares[1], cloud);
            for j in 0..cells {
                let along_x = parts(along_y[j], shares[0], cloud);
                for i in 0..cells {
                    self.add([at(0, i), at(1, j), at(2, k)], along_x[i]);
                }
            }
        }
    }
}

/// The cells of a block that lie in one patch.
pub struct Part<'a> {
    block: &'a Block,
    /// By axis: the first cell in the block, how many, the first cell in the patch.
    ranges: [(usize, usize, usize); 3],
}

impl<'a> Part<'a> {
    fn of(block: &'a Block, step: [i32; 3]) -> Self {
        let range = |axis: usize| match step[axis] {
            -1 => (0, 2, PATCH - 2),
            0 => (2, PATCH, 0),
            _ => (PATCH + 2, 2, 0),
        };
        let ranges = [range(0), range(1), range(2)];
        Self { block, ranges }
    }

    /// Its lines along x, each with the number of its first cell in the patch.
    #[inline(always)]
    pub fn lines(&self) -> impl Iterator<Item = (usize, &'a [u64])> {
        let (block, [x, y, z]) = (self.block, self.ranges);
        let lines = (0..z.1).flat_map(move |k| (0..y.1).map(move |j| (j, k)));
        lines.map(move |(j, k)| {
            let from = x.0 + SIDE * (y.0 + j + SIDE * (z.0 + k));
            let to = x.2 + PATCH * (y.2 + j + PATCH * (z.2 + k));
            (to, &block.sums[from..from + x.1])
        })
    }

    /// The cells of the whole patch.
    pub fn cells(&self) -> [u64; CELLS] {
        let mut cells = [0; CELLS];
        for (first, line) in self.lines() {
            cells[first..first + line.len()].copy_from_slice(line);
        }
        cells
    }
}
