//! Sampling of the patches of a snapshot on the pixels of a picture.

use crate::error::{PlotError, Result};
use crate::field::PlotField;
use crate::view::PlotView;
use crate::{PlotKind, PlotOptions, particles};
use nestar_snapshot::{LEAF, LevelHeader, ORIGIN, PATCH_SIZE, Snapshot, Values};
use std::collections::BTreeSet;

/// Number of cells of a patch along an axis.
const PATCH: usize = PATCH_SIZE as usize;
/// Number of patches read at a time.
const PATCHES_PER_CHUNK: usize = 1024;

/// Values of the pixels, and outlines of the patches.
pub(crate) struct Raster {
    /// Value of each pixel, from the bottom row upwards; NaN for a pixel without data.
    pub values: Vec<f64>,
    /// Outlines of patches: level, and first cell along the two axes of the plane.
    pub outlines: BTreeSet<(u8, [i32; 2])>,
    /// Width of a cell of level 0 along the two axes.
    root_width: [f64; 2],
}

/// Patches of one level that are visible in the picture.
struct Selection {
    patches: Vec<u64>,
    origins: Vec<[i32; 3]>,
}

/// Returns the global index along the axis of the cells that the slice cuts on a level.
fn slice_index(snapshot: &Snapshot, level: &LevelHeader, axis: usize, at: f64) -> i32 {
    let attributes = snapshot.attributes();
    let cells = (attributes.root_cells[axis] << level.level) as f64;
    let index = ((at - attributes.domain_left_edge[axis]) / level.cell_width[axis]).floor();
    index.clamp(0.0, cells - 1.0) as i32
}

/// Selects the visible patches of a level: leaves (on the finest level drawn, all patches) that the slice cuts.
fn select(
    snapshot: &Snapshot,
    header: &LevelHeader,
    finest: u8,
    slice: Option<(usize, i32)>,
) -> Result<Selection> {
    let leaf = snapshot.read(header.level, LEAF)?;
    let Values::I32(origins) = snapshot.read(header.level, ORIGIN)? else {
        return Err(PlotError::Option(
            "the snapshot's patch origins are not integers".to_string(),
        ));
    };
    let mut selection = Selection {
        patches: vec![],
        origins: vec![],
    };
    for (patch, origin) in origins.chunks_exact(3).enumerate() {
        let visible = leaf.bytes()[patch] == 1 || header.level == finest;
        let cut =
            slice.is_none_or(|(axis, index)| (0..PATCH as i32).contains(&(index - origin[axis])));
        if visible && cut {
            selection.patches.push(patch as u64);
            selection.origins.push([origin[0], origin[1], origin[2]]);
        }
    }
    Ok(selection)
}

/// Samples the field of the leaf cells, or the density of particles, on the pixels.
pub(crate) fn draw(
    snapshot: &Snapshot,
    field: &PlotField,
    options: &PlotOptions,
    view: &PlotView,
) -> Result<Raster> {
    let mut raster = Raster {
        values: vec![f64::NAN; view.pixels[0] * view.pixels[1]],
        outlines: BTreeSet::new(),
        root_width: [0, 1].map(|i| {
            let cells = snapshot.attributes().root_cells[view.plane[i]] as f64;
            (view.right[i] - view.left[i]) / cells
        }),
    };
    let axis = options.axis.index();
    let finest = options.max_level.unwrap_or(u8::MAX);
    for header in snapshot.levels().filter(|header| header.level <= finest) {
        let index = view.at.map(|at| slice_index(snapshot, header, axis, at));
        let selection = select(snapshot, header, finest, index.map(|index| (axis, index)))?;
        let first = |origin: &[i32; 3]| (header.level, view.plane.map(|axis| origin[axis]));
        raster.outlines.extend(selection.origins.iter().map(first));
        if field.species().is_none() {
            raster.cells(snapshot, field, header, options.kind, view, &selection)?;
        }
    }
    if let Some(species) = field.species() {
        if options.kind == PlotKind::Maximum {
            let text = "the density of particles has no maximum along the axis: draw a slice or a projection";
            return Err(PlotError::Option(text.to_string()));
        }
        raster.values = particles::density(snapshot, species, view)?;
    }
    Ok(raster)
}

/// Returns the values of the field on patches of a level.
fn read(snapshot: &Snapshot, field: &PlotField, level: u8, patches: &[u64]) -> Result<Vec<f64>> {
    let read = |array: &String| Ok(snapshot.read_selected(level, array, patches)?.into_f64());
    let arrays: Vec<Vec<f64>> = field.arrays.iter().map(read).collect::<Result<_>>()?;
    Ok(field.evaluate(level, arrays, patches.len() * PATCH.pow(3)))
}

/// Reduces a patch along the axis to a 2D array `[upwards][to the right]`.
fn flatten(
    cells: &[f64],
    axis: usize,
    kind: PlotKind,
    cut: Option<i32>,
    level: &LevelHeader,
) -> [f64; PATCH * PATCH] {
    // strides of x, y, z in `[z][y][x]`
    let strides = [1, PATCH, PATCH * PATCH];
    let [right, up] = match axis {
        0 => [strides[1], strides[2]],
        1 => [strides[0], strides[2]],
        _ => [strides[0], strides[1]],
    };
    std::array::from_fn(|i| {
        let line = |k: usize| cells[(i % PATCH) * right + (i / PATCH) * up + k * strides[axis]];
        match (kind, cut) {
            (PlotKind::Slice(_), cut) => line(cut.unwrap_or(0) as usize),
            (PlotKind::Projection, _) => (0..PATCH).map(line).sum::<f64>() * level.cell_width[axis],
            (PlotKind::Maximum, _) => (0..PATCH)
                .map(line)
                .fold(f64::NEG_INFINITY, |a, b| if b > a { b } else { a }),
        }
    })
}

/// Returns pairs of pixel and cell for the `PATCH` cells from `first`, whose width in pixels is given.
fn cover(first: i32, width: f64, pixels: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    // a pixel belongs to the cell that contains its centre
    let edge = move |cell: i32| {
        (f64::from(cell) * width - 0.5)
            .ceil()
            .clamp(0.0, pixels as f64) as usize
    };
    let start = f64::from(first) * width;
    let cell = move |pixel: usize| (((pixel as f64 + 0.5 - start) / width) as usize).min(PATCH - 1);
    (edge(first)..edge(first + PATCH as i32)).map(move |pixel| (pixel, cell(pixel)))
}

impl Raster {
    /// Draws the selected patches of a level.
    fn cells(
        &mut self,
        snapshot: &Snapshot,
        field: &PlotField,
        header: &LevelHeader,
        kind: PlotKind,
        view: &PlotView,
        selection: &Selection,
    ) -> Result<()> {
        let axis = view.axis;
        let index = view.at.map(|at| slice_index(snapshot, header, axis, at));
        let Selection { patches, origins } = selection;
        for (patches, origins) in patches
            .chunks(PATCHES_PER_CHUNK)
            .zip(origins.chunks(PATCHES_PER_CHUNK))
        {
            let values = read(snapshot, field, header.level, patches)?;
            for (cells, origin) in values.chunks_exact(PATCH.pow(3)).zip(origins) {
                let cut = index.map(|index| index - origin[axis]);
                let image = flatten(cells, axis, kind, cut, header);
                let first = view.plane.map(|axis| origin[axis]);
                self.paint(view, header, first, &image, kind);
            }
        }
        Ok(())
    }

    /// Returns the outlines (x, y, width, height) in pixels from the lower left corner, coarse to fine.
    pub fn rectangles(&self, view: &PlotView) -> Vec<(i64, i64, i64, i64)> {
        let scale = view.scale();
        let rectangle = |&(level, first): &(u8, [i32; 2])| {
            let cell = [0, 1].map(|i| self.root_width[i] * scale[i] / f64::from(1u32 << level));
            let edge = |i: usize, cells: usize| {
                (f64::from(first[i] + cells as i32) * cell[i] - 0.5).ceil() as i64
            };
            (
                edge(0, 0),
                edge(1, 0),
                edge(0, PATCH) - edge(0, 0),
                edge(1, PATCH) - edge(1, 0),
            )
        };
        self.outlines.iter().map(rectangle).collect()
    }

    /// Draws one reduced patch; in a projection or maximum, combines it with the pixels' values.
    fn paint(
        &mut self,
        view: &PlotView,
        level: &LevelHeader,
        first: [i32; 2],
        image: &[f64; PATCH * PATCH],
        kind: PlotKind,
    ) {
        let scale = view.scale();
        let width = [0, 1].map(|i| level.cell_width[view.plane[i]] * scale[i]);
        let columns = cover(first[0], width[0], view.pixels[0]);
        for (row, up) in cover(first[1], width[1], view.pixels[1]) {
            let line = &mut self.values[row * view.pixels[0]..][..view.pixels[0]];
            for (column, right) in columns.clone() {
                let (old, new) = (line[column], image[up * PATCH + right]);
                line[column] = match kind {
                    _ if old.is_nan() => new,
                    PlotKind::Slice(_) => new,
                    PlotKind::Projection => old + new,
                    PlotKind::Maximum => old.max(new),
                };
            }
        }
    }
}
