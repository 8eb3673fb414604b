//! Vortices: the isentropic vortex (Shu 1998, Lecture Notes in Mathematics 1697, p. 325), advected by a uniform flow,
//! and the Gresho vortex (Gresho & Chan 1990, Int. J. Numer. Methods Fluids 11, 621; Liska & Wendroff 2003, SIAM J.
//! Sci. Comput. 25, 995, sec. 4.4).

use super::wave::wrapped;
use nestar_device::math::{exp, ln, pow};
use nestar_systems::hydro::Primitive;
use std::f64::consts::PI;

/// A vortex around the z axis in a uniform flow, in a box that is periodic along x and y. Entropy is uniform; density,
/// pressure and temperature are 1 far from the vortex.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Vortex {
    /// Strength beta; 5 in the source.
    pub strength: f64,
    /// Centre at time 0.
    pub centre: [f64; 2],
    /// Velocity of the flow.
    pub velocity: [f64; 3],
    /// Size of the box along x and y.
    pub period: [f64; 2],
    /// Ratio of specific heats.
    pub gamma: f64,
}

impl Vortex {
    /// Returns the state at a point and time.
    #[must_use]
    pub fn at(&self, x: [f64; 3], t: f64) -> Primitive {
        let d: [f64; 2] = std::array::from_fn(|a| {
            wrapped(x[a] - self.centre[a] - self.velocity[a] * t, self.period[a])
        });
        let r2 = d[0] * d[0] + d[1] * d[1];
        let g = self.gamma;
        let spin = self.strength / (2.0 * PI) * exp(0.5 * (1.0 - r2));
        let temperature = 1.0 - (g - 1.0) / (2.0 * g) * spin * spin;
        let density = pow(temperature, 1.0 / (g - 1.0));
        Primitive {
            density,
            velocity: [
                self.velocity[0] - spin * d[1],
                self.velocity[1] + spin * d[0],
                self.velocity[2],
            ],
            pressure: density * temperature,
        }
    }

    /// Returns the temperature at the centre, which must be positive.
    #[must_use]
    pub fn central_temperature(&self) -> f64 {
        let spin = self.strength / (2.0 * PI) * exp(0.5);
        1.0 - (self.gamma - 1.0) / (2.0 * self.gamma) * spin * spin
    }
}

/// A stationary vortex of density 1 with a triangular rotation curve, in centrifugal balance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GreshoVortex {
    /// Pressure at the centre; 5 in the sources.
    pub central_pressure: f64,
}

impl GreshoVortex {
    /// Returns rotation speed and pressure at distance `r` from the axis.
    #[must_use]
    pub fn at(&self, r: f64) -> (f64, f64) {
        let p = self.central_pressure;
        if r < 0.2 {
            (5.0 * r, p + 12.5 * r * r)
        } else if r < 0.4 {
            let curved = 12.5 * r * r + 4.0 * (1.0 - 5.0 * r + ln(5.0 * r));
            (2.0 - 5.0 * r, p + curved)
        } else {
            (0.0, p - 2.0 + 4.0 * ln(2.0))
        }
    }

    /// Creates the vortex whose maximum Mach number, at r = 0.2 with speed 1, is `mach`.
    #[must_use]
    pub fn with_mach(mach: f64, gamma: f64) -> Self {
        // at r = 0.2: p = central + 0.5, density 1, c^2 = gamma p
        Self {
            central_pressure: 1.0 / (gamma * mach * mach) - 0.5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vortex_is_in_balance_and_returns() {
        let vortex = Vortex {
            strength: 5.0,
            centre: [5.0, 5.0],
            velocity: [1.0, 1.0, 0.0],
            period: [10.0, 10.0],
            gamma: 1.4,
        };
        // centrifugal balance: dp/dr = rho v^2 / r
        for r in [0.3, 1.0, 2.0] {
            let h = 1e-5;
            let slope = (vortex.at([5.0 + r + h, 5.0, 0.0], 0.0).pressure
                - vortex.at([5.0 + r - h, 5.0, 0.0], 0.0).pressure)
                / (2.0 * h);
            let here = vortex.at([5.0 + r, 5.0, 0.0], 0.0);
            let spin = here.velocity[1] - 1.0;
            assert!((slope - here.density * spin * spin / r).abs() < 1e-8);
        }
        let (before, after) = (
            vortex.at([4.0, 6.5, 0.0], 0.0),
            vortex.at([4.0, 6.5, 0.0], 10.0),
        );
        assert!((before.density - after.density).abs() < 1e-14);
        assert!(vortex.central_temperature() > 0.0);
    }

    #[test]
    fn pressure_balances_rotation_and_is_continuous() {
        let vortex = GreshoVortex {
            central_pressure: 5.0,
        };
        for r in [0.1, 0.25, 0.39] {
            let h = 1e-6;
            let slope = (vortex.at(r + h).1 - vortex.at(r - h).1) / (2.0 * h);
            let (v, _) = vortex.at(r);
            assert!((slope - v * v / r).abs() < 1e-7, "{r}");
        }
        for r in [0.2, 0.4] {
            let (below, above) = (vortex.at(r - 1e-12), vortex.at(r + 1e-12));
            assert!((below.0 - above.0).abs() < 1e-10 && (below.1 - above.1).abs() < 1e-10);
        }
        let tuned = GreshoVortex::with_mach(0.1, 1.4);
        assert!((1.0 / (1.4 * tuned.at(0.2).1).sqrt() - 0.1).abs() < 1e-12);
    }
}
