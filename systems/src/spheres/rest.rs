//! What of all mass is not other parts.

use super::curve::{CELLS, LocalDensity, Radial, RadialGrid};
use super::error::SphereError;

/// All mass less some parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Remainder<P> {
    total: P,
    parts: Vec<P>,
}

impl<P: Radial + Clone> Remainder<P> {
    /// The rest of `total`.
    ///
    /// # Errors
    /// The parts are as dense as all mass somewhere.
    pub fn new(total: &P, parts: &[P]) -> Result<Self, SphereError> {
        let (total, parts) = (total.clone(), parts.to_vec());
        let grid = RadialGrid::new(total.core(), total.reach(), CELLS);
        let sum = |r: f64| parts.iter().map(|part| part.density(r)).sum::<f64>();
        // both may underflow far out
        let lacks = |r: &f64| sum(*r) >= total.density(*r) && total.density(*r) > 0.0;
        match grid.nodes().map(|n| grid.radius(n)).find(lacks) {
            Some(radius) => Err(SphereError::NothingLeft { radius }),
            None => Ok(Self { total, parts }),
        }
    }

    /// All mass, and the parts, with their signs.
    fn signed(&self) -> impl Iterator<Item = (f64, &P)> {
        let parts = self.parts.iter().map(|part| (-1.0, part));
        std::iter::once((1.0, &self.total)).chain(parts)
    }

    /// The density and its slopes: the sums of densities and of their derivatives.
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
            // where all has underflown
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

    /// The mass within a radius.
    pub fn mass(&self, r: f64) -> f64 {
        self.signed().map(|(sign, part)| sign * part.mass(r)).sum()
    }

    /// The radius beyond which there is next to no mass.
    pub fn reach(&self) -> f64 {
        self.total.reach()
    }
}
