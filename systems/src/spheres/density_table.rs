//! Tabulated density profiles.

use super::error::{SphereError, in_range, positive};
use super::radial_function::{LocalDensity, RadialFunction, RadialGrid};
use nestar_device::math::{exp, ln};
use std::f64::consts::PI;

/// Smallest number of radii.
const FEWEST: usize = 4;
/// Start of the tabulated mass, relative to the first radius.
const INNER: f64 = 1e-6;
/// Intervals of the tabulated mass.
const CELLS: usize = 4000;

/// Cubic spline of ln density over ln radius. Beyond the last radius the density is a power law; within the
/// first its slope tends to that of a core or a cusp.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DensityTable {
    /// ln radius, ln density, and the second derivative of the spline.
    knots: Vec<[f64; 3]>,
    centre: CentralSlope,
    /// Radius and steepness at the start of the tabulated mass.
    inner: (f64, f64),
    mass: RadialFunction,
}

/// Within the first radius the steepness is `limit + rest (r/first)^power`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CentralSlope {
    limit: f64,
    rest: f64,
    power: f64,
}

impl DensityTable {
    /// Interpolates densities at radii.
    pub fn new(radius: &[f64], density: &[f64]) -> Result<Self, SphereError> {
        check(radius, density)?;
        let knots = spline(radius, density);
        let [first, last] = [0, radius.len() - 1];
        let from = INNER * radius[first];
        let mut table = Self {
            centre: CentralSlope::of(between(&knots, knots[first][0])),
            knots,
            inner: (from, 0.0),
            // computed below from the rest of the table
            mass: RadialFunction::through(RadialGrid::new(1.0, 2.0, 1), |_| [1.0, 0.0]),
        };
        table.inner.1 = table.local(from).steepness;
        if table.inner.1 >= 2.5 {
            let why = format!(
                "must begin with a slope d ln density / d ln radius above -2.5, so that the central mass is \
                 small; it is {:.3}: add radii further in",
                -table.inner.1
            );
            return Err(SphereError::parameter("density[0]", why));
        }
        let end = table.local(radius[last]).steepness;
        if end <= 3.0 {
            let why = format!(
                "must end with a slope d ln density / d ln radius below -3, so that the mass is finite; it is \
                 {:.3}: add radii further out",
                -end
            );
            return Err(SphereError::parameter(format!("density[{last}]"), why));
        }
        let grid = RadialGrid::new(from, radius[last], CELLS);
        let within = table.shell(from) / (3.0 - table.inner.1);
        table.mass = RadialFunction::outwards(grid, within, |r| table.shell(r));
        Ok(table)
    }

    /// Returns the density and its logarithmic slopes at a radius.
    pub fn local(&self, r: f64) -> LocalDensity {
        let (place, first, last) = (ln(r), self.knots[0], self.knots[self.knots.len() - 1]);
        if place < first[0] {
            return self.centre.local(first, place);
        }
        if place <= last[0] {
            return between(&self.knots, place);
        }
        let steepness = between(&self.knots, last[0]).steepness;
        LocalDensity {
            density: exp(last[1] - steepness * (place - last[0])),
            steepness,
            steepening: 0.0,
        }
    }

    /// Returns the mass within a radius.
    pub fn mass(&self, r: f64) -> f64 {
        let (inner, steepness) = self.inner;
        if r < inner {
            return self.shell(r) / (3.0 - steepness);
        }
        let (place, last) = (ln(r), self.last());
        let within = self.mass.at(place);
        if r <= last {
            return within;
        }
        let steepness = self.local(r).steepness;
        within + (self.shell(last) - self.shell(r)) / (steepness - 3.0)
    }

    /// Returns the last radius.
    pub fn last(&self) -> f64 {
        exp(self.knots[self.knots.len() - 1][0])
    }

    /// Returns the mass of a shell per unit of ln radius.
    fn shell(&self, r: f64) -> f64 {
        4.0 * PI * r * r * r * self.local(r).density
    }
}

impl CentralSlope {
    /// Chooses the inner slope. A steepness that falls towards the centre at least as fast as the radius
    /// gives a core, a slower fall a cusp, and no fall a power law.
    fn of(first: LocalDensity) -> Self {
        let ratio = first.steepening / first.steepness;
        let share = if ratio > 0.0 { ratio.min(1.0) } else { 0.0 };
        Self {
            limit: first.steepness * (1.0 - share),
            rest: first.steepness * share,
            power: ratio.clamp(1.0, 4.0),
        }
    }

    fn local(&self, [x, y, _]: [f64; 3], place: f64) -> LocalDensity {
        let share = exp(self.power * (place - x));
        let rise = self.limit * (x - place) + self.rest / self.power * (1.0 - share);
        LocalDensity {
            density: exp(y + rise),
            steepness: self.limit + self.rest * share,
            steepening: self.rest * self.power * share,
        }
    }
}

/// Interpolates between the first and the last knot.
fn between(knots: &[[f64; 3]], place: f64) -> LocalDensity {
    let above = knots.partition_point(|knot| knot[0] <= place);
    let n = above.clamp(1, knots.len() - 1) - 1;
    let ([x0, y0, s0], [x1, y1, s1]) = (knots[n], knots[n + 1]);
    let h = x1 - x0;
    let (a, b) = ((x1 - place) / h, (place - x0) / h);
    let bent = (a * a * a - a) * s0 + (b * b * b - b) * s1;
    let turned = (3.0 * b * b - 1.0) * s1 - (3.0 * a * a - 1.0) * s0;
    LocalDensity {
        density: exp(a * y0 + b * y1 + bent * h * h / 6.0),
        steepness: (y0 - y1) / h - turned * h / 6.0,
        steepening: -(a * s0 + b * s1),
    }
}

/// Checks radii and densities.
fn check(radius: &[f64], density: &[f64]) -> Result<(), SphereError> {
    if radius.len() < FEWEST {
        let why = format!("must have at least {FEWEST} radii, not {}", radius.len());
        return Err(SphereError::parameter("radius", why));
    }
    if radius.len() != density.len() {
        let why = format!(
            "must have one density for each of the {} radii, not {}",
            radius.len(),
            density.len()
        );
        return Err(SphereError::parameter("density", why));
    }
    for n in 0..radius.len() {
        in_range(&format!("radius[{n}]"), radius[n])?;
        positive(&format!("density[{n}]"), density[n])?;
        if n > 0 && radius[n] <= radius[n - 1] {
            let why = format!(
                "must be above the previous one, {}, not {}",
                radius[n - 1],
                radius[n]
            );
            return Err(SphereError::parameter(format!("radius[{n}]"), why));
        }
    }
    Ok(())
}

/// Solves the tridiagonal system for the second derivatives of the spline (Press et al., Numerical Recipes,
/// 3.3). The third derivative is continuous at the second knot; the second derivative is 0 at the last.
fn spline(radius: &[f64], density: &[f64]) -> Vec<[f64; 3]> {
    let last = radius.len() - 1;
    let mut knots: Vec<[f64; 3]> = radius
        .iter()
        .zip(density)
        .map(|(&r, &rho)| [ln(r), ln(rho), 0.0])
        .collect();
    let ratio = (knots[1][0] - knots[0][0]) / (knots[2][0] - knots[1][0]);
    // ahead[n]: coefficient of the second derivative of knot n + 1 in that of knot n
    let mut ahead = vec![0.0; last + 1];
    for n in 1..last {
        let [[x0, y0, s0], [x, y, _], [x1, y1, _]] = [knots[n - 1], knots[n], knots[n + 1]];
        let (before, after) = (x - x0, x1 - x);
        let bend = 6.0 * ((y1 - y) / after - (y - y0) / before);
        let (own, next) = if n == 1 {
            (1.0 + ratio, -ratio)
        } else {
            (ahead[n - 1], 0.0)
        };
        let pivot = 2.0 * (before + after) + before * own;
        ahead[n] = -(after + before * next) / pivot;
        knots[n][2] = (bend - before * s0) / pivot;
    }
    for n in (1..last).rev() {
        knots[n][2] += ahead[n] * knots[n + 1][2];
    }
    knots[0][2] = (1.0 + ratio) * knots[1][2] - ratio * knots[2][2];
    knots
}
