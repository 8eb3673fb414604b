//! Vectors around a patch, and their sums over the clouds of particles.

use super::boundary_zone::is_beyond;
use super::pages::{PAGE, Page, ParticleReal};
use nestar_kernels::PATCH;
use nestar_kernels::particles::cloud::{first_cell, share, weights};

/// Ghost layers that clouds can reach, including particles predicted up to one cell outside their patch.
pub const REACH: usize = 2;
/// Cells of a block along an axis.
const SIDE: usize = PATCH + 2 * REACH;
/// Cells of a block.
pub const BLOCK: usize = SIDE * SIDE * SIDE;

/// Vectors (accelerations or velocities) in a patch and its ghost cells, `[component][z][y][x]`.
pub struct VectorWindow<R> {
    /// The values: one vector field, or two.
    pub values: Vec<R>,
    /// Time of the values minus time of the particles.
    pub time_offset: R,
}

impl<R: ParticleReal> VectorWindow<R> {
    /// Extrapolates the values linearly beyond the open faces of the domain. `around` lists the neighbours of the patch, and the
    /// window has `L` ghost layers.
    pub fn extrapolate<const L: usize>(&mut self, around: &[i32; 27], walls: [[bool; 2]; 3]) {
        let side = PATCH + 2 * L;
        for (axis, stride) in [1, side, side * side].into_iter().enumerate() {
            for step in [-1_isize, 1] {
                let is_wall = walls[axis][usize::from(step > 0)];
                if is_wall || !is_beyond(around, axis, step as i32) {
                    continue;
                }
                let last = if step < 0 { L } else { L + PATCH - 1 };
                for n in (0..self.values.len()).filter(|n| n / stride % side == last) {
                    let outwards = step * stride as isize;
                    let at = self.values[n];
                    let slope = at - self.values[n.wrapping_add_signed(-outwards)];
                    for depth in 1..=L {
                        let beyond = n.wrapping_add_signed(depth as isize * outwards);
                        self.values[beyond] = at + R::lit(depth as f64) * slope;
                    }
                }
            }
        }
    }

    /// Returns the components of the first vector field, or of the second one if it is wanted and present. The window has `L`
    /// ghost layers.
    pub fn components<const L: usize>(&self, second: bool) -> &[R] {
        let block = (PATCH + 2 * L).pow(3);
        match second && self.values.len() > 3 * block {
            true => &self.values[3 * block..],
            false => &self.values,
        }
    }

    /// Gathers a vector at an offset up to one cell outside the patch. The cloud is `W` cells wide; the block
    /// has `L` ghost layers. `second` selects the second vector field where there are two.
    #[inline(always)]
    pub fn at<const W: usize, const L: usize>(
        &self,
        offset: [u64; 3],
        step: [i32; 3],
        second: bool,
    ) -> [R; 3] {
        let (side, cloud) = (PATCH + 2 * L, W as i32);
        let (mut start, mut along) = (0, [[R::lit(0.0); 3]; 3]);
        for (axis, stride) in [1, side, side * side].into_iter().enumerate() {
            let cell = PATCH as i32 * step[axis] + first_cell(offset[axis], cloud) + L as i32;
            start += cell.clamp(0, side as i32 - cloud) as usize * stride;
            along[axis] = weights::<R>(share(offset[axis], cloud), cloud);
        }
        gather_cloud::<R, W, L>(self.components::<L>(second), start, along)
    }
}

/// Sums vectors over the `W^3` cells of a cloud, weighted along each axis. The block has `L` ghost layers;
/// `start` is the index of the first cell of the cloud.
#[inline(always)]
fn gather_cloud<R: ParticleReal, const W: usize, const L: usize>(
    values: &[R],
    start: usize,
    along: [[R; 3]; 3],
) -> [R; 3] {
    let side = PATCH + 2 * L;
    let mut sums = [R::lit(0.0); 3];
    for (component, sum) in sums.iter_mut().enumerate() {
        let cells = (W - 1) * (side * side + side) + W;
        let values = &values[component * side * side * side + start..][..cells];
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

/// Clouds of all particles of a page in a block with `L` ghost layers. Computed for the whole page so that
/// the loops vectorise.
pub struct PageClouds<R, const W: usize, const L: usize> {
    start: [u32; PAGE],
    /// Weights of the cells along each axis.
    along: [[[R; PAGE]; W]; 3],
}

impl<R: ParticleReal, const W: usize, const L: usize> PageClouds<R, W, L> {
    /// Computes the clouds of a page.
    #[inline(always)]
    pub fn of(page: &Page<R>) -> Self {
        let (side, cloud) = ((PATCH + 2 * L) as u32, W as i32);
        let (mut start, mut along) = ([0; PAGE], [[[R::lit(0.0); PAGE]; W]; 3]);
        for (axis, stride) in [1, side, side * side].into_iter().enumerate() {
            for n in 0..PAGE {
                let offset = R::widen(page.offset[axis][n]);
                start[n] += (first_cell(offset, cloud) + L as i32) as u32 * stride;
                let weights = weights::<R>(share(offset, cloud), cloud);
                for k in 0..W {
                    along[axis][k][n] = weights[k];
                }
            }
        }
        Self { start, along }
    }

    /// Gathers a vector to particle `n`.
    #[inline(always)]
    pub fn gather_cloud(&self, values: &[R], n: usize) -> [R; 3] {
        let mut along = [[R::lit(0.0); 3]; 3];
        for axis in 0..3 {
            for k in 0..W {
                along[axis][k] = self.along[axis][k][n];
            }
        }
        gather_cloud::<R, W, L>(values, self.start[n] as usize, along)
    }
}

/// Masks of the 27 neighbour directions below, level with and above the patch, by axis.
const BESIDE: [[u32; 3]; 3] = {
    let mut masks = [[0; 3]; 3];
    let mut d = 0;
    while d < 27 {
        masks[0][d % 3] |= 1 << d;
        masks[1][d / 3 % 3] |= 1 << d;
        masks[2][d / 9] |= 1 << d;
        d += 1;
    }
    masks
};

/// Returns the neighbour directions (bits of 27) that the clouds of the first `count` particles of a page
/// reach.
#[inline(always)]
pub fn reached<R: ParticleReal, const W: usize>(page: &Page<R>, count: usize) -> u32 {
    let mut each = [0; PAGE];
    for n in 0..PAGE {
        each[n] = if n < count { u32::MAX } else { 0 };
    }
    for (axis, [below, beside, above]) in BESIDE.into_iter().enumerate() {
        for n in 0..PAGE {
            let first = first_cell(R::widen(page.offset[axis][n]), W as i32);
            let below = if first < 0 { below } else { 0 };
            let above = if first + W as i32 > PATCH as i32 {
                above
            } else {
                0
            };
            each[n] &= below | beside | above;
        }
    }
    each.into_iter().fold(0, |all, own| all | own)
}

#[cfg(test)]
mod tests {
    use super::super::pages::ParticleColumns;
    use super::*;

    #[test]
    fn clouds_of_a_page_are_those_of_its_particles() {
        let columns = ParticleColumns {
            number: 4,
            masses: false,
            scalars: 0,
        };
        let random = |n: u64| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let mut words: Vec<u64> = (0..columns.page_words() as u64).map(random).collect();
        let page = Page::<f32>::of(&mut words, columns);
        let around = VectorWindow {
            values: (0..3000).map(|n| (random(n) >> 40) as f32).collect(),
            time_offset: 0.0,
        };
        let (clouds, mut all) = (PageClouds::<f32, 2, 1>::of(&page), 0);
        for n in 0..PAGE {
            let offset = page.offset_of(n);
            let expected = around.at::<2, 1>(offset, [0; 3], false);
            assert_eq!(clouds.gather_cloud(&around.values, n), expected);
            // corners of the cloud, half a cell away
            for corner in 0..8 {
                let half = [0, 1, 2].map(|axis| 1 - 2 * (corner >> axis & 1));
                let step = [0, 1, 2].map(|axis| {
                    (i128::from(offset[axis]) + half[axis] * (1 << 60)).div_euclid(1 << 64) as i32
                });
                all |= 1 << nestar_kernels::mesh::direction(step);
            }
            assert_eq!(reached::<f32, 2>(&page, n + 1), all, "{n}");
        }
    }
}
