//! Pictures: slices, projections and maxima.

use crate::arrows::Arrows;
use crate::centre::centre;
use crate::colour::{Extent, Palette};
use crate::contour;
use crate::error::{PlotError, Result};
use crate::field::PlotField;
use crate::figure::{FigureAxis, FigureLayout, Texts};
use crate::particles::{self, PlottedSpecies};
use crate::raster::{self, Raster};
use crate::shapes::Drawing;
use crate::streamlines::Streamlines;
use crate::texts::{labelled, lower, readable, rounded, spaced, time_text};
use crate::view::PlotView;
use crate::{Axis, CustomField, PlotKind, PlotOptions, code_units};
use nestar_deck::ShownUnit;
use nestar_snapshot::Snapshot;

/// Values of the pixels of a picture.
pub(crate) struct Picture {
    field: PlotField,
    weight: Option<PlotField>,
    pub view: PlotView,
    pub raster: Raster,
    arrows: Option<Arrows>,
    streamlines: Option<Streamlines>,
    species: Vec<(usize, String)>,
}

/// Place of a picture in its figure, and the part of the domain that it shows.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureFrame {
    /// Left and upper edge, width and height in pixels.
    pub pixels: [i64; 4],
    /// Axes to the right and upwards: 0 for x, 1 for y, 2 for z.
    pub axes: [usize; 2],
    /// Lower edges along these axes (code length).
    pub low: [f64; 2],
    /// Upper edges.
    pub high: [f64; 2],
    /// Coordinate of a slice along the line of sight.
    pub at: Option<f64>,
}

/// Returns the frame of a figure with one picture along an axis; `None` for other plots.
///
/// # Errors
/// Returns the errors of [`crate::plot`].
pub fn picture_frame(
    snapshot: &Snapshot,
    options: &PlotOptions,
    custom: &[CustomField],
) -> Result<Option<PictureFrame>> {
    if !options.kind.is_picture() || options.normal.is_some() {
        return Ok(None);
    }
    let layout = FigureLayout::new(options.width_px as usize)?;
    let field = PlotField::new(snapshot, &options.field, custom)?;
    let centre = centre(snapshot, &field, options)?;
    let width = layout.inner_width(options.width_px as usize);
    let view = PlotView::new(snapshot, options, centre, width)?;
    let [columns, rows] = view.pixels.map(|n| n as i64);
    Ok(Some(PictureFrame {
        pixels: [layout.left, layout.top, columns, rows],
        axes: view.plane,
        low: view.left,
        high: view.right,
        at: view.at,
    }))
}

/// Refuses options that a picture does not have.
fn check(options: &PlotOptions) -> Result<()> {
    let fail = |text: &str| Err(PlotError::Option(text.to_string()));
    if options
        .dot_px
        .is_some_and(|dot| !(0.5..=100.0).contains(&dot))
    {
        return fail("size of dots: must be 0.5 to 100 pixels");
    }
    if options.weight.is_some() && options.kind != PlotKind::Projection {
        return fail("--weight: needs --projection, --profile or --phase");
    }
    if options.outlines && options.normal.is_some() {
        return fail("--outlines: patches have outlines along an axis only; leave out --normal");
    }
    Ok(())
}

impl Picture {
    /// Computes a picture.
    pub fn new(
        snapshot: &Snapshot,
        options: &PlotOptions,
        custom: &[CustomField],
        layout: &FigureLayout,
    ) -> Result<Self> {
        check(options)?;
        let species = particles::selected_species(snapshot, options)?;
        let field = PlotField::new(snapshot, &options.field, custom)?;
        let weight = options.weight.as_ref();
        let weight = weight.map(|name| PlotField::weight(snapshot, name, custom));
        let weight = weight.transpose()?;
        if weight.is_some() && field.species().is_some() {
            let text = "--weight: the density of particles has no weight; leave it out";
            return Err(PlotError::Option(text.to_string()));
        }
        let centre = centre(snapshot, &field, options)?;
        let width = layout.inner_width(options.width_px as usize);
        let view = PlotView::new(snapshot, options, centre, width)?;
        let raster = raster::draw(snapshot, &field, weight.as_ref(), options, &view)?;
        let arrows = options.arrows.as_ref();
        let arrows = arrows.map(|name| Arrows::new(snapshot, name, options, custom, &view));
        let arrows = arrows.transpose()?;
        let lines = options.streamlines.as_ref();
        let lines = lines.map(|name| Streamlines::new(snapshot, name, options, custom, &view));
        let streamlines = lines.transpose()?;
        Ok(Self {
            field,
            weight,
            view,
            raster,
            arrows,
            streamlines,
            species,
        })
    }

    /// Returns the range of the values (code units).
    pub fn extent(&self) -> Extent {
        Extent::of(self.raster.values.iter().copied())
    }

    /// Returns the number of bytes of the values.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.raster.values[..])
    }

    /// Draws the picture; `extent` is the range of the colours.
    pub fn draw(
        &self,
        snapshot: &Snapshot,
        options: &PlotOptions,
        extent: &Extent,
        layout: &FigureLayout,
    ) -> Result<Drawing> {
        let view = &self.view;
        let unit = self.unit(snapshot, options, extent.largest());
        let values: Vec<f64> = self
            .raster
            .values
            .iter()
            .map(|value| value * unit.factor)
            .collect();
        let extent = extent.scaled(unit.factor);
        let palette = Palette::new(options, &extent, self.field.signed, self.field.is_level())?;
        let mut image = FigureLayout::colours(&values, view.pixels, &palette);
        if options.outlines {
            layout.outline(&mut image, view, &self.raster);
        }
        for (number, path) in &self.species {
            let dot = layout.dot(*number, options.dot_px);
            let source = PlottedSpecies {
                path,
                massive: false,
            };
            particles::for_each_particle(snapshot, source, view, |at, _| {
                layout.draw(&mut image, view, &dot, at);
            })?;
        }
        let texts = self.texts(snapshot, options, &unit);
        let mut drawing = layout.with_bar(view.pixels);
        drawing.image(layout.left, layout.top, image);
        if let Some(contours) = &options.contours {
            let lines = contour::lines(&self.raster, view, &values, contours, &palette)?;
            for (colour, lines) in lines {
                layout.over(&mut drawing, lines, colour);
            }
        }
        if let Some(streamlines) = &self.streamlines {
            layout.over(&mut drawing, streamlines.lines(view), [255; 3]);
        }
        if let Some(arrows) = &self.arrows {
            arrows.draw(snapshot, options, &mut drawing, layout, view);
        }
        layout.colour_bar(&mut drawing, view.pixels, &palette, &texts.bar);
        let axes = [0, 1].map(|i| FigureAxis::of(view, i));
        layout.surround(&mut drawing, view.pixels, &axes, &texts);
        layout.legend(&mut drawing, &self.species);
        Ok(drawing)
    }

    /// Returns the unit of the colours of values up to `largest`.
    fn unit(&self, snapshot: &Snapshot, options: &PlotOptions, largest: f64) -> ShownUnit {
        let units = match options.kind {
            PlotKind::Projection if self.weight.is_none() => self.field.units_along(),
            _ => self.field.units.clone(),
        };
        code_units(snapshot).shown(&units, options.units, largest)
    }

    /// Returns the texts around the picture.
    fn texts(&self, snapshot: &Snapshot, options: &PlotOptions, unit: &ShownUnit) -> Texts {
        let (view, name) = (&self.view, self.field.label());
        let along = match options.normal {
            None => Axis::name(options.axis.index()).to_string(),
            Some(normal) => format!("({})", normal.map(rounded).join(", ")),
        };
        let what = match (options.kind, &self.weight) {
            (PlotKind::Projection, Some(weight)) => {
                let weight = lower(&weight.weight_label());
                format!("{name}, mean by {weight} along {along}")
            }
            (PlotKind::Projection, None) if options.normal.is_some() => {
                format!("∫ {name} along {along}")
            }
            (PlotKind::Projection, None) => format!("∫ {name} d{along}"),
            (PlotKind::Maximum, _) => format!("Maximum of {} along {along}", lower(&name)),
            _ => name,
        };
        let length = spaced(&view.length_name());
        let position = match (view.at, view.axis) {
            (Some(at), Some(_)) => {
                format!(", {along} = {}{length}", rounded(at * view.length.factor))
            }
            (Some(_), None) => {
                let centre = crate::texts::point(view.centre, view.length.factor);
                format!(", through {centre}{length} across {along}")
            }
            _ => String::new(),
        };
        let title = options.title.clone();
        Texts {
            title: title.unwrap_or_else(|| format!("{what}{position}")),
            time: time_text(snapshot, options),
            bar: labelled(&what, &readable(&unit.name)),
        }
    }
}
