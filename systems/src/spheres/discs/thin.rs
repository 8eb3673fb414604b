//! Force of an infinitely thin exponential disc.

use super::super::radial_function::integrals;
use super::grid::{Axis, PlaneTable, arsinh};
use nestar_device::math::{cosh, exp, ln, sinh};
use std::f64::consts::FRAC_2_PI;
use std::sync::OnceLock;

/// Largest radius and height of the tables, in scale radii.
pub(super) const FAR: f64 = 24.0;
/// Smallest height at which the force is evaluated; it differs from that in the plane by this fraction.
const LOWEST: f64 = 1e-6;
/// Outer radius of the mass.
const REACH: f64 = 40.0;
/// Width of an interval of quadrature, in scale radii or of the variable `t`.
const WIDTH: f64 = 0.5;

/// Returns the force of the disc of unit mass and scale radius, tabulated once.
pub(super) fn table() -> &'static PlaneTable<2> {
    static TABLE: OnceLock<PlaneTable<2>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let axes = [Axis::new(0.02, FAR, 128), Axis::new(0.002, FAR, 112)];
        PlaneTable::new(axes, force)
    })
}

/// Returns the force towards the centre and towards the plane, per unit mass and for a gravitational constant
/// of 1, of a thin exponential disc of unit mass and scale radius. Height 0 gives the limit from above. The relative
/// error is below 1e-5.
///
/// The disc is a sum of homoeoids of radius `a` with the weight `a K0(a)` (Cuddeford, MNRAS 262,
/// 1076 (1993)), whose equipotential surfaces are spheroids.
pub fn force(r: f64, z: f64) -> [f64; 2] {
    let z = z.max(LOWEST);
    let weighted = |beyond: f64, width: f64| {
        let a = r + beyond;
        let weight = FRAC_2_PI * a * a * bessel_k0(a) * width;
        homoeoid(r, z, beyond).map(|force| weight * force)
    };
    let intervals = |[from, to]: [f64; 2]| ((to - from) / WIDTH) as usize + 1;
    let inner = [-r, -0.5 * r];
    let inner = integrals(inner, intervals(inner), |beyond| weighted(beyond, 1.0));
    // a = r + scale sinh(t): the integrand is smooth in t, also where a is near r
    let scale = z.min(WIDTH);
    let outer = [-0.5 * r / scale, (REACH - r) / scale].map(arsinh);
    let outer = integrals(outer, intervals(outer), |t| {
        weighted(scale * sinh(t), scale * cosh(t))
    });
    [inner[0] + outer[0], inner[1] + outer[1]]
}

/// Returns the force of a homoeoid of radius `r + beyond` over this radius, from the oblate spheroidal
/// coordinates of a point: `r = a cosh(u) cos(v)`, `z = a sinh(u) sin(v)`.
fn homoeoid(r: f64, z: f64, beyond: f64) -> [f64; 2] {
    let far = 2.0 * r + beyond;
    let [outer, inner] = [far, beyond].map(|x| (z * z + x * x).sqrt());
    let (sum, product) = (outer + inner, outer * inner);
    // (sum^2 - 4 a^2)(sum^2 - 4 r^2) = 4 sum^2 z^2; the larger factor has no cancellation
    let larger = (2.0 * (z * z + (beyond * far).abs() + product)).sqrt();
    let smaller = 2.0 * sum * z / larger;
    let [across, up] = match beyond > 0.0 {
        true => [smaller, larger],
        false => [larger, smaller],
    };
    [
        across * 2.0 * r / (sum * sum * product),
        up / (sum * product),
    ]
}

/// Returns the modified Bessel function `K0`, with a relative error of 2e-7 (Abramowitz & Stegun 1964, 9.8.1,
/// 9.8.5 and 9.8.6).
fn bessel_k0(x: f64) -> f64 {
    let series = |t: f64, terms: &[f64]| terms.iter().rev().fold(0.0, |sum, term| sum * t + term);
    if x > 2.0 {
        const FAR: [f64; 7] = [
            1.25331414,
            -0.07832358,
            0.02189568,
            -0.01062446,
            0.00587872,
            -0.00251540,
            0.00053208,
        ];
        return exp(-x) / x.sqrt() * series(2.0 / x, &FAR);
    }
    const I0: [f64; 7] = [
        1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813,
    ];
    const K0: [f64; 7] = [
        -0.57721566,
        0.42278420,
        0.23069756,
        0.03488590,
        0.00262698,
        0.00010750,
        0.00000740,
    ];
    if x <= 0.0 {
        // x^2 K0(x) is 0 there
        return 0.0;
    }
    series(x * x / 4.0, &K0) - ln(x / 2.0) * series(x * x / 14.0625, &I0)
}
