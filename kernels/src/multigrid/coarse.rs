//! Corrections of a level in rows of 4^3, 2^3 and 1 cells, on the host: the twin of coarse.cu.

use super::star::{around, coloured, place};
use super::stencil::{diagonal, laplacian, relaxed, trilinear};
use crate::mesh::means::mean8;
use crate::mesh::{Rows, direction};
use nestar_device::Real;
use nestar_device::math::sum3;

/// A grid of corrections: laplacian(values) = rhs, in rows of `N`^3 cells.
pub struct CoarseGrid<'a, R> {
    /// Neighbours of all rows.
    pub neighbours: &'a [[i32; 27]],
    /// Indices of all rows.
    pub index: &'a [[i32; 3]],
    /// The corrections.
    pub values: Rows<'a, R>,
    /// What they are to make up for.
    pub rhs: Rows<'a, R>,
    /// 1 / width^2 along the axes.
    pub weights: [R; 3],
    /// Beyond the border of the level stands a cell's correction times this.
    pub mirror: R,
}

/// The factor of a grid whose cells are so many times as wide as the level's, where corrections vanish at the centre of the level's
/// first cell beyond the border.
#[must_use]
pub fn mirror(width: f64) -> f64 {
    (1.0 - 0.5 * width) / (1.0 + 0.5 * width)
}

impl<R: Real> CoarseGrid<'_, R> {
    /// Laplacian and diagonal in a cell.
    #[inline(always)]
    fn laplacian<const N: usize>(&self, row: u32, cell: usize) -> (R, R) {
        let u = self.values.get(row, cell);
        let (mut values, missing) =
            around::<R, N>(&self.values, &self.neighbours[row as usize], row, cell);
        for (face, value) in values.iter_mut().enumerate() {
            if missing >> face & 1 == 1 {
                *value = self.mirror * u;
            }
        }
        let whole = diagonal(&self.weights, missing, self.mirror);
        (laplacian(u, &values, &self.weights), whole)
    }

    /// The colour of the first cell of a row.
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

/// Sets the row of half as many cells along each axis to the means of the residual, and its corrections to 0.
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

/// Adds the interpolated corrections of a grid to a row of twice as many cells along each axis, `N`.
///
/// # Safety
/// Nobody else may use this row of `to` meanwhile.
pub unsafe fn prolong<R: Real, const N: usize>(grid: &CoarseGrid<R>, row: u32, to: &Rows<R>) {
    for cell in 0..N * N * N {
        let value = to.get(row, cell) + trilinear(&grid.towards::<N>(row, cell));
        // SAFETY: the caller's contract.
        unsafe { to.set(row, cell, value) };
    }
}

impl<R: Real> CoarseGrid<'_, R> {
    /// The corrections in the cell that holds a finer one of a row of `N`^3, and in those towards it, as bits z y x.
    fn towards<const N: usize>(&self, row: u32, cell: usize) -> [R; 8] {
        let (at, half) = (place::<N>(cell), N as i32 / 2);
        let neighbours = &self.neighbours[row as usize];
        let (mut values, mut found) = ([R::lit(0.0); 8], [false; 8]);
        for bits in 0..8 {
            let (mut to, mut step) = (at.map(|x| x as i32 / 2), [0; 3]);
            for axis in 0..3 {
                if bits >> axis & 1 == 1 {
                    to[axis] += if at[axis] % 2 == 1 { 1 } else { -1 };
                    step[axis] = to[axis].div_euclid(half);
                }
            }
            let beside = neighbours[direction(step)];
            found[bits] = beside >= 0;
            values[bits] = if found[bits] {
                let [x, y, z] = to.map(|x| x.rem_euclid(half));
                self.values
                    .get(beside as u32, (x + half * (y + half * z)) as usize)
            } else {
                let across = |axis: usize| (step[axis] != 0).then_some(bits ^ 1 << axis);
                self.mirror * mean_of_found(&values, &found, std::array::from_fn(across))
            };
        }
        values
    }
}

/// The mean of those of up to three values that were found, of all where none was.
fn mean_of_found<R: Real>(values: &[R; 8], found: &[bool; 8], which: [Option<usize>; 3]) -> R {
    let any = which.iter().flatten().any(|&n| found[n]);
    let (mut terms, mut count) = ([R::lit(0.0); 3], R::lit(0.0));
    for (term, n) in terms.iter_mut().zip(which) {
        if let Some(n) = n.filter(|&n| found[n] || !any) {
            *term = values[n];
            count += R::lit(1.0);
        }
    }
    sum3(terms[0], terms[1], terms[2]) / count
}
