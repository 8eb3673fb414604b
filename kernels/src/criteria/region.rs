//! Regions of space that ask for a finer mesh.
use super::{CellFlags, cell};
use crate::PATCH;

/// Coordinates of the centres of a patch's cells along x, y and z, code length.
#[derive(Clone, Copy, Debug)]
pub struct CellCentres(pub [[f64; PATCH]; 3]);

impl CellCentres {
    /// The centre of cell (k, j, i): x, y, z.
    fn at(&self, k: usize, j: usize, i: usize) -> [f64; 3] {
        [self.0[0][i], self.0[1][j], self.0[2][k]]
    }
}

/// Flags cells with their centre in the box from `left` (included) to `right` (excluded), code length.
#[must_use]
pub fn inside_box(centres: &CellCentres, left: [f64; 3], right: [f64; 3]) -> CellFlags {
    CellFlags::from_rows(|k, j| {
        std::array::from_fn(|i| cell::inside_box(centres.at(k, j, i), left, right))
    })
}

/// Flags cells with their centre nearer than `radius` to `centre`, code length.
#[must_use]
pub fn inside_sphere(centres: &CellCentres, centre: [f64; 3], radius: f64) -> CellFlags {
    CellFlags::from_rows(|k, j| {
        std::array::from_fn(|i| cell::inside_sphere(centres.at(k, j, i), centre, radius))
    })
}
