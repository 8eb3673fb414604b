//! Coarse values in and around a row, and their interpolation to its finer cells.

use super::stencil::trilinear;
use crate::PATCH;
use nestar_device::Real;

/// Number of coarse cells along an axis of a patch, with one layer around them.
const SIDE: usize = PATCH / 2 + 2;

/// Coarse values of a row of `N`^3 cells: its own (`N`/2)^3 and one layer around them.
pub(super) struct PaddedCoarseBlock<R, const N: usize>([R; SIDE * SIDE * SIDE]);

impl<R: Real, const N: usize> PaddedCoarseBlock<R, N> {
    /// Fills the block from a function of the position relative to the first coarse cell of the row, -1 to `N`/2 along
    /// each axis.
    pub fn of(value: impl Fn([i32; 3]) -> R) -> Self {
        let mut values = [R::lit(0.0); SIDE * SIDE * SIDE];
        let side = N / 2 + 2;
        for n in 0..side * side * side {
            let place = [n % side, n / side % side, n / (side * side)].map(|x| x as i32 - 1);
            values[n] = value(place);
        }
        Self(values)
    }

    /// Calls `visit` for each plane normal to z, with its first cell and the interpolated values.
    pub fn interpolate(&self, mut visit: impl FnMut(usize, &[R])) {
        let side = N / 2 + 2;
        // the coarse cell that contains a fine one, and its nearest neighbour
        let pair = |x: usize| [x / 2 + 1, x / 2 + 2 * (x % 2)];
        for z in 0..N {
            let mut corners = [[R::lit(0.0); PATCH * PATCH]; 8];
            for (bits, corner) in corners.iter_mut().enumerate() {
                let plane = side * side * pair(z)[bits >> 2];
                for y in 0..N {
                    let line = &self.0[plane + side * pair(y)[bits >> 1 & 1]..][..side];
                    for x in 0..N {
                        corner[N * y + x] = line[pair(x)[bits & 1]];
                    }
                }
            }
            let mut values = [R::lit(0.0); PATCH * PATCH];
            let [a, b, c, d, e, f, g, h] = &corners;
            for (n, value) in values.iter_mut().enumerate() {
                *value = trilinear(&[a[n], b[n], c[n], d[n], e[n], f[n], g[n], h[n]]);
            }
            visit(N * N * z, &values[..N * N]);
        }
    }
}
