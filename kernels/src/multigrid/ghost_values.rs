//! Values around a cell: through its faces, in the next coarser level, along an axis.

use super::exterior::Exterior;
use super::source::PoissonSource;
use super::stencil::{beyond_face, in_plane, lift, mean_in_plane, slope, through_face};
use crate::mesh::{GhostView, Rows, direction, face_direction};
use crate::{CELLS, PATCH};
use nestar_device::Real;

/// Place of a cell in a row of `N`^3.
#[inline(always)]
pub(super) fn place<const N: usize>(cell: usize) -> [usize; 3] {
    [cell % N, cell / N % N, cell / (N * N)]
}

/// Whether a face is the lower one of its axis.
pub(super) fn is_lower(face: usize) -> bool {
    face & 1 == 0
}

/// The values through the faces x-, x+, y-, y+, z-, z+ of a cell of a row of `N`^3, and the faces beyond which there is no patch, as bits.
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

/// A level at one time, and what is beyond the domain.
#[derive(Clone, Copy)]
pub(super) struct Below<'a, R> {
    old: Rows<'a, R>,
    new: Rows<'a, R>,
    weight: R,
    neighbours: &'a [[i32; 27]],
    index: &'a [[i32; 3]],
    number: i32,
    exterior: Exterior<'a, R>,
}

impl<'a, R: Real> Below<'a, R> {
    /// What `view` interpolates from: the next coarser level.
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

    /// The level of `view` itself.
    fn present(view: &GhostView<'a, R>, exterior: &Exterior<'a, R>) -> Self {
        Self {
            old: view.level,
            new: view.level,
            weight: R::lit(1.0),
            number: view.number,
            ..Self::of(view, exterior)
        }
    }

    /// A value of a row.
    #[inline(always)]
    fn value(&self, row: u32, cell: usize) -> R {
        let old = self.old.get(row, cell);
        old + self.weight * (self.new.get(row, cell) - old)
    }

    /// The value at a place from -8 to 15 along each axis, as seen from a row.
    fn at(&self, row: u32, place: [i32; 3]) -> R {
        let step = place.map(|x| x.div_euclid(PATCH as i32));
        let beside = self.neighbours[row as usize][direction(step)];
        match u32::try_from(beside) {
            Ok(beside) => self.value(beside, cell_at(place)),
            Err(_) => self.exterior.at(self.number, self.global(row, place)),
        }
    }

    /// The cell of the level at a place as seen from a row.
    fn global(&self, row: u32, place: [i32; 3]) -> [i32; 3] {
        global(self.index, row, place)
    }

    /// The 3 x 3 values around a place, normal to an axis.
    pub fn plane(&self, row: u32, middle: [i32; 3], axis: usize) -> [R; 9] {
        std::array::from_fn(|n| {
            let mut place = middle;
            place[(axis + 1) % 3] += n as i32 % 3 - 1;
            place[(axis + 2) % 3] += n as i32 / 3 - 1;
            self.at(row, place)
        })
    }
}

/// The cell of a level at a place as seen from a row.
pub(super) fn global(index: &[[i32; 3]], row: u32, place: [i32; 3]) -> [i32; 3] {
    let index = index[row as usize];
    std::array::from_fn(|axis| PATCH as i32 * index[axis] + place[axis])
}

/// The cell of a patch at a place, counted from that of any patch.
pub(super) fn cell_at(place: [i32; 3]) -> usize {
    let [x, y, z] = place.map(|x| x.rem_euclid(PATCH as i32) as usize);
    x + PATCH * (y + PATCH * z)
}

/// The cell of the parent in which a cell stands.
pub(super) fn coarse_place(index: [i32; 3], at: [usize; 3]) -> [i32; 3] {
    std::array::from_fn(|axis| (PATCH as i32 / 2) * (index[axis] & 1) + at[axis] as i32 / 2)
}

/// Values beyond a face of a patch, before its 8 x 8 cells there, `[b][a]`.
pub(super) type Plane<R> = [R; PATCH * PATCH];

/// The coarse values in the plane `depth` coarse cells beyond a face of a patch.
fn plane<R: Real>(
    view: &GhostView<R>,
    exterior: &Exterior<R>,
    row: u32,
    face: usize,
    depth: i32,
) -> Plane<R> {
    const WIDE: usize = PATCH / 2 + 2;
    let below = Below::of(view, exterior);
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
        *value = in_plane(&values, i as i32 & 1, j as i32 & 1);
    }
    out
}

/// The values through a face of a row beyond which its level has no patch.
pub(super) fn through<R: Real>(
    view: &GhostView<R>,
    exterior: &Exterior<R>,
    row: u32,
    face: usize,
) -> Plane<R> {
    if view.number == 0 {
        return beyond_root(view, exterior, row, face, 1);
    }
    let (axis, size) = (face / 2, PATCH);
    let stride = |axis: usize| size.pow(axis as u32);
    let (a, b) = (stride((axis + 1) % 3), stride((axis + 2) % 3));
    let inner = match is_lower(face) {
        true => [0, 1],
        false => [size - 1, size - 2],
    };
    let mut values = plane(view, exterior, row, face, 1);
    for (n, value) in values.iter_mut().enumerate() {
        let line = n % size * a + n / size * b;
        let inner = inner.map(|n| view.level.get(row, line + n * stride(axis)));
        *value = through_face(*value, &inner);
    }
    values
}

/// The values of the root level in a layer beyond a face of the domain.
fn beyond_root<R: Real>(
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

/// Cells along an axis of a patch with two layers beyond its faces.
const DEEP: usize = PATCH + 4;

/// Where a line along x begins in such a block.
fn in_block(line: usize) -> usize {
    2 + DEEP * (2 + line % PATCH + DEEP * (2 + line / PATCH))
}

/// What slopes of a level are made of.
pub struct PotentialSlopes<'a, R> {
    /// The potential of the level.
    pub view: GhostView<'a, R>,
    /// What is beyond the domain.
    pub exterior: Exterior<'a, R>,
    /// The right-hand side of the equation.
    pub source: PoissonSource<'a, R>,
    /// First child of each row, -1: none.
    pub first_child: &'a [i32],
    /// Width of a cell along each axis.
    pub width: [R; 3],
}

impl<R: Real> PotentialSlopes<'_, R> {
    /// The slopes along x, y, z in the cells of a row, of fourth or second order.
    #[must_use]
    pub fn of(&self, row: u32, fourth: bool) -> [[R; CELLS]; 3] {
        let block = self.block(row);
        let mut out = [[R::lit(0.0); CELLS]; 3];
        for (axis, out) in out.iter_mut().enumerate() {
            let inverse_width = R::lit(1.0) / self.width[axis];
            let stride = DEEP.pow(axis as u32);
            // one long loop is vectorised: it passes over what lies between lines too
            let (start, end) = (in_block(0), in_block(PATCH * PATCH - 1) + PATCH);
            let at = |n: usize| &block[start + n * stride - 2 * stride..][..end - start];
            let (a, b, d, e) = (at(0), at(1), at(3), at(4));
            let mut slopes = [R::lit(0.0); DEEP * DEEP * DEEP];
            for (n, out) in slopes[start..end].iter_mut().enumerate() {
                *out = slope(&[a[n], b[n], d[n], e[n]], fourth, inverse_width);
            }
            for (line, out) in out.chunks_exact_mut(PATCH).enumerate() {
                out.copy_from_slice(&slopes[in_block(line)..][..PATCH]);
            }
        }
        out
    }

    /// A row with two layers beyond its faces; beyond edges and corners stands 0.
    fn block(&self, row: u32) -> [R; DEEP * DEEP * DEEP] {
        let mut block = [R::lit(0.0); DEEP * DEEP * DEEP];
        let own = self.view.level.row(row);
        for (line, own) in own[..CELLS].chunks_exact(PATCH).enumerate() {
            block[in_block(line)..][..PATCH].copy_from_slice(own);
        }
        for face in 0..6 {
            let (axis, stride) = (face / 2, DEEP.pow(face as u32 / 2));
            let (a, b) = (
                DEEP.pow((axis as u32 + 1) % 3),
                DEEP.pow((axis as u32 + 2) % 3),
            );
            for (layer, values) in self.beyond(row, face).into_iter().enumerate() {
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

    /// The values in two layers beyond a face, the nearer first.
    fn beyond(&self, row: u32, face: usize) -> [Plane<R>; 2] {
        let (axis, size) = (face / 2, PATCH);
        let stride = |axis: usize| size.pow(axis as u32);
        let (a, b) = (stride((axis + 1) % 3), stride((axis + 2) % 3));
        // the cells from the face on, in the patch and beyond it
        let cell = |n: usize, layer: usize, up: bool| {
            let m = if up { layer } else { size - 1 - layer };
            n % size * a + n / size * b + m * stride(axis)
        };
        let up = !is_lower(face);
        let mut out = [[R::lit(0.0); PATCH * PATCH]; 2];
        let beside = self.view.neighbours[row as usize][face_direction(face)];
        if let Ok(beside) = u32::try_from(beside) {
            for (layer, out) in out.iter_mut().enumerate() {
                for (n, value) in out.iter_mut().enumerate() {
                    *value = self.value_beside(row, beside, cell(n, layer, up), self.width[axis]);
                }
            }
            return out;
        }
        if self.view.number == 0 {
            return [1, 2].map(|layer| beyond_root(&self.view, &self.exterior, row, face, layer));
        }
        let planes = [1, 2].map(|depth| plane(&self.view, &self.exterior, row, face, depth));
        for n in 0..size * size {
            let inner = [0, 1].map(|layer| self.view.level.get(row, cell(n, layer, !up)));
            [out[0][n], out[1][n]] = beyond_face(&[planes[0][n], planes[1][n]], &inner);
        }
        out
    }

    /// The value of a cell of the patch beside a row.
    pub(super) fn value_beside(&self, row: u32, beside: u32, cell: usize, width: R) -> R {
        let value = self.view.level.get(beside, cell);
        let covered =
            self.first_child[beside as usize] != -1 && self.first_child[row as usize] == -1;
        match covered {
            true => value - lift(self.source.at(beside, cell), width),
            false => value,
        }
    }
}

/// Cells of one colour of a row: the sum of their places is even (0) or odd (1).
pub(super) fn coloured<const N: usize>(colour: usize) -> impl Iterator<Item = usize> {
    debug_assert!(N * N * N <= CELLS);
    let parity = |cell: &usize| place::<N>(*cell).iter().sum::<usize>() & 1;
    (0..N * N * N).filter(move |cell| parity(cell) == colour)
}

/// The mean of a level over a cell in its plane normal to an axis.
pub(super) fn mean_of_plane<R: Real>(
    view: &GhostView<R>,
    exterior: &Exterior<R>,
    row: u32,
    at: [usize; 3],
    axis: usize,
) -> R {
    let level = Below::present(view, exterior);
    mean_in_plane(&level.plane(row, at.map(|x| x as i32), axis))
}
