//! Profiles, and values along lines.

use crate::cells::{PATCH, for_each_leaf};
use crate::centre::centre;
use crate::colour::{Extent, check_range, widened};
use crate::error::{PlotError, Result};
use crate::field::{PlotField, VOLUME};
use crate::figure::{FigureAxis, FigureLayout, Texts};
use crate::oblique;
use crate::region::{Region, length};
use crate::shapes::Drawing;
use crate::texts::{labelled, lower, point, readable, spaced, time_text, without_code};
use crate::view::{domain, outside};
use crate::{Axis, CustomField, PlotKind, PlotOptions, ProfileAxis, Scale, code_units};
use nestar_snapshot::Snapshot;
use rayon::prelude::*;

/// Default number of bins.
pub(crate) const BINS: usize = 128;
/// Colour of curves.
const COLOUR: [u8; 3] = [31, 90, 180];
/// Space above and below a curve, relative to its height.
pub(crate) const SPACE: f64 = 0.05;

/// Values of a field by a coordinate.
pub(crate) struct Curve {
    field: PlotField,
    /// The coordinate (code length) and the value of each point.
    pub points: Vec<[f64; 2]>,
    /// Range of the coordinate.
    range: [f64; 2],
    /// Name of the coordinate.
    coordinate: String,
    title: String,
}

/// Returns the bins of the options.
pub(crate) fn bins(options: &PlotOptions, default: usize) -> Result<usize> {
    match options.bins {
        None => Ok(default),
        Some(bins @ 2..=4096) => Ok(bins as usize),
        Some(bins) => {
            let text = format!("--bins {bins}: must be 2 to 4096");
            Err(PlotError::Option(text))
        }
    }
}

/// Returns the scale of an axis.
pub(crate) fn scale(is_log: bool) -> Scale {
    if is_log { Scale::Log } else { Scale::Linear }
}

/// Refuses a field of particles, which has no cells.
pub(crate) fn require_cells(field: &PlotField) -> Result<()> {
    match field.species() {
        None => Ok(()),
        Some(_) => Err(PlotError::Option(format!(
            "--field {}: the density of particles has slices and projections only; give a field of cells",
            field.name
        ))),
    }
}

/// Bins of a profile.
struct ProfileBins {
    region: Region,
    axis: ProfileAxis,
    scale: Scale,
    range: [f64; 2],
    count: usize,
}

/// Sums of a bin: weight, weighted coordinate, weighted value.
type Sums = [f64; 3];

impl ProfileBins {
    fn new(
        snapshot: &Snapshot,
        options: &PlotOptions,
        axis: ProfileAxis,
        centre: [f64; 3],
    ) -> Result<Self> {
        let region = Region::new(snapshot, options, centre, axis == ProfileAxis::Radius)?;
        let finest = snapshot
            .levels()
            .last()
            .map_or([1.0; 3], |level| level.cell_width);
        let (low, high) = domain(snapshot);
        let (range, finest) = match axis {
            ProfileAxis::Radius => {
                let finest = finest.into_iter().fold(f64::INFINITY, f64::min);
                let first = if options.log_axes[0] {
                    0.5 * finest
                } else {
                    0.0
                };
                ([first, region.radius()], finest)
            }
            ProfileAxis::Along(axis) => {
                let i = axis.index();
                let zoomed = [
                    region.centre[i] - region.half[i],
                    region.centre[i] + region.half[i],
                ];
                let whole = [low[i], high[i]];
                (
                    if options.zoom.is_some() {
                        zoomed
                    } else {
                        whole
                    },
                    finest[i],
                )
            }
        };
        let scale = scale(options.log_axes[0]);
        if scale == Scale::Log && range[0] <= 0.0 {
            let text = format!(
                "--log-x: the coordinate begins at {:?}, and a logarithmic axis needs values above 0: leave it out",
                range[0]
            );
            return Err(PlotError::Option(text));
        }
        let cells = ((range[1] - range[0]) / finest).round().max(2.0);
        let count = bins(options, BINS.min(cells as usize))?;
        Ok(Self {
            region,
            axis,
            scale,
            range,
            count,
        })
    }

    /// Returns the coordinate of a point, given relative to the centre.
    fn coordinate(&self, offset: [f64; 3]) -> f64 {
        match self.axis {
            ProfileAxis::Radius => length(offset),
            ProfileAxis::Along(axis) => self.region.centre[axis.index()] + offset[axis.index()],
        }
    }

    /// Returns the bin of a coordinate.
    fn bin(&self, coordinate: f64) -> Option<usize> {
        let place = self.scale.fraction(self.range, coordinate) * self.count as f64;
        // a coordinate on the last edge belongs to the last bin
        let inside = (0.0..=self.count as f64 * (1.0 + 1e-12)).contains(&place);
        inside.then(|| (place as usize).min(self.count - 1))
    }

    /// Returns the sums of all bins.
    fn sums(
        &self,
        snapshot: &Snapshot,
        fields: &[&PlotField],
        max_level: Option<u8>,
    ) -> Result<Vec<Sums>> {
        let mut sums = vec![[0.0; 3]; self.count];
        let region = &self.region;
        let wanted = |level: &_, origin| region.may_meet(level, origin, PATCH);
        for_each_leaf(snapshot, fields, max_level, wanted, |chunk| {
            let volume = chunk.volume();
            let parts = chunk.parts().into_par_iter().map(|part| {
                let mut sums = vec![[0.0; 3]; self.count];
                chunk.for_each_cell(part, |place, cell| {
                    let offset = region.offset(place);
                    let coordinate = self.coordinate(offset);
                    let bin = self.bin(coordinate).filter(|_| region.contains(offset));
                    let Some(bin) = bin else { return };
                    let weight = volume * chunk.values[1][cell];
                    let new = [1.0, coordinate, chunk.values[0][cell]];
                    sums[bin]
                        .iter_mut()
                        .zip(new)
                        .for_each(|(sum, new)| *sum += weight * new);
                });
                sums
            });
            for part in parts.collect::<Vec<_>>() {
                for (sum, new) in sums.iter_mut().flatten().zip(part.into_iter().flatten()) {
                    *sum += new;
                }
            }
        })?;
        Ok(sums)
    }
}

impl Curve {
    /// Computes a profile.
    pub fn profile(
        snapshot: &Snapshot,
        options: &PlotOptions,
        custom: &[CustomField],
        axis: ProfileAxis,
    ) -> Result<Self> {
        let field = PlotField::new(snapshot, &options.field, custom)?;
        require_cells(&field)?;
        let name = options.weight.as_deref().unwrap_or(VOLUME);
        let weight = PlotField::weight(snapshot, name, custom)?;
        let centre = centre(snapshot, &field, options)?;
        let bins = ProfileBins::new(snapshot, options, axis, centre)?;
        let sums = bins.sums(snapshot, &[&field, &weight], options.max_level)?;
        let filled = sums.into_iter().filter(|[weight, ..]| *weight != 0.0);
        let points: Vec<_> = filled
            .map(|[weight, x, y]| [x / weight, y / weight])
            .collect();
        if points.is_empty() {
            let text = format!(
                "--profile: no cell with a weight ({name}) lies in the region: choose another --centre, --zoom or --weight"
            );
            return Err(PlotError::Option(text));
        }
        let coordinate = match axis {
            ProfileAxis::Radius => "Radius".to_string(),
            ProfileAxis::Along(axis) => Axis::name(axis.index()).to_string(),
        };
        let by = lower(&weight.weight_label());
        let title = format!("{}, mean by {by}", field.label());
        Ok(Self {
            field,
            points,
            range: bins.range,
            coordinate,
            title,
        })
    }

    /// Computes the values along a line.
    pub fn line(
        snapshot: &Snapshot,
        options: &PlotOptions,
        custom: &[CustomField],
        ends: [[f64; 3]; 2],
    ) -> Result<Self> {
        let field = PlotField::new(snapshot, &options.field, custom)?;
        require_cells(&field)?;
        let (low, high) = domain(snapshot);
        for end in ends {
            let inside = |&i: &usize| (low[i]..=high[i]).contains(&end[i]);
            if let Some(axis) = (0..3).find(|i| !inside(i)) {
                return Err(outside(snapshot, options, "--line", axis));
            }
        }
        let distance = length(std::array::from_fn(|i| ends[1][i] - ends[0][i]));
        if distance == 0.0 {
            let text = "--line: both points are the same; give two different ones";
            return Err(PlotError::Option(text.to_string()));
        }
        // a line in an upper face belongs to the cells below it
        let within = |end: [f64; 3]| -> [f64; 3] {
            let last = |i: usize| high[i] - 1e-12 * (high[i] - low[i]);
            let is_in_face = |i: usize| ends[0][i] == ends[1][i];
            std::array::from_fn(|i| {
                if is_in_face(i) {
                    end[i].min(last(i))
                } else {
                    end[i]
                }
            })
        };
        let points = oblique::line(snapshot, &field, ends.map(within), options.max_level)?;
        let unit = code_units(snapshot).shown("length", options.units, distance);
        let [from, to] = ends.map(|end| point(end, unit.factor));
        let name = without_code(&unit.name);
        let title = format!("{} from {from} to {to}{}", field.label(), spaced(&name));
        let first = points.first().map_or(0.0, |first| first[0]);
        Ok(Self {
            field,
            points,
            range: [if options.log_axes[0] { first } else { 0.0 }, distance],
            coordinate: "Distance".into(),
            title,
        })
    }

    /// Returns the range of the values.
    pub fn extent(&self) -> Extent {
        Extent::of(self.points.iter().map(|point| point[1]))
    }

    /// Draws the curve; `extent` is the range of the values.
    pub fn draw(
        &self,
        snapshot: &Snapshot,
        options: &PlotOptions,
        extent: &Extent,
        layout: &FigureLayout,
    ) -> Result<Drawing> {
        let code = code_units(snapshot);
        let unit = code.shown(&self.field.units, options.units, extent.largest());
        let widest = self.range[0].abs().max(self.range[1].abs());
        let x_unit = code.shown("length", options.units, widest);
        let axes = [
            FigureAxis {
                label: labelled(&self.coordinate, &without_code(&x_unit.name)),
                range: self.range.map(|x| x * x_unit.factor),
                scale: scale(options.log_axes[0]),
            },
            FigureAxis {
                label: labelled(&self.field.label(), &readable(&unit.name)),
                range: heights(options, &extent.scaled(unit.factor))?,
                scale: options.scale,
            },
        ];
        let (mut drawing, size) = layout.without_bar(options.width_px as usize);
        let places = self.points.iter().map(|[x, y]| {
            let [x, y] = [x * x_unit.factor, y * unit.factor];
            [axes[0].fraction(x), axes[1].fraction(y)]
        });
        let lines = clipped(places);
        layout.curve(&mut drawing, size, &lines, COLOUR);
        let texts = Texts {
            title: options.title.clone().unwrap_or_else(|| self.title.clone()),
            time: time_text(snapshot, options),
            bar: String::new(),
        };
        layout.surround(&mut drawing, size, &axes, &texts);
        Ok(drawing)
    }

    /// Returns `true` for a plot of a curve.
    pub fn new(
        snapshot: &Snapshot,
        options: &PlotOptions,
        custom: &[CustomField],
    ) -> Option<Result<Self>> {
        match options.kind {
            PlotKind::Profile(axis) => Some(Self::profile(snapshot, options, custom, axis)),
            PlotKind::Line(ends) => Some(Self::line(snapshot, options, custom, ends)),
            _ => None,
        }
    }
}

/// Returns the range of the vertical axis: that of the values with some space, or that of the options.
fn heights(options: &PlotOptions, extent: &Extent) -> Result<[f64; 2]> {
    let scale = options.scale;
    let found = extent.require(scale, &options.field)?;
    let mut range = [-SPACE, 1.0 + SPACE].map(|fraction| scale.value(found, fraction));
    if found[0] == found[1] {
        range = widened(found[0], options).into();
    }
    let range = [
        options.min.unwrap_or(range[0]),
        options.max.unwrap_or(range[1]),
    ];
    check_range(range[0], range[1], scale)?;
    Ok(range)
}

/// Splits a curve, given by fractions of the axes, where it leaves the frame or has no value.
pub(crate) fn clipped(places: impl Iterator<Item = [f64; 2]>) -> Vec<Vec<[f64; 2]>> {
    let mut lines: Vec<Vec<[f64; 2]>> = vec![];
    let mut last: Option<[f64; 2]> = None;
    for place in places {
        let here = Some(place).filter(|place| place.iter().all(|x| x.is_finite()));
        let part = last.zip(here).and_then(|(a, b)| inside(a, b));
        if let Some([a, b]) = part {
            match lines.last_mut().filter(|line| line.last() == Some(&a)) {
                Some(line) => line.push(b),
                None => lines.push(vec![a, b]),
            }
        }
        last = here;
    }
    lines
}

/// Returns the part of a segment whose height is from 0 to 1.
fn inside(a: [f64; 2], b: [f64; 2]) -> Option<[[f64; 2]; 2]> {
    let rise = b[1] - a[1];
    let at = |t: f64| [a[0] + t * (b[0] - a[0]), a[1] + t * rise];
    if (0.0..=1.0).contains(&a[1]) && (0.0..=1.0).contains(&b[1]) {
        return Some([a, b]);
    }
    let (enters, leaves) = ((0.0 - a[1]) / rise, (1.0 - a[1]) / rise);
    let first = enters.min(leaves).max(0.0);
    let last = enters.max(leaves).min(1.0);
    (first < last).then(|| [at(first), at(last)])
}
