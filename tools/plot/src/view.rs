//! Region of space in a picture, and its pixels.

use crate::error::{PlotError, Result};
use crate::texts::{labelled, spaced, without_code};
use crate::{Axis, PlotKind, PlotOptions, Zoom, code_units};
use nestar_deck::ShownUnit;
use nestar_snapshot::{LevelHeader, Snapshot};
use std::ops::Range;

/// Region of space in the picture, and its pixels.
pub(crate) struct PlotView {
    /// The axis along which the picture looks; `None` for a direction between the axes.
    pub axis: Option<usize>,
    /// Directions to the right, upwards, and towards the viewer.
    pub basis: [[f64; 3]; 3],
    /// Point from which positions in a picture between the axes are measured; a slice contains it.
    pub centre: [f64; 3],
    /// Axes to the right and upwards, in a picture along an axis.
    pub plane: [usize; 2],
    /// Lower edges of the picture.
    pub left: [f64; 2],
    /// Upper edges of the picture.
    pub right: [f64; 2],
    /// Number of pixels to the right and upwards.
    pub pixels: [usize; 2],
    /// Shifts to the right and upwards of the domain's periodic images that the picture shows.
    pub shifts: [Vec<f64>; 2],
    /// Coordinate of a slice along the line of sight.
    pub at: Option<f64>,
    /// Range along the line of sight of the particles in the picture.
    pub slab: Range<f64>,
    /// Unit of lengths.
    pub length: ShownUnit,
}

/// Returns the lower and the upper corner of the domain.
pub(crate) fn domain(snapshot: &Snapshot) -> ([f64; 3], [f64; 3]) {
    let attributes = snapshot.attributes();
    (attributes.domain_left_edge, attributes.domain_right_edge)
}

/// Returns `true` for each periodic axis.
pub(crate) fn periodic(snapshot: &Snapshot) -> [bool; 3] {
    let sides = ["x", "y", "z"].map(|axis| snapshot.attributes().boundary.get(axis));
    sides.map(|sides| {
        sides
            .and_then(|sides| sides.as_array())
            .is_some_and(|sides| {
                !sides.is_empty() && sides.iter().all(|side| side.as_str() == Some("periodic"))
            })
    })
}

/// Returns the error of a coordinate outside of the domain.
pub(crate) fn outside(
    snapshot: &Snapshot,
    options: &PlotOptions,
    what: &str,
    axis: usize,
) -> PlotError {
    let (low, high) = domain(snapshot);
    let extent = high[axis] - low[axis];
    let length = code_units(snapshot).shown("length", options.units, extent);
    PlotError::Option(format!(
        "{what} must lie in the domain: {} from {} to {}{}",
        Axis::name(axis),
        low[axis] * length.factor,
        high[axis] * length.factor,
        spaced(&without_code(&length.name))
    ))
}

/// Returns the sides of a region by the zoom; these `extents` without a zoom.
pub(crate) fn zoomed<const N: usize>(extents: [f64; N], zoom: Option<Zoom>) -> Result<[f64; N]> {
    let (number, sides) = match zoom {
        None => return Ok(extents),
        Some(Zoom::Factor(factor)) => (factor, extents.map(|extent| extent / factor)),
        Some(Zoom::Width(width)) => (width, [width; N]),
    };
    let largest = extents.into_iter().fold(0.0, f64::max);
    if !(number > 0.0 && number.is_finite()) {
        let text = format!("--zoom {number}: must be a factor or a width above 0");
        return Err(PlotError::Option(text));
    }
    // beyond this, pixels have no different positions
    if sides
        .iter()
        .any(|side| *side < 1e-10 * largest || *side > 10.0 * largest)
    {
        let text = "--zoom: the picture must be at least 1e-10 of the domain wide, and at most 10 times as wide as it";
        return Err(PlotError::Option(text.to_string()));
    }
    Ok(sides)
}

impl PlotView {
    /// Creates the view of the options about `centre`, at most `width` pixels wide. The aspect ratio is exact from 1/4 to 4, and
    /// clamped outside this range.
    pub fn new(
        snapshot: &Snapshot,
        options: &PlotOptions,
        centre: [f64; 3],
        width: usize,
    ) -> Result<Self> {
        let mut view = match options.normal {
            None => Self::along_axis(snapshot, options, centre)?,
            Some(normal) => Self::between_axes(snapshot, options, centre, normal)?,
        };
        let extent = [0, 1].map(|i| view.right[i] - view.left[i]);
        let aspect = (extent[1] / extent[0]).clamp(0.25, 4.0);
        let across = (width as f64).min(1.2 * width as f64 / aspect);
        view.pixels = [
            across.round().max(1.0) as usize,
            (across * aspect).round().max(1.0) as usize,
        ];
        let longest = extent[0].max(extent[1]);
        view.length = code_units(snapshot).shown("length", options.units, longest);
        Ok(view)
    }

    /// Creates a view along an axis without pixels.
    fn along_axis(snapshot: &Snapshot, options: &PlotOptions, centre: [f64; 3]) -> Result<Self> {
        let (low, high) = domain(snapshot);
        let plane = options.axis.plane();
        let axis = options.axis.index();
        let at = match options.kind {
            PlotKind::Slice(at) => Some(at.unwrap_or(centre[axis])),
            _ => None,
        };
        if at.is_some_and(|at| !(low[axis]..=high[axis]).contains(&at)) {
            return Err(outside(snapshot, options, "the slice", axis));
        }
        let slab = match at {
            Some(at) => slab(snapshot, options, at, low[axis]..high[axis])?,
            None => f64::NEG_INFINITY..f64::INFINITY,
        };
        let (mut left, mut right) = (plane.map(|axis| low[axis]), plane.map(|axis| high[axis]));
        if options.zoom.is_some() {
            let sides = zoomed([0, 1].map(|i| right[i] - left[i]), options.zoom)?;
            left = [0, 1].map(|i| centre[plane[i]] - 0.5 * sides[i]);
            right = [0, 1].map(|i| centre[plane[i]] + 0.5 * sides[i]);
        }
        let shifts = [0, 1].map(|i| {
            let (axis, extent) = (plane[i], high[plane[i]] - low[plane[i]]);
            let images = |edge: f64| ((edge - low[axis]) / extent).floor();
            match periodic(snapshot)[axis] {
                // an edge on that of the domain is not beyond it
                true => (images(left[i] + 1e-9 * extent) as i32
                    ..=images(right[i] - 1e-9 * extent) as i32)
                    .map(|image| f64::from(image) * extent)
                    .collect(),
                false => vec![0.0],
            }
        });
        let unit = |axis: usize| std::array::from_fn(|i| f64::from(u8::from(i == axis)));
        Ok(Self {
            axis: Some(axis),
            basis: [unit(plane[0]), unit(plane[1]), unit(axis)],
            centre,
            plane,
            left,
            right,
            pixels: [1; 2],
            shifts,
            at,
            slab,
            length: code_units(snapshot).shown("length", options.units, 1.0),
        })
    }

    /// Creates a view against the direction `normal` without pixels.
    fn between_axes(
        snapshot: &Snapshot,
        options: &PlotOptions,
        centre: [f64; 3],
        normal: [f64; 3],
    ) -> Result<Self> {
        if let PlotKind::Slice(Some(_)) = options.kind {
            let text =
                "--slice: a slice with --normal goes through --centre; leave out the position";
            return Err(PlotError::Option(text.to_string()));
        }
        let basis = basis(normal)?;
        let (low, high) = domain(snapshot);
        let corner = |n: usize| -> [f64; 3] {
            std::array::from_fn(|i| if n >> i & 1 == 0 { low[i] } else { high[i] })
        };
        let along = |i: usize| (0..8).map(move |n| dot(minus(corner(n), centre), basis[i]));
        let mut left = [0, 1].map(|i| along(i).fold(f64::INFINITY, f64::min));
        let mut right = [0, 1].map(|i| along(i).fold(f64::NEG_INFINITY, f64::max));
        if options.zoom.is_some() {
            let sides = zoomed([0, 1].map(|i| right[i] - left[i]), options.zoom)?;
            (left, right) = (sides.map(|side| -0.5 * side), sides.map(|side| 0.5 * side));
        }
        let at = matches!(options.kind, PlotKind::Slice(_)).then_some(0.0);
        let everywhere = f64::NEG_INFINITY..f64::INFINITY;
        let slab = match at {
            Some(at) => slab(snapshot, options, at, everywhere)?,
            None => everywhere,
        };
        Ok(Self {
            axis: None,
            basis,
            centre,
            plane: [0, 1],
            left,
            right,
            pixels: [1; 2],
            shifts: [vec![0.0], vec![0.0]],
            at,
            slab,
            length: code_units(snapshot).shown("length", options.units, 1.0),
        })
    }

    /// Returns the same view with other pixels.
    pub fn with_pixels(&self, pixels: [usize; 2]) -> Self {
        Self {
            pixels,
            slab: self.slab.clone(),
            shifts: self.shifts.clone(),
            length: self.length.clone(),
            ..*self
        }
    }

    /// Returns the position in the picture of a point, and its distance along the line of sight.
    pub fn project(&self, point: [f64; 3]) -> ([f64; 2], f64) {
        match self.axis {
            Some(axis) => (self.plane.map(|axis| point[axis]), point[axis]),
            None => {
                let from = minus(point, self.centre);
                let [right, up, towards] = self.basis.map(|direction| dot(from, direction));
                ([right, up], towards)
            }
        }
    }

    /// Returns the point of the plane through the centre at a position of a picture between the axes.
    pub fn point(&self, at: [f64; 2]) -> [f64; 3] {
        std::array::from_fn(|i| {
            self.centre[i] + at[0] * self.basis[0][i] + at[1] * self.basis[1][i]
        })
    }

    /// Returns the name of the unit of lengths; empty for code units.
    pub fn length_name(&self) -> String {
        without_code(&self.length.name)
    }

    /// Returns the label of the axis to the right (0) or upwards (1).
    pub fn axis_label(&self, which: usize) -> String {
        let name = match self.axis {
            Some(_) => Axis::name(self.plane[which]),
            None => ["to the right", "upwards"][which],
        };
        labelled(name, &self.length_name())
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

/// Returns the difference of two vectors.
pub(crate) fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| a[i] - b[i])
}

/// Returns the scalar product of two vectors.
pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Returns the vector product of two vectors.
fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// Returns the vector of length 1 in this direction.
fn normalised(a: [f64; 3]) -> [f64; 3] {
    let length = dot(a, a).sqrt();
    // no negative zeros
    a.map(|x| x / length + 0.0)
}

/// Returns the directions to the right, upwards and towards the viewer of a picture with this normal: the z axis points upwards; the y axis
/// if the normal is along z.
fn basis(normal: [f64; 3]) -> Result<[[f64; 3]; 3]> {
    let largest = normal.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
    if !(largest > 0.0 && normal.iter().all(|x| x.is_finite())) {
        let [x, y, z] = normal;
        let text = format!("--normal {x},{y},{z}: must be a finite direction other than 0,0,0");
        return Err(PlotError::Option(text));
    }
    let towards = normalised(normal.map(|x| x / largest));
    let is_upright = towards[0].abs().max(towards[1].abs()) < 1e-6;
    let vertical = if is_upright {
        [0.0, 1.0, 0.0]
    } else {
        [0.0, 0.0, 1.0]
    };
    let right = normalised(cross(vertical, towards));
    let up = normalised(cross(towards, right));
    Ok([right, up, towards])
}

/// Returns the range along the line of sight of the particles in a slice: half its depth to each side, inside the domain.
fn slab(
    snapshot: &Snapshot,
    options: &PlotOptions,
    at: f64,
    domain: Range<f64>,
) -> Result<Range<f64>> {
    let axis = options.axis.index();
    let drawn = |level: &&LevelHeader| options.max_level.is_none_or(|finest| level.level <= finest);
    let finest = snapshot.levels().filter(drawn).last();
    let width = finest.map_or(0.0, |level| level.cell_width[axis]);
    let depth = options.depth.unwrap_or(width);
    let slab = (at - 0.5 * depth).max(domain.start)..(at + 0.5 * depth).min(domain.end);
    if depth.is_finite() && slab.start < slab.end {
        return Ok(slab);
    }
    let text = format!("depth {depth}: the thickness of the slice must be finite and above 0");
    Err(PlotError::Option(text))
}
