//! The CPU solver of one patch: from a ghosted block at the beginning of a step to the patch at its end, in SIMD lanes.
pub mod device;
mod dispatch;
mod first_order;
mod march;
mod passes;
mod scratch;

pub use dispatch::{HydroReal, LaneChoice};
pub use first_order::CellMask10;
pub use scratch::PatchScratch;

use super::{FluidMethod, Scheme};
use crate::mesh::ShareSets;
use crate::{CELLS, PATCH};
use dispatch::Passes;
use march::March;
use passes::{PlaneOutcome, SignalRatePass};
use scratch::ScratchLayout;

/// Updates patches with one method. Immutable and shared by all threads; each thread has its own [`PatchScratch`].
#[derive(Clone, Copy)]
pub struct PatchSolver<R: HydroReal> {
    method: FluidMethod,
    gamma: R,
    theta: R,
    /// Of the internal energy; 0 where it is not carried.
    thresholds: [R; 3],
    layout: ScratchLayout,
    sets: ShareSets,
    lanes: LaneChoice,
    passes: Passes<R>,
}

/// Where flux densities along the positive axes go. `None` where nobody needs them.
#[derive(Debug, Default)]
pub struct FaceFluxes<'a, R> {
    /// Those through the six faces of the patch: x-, x+, y-, y+, z-, z+. Each is `[component][8][8]` with the transverse axes
    /// (slow, fast) = (z, y), (z, x), (y, x) for x, y, z faces.
    pub sides: [Option<&'a mut [R]>; 6],
    /// Of the mass through all faces of the patch's cells: a row of a field on faces, `[axis][576]`.
    pub mass: Option<&'a mut [R]>,
}

/// What the update of a patch found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatchOutcome<R> {
    /// Largest signal rate of the new state, as of [`PatchSolver::signal_rate`] but over its physical cells only.
    pub signal_rate: R,
    /// Unphysical cells: a component not finite, or density or pressure not positive. Bit `8 j + i` of word `k`.
    pub unphysical: [u64; PATCH],
    /// Whether there are any.
    pub any: bool,
}

impl<R: HydroReal> PatchOutcome<R> {
    fn add(&mut self, k: usize, plane: PlaneOutcome<R>) {
        if plane.signal_rate > self.signal_rate {
            self.signal_rate = plane.signal_rate;
        }
        self.unphysical[k] = plane.unphysical;
        self.any |= plane.unphysical != 0;
    }
}

impl<R: HydroReal> PatchSolver<R> {
    /// A solver for gas with the ratio of specific heats `gamma` (larger than one) and `scalars` passive scalars.
    ///
    /// The result is the same, bit for bit, whatever `lanes`; see [`LaneChoice::available`] for what a processor without
    /// the wanted instructions uses.
    ///
    /// # Panics
    /// If the method carries the internal energy and is none of half steps, [`Scheme::MusclHancock`].
    #[must_use]
    pub fn new(method: FluidMethod, gamma: f64, scalars: usize, lanes: LaneChoice) -> Self {
        assert!(
            method.dual.is_none() || method.scheme == Scheme::MusclHancock,
            "dual energy needs the scheme MUSCL-Hancock"
        );
        let lanes = lanes.available();
        PatchSolver {
            method,
            gamma: R::lit(gamma),
            theta: R::lit(method.minmod_theta),
            thresholds: method
                .dual
                .map_or([R::lit(0.0); 3], |dual| dual.thresholds()),
            layout: ScratchLayout::new(&method, scalars),
            sets: ShareSets::default(),
            lanes,
            passes: R::passes(&method, lanes),
        }
    }

    /// The same solver for scalars of which some belong together, by component: their fluxes through a face sum to that of the
    /// mass.
    #[must_use]
    pub fn with_sets(self, sets: ShareSets) -> Self {
        PatchSolver { sets, ..self }
    }

    /// Layers of ghost cells that the input needs.
    #[must_use]
    pub fn ghosts(&self) -> usize {
        self.layout.ghosts
    }

    /// Components of a patch: five, the internal energy if the method carries it, and the scalars.
    #[must_use]
    pub fn components(&self) -> usize {
        self.layout.components
    }

    /// The instructions in use.
    #[must_use]
    pub fn lanes(&self) -> LaneChoice {
        self.lanes
    }

    /// Work space for one thread.
    #[must_use]
    pub fn scratch(&self) -> PatchScratch<R> {
        PatchScratch::new(self.layout)
    }

    /// Advances the patch in `scratch`'s [input](PatchScratch::input) by one step into `out`, `[component][512]`.
    ///
    /// `rates` are `dt / dx` for each axis, `inverse_dx` is `1 / dx` (for the signal rate of the new state). Cells in
    /// `first_order` take first-order HLLE fluxes from the cell averages through all their faces. The input is kept, so that
    /// an update can be repeated with other `first_order` cells.
    ///
    /// # Panics
    /// If the scratch was made for another method or number of scalars, or `out` or a face array is too short.
    pub fn update(
        &self,
        scratch: &mut PatchScratch<R>,
        rates: [R; 3],
        inverse_dx: [R; 3],
        out: &mut [R],
        faces: &mut FaceFluxes<'_, R>,
        first_order: Option<&CellMask10>,
    ) -> PatchOutcome<R> {
        assert!(
            scratch.layout == self.layout,
            "this scratch was made for another method"
        );
        let layout = self.layout;
        March {
            solver: self,
            scratch,
            layout,
            rates,
            inverse_dx,
            first_order,
        }
        .run(out, faces)
    }

    /// Largest signal rate of a stored patch (`[component][512]`): over its cells, the sum over the axes of
    /// `(|v| + c) / dx` (1/time). Infinite if a cell is unphysical (as of [`PatchOutcome::unphysical`], scalars apart).
    ///
    /// # Panics
    /// If `row` is shorter than the gas.
    #[must_use]
    pub fn signal_rate(&self, row: &[R], inverse_dx: [R; 3]) -> R {
        assert!(
            row.len() >= self.layout.gas * CELLS,
            "a patch has at least {} values",
            self.layout.gas * CELLS
        );
        let arguments = SignalRatePass {
            row: row.as_ptr(),
            inverse_dx,
            gamma: self.gamma,
        };
        // SAFETY: the gas was checked, and the passes were chosen for this processor
        unsafe { (self.passes.signal_rate)(&arguments) }
    }
}
