//! The sphere of Hernquist (ApJ 356, 359 (1990)), as the gravity test of GAMER-2 has it (Schive et al., MNRAS 481, 4815 (2018),
//! appendix A).

mod exterior;
mod gas;

pub use exterior::Outside;
pub use gas::Gas;

use crate::gauss::{legendre, line, rectangle};
use std::f64::consts::PI;

/// Widths of a cell within which the cusp asks for the sum over its faces.
const NEAR: f64 = 8.0;

/// A sphere of density `rho0/((r/r0)(1 + r/r0)^3)` around the origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hernquist {
    /// Newton's constant.
    pub gravity: f64,
    /// Density `rho0`.
    pub density: f64,
    /// Radius `r0`, length.
    pub radius: f64,
}

impl Default for Hernquist {
    /// All constants 1.
    fn default() -> Self {
        Self {
            gravity: 1.0,
            density: 1.0,
            radius: 1.0,
        }
    }
}

impl Hernquist {
    /// The density at a radius above 0.
    #[must_use]
    pub fn density(&self, r: f64) -> f64 {
        let s = r / self.radius;
        self.density / (s * (1.0 + s).powi(3))
    }

    /// The mass within a radius: 2 pi rho0 r0^3 in all.
    #[must_use]
    pub fn mass(&self, r: f64) -> f64 {
        let s = r / self.radius;
        2.0 * PI * self.density * self.radius.powi(3) * (s / (1.0 + s)).powi(2)
    }

    /// The potential of the whole sphere, -2 pi G rho0 r0^2/(1 + r/r0).
    #[must_use]
    pub fn potential(&self, r: f64) -> f64 {
        -2.0 * PI * self.gravity * self.density * self.radius.powi(2) / (1.0 + r / self.radius)
    }

    /// The acceleration by the whole sphere, of size 2 pi G rho0 r0/(1 + r/r0)^2; 0 at the centre, where it has no direction.
    #[must_use]
    pub fn acceleration(&self, x: [f64; 3]) -> [f64; 3] {
        let r = length(x);
        if r == 0.0 {
            return [0.0; 3];
        }
        let s = 1.0 + r / self.radius;
        let size = 2.0 * PI * self.gravity * self.density * self.radius / (s * s);
        x.map(|x| -size * x / r)
    }

    /// What the mass outside a cube does within it.
    #[must_use]
    pub fn outside(&self, half_width: f64) -> Outside {
        Outside::new(self, half_width)
    }

    /// The mean density of a cell between two corners, to 1e-10 relative, wherever it lies: where the cusp is within 8 widths by fluxes
    /// through its faces, elsewhere by the rule of Gauss and Legendre with five points an axis.
    #[must_use]
    pub fn cell_mean(&self, low: [f64; 3], high: [f64; 3]) -> f64 {
        let width: [f64; 3] = std::array::from_fn(|a| high[a] - low[a]);
        let most = width.iter().fold(0.0, |most: f64, w| most.max(*w));
        let nearest = length(std::array::from_fn(|a| low[a].max(-high[a]).max(0.0)));
        let volume: f64 = width.iter().product();
        if nearest < NEAR * most {
            return self.flux(low, high) / volume;
        }
        let five = legendre(5);
        let along = |z: f64| {
            rectangle(&five, [low[0], high[0]], [low[1], high[1]], |x, y| {
                self.density(length([x, y, z]))
            })
        };
        line(&five, [low[2], high[2]], along) / volume
    }

    /// The mass between two corners: the density is the divergence of x M(r)/(4 pi r^3), so that faces tell it, of which none is
    /// near the cusp that does not contain it.
    fn flux(&self, low: [f64; 3], high: [f64; 3]) -> f64 {
        let rule = legendre(12);
        let mut mass = 0.0;
        for axis in 0..3 {
            let (b, c) = ((axis + 1) % 3, (axis + 2) % 3);
            for distance in [high[axis], -low[axis]] {
                let area = [[low[b], high[b]], [low[c], high[c]]];
                mass += self.through(&rule, distance, area);
            }
        }
        mass
    }

    /// The flux through a rectangle at the distance `height` from the centre: parts that are longer than they are far are halved.
    fn through(&self, rule: &[(f64, f64)], height: f64, area: [[f64; 2]; 2]) -> f64 {
        if height == 0.0 {
            return 0.0;
        }
        let [u, v] = area;
        let near = |[low, high]: [f64; 2]| low.max(-high).max(0.0);
        let away = length([height, near(u), near(v)]);
        let sides = [u[1] - u[0], v[1] - v[0]];
        let longer = usize::from(sides[1] > sides[0]);
        if sides[longer] > 1.001 * away {
            let middle = 0.5 * (area[longer][0] + area[longer][1]);
            let (mut below, mut above) = (area, area);
            (below[longer][1], above[longer][0]) = (middle, middle);
            return self.through(rule, height, below) + self.through(rule, height, above);
        }
        let density = |x, y| {
            let r = length([height, x, y]);
            self.density * self.radius.powi(3) / (2.0 * r * (self.radius + r).powi(2))
        };
        height * rectangle(rule, u, v, density)
    }
}

/// Length of a vector.
fn length(x: [f64; 3]) -> f64 {
    (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ODD: Hernquist = Hernquist {
        gravity: 0.7,
        density: 1.3,
        radius: 2.5,
    };

    #[test]
    fn potential_mass_and_acceleration_belong_together() {
        for r in [0.01, 0.3, 4.0, 60.0] {
            let h = 1e-4 * r;
            let slope = (ODD.potential(r + h) - ODD.potential(r - h)) / (2.0 * h);
            let pull = ODD.gravity * ODD.mass(r) / (r * r);
            assert!((slope / pull - 1.0).abs() < 1e-7, "{r} {slope} {pull}");
            let shell = (ODD.mass(r + h) - ODD.mass(r - h)) / (2.0 * h);
            assert!(
                (shell / (4.0 * PI * r * r * ODD.density(r)) - 1.0).abs() < 1e-7,
                "{r} {shell}"
            );
            let a = ODD.acceleration([0.6 * r, 0.0, -0.8 * r]);
            assert!(
                (a[0] + 0.6 * pull).abs() < 1e-14 * pull
                    && (a[2] - 0.8 * pull).abs() < 1e-14 * pull
            );
        }
        assert_eq!(ODD.acceleration([0.0; 3]), [0.0; 3]);
    }

    /// The sums over the cells of nested cubes give the mass in them, wherever their corners are.
    #[test]
    fn cell_means_do_not_depend_on_the_subdivision() {
        let sphere = Hernquist::default();
        for (low, width) in [
            ([0.0, 0.0, 0.0], 1.5625),
            ([-0.5, -0.5, -0.5], 1.0),
            ([-0.3, -1e-3, -0.7], 1.0),
            ([-0.5, 0.0, 1e-9], 1.0),
            ([1.5, -3.0, 4.5], 1.5),
            ([30.0, -20.0, 10.0], 3.0),
        ] {
            let corner = |n: [f64; 3]| std::array::from_fn(|a| low[a] + width * n[a]);
            let whole = sphere.cell_mean(low, corner([1.0; 3]));
            let mut parts = 0.0;
            for n in 0..27 {
                let at = [n % 3, n / 3 % 3, n / 9].map(f64::from);
                let (from, to) = (at.map(|x| x / 3.0), at.map(|x| (x + 1.0) / 3.0));
                parts += sphere.cell_mean(corner(from), corner(to)) / 27.0;
            }
            assert!(
                (whole / parts - 1.0).abs() < 1e-10,
                "{low:?} {whole} {parts}"
            );
        }
    }

    /// Near and far rules agree where one hands over to the other.
    #[test]
    fn both_rules_agree() {
        let sphere = ODD;
        for place in [[8.0, 0.0, 0.0], [8.1, -0.5, 3.0], [5.0, 5.0, 5.0]] {
            for width in [1e-3, 1.0, 10.0] {
                let low = place.map(|x| x * width);
                let high = low.map(|x| x + width);
                let (a, b) = (
                    sphere.cell_mean(low, high),
                    sphere.flux(low, high) / width.powi(3),
                );
                assert!((a / b - 1.0).abs() < 1e-10, "{place:?} {width} {a:e} {b:e}");
            }
        }
    }

    /// The mass of a tiny cube at the cusp is that of the cusp rho0 r0/r: 1.19003868 times the square of the width.
    #[test]
    fn the_cusp_is_known() {
        let sphere = Hernquist::default();
        let h = 1e-6;
        // the integral of 1/r over the unit cube from a corner
        let exact = 3.0 * (0.5 * ((3.0_f64.sqrt() + 1.0) / (3.0_f64.sqrt() - 1.0)).ln()) - PI / 4.0;
        let found = sphere.cell_mean([0.0; 3], [h; 3]) * h;
        assert!((found / exact - 1.0).abs() < 1e-5, "{found} {exact}");
    }
}
