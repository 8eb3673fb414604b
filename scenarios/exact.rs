//! Exact solutions, for initial states and for the measurement of errors.
//!
//! Results have the same bits on every platform: the functions use the mathematics of `nestar_device`.

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
