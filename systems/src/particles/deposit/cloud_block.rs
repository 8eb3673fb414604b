//! Deposits clouds into a patch and its ghost cells; clouds are as wide as coarse cells in the boundary zone.

use super::super::boundary_zone::{BoundaryZone, cell_of};
use super::super::pages::{PAGE, Page, ParticleReal};
use super::PredictedPositions;
use nestar_engine::mesh::{Topology, offset};
use nestar_kernels::particles::cloud::{centre, first_cell, parts, share};
use nestar_kernels::particles::motion::in_parent;
use nestar_kernels::{CELLS, PATCH};

/// Cells of a block along an axis: a patch and two ghost layers on each side. Particles are predicted up to
/// one cell outside their patch.
const SIDE: usize = PATCH + 4;
const BLOCK: usize = SIDE * SIDE * SIDE;
/// Smallest width of clouds in cells of a coarser level. A narrower cloud would not have the centre that the cloud in cells of
/// the particle's level has.
pub const WIDE: usize = 2;
/// First cell of a block relative to that of the patch.
const FIRST: i32 = -2;

/// Mass quanta in a patch and its ghost cells.
pub struct CloudBlock {
    /// Index of the patch on the level of the deposit.
    pub index: [i32; 3],
    /// Ghost layers that clouds may reach, at most 2.
    layers: usize,
    sums: Box<[u64; BLOCK]>,
}

impl CloudBlock {
    /// Creates an empty block.
    pub fn new(index: [i32; 3], layers: usize) -> Self {
        Self {
            index,
            layers,
            sums: Box::new([0; BLOCK]),
        }
    }

    /// Clears the block and moves it to another patch.
    pub fn reset(&mut self, index: [i32; 3]) {
        self.index = index;
        self.sums.fill(0);
    }

    /// Moves mass beyond the domain faces into the domain. Walls reflect it. At open faces the last two cells receive it with the
    /// weights of a linear extrapolation, of which one is negative: their sum is the mass, and their centre that of the cloud.
    pub fn fold(&mut self, topology: &Topology, level: usize, walls: [[bool; 2]; 3]) {
        for (axis, stride) in [1, SIDE, SIDE * SIDE].into_iter().enumerate() {
            for side in [-1, 1] {
                let mut step = [0; 3];
                step[axis] = side;
                if topology.place_beside(level, self.index, step).is_some() {
                    continue;
                }
                let is_wall = walls[axis][usize::from(side > 0)];
                for (n, depth) in (0..BLOCK).flat_map(|n| [(n, 1), (n, 2)]) {
                    if n / stride % SIDE != 0 {
                        continue;
                    }
                    // cells count from the last one in the domain, outwards
                    let cell = |number: i32| match side {
                        -1 => n + (2 - number) as usize * stride,
                        _ => n + (PATCH as i32 + 1 + number) as usize * stride,
                    };
                    let beyond = std::mem::take(&mut self.sums[cell(depth)]);
                    let mut add = |number: i32, mass: u64| {
                        let sum = &mut self.sums[cell(number)];
                        *sum = sum.wrapping_add(mass);
                    };
                    if is_wall {
                        add(1 - depth, beyond);
                        continue;
                    }
                    let times = depth as u64;
                    add(0, beyond.wrapping_mul(1 + times));
                    add(-1, beyond.wrapping_mul(times).wrapping_neg());
                }
            }
        }
    }

    /// Returns the part of the block in the neighbour patch of a direction.
    pub fn part(&self, direction: usize) -> PatchPart<'_> {
        let step = offset(direction);
        let range = |axis: usize| match step[axis] {
            -1 => (2 - self.layers, self.layers, PATCH - self.layers),
            0 => (2, PATCH, 0),
            _ => (PATCH + 2, self.layers, 0),
        };
        PatchPart {
            block: self,
            ranges: [range(0), range(1), range(2)],
        }
    }

    /// Returns the block cells that a cloud covers along an axis, scaled by the stride of the axis. `first`
    /// counts cells of a level that is `finer` levels finer, from the first cell of the block's patch.
    #[inline(always)]
    fn covered<const W: usize>(first: i32, finer: usize, axis: usize) -> [u32; W] {
        let stride = [1, SIDE, SIDE * SIDE][axis] as u32;
        std::array::from_fn(|k| (((first + k as i32) >> finer) - FIRST) as u32 * stride)
    }

    /// Returns the first cell of a patch along an axis, on a level that is `finer` levels finer. Cells count
    /// from the first one of the block's patch.
    #[inline(always)]
    fn first_of_patch(&self, patch: i32, finer: usize, axis: usize) -> i32 {
        PATCH as i32 * (patch - (self.index[axis] << finer))
    }

    /// Deposits the cloud of a particle, `W` cells wide, in the cells of a patch `finer` levels finer than
    /// the block.
    #[inline(always)]
    pub fn add_cloud<const W: usize>(
        &mut self,
        offset: [u64; 3],
        patch: [i32; 3],
        finer: usize,
        mass: u64,
    ) {
        self.change_by_cloud::<W, true>(offset, patch, finer, mass);
    }

    /// Deposits the cloud of a particle as [`CloudBlock::add_cloud`], or removes it.
    #[inline(always)]
    fn change_by_cloud<const W: usize, const ADDED: bool>(
        &mut self,
        offset: [u64; 3],
        patch: [i32; 3],
        finer: usize,
        mass: u64,
    ) {
        let at = [0, 1, 2].map(|axis| {
            let first =
                self.first_of_patch(patch[axis], finer, axis) + first_cell(offset[axis], W as i32);
            Self::covered::<W>(first, finer, axis)
        });
        let shares = offset.map(|offset| share(offset, W as i32));
        self.change::<W, ADDED>(at, shares, mass);
    }

    /// Deposits the clouds of the first particles of a page at their predicted positions. The cells are
    /// computed for the whole page, so that the loops vectorise. The page is in a patch `finer + up` levels finer than the
    /// block, and clouds are `up` levels coarser than the patch. `CENTRED` moves them to the centres of the cells of the patch.
    #[inline(always)]
    pub fn add_clouds<R: ParticleReal, const W: usize, const CENTRED: bool>(
        &mut self,
        patch: [i32; 3],
        finer: usize,
        up: usize,
        seen: &PredictedPositions<R>,
        page: &Page<R>,
        count: usize,
    ) {
        let (offsets, steps) = seen.offsets(page);
        let (mut at, mut shares) = ([[[0; PAGE]; W]; 3], [[0; PAGE]; 3]);
        for axis in 0..3 {
            for n in 0..PAGE {
                let offset = match CENTRED {
                    true => centre(offsets[axis][n], 61),
                    false => offsets[axis][n],
                };
                let (offset, patch) = in_ancestor(offset, patch[axis] + steps[axis][n], up);
                let first = self.first_of_patch(patch, finer, axis) + first_cell(offset, W as i32);
                let covered = Self::covered::<W>(first, finer, axis);
                for k in 0..W {
                    at[axis][k][n] = covered[k];
                }
                shares[axis][n] = share(offset, W as i32);
            }
        }
        for n in 0..count {
            let at = at.each_ref().map(|at| at.each_ref().map(|at| at[n]));
            let shares = shares.each_ref().map(|shares| shares[n]);
            self.change::<W, true>(at, shares, seen.weight(page, n));
        }
    }

    /// Deposits a mass in the cells that a cloud covers, or removes it.
    #[inline(always)]
    fn change<const W: usize, const ADDED: bool>(
        &mut self,
        at: [[u32; W]; 3],
        [x, y, z]: [u32; 3],
        mass: u64,
    ) {
        let cloud = W as i32;
        let along_z = parts(mass, z, cloud);
        for k in 0..W {
            let along_y = parts(along_z[k], y, cloud);
            for j in 0..W {
                let along_x = parts(along_y[j], x, cloud);
                for i in 0..W {
                    let sum = &mut self.sums[(at[0][i] + at[1][j] + at[2][k]) as usize];
                    *sum = match ADDED {
                        true => sum.wrapping_add(along_x[i]),
                        false => sum.wrapping_sub(along_x[i]),
                    };
                }
            }
        }
    }
}

/// Cells of a block that lie in one patch.
pub struct PatchPart<'a> {
    block: &'a CloudBlock,
    /// By axis: the first cell in the block, the number of cells, the first cell in the patch.
    ranges: [(usize, usize, usize); 3],
}

impl<'a> PatchPart<'a> {
    /// Returns the lines along x: first cells in the block and in the patch.
    #[inline(always)]
    fn starts(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let [x, y, z] = self.ranges;
        let lines = (0..z.1).flat_map(move |k| (0..y.1).map(move |j| (j, k)));
        lines.map(move |(j, k)| {
            let from = x.0 + SIDE * (y.0 + j + SIDE * (z.0 + k));
            let to = x.2 + PATCH * (y.2 + j + PATCH * (z.2 + k));
            (from, to)
        })
    }

    /// Returns the lines along x, each with the index of its first cell in the patch.
    #[inline(always)]
    pub fn lines(&self) -> impl Iterator<Item = (usize, &'a [u64])> {
        let (sums, length) = (&self.block.sums, self.ranges[0].1);
        let lines = self.starts();
        lines.map(move |(from, to)| (to, &sums[from..from + length]))
    }

    /// Adds the part to the cells of the patch.
    pub fn add_to(&self, cells: &mut [u64; CELLS]) {
        // fixed lengths make this three times faster
        match self.ranges[0].1 {
            1 => self.add_lines::<1>(cells),
            2 => self.add_lines::<2>(cells),
            PATCH => self.add_lines::<PATCH>(cells),
            _ => {}
        }
    }

    #[inline(always)]
    fn add_lines<const N: usize>(&self, cells: &mut [u64; CELLS]) {
        for (from, to) in self.starts() {
            let line = self.block.sums[from..].first_chunk::<N>();
            let cells = cells[to..].first_chunk_mut::<N>();
            // skip empty lines, which saves memory traffic
            if let (Some(cells), Some(line)) = (cells, line.filter(|line| **line != [0; N])) {
                for n in 0..N {
                    cells[n] = cells[n].wrapping_add(line[n]);
                }
            }
        }
    }

    /// Returns `true` if the part has no mass.
    pub fn is_empty(&self) -> bool {
        self.lines()
            .all(|(_, line)| line.iter().all(|&mass| mass == 0))
    }

    /// Copies the part to the cells of a whole patch.
    pub fn cells(&self) -> [u64; CELLS] {
        let mut cells = [0; CELLS];
        for (first, line) in self.lines() {
            cells[first..first + line.len()].copy_from_slice(line);
        }
        cells
    }
}

/// Converts an offset in a patch to the ancestor `up` levels above. Returns the index of the ancestor as well.
#[inline(always)]
fn in_ancestor(offset: u64, patch: i32, up: usize) -> (u64, i32) {
    match up {
        0 => (offset, patch),
        _ => (offset >> up | (patch as u64) << (64 - up), patch >> up),
    }
}

/// Destination blocks of the clouds in patches of one level.
pub struct CloudBlocks {
    /// Number of levels by which the patches are finer than the deposit.
    pub finer: usize,
    /// `true` if clouds on finer levels are as wide as those of the level of the deposit.
    pub are_wide: bool,
    /// `true` to deposit only what is not outside the boundary zone.
    pub only_zone: bool,
    /// Mass on the level of the deposit.
    pub own: CloudBlock,
    /// Mass on the next coarser level, for wide clouds that partly cover cells of the level.
    pub coarser: Option<CloudBlock>,
}

impl CloudBlocks {
    /// Deposits the clouds of the first particles of a page of a patch, without the parts outside the boundary zone if only
    /// those in it are wanted.
    #[inline(always)]
    pub fn add<R: ParticleReal, const W: usize>(
        &mut self,
        seen: &PredictedPositions<R>,
        page: &Page<R>,
        count: usize,
        zone: &BoundaryZone,
        index: [i32; 3],
    ) {
        let (finer, up) = match self.are_wide {
            true => (0, self.finer),
            false => (self.finer, 0),
        };
        if !self.only_zone && (!zone.has_inner() || up > 0) {
            return match up > 0 && W < WIDE {
                true => (self.own).add_clouds::<R, WIDE, true>(index, finer, up, seen, page, count),
                false => (self.own).add_clouds::<R, W, false>(index, finer, up, seen, page, count),
            };
        }
        for n in 0..count {
            let mass = seen.weight(page, n);
            let (offset, step) = seen.offset(page, n);
            let deep = match self.only_zone {
                true => seen.deep_part(page, n, zone, mass),
                false => 0,
            };
            if !zone.is_inner(cell_of(offset, step)) {
                if deep < mass {
                    self.add_beside::<W>(offset, step, mass - deep, zone, index);
                }
                continue;
            }
            self.add_beside::<W>(offset, step, mass, zone, index);
            if deep > 0 {
                let patch = [0, 1, 2].map(|axis| index[axis] + step[axis]);
                (self.own).change_by_cloud::<W, false>(offset, patch, self.finer, deep);
            }
        }
    }

    /// Deposits the cloud of a particle near a coarser level; the cloud is wide if the particle is in the
    /// boundary zone.
    #[inline(always)]
    fn add_beside<const W: usize>(
        &mut self,
        mut offset: [u64; 3],
        step: [i32; 3],
        mass: u64,
        zone: &BoundaryZone,
        index: [i32; 3],
    ) {
        let mut patch = [index[0] + step[0], index[1] + step[1], index[2] + step[2]];
        if !zone.is_inner(cell_of(offset, step)) {
            return self.own.add_cloud::<W>(offset, patch, self.finer, mass);
        }
        for axis in 0..3 {
            if W < WIDE {
                offset[axis] = centre(offset[axis], 61);
            }
            offset[axis] = in_parent(offset[axis], (patch[axis] & 1) as u32);
            patch[axis] >>= 1;
        }
        let (block, finer) = match &mut self.coarser {
            Some(block) => (block, 0),
            None => (&mut self.own, self.finer - 1),
        };
        match W < WIDE {
            true => block.add_cloud::<WIDE>(offset, patch, finer, mass),
            false => block.add_cloud::<W>(offset, patch, finer, mass),
        }
    }
}
