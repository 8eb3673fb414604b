//! Sampling of the patches of a snapshot on the pixels of a picture.

use crate::cells::{Chunk, PATCH, for_each_chunk, select};
use crate::error::{PlotError, Result};
use crate::field::PlotField;
use crate::oblique::Rays;
use crate::view::PlotView;
use crate::{PlotKind, PlotOptions, particles};
use nestar_snapshot::{LevelHeader, Snapshot};
use std::collections::BTreeSet;

/// Values of the pixels, and outlines of the patches.
#[derive(Clone)]
pub(crate) struct Raster {
    /// Value of each pixel, from the bottom row upwards; NaN for a pixel without data.
    pub values: Vec<f64>,
    /// Outlines of patches: level, and first cell along the two axes of the plane.
    pub outlines: BTreeSet<(u8, [i32; 2])>,
    /// Sums of the weights, for a weighted projection.
    weights: Vec<f64>,
    /// Width of a cell of level 0 along the two axes.
    root_width: [f64; 2],
    /// Lower edge of the domain along the two axes.
    low: [f64; 2],
}

/// Values of a patch reduced along the line of sight, `[upwards][to the right]`.
type PatchImage = [f64; PATCH * PATCH];

/// Returns the global index along the axis of the cells that the slice cuts on a level.
fn slice_index(snapshot: &Snapshot, level: &LevelHeader, axis: usize, at: f64) -> i32 {
    let attributes = snapshot.attributes();
    let cells = (attributes.root_cells[axis] << level.level) as f64;
    let index = ((at - attributes.domain_left_edge[axis]) / level.cell_width[axis]).floor();
    index.clamp(0.0, cells - 1.0) as i32
}

/// Samples the field of the leaf cells, or the density of particles, on the pixels; in a projection with a weight, the mean.
pub(crate) fn draw(
    snapshot: &Snapshot,
    field: &PlotField,
    weight: Option<&PlotField>,
    options: &PlotOptions,
    view: &PlotView,
) -> Result<Raster> {
    let pixels = view.pixels[0] * view.pixels[1];
    let attributes = snapshot.attributes();
    let mut raster = Raster {
        values: vec![f64::NAN; pixels],
        outlines: BTreeSet::new(),
        weights: vec![
            f64::NAN;
            if weight.is_some() && view.axis.is_some() {
                pixels
            } else {
                0
            }
        ],
        root_width: view.plane.map(|axis| {
            let (low, high) = (attributes.domain_left_edge, attributes.domain_right_edge);
            (high[axis] - low[axis]) / attributes.root_cells[axis] as f64
        }),
        low: view.plane.map(|axis| attributes.domain_left_edge[axis]),
    };
    if let Some(species) = field.species() {
        if options.kind == PlotKind::Maximum {
            let text = "the density of particles has no maximum along the axis: draw a slice or a projection";
            return Err(PlotError::Option(text.to_string()));
        }
        raster.values = particles::density(snapshot, species, view)?;
    }
    let fields: Vec<&PlotField> = match field.species() {
        None => [field].into_iter().chain(weight).collect(),
        Some(_) => vec![],
    };
    match view.axis {
        Some(axis) => raster.along_axis(snapshot, &fields, options, view, axis)?,
        None if fields.is_empty() => {}
        None => Rays::draw(&mut raster.values, snapshot, &fields, options, view)?,
    }
    for (value, weight) in raster.values.iter_mut().zip(&raster.weights) {
        *value /= weight;
    }
    Ok(raster)
}

/// Reduces a patch along the axis to a 2D array `[upwards][to the right]`; `value` returns the value of a cell.
fn flatten(
    value: impl Fn(usize) -> f64,
    axis: usize,
    kind: PlotKind,
    cut: Option<i32>,
    level: &LevelHeader,
) -> PatchImage {
    // strides of x, y, z in `[z][y][x]`
    let strides = [1, PATCH, PATCH * PATCH];
    let [right, up] = match axis {
        0 => [strides[1], strides[2]],
        1 => [strides[0], strides[2]],
        _ => [strides[0], strides[1]],
    };
    std::array::from_fn(|i| {
        let line = |k: usize| value((i % PATCH) * right + (i / PATCH) * up + k * strides[axis]);
        match kind {
            PlotKind::Projection => (0..PATCH).map(line).sum::<f64>() * level.cell_width[axis],
            PlotKind::Maximum => (0..PATCH)
                .map(line)
                .fold(f64::NEG_INFINITY, |a, b| if b > a { b } else { a }),
            _ => line(cut.unwrap_or(0) as usize),
        }
    })
}

/// Returns pairs of pixel and cell for the `PATCH` cells between two edges, given in pixels.
fn cover([start, end]: [f64; 2], pixels: usize) -> impl Iterator<Item = (usize, usize)> {
    // a pixel belongs to the cell that contains its centre
    let edge = |edge: f64| (edge - 0.5).ceil().clamp(0.0, pixels as f64) as usize;
    let width = (end - start) / PATCH as f64;
    let cell = move |pixel: usize| (((pixel as f64 + 0.5 - start) / width) as usize).min(PATCH - 1);
    (edge(start)..edge(end)).map(move |pixel| (pixel, cell(pixel)))
}

impl Raster {
    /// Draws the patches of all levels in a picture along an axis.
    fn along_axis(
        &mut self,
        snapshot: &Snapshot,
        fields: &[&PlotField],
        options: &PlotOptions,
        view: &PlotView,
        axis: usize,
    ) -> Result<()> {
        let finest = options.max_level.unwrap_or(u8::MAX);
        for header in snapshot.levels().filter(|header| header.level <= finest) {
            let index = view.at.map(|at| slice_index(snapshot, header, axis, at));
            let selection = select(snapshot, header, finest, |origin| {
                let cut = |index: i32| (0..PATCH as i32).contains(&(index - origin[axis]));
                index.is_none_or(cut)
                    && self.sees(view, header, view.plane.map(|axis| origin[axis]))
            })?;
            let first = |origin: &[i32; 3]| (header.level, view.plane.map(|axis| origin[axis]));
            self.outlines.extend(selection.origins.iter().map(first));
            if fields.is_empty() {
                continue;
            }
            for_each_chunk(snapshot, fields, header, &selection, |chunk| {
                self.patches(chunk, options.kind, view, index.map(|index| (axis, index)));
            })?;
        }
        Ok(())
    }

    /// Returns the pixel at which cell `first` of a level begins along an axis of the picture, in an image of the domain.
    fn start(&self, view: &PlotView, level: u8, first: i32, which: usize, shift: f64) -> f64 {
        let scale = view.scale()[which];
        let width = self.root_width[which] / f64::from(1u32 << level);
        let offset = self.low[which] - view.left[which] + shift;
        f64::from(first) * (width * scale) + offset * scale
    }

    /// Returns `true` if a patch that begins at cell `first` is in the picture.
    fn sees(&self, view: &PlotView, level: &LevelHeader, first: [i32; 2]) -> bool {
        (0..2).all(|i| {
            view.shifts[i].iter().any(|&shift| {
                let edge = |cell: i32| self.start(view, level.level, cell, i, shift);
                edge(first[i] + PATCH as i32) > 0.0 && edge(first[i]) < view.pixels[i] as f64
            })
        })
    }

    /// Draws the patches of a chunk; `cut` is the axis and the index of the cells of a slice.
    fn patches(
        &mut self,
        chunk: &Chunk,
        kind: PlotKind,
        view: &PlotView,
        cut: Option<(usize, i32)>,
    ) {
        let axis = view.axis.unwrap_or(2);
        for (patch, origin) in chunk.origins.iter().enumerate() {
            let cut = cut.map(|(axis, index)| index - origin[axis]);
            let first = view.plane.map(|axis| origin[axis]);
            let cells = chunk.patch(0, patch);
            if chunk.values.len() == 1 {
                let image = flatten(|i| cells[i], axis, kind, cut, chunk.level);
                self.paint(view, chunk.level, first, &image, kind);
                continue;
            }
            let weights = chunk.patch(1, patch);
            let image = flatten(|i| cells[i] * weights[i], axis, kind, cut, chunk.level);
            self.paint(view, chunk.level, first, &image, kind);
            let image = flatten(|i| weights[i], axis, kind, cut, chunk.level);
            std::mem::swap(&mut self.values, &mut self.weights);
            self.paint(view, chunk.level, first, &image, kind);
            std::mem::swap(&mut self.values, &mut self.weights);
        }
    }

    /// Returns the outlines (x, y, width, height) in pixels from the lower left corner, coarse to fine.
    pub fn rectangles(&self, view: &PlotView) -> Vec<(i64, i64, i64, i64)> {
        let mut found = vec![];
        for &(level, first) in &self.outlines {
            for &right in &view.shifts[0] {
                for &up in &view.shifts[1] {
                    let edge = |i: usize, cells: usize, shift: f64| {
                        let cell = first[i] + cells as i32;
                        (self.start(view, level, cell, i, shift) - 0.5).ceil() as i64
                    };
                    let (x, y) = (edge(0, 0, right), edge(1, 0, up));
                    found.push((x, y, edge(0, PATCH, right) - x, edge(1, PATCH, up) - y));
                }
            }
        }
        found
    }

    /// Returns the width and height in pixels of the finest cells that each pixel shows.
    pub fn cell_pixels(&self, view: &PlotView) -> Vec<[f32; 2]> {
        let [columns, rows] = view.pixels;
        let mut found = vec![[1.0; 2]; columns * rows];
        // finer patches come last
        for (x, y, width, height) in self.rectangles(view) {
            let cell = [width, height].map(|side| side as f32 / PATCH as f32);
            for row in y.max(0)..(y + height).min(rows as i64) {
                let (first, last) = (x.max(0), (x + width).min(columns as i64));
                let line = row as usize * columns;
                if first < last {
                    found[line + first as usize..line + last as usize].fill(cell);
                }
            }
        }
        found
    }

    /// Draws one reduced patch; in a projection or maximum, combines it with the pixels' values.
    fn paint(
        &mut self,
        view: &PlotView,
        level: &LevelHeader,
        first: [i32; 2],
        image: &PatchImage,
        kind: PlotKind,
    ) {
        let cover = |i: usize, shift: f64| {
            let ends = [first[i], first[i] + PATCH as i32];
            let edges = ends.map(|cell| self.start(view, level.level, cell, i, shift));
            cover(edges, view.pixels[i])
        };
        let columns: Vec<_> = view.shifts[0].iter().flat_map(|&s| cover(0, s)).collect();
        let rows: Vec<_> = view.shifts[1].iter().flat_map(|&s| cover(1, s)).collect();
        for (row, up) in rows {
            let line = &mut self.values[row * view.pixels[0]..][..view.pixels[0]];
            for &(column, right) in &columns {
                let (old, new) = (line[column], image[up * PATCH + right]);
                line[column] = match kind {
                    _ if old.is_nan() => new,
                    PlotKind::Projection => old + new,
                    PlotKind::Maximum => old.max(new),
                    _ => new,
                };
            }
        }
    }
}
