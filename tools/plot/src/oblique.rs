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

/// Parallel rays through patches of one level. Places are in cells from the corner of a patch.
pub(crate) struct March {
    /// Cells along each axis per unit of `t`; 0 for an axis across the rays.
    slope: [f64; 3],
    /// The inverse; infinite for an axis across the rays.
    inverse: [f64; 3],
    /// Change of a cell's place among the values of a patch from one cell to the next.
    stride: [isize; 3],
}

impl March {
    /// Creates rays in a direction.
    pub fn new(direction: [f64; 3], width: [f64; 3]) -> Self {
        let is_across = direction.map(|x| x.abs() < PARALLEL);
        let slope: [f64; 3] = std::array::from_fn(|i| match is_across[i] {
            true => 0.0,
            false => direction[i] / width[i],
        });
        let strides = [1, PATCH as isize, (PATCH * PATCH) as isize];
        Self {
            slope,
            inverse: slope.map(f64::recip),
            stride: std::array::from_fn(|i| {
                if slope[i] < 0.0 {
                    -strides[i]
                } else {
                    strides[i]
                }
            }),
        }
    }

    /// Returns the range of `t` in which the ray through `place` is in the patch, within a range.
    fn range(&self, place: [f64; 3], within: &Range<f64>) -> Option<Range<f64>> {
        let side = PATCH as f64;
        let (mut first, mut last) = (within.start, within.end);
        for i in 0..3 {
            if self.slope[i] == 0.0 {
                if !(0.0..side).contains(&place[i]) {
                    return None;
                }
                continue;
            }
            let ends = [
                -place[i] * self.inverse[i],
                (side - place[i]) * self.inverse[i],
            ];
            first = first.max(ends[0].min(ends[1]));
            last = last.min(ends[0].max(ends[1]));
        }
        (first < last).then_some(first..last)
    }

    /// Calls `work` with the cells of a patch that the ray through `place` crosses within a range of `t`: the place of the cell among the
    /// values, and the range of `t` in it.
    pub fn cross(
        &self,
        place: [f64; 3],
        within: &Range<f64>,
        mut work: impl FnMut(usize, Range<f64>),
    ) {
        let Some(Range {
            start: mut t,
            end: last,
        }) = self.range(place, within)
        else {
            return;
        };
        let mut left = [0i32; 3];
        let mut next = [f64::INFINITY; 3];
        let mut number = 0;
        for i in 0..3 {
            let slope = self.slope[i];
            // a ray that enters through a face may be rounded to either side of it
            let near = if slope == 0.0 {
                0.0
            } else {
                1e-9f64.copysign(slope)
            };
            // the cast saturates
            let cell = ((place[i] + t * slope + near).max(0.0) as i32).min(PATCH as i32 - 1);
            number += cell as isize * self.stride[i].abs();
            if slope != 0.0 {
                next[i] = (f64::from(cell + i32::from(slope > 0.0)) - place[i]) * self.inverse[i];
                left[i] = if slope > 0.0 {
                    PATCH as i32 - cell
                } else {
                    cell + 1
                };
            }
        }
        loop {
            let axis = if next[0] <= next[1] && next[0] <= next[2] {
                0
            } else {
                1 + usize::from(next[2] < next[1])
            };
            let end = next[axis].min(last);
            if end > t {
                work(number as usize, t..end);
                t = end;
            }
            left[axis] -= 1;
            if end >= last || left[axis] == 0 {
                return;
            }
            number += self.stride[axis];
            next[axis] += self.inverse[axis].abs();
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
        let march = March::new(view.basis[2], width);
        let everywhere = f64::NEG_INFINITY..f64::INFINITY;
        let [columns, rows] = pixels;
        // places in cells from the corner, at the left edge of a row and from pixel to pixel
        let step: [f64; 3] = std::array::from_fn(|i| view.basis[0][i] / scale[0] / width[i]);
        for row in rows {
            let up = view.left[1] + (row as f64 + 0.5) / scale[1];
            let left = minus(view.point([view.left[0], up]), corner);
            let left: [f64; 3] = std::array::from_fn(|i| left[i] / width[i]);
            for column in columns.clone() {
                let right = column as f64 + 0.5;
                let place = std::array::from_fn(|i| left[i] + right * step[i]);
                let Sums([sum, total]) = &mut sums[row % BAND * view.pixels[0] + column];
                let mut add = |value: f64, weight: f64| {
                    *sum = if sum.is_nan() { value } else { *sum + value };
                    *total += weight;
                };
                let length = |range: Range<f64>| range.end - range.start;
                match (self.kind, weights) {
                    (PlotKind::Slice(_), _) => {
                        if let Some(cell) = cell_at(place) {
                            *sum = cells[cell];
                        }
                    }
                    (PlotKind::Maximum, _) => march.cross(place, &everywhere, |cell, _| {
                        *sum = sum.max(cells[cell]);
                    }),
                    (_, None) => {
                        let (mut own, mut meets) = (0.0, false);
                        march.cross(place, &everywhere, |cell, range| {
                            own += cells[cell] * length(range);
                            meets = true;
                        });
                        if meets {
                            add(own, 1.0);
                        }
                    }
                    (_, Some(weights)) => march.cross(place, &everywhere, |cell, range| {
                        let weight = weights[cell] * length(range);
                        add(cells[cell] * weight, weight);
                    }),
                }
            }
        }
    }
}

/// Returns the place of the cell of a patch that contains a point, given in cells from the corner of the patch.
fn cell_at(index: [f64; 3]) -> Option<usize> {
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
    let direction = along.map(|x| x / length);
    let low = snapshot.attributes().domain_left_edge;
    let cross = |level: &LevelHeader, corner: [f64; 3], work: &mut dyn FnMut(usize, Range<f64>)| {
        let place = std::array::from_fn(|i| (from[i] - corner[i]) / level.cell_width[i]);
        March::new(direction, level.cell_width).cross(place, &(0.0..length), work);
    };
    let wanted = |level: &LevelHeader, origin: [i32; 3]| {
        let corner = |i: usize| low[i] + f64::from(origin[i]) * level.cell_width[i];
        let mut meets = false;
        cross(level, std::array::from_fn(corner), &mut |_, _| meets = true);
        meets
    };
    let mut found = vec![];
    for_each_leaf(snapshot, &[field], max_level, wanted, |chunk| {
        for patch in 0..chunk.origins.len() {
            let cells = chunk.patch(0, patch);
            cross(chunk.level, chunk.corner(patch), &mut |cell, range| {
                found.push([0.5 * (range.start + range.end), cells[cell]]);
            });
        }
    })?;
    found.sort_by(|a, b| a[0].total_cmp(&b[0]));
    Ok(found)
}
