//! Poisson's equation on the root level, solved exactly for the operator of seven points; what multigrid cycles need there.

mod bessel;
mod bottom;
mod exchange;
mod green;
mod grown;
mod multipole;
mod periodic;
mod quadrature;

#[cfg(test)]
mod tests;

pub(super) use bottom::Bottom;
pub use grown::Grown;
pub(super) use multipole::Expansion;

use crate::spectral::{Filter, Shape};
use exchange::Exchange;
use green::Green;
use nestar_engine::Error;
use nestar_engine::comm::Ranks;
use nestar_kernels::{CELLS, PATCH};
use periodic::Inverse;

/// What surrounds the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootKind {
    /// The domain again, along all axes. The mean of the source does not count, and that of the potential is zero.
    Periodic,
    /// Nothing, for ever: the potential vanishes at infinity.
    Isolated {
        /// Layers of cells outside the domain whose potential is wanted, 0 to 8. Up to one costs nothing.
        margin: usize,
    },
}

/// Solves `sum_a (phi[i + e_a] - 2 phi[i] + phi[i - e_a]) / width_a^2 = source[i]` in all cells of the root level, in double
/// precision, by Fourier transforms.
///
/// The bits of the potential depend on the source alone, not on threads, ranks or who has which patch.
pub struct RootSolver {
    filter: Filter,
    factors: Factors,
}

/// What modes are multiplied by.
enum Factors {
    Periodic(Inverse),
    Isolated(Green),
}

impl RootSolver {
    /// The solver of a root level of `cells` cells, multiples of 8, of width `width`. Of an isolated domain it computes and keeps the
    /// transform of the lattice Green's function, a number for each mode. All ranks make one.
    ///
    /// # Errors
    /// The numbers of cells are not multiples of 8; widths are not positive; the margin is too large.
    pub fn new(
        cells: [usize; 3],
        width: [f64; 3],
        kind: RootKind,
        ranks: &Ranks,
    ) -> Result<Self, Error> {
        check(cells, width, kind)?;
        let shape = match kind {
            RootKind::Periodic => Shape::periodic(cells),
            RootKind::Isolated { margin } => Shape::padded(cells, margin),
        };
        let filter = Filter::new(shape, ranks.communicator())?;
        let factors = match kind {
            RootKind::Periodic => Factors::Periodic(Inverse::new(cells, width)),
            RootKind::Isolated { .. } => {
                Factors::Isolated(Green::new(shape.lengths, width, filter.waves()))
            }
        };
        Ok(Self { filter, factors })
    }

    /// The potential of `source`, both `[patch][k][j][i]` with 8^3 cells a patch, of this rank's root patches at `patches` (in
    /// units of patches, in any order). Returns the patches that touch the domain's faces with the layers outside, in the order of
    /// `patches`; none without a margin. One value that is not a number makes all of the potential so. All ranks call it.
    ///
    /// # Errors
    /// The patches of all ranks are not the root level, each patch once; another rank has failed, or the transport has.
    ///
    /// # Panics
    /// If `source` or `potential` has not 512 values a patch.
    pub fn solve(
        &self,
        ranks: &Ranks,
        patches: &[[i32; 3]],
        source: &[f64],
        potential: &mut [f64],
    ) -> Result<Vec<Grown>, Error> {
        assert_eq!(source.len(), patches.len() * CELLS);
        assert_eq!(potential.len(), source.len());
        let mut exchange = Exchange::new(&self.filter, ranks.communicator(), patches)?;
        let planes = exchange.planes(source)?;
        let communicator = ranks.communicator();
        let planes = match &self.factors {
            Factors::Periodic(inverse) => self
                .filter
                .apply(communicator, planes, |wave| inverse.factor(wave)),
            Factors::Isolated(green) => self
                .filter
                .apply(communicator, planes, |wave| green.factor(wave)),
        }?;
        exchange.patches(&planes, potential)
    }
}

/// Refuses what cannot be solved.
fn check(cells: [usize; 3], width: [f64; 3], kind: RootKind) -> Result<(), Error> {
    let whole = |&cells: &usize| cells > 0 && cells.is_multiple_of(PATCH);
    if !cells.iter().all(whole) {
        return Err(Error::Setup(format!(
            "`domain.cells` is {cells:?}: the root level has patches of {PATCH}^3 cells"
        )));
    }
    if !width.iter().all(|width| width.is_finite() && *width > 0.0) {
        return Err(Error::Setup(format!(
            "`domain`: cells of the root level are {width:?} wide, which must be positive"
        )));
    }
    match kind {
        RootKind::Isolated { margin } if margin > PATCH => Err(Error::Setup(format!(
            "the potential is known in {PATCH} layers outside the domain, not in {margin}"
        ))),
        _ => Ok(()),
    }
}
