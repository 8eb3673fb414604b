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
use field::PlotField;
pub use field::{CustomField, FieldFunction};
use figure::{FigureLayout, Texts};
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
    let raster = raster::draw(snapshot, &field, options, &view)?;
    let palette = Palette::new(options, &raster.values, field.signed, field.is_level())?;
    let texts = texts(snapshot, &field, options, &view);
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

/// Returns the texts around the picture.
fn texts(snapshot: &Snapshot, field: &PlotField, options: &PlotOptions, view: &PlotView) -> Texts {
    let axis = Axis::name(options.axis.index());
    let name = field.label();
    let (what, unit) = match options.kind {
        PlotKind::Slice(_) => (name, field.unit.clone()),
        PlotKind::Projection => (format!("∫ {name} d{axis}"), field.unit_along()),
        PlotKind::Maximum => (
            format!("maximum of {name} along {axis}"),
            field.unit.clone(),
        ),
    };
    let position = view
        .at
        .map_or(String::new(), |at| format!(", {axis} = {}", rounded(at)));
    let title = options
        .title
        .clone()
        .unwrap_or_else(|| format!("{what}{position}"));
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
