//! Plots of numbers over two coordinates, such as an entry of a series of slices: colours with a colour bar.

use crate::canvas::Canvas;
use crate::colour::{Extent, Palette};
use crate::curve::scale;
use crate::error::{PlotError, Result};
use crate::figure::{FigureAxis, FigureLayout, Texts};
use crate::table::check_width;
use crate::texts::{labelled, readable};
use crate::{Format, PlotOptions, Scale, TableColumn, TableOptions};

/// Height of a map whose axes have different units, and limits of that of others, relative to its width.
const HEIGHT: f64 = 0.75;
const HEIGHTS: [f64; 2] = [0.1, 2.0];

/// Numbers over two coordinates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableMap {
    /// Coordinates to the right: centres of equally wide columns, in the logarithm for a logarithmic axis.
    pub across: TableColumn,
    /// Coordinates upwards: centres of equally high rows.
    pub upwards: TableColumn,
    /// Values, row by row from the lowest one; NaN where there is none.
    pub values: TableColumn,
    /// `true` if both axes have the same scale, such as those of a slice.
    pub is_plane: bool,
}

/// Plots numbers over two coordinates and returns the bytes of a file; `colours` is the scale of the colours.
///
/// # Errors
/// Returns [`PlotError::Option`] for an invalid width, coordinates that do not fit to the values, and values that the scale cannot show.
pub fn plot_map(map: &TableMap, colours: Scale, options: &TableOptions) -> Result<Vec<u8>> {
    let width = check_width(options)?;
    let cells = [map.across.values.len(), map.upwards.values.len()];
    if cells[0] * cells[1] != map.values.values.len() || map.values.values.is_empty() {
        let text = format!("{} has no value for each column and row", map.values.label);
        return Err(PlotError::Option(text));
    }
    let extent = Extent::of(map.values.values.iter().copied());
    let is_signed = extent
        .shown(Scale::Linear)
        .is_some_and(|[least, largest]| least < 0.0 && largest > 0.0);
    let colour_options = PlotOptions {
        field: map.values.label.clone(),
        scale: colours,
        ..PlotOptions::default()
    };
    let palette = Palette::new(&colour_options, &extent, is_signed, false)?;
    let axes = [
        axis(&map.across, options.log_axes[0]),
        axis(&map.upwards, options.log_axes[1]),
    ];
    let layout = FigureLayout::new(width)?;
    let size = size(&axes, map.is_plane, layout.inner_width(width));
    let mut drawing = layout.with_bar(size);
    drawing.image(layout.left, layout.top, image(map, cells, size, &palette));
    let texts = Texts {
        title: options.title.clone(),
        time: options.remark.clone(),
        bar: labelled(&map.values.label, &readable(&map.values.unit)),
    };
    layout.colour_bar(&mut drawing, size, &palette, &texts.bar);
    layout.surround(&mut drawing, size, &axes, &texts);
    match options.format {
        Format::Png => drawing.png(),
        Format::Svg => drawing.svg(),
    }
}

/// Returns the axis of some columns or rows, from the edge of the first one to that of the last one.
fn axis(centres: &TableColumn, is_log: bool) -> FigureAxis {
    let of = |value: f64| if is_log { value.ln() } else { value };
    let back = |value: f64| if is_log { value.exp() } else { value };
    let values = &centres.values;
    let [first, last] = [values[0], values[values.len() - 1]].map(of);
    let half = match values.len() {
        1 if first == 0.0 => 0.5,
        1 => 0.1 * first.abs(),
        count => 0.5 * (last - first) / (count - 1) as f64,
    };
    FigureAxis {
        label: labelled(&centres.label, &readable(&centres.unit)),
        range: [first - half, last + half].map(back),
        scale: scale(is_log),
    }
}

/// Returns the pixels of the map.
fn size(axes: &[FigureAxis; 2], is_plane: bool, columns: usize) -> [usize; 2] {
    let [width, height] = [0, 1].map(|i| axes[i].range[1] - axes[i].range[0]);
    let ratio = match is_plane {
        true => (height / width).clamp(HEIGHTS[0], HEIGHTS[1]),
        false => HEIGHT,
    };
    [columns, (ratio * columns as f64).round().max(1.0) as usize]
}

/// Draws each value as a rectangle.
fn image(map: &TableMap, cells: [usize; 2], size: [usize; 2], palette: &Palette) -> Canvas {
    let mut image = Canvas::new(size[0], size[1], [255; 3]);
    for row in 0..size[1] {
        let line = (size[1] - 1 - row) * cells[1] / size[1];
        for (column, pixel) in image.row_mut(0, row, size[0]).iter_mut().enumerate() {
            let value = map.values.values[line * cells[0] + column * cells[0] / size[0]];
            // empty bins stay white
            if !value.is_nan() {
                *pixel = palette.colour(value);
            }
        }
    }
    image
}

#[cfg(test)]
mod tests {
    use super::{TableMap, plot_map};
    use crate::figure::FigureLayout;
    use crate::tests::decode;
    use crate::{Format, Scale, TableColumn, TableOptions};

    fn column(label: &str, unit: &str, values: &[f64]) -> TableColumn {
        TableColumn {
            label: label.into(),
            unit: unit.into(),
            values: values.to_vec(),
        }
    }

    fn options(log_axes: [bool; 2], format: Format) -> TableOptions {
        TableOptions {
            log_axes,
            width_px: 500,
            title: "a title".into(),
            remark: "t = 4".into(),
            format,
        }
    }

    fn map(values: &[f64]) -> TableMap {
        TableMap {
            across: column("x", "kpc", &[0.5, 1.5, 2.5]),
            upwards: column("y", "kpc", &[10.0, 11.0]),
            values: column("density", "Msun/kpc3", values),
            is_plane: true,
        }
    }

    #[test]
    fn each_value_has_its_place_and_colour() {
        let drawn = plot_map(
            &map(&[0.0, 1.0, f64::NAN, 3.0, 3.0, 0.0]),
            Scale::Linear,
            &options([false; 2], Format::Png),
        );
        let (width, _, pixels) = decode(&drawn.expect("a map"));
        let layout = FigureLayout::new(500).expect("a layout");
        let columns = layout.inner_width(500);
        let rows = columns * 2 / 3;
        // the middle of a cell, counted from the lowest row
        let at = |column: usize, row: usize| {
            let right = layout.left as usize + (2 * column + 1) * columns / 6;
            let down = layout.top as usize + (3 - 2 * row) * rows / 4;
            pixels[down * width + right]
        };
        assert_eq!(at(0, 0), at(2, 1));
        assert_eq!(at(0, 1), at(1, 1));
        assert_eq!(at(2, 0), [255; 3], "no value");
        let different = [at(0, 0), at(1, 0), at(0, 1), at(2, 0)];
        for (n, colour) in different.iter().enumerate() {
            assert!(!different[..n].contains(colour), "{different:?}");
        }
    }

    #[test]
    fn axes_have_units_and_reach_the_edges_of_cells() {
        let text = |map: &TableMap, log_axes| {
            let drawn = plot_map(map, Scale::Linear, &options(log_axes, Format::Svg));
            String::from_utf8(drawn.expect("a map")).expect("SVG is text")
        };
        let svg = text(&map(&[1.0; 6]), [false; 2]);
        for label in [">x [kpc]<", ">y [kpc]<", ">a title<", ">t = 4<", ">3.0<"] {
            assert!(
                svg.contains(label) || svg.contains(&label.replace(".0", "")),
                "{label}"
            );
        }
        let bins = TableMap {
            across: column("density", "", &[1e-27, 1e-26, 1e-25]),
            is_plane: false,
            ..map(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        };
        assert!(
            text(&bins, [true, false]).contains(">10<tspan"),
            "powers of ten"
        );
    }

    #[test]
    fn maps_without_values_are_refused() {
        let refused = |values: &[f64], scale| {
            let drawn = plot_map(&map(values), scale, &options([false; 2], Format::Png));
            drawn.expect_err("refused").to_string()
        };
        assert!(refused(&[1.0; 5], Scale::Linear).contains("for each column and row"));
        assert!(refused(&[f64::NAN; 6], Scale::Linear).contains("is not a number"));
        assert!(refused(&[-1.0; 6], Scale::Log).contains("no positive value"));
    }
}
