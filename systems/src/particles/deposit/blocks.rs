//! Deposits clouds of two widths: in the coarse-fine boundary zone clouds are as wide as coarse cells.

use super::super::columns::{Page, ParticleReal};
use super::super::zone::{BoundaryZone, cell_of};
use super::block::CloudBlock;
use super::seen::PredictedPositions;
use nestar_kernels::particles::motion::in_parent;

/// Destination blocks of the clouds in patches of one level.
pub struct CloudBlocks {
    /// Number of levels by which the patches are finer than the deposit.
    pub finer: usize,
    /// Mass on the level of the deposit.
    pub own: CloudBlock,
    /// Mass on the next coarser level, for wide clouds that partly cover cells of the level.
    pub coarser: Option<CloudBlock>,
}

impl CloudBlocks {
    /// Deposits the clouds of the first particles of a page of a patch.
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
            let cloud = (seen.offset(page, n), seen.weight(page, n));
            self.add_beside::<W>(cloud, (zone, index));
        }
    }

    /// Deposits the cloud of a particle near a coarser level; the cloud is wide if the particle is in the
    /// boundary zone.
    #[inline(always)]
    fn add_beside<const W: usize>(
        &mut self,
        ((mut offset, step), mass): (([u64; 3], [i32; 3]), u64),
        (zone, index): (&BoundaryZone, [i32; 3]),
    ) {
        let mut patch = [index[0] + step[0], index[1] + step[1], index[2] + step[2]];
        if !zone.is_inner(cell_of(offset, step)) {
            return self.own.add_cloud::<W>((offset, patch, self.finer), mass);
        }
        for axis in 0..3 {
            offset[axis] = in_parent(offset[axis], (patch[axis] & 1) as u32);
            patch[axis] >>= 1;
        }
        match &mut self.coarser {
            Some(block) => block.add_cloud::<W>((offset, patch, 0), mass),
            None => self
                .own
                .add_cloud::<W>((offset, patch, self.finer - 1), mass),
        }
    }
}
