//! The Gresho vortex (Gresho & Chan 1990, Int. J. Numer. Methods Fluids 11, 621; Liska & Wendroff 2003, SIAM J. Sci.
//! Comput. 25, 995, sec. 4.4).

use nestar_device::math::ln;

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
