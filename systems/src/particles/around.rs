//! What a cloud feels of the cells that it covers.

use super::columns::Precise;
use nestar_kernels::PATCH;
use nestar_kernels::particles::cloud::{lowest, share, weights};

/// Layers of cells beyond a patch that clouds reach, a cell ahead of their particles.
pub const REACH: usize = 2;
/// Cells of a block along an axis.
const SIDE: usize = PATCH + 2 * REACH;
/// Cells of a block.
pub const BLOCK: usize = SIDE * SIDE * SIDE;

/// Vectors in and around a patch at a time, `[component][z][y][x]`: accelerations, or velocities.
pub struct Around<R> {
    /// The values: one vector, or two.
    pub values: Vec<R>,
    /// From the time of the particles to that of the values.
    pub ahead: R,
}

impl<R: Precise> Around<R> {
    /// What a cloud at a place feels, a cell beyond the patch at most; `second`: the second vector, where there are two.
    #[inline(always)]
    pub fn at(&self, place: [u64; 3], step: [i32; 3], cloud: i32, second: bool) -> [R; 3] {
        let first = if second && self.values.len() > 3 * BLOCK {
            3
        } else {
            0
        };
        let reach = REACH as i32;
        let corner = [0, 1, 2].map(|a| {
            let cell = PATCH as i32 * step[a] + lowest(place[a], cloud) + reach;
            cell.clamp(0, SIDE as i32 - cloud) as usize
        });
        let along = place.map(|place| weights::<R>(share(place, cloud), cloud));
        let start = corner[0] + SIDE * (corner[1] + SIDE * corner[2]);
        let cells = cloud as usize;
        let mut sums = [R::lit(0.0); 3];
        for (component, sum) in sums.iter_mut().enumerate() {
            let values = &self.values[(first + component) * BLOCK + start..];
            for k in 0..cells {
                let mut plane = R::lit(0.0);
                for j in 0..cells {
                    let line = &values[SIDE * (j + SIDE * k)..][..cells];
                    let mut row = R::lit(0.0);
                    for i in 0..cells {
                        row += along[0][i] * line[i];
                    }
                    plane += along[1][j] * row;
                }
                *sum += along[2][k] * plane;
            }
        }
        sums
    }
}
