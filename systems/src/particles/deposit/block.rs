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

    /// Calls `give` with the steps to the patches that have any mass, and their cells.
    pub fn by_patch(&self, mut give: impl FnMut([i32; 3], &[u64; CELLS])) {
        for d in 0..27 {
            let step = [d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1];
            // the cells of the block in that patch
            let range = |axis: usize| match step[axis] {
                -1 => (0, 2, PATCH - 2),
                0 => (2, PATCH, 0),
                _ => (PATCH + 2, 2, 0),
            };
            let [x, y, z] = [0, 1, 2].map(range);
            let mut cells = [0; CELLS];
            let mut any = 0;
            for k in 0..z.1 {
                for j in 0..y.1 {
                    let from = x.0 + SIDE * (y.0 + j + SIDE * (z.0 + k));
                    let to = x.2 + PATCH * (y.2 + j + PATCH * (z.2 + k));
                    for i in 0..x.1 {
                        cells[to + i] = self.sums[from + i];
                        any |= self.sums[from + i];
                    }
                }
            }
            if any != 0 {
                give(step, &cells);
            }
        }
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
