//! Functions of cylindrical radius and height, tabulated.

use nestar_device::math::{ln_1p, sinh};

/// Nodes at `scale*sinh(step*n)`: evenly spaced near 0, with equal ratios far out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    scale: f64,
    step: f64,
    intervals: usize,
}

/// Four nodes around a point, and their weights in the cubic polynomial through them.
pub(super) struct Stencil {
    first: usize,
    weights: [f64; 4],
}

impl Axis {
    /// Creates an axis from 0 to `end`, with even spacing up to about `scale`.
    pub fn new(scale: f64, end: f64, intervals: usize) -> Self {
        Self {
            scale,
            step: arsinh(end / scale) / intervals as f64,
            intervals,
        }
    }

    /// Returns the number of intervals; there is one more node.
    pub fn intervals(self) -> usize {
        self.intervals
    }

    /// Returns the coordinates of all nodes.
    pub fn nodes(self) -> impl Iterator<Item = f64> {
        (0..=self.intervals).map(move |n| self.scale * sinh(self.step * n as f64))
    }

    /// Returns the nodes around a coordinate, which is clamped to the axis.
    pub fn around(&self, x: f64) -> Stencil {
        let end = self.intervals as f64;
        let place = (arsinh(x / self.scale) / self.step).clamp(0.0, end);
        let first = (place as usize).clamp(1, self.intervals - 2) - 1;
        let t = place - first as f64;
        let [a, b, c, d] = [t, t - 1.0, t - 2.0, t - 3.0];
        Stencil {
            first,
            weights: [
                -b * c * d / 6.0,
                a * c * d / 2.0,
                -a * b * d / 2.0,
                a * b * c / 6.0,
            ],
        }
    }
}

/// Returns the inverse of the hyperbolic sine.
pub(super) fn arsinh(x: f64) -> f64 {
    let size = x.abs();
    ln_1p(size + size * size / (1.0 + (1.0 + size * size).sqrt())).copysign(x)
}

/// `N` functions of radius and height, interpolated by cubic polynomials.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlaneTable<const N: usize> {
    /// Radii and heights.
    axes: [Axis; 2],
    /// Values, with those of a radius next to each other.
    values: Vec<[f64; N]>,
}

impl<const N: usize> PlaneTable<N> {
    /// Tabulates functions of radius and height.
    pub fn new(axes: [Axis; 2], value: impl Fn(f64, f64) -> [f64; N]) -> Self {
        let column = |r: f64| axes[1].nodes().map(|z| value(r, z)).collect();
        Self::of_columns(axes, axes[0].nodes().map(column).collect())
    }

    /// Combines the values at all heights, one column per radius.
    pub fn of_columns(axes: [Axis; 2], columns: Vec<Vec<[f64; N]>>) -> Self {
        let values = columns.concat();
        Self { axes, values }
    }

    /// Returns the axes of radii and heights.
    pub fn axes(&self) -> [Axis; 2] {
        self.axes
    }

    /// Returns the values at a radius of the grid.
    pub fn along(&self, radius: usize, height: &Stencil) -> [f64; N] {
        let first = radius * (self.axes[1].intervals + 1) + height.first;
        let mut sum = [0.0; N];
        for (weight, values) in height.weights.iter().zip(&self.values[first..]) {
            for (sum, value) in sum.iter_mut().zip(values) {
                *sum += weight * value;
            }
        }
        sum
    }

    /// Returns the values at a radius and a height of at least 0.
    pub fn at(&self, radius: f64, height: f64) -> [f64; N] {
        let (across, up) = (self.axes[0].around(radius), self.axes[1].around(height));
        let mut sum = [0.0; N];
        for (n, weight) in across.weights.iter().enumerate() {
            let column = self.along(across.first + n, &up);
            for (sum, value) in sum.iter_mut().zip(column) {
                *sum += weight * value;
            }
        }
        sum
    }
}
