//! Plots of snapshots as PNG: a slice, projection or maximum of any field, with particles as dots.
//!
//! Cells of the finest level are drawn at their size. Only the patches in the picture are read. Fonts and colour maps are
//! built in, so a picture is the same on every machine.

mod canvas;
mod colour;
mod error;
mod field;
mod figure;
mod options;
mod particles;
mod raster;
#[cfg(test)]
mod tests;
mod ticks;
mod view;

pub use colour::COLOUR_MAPS;
pub use error::{PlotError, Result};
pub use options::{Axis, PlotKind, PlotOptions, Scale};

use canvas::Canvas;
use colour::Palette;
pub use field::{CustomField, FieldFunction};
use field::{PlotField, readable};
use figure::{FigureLayout, Texts};
use nestar_deck::{CodeUnits, ShownUnit};
use nestar_snapshot::Snapshot;
use particles::PlottedSpecies;
use view::PlotView;

/// Plots a field of the snapshot and returns the bytes of a PNG file.
///
/// # Errors
/// Returns [`PlotError::UnknownField`] with the known fields; [`PlotError::Option`] for an invalid option, such as a slice
/// outside the domain or an empty range of colours; [`PlotError::Snapshot`] if the snapshot is damaged.
pub fn plot(snapshot: &Snapshot, options: &PlotOptions) -> Result<Vec<u8>> {
    plot_with(snapshot, options, &[])
}

/// Plots a field of the snapshot or of `custom`, like [`plot`].
///
/// # Errors
/// Returns the errors of [`plot`].
pub fn plot_with(
    snapshot: &Snapshot,
    options: &PlotOptions,
    custom: &[CustomField],
) -> Result<Vec<u8>> {
    if !(200..=8192).contains(&options.width_px) {
        return Err(PlotError::Option(format!(
            "width {}: must be 200 to 8192 pixels",
            options.width_px
        )));
    }
    if options
        .dot_px
        .is_some_and(|dot| !(0.5..=100.0).contains(&dot))
    {
        return Err(PlotError::Option(
            "size of dots: must be 0.5 to 100 pixels".to_string(),
        ));
    }
    let species = particles::selected_species(snapshot, options)?;
    let field = PlotField::new(snapshot, &options.field, custom)?;
    let layout = FigureLayout::new(options.width_px as usize)?;
    let view = PlotView::new(
        snapshot,
        options,
        layout.inner_width(options.width_px as usize),
    )?;
    let mut raster = raster::draw(snapshot, &field, options, &view)?;
    let unit = shown_unit(snapshot, &field, options, &raster.values);
    for value in &mut raster.values {
        *value *= unit.factor;
    }
    let palette = Palette::new(options, &raster.values, field.signed, field.is_level())?;
    let texts = texts(snapshot, &field, options, &view, &unit);
    let mut canvas = layout.compose(&view, &raster, &palette, &texts, options.outlines);
    for (number, path) in &species {
        let dot = layout.dot(*number, options.dot_px);
        let source = PlottedSpecies {
            path,
            massive: false,
        };
        particles::for_each_particle(snapshot, source, &view, |at, _| {
            layout.draw(&mut canvas, &view, &dot, at);
        })?;
    }
    layout.legend(&mut canvas, &species);
    encode(&canvas)
}

/// Returns the code units of a snapshot.
#[must_use]
pub fn code_units(snapshot: &Snapshot) -> CodeUnits {
    let units = &snapshot.attributes().units;
    CodeUnits {
        length_cgs: units.length_cgs,
        mass_cgs: units.mass_cgs,
        time_cgs: units.time_cgs,
        name: units.name.clone(),
    }
}

/// Returns the unit of the colours of these values.
fn shown_unit(
    snapshot: &Snapshot,
    field: &PlotField,
    options: &PlotOptions,
    values: &[f64],
) -> ShownUnit {
    let units = match options.kind {
        PlotKind::Projection => field.units_along(),
        _ => field.units.clone(),
    };
    let finite = values.iter().filter(|value| value.is_finite());
    let largest = finite.fold(0.0, |largest: f64, value| largest.max(value.abs()));
    code_units(snapshot).shown(&units, options.units, largest)
}

/// Returns the texts around the picture.
fn texts(
    snapshot: &Snapshot,
    field: &PlotField,
    options: &PlotOptions,
    view: &PlotView,
    unit: &ShownUnit,
) -> Texts {
    let axis = Axis::name(options.axis.index());
    let name = field.label();
    let what = match options.kind {
        PlotKind::Slice(_) => name,
        PlotKind::Projection => format!("∫ {name} d{axis}"),
        PlotKind::Maximum => format!("Maximum of {} along {axis}", lower(&name)),
    };
    let length = view.length_name();
    let position = view.at.map_or(String::new(), |at| {
        let at = rounded(at * view.length.factor);
        format!(", {axis} = {at}{}", spaced(&length))
    });
    let title = options
        .title
        .clone()
        .unwrap_or_else(|| format!("{what}{position}"));
    let time = time_unit(snapshot, options);
    let bar = labelled(&what, &readable(&unit.name));
    Texts {
        title,
        time: format!(
            "t = {}{}",
            rounded(snapshot.attributes().time * time.factor),
            spaced(&without_code(&time.name))
        ),
        bar,
    }
}

/// Returns the unit of times; that of the end of the run, so that all pictures of a run have the same.
fn time_unit(snapshot: &Snapshot, options: &PlotOptions) -> ShownUnit {
    let attributes = snapshot.attributes();
    let deck: Option<toml::Table> = attributes.config.parse().ok();
    let end = deck
        .as_ref()
        .and_then(|deck| deck.get("time")?.get("end")?.as_float());
    let typical = end.unwrap_or(attributes.time);
    code_units(snapshot).shown("time", options.units, typical)
}

/// Returns a unit for display; empty for code units, which axes do not show.
fn without_code(name: &str) -> String {
    match name {
        "length" | "time" => String::new(),
        name => readable(name),
    }
}

/// Returns a unit with a blank before it.
fn spaced(unit: &str) -> String {
    match unit {
        "" => String::new(),
        unit => format!(" {unit}"),
    }
}

/// Returns a label with its unit in brackets.
fn labelled(what: &str, unit: &str) -> String {
    match unit {
        "" => what.into(),
        unit => format!("{what} [{unit}]"),
    }
}

/// Returns a label with its first letter in lower case.
fn lower(label: &str) -> String {
    let mut letters = label.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_lowercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

/// Formats a number with at most four significant digits.
fn rounded(value: f64) -> String {
    let text = if value == 0.0 || (1e-3..1e5).contains(&value.abs()) {
        let digits = (3.0 - value.abs().max(1e-3).log10().floor()).clamp(0.0, 6.0) as usize;
        let text = format!("{value:.digits$}");
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        } else {
            text
        }
    } else {
        let text = format!("{value:.3e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{mantissa}×10^{{{exponent}}}")
    };
    text.replace('-', "−")
}

/// Encodes the image as PNG.
fn encode(canvas: &Canvas) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, canvas.width as u32, canvas.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(canvas.pixels().as_flattened()));
    written
        .map_err(|error| PlotError::Option(format!("the picture cannot be encoded: {error}")))?;
    Ok(bytes)
}
