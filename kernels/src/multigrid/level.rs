//! Relaxation and residual of a level on the host; `level.cu` is the device version.

use super::coarse::PaddedCoarseBlock;
use super::exterior::Exterior;
use super::ghost_values::{coarse_place, face_ghosts, find, global, is_lower, place};
use super::mirrors::{mirrors_beside, reflected};
use super::stencil::{PoissonSource, diagonal, laplacian, relaxed};
use crate::mesh::means::mean8;
use crate::mesh::{GhostView, Rows, face_direction};
use crate::{CELLS, PATCH};
use nestar_device::Real;

/// Number of cells along an axis of the next coarser grid.
const HALF: usize = PATCH / 2;

/// Equation of a level: laplacian(phi) = source + tau, with `phi` in `view`; without `tau` that of the level alone.
pub struct LevelGrid<'a, R> {
    /// Potential, and its values outside the level.
    pub view: GhostView<'a, R>,
    /// Potential outside the domain.
    pub exterior: Exterior<'a, R>,
    /// Right-hand side without fine-grid correction.
    pub source: PoissonSource<'a, R>,
    /// Fine-grid correction, if used.
    pub tau: Option<Rows<'a, R>>,
    /// 1 / width^2 of cells along the axes.
    pub weights: [R; 3],
}

/// Number of cells along an axis of a patch with one ghost layer.
pub(crate) const WIDE: usize = PATCH + 2;
pub(crate) type PaddedBlock<R> = [R; WIDE * WIDE * WIDE];

/// Returns the index of the first cell of a line along x in a block.
pub(crate) fn first(line: usize) -> usize {
    1 + WIDE * (1 + line % PATCH + WIDE * (1 + line / PATCH))
}

impl<R: Real> LevelGrid<'_, R> {
    /// Computes the Laplacian in the cells of a block; values outside its faces are meaningless.
    fn laplacians_in(&self, block: &PaddedBlock<R>) -> PaddedBlock<R> {
        let mut out = [R::lit(0.0); WIDE * WIDE * WIDE];
        // a single long loop vectorises; it includes values between the lines
        let (start, span) = (first(0), first(PATCH * PATCH - 1) + PATCH - first(0));
        let at = |from: usize| &block[from..][..span];
        let (xm, xp) = (at(start - 1), at(start + 1));
        let (ym, yp) = (at(start - WIDE), at(start + WIDE));
        let (zm, zp) = (at(start - WIDE * WIDE), at(start + WIDE * WIDE));
        let (own, out_of) = (at(start), &mut out[start..][..span]);
        for n in 0..span {
            let around = [xm[n], xp[n], ym[n], yp[n], zm[n], zp[n]];
            out_of[n] = laplacian(own[n], &around, &self.weights);
        }
        out
    }

    /// Returns the Laplacian in the cells of a row.
    pub(super) fn laplacians(&self, block: &PaddedBlock<R>) -> [R; CELLS] {
        let values = self.laplacians_in(block);
        let mut out = [R::lit(0.0); CELLS];
        for (line, out) in out.chunks_exact_mut(PATCH).enumerate() {
            out.copy_from_slice(&values[first(line)..][..PATCH]);
        }
        out
    }

    /// Returns a row with ghost values outside its faces: beside all cells there, or only beside those of a colour, as
    /// others may write the rest meanwhile. Edges and corners are 0.
    pub(super) fn block(&self, row: u32, colour: Option<usize>) -> PaddedBlock<R> {
        block(&self.view, &self.exterior, row, colour)
    }

    /// Returns the right-hand side in the cells of a row.
    fn rhs(&self, row: u32) -> [R; CELLS] {
        let density = &self.source.density.row(row)[..CELLS];
        let mut out = [R::lit(0.0); CELLS];
        for n in 0..CELLS {
            out[n] = self.source.of(density[n]);
        }
        if let Some(tau) = &self.tau {
            let tau = &tau.row(row)[..CELLS];
            for n in 0..CELLS {
                out[n] += tau[n];
            }
        }
        out
    }

    /// Returns the residual in the cells of a row.
    fn residuals(&self, row: u32) -> [R; CELLS] {
        let (laplacians, mut values) = (self.laplacians(&self.block(row, None)), self.rhs(row));
        for n in 0..CELLS {
            values[n] -= laplacians[n];
        }
        values
    }
}

/// Returns [`LevelGrid::block`] of the potential in `view`.
pub(crate) fn block<R: Real>(
    view: &GhostView<R>,
    exterior: &Exterior<R>,
    row: u32,
    colour: Option<usize>,
) -> PaddedBlock<R> {
    let mut block = [R::lit(0.0); WIDE * WIDE * WIDE];
    let own = &view.level.row(row)[..CELLS];
    for (line, own) in own.chunks_exact(PATCH).enumerate() {
        block[first(line)..][..PATCH].copy_from_slice(own);
    }
    for face in 0..6 {
        fill_face(view, exterior, row, face, colour, &mut block);
    }
    block
}

fn fill_face<R: Real>(
    view: &GhostView<R>,
    exterior: &Exterior<R>,
    row: u32,
    face: usize,
    colour: Option<usize>,
    block: &mut PaddedBlock<R>,
) {
    let axis = face / 2;
    let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
    let (edge, beyond) = if is_lower(face) {
        (0, 0)
    } else {
        (PATCH - 1, WIDE - 1)
    };
    let (steps, wide) = ([1, PATCH, PATCH * PATCH], [1, WIDE, WIDE * WIDE]);
    let first = beyond * wide[axis] + wide[a] + wide[b];
    let beside = view.neighbours[row as usize][face_direction(face)];
    let Ok(beside) = u32::try_from(beside) else {
        let values = face_ghosts(view, exterior, row, face);
        for (n, value) in values.into_iter().enumerate() {
            block[first + n % PATCH * wide[a] + n / PATCH * wide[b]] = value;
        }
        return;
    };
    let far = (PATCH - 1 - edge) * steps[axis];
    let stride = if colour.is_some() { 2 } else { 1 };
    for j in 0..PATCH {
        let start = colour.map_or(0, |colour| (j + edge + colour) % 2);
        for i in (start..PATCH).step_by(stride) {
            let cell = far + i * steps[a] + j * steps[b];
            block[first + i * wide[a] + j * wide[b]] = view.level.get(beside, cell);
        }
    }
}

/// Relaxes the cells of one colour of a row; `omega` above 1 over-relaxes.
///
/// # Safety
/// Others may relax the same colour of other rows meanwhile; nobody else may use the potential of the level.
pub unsafe fn relax<R: Real>(grid: &LevelGrid<R>, row: u32, colour: usize, omega: R) {
    let mirrors = (grid.exterior).mirrors_beside(grid.view.number, &grid.view.index[row as usize]);
    let whole = diagonal(&grid.weights, 0, 0, R::lit(0.0));
    let (block, rhs) = (grid.block(row, Some(colour)), grid.rhs(row));
    let mut values = grid.laplacians(&block);
    for (line, values) in values.chunks_exact_mut(PATCH).enumerate() {
        let own = &block[first(line)..][..PATCH];
        let rhs = &rhs[PATCH * line..][..PATCH];
        let mut wholes = [whole; PATCH];
        if mirrors != 0 {
            wholes = std::array::from_fn(|x| diagonal_beside(grid, mirrors, PATCH * line + x));
        }
        for x in 0..PATCH {
            values[x] = relaxed(own[x], values[x], rhs[x], wholes[x], omega);
        }
    }
    for cell in 0..CELLS / 2 {
        let (y, z) = (cell / 4 % PATCH, cell / (4 * PATCH));
        let cell = 2 * cell + (y + z + colour) % 2;
        // SAFETY: the caller's contract.
        unsafe { grid.view.level.set(row, cell, values[cell]) };
    }
}

/// Returns the negative diagonal of the Laplacian in a cell of a row beside the mirrored faces `mirrors`.
fn diagonal_beside<R: Real>(grid: &LevelGrid<R>, mirrors: i32, cell: usize) -> R {
    let at = place::<PATCH>(cell).map(|x| x as i32);
    let same = mirrors_beside(mirrors, &[PATCH as i32; 3], &at);
    diagonal(&grid.weights, same, same, R::lit(0.0))
}

/// Restricts the residual to the row of 4^3 cells, and sets its corrections to 0.
///
/// # Safety
/// Nobody else may use this row of `to` and of `correction` meanwhile.
pub unsafe fn restrict_residual<R: Real>(
    grid: &LevelGrid<R>,
    row: u32,
    to: &Rows<R>,
    correction: &Rows<R>,
) {
    let residuals = grid.residuals(row);
    for n in 0..HALF * HALF * HALF {
        let [x, y, z] = place::<HALF>(n).map(|x| 2 * x);
        let of = |side: usize| {
            let at = [x + (side & 1), y + (side >> 1 & 1), z + (side >> 2)];
            residuals[at[0] + PATCH * (at[1] + PATCH * at[2])]
        };
        // SAFETY: the caller's contract.
        unsafe {
            to.set(row, n, mean8(&std::array::from_fn(of)));
            correction.set(row, n, R::lit(0.0));
        }
    }
}

/// Returns the largest absolute residual in the cells of a row (0 unless it counts), and the largest right-hand side.
#[must_use]
pub fn largest_residual<R: Real>(grid: &LevelGrid<R>, row: u32, counts: bool) -> [f64; 2] {
    let largest = |values: [R; CELLS]| {
        let sizes = values.into_iter().map(|value| value.to_f64().abs());
        sizes.fold(0.0, larger)
    };
    let residual = if counts {
        largest(grid.residuals(row))
    } else {
        0.0
    };
    [
        residual,
        largest(std::array::from_fn(|cell| grid.source.at(row, cell))),
    ]
}

/// Returns the larger of two numbers that are not negative; a NaN stays.
#[must_use]
pub fn larger(most: f64, value: f64) -> f64 {
    if value > most || value.is_nan() {
        value
    } else {
        most
    }
}

/// Prolongs a change of the coarser level to a level.
pub struct CoarseChange<'a, R> {
    /// Neighbours of all rows.
    pub neighbours: &'a [[i32; 27]],
    /// Parents of all rows.
    pub parent: &'a [i32],
    /// Indices of all rows.
    pub index: &'a [[i32; 3]],
    /// The coarser level after the change.
    pub after: Rows<'a, R>,
    /// The coarser level before the change.
    pub before: Rows<'a, R>,
    /// Exterior potential before and after the change.
    pub exterior: [Exterior<'a, R>; 2],
    /// Number of the coarser level.
    pub number: i32,
    /// Factor of the change.
    pub factor: R,
}

impl<R: Real> CoarseChange<'_, R> {
    /// Sets a row of `to` to that of `from` plus the prolonged change.
    ///
    /// # Safety
    /// Nobody else may use this row of `to` meanwhile.
    pub unsafe fn add(&self, row: u32, from: &Rows<R>, to: &Rows<R>) {
        let parent = self.parent[row as usize] as u32;
        let first = coarse_place(self.index[row as usize], [0; 3]);
        let changes = PaddedCoarseBlock::<R, PATCH>::of(|place| {
            self.coarse(
                parent,
                std::array::from_fn(|axis| first[axis] + place[axis]),
            )
        });
        changes.interpolate(|first, values| {
            for (n, value) in values.iter().enumerate() {
                let value = from.get(row, first + n) + self.factor * *value;
                // SAFETY: the caller's contract.
                unsafe { to.set(row, first + n, value) };
            }
        });
    }

    /// Returns the change at a position relative to a row of the coarser level.
    fn coarse(&self, row: u32, place: [i32; 3]) -> R {
        match find(self.neighbours, row, place) {
            Some((beside, cell)) => self.of_cell(beside, cell),
            None => self.outside(row, place),
        }
    }

    fn of_cell(&self, row: u32, cell: usize) -> R {
        self.after.get(row, cell) - self.before.get(row, cell)
    }

    /// Returns the change at a position outside the domain.
    #[cold]
    fn outside(&self, row: u32, place: [i32; 3]) -> R {
        let [before, after] = &self.exterior;
        let mirrors = after.mirrors_beside(self.number, &self.index[row as usize]);
        let place = reflected(mirrors, &place, PATCH as i32);
        match find(self.neighbours, row, place) {
            Some((beside, cell)) => self.of_cell(beside, cell),
            None => {
                let cell = global(self.index, row, place);
                after.at(self.number, cell) - before.at(self.number, cell)
            }
        }
    }
}
