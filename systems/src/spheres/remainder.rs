//! Remainder of the total mass after subtraction of other components.

use super::error::SphereError;
use super::radial_function::{CELLS, LocalDensity, Radial, RadialGrid};

/// Total mass minus other components.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Remainder<P> {
    total: P,
    parts: Vec<P>,
}

impl<P: Radial + Clone> Remainder<P> {
    /// Subtracts `parts` from `total`.
    ///
    /// # Errors
    /// The parts reach the total density somewhere.
    pub fn new(total: &P, parts: &[P]) -> Result<Self, SphereError> {
        let (total, parts) = (total.clone(), parts.to_vec());
        let grid = RadialGrid::new(total.core(), total.reach(), CELLS);
        let sum = |r: f64| parts.iter().map(|part| part.density(r)).sum::<f64>();
        // both may underflow at large radii
        let lacks = |r: &f64| sum(*r) >= total.density(*r) && total.density(*r) > 0.0;
        match grid.nodes().map(|n| grid.radius(n)).find(lacks) {
            Some(radius) => Err(SphereError::NothingLeft { radius }),
            None => Ok(Self { total, parts }),
        }
    }

    /// Returns the total and the parts with their signs.
    fn signed(&self) -> impl Iterator<Item = (f64, &P)> {
        let parts = self.parts.iter().map(|part| (-1.0, part));
        std::iter::once((1.0, &self.total)).chain(parts)
    }

    /// Returns the density and its logarithmic slopes, from sums of densities and derivatives.
    pub fn local(&self, r: f64) -> LocalDensity {
        let [mut density, mut first, mut second] = [0.0; 3];
        for (sign, part) in self.signed() {
            let local = part.local(r);
            let (own, n) = (sign * local.density, local.steepness);
            density += own;
            first += own * n;
            second += own * (local.steepening - n * n);
        }
        if density <= 0.0 {
            // everything has underflowed
            let all = self.total.local(r);
            return LocalDensity {
                density: 0.0,
                ..all
            };
        }
        let steepness = first / density;
        LocalDensity {
            density,
            steepness,
            steepening: second / density + steepness * steepness,
        }
    }

    /// Returns the mass within a radius.
    pub fn mass(&self, r: f64) -> f64 {
        self.signed().map(|(sign, part)| sign * part.mass(r)).sum()
    }

    /// Returns the radius beyond which the mass is negligible.
    pub fn reach(&self) -> f64 {
        self.total.reach()
    }
}
