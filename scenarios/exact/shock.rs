//! The jump conditions of a shock.

use nestar_systems::hydro::Primitive;

/// A plane shock that moves along x into gas at rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shock {
    /// Upstream density.
    pub density: f64,
    /// Upstream pressure.
    pub pressure: f64,
    /// Mach number, at least 1.
    pub mach: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
}

impl Shock {
    /// Returns the speed of the shock.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.mach * (self.gamma * self.pressure / self.density).sqrt()
    }

    /// Returns the state upstream of the shock.
    #[must_use]
    pub fn ambient(&self) -> Primitive {
        Primitive {
            density: self.density,
            velocity: [0.0; 3],
            pressure: self.pressure,
        }
    }

    /// Returns the postshock state from the Rankine-Hugoniot conditions (Toro 2009, eqs. 3.57-3.60).
    #[must_use]
    pub fn postshock(&self) -> Primitive {
        let (g, square) = (self.gamma, self.mach * self.mach);
        let compression = (g + 1.0) * square / ((g - 1.0) * square + 2.0);
        Primitive {
            density: self.density * compression,
            velocity: [self.speed() * (1.0 - 1.0 / compression), 0.0, 0.0],
            pressure: self.pressure * (2.0 * g * square - (g - 1.0)) / (g + 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_postshock_state_at_mach_10_is_that_of_the_double_mach_reflection() {
        let shock = Shock {
            density: 1.4,
            pressure: 1.0,
            mach: 10.0,
            gamma: 1.4,
        };
        let postshock = shock.postshock();
        assert!((postshock.density - 8.0).abs() < 1e-13);
        assert!((postshock.velocity[0] - 8.25).abs() < 1e-13);
        assert!((postshock.pressure - 116.5).abs() < 1e-12);
        assert_eq!(shock.speed(), 10.0);
    }
}
