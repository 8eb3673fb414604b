//! Phase diagrams: histograms of the mass, or another weight, over two fields.

use crate::cells::{Chunk, PATCH, for_each_leaf};
use crate::centre::centre;
use crate::colour::{Extent, Palette, widened};
use crate::curve::{BINS, bins, require_cells, scale};
use crate::error::{PlotError, Result};
use crate::field::PlotField;
use crate::figure::{FigureAxis, FigureLayout, Texts};
use crate::region::Region;
use crate::shapes::Drawing;
use crate::texts::{labelled, lower, readable, time_text};
use crate::{CustomField, PlotOptions, Scale, code_units};
use nestar_snapshot::Snapshot;
use rayon::prelude::*;

/// Weight of a phase diagram by default.
const MASS: &str = "density";

/// A histogram over two fields.
pub(crate) struct Phase {
    fields: [PlotField; 2],
    weight: PlotField,
    /// Ranges of both fields (code units).
    pub ranges: Ranges,
    /// Sums of the weights, from the bottom row upwards; NaN in bins without cells.
    pub sums: Vec<f64>,
    /// Number of bins along each axis.
    pub count: usize,
}

/// Ranges of both axes (code units).
pub(crate) type Ranges = [[f64; 2]; 2];

/// Options of the scales of both axes, for messages.
const LOG: [&str; 2] = ["--log-x", "--log-y"];

impl Phase {
    /// Computes a phase diagram with these ranges of the axes, or those of the values.
    pub fn new(
        snapshot: &Snapshot,
        options: &PlotOptions,
        custom: &[CustomField],
        ranges: Option<Ranges>,
    ) -> Result<Self> {
        let (mut phase, region) = Self::empty(snapshot, options, custom)?;
        phase.ranges = match ranges {
            Some(ranges) => ranges,
            None => phase.find_ranges(snapshot, options, &region)?,
        };
        phase.sums = phase.histogram(snapshot, options, &region)?;
        Ok(phase)
    }

    /// Returns the ranges of the axes of a phase diagram.
    pub fn ranges(
        snapshot: &Snapshot,
        options: &PlotOptions,
        custom: &[CustomField],
    ) -> Result<Ranges> {
        let (phase, region) = Self::empty(snapshot, options, custom)?;
        phase.find_ranges(snapshot, options, &region)
    }

    /// Returns a diagram without values, and its region.
    fn empty(
        snapshot: &Snapshot,
        options: &PlotOptions,
        custom: &[CustomField],
    ) -> Result<(Self, Region)> {
        let field = |name: &str| PlotField::new(snapshot, name, custom);
        let fields = [field(&options.field)?, field(&options.across)?];
        fields.iter().try_for_each(require_cells)?;
        let weight = options.weight.as_deref().unwrap_or(MASS);
        let weight = PlotField::weight(snapshot, weight, custom)?;
        let centre = centre(snapshot, &fields[0], options)?;
        let region = Region::new(snapshot, options, centre, false)?;
        let phase = Self {
            fields,
            weight,
            ranges: [[0.0; 2]; 2],
            sums: vec![],
            count: bins(options, BINS)?,
        };
        Ok((phase, region))
    }

    /// Returns the range of each field in the region.
    fn find_ranges(
        &self,
        snapshot: &Snapshot,
        options: &PlotOptions,
        region: &Region,
    ) -> Result<Ranges> {
        let mut extents = [Extent::default(); 2];
        let [x, y] = &self.fields;
        let wanted = |level: &_, origin| region.may_meet(level, origin, PATCH);
        for_each_leaf(snapshot, &[x, y], options.max_level, wanted, |chunk| {
            let parts = chunk.parts().into_par_iter().map(|part| {
                let mut extents = [Extent::default(); 2];
                chunk.for_each_cell(part, |place, cell| {
                    if region.contains(region.offset(place)) {
                        for (extent, values) in extents.iter_mut().zip(&chunk.values) {
                            extent.add(values[cell]);
                        }
                    }
                });
                extents
            });
            for part in parts.collect::<Vec<_>>() {
                extents = [0, 1].map(|i| extents[i].join(part[i]));
            }
        })?;
        let mut ranges = [[0.0; 2]; 2];
        for (i, range) in ranges.iter_mut().enumerate() {
            let name = &self.fields[i].name;
            let scale = scale(options.log_axes[i]);
            *range = extents[i].shown(scale).ok_or_else(|| {
                PlotError::Option(match extents[i].shown(Scale::Linear) {
                    Some(_) => format!("{}: {name} has no positive value: leave it out", LOG[i]),
                    None => format!("--phase: {name} has no finite value in the region"),
                })
            })?;
            if range[0] == range[1] {
                *range = widened(range[0], &PlotOptions::default()).into();
            }
        }
        Ok(ranges)
    }

    /// Returns the bin of a cell, from the values of both fields.
    fn bin(&self, values: [f64; 2], scales: [Scale; 2]) -> Option<usize> {
        let place = |i: usize| {
            let place = scales[i].fraction(self.ranges[i], values[i]) * self.count as f64;
            // the largest value belongs to the last bin
            let inside = (0.0..=self.count as f64 * (1.0 + 1e-12)).contains(&place);
            inside.then(|| (place as usize).min(self.count - 1))
        };
        Some(place(1)? * self.count + place(0)?)
    }

    /// Returns the sums of the weights.
    fn histogram(
        &self,
        snapshot: &Snapshot,
        options: &PlotOptions,
        region: &Region,
    ) -> Result<Vec<f64>> {
        let scales = options.log_axes.map(scale);
        let bins = self.count * self.count;
        let mut sums = vec![f64::NAN; bins];
        let [x, y] = &self.fields;
        let fields = [x, y, &self.weight];
        let place = |chunk: &Chunk, part| {
            let mut found = vec![];
            chunk.for_each_cell(part, |place, cell| {
                if region.contains(region.offset(place)) {
                    let values = [chunk.values[0][cell], chunk.values[1][cell]];
                    let bin = self.bin(values, scales);
                    found.extend(bin.map(|bin| (bin, chunk.values[2][cell])));
                }
            });
            found
        };
        let wanted = |level: &_, origin| region.may_meet(level, origin, PATCH);
        for_each_leaf(snapshot, &fields, options.max_level, wanted, |chunk| {
            let volume = chunk.volume();
            let parts = chunk.parts().into_par_iter();
            let parts: Vec<_> = parts.map(|part| place(chunk, part)).collect();
            for (bin, weight) in parts.into_iter().flatten() {
                let sum = &mut sums[bin];
                *sum = if sum.is_nan() { 0.0 } else { *sum } + weight * volume;
            }
        })?;
        Ok(sums)
    }

    /// Returns the range of the colours.
    pub fn extent(&self) -> Extent {
        Extent::of(self.sums.iter().copied())
    }

    /// Draws the diagram; `extent` is the range of the colours.
    pub fn draw(
        &self,
        snapshot: &Snapshot,
        options: &PlotOptions,
        extent: &Extent,
        layout: &FigureLayout,
    ) -> Result<Drawing> {
        let code = code_units(snapshot);
        let axes = [0, 1].map(|i| {
            let field = &self.fields[i];
            let largest = self.ranges[i][0].abs().max(self.ranges[i][1].abs());
            let unit = code.shown(&field.units, options.units, largest);
            FigureAxis {
                label: labelled(&field.label(), &readable(&unit.name)),
                range: self.ranges[i].map(|x| x * unit.factor),
                scale: scale(options.log_axes[i]),
            }
        });
        let unit = code.shown(&self.weight_units(), options.units, extent.largest());
        let palette = Palette::new(options, &extent.scaled(unit.factor), false, false)?;
        let columns = layout.inner_width(options.width_px as usize);
        let size = [columns, (0.75 * columns as f64).round().max(1.0) as usize];
        let mut image = crate::canvas::Canvas::new(size[0], size[1], [255; 3]);
        for row in 0..size[1] {
            let line = (size[1] - 1 - row) * self.count / size[1];
            for (column, pixel) in image.row_mut(0, row, columns).iter_mut().enumerate() {
                let sum = self.sums[line * self.count + column * self.count / columns];
                if !sum.is_nan() {
                    *pixel = palette.colour(sum * unit.factor);
                }
            }
        }
        let name = self.weight.weight_label();
        let labels = [0, 1].map(|i| lower(&self.fields[i].label()));
        let title = format!("{name} by {} and {}", labels[0], labels[1]);
        let texts = Texts {
            title: options.title.clone().unwrap_or(title),
            time: time_text(snapshot, options),
            bar: labelled(&name, &readable(&unit.name)),
        };
        let mut drawing = layout.with_bar(size);
        drawing.image(layout.left, layout.top, image);
        layout.colour_bar(&mut drawing, size, &palette, &texts.bar);
        layout.surround(&mut drawing, size, &axes, &texts);
        Ok(drawing)
    }

    /// Returns the unit of the weight times volume.
    fn weight_units(&self) -> String {
        match self.weight.units.strip_suffix("/length**3") {
            Some(head) => head.to_string(),
            None if self.weight.units == "1" => "length**3".to_string(),
            None if self.weight.units.is_empty() => String::new(),
            None => format!("{}*length**3", self.weight.units),
        }
    }
}
