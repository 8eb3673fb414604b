//! Layout of the figure: frame, axes, colour bar, title, and dots of particles with their legend.

use crate::canvas::{Anchor, Canvas, Rgb, Style, TextDirection, font, text_width};
use crate::colour::Palette;
use crate::error::Result;
use crate::raster::Raster;
use crate::shapes::Drawing;
use crate::ticks::{Tick, ticks};
use crate::view::PlotView;
use crate::{Scale, particles};
use ab_glyph::FontRef;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// Colour of texts and lines.
pub(crate) const INK: Rgb = [35; 3];
/// Opacity of outlines.
const OUTLINE: f32 = 0.3;

/// An axis of a figure.
pub(crate) struct FigureAxis {
    /// Name with its unit.
    pub label: String,
    /// Values at both ends, in this unit.
    pub range: [f64; 2],
    /// Scale between them.
    pub scale: Scale,
}

impl FigureAxis {
    /// Returns the axis to the right (0) or upwards (1) of a view.
    pub fn of(view: &PlotView, which: usize) -> Self {
        Self {
            label: view.axis_label(which),
            range: view.range(which),
            scale: Scale::Linear,
        }
    }

    /// Returns the position of a value, 0 to 1 inside the figure.
    pub fn fraction(&self, value: f64) -> f64 {
        self.scale.fraction(self.range, value)
    }
}

/// Texts of a figure.
pub(crate) struct Texts {
    /// Text above the picture at the left.
    pub title: String,
    /// Text above the picture at the right.
    pub time: String,
    /// Text beside the colour bar.
    pub bar: String,
}

/// Sizes in pixels, derived from the width of the figure.
pub(crate) struct FigureLayout {
    font: FontRef<'static>,
    /// Unit of length: 1/1000 of the figure's width, in pixels.
    pub unit: f32,
    line: i64,
    /// Left margin of the picture.
    pub left: i64,
    /// Top margin of the picture.
    pub top: i64,
    bottom: i64,
    gap: i64,
    bar: i64,
    bar_labels: i64,
}

impl FigureLayout {
    /// Creates the layout of a figure `width` pixels wide.
    pub fn new(width: usize) -> Result<Self> {
        let unit = width as f32 / 1000.0;
        let font = font()?;
        let pixels = |units: f32| (units * unit).round() as i64;
        Ok(Self {
            font,
            unit,
            line: pixels(1.5).max(1),
            left: pixels(112.0),
            top: pixels(64.0),
            bottom: pixels(92.0),
            gap: pixels(22.0),
            bar: pixels(26.0),
            bar_labels: pixels(166.0),
        })
    }

    /// Returns the width of the picture inside the figure.
    pub fn inner_width(&self, width: usize) -> usize {
        (width as i64 - self.left - self.gap - self.bar - self.bar_labels).max(1) as usize
    }

    /// Returns the number of labels of size `units` that fit on `pixels`, from 2 to `max`.
    fn count(&self, pixels: i64, units: f32, max: usize) -> usize {
        ((pixels as f32 / (units * self.unit)) as usize).clamp(2, max)
    }

    /// Returns the style of text with size `units`.
    pub fn style(&self, units: f32) -> Style<'_> {
        Style {
            font: &self.font,
            size: units * self.unit,
            colour: INK,
        }
    }

    /// Returns the size of a figure with a colour bar around an image of this size.
    pub fn with_bar(&self, [columns, rows]: [usize; 2]) -> Drawing {
        let width = self.left + columns as i64 + self.gap + self.bar + self.bar_labels;
        Drawing::new(width, self.top + rows as i64 + self.bottom)
    }

    /// Returns an empty figure without a colour bar, and the size of the area inside its axes.
    pub fn without_bar(&self, width: usize) -> (Drawing, [usize; 2]) {
        let columns = (width as i64 - self.left - (40.0 * self.unit) as i64).max(10);
        let rows = (0.62 * columns as f32) as i64;
        let drawing = Drawing::new(width as i64, self.top + rows + self.bottom);
        (drawing, [columns as usize, rows as usize])
    }

    /// Draws frame, axes and titles around an area of this size.
    pub fn surround(
        &self,
        drawing: &mut Drawing,
        size: [usize; 2],
        axes: &[FigureAxis; 2],
        texts: &Texts,
    ) {
        let [columns, rows] = size.map(|n| n as i64);
        drawing.frame([self.left, self.top, columns, rows], self.line, INK);
        self.horizontal_axis(drawing, [columns, rows], &axes[0]);
        self.vertical_axis(drawing, rows, &axes[1]);
        self.titles(drawing, columns, texts);
    }

    /// Draws lines over a picture, given in pixels from its upper left corner.
    pub fn over(&self, drawing: &mut Drawing, mut lines: Vec<Vec<[f32; 2]>>, colour: Rgb) {
        for [x, y] in lines.iter_mut().flatten() {
            *x += self.left as f32;
            *y += self.top as f32;
        }
        if !lines.is_empty() {
            drawing.lines(lines, (1.5 * self.unit).max(0.8), colour);
        }
    }

    /// Draws a curve, given by fractions of the area inside the axes.
    pub fn curve(
        &self,
        drawing: &mut Drawing,
        [columns, rows]: [usize; 2],
        lines: &[Vec<[f64; 2]>],
        colour: Rgb,
    ) {
        let pixels = |[x, y]: &[f64; 2]| {
            let x = self.left as f64 + x * columns as f64;
            let y = self.top as f64 + (1.0 - y) * rows as f64;
            [x as f32, y as f32]
        };
        let lines = lines.iter().map(|line| line.iter().map(pixels).collect());
        drawing.lines(lines.collect(), (2.5 * self.unit).max(1.0), colour);
    }

    /// Writes a remark below the picture at the right.
    pub fn remark(&self, drawing: &mut Drawing, size: [usize; 2], text: &str) {
        let [columns, rows] = size.map(|n| n as f32);
        let down = self.top as f32 + rows + 68.0 * self.unit;
        let at = [self.left as f32 + columns, down];
        drawing.text(
            text,
            at,
            &self.style(20.0),
            Anchor::End,
            TextDirection::Right,
        );
    }

    /// Returns an image of values, from the bottom row upwards.
    pub fn colours(values: &[f64], [columns, rows]: [usize; 2], palette: &Palette) -> Canvas {
        let mut canvas = Canvas::new(columns, rows, [255; 3]);
        let colours: Vec<Rgb> = values
            .par_iter()
            .map(|&value| palette.colour(value))
            .collect();
        for row in 0..rows {
            // the first row of the values is at the bottom
            let line = &colours[(rows - 1 - row) * columns..][..columns];
            canvas.row_mut(0, row, columns).copy_from_slice(line);
        }
        canvas
    }

    /// Draws the lower and left edges of each patch; the other edges belong to its neighbours.
    pub fn outline(&self, canvas: &mut Canvas, view: &PlotView, raster: &Raster) {
        let [columns, rows] = view.pixels.map(|n| n as i64);
        // patches overlap in a projection, but each pixel must be drawn once
        let mut lines = BTreeSet::new();
        for (x, y, width, height) in raster.rectangles(view) {
            lines.extend((y..y + height).map(|row| (x, row)));
            lines.extend((x..x + width).map(|column| (column, y)));
        }
        for (column, row) in lines {
            if (0..columns).contains(&column) && (0..rows).contains(&row) {
                canvas.contrast(column, rows - 1 - row, OUTLINE);
            }
        }
    }

    /// Draws ticks and label below the picture.
    fn horizontal_axis(&self, canvas: &mut Drawing, [columns, rows]: [i64; 2], axis: &FigureAxis) {
        let bottom = self.top + rows;
        let (tick, label) = (self.style(22.0), self.style(26.0));
        let count = self.count(columns, 110.0, 6);
        let [first, last] = axis.range;
        for mark in ticks(first, last, axis.scale, count) {
            let x = self.left as f64 + axis.fraction(mark.value) * columns as f64;
            let column = x.round() as i64 - self.line / 2;
            self.mark(
                canvas,
                [column, bottom],
                TextDirection::Up,
                mark.label.is_empty(),
            );
            let at = [x as f32, bottom as f32 + 30.0 * self.unit];
            canvas.text(&mark.label, at, &tick, Anchor::Middle, TextDirection::Right);
        }
        let x = self.left as f32 + 0.5 * columns as f32;
        let at = [x, bottom as f32 + 68.0 * self.unit];
        canvas.text(
            &axis.label,
            at,
            &label,
            Anchor::Middle,
            TextDirection::Right,
        );
    }

    /// Draws ticks and label to the left of the picture.
    fn vertical_axis(&self, canvas: &mut Drawing, rows: i64, axis: &FigureAxis) {
        let (tick, label) = (self.style(22.0), self.style(26.0));
        let count = self.count(rows, 90.0, 6);
        let mut widest = 0f32;
        let [first, last] = axis.range;
        for mark in ticks(first, last, axis.scale, count) {
            let y = (self.top + rows) as f64 - axis.fraction(mark.value) * rows as f64;
            let row = y.round() as i64 - self.line / 2;
            let at = [self.left - self.line, row];
            self.mark(canvas, at, TextDirection::Right, mark.label.is_empty());
            let x = self.left as f32 - 14.0 * self.unit;
            let at = [x, y as f32 + 6.5 * self.unit];
            canvas.text(&mark.label, at, &tick, Anchor::End, TextDirection::Right);
            widest = widest.max(text_width(&mark.label, &tick));
        }
        let x = self.left as f32 - 30.0 * self.unit - widest;
        let at = [x.max(24.0 * self.unit), self.top as f32 + 0.5 * rows as f32];
        let style = fitted(label, &axis.label, rows as f32 + 60.0 * self.unit);
        canvas.text(&axis.label, at, &style, Anchor::Middle, TextDirection::Up);
    }

    /// Draws a tick outside the frame: downwards for the horizontal axis (`Up`), to the left for the vertical one.
    fn mark(&self, canvas: &mut Drawing, [x, y]: [i64; 2], axis: TextDirection, is_minor: bool) {
        let length = if is_minor { 4.0 } else { 7.0 };
        let length = (length * self.unit).round() as i64;
        match axis {
            TextDirection::Up => canvas.fill(x, y, self.line, length, INK),
            TextDirection::Right => canvas.fill(x - length, y, length, self.line, INK),
        }
    }

    /// Draws the colour bar to the right of the picture.
    pub fn colour_bar(
        &self,
        canvas: &mut Drawing,
        size: [usize; 2],
        palette: &Palette,
        text: &str,
    ) {
        let [columns, rows] = size.map(|n| n as i64);
        let x = self.left + columns + self.gap;
        let mut bar = Canvas::new(self.bar as usize, rows as usize, [255; 3]);
        for row in 0..rows {
            let colour = palette.shade(1.0 - (row as f64 + 0.5) / rows as f64);
            bar.shade([0, row, self.bar, 1], colour, 1.0);
        }
        canvas.image(x, self.top, bar);
        canvas.frame([x, self.top, self.bar, rows], self.line, INK);
        let widest = self.bar_ticks(canvas, x + self.bar + self.line, rows, palette);
        let beside = (x + self.bar) as f32 + 46.0 * self.unit + widest;
        let limit = (x + self.bar + self.bar_labels) as f32 - 12.0 * self.unit;
        let at = [beside.min(limit), self.top as f32 + 0.5 * rows as f32];
        let style = fitted(self.style(25.0), text, rows as f32 + 100.0 * self.unit);
        canvas.text(text, at, &style, Anchor::Middle, TextDirection::Up);
    }

    /// Draws the ticks and labels from column `x`, and returns the width of the widest label.
    fn bar_ticks(&self, canvas: &mut Drawing, x: i64, rows: i64, palette: &Palette) -> f32 {
        let style = self.style(22.0);
        let mut widest = 0f32;
        for Tick { value, label } in palette.ticks(self.count(rows, 76.0, 8)) {
            let y = (self.top + rows) as f64 - palette.fraction(value) * rows as f64;
            let length = if label.is_empty() { 4.0 } else { 7.0 } * self.unit;
            let top = (y.round() as i64 - self.line / 2).clamp(self.top, self.top + rows - 1);
            canvas.fill(x, top, length.round() as i64, self.line, INK);
            let at = [x as f32 + 13.0 * self.unit, y as f32 + 6.5 * self.unit];
            canvas.text(&label, at, &style, Anchor::Start, TextDirection::Right);
            widest = widest.max(text_width(&label, &style));
        }
        widest
    }

    /// Draws title and time above the picture.
    fn titles(&self, canvas: &mut Drawing, columns: i64, texts: &Texts) {
        let y = self.top as f32 - 18.0 * self.unit;
        let style = self.style(25.0);
        let (left, right) = (self.left as f32, (self.left + columns) as f32);
        canvas.text(
            &texts.time,
            [right, y],
            &style,
            Anchor::End,
            TextDirection::Right,
        );
        let width = right - left - text_width(&texts.time, &style) - 20.0 * self.unit;
        let style = fitted(self.style(28.0), &texts.title, width);
        canvas.text(
            &texts.title,
            [left, y],
            &style,
            Anchor::Start,
            TextDirection::Right,
        );
    }
}

/// Reduces the font size if the text is wider than `width`.
fn fitted<'a>(style: Style<'a>, text: &str, width: f32) -> Style<'a> {
    let shrink = (width / text_width(text, &style)).clamp(0.4, 1.0);
    Style {
        size: style.size * shrink,
        ..style
    }
}

/// Colours of species by number, used cyclically.
const COLOURS: [Rgb; 8] = [
    [0, 190, 255],
    [70, 220, 60],
    [255, 80, 200],
    [255, 225, 60],
    [255, 255, 255],
    [150, 120, 255],
    [255, 150, 70],
    [60, 220, 170],
];
/// Background colour of the legend.
const GROUND: Rgb = [40; 3];
/// Opacity of the background.
const COVER: f32 = 0.75;

/// Colour and radius of a particle's dot.
pub(crate) struct Dot {
    colour: Rgb,
    radius: f32,
}

impl FigureLayout {
    /// Returns the dot of species `number`, with the given or the default diameter in pixels.
    pub fn dot(&self, number: usize, diameter: Option<f32>) -> Dot {
        Dot {
            colour: COLOURS[number % COLOURS.len()],
            radius: 0.5 * diameter.unwrap_or(2.5 * self.unit),
        }
    }

    /// Draws a dot at a position in pixels from the lower left corner of the picture.
    pub fn draw(&self, canvas: &mut Canvas, view: &PlotView, dot: &Dot, at: [f64; 2]) {
        let [columns, rows] = view.pixels.map(|n| n as i64);
        let (x, y) = (at[0] as f32, rows as f32 - at[1] as f32);
        let pixels = |centre: f32, end: i64| {
            let pixel = |edge: f32| (edge.floor() as i64).clamp(0, end - 1);
            pixel(centre - dot.radius - 0.5)..=pixel(centre + dot.radius + 0.5)
        };
        for row in pixels(y, rows) {
            for column in pixels(x, columns) {
                let (right, down) = (column as f32 + 0.5 - x, row as f32 + 0.5 - y);
                let inside = dot.radius + 0.5 - (right * right + down * down).sqrt();
                let cover = inside.clamp(0.0, 1.0);
                canvas.mix(column, row, dot.colour, cover);
            }
        }
    }

    /// Draws the names of species in their colours, in the upper left corner of the picture.
    pub fn legend(&self, canvas: &mut Drawing, species: &[(usize, String)]) {
        let units = |units: f32| units * self.unit;
        let mut style = self.style(22.0);
        let widths = species
            .iter()
            .map(|(_, path)| text_width(particles::name(path), &style));
        let width = widths.fold(0.0, f32::max) + units(24.0);
        let height = units(30.0) * species.len() as f32 + units(10.0);
        let ground = if species.is_empty() {
            [0.0; 2]
        } else {
            [width, height]
        };
        let [width, height] = ground.map(|side| side as i64);
        if height > 0 {
            canvas.shade([self.left, self.top, width, height], GROUND, COVER);
        }
        for (line, (number, path)) in species.iter().enumerate() {
            style.colour = self.dot(*number, None).colour;
            let x = self.left as f32 + units(12.0);
            let y = self.top as f32 + units(30.0) * (line as f32 + 0.85);
            let text = particles::name(path);
            canvas.text(text, [x, y], &style, Anchor::Start, TextDirection::Right);
        }
    }
}
