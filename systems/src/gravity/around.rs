//! Where the values around an isolated domain stand, and the tables that are made of them.

use super::root::Expansion;
use nestar_device::math::sum3;
use nestar_engine::field::Element;
use nestar_kernels::PATCH;
use nestar_kernels::multigrid::exterior::{AROUND_FACE, LAYERS};
use nestar_kernels::multigrid::moments::coordinate;
use rayon::prelude::*;

/// Layers of cells around the domain that are asked of the solver: one more than the tables hold, for the coefficients of splines.
pub(super) const MARGIN: usize = AROUND_FACE + 1;

/// Layers along the normal of a face of which the tables are made: as many as they have, and one more on either side.
const DEEP: i32 = LAYERS as i32 + 2;

/// Cells along the axes beside a face's, with those around it.
fn across(cells: [i32; 3], face: usize) -> [i32; 2] {
    [1, 2].map(|n| cells[(face / 2 + n) % 3] + 2 * MARGIN as i32)
}

/// Values of a face.
fn area(cells: [i32; 3], face: usize) -> usize {
    let [a, b] = across(cells, face);
    (DEEP * a * b) as usize
}

/// Values around a domain of so many root cells.
pub(super) fn length(cells: [i32; 3]) -> usize {
    (0..6).map(|face| area(cells, face)).sum()
}

/// The first layer of a face.
fn first_layer(cells: [i32; 3], face: usize) -> i32 {
    match face % 2 {
        0 => -(MARGIN as i32),
        _ => cells[face / 2] - 2,
    }
}

/// Values of a face that stand side by side.
pub(super) struct Line {
    face: usize,
    /// The cell of the first one.
    first: [i32; 3],
}

/// All lines, in the order of the values.
pub(super) fn lines(cells: [i32; 3]) -> Vec<Line> {
    let of_face = |face: usize| {
        let (axis, [_, high]) = (face / 2, across(cells, face));
        let line = move |layer: i32, j: i32| {
            let mut first = [-(MARGIN as i32); 3];
            first[axis] = first_layer(cells, face) + layer;
            first[(axis + 2) % 3] += j;
            Line { face, first }
        };
        (0..DEEP).flat_map(move |layer| (0..high).map(move |j| line(layer, j)))
    };
    (0..6).flat_map(of_face).collect()
}

impl Line {
    /// The values.
    pub fn values(&self, cells: [i32; 3], half: [f64; 3], expansion: &Expansion) -> Vec<f64> {
        let along = (self.face / 2 + 1) % 3;
        expansion.along(across(cells, self.face)[0] as usize, |n| {
            std::array::from_fn(|axis| {
                let step = if axis == along { n as i32 } else { 0 };
                coordinate(self.first[axis] + step, cells[axis], half[axis])
            })
        })
    }
}

/// Calls `visit` with the places of the values in and beside a root patch, and their cells counted from the patch's first.
pub(super) fn each_place(cells: [i32; 3], patch: [i32; 3], mut visit: impl FnMut(usize, [i32; 3])) {
    let (size, margin) = (PATCH as i32, MARGIN as i32);
    let ends = |axis: usize| [patch[axis] == 0, (patch[axis] + 1) * size == cells[axis]];
    let range = |axis: usize| {
        let [first, last] = ends(axis).map(|ends| if ends { margin } else { 0 });
        -first..size + last
    };
    let mut begin = 0;
    for face in 0..6 {
        let (axis, [wide, high]) = (face / 2, across(cells, face));
        let (a, b) = ((axis + 1) % 3, (axis + 2) % 3);
        for layer in (0..DEEP).filter(|_| ends(axis)[face % 2]) {
            for (j, i) in range(b).flat_map(|j| range(a).map(move |i| (j, i))) {
                let mut cell = [0; 3];
                cell[axis] = first_layer(cells, face) + layer - patch[axis] * size;
                (cell[a], cell[b]) = (i, j);
                let (i, j) = (i + patch[a] * size + margin, j + patch[b] * size + margin);
                visit(begin + ((layer * high + j) * wide + i) as usize, cell);
            }
        }
        begin += area(cells, face);
    }
}

/// Fills the tables of values and of coefficients, which have the order of [`tabled`](nestar_kernels::multigrid::stencil::tabled): line by
/// line, a layer and a place less on either side than the values.
pub(super) fn fill<R: Element>(cells: [i32; 3], potential: &[f64], table: &mut [R]) {
    let (mut values, mut splines) = table.split_at_mut(table.len() / 2);
    let mut begin = 0;
    for face in 0..6 {
        let [wide, high] = across(cells, face).map(|n| n as usize);
        let steps = [wide * high, 1, wide];
        let count = LAYERS * (high - 2) * (wide - 2);
        let (own, rest) = std::mem::take(&mut values).split_at_mut(count);
        let (own_splines, rest_splines) = std::mem::take(&mut splines).split_at_mut(count);
        (values, splines) = (rest, rest_splines);
        let lines = own.par_chunks_mut(wide - 2);
        let lines = lines.zip(own_splines.par_chunks_mut(wide - 2)).enumerate();
        lines.for_each(|(line, (values, splines))| {
            let (layer, j) = (line / (high - 2) + 1, line % (high - 2) + 1);
            let first = begin + (layer * high + j) * wide + 1;
            for (i, (out, spline)) in values.iter_mut().zip(splines).enumerate() {
                let n = first + i;
                let value = potential[n];
                let bends =
                    steps.map(|step| (potential[n - step] - value) + (potential[n + step] - value));
                let bend = sum3(bends[0], bends[1], bends[2]);
                *out = R::lit(value);
                *spline = R::lit(value - 0.125 * bend);
            }
        });
        begin += area(cells, face);
    }
}
