//! Distribution functions by Eddington inversion, and the distribution of speeds at a radius.

use super::error::SphereError;
use super::profile::MassModel;
use super::radial_function::{RadialFunction, RadialGrid};
use std::f64::consts::PI;

/// Relative tolerance for negative values of the distribution function caused by interpolation.
const ROUND_OFF: f64 = 1e-6;

/// Isotropic distribution function `f(E)` of a component: mass per phase-space volume, with `E` minus the
/// total energy per unit mass.
///
/// Eddington, MNRAS 76, 572 (1916), as in Binney & Tremaine, Galactic Dynamics (2008), equation 4.46b: `f(E)
/// = [int_0^E (d2 rho/d Psi2) dPsi/sqrt(E - Psi) + (d rho/d Psi)(0)/sqrt(E)]/(sqrt(8) pi^2)`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Distribution {
    /// Energy of the innermost node, and the distribution function there.
    most: [f64; 2],
    /// Distribution function between the nodes, from the innermost outwards.
    cells: Vec<CubicSegment>,
}

/// Cubic polynomial of potential or energy between two nodes.
#[derive(Clone, Debug, PartialEq)]
struct CubicSegment {
    /// Argument at the outer node.
    outer: f64,
    /// Inverse difference to the inner node.
    scale: f64,
    /// Coefficients in `(argument - outer) * scale`, lowest power first.
    cubic: [f64; 4],
}

impl Distribution {
    /// Computes the distribution function at the energies of a grid's potentials.
    ///
    /// # Errors
    /// The distribution function is negative, or the potential does not decrease from node to node.
    pub fn new(
        matter: MassModel,
        grid: RadialGrid,
        potential: &RadialFunction,
    ) -> Result<Self, SphereError> {
        let energies: Vec<f64> = grid.nodes().map(|n| potential.value(n)).collect();
        if let Some(n) = (0..grid.cells).find(|&n| energies[n] <= energies[n + 1]) {
            let radius = grid.radius(n);
            return Err(SphereError::Unresolved { radius });
        }
        let bends: Vec<f64> = grid.nodes().map(|n| bend(matter, grid.radius(n))).collect();
        let cells = CubicSegment::all(&energies, &bends);
        // mass beyond the last node contributes as if at infinity
        let rest = first(matter, grid.radius(grid.cells));
        let constant = 8f64.sqrt() * PI * PI;
        let node = |n: usize| {
            let energy = energies[n];
            let [sum, size] = integral(&cells[n..], energy, energies[n]);
            let value = (sum + rest / energy.sqrt()) / constant;
            let radius = grid.radius(n);
            // maximal speed at the centre on orbits of this energy: bounds the missing density there
            let speed = (2.0 * (energies[0] - energy)).sqrt();
            let lack = -value * 4.0 / 3.0 * PI * speed * speed * speed;
            let lacks = lack > ROUND_OFF * matter.own.density(radius)
                && -value * constant > ROUND_OFF * size;
            if lacks || !value.is_finite() {
                return Err(SphereError::Negative { radius });
            }
            Ok(value.max(0.0))
        };
        let values: Vec<f64> = grid.nodes().map(node).collect::<Result<_, _>>()?;
        Ok(Self {
            most: [energies[0], values[0]],
            cells: CubicSegment::all(&energies, &values),
        })
    }

    /// Returns the distribution function at an energy.
    pub fn at(&self, energy: f64) -> f64 {
        self.from(&mut 0, energy)
    }

    /// Returns the distribution function at an energy. The search starts at cell `start`, which must be at or
    /// above the energy, and updates it.
    pub fn from(&self, start: &mut usize, energy: f64) -> f64 {
        let [most, value] = self.most;
        if energy >= most {
            return value;
        }
        while *start + 1 < self.cells.len() && self.cells[*start].outer > energy {
            *start += 1;
        }
        let cell = &self.cells[(*start).min(self.cells.len() - 1)];
        if energy < cell.outer {
            // beyond the last node, where almost no particles are
            return cell.at(cell.outer).max(0.0) * (energy / cell.outer).max(0.0);
        }
        // the cubic may overshoot where the function nearly vanishes
        cell.at(energy).max(0.0)
    }
}

/// Returns `d rho/d Psi`, with `Psi` minus the potential.
fn first(matter: MassModel, r: f64) -> f64 {
    let local = matter.own.local(r);
    local.density * local.steepness / matter.pull(r)
}

/// Returns `d2 rho/d Psi2`, from the derivative of `d rho/d Psi` by `ln r`.
fn bend(matter: MassModel, r: f64) -> f64 {
    let local = matter.own.local(r);
    let (n, pull) = (local.steepness, matter.pull(r));
    let change = n * (n - 1.0 + matter.mass_slope(r)) - local.steepening;
    local.density * change / (pull * pull)
}

/// Integrates over segments, the first of which begins at the potential `inner`. Returns the integral and
/// that of the integrand's magnitude.
fn integral(cells: &[CubicSegment], energy: f64, inner: f64) -> [f64; 2] {
    /// Half the distance of the points of the two-point Gauss-Legendre rule, relative to the interval.
    const POINT: f64 = 0.28867513459481287;
    let [mut sum, mut size] = [0.0; 2];
    let mut from = (energy - inner).sqrt();
    for cell in cells {
        // substitution u = sqrt(energy - Psi), which removes the root from the integrand
        let to = (energy - cell.outer).sqrt();
        let (middle, half) = (0.5 * (from + to), POINT * (to - from));
        let [low, high] = [middle - half, middle + half].map(|u| cell.at(energy - u * u));
        let part = (to - from) * (low + high);
        sum += part;
        size += part.abs();
        from = to;
    }
    [sum, size]
}

impl CubicSegment {
    /// Interpolates between all nodes; the arguments decrease.
    fn all(arguments: &[f64], values: &[f64]) -> Vec<Self> {
        (1..arguments.len())
            .map(|n| Self::new(n - 1, arguments, values))
            .collect()
    }

    /// Interpolates the four nodes around the interval from node `n` to `n + 1`.
    fn new(n: usize, arguments: &[f64], values: &[f64]) -> Self {
        let outer = arguments[n + 1];
        let scale = 1.0 / (arguments[n] - outer);
        let first = n.saturating_sub(1).min(arguments.len() - 4);
        let x: [f64; 4] = std::array::from_fn(|k| (arguments[first + k] - outer) * scale);
        let mut y: [f64; 4] = std::array::from_fn(|k| values[first + k]);
        // Newton's divided differences, then powers by Horner's rule
        for order in 1..4 {
            for k in (order..4).rev() {
                y[k] = (y[k] - y[k - 1]) / (x[k] - x[k - order]);
            }
        }
        let mut cubic = [0.0; 4];
        for k in (0..4).rev() {
            for power in (1..4).rev() {
                cubic[power] = cubic[power - 1] - x[k] * cubic[power];
            }
            cubic[0] = y[k] - x[k] * cubic[0];
        }
        Self {
            outer,
            scale,
            cubic,
        }
    }

    fn at(&self, argument: f64) -> f64 {
        let t = (argument - self.outer) * self.scale;
        let [a, b, c, d] = self.cubic;
        a + t * (b + t * (c + t * d))
    }
}

/// Intervals of the tabulated cumulative distribution.
const CELLS: usize = 256;
/// Speed at the middle of the table, in units of the dispersion; about two thirds of the particles are
/// slower.
const MIDDLE: f64 = 2.0;

/// Cumulative distribution of speeds at a radius, in units of the one-dimensional velocity dispersion. It is
/// the integral of `x^2 f(Psi (1 - x^2/most^2))`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpeedDistribution {
    /// Escape speed.
    most: f64,
    /// Spread of the table: entry `s` between 0 and 1 has the speed `most s/(s + spread (1 - s))`. A long
    /// tail then has few entries.
    spread: f64,
    /// Fraction of slower particles at uniform `s`.
    shares: Vec<f64>,
}

impl SpeedDistribution {
    /// Tabulates the speeds at node `node` of the distribution function, where minus the potential is
    /// `potential`.
    pub fn new(distribution: &Distribution, node: usize, potential: f64, dispersion: f64) -> Self {
        /// Points of the two-point Gauss-Legendre rule on (0, 1).
        const POINTS: [f64; 2] = [0.21132486540518713, 0.7886751345948129];
        let most = (2.0 * potential).sqrt() / dispersion;
        let spread = (most / MIDDLE - 1.0).max(1.0);
        let mut speeds = Self {
            most,
            spread,
            shares: vec![0.0],
        };
        let (mut start, mut sum) = (node, 0.0);
        for cell in 0..CELLS {
            for point in POINTS {
                let s = (cell as f64 + point) / CELLS as f64;
                let q = speeds.speed(s) / most;
                let slope = s + spread * (1.0 - s);
                let energy = potential * (1.0 - q * q);
                sum += q * q * distribution.from(&mut start, energy) / (slope * slope);
            }
            speeds.shares.push(sum);
        }
        for share in &mut speeds.shares {
            *share /= sum;
        }
        speeds
    }

    /// Returns the speed at a position of the table.
    fn speed(&self, s: f64) -> f64 {
        self.most * s / (s + self.spread * (1.0 - s))
    }

    /// Returns the speed below which a fraction of the particles are.
    pub fn quantile(&self, share: f64) -> f64 {
        let above = self.shares.partition_point(|&s| s <= share);
        let n = above.clamp(1, CELLS) - 1;
        let (low, high) = (self.shares[n], self.shares[n + 1]);
        let t = if high > low {
            (share - low) / (high - low)
        } else {
            0.0
        };
        self.speed((n as f64 + t) / CELLS as f64)
    }
}
