//! Direct solution of the seven-point Poisson equation on the root level by Fourier transforms.

mod exchange;
mod green;
mod mirrors;

#[cfg(test)]
mod tests;

pub use exchange::PaddedPatch;

use crate::spectral::{Filter, Shape};
use exchange::PlaneExchange;
use green::{GreensFunction, PeriodicInverse};
use mirrors::EvenExtension;
use nestar_engine::Error;
use nestar_engine::comm::Ranks;
use nestar_kernels::{CELLS, PATCH};

/// Boundary condition of the root level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootKind {
    /// Periodic along all axes. The mean of the source is ignored; the mean of the potential is zero.
    Periodic,
    /// Vacuum outside: the potential vanishes at infinity.
    Isolated {
        /// Number of ghost layers whose potential is returned, 0 to 8. Up to one is free.
        margin: usize,
    },
}

impl RootKind {
    fn margin(self) -> usize {
        match self {
            Self::Periodic => 0,
            Self::Isolated { margin } => margin,
        }
    }
}

/// Solves `sum_a (phi[i + e_a] - 2 phi[i] + phi[i - e_a]) / width_a^2 = source[i]` in all cells of the root level, in
/// double precision, by Fourier transforms.
///
/// The bits of the potential depend on the source only, not on threads, ranks or the partition.
pub struct RootSolver {
    extension: EvenExtension,
    filter: Filter,
    factors: Factors,
}

/// Factors of modes.
enum Factors {
    Periodic(PeriodicInverse),
    Isolated(GreensFunction),
}

impl RootSolver {
    /// Builds the solver for a root level of `cells` cells (multiples of 8) of width `width`. For an isolated domain it
    /// computes and stores the transform of the lattice Green's function, one number per mode. Collective over all
    /// ranks.
    ///
    /// # Errors
    /// The numbers of cells are not multiples of 8; widths are not positive; the margin is too large.
    pub fn new(
        cells: [usize; 3],
        width: [f64; 3],
        kind: RootKind,
        ranks: &Ranks,
    ) -> Result<Self, Error> {
        Self::beside_mirrors(cells, width, kind, [[false; 2]; 3], ranks)
    }

    /// Builds the solver for a domain of which some faces are mirrors, `mirrored[axis][lower, upper]`. Matter and
    /// potential continue evenly beyond them, which takes a box of twice the length along their axes. In a
    /// [periodic](RootKind::Periodic) domain both faces of an axis are mirrors or none, in an
    /// [isolated](RootKind::Isolated) one not both. Collective over all ranks.
    ///
    /// # Errors
    /// As [`RootSolver::new`].
    ///
    /// # Panics
    /// If mirrors and kind do not fit.
    pub fn beside_mirrors(
        cells: [usize; 3],
        width: [f64; 3],
        kind: RootKind,
        mirrored: [[bool; 2]; 3],
        ranks: &Ranks,
    ) -> Result<Self, Error> {
        check(cells, width, kind)?;
        let fits = |[lower, upper]: [bool; 2]| match kind {
            RootKind::Periodic => lower == upper,
            RootKind::Isolated { .. } => !(lower && upper),
        };
        assert!(mirrored.into_iter().all(fits), "{mirrored:?} {kind:?}");
        let extension = EvenExtension::new(cells, mirrored);
        let cells = extension.cells();
        let shape = match kind {
            RootKind::Periodic => Shape::periodic(cells),
            RootKind::Isolated { margin } => Shape::padded(cells, margin),
        };
        let filter = Filter::new(shape, ranks.communicator())?;
        let factors = match kind {
            RootKind::Periodic => Factors::Periodic(PeriodicInverse::new(cells, width)),
            RootKind::Isolated { .. } => {
                Factors::Isolated(GreensFunction::new(shape.lengths, width, filter.waves()))
            }
        };
        Ok(Self {
            extension,
            filter,
            factors,
        })
    }

    /// Computes the potential of `source` in the root patches of this rank. Both are `[patch][k][j][i]` with 8^3 cells
    /// per patch, and `patches` holds the positions in units of patches, in any order. Returns the patches at the faces
    /// of the domain with their ghost layers, in the order of `patches`; none without a margin. One value that is not
    /// finite makes all of the potential so. Collective over all ranks.
    ///
    /// # Errors
    /// The patches of all ranks are not the root level, each patch once; another rank or the transport has failed.
    ///
    /// # Panics
    /// If `source` or `potential` has not 512 values per patch.
    pub fn solve(
        &self,
        ranks: &Ranks,
        patches: &[[i32; 3]],
        source: &[f64],
        potential: &mut [f64],
    ) -> Result<Vec<PaddedPatch>, Error> {
        assert_eq!(source.len(), patches.len() * CELLS);
        assert_eq!(potential.len(), source.len());
        if !self.extension.has_mirrors() {
            return self.solve_box(ranks, patches, source, potential);
        }
        let (all, extended) = (
            self.extension.patches(patches),
            self.extension.source(source),
        );
        let mut found = vec![0.0; extended.len()];
        let padded = self.solve_box(ranks, &all, &extended, &mut found)?;
        potential.copy_from_slice(&found[..source.len()]);
        let margin = self.filter.shape().margin;
        Ok(self.extension.padded(patches, potential, &padded, margin))
    }

    /// Solves in the box of the transforms, which includes mirror images.
    fn solve_box(
        &self,
        ranks: &Ranks,
        patches: &[[i32; 3]],
        source: &[f64],
        potential: &mut [f64],
    ) -> Result<Vec<PaddedPatch>, Error> {
        let mut exchange = PlaneExchange::new(&self.filter, ranks.communicator(), patches)?;
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

/// Checks the arguments.
fn check(cells: [usize; 3], width: [f64; 3], kind: RootKind) -> Result<(), Error> {
    let whole = |&cells: &usize| cells > 0 && cells.is_multiple_of(PATCH);
    if !cells.iter().all(whole) {
        return Err(Error::Setup(format!(
            "`domain.cells` is {cells:?}, but must be multiples of {PATCH}"
        )));
    }
    if !width.iter().all(|width| width.is_finite() && *width > 0.0) {
        return Err(Error::Setup(format!(
            "`domain`: cells of the root level are {width:?} wide, which must be positive"
        )));
    }
    match kind.margin() {
        margin if margin > PATCH => Err(Error::Setup(format!(
            "the potential is available in {PATCH} layers outside the domain, not in {margin}"
        ))),
        _ => Ok(()),
    }
}
