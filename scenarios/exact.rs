//! Exact solutions, for initial states and for the measurement of errors.
//!
//! Results have the same bits on every platform: the functions use the mathematics of `nestar_device`.

mod riemann;
mod sedov;
mod vortex;
mod wave;

pub use riemann::{RiemannProblem, Shock, TORO, Tube};
pub use sedov::{SedovSolution, sedov_radius};
pub use vortex::{GreshoVortex, Vortex};
pub use wave::{LinearWave, Mode};

/// Nodes in [-1/2, 1/2] and weights of the four-point Gauss-Legendre rule.
const GAUSS: [(f64, f64); 4] = [
    (-0.430_568_155_797_026_3, 0.173_927_422_568_726_93),
    (-0.169_990_521_792_428_13, 0.326_072_577_431_273_07),
    (0.169_990_521_792_428_13, 0.326_072_577_431_273_07),
    (0.430_568_155_797_026_3, 0.173_927_422_568_726_93),
];

/// Returns the integral of each component of `f` from `a` to `b` by the four-point Gauss-Legendre rule.
pub fn integral<const N: usize>(a: f64, b: f64, f: impl Fn(f64) -> [f64; N]) -> [f64; N] {
    let width = b - a;
    let mut sum = [0.0; N];
    for (node, weight) in GAUSS {
        let value = f(a + (0.5 + node) * width);
        for (s, v) in sum.iter_mut().zip(value) {
            *s += weight * width * v;
        }
    }
    sum
}

/// Returns the average of a smooth `f` over a cell, from `4^3` Gauss-Legendre points.
pub fn cell_average<const N: usize>(
    centre: [f64; 3],
    width: [f64; 3],
    f: impl Fn([f64; 3]) -> [f64; N],
) -> [f64; N] {
    let mut sum = [0.0; N];
    for (node_z, weight_z) in GAUSS {
        for (node_y, weight_y) in GAUSS {
            for (node_x, weight_x) in GAUSS {
                let value = f([
                    centre[0] + node_x * width[0],
                    centre[1] + node_y * width[1],
                    centre[2] + node_z * width[2],
                ]);
                for (s, v) in sum.iter_mut().zip(value) {
                    *s += weight_x * weight_y * weight_z * v;
                }
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use crate::exact::*;

    #[test]
    fn polynomials_of_degree_seven_are_integrated_exactly() {
        let [found] = integral(1.0, 3.0, |x: f64| [x.powi(7)]);
        assert!((found - 820.0).abs() < 1e-11, "{found}");
        let [found] = cell_average([1.0, 2.0, 3.0], [2.0, 2.0, 2.0], |x| [x[0] * x[1] * x[2]]);
        assert!((found - 6.0).abs() < 1e-13, "{found}");
    }
}
