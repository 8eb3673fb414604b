//! Multiplies the modes of a distributed box of some shape by factors, and transposes distributed rows.

use super::batch::{Batch, LANES};
use super::fft::{Fft, RealFft};
use super::roots::smooth_length;
use nestar_engine::Error;
use nestar_engine::comm::{Communicator, Message, Messages, RanksError};
use rayon::prelude::*;
use std::ops::Range;

/// Multiplies the modes of a box by real factors.
///
/// The box is distributed over ranks by planes of z, and the modes by their wave number along x. Each rank transforms its planes
/// along x. After a transposition it transforms the plane of each of its wave numbers along z and y. Zeros of a
/// [padded](Shape::padded) box are stored for one wave number at a time only. Rows of zeros are not transformed.
pub struct Filter {
    shape: Shape,
    rank: usize,
    /// Planes of the box, and of the box with its margin.
    planes: Shares,
    grown: Shares,
    waves: Shares,
    x: RealFft,
    y: Fft,
    z: Fft,
}

impl Filter {
    /// Creates a filter for boxes of one shape, distributed over `ranks`.
    ///
    /// # Errors
    /// The lengths are too small for the cells and their margin, or are odd along x.
    pub fn new(shape: Shape, ranks: &dyn Communicator) -> Result<Self, Error> {
        if let Some(fault) = shape.fault() {
            return Err(Error::Setup(fault));
        }
        let planes = Shares::even(shape.cells[2], ranks.size());
        Ok(Self {
            shape,
            rank: ranks.rank(),
            grown: planes.grown(shape.margin),
            planes,
            waves: Shares::even(shape.waves(), ranks.size()),
            x: RealFft::new(shape.lengths[0]),
            y: Fft::new(shape.lengths[1]),
            z: Fft::new(shape.lengths[2]),
        })
    }

    /// Returns the shape of the boxes.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the planes of the box that a rank passes to [`Filter::apply`].
    #[must_use]
    pub fn planes(&self, rank: usize) -> Range<usize> {
        self.planes.of(rank)
    }

    /// Returns the planes that a rank receives, counted from the first plane of the margin.
    #[must_use]
    pub fn grown_planes(&self, rank: usize) -> Range<usize> {
        self.grown.of(rank)
    }

    /// Returns the wave numbers along x, within `0..=lengths[0] / 2`, for which this rank needs factors.
    #[must_use]
    pub fn waves(&self) -> Range<usize> {
        self.waves.of(self.rank)
    }

    /// Multiplies all modes of the box `values`, `[own plane][y][x]`, by `factor([kx, ky, kz])`. Collective. The result is
    /// `[own grown plane][y][x]`, with the margin along all axes.
    ///
    /// Wave number `k` is that of exp(2 pi i k n / length), with `0 <= k < length`; along x it ends at half the length. The factor
    /// must be the same for `k` and `length - k` along y and z. A factor of 1 returns the box itself.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    ///
    /// # Panics
    /// If the number of values is not that of the cells in the own planes.
    pub fn apply(
        &self,
        ranks: &dyn Communicator,
        values: Vec<f64>,
        factor: impl Fn([usize; 3]) -> f64 + Sync,
    ) -> Result<Vec<f64>, RanksError> {
        let [nx, ny, _] = self.shape.cells;
        assert_eq!(values.len(), self.planes(self.rank).len() * nx * ny);
        let modes = self.modes_of_planes(&values);
        drop(values);
        let rows = transposed(ranks, modes, 2 * ny, &self.planes, &self.waves)?;
        let modes = self.multiplied(&rows, factor);
        drop(rows);
        let width = 2 * self.shape.grown()[1];
        let rows = transposed(ranks, modes, width, &self.waves, &self.grown)?;
        Ok(self.cells_of_planes(&rows))
    }

    /// Transforms along x: `[own plane][kx][real, imaginary][y]`.
    fn modes_of_planes(&self, values: &[f64]) -> Vec<f64> {
        let [nx, ny, _] = self.shape.cells;
        let width = 2 * ny;
        let mut modes = vec![0.0; values.len() / (nx * ny) * self.x.modes() * width];
        let planes = modes.par_chunks_mut(self.x.modes() * width);
        let pairs = planes.zip(values.par_chunks(nx * ny));
        let plane = |[rows, work]: &mut [Batch; 2], (modes, cells): (&mut [f64], &[f64])| {
            for start in (0..ny).step_by(LANES) {
                rows.clear(0..self.x.modes());
                for (lane, row) in cells[start * nx..].chunks(nx).take(LANES).enumerate() {
                    for (n, pair) in row.chunks_exact(2).enumerate() {
                        rows.set(n, lane, [pair[0], pair[1]]);
                    }
                }
                self.x.forward(rows, work);
                for (k, row) in modes.chunks_mut(width).enumerate() {
                    work.take(k, row, start);
                }
            }
        };
        pairs.for_each_init(|| two(self.x.modes()), plane);
        modes
    }

    /// Transforms along z and y, multiplies and transforms back: `[own kx][grown plane][real, imaginary][grown y]`.
    fn multiplied(&self, rows: &Rows, factor: impl Fn([usize; 3]) -> f64 + Sync) -> Vec<f64> {
        let [_, ny, nz] = self.shape.grown();
        let wave = nz * 2 * ny;
        let waves = self.waves();
        let mut modes = vec![0.0; waves.len() * wave];
        let of_waves = modes.par_chunks_mut(wave).zip(waves);
        let make = || Plane::new(&self.shape);
        of_waves.for_each_init(make, |plane, (modes, kx)| {
            self.along_z(rows, kx, plane);
            self.along_y(|ky, kz| factor([kx, ky, kz]), plane);
            self.back_along_z(plane, modes);
        });
        modes
    }

    /// Transforms the rows of `kx` along z.
    fn along_z(&self, rows: &Rows, kx: usize, plane: &mut Plane) {
        let [_, ny, nz] = self.shape.cells;
        let [line, work] = &mut plane.z;
        for start in (0..ny).step_by(LANES) {
            for k in 0..nz {
                line.put(k, rows.row(k, kx), start);
            }
            line.clear(nz..self.z.length());
            self.z.forward(line, work);
            for (kz, row) in plane.rows.chunks_mut(plane.width).enumerate() {
                line.take(kz, row, start);
            }
        }
    }

    /// Transforms each row of the plane along y, multiplies it and transforms it back, including its margin.
    fn along_y(&self, factor: impl Fn(usize, usize) -> f64, plane: &mut Plane) {
        let (ny, margin) = (self.shape.cells[1], self.shape.margin);
        let [lx, ly, lz] = self.shape.lengths;
        let norm = 1.0 / (lx as f64 * ly as f64 * lz as f64);
        let half = plane.width / 2;
        let [line, work] = &mut plane.y;
        for (group, rows) in plane.rows.chunks_mut(LANES * plane.width).enumerate() {
            line.clear(0..ly);
            for (lane, row) in rows.chunks(plane.width).enumerate() {
                for j in 0..ny {
                    line.set(j, lane, [row[j], row[half + j]]);
                }
            }
            self.y.forward(line, work);
            let kz = |lane: usize| (group * LANES + lane).min(lz - 1);
            for ky in 0..ly {
                line.scale(ky, |lane| factor(ky, kz(lane)) * norm);
            }
            self.y.inverse(line, work);
            for (lane, row) in rows.chunks_mut(plane.width).enumerate() {
                for j in 0..ny + 2 * margin {
                    [row[j], row[half + j]] = line.get(before(j, margin, ly), lane);
                }
            }
        }
    }

    /// Transforms the rows of all wave numbers along z back to the grown planes.
    fn back_along_z(&self, plane: &mut Plane, modes: &mut [f64]) {
        let ny = self.shape.grown()[1];
        let [line, work] = &mut plane.z;
        for start in (0..ny).step_by(LANES) {
            for (kz, row) in plane.rows.chunks(plane.width).enumerate() {
                line.put(kz, row, start);
            }
            self.z.inverse(line, work);
            for (k, row) in modes.chunks_mut(2 * ny).enumerate() {
                line.take(before(k, self.shape.margin, self.z.length()), row, start);
            }
        }
    }

    /// Transforms back along x: `[own grown plane][y][x]`.
    fn cells_of_planes(&self, rows: &Rows) -> Vec<f64> {
        let [nx, ny, _] = self.shape.grown();
        let planes = self.grown_planes(self.rank);
        let mut cells = vec![0.0; planes.len() * nx * ny];
        let of_planes = cells.par_chunks_mut(nx * ny).zip(planes);
        let plane = |[line, modes]: &mut [Batch; 2], (cells, plane): (&mut [f64], usize)| {
            for start in (0..ny).step_by(LANES) {
                for k in 0..self.x.modes() {
                    modes.put(k, rows.row(k, plane), start);
                }
                self.x.inverse(line, modes);
                for (lane, row) in cells[start * nx..].chunks_mut(nx).take(LANES).enumerate() {
                    for (i, cell) in row.iter_mut().enumerate() {
                        let n = before(i, self.shape.margin, self.shape.lengths[0]);
                        *cell = line.get(n / 2, lane)[n % 2];
                    }
                }
            }
        };
        of_planes.for_each_init(|| two(self.x.modes()), plane);
        cells
    }
}

/// Returns the index in a periodic row of number `n` of a box with a margin.
fn before(n: usize, margin: usize, length: usize) -> usize {
    (n + length - margin) % length
}

fn two(length: usize) -> [Batch; 2] {
    [Batch::new(length), Batch::new(length)]
}

/// Working memory for one wave number along x.
struct Plane {
    /// Rows along y, `[kz][real, imaginary][y]`.
    rows: Vec<f64>,
    /// Length of such a row, with real and imaginary parts.
    width: usize,
    y: [Batch; 2],
    z: [Batch; 2],
}

impl Plane {
    fn new(shape: &Shape) -> Self {
        let width = 2 * shape.grown()[1];
        Self {
            rows: vec![0.0; shape.lengths[2] * width],
            width,
            y: two(shape.lengths[1]),
            z: two(shape.lengths[2]),
        }
    }
}

/// Describes a box of numbers, the lengths of its transforms, and the margin around the box in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Numbers along x, y and z; along x an even number.
    pub cells: [usize; 3],
    /// Lengths of the transforms. Where they exceed `cells`, rows are padded with zeros.
    pub lengths: [usize; 3],
    /// Layers around the box that the result includes.
    pub margin: usize,
}

impl Shape {
    /// Returns the shape of a periodic box.
    #[must_use]
    pub fn periodic(cells: [usize; 3]) -> Self {
        Self {
            cells,
            lengths: cells,
            margin: 0,
        }
    }

    /// Returns the shape of an isolated box, padded with zeros for a convolution without periodic images.
    ///
    /// The kernel of the convolution must be even along each axis. The lengths are large enough that the distance of a cell of
    /// the box to a cell of the box with its margin occurs only once (R. W. Hockney & J. W. Eastwood, Computer Simulation
    /// Using Particles, 1988, section 6-5-4).
    #[must_use]
    pub fn padded(cells: [usize; 3], margin: usize) -> Self {
        let least = |axis: usize| 2 * cells[axis] + (2 * margin).saturating_sub(2);
        Self {
            cells,
            lengths: std::array::from_fn(|axis| smooth_length(least(axis), axis == 0)),
            margin,
        }
    }

    /// Returns the number of cells along x, y and z, including the margin.
    #[must_use]
    pub fn grown(&self) -> [usize; 3] {
        self.cells.map(|cells| cells + 2 * self.margin)
    }

    /// Returns the number of modes along x. Rows of real numbers have modes from 0 to half the length.
    #[must_use]
    pub fn waves(&self) -> usize {
        self.lengths[0] / 2 + 1
    }

    /// Returns a message if the shape is invalid.
    pub(super) fn fault(&self) -> Option<String> {
        let [cells, lengths] = [self.cells, self.lengths];
        let grown = self.grown();
        let fits = |axis: usize| cells[axis] > 0 && grown[axis] <= lengths[axis];
        let is_even = cells[0].is_multiple_of(2) && lengths[0].is_multiple_of(2);
        let bad = !is_even || !(0..3).all(fits);
        bad.then(|| {
            format!(
                "a box of {cells:?} cells with a margin of {} has no transform of lengths {lengths:?}: there must be cells and \
                 room for the margin, and along x even numbers",
                self.margin
            )
        })
    }
}

/// Distribution of a range of indices over ranks: each rank has a contiguous part, which may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Rank `r` has `starts[r]..starts[r + 1]`.
    starts: Vec<usize>,
}

impl Shares {
    /// Distributes `0..count` over `ranks` ranks as evenly as possible.
    pub fn even(count: usize, ranks: usize) -> Self {
        Self {
            starts: (0..=ranks).map(|rank| count * rank / ranks).collect(),
        }
    }

    /// Returns the distribution of `0..count + 2 margin`. The ranks with the first and the last index also get the margins.
    pub fn grown(&self, margin: usize) -> Self {
        let count = self.count();
        let moved = |&start: &usize| match start {
            0 => 0,
            start if start == count => start + 2 * margin,
            start => start + margin,
        };
        Self {
            starts: self.starts.iter().map(moved).collect(),
        }
    }

    /// Returns the number of indices of all ranks.
    pub fn count(&self) -> usize {
        self.starts[self.ranks()]
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the indices of a rank.
    pub fn of(&self, rank: usize) -> Range<usize> {
        self.starts[rank]..self.starts[rank + 1]
    }

    /// Returns the rank that has an index.
    pub fn owner(&self, number: usize) -> usize {
        self.starts.partition_point(|&start| start <= number) - 1
    }
}

/// Rows `[outer][inner][width]`. This rank has all outer indices and a part of the inner indices.
pub struct Rows {
    outer: Shares,
    inner: Range<usize>,
    width: usize,
    /// Rows by the rank that sent them: `[outer of that rank][inner][width]`.
    blocks: Vec<Vec<f64>>,
}

impl Rows {
    /// Returns one row.
    pub fn row(&self, outer: usize, inner: usize) -> &[f64] {
        let owner = self.outer.owner(outer);
        let n = (outer - self.outer.of(owner).start) * self.inner.len() + inner - self.inner.start;
        &self.blocks[owner][n * self.width..][..self.width]
    }
}

/// Transposes rows `[own outer][all inner][width]` to rows of all outer and the own inner indices. Collective.
///
/// # Errors
/// Another rank has failed, or the transport has.
pub fn transposed(
    ranks: &dyn Communicator,
    values: Vec<f64>,
    width: usize,
    outer: &Shares,
    inner: &Shares,
) -> Result<Rows, RanksError> {
    let me = ranks.rank();
    let mut rows = Rows {
        outer: outer.clone(),
        inner: inner.of(me),
        width,
        blocks: vec![Vec::new(); ranks.size()],
    };
    if ranks.size() == 1 {
        rows.blocks[0] = values;
        return Ok(rows);
    }
    let part = |peer: usize| packed(&values, inner.count() * width, inner.of(peer), width);
    rows.blocks[me] = part(me);
    let messages = Messages {
        sends: others(ranks, |peer| bytemuck::cast_slice(&part(peer)).to_vec()),
        receives: others(ranks, |peer| {
            vec![0; outer.of(peer).len() * rows.inner.len() * width * size_of::<f64>()]
        }),
    };
    drop(values);
    for Message { peer, bytes } in ranks.start_messages(messages)?.finish()?.receives {
        rows.blocks[peer] = bytemuck::pod_collect_to_vec(&bytes);
    }
    Ok(rows)
}

/// Returns the rows of a range of inner indices. Each outer index has `line` values.
fn packed(values: &[f64], line: usize, inner: Range<usize>, width: usize) -> Vec<f64> {
    let lines = values.chunks_exact(line);
    let stretch = |line: &[f64]| line[inner.start * width..inner.end * width].to_vec();
    lines.flat_map(stretch).collect()
}

/// Returns the messages for all other ranks that are not empty.
fn others(ranks: &dyn Communicator, content: impl Fn(usize) -> Vec<u8>) -> Vec<Message> {
    let peers = (0..ranks.size()).filter(|&peer| peer != ranks.rank());
    let messages = peers.map(|peer| Message {
        peer,
        bytes: content(peer),
    });
    messages
        .filter(|message| !message.bytes.is_empty())
        .collect()
}
