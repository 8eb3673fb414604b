//! Where clouds go that are of two widths.

use super::super::columns::{Page, Precise};
use super::super::zone::{Zone, cell_of};
use super::block::Block;
use super::seen::Seen;
use nestar_kernels::particles::motion::in_parent;

/// Where the clouds of particles in patches of a level and finer ones go.
pub struct Blocks {
    /// How much finer the patches are than the level of the sums.
    pub finer: usize,
    /// Sums of the level.
    pub own: Block,
    /// Sums of the next coarser one, for clouds as wide as its cells that the level has a part of.
    pub coarser: Option<Block>,
}

impl Blocks {
    /// Adds the cloud of a particle of the patch at an index.
    #[inline(always)]
    pub fn add<R: Precise>(
        &mut self,
        (seen, page, n): (&Seen<R>, &Page<R>, usize),
        (zone, index): (&Zone, [i32; 3]),
    ) {
        let (place, step) = seen.place(page, n);
        let (mass, cloud) = (seen.weight(page, n), seen.cloud);
        let patch = [0, 1, 2].map(|a| i64::from(index[a] + step[a]));
        if !zone.is_inner(cell_of(place, step)) {
            return self.own.add_cloud((place, patch, self.finer), mass, cloud);
        }
        let place = [0, 1, 2].map(|a| in_parent(place[a], (patch[a] & 1) as u32));
        let patch = patch.map(|i| i >> 1);
        match &mut self.coarser {
            Some(block) => block.add_cloud((place, patch, 0), mass, cloud),
            None => self
                .own
                .add_cloud((place, patch, self.finer - 1), mass, cloud),
        }
    }
}
