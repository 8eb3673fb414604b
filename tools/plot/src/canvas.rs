//! A picture of pixels: rectangles, lines and text.

use ab_glyph::{Font, FontRef, Glyph, GlyphId, PxScale, ScaleFont, point};

/// An RGB colour.
pub(crate) type Rgb = [u8; 3];

/// Where a text stands relative to its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// Which way a text runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TextDirection {
    /// To the right.
    Right,
    /// Upwards.
    Up,
}

/// Text of one size and colour.
pub(crate) struct Style<'a> {
    /// The font.
    pub font: &'a FontRef<'static>,
    /// Height from the lowest to the highest letter in pixels.
    pub size: f32,
    /// The colour.
    pub colour: Rgb,
}

/// Size of an exponent relative to its text.
const EXPONENT_SIZE: f32 = 0.72;
/// Rise of an exponent relative to its text.
const EXPONENT_RISE: f32 = 0.32;

/// A picture.
pub(crate) struct Canvas {
    /// Pixels in a row.
    pub width: usize,
    /// Rows, from the top.
    pub height: usize,
    pixels: Vec<Rgb>,
}

impl Canvas {
    /// A picture of one colour.
    pub fn new(width: usize, height: usize, colour: Rgb) -> Self {
        Self {
            width,
            height,
            pixels: vec![colour; width * height],
        }
    }

    /// The pixels, row by row.
    pub fn pixels(&self) -> &[Rgb] {
        &self.pixels
    }

    /// The pixel at a place, or `None` outside.
    fn pixel(&mut self, x: i64, y: i64) -> Option<&mut Rgb> {
        let (column, row) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        if column >= self.width || row >= self.height {
            return None;
        }
        self.pixels.get_mut(row * self.width + column)
    }

    /// `count` pixels of a row from column `x`, all inside of the picture.
    pub fn row_mut(&mut self, x: usize, y: usize, count: usize) -> &mut [Rgb] {
        let start = y * self.width + x;
        &mut self.pixels[start..start + count]
    }

    /// Mixes `colour` into a pixel; `cover` 0 to 1. Nothing happens outside of the picture.
    pub fn mix(&mut self, x: i64, y: i64, colour: Rgb, cover: f32) {
        if let Some(pixel) = self.pixel(x, y) {
            for (old, new) in pixel.iter_mut().zip(colour) {
                *old = (f32::from(*old) + (f32::from(new) - f32::from(*old)) * cover).round() as u8;
            }
        }
    }

    /// Lightens a dark pixel and darkens a light one, so that a line shows on any colour.
    pub fn contrast(&mut self, x: i64, y: i64, cover: f32) {
        if let Some(&mut [r, g, b]) = self.pixel(x, y) {
            let luminance = 0.3 * f32::from(r) + 0.59 * f32::from(g) + 0.11 * f32::from(b);
            let colour = if luminance < 128.0 { [255; 3] } else { [0; 3] };
            self.mix(x, y, colour, cover);
        }
    }

    /// Fills a rectangle.
    pub fn fill(&mut self, x: i64, y: i64, width: i64, height: i64, colour: Rgb) {
        for row in y..y + height {
            for column in x..x + width {
                self.mix(column, row, colour, 1.0);
            }
        }
    }

    /// Draws the outline of a rectangle, `line` pixels wide and just outside of it.
    pub fn frame(&mut self, x: i64, y: i64, width: i64, height: i64, line: i64, colour: Rgb) {
        self.fill(x - line, y - line, width + 2 * line, line, colour);
        self.fill(x - line, y + height, width + 2 * line, line, colour);
        self.fill(x - line, y, line, height, colour);
        self.fill(x + width, y, line, height, colour);
    }

    /// Writes a text; `(x, y)` is on its base line.
    pub fn text(
        &mut self,
        text: &str,
        (x, y): (f32, f32),
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
                // The font is light: a little more cover makes small letters readable.
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

/// The width of a text in pixels.
pub(crate) fn text_width(text: &str, style: &Style) -> f32 {
    layout(text, style).1
}

/// The glyphs of a text on the base line from 0, and its width. `^{…}` is raised and smaller.
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
