//! Finds the largest velocities and accelerations of particles.

use super::columns::{PAGE, Page, ParticleColumns, ParticleReal};
use super::rows::ParticlePages;

/// Lanes that are compared independently.
const SIDES: usize = 8;

/// Largest magnitudes of velocities, then accelerations, by axis and lane, as ordered integers.
pub struct MaxMagnitudes<R: ParticleReal>([[R::Offset; SIDES]; 6]);

impl<R: ParticleReal> Default for MaxMagnitudes<R> {
    fn default() -> Self {
        Self([[R::ordered(R::lit(0.0)); SIDES]; 6])
    }
}

impl<R: ParticleReal> MaxMagnitudes<R> {
    /// Returns the largest magnitudes of a list of a patch.
    pub fn of(rows: &mut ParticlePages, columns: ParticleColumns) -> [f64; 6] {
        let mut largest = Self::default();
        for (page, count) in rows.read_pages::<R>(columns) {
            largest.include(&page, count);
        }
        largest.sizes()
    }

    /// Includes the first particles of a page.
    #[inline(always)]
    pub fn include(&mut self, page: &Page<R>, count: usize) {
        let numbers = page.velocity.iter().chain(&page.acceleration);
        let each = self.0.iter_mut().zip(numbers);
        each.for_each(|(largest, values)| enlarge::<R>(largest, values, count));
    }

    /// Returns the magnitudes; NaN if there is one.
    pub fn sizes(self) -> [f64; 6] {
        let none = R::ordered(R::lit(0.0));
        let largest = |sides: [R::Offset; SIDES]| sides.into_iter().fold(none, Ord::max);
        self.0.map(|sides| R::size(largest(sides)).to_f64())
    }
}

/// Includes the first numbers of a column, lane by lane, so that the loop vectorises.
#[inline(always)]
fn enlarge<R: ParticleReal>(sides: &mut [R::Offset; SIDES], values: &[R; PAGE], count: usize) {
    let none = R::ordered(R::lit(0.0));
    for first in (0..PAGE).step_by(SIDES) {
        for (n, side) in sides.iter_mut().enumerate() {
            let size = R::ordered(values[first + n]);
            *side = (*side).max(if first + n < count { size } else { none });
        }
    }
}
