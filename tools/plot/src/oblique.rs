//! Rays through the cells: pictures in a direction between the axes, and values along a line.

use crate::cells::{Chunk, PATCH, for_each_leaf};
use crate::error::Result;
use crate::field::PlotField;
use crate::view::{PlotView, dot, minus};
use crate::{PlotKind, PlotOptions};
use nestar_snapshot::{LevelHeader, Snapshot};
use rayon::prelude::*;
use std::ops::Range;

/// Rows of pixels that are drawn at a time.
const BAND: usize = 16;
/// Components of a direction of length 1 below this count as 0.
const PARALLEL: f64 = 1e-13;

/// A straight line, `start + t * direction`.
#[derive(Clone, Copy)]
pub(crate) struct Ray {
    pub start: [f64; 3],
    pub direction: [f64; 3],
}

impl Ray {
    /// Calls `work` with the cells of a patch that the ray crosses within a range of `t`: the place of the cell, and where the ray enters
    /// and leaves it.
    pub fn cross(
        &self,
        corner: [f64; 3],
        width: [f64; 3],
        within: Range<f64>,
        mut work: impl FnMut(usize, Range<f64>),
    ) {
        let side = PATCH as f64;
        let (mut t, mut last) = (within.start, within.end);
        let (mut place, mut slope) = ([0.0; 3], [0.0; 3]);
        for i in 0..3 {
            place[i] = (self.start[i] - corner[i]) / width[i];
            slope[i] = self.direction[i] / width[i];
            if self.direction[i].abs() < PARALLEL {
                slope[i] = 0.0;
                if !(0.0..side).contains(&place[i]) {
                    return;
                }
                continue;
            }
            let ends = [-place[i] / slope[i], (side - place[i]) / slope[i]];
            t = t.max(ends[0].min(ends[1]));
            last = last.min(ends[0].max(ends[1]));
        }
        if t >= last {
            return;
        }
        let mut cell = [0i32; 3];
        let mut next = [f64::INFINITY; 3];
        for i in 0..3 {
            let at = place[i] + t * slope[i];
            // a ray that enters through a face may be rounded to either side of it
            let index =
                (at + 1e-9 * slope[i].signum() * f64::from(u8::from(slope[i] != 0.0))).floor();
            cell[i] = (index as i32).clamp(0, PATCH as i32 - 1);
            if slope[i] != 0.0 {
                let edge = f64::from(cell[i] + i32::from(slope[i] > 0.0));
                next[i] = (edge - place[i]) / slope[i];
            }
        }
        let strides = [1, PATCH, PATCH * PATCH];
        loop {
            let axis = if next[0] <= next[1] && next[0] <= next[2] {
                0
            } else {
                1 + usize::from(next[2] < next[1])
            };
            let end = next[axis].min(last);
            let number = (0..3).map(|i| cell[i] as usize * strides[i]).sum();
            if end > t {
                work(number, t..end);
                t = end;
            }
            cell[axis] += if slope[axis] > 0.0 { 1 } else { -1 };
            if end >= last || !(0..PATCH as i32).contains(&cell[axis]) {
                return;
            }
            next[axis] += 1.0 / slope[axis].abs();
        }
    }
}

/// Rays through the pixels of a picture in a direction between the axes.
pub(crate) struct Rays<'a> {
    view: &'a PlotView,
    kind: PlotKind,
}

/// Sums of a pixel: the values, and the weights.
#[derive(Clone, Copy)]
struct Sums([f64; 2]);

impl Rays<'_> {
    /// Draws the first of the fields on the pixels, in a projection weighted by the second field if there is one.
    pub fn draw(
        values: &mut [f64],
        snapshot: &Snapshot,
        fields: &[&PlotField],
        options: &PlotOptions,
        view: &PlotView,
    ) -> Result<()> {
        let rays = Rays {
            view,
            kind: options.kind,
        };
        let mut sums = vec![Sums([f64::NAN, 0.0]); values.len()];
        let low = snapshot.attributes().domain_left_edge;
        let wanted = |level: &LevelHeader, origin: [i32; 3]| {
            let corner = |i: usize| low[i] + f64::from(origin[i]) * level.cell_width[i];
            rays.pixels(std::array::from_fn(corner), level.cell_width)
                .is_some()
        };
        for_each_leaf(snapshot, fields, options.max_level, wanted, |chunk| {
            let seen: Vec<Option<[Range<usize>; 2]>> = (0..chunk.origins.len())
                .map(|patch| rays.pixels(chunk.corner(patch), chunk.level.cell_width))
                .collect();
            let bands = sums.par_chunks_mut(BAND * view.pixels[0]).enumerate();
            bands.for_each(|(band, sums)| {
                let rows = band * BAND..(band + 1) * BAND;
                for (patch, seen) in seen.iter().enumerate() {
                    if let Some([columns, up]) = seen {
                        let rows = up.start.max(rows.start)..up.end.min(rows.end);
                        rays.patch(sums, chunk, patch, [columns.clone(), rows]);
                    }
                }
            });
        })?;
        let is_weighted = fields.len() > 1;
        for (value, Sums([sum, weight])) in values.iter_mut().zip(sums) {
            *value = if is_weighted { sum / weight } else { sum };
        }
        Ok(())
    }

    /// Returns the columns and rows of pixels that may show a patch.
    fn pixels(&self, corner: [f64; 3], width: [f64; 3]) -> Option<[Range<usize>; 2]> {
        let half = width.map(|width| 0.5 * PATCH as f64 * width);
        let middle = std::array::from_fn(|i| corner[i] + half[i]);
        let (at, depth) = self.view.project(middle);
        let reach = self.view.basis.map(|direction| {
            (0..3).map(|i| half[i] * direction[i].abs()).sum::<f64>() * (1.0 + 1e-9)
        });
        if self.view.at.is_some() && depth.abs() > reach[2] {
            return None;
        }
        let scale = self.view.scale();
        let range = |i: usize| {
            let pixel = |x: f64| {
                let x = (x - self.view.left[i]) * scale[i] - 0.5;
                x.clamp(0.0, self.view.pixels[i] as f64)
            };
            let (first, last) = (
                pixel(at[i] - reach[i]).floor(),
                pixel(at[i] + reach[i]).ceil(),
            );
            first as usize..(last as usize + 1).min(self.view.pixels[i])
        };
        let ranges = [range(0), range(1)];
        ranges
            .iter()
            .all(|range| !range.is_empty())
            .then_some(ranges)
    }

    /// Draws a patch on some columns and rows; `sums` are those of the band of the rows.
    fn patch(&self, sums: &mut [Sums], chunk: &Chunk, patch: usize, pixels: [Range<usize>; 2]) {
        let (view, scale) = (self.view, self.view.scale());
        let (corner, width) = (chunk.corner(patch), chunk.level.cell_width);
        let cells = chunk.patch(0, patch);
        let weights = chunk.values.get(1).map(|_| chunk.patch(1, patch));
        let everywhere = f64::NEG_INFINITY..f64::INFINITY;
        let [columns, rows] = pixels;
        for row in rows {
            for column in columns.clone() {
                let at = [column, row].map(|pixel| pixel as f64 + 0.5);
                let at = [0, 1].map(|i| view.left[i] + at[i] / scale[i]);
                let start = view.point(at);
                let Sums([sum, total]) = &mut sums[row % BAND * view.pixels[0] + column];
                if view.at.is_some() {
                    if let Some(cell) = cell_at(minus(start, corner), width) {
                        *sum = cells[cell];
                    }
                    continue;
                }
                let direction = view.basis[2];
                let ray = Ray { start, direction };
                ray.cross(corner, width, everywhere.clone(), |cell, range| {
                    let (value, length) = (cells[cell], range.end - range.start);
                    let weight = weights.map_or(1.0, |weights| weights[cell]);
                    *sum = match self.kind {
                        PlotKind::Maximum => sum.max(value),
                        _ if sum.is_nan() => value * weight * length,
                        _ => *sum + value * weight * length,
                    };
                    *total += weight * length;
                });
            }
        }
    }
}

/// Returns the place of the cell of a patch that contains a point, given relative to the corner of the patch.
fn cell_at(from: [f64; 3], width: [f64; 3]) -> Option<usize> {
    let index = [0, 1, 2].map(|i| from[i] / width[i]);
    let inside = index.iter().all(|x| (0.0..PATCH as f64).contains(x));
    inside.then(|| (index[2] as usize * PATCH + index[1] as usize) * PATCH + index[0] as usize)
}

/// Returns the middles of the cells on the line between two points, by their distance from the first one, with the values of a field.
pub(crate) fn line(
    snapshot: &Snapshot,
    field: &PlotField,
    [from, to]: [[f64; 3]; 2],
    max_level: Option<u8>,
) -> Result<Vec<[f64; 2]>> {
    let along = minus(to, from);
    let length = dot(along, along).sqrt();
    let ray = Ray {
        start: from,
        direction: along.map(|x| x / length),
    };
    let mut found = vec![];
    let low = snapshot.attributes().domain_left_edge;
    let wanted = |level: &LevelHeader, origin: [i32; 3]| {
        let corner = |i: usize| low[i] + f64::from(origin[i]) * level.cell_width[i];
        let mut meets = false;
        let corner = std::array::from_fn(corner);
        ray.cross(corner, level.cell_width, 0.0..length, |_, _| meets = true);
        meets
    };
    for_each_leaf(snapshot, &[field], max_level, wanted, |chunk| {
        for patch in 0..chunk.origins.len() {
            let corner = chunk.corner(patch);
            let cells = chunk.patch(0, patch);
            ray.cross(
                corner,
                chunk.level.cell_width,
                0.0..length,
                |cell, range| {
                    found.push([0.5 * (range.start + range.end), cells[cell]]);
                },
            );
        }
    })?;
    found.sort_by(|a, b| a[0].total_cmp(&b[0]));
    Ok(found)
}
