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
    /// What a cloud feels that is `W` cells wide, at a place a cell beyond the patch at most, of values in `L` layers around it; `second`: the
    /// second vector, where there are two.
    #[inline(always)]
    pub fn at<const W: usize, const L: usize>(
        &self,
        (place, step): ([u64; 3], [i32; 3]),
        second: bool,
    ) -> [R; 3] {
        let (side, cloud) = (PATCH + 2 * L, W as i32);
        let block = side * side * side;
        let first = match second && self.values.len() > 3 * block {
            true => 3,
            false => 0,
        };
        let (mut start, mut along) = (first * block, [[R::lit(0.0); 3]; 3]);
        for (axis, stride) in [1, side, side * side].into_iter().enumerate() {
            let cell = PATCH as i32 * step[axis] + lowest(place[axis], cloud) + L as i32;
            start += cell.clamp(0, side as i32 - cloud) as usize * stride;
            along[axis] = weights::<R>(share(place[axis], cloud), cloud);
        }
        let mut sums = [R::lit(0.0); 3];
        for (component, sum) in sums.iter_mut().enumerate() {
            let cells = (W - 1) * (side * side + side) + W;
            let values = &self.values[component * block + start..][..cells];
            for k in 0..W {
                let mut plane = R::lit(0.0);
                for j in 0..W {
                    let line = &values[side * (j + side * k)..][..W];
                    let mut row = R::lit(0.0);
                    for i in 0..W {
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
