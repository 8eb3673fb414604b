//! Where the values around an isolated domain stand, and the tables that are made of them.

use super::root_fft::Expansion;
use nestar_engine::data::Element;
use nestar_kernels::PATCH;
use nestar_kernels::multigrid::expansion::{DEEP, MARGIN, cell_around, spline_of};
use nestar_kernels::multigrid::exterior::{LAYERS, table_length};
use nestar_kernels::multigrid::moments::coordinate;
use rayon::prelude::*;
use std::ops::Range;

/// Values that a thread finds at once.
const CHUNK: usize = 512;

/// Cells along the axes beside a face's, with those around it.
fn across(cells: [i32; 3], face: usize) -> [i32; 2] {
    [1, 2].map(|n| cells[(face / 2 + n) % 3] + 2 * MARGIN as i32)
}

/// Values of a face.
fn area(cells: [i32; 3], face: usize) -> usize {
    let [a, b] = across(cells, face);
    DEEP * (a * b) as usize
}

/// Values around a domain of so many root cells.
pub(super) fn length(cells: [i32; 3]) -> usize {
    (0..6).map(|face| area(cells, face)).sum()
}

/// Those of so many values that a rank of some works out.
pub(super) fn part_of(values: usize, rank: usize, size: usize) -> Range<usize> {
    values * rank / size..values * (rank + 1) / size
}

/// The first layer of a face.
fn first_layer(cells: [i32; 3], face: usize) -> i32 {
    match face % 2 {
        0 => -(MARGIN as i32),
        _ => cells[face / 2] - 2,
    }
}

/// Fills `potential` with the values of an expansion from number `first` on.
pub(super) fn expand(cells: [i32; 3], expansion: &Expansion, first: usize, potential: &mut [f64]) {
    let chunks = potential.par_chunks_mut(CHUNK).enumerate();
    chunks.for_each(|(n, out)| {
        let first = first + n * CHUNK;
        expansion.fill(out, |m| {
            let cell = cell_around(&cells, (first + m) as i32);
            std::array::from_fn(|axis| coordinate(cell[axis], cells[axis], expansion.half[axis]))
        });
    });
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
        for layer in (0..DEEP as i32).filter(|_| ends(axis)[face % 2]) {
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
pub(super) fn fill<R: Element>(cells: [i32; 3], potential: &[f64], table: &mut Vec<R>) {
    let length = table_length(cells);
    table.resize(2 * length, R::lit(0.0));
    let (mut values, mut splines) = table.split_at_mut(length);
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
                let beside = |m: usize| [n - steps[m / 2], n + steps[m / 2]][m % 2];
                *out = R::lit(value);
                let beside = std::array::from_fn(|m| potential[beside(m)]);
                *spline = R::lit(spline_of(value, &beside));
            }
        });
        begin += area(cells, face);
    }
}
