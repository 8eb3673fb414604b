//! A level with its unknowns, on the host: the twin of level.cu.

use super::exterior::Exterior;
use super::ghost_values::{cell_at, coarse_place, global, is_lower, place, through};
use super::source::PoissonSource;
use super::stencil::{diagonal, laplacian, relaxed};
use super::wide::Wide;
use crate::mesh::means::mean8;
use crate::mesh::{GhostView, Rows, direction, face_direction};
use crate::{CELLS, PATCH};
use nestar_device::Real;

/// Cells of a row of the next coarser grid.
const HALF: usize = PATCH / 2;

/// A level's equation: laplacian(phi) = source + tau, `phi` in `view`; without a tau it is that of the level alone.
pub struct LevelGrid<'a, R> {
    /// The unknowns, and what is beyond the borders of the level.
    pub view: GhostView<'a, R>,
    /// What is beyond the domain.
    pub exterior: Exterior<'a, R>,
    /// What the level itself knows of the right-hand side.
    pub source: PoissonSource<'a, R>,
    /// What the finer level adds to it, if it counts.
    pub tau: Option<Rows<'a, R>>,
    /// 1 / width^2 of cells along the axes.
    pub weights: [R; 3],
}

/// Cells along an axis of a patch with what is through its faces.
pub(crate) const WIDE: usize = PATCH + 2;
pub(crate) type Block<R> = [R; WIDE * WIDE * WIDE];

/// Where a line of a patch along x begins in a block.
pub(crate) fn first(line: usize) -> usize {
    1 + WIDE * (1 + line % PATCH + WIDE * (1 + line / PATCH))
}

impl<R: Real> LevelGrid<'_, R> {
    /// The Laplacian in the cells of a block, and numbers without a meaning beyond its faces.
    fn laplacians_in(&self, block: &Block<R>) -> Block<R> {
        let mut out = [R::lit(0.0); WIDE * WIDE * WIDE];
        // one long loop is vectorised: it passes over what lies between lines too
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

    /// The Laplacian in the cells of a row.
    pub(super) fn laplacians(&self, block: &Block<R>) -> [R; CELLS] {
        let values = self.laplacians_in(block);
        let mut out = [R::lit(0.0); CELLS];
        for (line, out) in out.chunks_exact_mut(PATCH).enumerate() {
            out.copy_from_slice(&values[first(line)..][..PATCH]);
        }
        out
    }

    /// A row with the values through its faces, before all cells there or before those of a colour: others may write the rest
    /// meanwhile. Edges and corners are 0.
    pub(super) fn block(&self, row: u32, colour: Option<usize>) -> Block<R> {
        block(&self.view, &self.exterior, row, colour)
    }

    /// The right-hand side in the cells of a row.
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

    /// What is missing in the cells of a row.
    fn residuals(&self, row: u32) -> [R; CELLS] {
        let (laplacians, mut values) = (self.laplacians(&self.block(row, None)), self.rhs(row));
        for n in 0..CELLS {
            values[n] -= laplacians[n];
        }
        values
    }
}

/// As [`LevelGrid::block`] of the unknowns in `view`.
pub(crate) fn block<R: Real>(
    view: &GhostView<R>,
    exterior: &Exterior<R>,
    row: u32,
    colour: Option<usize>,
) -> Block<R> {
    let mut block = [R::lit(0.0); WIDE * WIDE * WIDE];
    let own = &view.level.row(row)[..CELLS];
    for (line, own) in own.chunks_exact(PATCH).enumerate() {
        block[first(line)..][..PATCH].copy_from_slice(own);
    }
    for face in 0..6 {
        through_face(view, exterior, (row, face), colour, &mut block);
    }
    block
}

fn through_face<R: Real>(
    view: &GhostView<R>,
    exterior: &Exterior<R>,
    (row, face): (u32, usize),
    colour: Option<usize>,
    block: &mut Block<R>,
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
        let values = through(view, exterior, row, face);
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

/// Relaxes the cells of one colour of a row.
///
/// # Safety
/// Others may relax the same colour of other rows meanwhile; nobody else may use the level's unknowns.
pub unsafe fn relax<R: Real>(grid: &LevelGrid<R>, row: u32, colour: usize) {
    let whole = diagonal(&grid.weights, 0, R::lit(0.0));
    let (block, rhs) = (grid.block(row, Some(colour)), grid.rhs(row));
    let mut values = grid.laplacians(&block);
    for (line, values) in values.chunks_exact_mut(PATCH).enumerate() {
        let own = &block[first(line)..][..PATCH];
        let rhs = &rhs[PATCH * line..][..PATCH];
        for x in 0..PATCH {
            values[x] = relaxed(own[x], values[x], rhs[x], whole, R::lit(1.0));
        }
    }
    for cell in 0..CELLS / 2 {
        let (y, z) = (cell / 4 % PATCH, cell / (4 * PATCH));
        let cell = 2 * cell + (y + z + colour) % 2;
        // SAFETY: the caller's contract.
        unsafe { grid.view.level.set(row, cell, values[cell]) };
    }
}

/// Sets the row of 4^3 cells to the means of the residual, and its corrections to 0.
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

/// Largest absolute residual of the cells of a row if it is a leaf, and of the right-hand side there.
#[must_use]
pub fn largest_residual<R: Real>(grid: &LevelGrid<R>, row: u32, leaf: bool) -> [f64; 2] {
    let largest = |values: [R; CELLS]| {
        let sizes = values.into_iter().map(|value| value.to_f64().abs());
        sizes.fold(0.0, larger)
    };
    let residual = if leaf {
        largest(grid.residuals(row))
    } else {
        0.0
    };
    [
        residual,
        largest(std::array::from_fn(|cell| grid.source.at(row, cell))),
    ]
}

/// The larger of two numbers that are not below 0; a NaN must not be passed over.
#[must_use]
pub fn larger(most: f64, value: f64) -> f64 {
    if value > most || value.is_nan() {
        value
    } else {
        most
    }
}

/// Interpolates a change of the coarser level to a level's cells.
pub struct Change<'a, R> {
    /// Neighbours of all rows.
    pub neighbours: &'a [[i32; 27]],
    /// Parents of all rows.
    pub parent: &'a [i32],
    /// Indices of all rows.
    pub index: &'a [[i32; 3]],
    /// The coarser level after the change.
    pub after: Rows<'a, R>,
    /// And before it.
    pub before: Rows<'a, R>,
    /// What was beyond the domain before the change and what is there after it.
    pub exterior: [Exterior<'a, R>; 2],
    /// Number of the coarser level.
    pub number: i32,
    /// What the change is multiplied by.
    pub factor: R,
}

impl<R: Real> Change<'_, R> {
    /// Sets a row of `to` to that of `from` and the interpolated change.
    ///
    /// # Safety
    /// Nobody else may use this row of `to` meanwhile.
    pub unsafe fn add(&self, row: u32, from: &Rows<R>, to: &Rows<R>) {
        let parent = self.parent[row as usize] as u32;
        let first = coarse_place(self.index[row as usize], [0; 3]);
        let changes = Wide::<R, PATCH>::of(|place| {
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

    /// The change at a place as seen from a row of the coarser level.
    fn coarse(&self, row: u32, place: [i32; 3]) -> R {
        let step = place.map(|x| x.div_euclid(PATCH as i32));
        match u32::try_from(self.neighbours[row as usize][direction(step)]) {
            Ok(beside) => {
                let n = cell_at(place);
                self.after.get(beside, n) - self.before.get(beside, n)
            }
            Err(_) => {
                let cell = global(self.index, row, place);
                let [before, after] = &self.exterior;
                after.at(self.number, cell) - before.at(self.number, cell)
            }
        }
    }
}
