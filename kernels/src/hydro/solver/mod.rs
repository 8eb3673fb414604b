//! CPU solver of one patch: advances a gathered block by one step, in SIMD lanes.
pub mod device;
mod dispatch;
mod first_order;
mod march;
mod passes;
mod scratch;
mod transport;
mod transverse;

pub use dispatch::{HydroReal, LaneChoice};
pub use first_order::CellMask10;
pub use scratch::PatchScratch;

use super::law::LawNumbers;
use super::{Cleaning, FluidMethod, LawConstants, Scheme};
use crate::mesh::ShareSets;
use crate::{CELLS, PATCH};
use dispatch::Passes;
use march::March;
use nestar_device::Real;
use passes::{PlaneOutcome, SignalRatePass};
use scratch::ScratchLayout;

/// Updates patches with one method. It is immutable and shared by all threads; each thread has its own [`PatchScratch`].
#[derive(Clone, Copy)]
pub struct PatchSolver<R: HydroReal> {
    method: FluidMethod,
    /// Constants of the equation of state.
    law: [R; 2],
    theta: R,
    /// Thresholds of dual energy; 0 without.
    thresholds: [R; 4],
    layout: ScratchLayout,
    sets: ShareSets,
    lanes: LaneChoice,
    passes: Passes<R>,
}

/// Destinations of flux densities along the positive axes; `None` if not needed.
#[derive(Debug, Default)]
pub struct FaceFluxes<'a, R> {
    /// Fluxes through the six faces of the patch: x-, x+, y-, y+, z-, z+. Each is `[component][8][8]` with the transverse axes (slow, fast)
    /// = (z, y), (z, x), (y, x) for x, y, z faces.
    pub sides: [Option<&'a mut [R]>; 6],
    /// Mass fluxes through all faces of the patch's cells: a row of a field on faces, `[axis][576]`.
    pub mass: Option<&'a mut [R]>,
    /// Field on faces after the step, a row like that of the mass fluxes; needed if the method has one.
    pub field: Option<&'a mut [R]>,
    /// Electric fields on the edges of the patch's cells, `[axis][648]`, whose circulations change the field on faces.
    pub electric: Option<&'a mut [R]>,
}

/// Input of an update of a patch in addition to its cells.
#[derive(Clone, Copy, Debug)]
pub struct PatchStep<'a, R> {
    /// `dt / dx` for each axis.
    pub rates: [R; 3],
    /// `1 / dx` for each axis, for the signal rate of the new state.
    pub inverse_dx: [R; 3],
    /// Cells that take first-order HLLE fluxes between cell averages through all their faces.
    pub first_order: Option<&'a CellMask10>,
    /// Cleaning of a magnetic field; unused without one.
    pub cleaning: Cleaning,
    /// State before the step, `[component][512]`, and [weight](super::Stage::weight) of the new one; `None` in the first stage of a step.
    pub before: Option<(&'a [R], R)>,
}

/// Cells of a patch in which the internal energy replaced the total one, with dual energy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Replacements<R> {
    /// Number of cells whose total energy changed.
    pub cells: u32,
    /// Sum of the changes of their energy densities.
    pub gain: R,
}

impl<R: Real> Replacements<R> {
    /// Returns the replacements in cells with these changes of their energy densities. The sum is that of pairs of halves, as on devices.
    fn of(gains: &mut [R]) -> Self {
        let cells = gains.iter().filter(|gain| **gain != R::lit(0.0)).count() as u32;
        let mut half = gains.len() / 2;
        while half > 0 && cells > 0 {
            let (low, high) = gains.split_at_mut(half);
            for (sum, other) in low.iter_mut().zip(high) {
                *sum += *other;
            }
            half /= 2;
        }
        Replacements {
            cells,
            gain: gains[0],
        }
    }
}

/// Result of the update of a patch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatchOutcome<R> {
    /// Largest signal rate of the new state, see [`PatchSolver::signal_rate`], over its physical cells only.
    pub signal_rate: R,
    /// Unphysical cells: a component not finite, or density or pressure not positive. Bit `8 j + i` of word `k`.
    pub unphysical: [u64; PATCH],
    /// `true` if there are any.
    pub any: bool,
    /// Cells in which the internal energy replaced the total one.
    pub replacements: Replacements<R>,
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
    /// Creates a solver for gas with the constants `law` of its equation of state, such as the ratio of specific heats (larger than one), and
    /// `scalars` passive scalars.
    ///
    /// Results do not depend on `lanes`. [`LaneChoice::available`] tells what a processor without the requested instructions uses.
    ///
    /// # Panics
    /// If the method uses dual energy or a magnetic field with a [scheme for gas alone](Scheme::is_for_gas_alone) or without an energy; a field on faces with a scheme of
    /// several stages; or a Riemann solver that does not serve the law.
    #[must_use]
    pub fn new(
        method: FluidMethod,
        law: impl Into<LawConstants>,
        scalars: usize,
        lanes: LaneChoice,
    ) -> Self {
        assert!(
            method.dual.is_none()
                || !method.scheme.is_for_gas_alone() && method.equation.has_energy(),
            "dual energy needs a scheme that knows it, and an energy"
        );
        assert!(
            method.magnetic.is_none()
                || !method.scheme.is_for_gas_alone() && method.equation.has_energy(),
            "a magnetic field needs a scheme that knows it, and an energy"
        );
        assert!(
            !method.has_face_field() || !method.has_stages(),
            "a field on faces needs a scheme of one stage"
        );
        assert!(
            method.riemann_item().is_some(),
            "the Riemann solver does not serve the law"
        );
        let lanes = lanes.available();
        PatchSolver {
            method,
            law: law.into().0.map(R::lit),
            theta: R::lit(method.minmod_theta),
            thresholds: method
                .dual
                .map_or([R::lit(0.0); 4], |dual| dual.thresholds()),
            layout: ScratchLayout::new(&method, scalars),
            sets: ShareSets::default(),
            lanes,
            passes: R::passes(&method, lanes),
        }
    }

    /// Returns the numbers of the law in a step.
    fn numbers(&self, cleaning: Cleaning) -> LawNumbers<R> {
        let [first, second] = self.law;
        [
            first,
            second,
            R::lit(cleaning.speed),
            R::lit(cleaning.damping),
        ]
    }

    /// Sets the sets of scalars, by component. The fluxes of a set through a face sum to the mass flux.
    #[must_use]
    pub fn with_sets(self, sets: ShareSets) -> Self {
        PatchSolver { sets, ..self }
    }

    /// Returns the time integration.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.method.scheme
    }

    /// Returns `true` if the internal energy is carried in addition to the total one.
    #[must_use]
    pub fn has_dual_energy(&self) -> bool {
        self.method.dual.is_some()
    }

    /// Returns the number of ghost layers that the input needs.
    #[must_use]
    pub fn ghosts(&self) -> usize {
        self.layout.ghosts
    }

    /// Returns the number of components of a patch: those of the equation of state, the internal energy with dual energy, and the scalars.
    #[must_use]
    pub fn components(&self) -> usize {
        self.layout.components
    }

    /// Returns the instructions in use.
    #[must_use]
    pub fn lanes(&self) -> LaneChoice {
        self.lanes
    }

    /// Creates the work space for one thread.
    #[must_use]
    pub fn scratch(&self) -> PatchScratch<R> {
        PatchScratch::new(self.layout)
    }

    /// Advances the patch in `scratch`'s [input](PatchScratch::input) by one step, or one stage of a step, into `out`, `[component][512]`.
    ///
    /// The input is not modified, so that an update can be repeated with other first-order cells.
    ///
    /// # Panics
    /// If the scratch was made for another method or number of scalars, or `out`, a face array or the state before the step is too short.
    pub fn update(
        &self,
        scratch: &mut PatchScratch<R>,
        step: &PatchStep<'_, R>,
        out: &mut [R],
        faces: &mut FaceFluxes<'_, R>,
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
            step: *step,
            law: self.numbers(step.cleaning),
            shocked: false,
        }
        .run(out, faces)
    }

    /// Returns the largest signal rate of a stored patch (`[component][512]`): the largest sum over the axes of `(|v| + c) / dx` (1/time).
    /// Infinite if a cell is unphysical (see [`PatchOutcome::unphysical`], scalars apart).
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
            law: self.numbers(Cleaning::default()),
        };
        // SAFETY: the gas was checked, and the passes were chosen for this processor
        unsafe { (self.passes.signal_rate)(&arguments) }
    }
}
