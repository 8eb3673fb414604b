//! Contours of a picture.

use crate::canvas::Rgb;
use crate::colour::Palette;
use crate::error::{PlotError, Result};
use crate::raster::Raster;
use crate::view::PlotView;
use crate::{Contours, Scale};

/// Segments of the contours of one value, in pixels from the upper left corner of the picture.
type Segments = Vec<Vec<[f32; 2]>>;

/// Returns the values of the contours.
fn levels(contours: &Contours, palette: &Palette) -> Result<Vec<f64>> {
    let fail = |text: String| Err(PlotError::Option(text));
    match contours {
        Contours::Count(count @ 1..=100) => {
            let fraction = |i: u32| f64::from(i + 1) / f64::from(count + 1);
            let value = |i: u32| palette.scale.value([palette.min, palette.max], fraction(i));
            Ok((0..*count).map(value).collect())
        }
        Contours::Count(count) => fail(format!("--contours {count}: must be 1 to 100")),
        Contours::Values(values) => {
            if let Some(value) = values.iter().find(|value| !value.is_finite()) {
                return fail(format!("--contours {value}: must be finite"));
            }
            match values
                .iter()
                .find(|v| palette.scale == Scale::Log && **v <= 0.0)
            {
                Some(value) => fail(format!(
                    "--contours {value}: must be above 0 on a logarithmic scale"
                )),
                None => Ok(values.clone()),
            }
        }
    }
}

/// Returns the contours with their colours; `values` are those of the pixels in the unit of the colours.
pub(crate) fn lines(
    raster: &Raster,
    view: &PlotView,
    values: &[f64],
    contours: &Contours,
    palette: &Palette,
) -> Result<Vec<(Rgb, Segments)>> {
    let levels = levels(contours, palette)?;
    let scaled = |value: f64| match palette.scale {
        Scale::Linear => value,
        Scale::Log if value > 0.0 => value.ln(),
        Scale::Log => f64::NAN,
    };
    let scaled_values: Vec<f64> = values.iter().map(|&value| scaled(value)).collect();
    let smooth = smoothed(&scaled_values, view.pixels, &raster.cell_pixels(view));
    let colour = |level: f64| {
        let [r, g, b] = palette.colour(level).map(f64::from);
        let is_dark = 0.3 * r + 0.59 * g + 0.11 * b < 128.0;
        if is_dark { [255; 3] } else { [0; 3] }
    };
    let line = |&level: &f64| (colour(level), segments(&smooth, view.pixels, scaled(level)));
    Ok(levels.iter().map(line).collect())
}

/// Returns the mean of the pixels around each one over the width of a cell there: between the middles of equal cells, this is the linear
/// interpolation of their values.
fn smoothed(values: &[f64], [columns, rows]: [usize; 2], widths: &[[f32; 2]]) -> Vec<f64> {
    // sums of values and numbers of pixels below and to the left
    let mut sums = vec![[0.0f64; 2]; (columns + 1) * (rows + 1)];
    let stride = columns + 1;
    for row in 0..rows {
        let mut line = [0.0; 2];
        for column in 0..columns {
            let value = values[row * columns + column];
            if value.is_finite() {
                line = [line[0] + value, line[1] + 1.0];
            }
            let below = sums[row * stride + column + 1];
            sums[(row + 1) * stride + column + 1] = [below[0] + line[0], below[1] + line[1]];
        }
    }
    let mean = |i: usize| {
        if !values[i].is_finite() {
            return f64::NAN;
        }
        let place = [i % columns, i / columns];
        let size = [columns, rows];
        let ends = [0, 1].map(|n| {
            let half = (0.5 * widths[i][n]).round() as usize;
            // as far to each side, so that edges do not shift the mean
            let half = half.min(place[n]).min(size[n] - 1 - place[n]);
            [place[n] - half, place[n] + half + 1]
        });
        let at = |column: usize, row: usize| sums[row * stride + column];
        let [[left, right], [low, high]] = ends;
        let part = |n: usize| {
            at(right, high)[n] - at(left, high)[n] - at(right, low)[n] + at(left, low)[n]
        };
        part(0) / part(1)
    };
    (0..values.len()).map(mean).collect()
}

/// Returns the segments on which the values between the middles of pixels are `level`.
fn segments(values: &[f64], [columns, rows]: [usize; 2], level: f64) -> Segments {
    let mut found = vec![];
    for row in 1..rows {
        for column in 1..columns {
            let corners = [(0, 0), (1, 0), (1, 1), (0, 1)];
            let above = corners
                .map(|(right, up)| values[(row - 1 + up) * columns + column - 1 + right] - level);
            if above.iter().any(|x| x.is_nan()) {
                continue;
            }
            let mut cuts = vec![];
            for side in 0..4 {
                let (a, b) = (above[side], above[(side + 1) % 4]);
                if (a >= 0.0) != (b >= 0.0) {
                    let t = (a / (a - b)) as f32;
                    let (from, to) = (corners[side], corners[(side + 1) % 4]);
                    let mix = |a: usize, b: usize| a as f32 + t * (b as f32 - a as f32);
                    let x = column as f32 - 0.5 + mix(from.0, to.0);
                    let y = row as f32 - 0.5 + mix(from.1, to.1);
                    cuts.push([x, rows as f32 - y]);
                }
            }
            found.extend(cuts.chunks_exact(2).map(<[_]>::to_vec));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{segments, smoothed};

    #[test]
    fn contours_of_a_plane_and_of_a_circle_are_where_their_values_are() {
        let (columns, rows) = (60, 40);
        let place = |i: usize| [(i % columns) as f64 + 0.5, (i / columns) as f64 + 0.5];
        let plane: Vec<f64> = (0..columns * rows)
            .map(|i| place(i)[0] + 2.0 * place(i)[1])
            .collect();
        let lines = segments(&plane, [columns, rows], 50.0);
        assert!(lines.len() > 30);
        for [x, y] in lines.into_iter().flatten() {
            let up = f64::from(rows as f32 - y);
            assert!((f64::from(x) + 2.0 * up - 50.0).abs() < 1e-3);
        }
        let circle = |i: usize| (place(i)[0] - 30.0).hypot(place(i)[1] - 20.0);
        let circle: Vec<f64> = (0..columns * rows).map(circle).collect();
        let lines = segments(&circle, [columns, rows], 12.0);
        let length: f32 = lines
            .iter()
            .map(|l| (l[0][0] - l[1][0]).hypot(l[0][1] - l[1][1]))
            .sum();
        assert!(
            (length - 24.0 * std::f32::consts::PI).abs() < 0.3,
            "{length}"
        );
        assert!(segments(&circle, [columns, rows], 100.0).is_empty());
    }

    #[test]
    fn cells_of_many_pixels_have_a_straight_contour() {
        // cells of 9 pixels with the values of a plane
        let (columns, rows) = (90, 90);
        let cell = |i: usize| [(i % columns / 9) as f64, (i / columns / 9) as f64];
        let values: Vec<f64> = (0..columns * rows)
            .map(|i| cell(i)[0] + cell(i)[1])
            .collect();
        let smooth = smoothed(&values, [columns, rows], &vec![[8.0; 2]; columns * rows]);
        let lines = segments(&smooth, [columns, rows], 9.3);
        let inside = lines
            .into_iter()
            .flatten()
            .filter(|[x, y]| [x, y].iter().all(|x| (9.0..81.0).contains(*x)));
        for [x, y] in inside {
            let sum = (x + rows as f32 - y) / 9.0 - 1.0;
            assert!((sum - 9.3).abs() < 0.02, "{x} {y} {sum}");
        }
    }
}
