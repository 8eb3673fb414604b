//! Regions of space that ask for a finer mesh.
use super::{CellFlags, cell};
use crate::PATCH;

/// The cells of a patch: coordinates of their centres along x, y and z, and their widths, code length.
#[derive(Clone, Copy, Debug)]
pub struct CellPlaces {
    /// Centres, `[axis][index]`.
    pub centres: [[f64; PATCH]; 3],
    /// Widths along x, y, z.
    pub widths: [f64; 3],
}

impl CellPlaces {
    /// The centre of cell (k, j, i): x, y, z.
    fn at(&self, k: usize, j: usize, i: usize) -> [f64; 3] {
        [self.centres[0][i], self.centres[1][j], self.centres[2][k]]
    }
}

/// Flags cells that share volume with the box from `left` to `right`, code length: a region is refined however small it is.
#[must_use]
pub fn meets_box(cells: &CellPlaces, left: [f64; 3], right: [f64; 3]) -> CellFlags {
    CellFlags::from_rows(|k, j| {
        std::array::from_fn(|i| cell::meets_box(cells.at(k, j, i), cells.widths, left, right))
    })
}

/// Flags cells of which some point lies nearer than `radius` to `centre`, code length.
#[must_use]
pub fn meets_sphere(cells: &CellPlaces, centre: [f64; 3], radius: f64) -> CellFlags {
    CellFlags::from_rows(|k, j| {
        std::array::from_fn(|i| cell::meets_sphere(cells.at(k, j, i), cells.widths, centre, radius))
    })
}
