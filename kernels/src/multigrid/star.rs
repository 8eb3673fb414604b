//! Values around a cell: through its faces, in the next coarser level, along an axis.

use super::source::Source;
use super::stencil::{
    beyond_face, extrapolated, in_plane, lift, mean_in_plane, slope, through_face,
};
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

/// The coarse level below a level, at one time.
#[derive(Clone, Copy)]
pub struct Below<'a, R> {
    pub(super) old: Rows<'a, R>,
    pub(super) new: Rows<'a, R>,
    pub(super) weight: R,
    pub(super) neighbours: &'a [[i32; 27]],
}

impl<'a, R: Real> Below<'a, R> {
    /// What `view` interpolates from.
    #[must_use]
    pub fn of(view: &GhostView<'a, R>) -> Self {
        Self {
            old: view.coarse_old,
            new: view.coarse_new,
            weight: view.weight,
            neighbours: view.neighbours,
        }
    }

    /// A value of a row.
    #[inline(always)]
    fn value(&self, row: u32, cell: usize) -> R {
        let old = self.old.get(row, cell);
        old + self.weight * (self.new.get(row, cell) - old)
    }

    /// The value at a place from -8 to 15 along each axis, as seen from a row; beyond the domain it is extrapolated.
    pub(super) fn at(&self, row: u32, place: [i32; 3]) -> R {
        let step = place.map(|x| x.div_euclid(PATCH as i32));
        let beside = self.neighbours[row as usize][direction(step)];
        match u32::try_from(beside) {
            Ok(beside) => self.value(beside, cell_at(place)),
            Err(_) => self.beyond_domain(row, place),
        }
    }

    /// The 3 x 3 values around a place, normal to an axis.
    fn plane(&self, row: u32, middle: [i32; 3], axis: usize) -> [R; 9] {
        std::array::from_fn(|n| {
            let mut place = middle;
            place[(axis + 1) % 3] += n as i32 % 3 - 1;
            place[(axis + 2) % 3] += n as i32 / 3 - 1;
            self.at(row, place)
        })
    }

    /// The value beyond the domain, extrapolated along one axis after the other.
    #[cold]
    fn beyond_domain(&self, row: u32, place: [i32; 3]) -> R {
        let size = PATCH as i32;
        let outside = |axis: usize| {
            let face = 2 * axis + usize::from(place[axis] >= size);
            let inside = (0..size).contains(&place[axis]);
            !inside && self.neighbours[row as usize][face_direction(face)] < 0
        };
        let Some(axis) = (0..3).find(|&axis| outside(axis)) else {
            return R::lit(f64::NAN);
        };
        let below = place[axis] < 0;
        let inner = std::array::from_fn(|n| {
            let mut to = place;
            to[axis] = if below { n as i32 } else { size - 1 - n as i32 };
            self.at(row, to)
        });
        let layer = if below {
            -place[axis]
        } else {
            place[axis] - size + 1
        };
        extrapolated(&inner, layer)
    }
}

/// The cell of a patch at a place, counted from that of any patch.
fn cell_at(place: [i32; 3]) -> usize {
    let [x, y, z] = place.map(|x| x.rem_euclid(PATCH as i32) as usize);
    x + PATCH * (y + PATCH * z)
}

/// The cell of the parent in which a cell stands.
pub(super) fn coarse_place(index: [i32; 3], at: [usize; 3]) -> [i32; 3] {
    std::array::from_fn(|axis| (PATCH as i32 / 2) * (index[axis] & 1) + at[axis] as i32 / 2)
}

/// The coarse value in the plane `depth` coarse cells beyond a face of a patch, before a cell at the face.
pub(super) fn plane<R: Real>(
    view: &GhostView<R>,
    row: u32,
    at: [usize; 3],
    face: usize,
    depth: i32,
) -> R {
    let below = Below::of(view);
    let (parent, axis) = (view.parent[row as usize] as u32, face / 2);
    let mut middle = coarse_place(view.index[row as usize], at);
    middle[axis] += if is_lower(face) { -depth } else { depth };
    let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
    let values = below.plane(parent, middle, axis);
    in_plane(&values, at[a] as i32 & 1, at[b] as i32 & 1)
}

/// The value through a face of a row beyond which its level has no patch, before a cell at the face.
pub(super) fn through<R: Real>(view: &GhostView<R>, row: u32, cell: usize, face: usize) -> R {
    let (axis, stride) = (face / 2, PATCH.pow(face as u32 / 2));
    let inward = |n: usize| {
        if is_lower(face) {
            cell + n * stride
        } else {
            cell - n * stride
        }
    };
    let inner = |n| view.level.get(row, inward(n));
    if view.number == 0 {
        return extrapolated(&std::array::from_fn(inner), 1);
    }
    let mut at = place::<PATCH>(cell);
    debug_assert!(at[axis] == 0 || at[axis] == PATCH - 1);
    at[axis] = if is_lower(face) { 0 } else { PATCH - 1 };
    through_face(plane(view, row, at, face, 1), &[inner(0), inner(1)])
}

/// What slopes of a level are made of.
pub struct Slopes<'a, R> {
    /// The potential of the level.
    pub view: GhostView<'a, R>,
    /// The right-hand side of the equation.
    pub source: Source<'a, R>,
    /// First child of each row, -1: none.
    pub first_child: &'a [i32],
    /// Width of a cell along each axis.
    pub width: [R; 3],
}

impl<R: Real> Slopes<'_, R> {
    /// The slopes along an axis in the cells of a row, of fourth or second order.
    #[must_use]
    pub fn along(&self, row: u32, axis: usize, fourth: bool) -> [R; CELLS] {
        let inverse_width = R::lit(1.0) / self.width[axis];
        let stride = PATCH.pow(axis as u32);
        let mut out = [R::lit(0.0); CELLS];
        for n in 0..PATCH * PATCH {
            // the first cell of a line along the axis
            let first = n % stride + n / stride * (stride * PATCH);
            let line: [R; PATCH + 4] = std::array::from_fn(|n| {
                let to = n as i32 - 2;
                match n {
                    2..10 => self.view.level.get(row, first + (n - 2) * stride),
                    _ => self.beyond(row, first, 2 * axis + usize::from(to > 0), to),
                }
            });
            for n in 0..PATCH {
                let values = [line[n], line[n + 1], line[n + 3], line[n + 4]];
                out[first + n * stride] = slope(&values, fourth, inverse_width);
            }
        }
        out
    }

    /// The value at place `to` of the line from cell `line` along the axis of a face, beyond it.
    fn beyond(&self, row: u32, line: usize, face: usize, to: i32) -> R {
        let (axis, size) = (face / 2, PATCH as i32);
        let stride = PATCH.pow(axis as u32);
        let on_line = |n: usize| line + n * stride;
        let beside = self.view.neighbours[row as usize][face_direction(face)];
        if let Ok(beside) = u32::try_from(beside) {
            let cell = on_line(to.rem_euclid(size) as usize);
            let value = self.view.level.get(beside, cell);
            let covered =
                self.first_child[beside as usize] != -1 && self.first_child[row as usize] == -1;
            return match covered {
                true => value - lift(self.source.at(beside, cell), self.width[axis]),
                false => value,
            };
        }
        let (layer, inner) = match face % 2 {
            0 => (-to, [0, 1, 2, 3]),
            _ => (to - size + 1, [7, 6, 5, 4]),
        };
        let inner = inner.map(|n: usize| self.view.level.get(row, on_line(n)));
        if self.view.number == 0 {
            return extrapolated(&inner, layer);
        }
        let mut edge = place::<PATCH>(line);
        edge[axis] = if is_lower(face) { 0 } else { PATCH - 1 };
        let planes = [1, 2].map(|depth| plane(&self.view, row, edge, face, depth));
        beyond_face(&planes, &[inner[0], inner[1]])[layer as usize - 1]
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
    row: u32,
    at: [usize; 3],
    axis: usize,
) -> R {
    let level = Below {
        old: view.level,
        new: view.level,
        weight: R::lit(1.0),
        neighbours: view.neighbours,
    };
    mean_in_plane(&level.plane(row, at.map(|x| x as i32), axis))
}
