//! Ideal-gas hydrodynamics: equation of state, reconstruction, Riemann solvers and the update of a patch.
//!
//! All physics consists of `#[device]` functions, generic over a number or a vector of numbers; [`solver`] moves data on the CPU. Results
//! do not depend on the vector width. They are exactly symmetric: exchanging or mirroring axes of the input does the same to the output,
//! bit for bit (signs of zeros apart).
pub mod barotropic;
pub mod characteristic;
pub mod dual;
pub mod eos;
pub mod hancock;
pub mod law;
pub mod limiter;
pub mod magnetic;
pub mod ppm;
pub mod riemann;
pub mod shock;
pub mod solver;
mod states;
pub mod transport;
pub mod weno;

#[cfg(test)]
mod tests;

use crate::choice::{Choice, choices};
use law::{select_equation, thermal};
use nestar_device::Item;

pub use dual::DualEnergy;
pub use eos::{Conserved, internal_energy, kinetic_energy, pressure, sound_speed};
pub use law::{EquationOfState, LawConstants};
pub use limiter::Limiter;
pub use magnetic::{Cleaning, MagneticMethod};
pub use riemann::RiemannSolver;
pub use solver::{
    CellMask10, FaceFluxes, HydroReal, LaneChoice, PatchOutcome, PatchScratch, PatchSolver,
    PatchStep, Replacements,
};
pub use states::{BarotropicStates, DualStates, FaceFieldStates, GasStates, MagneticStates};

/// Cells of a face of a patch.
const FACE: usize = crate::PATCH * crate::PATCH;

choices! {
    /// Time integration.
    pub enum Scheme;
    /// MUSCL-Hancock: half a step from the cell's own limited slopes, then one set of fluxes (Toro 2009, sec. 14.4).
    MusclHancock = "muscl-hancock";
    /// Van Leer: donor-cell predictor and second-order corrector (Falle 1991; Stone & Gardiner 2009).
    VanLeer = "vl";
    /// Corner transport upwind: states at faces half a step later along the axis of each, changed by fluxes along the other axes, then a second
    /// set of fluxes; six Riemann problems per cell (Colella 1990; Saltzman 1994; Gardiner & Stone 2008).
    Ctu = "ctu";
    /// Strong-stability-preserving Runge-Kutta method of second order in two stages (Shu & Osher 1988; Wang, Abel & Kaehler 2010, eqs.
    /// 10 to 12).
    Rk2 = "rk2";
    /// Strong-stability-preserving Runge-Kutta method of third order in three stages (Shu & Osher 1988).
    Rk3 = "rk3";
}

impl Scheme {
    /// Returns the stages of a step.
    #[must_use]
    pub fn stages(self) -> &'static [Stage] {
        const FIRST: Stage = Stage {
            time: 0.0,
            weight: 1.0,
            share: 1.0,
        };
        match self {
            Scheme::MusclHancock | Scheme::VanLeer | Scheme::Ctu => &[FIRST],
            Scheme::Rk2 => &[
                Stage {
                    share: 0.5,
                    ..FIRST
                },
                Stage {
                    time: 1.0,
                    weight: 0.5,
                    share: 0.5,
                },
            ],
            Scheme::Rk3 => &[
                Stage {
                    share: 1.0 / 6.0,
                    ..FIRST
                },
                Stage {
                    time: 1.0,
                    weight: 0.25,
                    share: 1.0 / 6.0,
                },
                Stage {
                    time: 0.5,
                    weight: 2.0 / 3.0,
                    share: 2.0 / 3.0,
                },
            ],
        }
    }

    /// Returns `true` if the first fluxes of a step, by a predictor or for corrections, are those of the gas alone: the scheme knows neither dual
    /// energy nor magnetic fields.
    #[must_use]
    pub fn is_for_gas_alone(self) -> bool {
        matches!(self, Scheme::VanLeer | Scheme::Ctu)
    }
}

choices! {
    /// Reconstruction of face states.
    pub enum Reconstruction;
    /// Piecewise linear.
    Plm = "plm";
    /// Piecewise parabolic. In primitive variables, smooth extrema are preserved and strong shocks are flattened, except with `vl`.
    Ppm = "ppm";
    /// Weighted essentially non-oscillatory, of fifth order in smooth flow along an axis (Borges et al. 2008). Only with `rk2` and `rk3`.
    WenoZ = "weno-z";
    /// Piecewise constant, of first order.
    Constant = "constant";
}

/// A stage of a step: from the state `v` of the stage before and its rate of change `L(v)` it computes `u + weight (v + dt L(v) - u)`, where
/// `u` is the state before the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Time of the state `v`, as a fraction of the step.
    pub time: f64,
    /// Weight of the new state.
    pub weight: f64,
    /// Share of the stage in the fluxes of the step.
    pub share: f64,
}

choices! {
    /// Variables whose slopes are limited.
    pub enum Variables;
    /// Density, velocity and pressure.
    Primitive = "primitive";
    /// Amplitudes of the waves along the axis. Only where slopes are limited.
    Characteristic = "characteristic";
}

choices! {
    /// Cure of the instability of shocks that are aligned with the mesh.
    pub enum ShockCure;
    /// No cure: such shocks may break up.
    None = "none";
    /// HLLE fluxes through the faces that are transverse to a shock or normal to a slow one.
    Hlle = "hlle";
}

/// Selects the numerical method for the gas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FluidMethod {
    /// Equation of state; its constants are given to the solver.
    pub equation: EquationOfState,
    /// Time integration.
    pub scheme: Scheme,
    /// Reconstruction of face states.
    pub reconstruction: Reconstruction,
    /// Variables whose slopes are limited.
    pub variables: Variables,
    /// Slope limiter.
    pub limiter: Limiter,
    /// Riemann solver.
    pub riemann: RiemannSolver,
    /// Cure of the shock instability.
    pub shock_cure: ShockCure,
    /// Flattens the states in strong shocks; `None`: where parabolas preserve extrema. Not with [`Scheme::VanLeer`].
    pub flattening: Option<bool>,
    /// Parameter of [`Limiter::Minmod`] and [`Limiter::Hybrid`], from 1 (most diffusive) to 2.
    pub minmod_theta: f64,
    /// Dual energy: carries the internal energy as a component after the total one; not if [`Scheme::is_for_gas_alone`].
    pub dual: Option<DualEnergy>,
    /// Magnetic field; not if [`Scheme::is_for_gas_alone`], or without an energy.
    pub magnetic: Option<MagneticMethod>,
}

impl Default for FluidMethod {
    /// MUSCL-Hancock, PLM, monotonized central, HLLC.
    fn default() -> Self {
        FluidMethod {
            equation: EquationOfState::GammaLaw,
            scheme: Scheme::MusclHancock,
            reconstruction: Reconstruction::Plm,
            variables: Variables::Primitive,
            limiter: Limiter::MonotonizedCentral,
            riemann: RiemannSolver::Hllc,
            shock_cure: ShockCure::None,
            flattening: None,
            minmod_theta: 1.5,
            dual: None,
            magnetic: None,
        }
    }
}

impl FluidMethod {
    /// Returns the number of gas components, before the scalars.
    #[must_use]
    pub fn gas_components(&self) -> usize {
        self.variables_of_law() + usize::from(self.dual.is_some())
    }

    /// Returns the number of variables of the law, which is that of its primitive variables.
    #[must_use]
    pub fn variables_of_law(&self) -> usize {
        let of_field = self.magnetic.map_or(0, MagneticMethod::components);
        self.equation.components() + of_field
    }

    /// Returns the component of the cleaning variable of a magnetic field. Its fluxes contain the cleaning speed, which differs between
    /// levels, and are not corrected.
    #[must_use]
    pub fn cleaning_component(&self) -> Option<usize> {
        let cleans = self.magnetic == Some(MagneticMethod::Glm);
        cleans.then(|| self.variables_of_law() - 1)
    }

    /// Returns `true` if the magnetic field is one on cell faces.
    #[must_use]
    pub fn has_face_field(&self) -> bool {
        self.magnetic == Some(MagneticMethod::ConstrainedTransport)
    }

    /// Returns the Riemann solver for the text of a device; `None` if it does not serve the law.
    #[must_use]
    pub fn riemann_item(&self) -> Option<&'static Item> {
        match (self.equation.has_energy(), self.magnetic) {
            (true, None) if self.riemann.needs_field() => None,
            (true, None) => Some(self.riemann.item()),
            (true, Some(_)) => self.riemann.item_with_field(),
            (false, _) => self.riemann.item_without_energy(),
        }
    }

    /// Returns `true` if shocks are detected.
    #[must_use]
    pub fn cures_shocks(&self) -> bool {
        self.shock_cure == ShockCure::Hlle
    }

    /// Returns `true` if slopes of the gas are limited by [`FluidMethod::limiter`].
    #[must_use]
    pub fn limits_slopes(&self) -> bool {
        match self.reconstruction {
            Reconstruction::Plm => true,
            Reconstruction::Ppm => {
                self.scheme == Scheme::VanLeer
                    || (self.has_stages() && self.variables == Variables::Characteristic)
            }
            Reconstruction::Constant | Reconstruction::WenoZ => false,
        }
    }

    /// Returns `true` if the states at faces follow from parabolas, so that the distances to both edges differ.
    #[must_use]
    pub fn is_parabolic(&self) -> bool {
        matches!(
            self.reconstruction,
            Reconstruction::Ppm | Reconstruction::WenoZ
        )
    }

    /// Returns `true` if distances from averages to edges shrink in strong shocks.
    #[must_use]
    pub fn flattens(&self) -> bool {
        // the predictor leaves out cells whose pressure the flattening of scalars would read
        let may_flatten =
            self.reconstruction != Reconstruction::Constant && self.scheme != Scheme::VanLeer;
        may_flatten && self.flattening.unwrap_or(self.preserves_extrema())
    }

    /// Returns `true` if the parabolas preserve extrema.
    #[must_use]
    pub fn preserves_extrema(&self) -> bool {
        self.reconstruction == Reconstruction::Ppm && !self.limits_slopes()
    }

    /// Returns `true` if a step has several stages.
    #[must_use]
    pub fn has_stages(&self) -> bool {
        self.scheme.stages().len() > 1
    }

    /// Returns `true` if they are limited in characteristic variables.
    #[must_use]
    pub fn limits_waves(&self) -> bool {
        self.limits_slopes() && self.variables == Variables::Characteristic
    }

    /// Returns the number of ghost layers that a step needs: one for the slopes (two with `ppm`, `weno-z` and flattening), one for the edges
    /// outside the patch, and one more for the predictor of the van Leer scheme.
    #[must_use]
    pub fn ghosts(&self) -> usize {
        let reconstruction = match self.is_parabolic() || self.flattens() {
            true => 3,
            false => 2,
        };
        reconstruction + usize::from(self.scheme == Scheme::VanLeer)
    }
}

impl EquationOfState {
    /// Returns pressure and squared sound speed of a gas; only the gamma law reads `pressure`.
    #[must_use]
    pub fn thermal(self, density: f64, pressure: f64, law: LawConstants) -> [f64; 2] {
        select_equation!(self, thermal::<f64>)(density, pressure, &law.0)
    }

    /// Returns density, velocity and pressure of a conserved state.
    #[must_use]
    pub fn primitive(self, state: &[f64], law: LawConstants) -> [f64; 5] {
        if self.has_energy() {
            let u = std::array::from_fn(|c| state[c]);
            return eos::primitive_from_conserved(&u, law.0[0]);
        }
        let u = std::array::from_fn(|c| state[c]);
        let [density, x, y, z] = barotropic::primitive_from_conserved(&u);
        let [pressure, _] = self.thermal(density, 0.0, law);
        [density, x, y, z, pressure]
    }
}

/// Returns all device items of this module for compilation tests of the generated CUDA text, apart from the functions of
/// [`DualStates`], which depend on the number of components.
#[must_use]
pub fn device_items() -> Vec<&'static Item> {
    let mut items = states_items();
    items.extend(faces_items());
    items.extend(Limiter::ALL.iter().map(|limiter| limiter.item()));
    items.extend(RiemannSolver::ALL.iter().map(|solver| solver.item()));
    items.extend(
        RiemannSolver::ALL
            .iter()
            .filter_map(|solver| solver.item_without_energy()),
    );
    items.extend(
        RiemannSolver::ALL
            .iter()
            .filter_map(|solver| solver.item_with_field()),
    );
    items.extend(EquationOfState::ALL.iter().map(|equation| equation.item()));
    items.extend(barotropic_items());
    items.extend(magnetic_items());
    items
}

/// Functions of gas without energy.
fn barotropic_items() -> Vec<&'static Item> {
    vec![
        barotropic::primitive_from_conserved::ITEM,
        barotropic::conserved_from_primitive::ITEM,
        barotropic::is_physical::ITEM,
        barotropic::repaired::ITEM,
        barotropic::checked_signal_rate::ITEM,
        barotropic::half_step::ITEM,
        barotropic::half_step_along::ITEM,
        barotropic::corrected::ITEM,
        barotropic::predicted::ITEM,
        barotropic::edges::ITEM,
        barotropic::traced_edges::ITEM,
        barotropic::basis::ITEM,
        barotropic::project::ITEM,
        barotropic::restore::ITEM,
        riemann::barotropic::flux_smoothed::ITEM,
    ]
}

/// Functions of gas with a magnetic field.
fn magnetic_items() -> Vec<&'static Item> {
    vec![
        magnetic::magnetic_energy::ITEM,
        magnetic::remainder::ITEM,
        magnetic::primitive_from_conserved::ITEM,
        magnetic::conserved_from_primitive::ITEM,
        magnetic::interpolated::ITEM,
        magnetic::from_interpolated::ITEM,
        magnetic::repaired::ITEM,
        magnetic::is_physical::ITEM,
        magnetic::fast_speed::ITEM,
        magnetic::checked_signal_rate::ITEM,
        magnetic::checked_signal_rate_from_internal::ITEM,
        magnetic::half_step::ITEM,
        magnetic::edges::ITEM,
        magnetic::traced_edges::ITEM,
        riemann::magnetic::flux_smoothed::ITEM,
        transport::remainder::ITEM,
        transport::interpolated::ITEM,
        transport::from_interpolated::ITEM,
        transport::repaired::ITEM,
        transport::is_physical::ITEM,
        transport::with_field::ITEM,
        transport::electric_field_along::ITEM,
        transport::mean_electric_field::ITEM,
        transport::contact_electric_field::ITEM,
    ]
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
        eos::primitive_from_internal::ITEM,
        dual::checked_signal_rate::ITEM,
        dual::advanced::ITEM,
        dual::max_velocity_change_squared::ITEM,
        dual::compression_jump::ITEM,
        dual::slope_factor::ITEM,
        dual::reconcile_energies::ITEM,
        dual::reconciled_energy::ITEM,
        hancock::half_step::ITEM,
        hancock::half_step_along::ITEM,
        hancock::transverse_change::ITEM,
        hancock::corrected::ITEM,
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
        characteristic::basis::ITEM,
        characteristic::project::ITEM,
        characteristic::restore::ITEM,
        dual::upwind_state::ITEM,
        ppm::parabola::ITEM,
        ppm::bounded_parabola::ITEM,
        ppm::limited_parabola::ITEM,
        ppm::flattening::ITEM,
        weno::weno_z::ITEM,
        riemann::wave_speeds::ITEM,
        riemann::flux_of_state::ITEM,
        riemann::flux_of_scalar::ITEM,
        riemann::normalized_fraction::ITEM,
        riemann::hlle::flux_smoothed::ITEM,
        shock::shock_along::ITEM,
        shock::damped::ITEM,
    ]
}
