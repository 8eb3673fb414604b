//! The root level with one cell a patch: its corrections, solved for exactly.

use nestar_device::math::sum3;
use rayon::prelude::*;

/// The inverse of the operator of seven points on a small box: by the eigenvectors along the axes (Lynch, Rice & Thomas 1964).
pub struct Bottom {
    pub along: [Modes; 3],
}

/// Eigenvectors and eigenvalues along an axis.
pub struct Modes {
    /// `[mode][cell]`.
    pub vectors: Vec<f64>,
    /// `[cell][mode]`.
    pub transposed: Vec<f64>,
    pub values: Vec<f64>,
}

/// Times that all elements are turned away.
const MOST_SWEEPS: usize = 30;
/// Products that are worth a task.
const LEAST: usize = 1 << 15;
/// Below so much of the largest eigenvalue one counts as 0.
const NOTHING: f64 = 1e-10;

impl Bottom {
    /// Of so many cells along the axes, with the weights 1 / width^2: periodic, or where values beyond the ends are the last ones times
    /// `mirror`.
    pub fn new(cells: [usize; 3], weights: [f64; 3], mirror: Option<f64>) -> Self {
        let along = |axis: usize| Modes::new(operator(cells[axis], weights[axis], mirror));
        Self {
            along: std::array::from_fn(along),
        }
    }

    /// Cells along the axes.
    pub fn cells(&self) -> [usize; 3] {
        [0, 1, 2].map(|axis| self.along[axis].values.len())
    }

    /// Sums of eigenvalues that count as 0, if they are not larger.
    pub fn nothing(&self) -> f64 {
        let most = self.along.iter().flat_map(|modes| &modes.values);
        NOTHING * most.fold(0.0, |most: f64, value| most.max(value.abs()))
    }

    /// What the operator makes `rhs` of, both `[z][y][x]`; in a periodic box the means do not count.
    pub fn solve(&self, rhs: Vec<f64>) -> Vec<f64> {
        let [nx, ny, _] = self.cells();
        let mut values = rhs;
        for (axis, modes) in self.along.iter().enumerate() {
            values = modes.apply(axis, self.cells(), &values, false);
        }
        let [x, y, z] = [0, 1, 2].map(|axis| &self.along[axis].values);
        let nothing = self.nothing();
        values.par_iter_mut().enumerate().for_each(|(n, value)| {
            let sum = sum3(x[n % nx], y[n / nx % ny], z[n / (nx * ny)]);
            *value = if sum.abs() > nothing {
                *value / sum
            } else {
                0.0
            };
        });
        for (axis, modes) in self.along.iter().enumerate() {
            values = modes.apply(axis, self.cells(), &values, true);
        }
        values
    }
}

/// The second difference along an axis.
fn operator(cells: usize, weight: f64, mirror: Option<f64>) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; cells]; cells];
    for n in 0..cells {
        for (up, end) in [(false, n == 0), (true, n + 1 == cells)] {
            let next = if up { n + 1 } else { n + cells - 1 } % cells;
            matrix[n][n] -= weight;
            match mirror {
                Some(mirror) if end => matrix[n][n] += weight * mirror,
                _ => matrix[n][next] += weight,
            }
        }
    }
    matrix
}

impl Modes {
    /// Of a symmetric matrix, by Jacobi's rotations.
    fn new(mut matrix: Vec<Vec<f64>>) -> Self {
        let n = matrix.len();
        let mut vectors: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect())
            .collect();
        let square = |row: &Vec<f64>| row.iter().map(|value| value * value).sum::<f64>();
        let whole: f64 = matrix.iter().map(square).sum();
        // they converge quadratically: six or seven times suffice
        for _ in 0..MOST_SWEEPS {
            let rest: f64 = (0..n)
                .flat_map(|i| (0..i).map(move |j| (i, j)))
                .map(|(i, j)| matrix[i][j] * matrix[i][j])
                .sum();
            if rest <= 1e-32 * whole {
                break;
            }
            for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
                rotate(&mut matrix, &mut vectors, [i, j]);
            }
        }
        let transposed = (0..n).flat_map(|cell| vectors.iter().map(move |mode| mode[cell]));
        Self {
            values: (0..n).map(|i| matrix[i][i]).collect(),
            transposed: transposed.collect(),
            vectors: vectors.concat(),
        }
    }

    /// Along an axis, from cells to modes or back.
    fn apply(&self, axis: usize, cells: [usize; 3], values: &[f64], back: bool) -> Vec<f64> {
        let n = cells[axis];
        // `[from][to]`
        let weights = if back {
            &self.vectors
        } else {
            &self.transposed
        };
        let mut out = vec![0.0; values.len()];
        if axis == 0 {
            let lines = out.par_chunks_mut(n).zip(values.par_chunks(n));
            lines
                .with_min_len(LEAST / (n * n) + 1)
                .for_each(|(out, values)| {
                    for (weights, &value) in weights.chunks_exact(n).zip(values) {
                        add(out, weights, |weight| weight * value);
                    }
                });
            return out;
        }
        // a stretch of values is added to another: below the axis all at once
        let stretch: usize = cells[..axis].iter().product();
        let stretches = out.par_chunks_mut(stretch).enumerate();
        let stretches = stretches.with_min_len(LEAST / (n * stretch) + 1);
        stretches.for_each(|(m, out)| {
            let (to, first) = (m % n, m / n * n);
            for from in 0..n {
                let weight = weights[from * n + to];
                let values = &values[(first + from) * stretch..][..stretch];
                add(out, values, |value| weight * value);
            }
        });
        out
    }
}

fn add(out: &mut [f64], values: &[f64], term: impl Fn(f64) -> f64) {
    for (out, &value) in out.iter_mut().zip(values) {
        *out += term(value);
    }
}

/// Turns two rows and columns of a symmetric matrix so that the element between them vanishes; rows of `vectors` follow.
fn rotate(matrix: &mut [Vec<f64>], vectors: &mut [Vec<f64>], [i, j]: [usize; 2]) {
    let between = matrix[i][j];
    if between == 0.0 {
        return;
    }
    let theta = (matrix[j][j] - matrix[i][i]) / (2.0 * between);
    let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    let turned = |a: f64, b: f64| [cosine * a - sine * b, sine * a + cosine * b];
    for row in matrix.iter_mut() {
        [row[i], row[j]] = turned(row[i], row[j]);
    }
    for n in 0..matrix.len() {
        [matrix[i][n], matrix[j][n]] = turned(matrix[i][n], matrix[j][n]);
        [vectors[i][n], vectors[j][n]] = turned(vectors[i][n], vectors[j][n]);
    }
    (matrix[i][j], matrix[j][i]) = (0.0, 0.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestar_kernels::multigrid::coarse::mirror;

    /// What is left of the right-hand side, over the largest one.
    fn residual(cells: [usize; 3], mirror: Option<f64>) -> f64 {
        let weights = [1.0, 0.5, 2.0];
        let [nx, ny, nz] = cells;
        let count = nx * ny * nz;
        let mut rhs: Vec<f64> = (0..count).map(|n| ((7 * n * n + 3) % 11) as f64).collect();
        let mean = rhs.iter().sum::<f64>() / count as f64;
        rhs.iter_mut().for_each(|value| *value -= mean);
        let found = Bottom::new(cells, weights, mirror).solve(rhs.clone());
        let matrices = [0, 1, 2].map(|axis| operator(cells[axis], weights[axis], mirror));
        let steps = [1, nx, nx * ny];
        let left = (0..count).map(|n| {
            let along = |axis: usize| -> f64 {
                let at = n / steps[axis] % cells[axis];
                let first = n - at * steps[axis];
                let row = matrices[axis][at].iter().enumerate();
                row.map(|(m, weight)| weight * found[first + m * steps[axis]])
                    .sum()
            };
            (along(0) + along(1) + along(2) - rhs[n]).abs()
        });
        left.fold(0.0, f64::max) / 11.0
    }

    #[test]
    fn boxes_of_any_numbers_of_cells_are_solved_exactly() {
        for cells in [[3, 5, 7], [1, 1, 1], [2, 1, 4], [16, 16, 16], [8, 24, 3]] {
            for mirror in [None, Some(mirror(8.0, 0.5))] {
                let left = residual(cells, mirror);
                assert!(left < 1e-12, "{cells:?} {mirror:?}: {left:e}");
            }
        }
    }
}
