//! Coarse grids of corrections, with 4^3, 2^3 and 1 cells per row, on the host; `coarse.cu` is the device version.

use super::ghost_values::{around, coloured};
use super::mirrors::{mirrors_beside, reflected};
use super::stencil::{diagonal, laplacian, relaxed, trilinear};
use crate::PATCH;
use crate::mesh::means::mean8;
use crate::mesh::{Rows, direction};
use nestar_device::Real;
use nestar_device::math::sum3;

/// A grid of corrections: laplacian(values) = rhs, with `N`^3 cells per row.
pub struct CoarseGrid<'a, R> {
    /// Neighbours of all rows.
    pub neighbours: &'a [[i32; 27]],
    /// Indices of all rows.
    pub index: &'a [[i32; 3]],
    /// Corrections.
    pub values: Rows<'a, R>,
    /// Right-hand side.
    pub rhs: Rows<'a, R>,
    /// 1 / width^2 along the axes.
    pub weights: [R; 3],
    /// Factor from the correction of a cell to that of its ghost cell outside the level.
    pub mirror: R,
    /// Bit mask of the faces of the domain beyond which corrections continue evenly.
    pub mirrored: i32,
    /// Number of patches of the level along the axes.
    pub patches: [i32; 3],
}

/// Returns the ghost factor of a grid whose cells have `width` cells of the level. Corrections vanish `reach` cells
/// outside the boundary: 1 (centre of the first coarse cell), or 1/2 for the root level.
#[must_use]
pub fn mirror(width: f64, reach: f64) -> f64 {
    (reach - 0.5 * width) / (reach + 0.5 * width)
}

impl<R: Real> CoarseGrid<'_, R> {
    /// Returns Laplacian and diagonal in a cell.
    #[inline(always)]
    fn laplacian<const N: usize>(&self, row: u32, cell: usize) -> (R, R) {
        let u = self.values.get(row, cell);
        let (mut values, missing) =
            around::<R, N>(&self.values, &self.neighbours[row as usize], row, cell);
        let mirrors = if missing == 0 {
            0
        } else {
            self.mirrors_beside(row)
        };
        for (face, value) in values.iter_mut().enumerate() {
            if missing >> face & 1 == 1 {
                let same = mirrors >> face & 1 == 1;
                *value = if same { u } else { self.mirror * u };
            }
        }
        let whole = diagonal(&self.weights, missing, mirrors, self.mirror);
        (laplacian(u, &values, &self.weights), whole)
    }

    /// Returns the bit mask of mirrored faces at which a row lies.
    fn mirrors_beside(&self, row: u32) -> i32 {
        mirrors_beside(self.mirrored, &self.patches, &self.index[row as usize])
    }

    /// Returns the colour of the first cell of a row.
    fn parity<const N: usize>(&self, row: u32) -> usize {
        match N {
            1 => self.index[row as usize].iter().sum::<i32>() as usize & 1,
            _ => 0,
        }
    }
}

/// Relaxes the cells of one colour of a row.
///
/// # Safety
/// Others may relax the same colour of other rows meanwhile; nobody else may use the corrections.
pub unsafe fn relax<R: Real, const N: usize>(
    grid: &CoarseGrid<R>,
    row: u32,
    colour: usize,
    omega: R,
) {
    for cell in coloured::<N>(colour ^ grid.parity::<N>(row)) {
        let (change, whole) = grid.laplacian::<N>(row, cell);
        let u = grid.values.get(row, cell);
        let value = relaxed(u, change, grid.rhs.get(row, cell), whole, omega);
        // SAFETY: the caller's contract.
        unsafe { grid.values.set(row, cell, value) };
    }
}

/// Restricts the residual to the row of half as many cells along each axis, and sets its corrections to 0.
///
/// # Safety
/// Nobody else may use this row of `to` and of `correction` meanwhile.
pub unsafe fn restrict_residual<R: Real, const N: usize>(
    grid: &CoarseGrid<R>,
    row: u32,
    to: &Rows<R>,
    correction: &Rows<R>,
) {
    let half = N / 2;
    for n in 0..half * half * half {
        let [x, y, z] = [n % half, n / half % half, n / (half * half)].map(|x| 2 * x);
        let of = |side: usize| {
            let at = [x + (side & 1), y + (side >> 1 & 1), z + (side >> 2)];
            let cell = at[0] + N * (at[1] + N * at[2]);
            grid.rhs.get(row, cell) - grid.laplacian::<N>(row, cell).0
        };
        // SAFETY: the caller's contract.
        unsafe {
            to.set(row, n, mean8(&std::array::from_fn(of)));
            correction.set(row, n, R::lit(0.0));
        }
    }
}

/// Prolongs the corrections of a grid to a row of twice as many cells along each axis, `N`, and adds them.
///
/// # Safety
/// Nobody else may use this row of `to` meanwhile.
pub unsafe fn prolong<R: Real, const N: usize>(grid: &CoarseGrid<R>, row: u32, to: &Rows<R>) {
    let corrections = PaddedCoarseBlock::<R, N>::of(|place| grid.at(row, place, N as i32 / 2));
    // SAFETY: the caller's contract.
    let cells = unsafe { to.row_mut(row) };
    corrections.interpolate(|first, values| {
        for (cell, value) in cells[first..].iter_mut().zip(values) {
            *cell += *value;
        }
    });
}

impl<R: Real> CoarseGrid<'_, R> {
    /// Returns row and cell of a position relative to the first cell of a row of `size`^3, at most one cell outside it.
    fn find(&self, row: u32, place: [i32; 3], size: i32) -> Option<(u32, usize)> {
        let step = place.map(|x| x.div_euclid(size));
        let beside = self.neighbours[row as usize][direction(step)];
        let [x, y, z] = place.map(|x| x.rem_euclid(size));
        let cell = (x + size * (y + size * z)) as usize;
        u32::try_from(beside).ok().map(|beside| (beside, cell))
    }

    /// Returns the correction there.
    fn at(&self, row: u32, place: [i32; 3], size: i32) -> R {
        match self.find(row, place, size) {
            Some((beside, cell)) => self.values.get(beside, cell),
            None => self.outside(row, place, size),
        }
    }

    /// Returns the correction outside the level.
    #[cold]
    fn outside(&self, row: u32, place: [i32; 3], size: i32) -> R {
        let place = reflected(self.mirrors_beside(row), &place, size);
        match self.find(row, place, size) {
            Some((beside, cell)) => self.values.get(beside, cell),
            None => self.ghost(row, place, size),
        }
    }

    /// Returns a ghost value: the mean of the values across the boundary along each axis (of existing ones, if there
    /// are any), times the ghost factor.
    fn ghost(&self, row: u32, place: [i32; 3], size: i32) -> R {
        let across: [Option<[i32; 3]>; 3] = std::array::from_fn(|axis| {
            let mut to = place;
            to[axis] = to[axis].clamp(0, size - 1);
            (to != place).then_some(to)
        });
        let found = |to: &[i32; 3]| self.find(row, *to, size).is_some();
        let any = across.iter().flatten().any(found);
        let (mut terms, mut count) = ([R::lit(0.0); 3], R::lit(0.0));
        for (term, to) in terms.iter_mut().zip(across) {
            if let Some(to) = to.filter(|to| !any || found(to)) {
                *term = self.at(row, to, size);
                count += R::lit(1.0);
            }
        }
        self.mirror * (sum3(terms[0], terms[1], terms[2]) / count)
    }
}

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
