//! Plots of snapshots as PNG or SVG: slices, projections and maxima of any field or formula, along an axis or in any direction, with
//! particles as dots, contours, arrows and streamlines; profiles, lines and phase diagrams.
//!
//! Cells of the finest level are drawn at their size. Only the patches in the picture are read. Fonts and colour maps are
//! built in, so a picture is the same on every machine.

mod arrows;
mod canvas;
mod cells;
mod centre;
mod colour;
mod contour;
mod curve;
mod error;
mod field;
mod figure;
mod frames;
mod map;
mod oblique;
mod options;
mod particles;
mod phase;
mod picture;
mod raster;
mod region;
mod shapes;
mod streamlines;
mod table;
#[cfg(test)]
mod tests;
mod texts;
mod ticks;
mod view;

pub use colour::COLOUR_MAPS;
pub use error::{PlotError, Result};
pub use field::{CustomField, FieldFunction, FieldInfo, list_fields};
pub use frames::plot_frames;
pub use map::{TableMap, plot_map};
pub use options::{
    Axis, Centre, Contours, Format, PlotKind, PlotOptions, ProfileAxis, Scale, Zoom,
};
pub use picture::{PictureFrame, picture_frame};
pub use table::{TableColumn, TableOptions, plot_table};
pub use texts::{readable, rounded};

use field::PlotField;
use frames::Figure;
use nestar_deck::{CodeUnits, Expansion};
use nestar_snapshot::Snapshot;

/// Plots a field of the snapshot and returns the bytes of a file.
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
    plot_panels(snapshot, std::slice::from_ref(options), custom)
}

/// Plots several panels side by side, like [`plot`]. Width and format are those of the first one.
///
/// # Errors
/// Returns the errors of [`plot`].
pub fn plot_panels(
    snapshot: &Snapshot,
    panels: &[PlotOptions],
    custom: &[CustomField],
) -> Result<Vec<u8>> {
    let figure = Figure::new(snapshot, panels, custom, &[])?;
    figure.draw(snapshot, &figure.extents())
}

/// Returns the names of the arrays from which the field and the weight of a plot are computed.
///
/// # Errors
/// Returns [`PlotError::UnknownField`]; [`PlotError::Option`] for an invalid formula.
pub fn required_arrays(
    snapshot: &Snapshot,
    options: &PlotOptions,
    custom: &[CustomField],
) -> Result<Vec<String>> {
    let mut arrays = Vec::new();
    PlotField::new(snapshot, &options.field, custom)?.places_among(&mut arrays);
    if let Some(weight) = &options.weight {
        PlotField::weight(snapshot, weight, custom)?.places_among(&mut arrays);
    }
    Ok(arrays)
}

/// Returns the code units of a snapshot.
#[must_use]
pub fn code_units(snapshot: &Snapshot) -> CodeUnits {
    let units = &snapshot.attributes().units;
    let scale_factor = snapshot.attributes().facts.get("scale_factor");
    CodeUnits {
        length_cgs: units.length_cgs,
        mass_cgs: units.mass_cgs,
        time_cgs: units.time_cgs,
        name: units.name.clone(),
        expansion: scale_factor
            .filter(|_| units.is_changing)
            .map(|&scale_factor| Expansion {
                scale_factor,
                powers: [1, 0, 2],
            }),
        ..CodeUnits::default()
    }
}
