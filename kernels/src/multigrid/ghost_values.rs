//! Ghost values: outside the faces of cells and patches, from the coarser level and from outside the domain.

use super::exterior::Exterior;
use super::mirrors::reflected;
use super::stencil::PoissonSource;
use super::stencil::{
    average_excess, interpolate_in_plane, laplacian_ghost, mean_in_plane, slope, slope_ghosts,
};
use crate::mesh::{GhostView, Rows, direction, face_direction};
use crate::{CELLS, PATCH};
use nestar_device::Real;

/// Returns the coordinates of a cell in a row of `N`^3.
#[inline(always)]
pub(super) fn place<const N: usize>(cell: usize) -> [usize; 3] {
    [cell % N, cell / N % N, cell / (N * N)]
}

/// Returns `true` if a face is the lower one of its axis.
pub(super) fn is_lower(face: usize) -> bool {
    face & 1 == 0
}

/// Returns the neighbours x-, x+, y-, y+, z-, z+ of a cell of a row of `N`^3. The bit mask marks faces without a patch.
#[inline(always)]
pub(super) fn around<R: Real, const N: usize>(
    bank: &Rows<R>,
    neighbours: &[i32; 27],
    row: u32,
    cell: usize,
) -> ([R; 6], i32) {
    let at = place::<N>(cell);
    let (mut values, mut missing) = ([R::lit(0.0); 6], 0);
    for (face, value) in values.iter_mut().enumerate() {
        let (axis, stride) = (face / 2, N.pow(face as u32 / 2));
        let up = face % 2 == 1;
        let inside = if up { at[axis] + 1 < N } else { at[axis] > 0 };
        if inside {
            *value = bank.get(row, if up { cell + stride } else { cell - stride });
            continue;
        }
        match u32::try_from(neighbours[face_direction(face)]) {
            Ok(beside) => {
                let far = (N - 1) * stride;
                *value = bank.get(beside, if up { cell - far } else { cell + far });
            }
            Err(_) => missing |= 1 << face,
        }
    }
    (values, missing)
}

/// A level at one time, and the potential outside the domain.
#[derive(Clone, Copy)]
pub(super) struct CoarserLevel<'a, R> {
    old: Rows<'a, R>,
    new: Rows<'a, R>,
    weight: R,
    neighbours: &'a [[i32; 27]],
    index: &'a [[i32; 3]],
    number: i32,
    exterior: Exterior<'a, R>,
}

impl<'a, R: Real> CoarserLevel<'a, R> {
    /// Returns the next coarser level, from which `view` interpolates.
    pub fn of(view: &GhostView<'a, R>, exterior: &Exterior<'a, R>) -> Self {
        Self {
            old: view.coarse_old,
            new: view.coarse_new,
            weight: view.weight,
            neighbours: view.neighbours,
            index: view.index,
            number: view.number - 1,
            exterior: *exterior,
        }
    }

    /// Returns the level of `view` itself.
    fn present(view: &GhostView<'a, R>, exterior: &Exterior<'a, R>) -> Self {
        Self {
            old: view.level,
            new: view.level,
            weight: R::lit(1.0),
            number: view.number,
            ..Self::of(view, exterior)
        }
    }

    /// Returns a value of a row.
    #[inline(always)]
    fn value(&self, row: u32, cell: usize) -> R {
        let old = self.old.get(row, cell);
        old + self.weight * (self.new.get(row, cell) - old)
    }

    /// Returns the value at a position relative to a row, -8 to 15 along each axis.
    fn at(&self, row: u32, place: [i32; 3]) -> R {
        match find(self.neighbours, row, place) {
            Some((beside, cell)) => self.value(beside, cell),
            None => self.outside(row, place),
        }
    }

    /// Returns the value at a position outside the domain.
    #[cold]
    fn outside(&self, row: u32, place: [i32; 3]) -> R {
        let mirrors = (self.exterior).mirrors_beside(self.number, &self.index[row as usize]);
        let place = reflected(mirrors, &place, PATCH as i32);
        match find(self.neighbours, row, place) {
            Some((beside, cell)) => self.value(beside, cell),
            None => (self.exterior).at(self.number, global(self.index, row, place)),
        }
    }

    /// Returns the 3 x 3 values around a position, normal to an axis.
    pub fn plane(&self, row: u32, middle: [i32; 3], axis: usize) -> [R; 9] {
        std::array::from_fn(|n| {
            let mut place = middle;
            place[(axis + 1) % 3] += n as i32 % 3 - 1;
            place[(axis + 2) % 3] += n as i32 / 3 - 1;
            self.at(row, place)
        })
    }
}

/// Returns row and cell of a position relative to a row, -8 to 15 along each axis.
pub(super) fn find(neighbours: &[[i32; 27]], row: u32, place: [i32; 3]) -> Option<(u32, usize)> {
    let step = place.map(|x| x.div_euclid(PATCH as i32));
    let beside = neighbours[row as usize][direction(step)];
    u32::try_from(beside)
        .ok()
        .map(|beside| (beside, cell_at(place)))
}

/// Returns the cell of a level at a position relative to a row.
pub(super) fn global(index: &[[i32; 3]], row: u32, place: [i32; 3]) -> [i32; 3] {
    let index = index[row as usize];
    std::array::from_fn(|axis| PATCH as i32 * index[axis] + place[axis])
}

/// Returns the cell of a patch at a position relative to any patch.
pub(super) fn cell_at(place: [i32; 3]) -> usize {
    let [x, y, z] = place.map(|x| x.rem_euclid(PATCH as i32) as usize);
    x + PATCH * (y + PATCH * z)
}

/// Returns the cell of the parent that contains a cell.
pub(super) fn coarse_place(index: [i32; 3], at: [usize; 3]) -> [i32; 3] {
    std::array::from_fn(|axis| (PATCH as i32 / 2) * (index[axis] & 1) + at[axis] as i32 / 2)
}

/// Values outside a face of a patch, beside its 8 x 8 cells there, `[b][a]`.
pub(super) type Plane<R> = [R; PATCH * PATCH];

/// Interpolates the coarse values in the plane `depth` coarse cells outside a face of a patch.
fn plane<R: Real>(
    view: &GhostView<R>,
    exterior: &Exterior<R>,
    row: u32,
    face: usize,
    depth: i32,
) -> Plane<R> {
    const WIDE: usize = PATCH / 2 + 2;
    let below = CoarserLevel::of(view, exterior);
    let (parent, axis) = (view.parent[row as usize] as u32, face / 2);
    let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
    let mut at = [0; 3];
    at[axis] = if is_lower(face) { 0 } else { PATCH - 1 };
    let mut first = coarse_place(view.index[row as usize], at);
    first[axis] += if is_lower(face) { -depth } else { depth };
    let mut coarse = [R::lit(0.0); WIDE * WIDE];
    for (n, value) in coarse.iter_mut().enumerate() {
        let mut place = first;
        place[a] += (n % WIDE) as i32 - 1;
        place[b] += (n / WIDE) as i32 - 1;
        *value = below.at(parent, place);
    }
    let mut out = [R::lit(0.0); PATCH * PATCH];
    for (n, value) in out.iter_mut().enumerate() {
        let (i, j) = (n % PATCH, n / PATCH);
        let values = std::array::from_fn(|m| coarse[i / 2 + m % 3 + WIDE * (j / 2 + m / 3)]);
        *value = interpolate_in_plane(&values, i as i32 & 1, j as i32 & 1);
    }
    out
}

/// Returns the ghost values outside a face of a row where its level has no patch.
pub(super) fn face_ghosts<R: Real>(
    view: &GhostView<R>,
    exterior: &Exterior<R>,
    row: u32,
    face: usize,
) -> Plane<R> {
    if is_mirror(view, exterior, row, face) {
        return inner_layers(view, row, face)[0];
    }
    if view.number == 0 {
        return domain_ghosts(view, exterior, row, face, 1);
    }
    let inner = inner_layers(view, row, face);
    let mut values = plane(view, exterior, row, face, 1);
    for (n, value) in values.iter_mut().enumerate() {
        *value = laplacian_ghost(*value, &[inner[0][n], inner[1][n]]);
    }
    values
}

/// Returns `true` if a face of a row is a mirrored face of the domain.
fn is_mirror<R: Real>(view: &GhostView<R>, exterior: &Exterior<R>, row: u32, face: usize) -> bool {
    exterior.mirrors_beside(view.number, &view.index[row as usize]) >> face & 1 == 1
}

/// Returns cell `n` of a layer inside a face of a patch, in the order of a [`Plane`].
fn cell_inside(face: usize, layer: usize, n: usize) -> usize {
    let axis = face / 2;
    let stride = |axis: usize| PATCH.pow(axis as u32 % 3);
    let depth = if is_lower(face) {
        layer
    } else {
        PATCH - 1 - layer
    };
    n % PATCH * stride(axis + 1) + n / PATCH * stride(axis + 2) + depth * stride(axis)
}

/// Returns the values of a row in the two layers inside a face, the nearer first.
fn inner_layers<R: Real>(view: &GhostView<R>, row: u32, face: usize) -> [Plane<R>; 2] {
    [0, 1].map(|layer| std::array::from_fn(|n| view.level.get(row, cell_inside(face, layer, n))))
}

/// Returns the values of the root level in a layer outside a face of the domain.
fn domain_ghosts<R: Real>(
    view: &GhostView<R>,
    exterior: &Exterior<R>,
    row: u32,
    face: usize,
    layer: i32,
) -> Plane<R> {
    let axis = face / 2;
    std::array::from_fn(|n| {
        let mut place = [0; 3];
        place[axis] = if is_lower(face) {
            -layer
        } else {
            PATCH as i32 - 1 + layer
        };
        place[(axis + 1) % 3] = (n % PATCH) as i32;
        place[(axis + 2) % 3] = (n / PATCH) as i32;
        exterior.at(0, global(view.index, row, place))
    })
}

/// Number of cells along an axis of a patch with two ghost layers.
const PADDED: usize = PATCH + 4;

/// Returns the index of the first cell of a line along x in such a block.
fn in_block(line: usize) -> usize {
    2 + PADDED * (2 + line % PATCH + PADDED * (2 + line / PATCH))
}

/// Potential and equation of a level, for slopes.
pub struct PotentialSlopes<'a, R> {
    /// Potential of the level.
    pub view: GhostView<'a, R>,
    /// Potential outside the domain.
    pub exterior: Exterior<'a, R>,
    /// Right-hand side of Poisson's equation.
    pub source: PoissonSource<'a, R>,
    /// First child of each row, -1: none.
    pub first_child: &'a [i32],
    /// Width of a cell along each axis.
    pub width: [R; 3],
}

impl<R: Real> PotentialSlopes<'_, R> {
    /// Returns the slopes along x, y, z in the cells of a row, of fourth or second order.
    #[must_use]
    pub fn of(&self, row: u32, fourth: bool) -> [[R; CELLS]; 3] {
        let block = self.block(row);
        let mut out = [[R::lit(0.0); CELLS]; 3];
        for (axis, out) in out.iter_mut().enumerate() {
            let inverse_width = R::lit(1.0) / self.width[axis];
            let stride = PADDED.pow(axis as u32);
            // a single long loop vectorises; it includes values between the lines
            let (start, end) = (in_block(0), in_block(PATCH * PATCH - 1) + PATCH);
            let at = |n: usize| &block[start + n * stride - 2 * stride..][..end - start];
            let (a, b, d, e) = (at(0), at(1), at(3), at(4));
            let mut slopes = [R::lit(0.0); PADDED * PADDED * PADDED];
            for (n, out) in slopes[start..end].iter_mut().enumerate() {
                *out = slope(&[a[n], b[n], d[n], e[n]], fourth, inverse_width);
            }
            for (line, out) in out.chunks_exact_mut(PATCH).enumerate() {
                out.copy_from_slice(&slopes[in_block(line)..][..PATCH]);
            }
        }
        out
    }

    /// Returns a row with two ghost layers outside its faces; values outside edges and corners are 0.
    fn block(&self, row: u32) -> [R; PADDED * PADDED * PADDED] {
        let mut block = [R::lit(0.0); PADDED * PADDED * PADDED];
        let own = self.view.level.row(row);
        for (line, own) in own[..CELLS].chunks_exact(PATCH).enumerate() {
            block[in_block(line)..][..PATCH].copy_from_slice(own);
        }
        for face in 0..6 {
            let (axis, stride) = (face / 2, PADDED.pow(face as u32 / 2));
            let (a, b) = (
                PADDED.pow((axis as u32 + 1) % 3),
                PADDED.pow((axis as u32 + 2) % 3),
            );
            for (layer, values) in self.two_ghost_layers(row, face).into_iter().enumerate() {
                let along = if is_lower(face) {
                    1 - layer
                } else {
                    PATCH + 2 + layer
                };
                for (n, value) in values.into_iter().enumerate() {
                    block[along * stride + (n % PATCH + 2) * a + (n / PATCH + 2) * b] = value;
                }
            }
        }
        block
    }

    /// Returns the values in two layers outside a face, the nearer first.
    fn two_ghost_layers(&self, row: u32, face: usize) -> [Plane<R>; 2] {
        let beside = self.view.neighbours[row as usize][face_direction(face)];
        if let Ok(beside) = u32::try_from(beside) {
            let opposite = face ^ 1;
            let value = |layer, n| {
                let cell = cell_inside(opposite, layer, n);
                self.value_beside(row, beside, cell, self.width[face / 2])
            };
            return [0, 1].map(|layer| std::array::from_fn(|n| value(layer, n)));
        }
        let inner = inner_layers(&self.view, row, face);
        if is_mirror(&self.view, &self.exterior, row, face) {
            return inner;
        }
        if self.view.number == 0 {
            return [1, 2].map(|layer| domain_ghosts(&self.view, &self.exterior, row, face, layer));
        }
        let planes = [1, 2].map(|depth| plane(&self.view, &self.exterior, row, face, depth));
        let mut out = inner;
        for n in 0..PATCH * PATCH {
            let inner = [inner[0][n], inner[1][n]];
            [out[0][n], out[1][n]] = slope_ghosts(&[planes[0][n], planes[1][n]], &inner);
        }
        out
    }

    /// Returns the value of a cell of the patch beside a row.
    pub(super) fn value_beside(&self, row: u32, beside: u32, cell: usize, width: R) -> R {
        let value = self.view.level.get(beside, cell);
        let covered =
            self.first_child[beside as usize] != -1 && self.first_child[row as usize] == -1;
        match covered {
            true => value - average_excess(self.source.at(beside, cell), width),
            false => value,
        }
    }
}

/// Returns the cells of one colour of a row: the sum of their coordinates is even (0) or odd (1).
pub(super) fn coloured<const N: usize>(colour: usize) -> impl Iterator<Item = usize> {
    debug_assert!(N * N * N <= CELLS);
    let parity = |cell: &usize| place::<N>(*cell).iter().sum::<usize>() & 1;
    (0..N * N * N).filter(move |cell| parity(cell) == colour)
}

/// Returns the mean of a level over a cell in its plane normal to an axis.
pub(super) fn mean_of_plane<R: Real>(
    view: &GhostView<R>,
    exterior: &Exterior<R>,
    row: u32,
    at: [usize; 3],
    axis: usize,
) -> R {
    let level = CoarserLevel::present(view, exterior);
    mean_in_plane(&level.plane(row, at.map(|x| x as i32), axis))
}
