//! Exact solutions, for initial states and for measuring errors against.
//!
//! All functions are deterministic: they use the mathematics of the device, not that of the platform.

mod gresho;
mod quadrature;
mod riemann;
mod sedov;
mod shock;
mod vortex;
mod wave;

pub use gresho::GreshoVortex;
pub use quadrature::{cell_average, integral};
pub use riemann::{RiemannProblem, TORO, Tube};
pub use sedov::{SedovSolution, sedov_radius};
pub use shock::Shock;
pub use vortex::Vortex;
pub use wave::{LinearWave, Mode};
