//! Region of space in a picture, and its pixels.

use crate::error::{PlotError, Result};
use crate::{Axis, PlotKind, PlotOptions, code_units, labelled, spaced, without_code};
use nestar_deck::ShownUnit;
use nestar_snapshot::{LevelHeader, Snapshot};
use std::ops::Range;

/// Region of space in the picture, and its pixels.
pub(crate) struct PlotView {
    /// Line of sight, 0 to 2.
    pub axis: usize,
    /// Axes to the right and upwards.
    pub plane: [usize; 2],
    /// Lower edge of the domain along these axes.
    pub left: [f64; 2],
    /// Upper edge of the domain along these axes.
    pub right: [f64; 2],
    /// Number of pixels to the right and upwards.
    pub pixels: [usize; 2],
    /// Coordinate of a slice along the line of sight.
    pub at: Option<f64>,
    /// Range along the line of sight of the particles in the picture.
    pub slab: Range<f64>,
    /// Unit of lengths.
    pub length: ShownUnit,
}

impl PlotView {
    /// Creates the view of the domain along the axis of the options, at most `width` pixels wide. The aspect ratio is exact
    /// from 1/4 to 4, and clamped outside this range.
    pub fn new(snapshot: &Snapshot, options: &PlotOptions, width: usize) -> Result<Self> {
        let attributes = snapshot.attributes();
        let (low, high) = (attributes.domain_left_edge, attributes.domain_right_edge);
        let plane = options.axis.plane();
        let axis = options.axis.index();
        let at = match options.kind {
            PlotKind::Slice(at) => Some(at.unwrap_or(0.5 * (low[axis] + high[axis]))),
            _ => None,
        };
        if at.is_some_and(|at| !(low[axis]..=high[axis]).contains(&at)) {
            let name = Axis::name(axis);
            let extent = high[axis] - low[axis];
            let length = code_units(snapshot).shown("length", options.units, extent);
            let text = format!(
                "the slice must lie in the domain: {name} from {} to {}{}",
                low[axis] * length.factor,
                high[axis] * length.factor,
                spaced(&without_code(&length.name))
            );
            return Err(PlotError::Option(text));
        }
        let slab = match at {
            Some(at) => slab(snapshot, options, at)?,
            None => f64::NEG_INFINITY..f64::INFINITY,
        };
        let extent = plane.map(|axis| high[axis] - low[axis]);
        let aspect = (extent[1] / extent[0]).clamp(0.25, 4.0);
        let across = (width as f64).min(1.2 * width as f64 / aspect);
        Ok(Self {
            axis,
            plane,
            left: plane.map(|axis| low[axis]),
            right: plane.map(|axis| high[axis]),
            pixels: [
                across.round().max(1.0) as usize,
                (across * aspect).round().max(1.0) as usize,
            ],
            at,
            slab,
            length: code_units(snapshot).shown("length", options.units, extent[0].max(extent[1])),
        })
    }

    /// Returns the name of the unit of lengths; empty for code units.
    pub fn length_name(&self) -> String {
        without_code(&self.length.name)
    }

    /// Returns the label of the axis to the right (0) or upwards (1).
    pub fn axis_label(&self, which: usize) -> String {
        labelled(Axis::name(self.plane[which]), &self.length_name())
    }

    /// Returns the range of an axis in the unit of lengths.
    pub fn range(&self, which: usize) -> [f64; 2] {
        [self.left[which], self.right[which]].map(|x| x * self.length.factor)
    }

    /// Returns the number of pixels per code length along the two axes.
    pub fn scale(&self) -> [f64; 2] {
        [0, 1].map(|i| self.pixels[i] as f64 / (self.right[i] - self.left[i]))
    }
}

/// Returns the range along the axis of the particles in a slice: half its depth to each side, inside the domain.
fn slab(snapshot: &Snapshot, options: &PlotOptions, at: f64) -> Result<Range<f64>> {
    let (attributes, axis) = (snapshot.attributes(), options.axis.index());
    let drawn = |level: &&LevelHeader| options.max_level.is_none_or(|finest| level.level <= finest);
    let finest = snapshot.levels().filter(drawn).last();
    let width = finest.map_or(0.0, |level| level.cell_width[axis]);
    let depth = options.depth.unwrap_or(width);
    let (low, high) = (
        attributes.domain_left_edge[axis],
        attributes.domain_right_edge[axis],
    );
    let slab = (at - 0.5 * depth).max(low)..(at + 0.5 * depth).min(high);
    if depth.is_finite() && slab.start < slab.end {
        return Ok(slab);
    }
    let text = format!("depth {depth}: the thickness of the slice must be finite and above 0");
    Err(PlotError::Option(text))
}
