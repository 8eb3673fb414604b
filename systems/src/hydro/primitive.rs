//! Gas states by primitive variables.

use crate::fields::GAS_COMPONENTS;
use nestar_device::{Real, device};
use nestar_kernels::hydro::eos::conserved_from_primitive;

/// A gas state at a point, in code units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Primitive {
    /// Mass density, positive.
    pub density: f64,
    /// Velocity.
    pub velocity: [f64; 3],
    /// Pressure, positive. Gas whose pressure follows from the density ignores it.
    pub pressure: f64,
}

impl Primitive {
    /// Writes density, momentum and total energy density to `out[0..5]`.
    pub fn conserved(&self, gamma: f64, out: &mut [f64]) {
        out[..GAS_COMPONENTS].copy_from_slice(&self.conserved_array(gamma));
    }

    /// Returns density, momentum and total energy density.
    pub(super) fn conserved_array(&self, gamma: f64) -> [f64; GAS_COMPONENTS] {
        conserved_from_primitive(&self.array(), gamma)
    }

    /// Returns the internal energy density.
    pub(super) fn internal_energy(&self, gamma: f64) -> f64 {
        self.pressure * (1.0 / (gamma - 1.0))
    }

    /// Density, velocity x y z, pressure.
    pub(super) fn array(&self) -> [f64; GAS_COMPONENTS] {
        let [x, y, z] = self.velocity;
        [self.density, x, y, z, self.pressure]
    }

    pub(super) fn is_physical(&self) -> bool {
        is_physical(&self.array())
    }
}

/// Returns `true` if density and pressure are positive and all values are finite.
#[device]
pub(super) fn is_physical<R: Real>(w: &[R; 5]) -> bool {
    let finite = w[1].is_finite() && w[2].is_finite() && w[3].is_finite();
    finite && w[0] > 0.0 && w[0].is_finite() && w[4] > 0.0 && w[4].is_finite()
}
