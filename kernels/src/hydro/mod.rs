//! Ideal-gas hydrodynamics: equation of state, reconstruction, Riemann solvers and the update of a patch.
//!
//! Everything physical is a `#[device]` function, generic over the number or the vector of numbers it works on; [`solver`]
//! moves data for the CPU. Results do not depend on the vector width, and are exactly symmetric: exchanging axes or
//! mirroring the input does the same to the output, bit for bit (signs of zeros apart).
pub mod eos;
pub mod hancock;
pub mod limiter;
pub mod ppm;
pub mod riemann;
pub mod solver;

#[cfg(test)]
mod tests;

use nestar_device::Item;

pub use eos::{Conserved, kinetic_energy, pressure, sound_speed};
pub use solver::{
    CellMask10, FaceFluxes, HydroReal, LaneChoice, PatchOutcome, PatchScratch, PatchSolver,
};

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
    /// Piecewise parabolic; with [`Scheme::MusclHancock`] it has limits of its own.
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
pub enum Riemann {
    /// Three waves; resolves contacts exactly.
    Hllc,
    /// Two waves; diffusive and positive.
    Hlle,
    /// The exact solution; slow.
    Exact,
}

/// How the fluid is advanced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FluidMethod {
    /// Time integration.
    pub scheme: Scheme,
    /// Reconstruction of face states.
    pub reconstruction: Reconstruction,
    /// Slope limiter.
    pub limiter: Limiter,
    /// Riemann solver.
    pub riemann: Riemann,
    /// Parameter of [`Limiter::Minmod`], from 1 (most diffusive) to 2 (monotonized central).
    pub minmod_theta: f64,
}

impl Default for FluidMethod {
    /// MUSCL-Hancock, PLM, monotonized central, HLLC.
    fn default() -> Self {
        FluidMethod {
            scheme: Scheme::MusclHancock,
            reconstruction: Reconstruction::Plm,
            limiter: Limiter::MonotonizedCentral,
            riemann: Riemann::Hllc,
            minmod_theta: 1.5,
        }
    }
}

impl FluidMethod {
    /// Layers of ghost cells that a step needs: one for the slopes (two with PPM) and one for the edges beyond the patch, and
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

/// Every device item of this module, for a compilation test of the generated CUDA text.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    let mut items: Vec<&'static Item> = device_instances().iter().map(|(item, _)| *item).collect();
    items.dedup_by_key(|item| item.path());
    items
}

/// The same with the values of their const parameters, all there are, for
/// [`instantiate_with`](nestar_device::instantiate_with).
#[must_use]
pub fn device_instances() -> Vec<(&'static Item, &'static [&'static str])> {
    const NONE: &[&str] = &[];
    const LIMITERS: [&[&str]; 4] = [&["0"], &["1"], &["2"], &["3"]];
    let mut instances = vec![
        (eos::kinetic_energy::ITEM, NONE),
        (eos::pressure::ITEM, NONE),
        (eos::sound_speed::ITEM, NONE),
        (eos::temperature::ITEM, NONE),
        (eos::entropy::ITEM, NONE),
        (eos::total_energy::ITEM, NONE),
        (eos::primitive_from_conserved::ITEM, NONE),
        (eos::conserved_from_primitive::ITEM, NONE),
        (eos::signal_rate::ITEM, NONE),
        (eos::checked_signal_rate::ITEM, NONE),
        (eos::is_physical::ITEM, NONE),
        (hancock::half_step::ITEM, NONE),
        (hancock::half_step_scalar::ITEM, NONE),
        (hancock::predicted::ITEM, NONE),
        (hancock::predicted_scalar::ITEM, NONE),
        (hancock::edges::ITEM, NONE),
        (limiter::half_minmod::ITEM, NONE),
        (limiter::half_monotonized_central::ITEM, NONE),
        (limiter::half_van_leer::ITEM, NONE),
        (limiter::half_van_albada::ITEM, NONE),
        (hancock::traced_edges::ITEM, NONE),
        (hancock::traced_scalar::ITEM, NONE),
        (ppm::parabola::ITEM, NONE),
        (ppm::bounded_parabola::ITEM, NONE),
        (ppm::flattening::ITEM, NONE),
        (riemann::wave_speeds::ITEM, NONE),
        (riemann::flux_of_state::ITEM, NONE),
        (riemann::flux_of_scalar::ITEM, NONE),
        (riemann::hllc::flux_hllc::ITEM, NONE),
        (riemann::hlle::flux_hlle::ITEM, NONE),
        (riemann::exact::flux_exact::ITEM, NONE),
    ];
    instances.extend(LIMITERS.map(|limiter| (limiter::half_slope::ITEM, limiter)));
    instances.extend(LIMITERS.map(|limiter| (ppm::limited_parabola::ITEM, limiter)));
    instances
}
