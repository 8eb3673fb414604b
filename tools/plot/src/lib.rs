//! Pictures of snapshots: a slice, a projection or the maximum of any field, as PNG, with dots where particles are.
//!
//! The finest cells that are there are painted at their own size; only the patches that a picture needs are read.
//! Fonts and colours are built in, so that a picture is the same on every machine.

mod canvas;
mod colour;
mod dots;
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
use field::PlotField;
pub use field::{CellFunction, CustomField};
use figure::{FigureLayout, Texts};
use nestar_snapshot::Snapshot;
use view::PlotView;

/// Draws a field of the snapshot and returns the bytes of a PNG file.
///
/// # Errors
/// [`PlotError::UnknownField`] with the fields that there are and the nearest name; [`PlotError::Option`] for a slice
/// outside of the domain, an empty range of colours, an unknown colour map or species, or a width out of range;
/// [`PlotError::Snapshot`] if the snapshot is damaged.
pub fn plot(snapshot: &Snapshot, options: &PlotOptions) -> Result<Vec<u8>> {
    plot_with(snapshot, options, &[])
}

/// As [`plot`], where the caller can make further fields.
///
/// # Errors
/// As [`plot`].
pub fn plot_with(
    snapshot: &Snapshot,
    options: &PlotOptions,
    own: &[CustomField],
) -> Result<Vec<u8>> {
    if !(200..=8192).contains(&options.width_px) {
        return Err(PlotError::Option(format!(
            "width {}: 200 to 8192 pixels",
            options.width_px
        )));
    }
    if options
        .dot_px
        .is_some_and(|dot| !(0.5..=100.0).contains(&dot))
    {
        return Err(PlotError::Option("dots: 0.5 to 100 pixels".to_string()));
    }
    let species = particles::selected_species(snapshot, options)?;
    let field = PlotField::new(snapshot, &options.field, own)?;
    let layout = FigureLayout::new(options.width_px as usize)?;
    let view = PlotView::new(
        snapshot,
        options,
        layout.inner_width(options.width_px as usize),
    )?;
    let raster = raster::draw(snapshot, &field, options, &view)?;
    let palette = Palette::new(options, &raster.values, field.signed, field.is_level())?;
    let texts = texts(snapshot, &field, options, &view);
    let mut canvas = layout.compose(&view, &raster, &palette, &texts, options.outlines);
    for (number, path) in &species {
        let dot = layout.dot(*number, options.dot_px);
        particles::for_each_particle(snapshot, (path, false), (&view, options.axis), |at, _| {
            layout.draw(&mut canvas, &view, &dot, at);
        })?;
    }
    layout.legend(&mut canvas, &species);
    encode(&canvas)
}

/// The texts around the picture.
fn texts(snapshot: &Snapshot, field: &PlotField, options: &PlotOptions, view: &PlotView) -> Texts {
    let axis = Axis::name(options.axis.index());
    let name = field.label();
    let (what, unit) = match options.kind {
        PlotKind::Slice(_) => (name, field.unit.clone()),
        PlotKind::Projection => (format!("∫ {name} d{axis}"), field.unit_along()),
        PlotKind::Maximum => (format!("greatest {name} along {axis}"), field.unit.clone()),
    };
    let place = view
        .at
        .map_or(String::new(), |at| format!(", {axis} = {}", rounded(at)));
    let title = options
        .title
        .clone()
        .unwrap_or_else(|| format!("{what}{place}"));
    let bar = if unit.is_empty() {
        what
    } else {
        format!("{what}  [{unit}]")
    };
    Texts {
        title,
        time: format!("t = {}", rounded(snapshot.attributes().time)),
        bar,
    }
}

/// A number with four significant digits at most.
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

/// The PNG file of a picture.
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
