//! Where clouds go that are of two widths.

use super::super::columns::{Page, ParticleReal};
use super::super::zone::{BoundaryZone, cell_of};
use super::block::CloudBlock;
use super::seen::PredictedPositions;
use nestar_kernels::particles::motion::in_parent;

/// Where the clouds of particles in patches of a level and finer ones go.
pub struct CloudBlocks {
    /// How much finer the patches are than the level of the sums.
    pub finer: usize,
    /// Sums of the level.
    pub own: CloudBlock,
    /// Sums of the next coarser one, for clouds as wide as its cells that the level has a part of.
    pub coarser: Option<CloudBlock>,
}

impl CloudBlocks {
    /// Adds the clouds of the first particles of a page of the patch at an index, `W` cells wide.
    #[inline(always)]
    pub fn add<R: ParticleReal, const W: usize>(
        &mut self,
        seen: &PredictedPositions<R>,
        (page, count): (&Page<R>, usize),
        (zone, index): (&BoundaryZone, [i32; 3]),
    ) {
        if !zone.has_inner() {
            let patch = (index, self.finer);
            return self.own.add_clouds::<R, W>(patch, seen, (page, count));
        }
        for n in 0..count {
            let cloud = (seen.place(page, n), seen.weight(page, n));
            self.add_beside::<W>(cloud, (zone, index));
        }
    }

    /// Adds the cloud of a particle of a patch beside a coarser level, which may be as wide as that level's cells.
    #[inline(always)]
    fn add_beside<const W: usize>(
        &mut self,
        ((mut place, step), mass): (([u64; 3], [i32; 3]), u64),
        (zone, index): (&BoundaryZone, [i32; 3]),
    ) {
        let mut patch = [index[0] + step[0], index[1] + step[1], index[2] + step[2]];
        if !zone.is_inner(cell_of(place, step)) {
            return self.own.add_cloud::<W>((place, patch, self.finer), mass);
        }
        for axis in 0..3 {
            place[axis] = in_parent(place[axis], (patch[axis] & 1) as u32);
            patch[axis] >>= 1;
        }
        match &mut self.coarser {
            Some(block) => block.add_cloud::<W>((place, patch, 0), mass),
            None => self
                .own
                .add_cloud::<W>((place, patch, self.finer - 1), mass),
        }
    }
}
