//! What the unknowns follow from.

use super::stencil::source_of;
use crate::mesh::Rows;
use nestar_device::Real;

/// What the unknowns of a level follow from: coefficient * (density - mean).
#[derive(Clone, Copy)]
pub struct PoissonSource<'a, R> {
    /// A density in the cells.
    pub density: Rows<'a, R>,
    /// What it is multiplied by.
    pub coefficient: R,
    /// Its mean over a periodic domain, else 0.
    pub mean: R,
}

impl<R: Real> PoissonSource<'_, R> {
    /// The value in a cell.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, row: u32, cell: usize) -> R {
        self.of(self.density.get(row, cell))
    }

    /// The value where the density is so much.
    #[inline(always)]
    pub(super) fn of(&self, density: R) -> R {
        source_of(density, self.coefficient, self.mean)
    }
}
