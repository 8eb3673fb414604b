//! Arrows of a vector field over a picture.

use crate::error::{PlotError, Result};
use crate::field::PlotField;
use crate::figure::FigureLayout;
use crate::raster;
use crate::shapes::Drawing;
use crate::texts::{readable, rounded, spaced};
use crate::view::{PlotView, dot};
use crate::{CustomField, PlotKind, PlotOptions, code_units};
use nestar_snapshot::Snapshot;

/// Distance between arrows in 1/1000 of the figure's width.
const SPACING: f32 = 36.0;
/// Length of the head of an arrow, relative to the arrow, and its half width, relative to the head.
const HEAD: [f32; 2] = [0.35, 0.5];
/// The longest arrow relative to the distance between arrows.
const LONGEST: f32 = 0.95;

/// Vectors at some places of a picture.
pub(crate) struct Arrows {
    /// Number of arrows to the right and upwards.
    count: [usize; 2],
    /// Components to the right and upwards, from the bottom row upwards.
    vectors: Vec<[f64; 2]>,
    units: String,
}

impl Arrows {
    /// Samples the vector field `name` at the places of arrows.
    pub fn new(
        snapshot: &Snapshot,
        name: &str,
        options: &PlotOptions,
        custom: &[CustomField],
        view: &PlotView,
    ) -> Result<Self> {
        let across = (1000.0 / SPACING * 0.67).round();
        let up = (f64::from(across) * view.pixels[1] as f64 / view.pixels[0] as f64).round();
        let count = [across as usize, up.max(1.0) as usize];
        let coarse = view.with_pixels(count);
        let (vectors, units) = vectors(snapshot, ["--arrows", name], options, custom, &coarse)?;
        Ok(Self {
            count,
            vectors,
            units,
        })
    }

    /// Draws the arrows, and the length of the longest one below the picture.
    pub fn draw(
        &self,
        snapshot: &Snapshot,
        options: &PlotOptions,
        drawing: &mut Drawing,
        layout: &FigureLayout,
        view: &PlotView,
    ) {
        let size = |vector: &[f64; 2]| (vector[0] * vector[0] + vector[1] * vector[1]).sqrt();
        let sizes = self
            .vectors
            .iter()
            .map(size)
            .filter(|size| size.is_finite());
        let longest = sizes.fold(0.0, f64::max);
        let spacing = [0, 1].map(|i| view.pixels[i] as f32 / self.count[i] as f32);
        let reach = LONGEST * spacing[0].min(spacing[1]);
        let mut lines = vec![];
        for (i, vector) in self.vectors.iter().enumerate() {
            if !(size(vector) > 0.02 * longest && size(vector).is_finite()) {
                continue;
            }
            let place = [i % self.count[0], i / self.count[0]];
            let middle = [0, 1].map(|n| (place[n] as f32 + 0.5) * spacing[n]);
            let [right, up] = vector.map(|x| (x / longest) as f32 * reach);
            let middle = [middle[0], view.pixels[1] as f32 - middle[1]];
            lines.extend(arrow(middle, [right, -up]));
        }
        layout.over(drawing, lines, [255; 3]);
        let unit = code_units(snapshot).shown(&self.units, options.units, longest);
        let text = rounded(longest * unit.factor) + &spaced(&readable(&unit.name));
        layout.remark(drawing, view.pixels, &format!("longest arrow {text}"));
    }
}

/// Returns the components to the right and upwards of a vector field in each pixel, and its unit: its values in a slice, else means along the
/// line of sight, by mass if there is a density. `option` is the option that asks for it, and the name of the field.
pub(crate) fn vectors(
    snapshot: &Snapshot,
    [option, name]: [&str; 2],
    options: &PlotOptions,
    custom: &[CustomField],
    view: &PlotView,
) -> Result<(Vec<[f64; 2]>, String)> {
    let component = |axis: &str| {
        let field = PlotField::new(snapshot, &format!("{name}_{axis}"), custom);
        field.map_err(|error| PlotError::Option(format!("{option} {name}: {error}")))
    };
    let components = [component("x")?, component("y")?, component("z")?];
    let is_slice = matches!(options.kind, PlotKind::Slice(_));
    let options = PlotOptions {
        kind: if is_slice {
            options.kind
        } else {
            PlotKind::Projection
        },
        ..options.clone()
    };
    let density = PlotField::weight(snapshot, "density", custom);
    let density = density.or_else(|_| PlotField::weight(snapshot, "volume", custom));
    let weight = density.ok().filter(|_| !is_slice);
    let mut values = vec![];
    for component in &components {
        let raster = raster::draw(snapshot, component, weight.as_ref(), &options, view)?;
        values.push(raster.values);
    }
    let vector = |i: usize| {
        let vector = std::array::from_fn(|axis| values[axis][i]);
        [dot(vector, view.basis[0]), dot(vector, view.basis[1])]
    };
    let vectors = (0..view.pixels[0] * view.pixels[1]).map(vector).collect();
    Ok((vectors, components[0].units.clone()))
}

/// Returns the shaft and the head of an arrow about its middle.
fn arrow(middle: [f32; 2], vector: [f32; 2]) -> [Vec<[f32; 2]>; 2] {
    let along = |t: f32, aside: f32| {
        [
            middle[0] + t * vector[0] - aside * vector[1],
            middle[1] + t * vector[1] + aside * vector[0],
        ]
    };
    let [length, width] = HEAD;
    let back = 0.5 - length;
    let head = [
        along(back, length * width),
        along(0.5, 0.0),
        along(back, -length * width),
    ];
    [vec![along(-0.5, 0.0), along(0.5, 0.0)], head.to_vec()]
}
