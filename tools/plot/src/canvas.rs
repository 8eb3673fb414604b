//! Raster images with rectangles, lines and text.

use crate::error::{PlotError, Result};
use ab_glyph::{Font, FontRef, Glyph, GlyphId, PxScale, ScaleFont, point};

/// An RGB colour.
pub(crate) type Rgb = [u8; 3];

/// Alignment of a text relative to its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Anchor {
    /// The text starts at the position.
    Start,
    /// The text is centred at the position.
    Middle,
    /// The text ends at the position.
    End,
}

/// Direction of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TextDirection {
    /// To the right.
    Right,
    /// Upwards.
    Up,
}

/// Font, size and colour of a text.
pub(crate) struct Style<'a> {
    /// Font.
    pub font: &'a FontRef<'static>,
    /// Font size (ascent minus descent) in pixels.
    pub size: f32,
    /// Colour.
    pub colour: Rgb,
}

/// Returns the built-in font.
pub(crate) fn font() -> Result<FontRef<'static>> {
    FontRef::try_from_slice(epaint_default_fonts::UBUNTU_LIGHT)
        .map_err(|error| PlotError::Option(format!("the built-in font: {error}")))
}

/// Size of an exponent relative to its text.
const EXPONENT_SIZE: f32 = 0.72;
/// Rise of an exponent relative to its text.
const EXPONENT_RISE: f32 = 0.32;

/// An RGB image.
pub(crate) struct Canvas {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels; row 0 is at the top.
    pub height: usize,
    pixels: Vec<Rgb>,
}

impl Canvas {
    /// Creates an image of one colour.
    pub fn new(width: usize, height: usize, colour: Rgb) -> Self {
        Self {
            width,
            height,
            pixels: vec![colour; width * height],
        }
    }

    /// Returns the pixels, row by row.
    pub fn pixels(&self) -> &[Rgb] {
        &self.pixels
    }

    /// Returns the pixel at `(x, y)`, or `None` outside the image.
    fn pixel(&mut self, x: i64, y: i64) -> Option<&mut Rgb> {
        let (column, row) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        if column >= self.width || row >= self.height {
            return None;
        }
        self.pixels.get_mut(row * self.width + column)
    }

    /// Returns `count` pixels of row `y` from column `x`; all must be inside the image.
    pub fn row_mut(&mut self, x: usize, y: usize, count: usize) -> &mut [Rgb] {
        let start = y * self.width + x;
        &mut self.pixels[start..start + count]
    }

    /// Blends `colour` into a pixel with opacity `cover`, 0 to 1; pixels outside the image are ignored.
    pub fn mix(&mut self, x: i64, y: i64, colour: Rgb, cover: f32) {
        if let Some(pixel) = self.pixel(x, y) {
            for (old, new) in pixel.iter_mut().zip(colour) {
                *old = (f32::from(*old) + (f32::from(new) - f32::from(*old)) * cover).round() as u8;
            }
        }
    }

    /// Lightens a dark pixel and darkens a light one, so a line is visible on any colour.
    pub fn contrast(&mut self, x: i64, y: i64, cover: f32) {
        if let Some(&mut [r, g, b]) = self.pixel(x, y) {
            let luminance = 0.3 * f32::from(r) + 0.59 * f32::from(g) + 0.11 * f32::from(b);
            let colour = if luminance < 128.0 { [255; 3] } else { [0; 3] };
            self.mix(x, y, colour, cover);
        }
    }

    /// Fills a rectangle (x, y, width, height) with an opacity.
    pub fn shade(&mut self, [x, y, width, height]: [i64; 4], colour: Rgb, opacity: f32) {
        for row in y..y + height {
            for column in x..x + width {
                self.mix(column, row, colour, opacity);
            }
        }
    }

    /// Copies an image with its upper left corner to `(x, y)`.
    pub fn paste(&mut self, x: i64, y: i64, image: &Canvas) {
        for (row, line) in image.pixels.chunks_exact(image.width.max(1)).enumerate() {
            for (column, colour) in line.iter().enumerate() {
                if let Some(pixel) = self.pixel(x + column as i64, y + row as i64) {
                    *pixel = *colour;
                }
            }
        }
    }

    /// Draws polylines; where they overlap, they are not darker.
    pub fn lines(&mut self, lines: &[Vec<[f32; 2]>], width: f32, colour: Rgb) {
        let reach = 0.5 * width + 0.5;
        let mut cover = vec![0f32; self.width * self.height];
        let clamped = |x: f32, end: usize| (x.max(0.0) as usize).min(end);
        for ends in lines.iter().flat_map(|line| line.windows(2)) {
            let ([x, y], [right, down]) =
                (ends[0], [ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]]);
            let square = right * right + down * down;
            let (top, bottom) = (y.min(y + down) - reach, y.max(y + down) + reach);
            for row in clamped(top.floor(), self.height)..clamped(bottom.ceil(), self.height) {
                // the part of the segment that is near this row
                let part = |edge: f32| if down == 0.0 { 0.0 } else { (edge - y) / down };
                let [a, b] = [part(row as f32 - reach), part(row as f32 + 1.0 + reach)];
                let [a, b] = if down == 0.0 {
                    [0.0, 1.0]
                } else {
                    [a.min(b), a.max(b)]
                };
                let [a, b] = [a, b].map(|t| x + t.clamp(0.0, 1.0) * right);
                let (first, last) = ((a.min(b) - reach).floor(), (a.max(b) + reach).ceil());
                for column in clamped(first, self.width)..clamped(last, self.width) {
                    let from = [column as f32 + 0.5 - x, row as f32 + 0.5 - y];
                    let along = (from[0] * right + from[1] * down) / square;
                    let along = if square > 0.0 {
                        along.clamp(0.0, 1.0)
                    } else {
                        0.0
                    };
                    let away = [from[0] - along * right, from[1] - along * down];
                    let distance = (away[0] * away[0] + away[1] * away[1]).sqrt();
                    let pixel = &mut cover[row * self.width + column];
                    *pixel = pixel.max((reach - distance).clamp(0.0, 1.0));
                }
            }
        }
        let covered = cover.iter().enumerate().filter(|(_, cover)| **cover > 0.0);
        for (pixel, &cover) in covered {
            let (x, y) = (pixel % self.width, pixel / self.width);
            self.mix(x as i64, y as i64, colour, cover);
        }
    }

    /// Draws a text; `(x, y)` is on its baseline.
    pub fn text(
        &mut self,
        text: &str,
        [x, y]: [f32; 2],
        style: &Style,
        anchor: Anchor,
        direction: TextDirection,
    ) {
        let (glyphs, width) = layout(text, style);
        let shift = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        for glyph in glyphs {
            let Some(outline) = style.font.outline_glyph(glyph) else {
                continue;
            };
            let bounds = outline.px_bounds();
            outline.draw(|column, row, cover| {
                let along = bounds.min.x + column as f32 - shift;
                let down = bounds.min.y + row as f32;
                let (px, py) = match direction {
                    TextDirection::Right => (x + along, y + down),
                    TextDirection::Up => (x + down, y - along),
                };
                // the font is light: more opacity makes small letters readable
                self.mix(
                    px.round() as i64,
                    py.round() as i64,
                    style.colour,
                    cover.clamp(0.0, 1.0).powf(0.7),
                );
            });
        }
    }
}

/// Returns the width of a text in pixels.
pub(crate) fn text_width(text: &str, style: &Style) -> f32 {
    layout(text, style).1
}

/// Returns the glyphs of a text on the baseline, starting at 0, and its width. `^{…}` is a superscript.
fn layout(text: &str, style: &Style) -> (Vec<Glyph>, f32) {
    let mut glyphs = Vec::new();
    let mut x = 0.0;
    let mut last: Option<(GlyphId, bool)> = None;
    let mut raised = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '^' && characters.next_if_eq(&'{').is_some() {
            raised = true;
            continue;
        }
        if raised && character == '}' {
            raised = false;
            continue;
        }
        let size = if raised {
            style.size * EXPONENT_SIZE
        } else {
            style.size
        };
        let font = style.font.as_scaled(PxScale::from(size));
        let id = font.glyph_id(character);
        if let Some((previous, _)) = last.filter(|(_, other)| *other == raised) {
            x += font.kern(previous, id);
        }
        let rise = if raised {
            style.size * EXPONENT_RISE
        } else {
            0.0
        };
        glyphs.push(id.with_scale_and_position(size, point(x, -rise)));
        x += font.h_advance(id);
        last = Some((id, raised));
    }
    (glyphs, x)
}
