//! Positive functions of radius, tabulated over the logarithm of radius.

use nestar_device::math::{exp, ln};

/// Nodes and weights of the Gauss-Legendre rule with 4 points on (0, 1) (Abramowitz & Stegun 1964, 25.4.29).
const RULE: [(f64, f64); 4] = [
    (0.06943184420297371, 0.17392742256872692),
    (0.33000947820757187, 0.32607257743127307),
    (0.6699905217924281, 0.32607257743127307),
    (0.9305681557970263, 0.17392742256872692),
];

/// Integrates `N` functions by the Gauss-Legendre rule with 4 points in each of several equal intervals.
pub(super) fn integrals<const N: usize>(
    [from, to]: [f64; 2],
    intervals: usize,
    rate: impl Fn(f64) -> [f64; N],
) -> [f64; N] {
    let width = (to - from) / intervals as f64;
    let mut sum = [0.0; N];
    for cell in 0..intervals {
        for (x, weight) in RULE {
            let values = rate(from + width * (cell as f64 + x));
            for (sum, value) in sum.iter_mut().zip(values) {
                *sum += weight * value;
            }
        }
    }
    sum.map(|sum| width * sum)
}

/// Intervals of the grid of a component.
pub(super) const CELLS: usize = 4000;

/// Density as a function of radius.
pub(super) trait Radial {
    /// Returns the density and its logarithmic slopes at a radius above 0.
    fn local(&self, r: f64) -> LocalDensity;
    /// Returns the mass within a radius.
    fn mass(&self, r: f64) -> f64;
    /// Returns the radius within which the mass is negligible.
    fn core(&self) -> f64;
    /// Returns the radius beyond which the mass is negligible.
    fn reach(&self) -> f64;

    /// Returns the density at a radius above 0.
    fn density(&self, r: f64) -> f64 {
        self.local(r).density
    }
}

/// Density and its logarithmic slopes at a radius.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LocalDensity {
    /// Density.
    pub density: f64,
    /// `-d ln density / d ln r`.
    pub steepness: f64,
    /// Derivative of `steepness` by `ln r`.
    pub steepening: f64,
}

/// Grid of radii with uniform logarithmic spacing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RadialGrid {
    first: f64,
    /// Step of the logarithm.
    step: f64,
    /// Number of intervals; there is one more node.
    pub cells: usize,
}

impl RadialGrid {
    /// Creates a grid between two radii.
    pub fn new(from: f64, to: f64, cells: usize) -> Self {
        let first = ln(from);
        let step = (ln(to) - first) / cells as f64;
        Self { first, step, cells }
    }

    /// Returns the logarithm of the radius at a position in units of nodes.
    pub fn ln_radius(&self, place: f64) -> f64 {
        self.first + self.step * place
    }

    /// Returns the radius of a node.
    pub fn radius(&self, node: usize) -> f64 {
        exp(self.ln_radius(node as f64))
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        0..=self.cells
    }

    /// Returns the position of a radius in units of nodes from its logarithm, clamped to the grid.
    pub fn place(&self, ln_radius: f64) -> f64 {
        ((ln_radius - self.first) / self.step).clamp(0.0, self.cells as f64)
    }

    /// Integrates `rate` over the logarithm of radius, interval by interval.
    fn integrals(&self, rate: &impl Fn(f64) -> f64) -> Vec<f64> {
        let part = |cell: usize, (x, weight): (f64, f64)| {
            weight * rate(exp(self.ln_radius(cell as f64 + x)))
        };
        let integral = |cell: usize| RULE.map(|point| part(cell, point));
        (0..self.cells)
            .map(|cell| self.step * integral(cell).iter().sum::<f64>())
            .collect()
    }
}

/// Positive function of radius: cubic Hermite interpolation of its logarithm, with exact slopes. The relative
/// error is of fourth order in the step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RadialFunction {
    grid: RadialGrid,
    /// Logarithm of the value at each node, and its derivative by the logarithm of radius.
    nodes: Vec<[f64; 2]>,
}

impl RadialFunction {
    /// Interpolates values and logarithmic slopes at the nodes.
    pub fn through(grid: RadialGrid, node: impl Fn(usize) -> [f64; 2]) -> Self {
        let logarithm = |[value, slope]: [f64; 2]| [ln(value), slope];
        let nodes = grid.nodes().map(|n| logarithm(node(n))).collect();
        Self { grid, nodes }
    }

    /// Integrates `rate` over the logarithm of radius outwards from the first node, where the value is
    /// `inner`.
    pub fn outwards(grid: RadialGrid, inner: f64, rate: impl Fn(f64) -> f64) -> Self {
        let mut values = vec![inner];
        for (n, part) in grid.integrals(&rate).into_iter().enumerate() {
            values.push(values[n] + part);
        }
        Self::through(grid, |n| [values[n], rate(grid.radius(n)) / values[n]])
    }

    /// Integrates `rate` over the logarithm of radius inwards from the last node, where the value is `outer`.
    pub fn inwards(grid: RadialGrid, outer: f64, rate: impl Fn(f64) -> f64) -> Self {
        let mut values = vec![outer; grid.cells + 1];
        for (n, part) in grid.integrals(&rate).into_iter().enumerate().rev() {
            values[n] = values[n + 1] + part;
        }
        Self::through(grid, |n| [values[n], -rate(grid.radius(n)) / values[n]])
    }

    /// Returns the value at a radius from its logarithm; constant outside the grid.
    pub fn at(&self, ln_radius: f64) -> f64 {
        self.at_place(self.grid.place(ln_radius))
    }

    /// Returns the grid.
    pub fn grid(&self) -> &RadialGrid {
        &self.grid
    }

    /// Returns the value at a [position](RadialGrid::place) in the grid.
    pub fn at_place(&self, place: f64) -> f64 {
        exp(self.ln_at_place(place))
    }

    /// Returns the values of [`RadialFunction::at_place`] at several positions.
    pub fn at_places(&self, places: &[f64]) -> Vec<f64> {
        let logarithms = places.iter().map(|&place| self.ln_at_place(place));
        let mut values: Vec<f64> = logarithms.collect();
        // a loop of its own, which becomes vector instructions
        values.iter_mut().for_each(|value| *value = exp(*value));
        values
    }

    /// Returns the logarithm of the value at a position.
    fn ln_at_place(&self, place: f64) -> f64 {
        let n = (place as usize).min(self.grid.cells - 1);
        let t = place - n as f64;
        let ([low, low_slope], [high, high_slope]) = (self.nodes[n], self.nodes[n + 1]);
        let (low_slope, high_slope) = (low_slope * self.grid.step, high_slope * self.grid.step);
        let rise = high - low;
        let cubic = low_slope + high_slope - 2.0 * rise;
        let square = 3.0 * rise - 2.0 * low_slope - high_slope;
        low + t * (low_slope + t * (square + t * cubic))
    }

    /// Returns the value at a node.
    pub fn value(&self, node: usize) -> f64 {
        exp(self.nodes[node][0])
    }
}
