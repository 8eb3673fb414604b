//! Source of Poisson's equation.

use super::stencil::source_of;
use crate::mesh::Rows;
use nestar_device::Real;

/// Source of Poisson's equation on a level: coefficient * (density - mean).
#[derive(Clone, Copy)]
pub struct PoissonSource<'a, R> {
    /// Density.
    pub density: Rows<'a, R>,
    /// Coefficient of Poisson's equation.
    pub coefficient: R,
    /// Mean density of a periodic domain; 0 if isolated.
    pub mean: R,
}

impl<R: Real> PoissonSource<'_, R> {
    /// Returns the source in a cell.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, row: u32, cell: usize) -> R {
        self.of(self.density.get(row, cell))
    }

    /// Returns the source for a density.
    #[inline(always)]
    pub(super) fn of(&self, density: R) -> R {
        source_of(density, self.coefficient, self.mean)
    }
}
