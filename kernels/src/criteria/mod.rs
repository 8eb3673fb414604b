//! Refinement criteria: which cells of a patch ask for a finer mesh, and which patches that concerns.
//!
//! A criterion compares an estimate of one cell with a threshold. The estimates are the `#[device]` functions of
//! [`cell`]; the functions here run them over a patch with ghost cells and pack the answers into [`CellFlags`]. Sums over
//! directions do not depend on their order, so a permuted or mirrored patch gives permuted or mirrored flags, bit for bit.
//! A cell whose estimate is NaN is never flagged.
pub mod cell;
pub mod device;
mod flags;
pub mod region;

pub use flags::{CellFlags, buffer_sectors};
pub use region::{CellPlaces, meets_box, meets_sphere};

use crate::PATCH;
use nestar_device::{Item, Real};

/// Every device item of the criteria.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    vec![
        device::FlagParameters,
        cell::relative_gradient::ITEM,
        cell::lohner_error::ITEM,
        cell::relative_vorticity::ITEM,
        cell::jeans_cells::ITEM,
        cell::meets_box::ITEM,
        cell::meets_sphere::ITEM,
    ]
}

/// One conserved or derived field of a patch and the cells around it.
#[derive(Clone, Copy, Debug)]
pub struct GhostedField<'a, R> {
    values: &'a [R],
    ghosts: usize,
}

impl<'a, R: Real> GhostedField<'a, R> {
    /// A view of `values`, shape `[k][j][i]` with `8 + 2 * ghosts` cells an axis.
    ///
    /// # Panics
    /// Where the number of values does not fit.
    #[must_use]
    pub fn new(values: &'a [R], ghosts: usize) -> Self {
        let n = PATCH + 2 * ghosts;
        assert!(
            values.len() == n * n * n,
            "{} values are no cube of {n} cells an axis",
            values.len()
        );
        Self { values, ghosts }
    }

    /// The cells `i = 0..8` of row (k, j), moved by `shift` cells along x, y, z.
    ///
    /// # Panics
    /// Where the shifted row leaves the ghost cells.
    #[inline(always)]
    fn row(&self, k: usize, j: usize, shift: [isize; 3]) -> &'a [R; PATCH] {
        let n = PATCH + 2 * self.ghosts;
        let at = |c: usize, s: isize| (c + self.ghosts).wrapping_add_signed(s);
        let first = (at(k, shift[2]) * n + at(j, shift[1])) * n + at(0, shift[0]);
        self.values[first..]
            .first_chunk()
            .expect("a row of eight cells inside the ghosted patch")
    }

    /// The rows one behind and one ahead along `axis`, `step` cells away.
    #[inline(always)]
    fn pair(&self, k: usize, j: usize, axis: usize, step: isize) -> [&'a [R; PATCH]; 2] {
        let shift = |s: isize| std::array::from_fn(|a| if a == axis { s } else { 0 });
        [self.row(k, j, shift(-step)), self.row(k, j, shift(step))]
    }

    fn require(&self, ghosts: usize) {
        assert!(
            self.ghosts >= ghosts,
            "{ghosts} ghost cells needed, {} given",
            self.ghosts
        );
    }
}

/// Flags cells with q > `threshold`.
#[must_use]
pub fn above<R: Real>(field: &GhostedField<'_, R>, threshold: R) -> CellFlags {
    CellFlags::from_rows(|k, j| field.row(k, j, [0; 3]).map(|q| q > threshold))
}

/// Flags cells with q < `threshold`.
#[must_use]
pub fn below<R: Real>(field: &GhostedField<'_, R>, threshold: R) -> CellFlags {
    CellFlags::from_rows(|k, j| field.row(k, j, [0; 3]).map(|q| q < threshold))
}

/// Flags cells whose [relative gradient](cell::relative_gradient) exceeds `threshold` (0 or more).
///
/// # Panics
/// With fewer than one ghost cell.
#[must_use]
pub fn gradient<R: Real>(field: &GhostedField<'_, R>, threshold: R) -> CellFlags {
    field.require(1);
    CellFlags::from_rows(|k, j| gradient_row(field, k, j).map(|e| e > threshold))
}

/// Relative gradient in the cells of row (k, j).
#[inline(always)]
fn gradient_row<R: Real>(field: &GhostedField<'_, R>, k: usize, j: usize) -> [R; PATCH] {
    let q = field.row(k, j, [0; 3]);
    let [x, y, z] = [0, 1, 2].map(|axis| field.pair(k, j, axis, 1));
    std::array::from_fn(|i| {
        cell::relative_gradient(
            q[i],
            [x[0][i], x[1][i]],
            [y[0][i], y[1][i]],
            [z[0][i], z[1][i]],
        )
    })
}

/// Filter of Löhner's estimator that keeps ripples from being refined; the value of FLASH and GAMER.
pub const LOHNER_FILTER: f64 = 0.01;

/// Flags cells whose [Löhner estimate](cell::lohner_error) exceeds `threshold` (0 to 1, usually 0.3 to 0.8); `filter` is
/// usually [`LOHNER_FILTER`].
///
/// # Panics
/// With fewer than two ghost cells.
#[must_use]
pub fn lohner<R: Real>(field: &GhostedField<'_, R>, threshold: R, filter: R) -> CellFlags {
    field.require(2);
    CellFlags::from_rows(|k, j| lohner_row(field, filter, k, j).map(|e| e > threshold))
}

/// Löhner's estimate in the cells of row (k, j).
#[inline(always)]
fn lohner_row<R: Real>(field: &GhostedField<'_, R>, filter: R, k: usize, j: usize) -> [R; PATCH] {
    let q = field.row(k, j, [0; 3]);
    let [x, y, z] = [0, 1, 2].map(|axis| field.pair(k, j, axis, 2));
    let [xy, xz, yz] = [[0, 1], [0, 2], [1, 2]].map(|axes| corners(field, axes, k, j));
    let two = |p: &[&[R; PATCH]; 2], i: usize| [p[0][i], p[1][i]];
    let four = |p: &[&[R; PATCH]; 4], i: usize| [p[0][i], p[1][i], p[2][i], p[3][i]];
    std::array::from_fn(|i| {
        let (along, across) = (
            [two(&x, i), two(&y, i), two(&z, i)],
            [four(&xy, i), four(&xz, i), four(&yz, i)],
        );
        cell::lohner_error(
            q[i], along[0], along[1], along[2], across[0], across[1], across[2], filter,
        )
    })
}

/// The rows one cell away along both of two axes: (-, -), (+, -), (-, +), (+, +).
#[inline(always)]
fn corners<'a, R: Real>(
    field: &GhostedField<'a, R>,
    axes: [usize; 2],
    k: usize,
    j: usize,
) -> [&'a [R; PATCH]; 4] {
    [[-1, -1], [1, -1], [-1, 1], [1, 1]].map(|signs| {
        let mut shift = [0; 3];
        shift[axes[0]] = signs[0];
        shift[axes[1]] = signs[1];
        field.row(k, j, shift)
    })
}

/// Flags cells whose [relative vorticity](cell::relative_vorticity) exceeds `threshold` (0 or more).
///
/// `velocity` holds v_x, v_y, v_z; `widths` the cell's widths along x, y, z (positive, any unit).
///
/// # Panics
/// With fewer than one ghost cell.
#[must_use]
pub fn vorticity<R: Real>(
    velocity: [&GhostedField<'_, R>; 3],
    widths: [R; 3],
    threshold: R,
) -> CellFlags {
    velocity.iter().for_each(|v| v.require(1));
    CellFlags::from_rows(|k, j| vorticity_row(velocity, widths, k, j).map(|e| e > threshold))
}

/// Relative vorticity in the cells of row (k, j).
#[inline(always)]
fn vorticity_row<R: Real>(
    velocity: [&GhostedField<'_, R>; 3],
    widths: [R; 3],
    k: usize,
    j: usize,
) -> [R; PATCH] {
    let [v_x, v_y, v_z] = velocity.map(|v| v.row(k, j, [0; 3]));
    let differences = |component: usize, axis: usize| -> [R; PATCH] {
        let [behind, ahead] = velocity[component].pair(k, j, axis, 1);
        std::array::from_fn(|i| ahead[i] - behind[i])
    };
    let [yx, zx] = [1, 2].map(|axis| differences(0, axis));
    let [xy, zy] = [0, 2].map(|axis| differences(1, axis));
    let [xz, yz] = [0, 1].map(|axis| differences(2, axis));
    std::array::from_fn(|i| {
        let v = [v_x[i], v_y[i], v_z[i]];
        cell::relative_vorticity(v, [xy[i], xz[i]], [yx[i], yz[i]], [zx[i], zy[i]], widths)
    })
}

/// Flags cells that resolve the [Jeans length](cell::jeans_cells) with fewer than `cells` of their widths.
///
/// `density` and `sound_speed` in code units, `gravity` is the gravitational constant and `width` the largest width of a
/// cell in the same units. Truelove et al. (1997) ask for at least 4 cells.
#[must_use]
pub fn jeans<R: Real>(
    density: &GhostedField<'_, R>,
    sound_speed: &GhostedField<'_, R>,
    gravity: R,
    width: R,
    cells: R,
) -> CellFlags {
    CellFlags::from_rows(|k, j| {
        let (rho, c_s) = (density.row(k, j, [0; 3]), sound_speed.row(k, j, [0; 3]));
        std::array::from_fn(|i| cell::jeans_cells(rho[i], c_s[i], gravity, width) < cells)
    })
}

#[cfg(test)]
mod tests;
