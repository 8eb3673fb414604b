//! Direct solver for the coarsest grid of the root level (one cell per patch), on the host and on a device.

use nestar_device::math::sum3;
use nestar_device::{Address, Number, Parameter};
use nestar_engine::Error;
use nestar_engine::comm::{Comm, DeviceMessage};
use nestar_engine::device::{Device, DeviceError, Kernel, LaunchShape, Module, ReusableBuffer};
use nestar_engine::mesh::parallel;
use nestar_kernels::multigrid::device::{
    AxisTransformParameters, CELLS_PER_BLOCK, CoarsestLevelParameters, EigenvalueParameters,
};
use std::sync::{Mutex, PoisonError};

/// Inverse of the seven-point operator on a small box, by eigenvectors along the axes (Lynch, Rice & Thomas 1964).
pub struct DirectSolver {
    pub along: [EigenModes; 3],
}

/// Eigenvectors and eigenvalues along an axis.
pub struct EigenModes {
    /// `[mode][cell]`.
    pub vectors: Vec<f64>,
    /// `[cell][mode]`.
    pub transposed: Vec<f64>,
    pub values: Vec<f64>,
}

/// Largest number of Jacobi sweeps.
const MOST_SWEEPS: usize = 30;
/// Smallest number of products per task.
const LEAST: usize = 1 << 15;
/// Eigenvalues below this fraction of the largest one count as 0.
const ZERO_EIGENVALUE: f64 = 1e-10;

impl DirectSolver {
    /// Builds the solver for a number of cells along the axes with weights 1 / width^2. Along each axis it is periodic,
    /// or ghost values are `ends` times the first and the last value.
    pub fn new(cells: [usize; 3], weights: [f64; 3], ends: [Option<[f64; 2]>; 3]) -> Self {
        let along = |axis: usize| EigenModes::new(operator(cells[axis], weights[axis], ends[axis]));
        Self {
            along: std::array::from_fn(along),
        }
    }

    /// Returns the number of cells along the axes.
    pub fn cells(&self) -> [usize; 3] {
        [0, 1, 2].map(|axis| self.along[axis].values.len())
    }

    /// Returns the largest sum of eigenvalues that counts as 0.
    pub fn zero_limit(&self) -> f64 {
        let most = self.along.iter().flat_map(|modes| &modes.values);
        ZERO_EIGENVALUE * most.fold(0.0, |most: f64, value| most.max(value.abs()))
    }

    /// Solves for the right-hand side `rhs`, both `[z][y][x]`; a box that is periodic or mirrored ignores the means.
    pub fn solve(&self, rhs: Vec<f64>) -> Vec<f64> {
        let [nx, ny, _] = self.cells();
        let mut values = rhs;
        for (axis, modes) in self.along.iter().enumerate() {
            values = modes.apply(axis, self.cells(), &values, false);
        }
        let [x, y, z] = [0, 1, 2].map(|axis| &self.along[axis].values);
        let zero_limit = self.zero_limit();
        parallel::for_each_chunk(&mut values, nx, LEAST / nx + 1, |line, values| {
            let (y, z) = (y[line % ny], z[line / ny]);
            for (value, &x) in values.iter_mut().zip(x) {
                let sum = sum3(x, y, z);
                *value = if sum.abs() > zero_limit {
                    *value / sum
                } else {
                    0.0
                };
            }
        });
        for (axis, modes) in self.along.iter().enumerate() {
            values = modes.apply(axis, self.cells(), &values, true);
        }
        values
    }
}

/// Returns the matrix of second differences along an axis.
fn operator(cells: usize, weight: f64, ends: Option<[f64; 2]>) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; cells]; cells];
    for n in 0..cells {
        for (up, end) in [(false, n == 0), (true, n + 1 == cells)] {
            let next = if up { n + 1 } else { n + cells - 1 } % cells;
            matrix[n][n] -= weight;
            match ends {
                Some(ends) if end => matrix[n][n] += weight * ends[usize::from(up)],
                _ => matrix[n][next] += weight,
            }
        }
    }
    matrix
}

impl EigenModes {
    /// Diagonalises a symmetric matrix by Jacobi rotations.
    fn new(mut matrix: Vec<Vec<f64>>) -> Self {
        let n = matrix.len();
        let mut vectors: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect())
            .collect();
        let square = |row: &Vec<f64>| row.iter().map(|value| value * value).sum::<f64>();
        let whole: f64 = matrix.iter().map(square).sum();
        // quadratic convergence: six or seven sweeps suffice
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

    /// Transforms along an axis, from cells to modes or back.
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
            parallel::for_each_chunk(&mut out, n, LEAST / (n * n) + 1, |line, out| {
                let values = &values[line * n..][..n];
                for (weights, &value) in weights.chunks_exact(n).zip(values) {
                    add(out, weights, |weight| weight * value);
                }
            });
            return out;
        }
        // a contiguous span of values is added to another: all axes before this one at once
        let stretch: usize = cells[..axis].iter().product();
        let grain = LEAST / (n * stretch) + 1;
        parallel::for_each_chunk(&mut out, stretch, grain, |m, out| {
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

/// Rotates two rows and columns of a symmetric matrix so that their common element vanishes; rows of `vectors` follow.
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

/// Threads per block.
const THREADS: u32 = 256;
/// Numbers per pair: index and value.
const PAIR: usize = 2;

/// Kernels and their memory.
pub(super) struct DirectSolverKernels {
    device: Device,
    memory: Mutex<DirectSolverMemory>,
    gather: Kernel,
    place: Kernel,
    along: Kernel,
    divide: Kernel,
    scatter: Kernel,
}

#[derive(Default)]
struct DirectSolverMemory {
    /// Pairs of own rows, and of rows of other ranks.
    pairs: [ReusableBuffer<f64>; 2],
    whole: [ReusableBuffer<f64>; 2],
    /// Per axis: transformations from cells to modes and back, and eigenvalues.
    modes: Option<[[ReusableBuffer<f64>; 3]; 3]>,
}

impl DirectSolverKernels {
    /// Loads the kernels from the compiled module of the solver.
    pub fn new(device: &Device, module: &Module) -> Result<Self, DeviceError> {
        Ok(Self {
            memory: Mutex::default(),
            gather: module.kernel("root_gather")?,
            place: module.kernel("root_place")?,
            along: module.kernel("root_transform_axis")?,
            divide: module.kernel("root_divide")?,
            scatter: module.kernel("root_scatter")?,
            device: device.clone(),
        })
    }

    fn launch<P: Parameter>(
        &self,
        kernel: &Kernel,
        items: usize,
        parameters: &P,
    ) -> Result<(), Error> {
        if items == 0 {
            return Ok(());
        }
        let shape = LaunchShape::of(items.div_ceil(CELLS_PER_BLOCK), THREADS);
        Ok(self.device.launch(kernel, shape, parameters)?)
    }

    /// Solves for the corrections `to` of the right-hand sides of the own rows. Collective over all ranks.
    ///
    /// # Errors
    /// The device fails; another rank or the transport has failed.
    pub fn solve(
        &self,
        direct: &DirectSolver,
        others: &Comm,
        rhs: CoarsestLevelParameters<Number>,
        to: Address<Number>,
    ) -> Result<(), Error> {
        let memory = &mut *self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let cells = direct.cells();
        let all = cells.iter().product();
        for whole in &mut memory.whole {
            whole.provide(&self.device, all)?;
        }
        let whole = memory.whole.each_ref().map(ReusableBuffer::address);
        let rows = rhs.count as usize;
        let own = memory.pairs[0].provide(&self.device, PAIR * rows.max(1))?;
        let parameters = CoarsestLevelParameters {
            pairs: own.address().into(),
            whole: whole[0].into(),
            cells: cells.map(|n| n as i32),
            ..rhs
        };
        self.launch(&self.gather, rows, &parameters)?;
        self.launch(&self.place, rows, &parameters)?;
        self.exchange_right_hand_sides(memory, others, parameters)?;
        self.apply(direct, memory)?;
        let found = CoarsestLevelParameters {
            values: to,
            ..parameters
        };
        self.launch(&self.scatter, rows, &found)
    }

    /// Exchanges right-hand sides with other ranks.
    fn exchange_right_hand_sides(
        &self,
        memory: &mut DirectSolverMemory,
        others: &Comm,
        own: CoarsestLevelParameters<Number>,
    ) -> Result<(), Error> {
        let ranks = others.ranks();
        let peers = (0..ranks.size()).filter(|&peer| peer != ranks.rank());
        let message = |peer| DeviceMessage {
            peer,
            header: Vec::new(),
            address: memory.pairs[0].address(),
            bytes: size_of::<[f64; PAIR]>() * own.count as usize,
        };
        let sends: Vec<DeviceMessage> = peers.map(message).collect();
        let room = &mut memory.pairs[1];
        let come = others.exchange_device_messages(&sends, |bytes| {
            let room = room.provide(&self.device, bytes.div_ceil(size_of::<f64>()))?;
            Ok(room.address())
        })?;
        // pairs fill the buffer without gaps
        let count: usize = come
            .iter()
            .map(|message| message.bytes / size_of::<[f64; PAIR]>())
            .sum();
        let parameters = CoarsestLevelParameters {
            pairs: room.address().into(),
            count: count as i32,
            ..own
        };
        self.launch(&self.place, count, &parameters)
    }

    /// Applies the inverse of the operator to the whole level.
    fn apply(&self, direct: &DirectSolver, memory: &mut DirectSolverMemory) -> Result<(), Error> {
        let cells = direct.cells();
        let all: usize = cells.iter().product();
        let modes = match &mut memory.modes {
            Some(modes) => modes,
            none => none.insert(self.upload(direct)?),
        };
        let mut whole = memory.whole.each_ref().map(ReusableBuffer::address);
        for back in [false, true] {
            for (axis, modes) in modes.iter().enumerate() {
                let parameters = AxisTransformParameters {
                    from: whole[0].into(),
                    to: whole[1].into(),
                    weights: modes[usize::from(back)].address().into(),
                    cells: cells[axis] as i32,
                    stride: cells[..axis].iter().product::<usize>() as i32,
                    count: all as i32,
                };
                self.launch(&self.along, all, &parameters)?;
                whole.swap(0, 1);
            }
            if !back {
                let parameters = EigenvalueParameters {
                    values: whole[0].into(),
                    along: modes.each_ref().map(|modes| modes[2].address().into()),
                    cells: cells.map(|n| n as i32),
                    zero_limit: direct.zero_limit(),
                };
                self.launch(&self.divide, all, &parameters)?;
            }
        }
        Ok(())
    }

    fn upload(&self, direct: &DirectSolver) -> Result<[[ReusableBuffer<f64>; 3]; 3], DeviceError> {
        let mut all = <[[ReusableBuffer<f64>; 3]; 3]>::default();
        for (kept, modes) in all.iter_mut().zip(&direct.along) {
            let values = [&modes.transposed, &modes.vectors, &modes.values];
            for (kept, values) in kept.iter_mut().zip(values) {
                kept.set(&self.device, values)?;
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nestar_kernels::multigrid::coarse::mirror;

    /// Returns the largest residual over the largest right-hand side.
    fn residual(cells: [usize; 3], ends: [Option<[f64; 2]>; 3]) -> f64 {
        let weights = [1.0, 0.5, 2.0];
        let [nx, ny, nz] = cells;
        let count = nx * ny * nz;
        let mut rhs: Vec<f64> = (0..count).map(|n| ((7 * n * n + 3) % 11) as f64).collect();
        let mean = rhs.iter().sum::<f64>() / count as f64;
        rhs.iter_mut().for_each(|value| *value -= mean);
        let found = DirectSolver::new(cells, weights, ends).solve(rhs.clone());
        let matrices = [0, 1, 2].map(|axis| operator(cells[axis], weights[axis], ends[axis]));
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
            let open = mirror(8.0, 0.5);
            let [open, lower, both] = [[open; 2], [1.0, open], [1.0; 2]].map(Some);
            for ends in [
                [None; 3],
                [open; 3],
                [lower, open, open],
                [None, both, both],
            ] {
                let left = residual(cells, ends);
                assert!(left < 1e-12, "{cells:?} {ends:?}: {left:e}");
            }
        }
    }
}
