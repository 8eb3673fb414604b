//! Plots of the columns of a table, such as the diagnostics of a run: curves with common axes and a legend.

use crate::canvas::{Anchor, Rgb, TextDirection, text_width};
use crate::colour::{Extent, check_range};
use crate::curve::{SPACE, clipped, scale};
use crate::error::{PlotError, Result};
use crate::figure::{FigureAxis, FigureLayout, Texts};
use crate::shapes::Drawing;
use crate::texts::{labelled, readable};
use crate::{Format, Scale};

/// Colours of curves, used cyclically.
const COLOURS: [Rgb; 8] = [
    [31, 90, 180],
    [214, 69, 33],
    [34, 139, 74],
    [130, 70, 170],
    [196, 140, 0],
    [0, 150, 170],
    [200, 50, 120],
    [110, 110, 110],
];

/// Relative differences that are drawn as a straight line.
const ROUNDING: f64 = 1e-11;

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableColumn {
    /// Name for display.
    pub label: String,
    /// Unit for display; empty for pure numbers.
    pub unit: String,
    /// Values by row; NaN where there is none.
    pub values: Vec<f64>,
}

/// Options of [`plot_table`] and [`plot_map`](crate::plot_map).
#[derive(Clone, Debug, PartialEq)]
pub struct TableOptions {
    /// Logarithmic axes to the right and upwards.
    pub log_axes: [bool; 2],
    /// Width of the figure in pixels, 200 to 8192.
    pub width_px: u32,
    /// Text above the plot at the left; if it is empty, the name of the only curve.
    pub title: String,
    /// Text above the plot at the right, such as the time.
    pub remark: String,
    /// File format.
    pub format: Format,
}

/// Plots columns of a table by another column and returns the bytes of a file.
///
/// # Errors
/// Returns [`PlotError::Option`] for an invalid width, without columns, or if no row can be drawn.
pub fn plot_table(x: &TableColumn, ys: &[TableColumn], options: &TableOptions) -> Result<Vec<u8>> {
    let width = check_width(options)?;
    if ys.is_empty() {
        let text = "there is no curve to draw: choose a column".to_string();
        return Err(PlotError::Option(text));
    }
    let axes = axes(x, ys, options)?;
    let layout = FigureLayout::new(width)?;
    let (mut drawing, size) = layout.without_bar(width);
    for (number, y) in ys.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let rows = x.values.iter().zip(&y.values);
        let places = rows.map(|(x, y)| [axes[0].fraction(*x), axes[1].fraction(*y)]);
        layout.curve(&mut drawing, size, &clipped(places), colour);
    }
    let texts = Texts {
        title: match ys {
            [only] if options.title.is_empty() => only.label.clone(),
            _ => options.title.clone(),
        },
        time: options.remark.clone(),
        bar: String::new(),
    };
    layout.surround(&mut drawing, size, &axes, &texts);
    if ys.len() > 1 {
        legend(&layout, &mut drawing, size, ys);
    }
    match options.format {
        Format::Png => drawing.png(),
        Format::Svg => drawing.svg(),
    }
}

/// Returns the width of a figure.
///
/// # Errors
/// It is invalid.
pub(crate) fn check_width(options: &TableOptions) -> Result<usize> {
    let width = options.width_px;
    if !(200..=8192).contains(&width) {
        let text = format!("width {width}: must be 200 to 8192 pixels");
        return Err(PlotError::Option(text));
    }
    Ok(width as usize)
}

/// Returns the axes to the right and upwards.
fn axes(x: &TableColumn, ys: &[TableColumn], options: &TableOptions) -> Result<[FigureAxis; 2]> {
    let scales = options.log_axes.map(scale);
    let along = Extent::of(x.values.iter().copied());
    let upwards = ys.iter().map(|y| Extent::of(y.values.iter().copied()));
    let upwards = upwards.fold(Extent::default(), Extent::join);
    let common = |name: fn(&TableColumn) -> &String| {
        let first = name(&ys[0]);
        let is_common = ys.iter().all(|y| name(y) == first);
        is_common.then(|| first.clone())
    };
    let label = common(|y| &y.label).unwrap_or_else(|| "Value".into());
    let unit = common(|y| &y.unit).unwrap_or_default();
    Ok([
        FigureAxis {
            label: labelled(&x.label, &readable(&x.unit)),
            range: range(&along, scales[0], &x.label, 0.0)?,
            scale: scales[0],
        },
        FigureAxis {
            label: labelled(&label, &readable(&unit)),
            range: range(&upwards, scales[1], &label, SPACE)?,
            scale: scales[1],
        },
    ])
}

/// Returns the range of an axis: that of the values, with some space.
fn range(extent: &Extent, scale: Scale, label: &str, space: f64) -> Result<[f64; 2]> {
    let Some(found) = extent.shown(scale) else {
        let why = match scale {
            Scale::Log => "has no value above 0: use a linear axis",
            Scale::Linear => "has no value yet",
        };
        return Err(PlotError::Option(format!("{label} {why}")));
    };
    let largest = found[0].abs().max(found[1].abs());
    // differences by rounding are none
    if found[1] - found[0] <= ROUNDING * largest {
        let middle = 0.5 * (found[0] + found[1]);
        let room = if largest == 0.0 { 1.0 } else { 0.1 * largest };
        return Ok([middle - room, middle + room]);
    }
    let range = [-space, 1.0 + space].map(|fraction| scale.value(found, fraction));
    check_range(range[0], range[1], scale)?;
    Ok(range)
}

/// Draws the names of the curves in the upper left corner.
fn legend(layout: &FigureLayout, drawing: &mut Drawing, size: [usize; 2], ys: &[TableColumn]) {
    let units = |units: f32| units * layout.unit;
    let style = layout.style(21.0);
    let name = |y: &TableColumn| labelled(&y.label, &readable(&y.unit));
    let widths = ys.iter().map(|y| text_width(&name(y), &style));
    let width = widths.fold(0.0, f32::max) + units(64.0);
    let height = units(28.0) * ys.len() as f32 + units(12.0);
    let corner = [layout.left as f32, layout.top as f32].map(|edge| edge + units(10.0));
    let ground = [
        corner[0] as i64,
        corner[1] as i64,
        (width as i64).min(size[0] as i64),
        height as i64,
    ];
    drawing.shade(ground, [255; 3], 0.85);
    for (number, y) in ys.iter().enumerate() {
        let down = corner[1] + units(28.0) * (number as f32 + 0.8);
        let from = corner[0] + units(8.0);
        let line = [from, from + units(34.0)].map(|x| [x, down - units(7.0)]);
        let colour = COLOURS[number % COLOURS.len()];
        drawing.lines(vec![line.to_vec()], units(3.0).max(1.5), colour);
        let at = [from + units(42.0), down];
        drawing.text(&name(y), at, &style, Anchor::Start, TextDirection::Right);
    }
}

#[cfg(test)]
mod tests {
    use super::{TableColumn, TableOptions, plot_table};
    use crate::Format;

    fn column(label: &str, unit: &str, values: &[f64]) -> TableColumn {
        TableColumn {
            label: label.into(),
            unit: unit.into(),
            values: values.to_vec(),
        }
    }

    fn svg(log_axes: [bool; 2], ys: &[TableColumn]) -> Result<String, String> {
        let options = TableOptions {
            log_axes,
            width_px: 1000,
            title: String::new(),
            remark: "t = 4".into(),
            format: Format::Svg,
        };
        let x = column("Time", "Myr", &[0.0, 1.0, 2.0, 3.0, 4.0]);
        let bytes = plot_table(&x, ys, &options).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(bytes).expect("SVG is text"))
    }

    #[test]
    fn curves_have_axes_with_units_and_a_legend() {
        let mass = column("mass", "Msun", &[1.0, 2.0, f64::NAN, 4.0, 5.0]);
        let energy = column("energy", "erg", &[1.0, 10.0, 100.0, 1000.0, 1e4]);
        let one = svg([false; 2], std::slice::from_ref(&mass)).expect("a plot");
        assert!(one.contains(">Time [Myr]<") && one.contains(">mass [Msun]<"));
        let path = one
            .lines()
            .find(|line| line.starts_with("<path"))
            .expect("a curve");
        // the value that is missing parts the curve
        assert_eq!(
            (path.matches('M').count(), path.matches('L').count()),
            (2, 2)
        );
        let both = svg([false, true], &[mass, energy]).expect("a plot");
        assert_eq!(both.matches("<path").count(), 4);
        assert!(both.contains(">energy [erg]<") && both.contains(">Value<"));
        assert!(both.contains(">10<tspan"), "powers of ten on the axis");
    }

    #[test]
    fn a_plot_without_values_is_refused_in_words() {
        let none = column("mass", "", &[f64::NAN; 5]);
        assert_eq!(
            svg([false; 2], &[none]).unwrap_err(),
            "mass has no value yet"
        );
        let negative = column("drift", "", &[-1.0; 5]);
        let refused = svg([false, true], std::slice::from_ref(&negative)).unwrap_err();
        assert!(refused.contains("no value above 0"), "{refused}");
        assert!(
            svg([false; 2], &[negative]).is_ok(),
            "a constant has a range"
        );
        let rounded = [1.0, 1.0 + 1e-15, 1.0 - 1e-15, 1.0, 1.0];
        let flat = svg([false; 2], &[column("mass", "", &rounded)]).expect("a plot");
        assert!(flat.contains(">1.00<") || flat.contains(">1.0<"), "{flat}");
        assert!(svg([false; 2], &[]).unwrap_err().contains("no curve"));
    }
}
