//! Pointwise functions of the solver: relaxation, ghost values, interpolation and slopes. Sums do not depend on the
//! order of axes and sides.

use crate::mesh::Rows;
use nestar_device::math::{sum3, sum4};
use nestar_device::{Real, device};

/// Seven-point Laplacian of `u`, from the neighbours x-, x+, y-, y+, z-, z+ and the weights 1 / width^2 of the axes.
#[device]
pub fn laplacian<R: Real>(u: R, around: &[R; 6], weights: &[R; 3]) -> R {
    sum3(
        weights[0] * ((around[0] - u) + (around[1] - u)),
        weights[1] * ((around[2] - u) + (around[3] - u)),
        weights[2] * ((around[4] - u) + (around[5] - u)),
    )
}

/// Negative diagonal of the Laplacian; neighbours in the bit mask `missing` are `u` times `mirror`, those also in `same`
/// are `u`.
#[device]
pub fn diagonal<R: Real>(weights: &[R; 3], missing: i32, same: i32, mirror: R) -> R {
    let mut sides = [0.0; 3];
    for axis in 0..3 {
        for side in 0..2 {
            let face = 2 * axis + side;
            let share = if missing >> face & 1 == 1 {
                1.0 - mirror
            } else {
                1.0
            };
            sides[axis] += if (missing & same) >> face & 1 == 1 {
                0.0
            } else {
                share
            };
        }
    }
    sum3(
        weights[0] * sides[0],
        weights[1] * sides[1],
        weights[2] * sides[2],
    )
}

/// Source of Poisson's equation for a density.
#[device]
pub fn source_of<R: Real>(density: R, coefficient: R, mean: R) -> R {
    coefficient * (density - mean)
}

/// Value of `u` after a relaxation of `laplacian = rhs`; `omega` above 1 over-relaxes (SOR).
#[device]
pub fn relaxed<R: Real>(u: R, laplacian: R, rhs: R, diagonal: R, omega: R) -> R {
    u + omega * ((laplacian - rhs) / diagonal)
}

/// Weights of three coarse values for quadratic interpolation to the centre of the lower (`upper` 0) or upper half of
/// the middle cell.
#[device]
pub(super) fn quadratic<R: Real>(upper: i32) -> [R; 3] {
    let (near, far) = (0.15625, -0.09375);
    if upper == 0 {
        [near, 0.9375, far]
    } else {
        [far, 0.9375, near]
    }
}

/// Sum of 3 x 3 values, `[b][a]`, with weights along both axes.
#[device]
pub fn weighted_sum_3x3<R: Real>(values: &[R; 9], a: &[R; 3], b: &[R; 3]) -> R {
    let mut t = [0.0; 9];
    for n in 0..9 {
        t[n] = a[n % 3] * b[n / 3] * values[n];
    }
    let edges = sum4(t[1], t[3], t[5], t[7]);
    let corners = sum4(t[0], t[2], t[6], t[8]);
    sum3(t[4], edges, corners)
}

/// Interpolates 3 x 3 coarse values, `[b][a]`, quadratically in a plane to the centre of a quarter of the middle cell;
/// `a` and `b` select the upper half along both axes.
#[device]
pub fn interpolate_in_plane<R: Real>(values: &[R; 9], a: i32, b: i32) -> R {
    let (wa, wb) = (quadratic::<R>(a), quadratic::<R>(b));
    weighted_sum_3x3(values, &wa, &wb)
}

/// Weights of the quadratic B-spline coefficients of a cell and its two neighbours, at `t` cells from its centre, |t|
/// <= 1/2.
#[device]
pub fn spline<R: Real>(t: R) -> [R; 3] {
    let (below, above) = (0.5 - t, 0.5 + t);
    [0.5 * (below * below), 0.75 - t * t, 0.5 * (above * above)]
}

/// Offset of the centre of a cell of a level from that of its root cell, in root cells.
#[device]
pub fn offset_in_root_cell<R: Real>(cell: i32, level: i32) -> R {
    let across = 1 << level;
    let inside = cell - (cell >> level) * across;
    R::from_f64(((2 * inside + 1 - across) as f64) / ((2 * across) as f64))
}

/// Index of a root cell outside the domain of `cells` cells, or in its outermost layer, in the table of a face:
/// `[face][layer][b][a]`. Layers are in ascending order from 2 below a lower face and from 1 below an upper one. They
/// have 2 more cells along the other axes.
#[device]
pub fn table_index(cells: &[i32; 3], face: i32, at: [i32; 3]) -> i32 {
    let axis = (face >> 1) as usize;
    let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
    let (x, y, z) = (cells[0] + 4, cells[1] + 4, cells[2] + 4);
    let sizes = [3 * y * z, 3 * z * x, 3 * x * y];
    let mut place = (face & 1) * sizes[axis];
    for n in 0..axis {
        place += 2 * sizes[n];
    }
    let first = if face & 1 == 0 { -2 } else { cells[axis] - 1 };
    let across = cells[a] + 4;
    let line = (at[axis] - first) * (cells[b] + 4) + (at[b] + 2);
    place + line * across + (at[a] + 2)
}

/// Mean of [`interpolate_in_plane`] over the four quarters of the middle cell.
#[device]
pub fn mean_in_plane<R: Real>(values: &[R; 9]) -> R {
    let (middle, side) = (0.9375, 0.03125);
    let edges = sum4(values[1], values[3], values[5], values[7]);
    let corners = sum4(values[0], values[2], values[6], values[8]);
    sum3(
        middle * middle * values[4],
        middle * side * edges,
        side * side * corners,
    )
}

/// Coarse difference through a face minus the mean of the four fine ones of [`laplacian_ghost`], for the coarse width.
/// `covered` is the mean of the eight fine values outside the face. `outward` is the mean difference of the four
/// farther and the four nearer ones. `plane` is the mean of the coarse level in the plane of the cell before the face,
/// and `own` its value.
#[device]
pub fn flux_mismatch<R: Real>(own: R, plane: R, covered: R, outward: R) -> R {
    let fine = (8.0 * (covered - plane) - outward) / 15.0;
    (covered - own) - 2.0 * fine
}

/// Mean of the upper four of eight fine values minus that of the lower four, along an axis.
#[device]
pub fn difference<R: Real>(v: &[R; 8], axis: usize) -> R {
    let (mut upper, mut lower) = ([0.0; 4], [0.0; 4]);
    for n in 0..4 {
        // the other two axes number the four values
        let low = n & ((1 << axis) - 1);
        let at = low | (n >> axis) << (axis + 1);
        lower[n] = v[at];
        upper[n] = v[at | 1 << axis];
    }
    0.25 * (sum4(upper[0], upper[1], upper[2], upper[3])
        - sum4(lower[0], lower[1], lower[2], lower[3]))
}

/// Ghost value at a coarse-fine face for the Laplacian (Martin & Cartwright 1996): the parabola through the coarse
/// value in the plane outside the face and the two fine ones inside it, the nearer first.
#[device]
pub fn laplacian_ghost<R: Real>(plane: R, inner: &[R; 2]) -> R {
    sum3(8.0 * plane / 15.0, 2.0 * inner[0] / 3.0, -0.2 * inner[1])
}

/// Two ghost values at a coarse-fine face for slopes, the nearer first: the cubic through the coarse values in two
/// planes outside the face and the two fine ones inside it.
#[device]
pub fn slope_ghosts<R: Real>(planes: &[R; 2], inner: &[R; 2]) -> [R; 2] {
    let near = sum4(
        2.0 * planes[0] / 3.0,
        -2.0 * planes[1] / 63.0,
        10.0 * inner[0] / 21.0,
        -(inner[1] / 9.0),
    );
    let far = sum4(
        1.2 * planes[0],
        2.0 * planes[1] / 21.0,
        -3.0 * inner[0] / 7.0,
        2.0 * inner[1] / 15.0,
    );
    [near, far]
}

/// Interpolates trilinearly to the centre of an octant of a cell. The values are its own and those of its neighbours on
/// the side of the octant, as bits z y x.
#[device]
pub fn trilinear<R: Real>(v: &[R; 8]) -> R {
    let faces = 9.0 * sum3(v[1], v[2], v[4]);
    let edges = 3.0 * sum3(v[3], v[5], v[6]);
    0.015625 * sum4(27.0 * v[0], faces, edges, v[7])
}

/// Slope along an axis from the four values at -2, -1, 1 and 2 cells: of fourth order, or of second order from the
/// nearer two.
#[device]
pub fn slope<R: Real>(values: &[R; 4], fourth: bool, inverse_width: R) -> R {
    let near = values[2] - values[1];
    if fourth {
        let far = values[3] - values[0];
        (8.0 * near - far) * (inverse_width / 12.0)
    } else {
        near * (0.5 * inverse_width)
    }
}

/// Average of the eight fine values of a cell minus the value at its centre: an eighth of the Laplacian (the right-hand
/// side `rhs`) times the squared fine width, from the coarse width.
#[device]
pub fn average_excess<R: Real>(rhs: R, coarse_width: R) -> R {
    0.03125 * (coarse_width * coarse_width) * rhs
}

/// Source of Poisson's equation on a level: coefficient * (density - mean).
#[derive(Clone, Copy)]
pub struct PoissonSource<'a, R> {
    /// Density.
    pub density: Rows<'a, R>,
    /// Coefficient of Poisson's equation.
    pub coefficient: R,
    /// Mean density of a periodic domain; 0 if isolated.
    pub mean: R,
}

impl<R: Real> PoissonSource<'_, R> {
    /// Returns the source in a cell.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, row: u32, cell: usize) -> R {
        self.of(self.density.get(row, cell))
    }

    /// Returns the source for a density.
    #[inline(always)]
    pub(super) fn of(&self, density: R) -> R {
        source_of(density, self.coefficient, self.mean)
    }
}
