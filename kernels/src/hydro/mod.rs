//! Ideal-gas hydrodynamics: equation of state, reconstruction, Riemann solvers and the update of a patch.
//!
//! All physics consists of `#[device]` functions, generic over a number or a vector of numbers; [`solver`] moves data on the CPU. Results
//! do not depend on the vector width. They are exactly symmetric: exchanging or mirroring axes of the input does the same to the output,
//! bit for bit (signs of zeros apart).
pub mod dual;
pub mod eos;
pub mod hancock;
pub mod limiter;
pub mod ppm;
pub mod riemann;
pub mod shock;
pub mod solver;
mod states;

#[cfg(test)]
mod tests;

use nestar_device::Item;

pub use dual::DualEnergy;
pub use eos::{Conserved, internal_energy, kinetic_energy, pressure, sound_speed};
pub use solver::{
    CellMask10, FaceFluxes, HydroReal, LaneChoice, PatchOutcome, PatchScratch, PatchSolver,
};
pub use states::{DualStates, GasStates};

/// Cells of a face of a patch.
const FACE: usize = crate::PATCH * crate::PATCH;

/// Time integration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Half a step from the cell's own limited slopes, then one set of fluxes (Toro 2009, sec. 14.4).
    MusclHancock,
    /// Donor-cell predictor and second-order corrector (Falle 1991; Stone & Gardiner 2009, New Astron. 14, 139).
    VanLeer,
}

/// Reconstruction of face states, in primitive variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconstruction {
    /// Piecewise linear.
    Plm,
    /// Piecewise parabolic; with [`Scheme::MusclHancock`] it has its own limiter.
    Ppm,
}

/// Slope limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// Generalised minmod with [`FluidMethod::minmod_theta`].
    Minmod,
    /// Van Leer's harmonic mean.
    VanLeer,
    /// Van Albada.
    VanAlbada,
    /// Monotonized central.
    MonotonizedCentral,
}

/// Riemann solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RiemannSolver {
    /// Three waves; resolves contacts exactly.
    Hllc,
    /// Two waves; diffusive and positive.
    Hlle,
    /// The exact solution; slow.
    Exact,
}

/// Cure of the instability of shocks that are aligned with the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShockCure {
    /// No cure.
    None,
    /// HLLE fluxes through faces that are transverse to a shock or normal to a slow one, see [`shock`].
    Hlle,
}

/// Selects the numerical method for the gas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FluidMethod {
    /// Time integration.
    pub scheme: Scheme,
    /// Reconstruction of face states.
    pub reconstruction: Reconstruction,
    /// Slope limiter.
    pub limiter: Limiter,
    /// Riemann solver.
    pub riemann: RiemannSolver,
    /// Cure of the shock instability.
    pub shock_cure: ShockCure,
    /// Parameter of [`Limiter::Minmod`], from 1 (most diffusive) to 2 (monotonized central).
    pub minmod_theta: f64,
    /// Dual energy: carries the internal energy as a component after the total one; only with [`Scheme::MusclHancock`].
    pub dual: Option<DualEnergy>,
}

impl Default for FluidMethod {
    /// MUSCL-Hancock, PLM, monotonized central, HLLC.
    fn default() -> Self {
        FluidMethod {
            scheme: Scheme::MusclHancock,
            reconstruction: Reconstruction::Plm,
            limiter: Limiter::MonotonizedCentral,
            riemann: RiemannSolver::Hllc,
            shock_cure: ShockCure::None,
            minmod_theta: 1.5,
            dual: None,
        }
    }
}

impl FluidMethod {
    /// Returns the number of gas components, before the scalars.
    #[must_use]
    pub fn gas_components(&self) -> usize {
        5 + usize::from(self.dual.is_some())
    }

    /// Returns `true` if shocks are detected.
    #[must_use]
    pub fn cures_shocks(&self) -> bool {
        self.shock_cure == ShockCure::Hlle
    }

    /// Returns the number of ghost layers that a step needs: one for the slopes (two with PPM), one for the edges outside the patch, and
    /// one more for the predictor of the van Leer scheme.
    #[must_use]
    pub fn ghosts(&self) -> usize {
        let reconstruction = match self.reconstruction {
            Reconstruction::Plm => 2,
            Reconstruction::Ppm => 3,
        };
        match self.scheme {
            Scheme::MusclHancock => reconstruction,
            Scheme::VanLeer => reconstruction + 1,
        }
    }
}

/// Returns all device items of this module, for compilation tests of the generated CUDA text.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    let mut items: Vec<&'static Item> = device_instances().iter().map(|(item, _)| *item).collect();
    items.dedup_by_key(|item| item.path());
    items
}

/// Returns the same items with all values of their const parameters, for [`instantiate_with`](nestar_device::instantiate_with).
#[must_use]
pub fn device_instances() -> Vec<(&'static Item, &'static [&'static str])> {
    const NONE: &[&str] = &[];
    const LIMITERS: [&[&str]; 4] = [&["0"], &["1"], &["2"], &["3"]];
    let plain = states_items().into_iter().chain(faces_items());
    let mut instances: Vec<_> = plain.map(|item| (item, NONE)).collect();
    instances.extend(LIMITERS.map(|limiter| (limiter::half_slope::ITEM, limiter)));
    instances.extend(LIMITERS.map(|limiter| (ppm::limited_parabola::ITEM, limiter)));
    instances
}

/// Functions of cells.
fn states_items() -> Vec<&'static Item> {
    vec![
        eos::kinetic_energy::ITEM,
        eos::apply_kick::ITEM,
        eos::pressure::ITEM,
        eos::sound_speed::ITEM,
        eos::temperature::ITEM,
        eos::entropy::ITEM,
        eos::total_energy::ITEM,
        eos::primitive_from_conserved::ITEM,
        eos::conserved_from_primitive::ITEM,
        eos::signal_rate::ITEM,
        eos::checked_signal_rate::ITEM,
        eos::is_physical::ITEM,
        eos::interpolated::ITEM,
        eos::from_interpolated::ITEM,
        eos::repaired::ITEM,
        dual::primitive::ITEM,
        dual::checked_signal_rate::ITEM,
        dual::advanced::ITEM,
        dual::max_velocity_change_squared::ITEM,
        dual::compression_jump::ITEM,
        dual::slope_factor::ITEM,
        dual::reconcile_energies::ITEM,
        dual::reconciled::ITEM,
        dual::with_dependents::ITEM,
        dual::is_physical::ITEM,
        dual::interpolated::ITEM,
        dual::from_interpolated::ITEM,
        dual::repaired::ITEM,
        hancock::half_step::ITEM,
        hancock::half_step_scalar::ITEM,
        hancock::predicted::ITEM,
        hancock::edges::ITEM,
        hancock::traced_edges::ITEM,
        hancock::traced_scalar::ITEM,
        hancock::range_around::ITEM,
        hancock::bounded::ITEM,
    ]
}

/// Slopes and functions of faces.
fn faces_items() -> Vec<&'static Item> {
    vec![
        limiter::half_minmod::ITEM,
        limiter::half_monotonized_central::ITEM,
        limiter::half_van_leer::ITEM,
        limiter::half_van_albada::ITEM,
        dual::upwind_state::ITEM,
        ppm::parabola::ITEM,
        ppm::bounded_parabola::ITEM,
        ppm::flattening::ITEM,
        riemann::wave_speeds::ITEM,
        riemann::flux_of_state::ITEM,
        riemann::flux_of_scalar::ITEM,
        riemann::normalized_fraction::ITEM,
        riemann::flux_hllc::ITEM,
        riemann::flux_hlle::ITEM,
        riemann::flux_smoothed::ITEM,
        riemann::exact::flux_exact::ITEM,
        shock::shock_along::ITEM,
        shock::damped::ITEM,
    ]
}
