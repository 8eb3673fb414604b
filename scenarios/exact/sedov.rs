//! The self-similar point explosion (Sedov 1959, in the form of Kamm & Timmes 2007, LA-UR-07-2849).

use nestar_device::math::pow;

/// Number of intervals of the quadrature in the similarity variable.
const INTERVALS: usize = 2000;

/// A point explosion in a uniform pressureless medium, in three dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SedovSolution {
    gamma: f64,
    /// The constant of E = alpha rho R^5 / t^2.
    alpha: f64,
}

/// Exponents and coefficients of the solution as functions of gamma (Kamm & Timmes 2007, eqs. 33-47, uniform medium).
struct Coefficients {
    b: f64,
    c: f64,
    d: f64,
    e: f64,
    alpha_1: f64,
    alpha_2: f64,
    alpha_3: f64,
    alpha_4: f64,
    alpha_5: f64,
    v_min: f64,
    v_max: f64,
}

impl Coefficients {
    fn new(g: f64) -> Self {
        let thermal = 2.0 + 3.0 * (g - 1.0);
        let alpha_2 = -(g - 1.0) / (2.0 * (g - 1.0) + 3.0);
        let alpha_1 = 5.0 * g / thermal * (6.0 * (2.0 - g) / (25.0 * g) - alpha_2);
        Self {
            b: (g + 1.0) / (g - 1.0),
            c: 2.5 * g,
            d: 5.0 * (g + 1.0) / (5.0 * (g + 1.0) - 2.0 * thermal),
            e: 0.5 * thermal,
            alpha_1,
            alpha_2,
            alpha_3: 3.0 / (2.0 * (g - 1.0) + 3.0),
            alpha_4: 5.0 / (2.0 - g) * alpha_1,
            alpha_5: -2.0 / (2.0 - g),
            v_min: 2.0 / (5.0 * g),
            v_max: 4.0 / (5.0 * (g + 1.0)),
        }
    }

    /// Returns the four factors at the similarity velocity `v`, and the radius in units of the shock radius.
    fn factors(&self, g: f64, v: f64) -> ([f64; 4], f64) {
        let x = [
            1.25 * (g + 1.0) * v,
            self.b * (self.c * v - 1.0),
            self.d * (1.0 - self.e * v),
            self.b * (1.0 - self.c * v / g),
        ];
        let radius = pow(x[0], -0.4) * pow(x[1].max(0.0), -self.alpha_2) * pow(x[2], -self.alpha_1);
        (x, radius)
    }
}

impl SedovSolution {
    /// Creates the solution for a gas with ratio of specific heats `gamma`, 1 < gamma < 2.
    ///
    /// # Panics
    /// Panics if `gamma` is out of range.
    #[must_use]
    pub fn new(gamma: f64) -> Self {
        assert!(
            gamma > 1.0 && gamma < 2.0,
            "the solution needs 1 < gamma < 2, found {gamma}"
        );
        let mut solution = Self { gamma, alpha: 1.0 };
        // energy of a shock of radius 1 at time 1 in a medium of density 1, by Simpson's rule
        let mut sum = 0.0;
        for n in 0..=INTERVALS {
            let weight = match n {
                0 | INTERVALS => 1.0,
                n if n % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let r = n as f64 / INTERVALS as f64;
            let [density, velocity, pressure] = solution.scaled(r);
            let energy = 0.5 * density * velocity * velocity + pressure / (gamma - 1.0);
            sum += weight * r * r * energy;
        }
        solution.alpha = 4.0 * std::f64::consts::PI * sum / (3.0 * INTERVALS as f64);
        solution
    }

    /// Returns the radius of the shock at time `t` after an explosion of `energy` in a medium of `density`.
    #[must_use]
    pub fn radius(&self, energy: f64, density: f64, t: f64) -> f64 {
        pow(energy * t * t / (self.alpha * density), 0.2)
    }

    /// Returns density, radial velocity and pressure at distance `r` from the centre at time `t`. Outside the shock, the
    /// medium is at rest without pressure.
    #[must_use]
    pub fn at(&self, energy: f64, density: f64, r: f64, t: f64) -> [f64; 3] {
        let shock = self.radius(energy, density, t);
        if r > shock {
            return [density, 0.0, 0.0];
        }
        let [d, v, p] = self.scaled(r / shock);
        let speed = shock / t;
        [density * d, speed * v, density * speed * speed * p]
    }

    /// Returns the state at radius `r` inside a shock of radius 1 at time 1 in a medium of density 1.
    fn scaled(&self, r: f64) -> [f64; 3] {
        let g = self.gamma;
        let k = Coefficients::new(g);
        let (mut low, mut high) = (k.v_min, k.v_max);
        // bisection: the radius increases with v
        while high - low > 1e-15 * high && 0.5 * (low + high) > low && 0.5 * (low + high) < high {
            let middle = 0.5 * (low + high);
            if k.factors(g, middle).1 < r {
                low = middle;
            } else {
                high = middle;
            }
        }
        let (x, _) = k.factors(g, high);
        let shock_speed = 0.4;
        let density = pow(x[1].max(0.0), k.alpha_3) * pow(x[2], k.alpha_4) * pow(x[3], k.alpha_5);
        let pressure =
            pow(x[0], 1.2) * pow(x[2], k.alpha_4 - 2.0 * k.alpha_1) * pow(x[3], 1.0 + k.alpha_5);
        [
            (g + 1.0) / (g - 1.0) * density,
            2.0 * shock_speed / (g + 1.0) * x[0] * r,
            2.0 * shock_speed * shock_speed / (g + 1.0) * pressure,
        ]
    }
}

/// Returns the shock radius of a point explosion, beta (E t^2 / rho)^(1/5); beta is 1.15167 for gamma = 5/3 and 1.03278
/// for gamma = 1.4.
#[must_use]
pub fn sedov_radius(gamma: f64, energy: f64, density: f64, t: f64) -> f64 {
    SedovSolution::new(gamma).radius(energy, density, t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shock_radii_are_the_published_ones() {
        assert!((sedov_radius(5.0 / 3.0, 1.0, 1.0, 1.0) - 1.15167).abs() < 1e-5);
        assert!((sedov_radius(1.4, 1.0, 1.0, 1.0) - 1.03278).abs() < 1e-5);
        // with the energy of the published test, the radius is 1 at time 1
        assert!((sedov_radius(1.4, 0.851072, 1.0, 1.0) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn the_shock_jump_is_that_of_a_strong_shock() {
        let solution = SedovSolution::new(1.4);
        let t = 0.5;
        let radius = solution.radius(2.0, 3.0, t);
        let speed = 0.4 * radius / t;
        let [density, velocity, pressure] = solution.at(2.0, 3.0, radius, t);
        assert!((density / 18.0 - 1.0).abs() < 1e-9);
        assert!((velocity / (speed / 1.2) - 1.0).abs() < 1e-9);
        assert!((pressure / (3.0 * speed * speed / 1.2) - 1.0).abs() < 1e-9);
        assert_eq!(solution.at(2.0, 3.0, 1.01 * radius, t), [3.0, 0.0, 0.0]);
        // at the centre, density vanishes and pressure is 0.366 of the postshock pressure (Sedov 1959)
        let centre = solution.at(2.0, 3.0, 1e-3 * radius, t);
        assert!(
            centre[0] < 1e-6 && (centre[2] / pressure - 0.366).abs() < 0.001,
            "{centre:?}"
        );
    }
}
