//! Figures as lists of shapes, written as pixels or as SVG.

use crate::canvas::{Anchor, Canvas, Rgb, Style, TextDirection, font};
use crate::error::{PlotError, Result};
use std::fmt::Write;

/// A shape; later ones cover earlier ones.
pub(crate) enum Shape {
    /// A filled rectangle: x, y, width, height.
    Rectangle([i64; 4], Rgb, f32),
    /// An image with its upper left corner.
    Image([i64; 2], Canvas),
    /// Polylines of one width and colour.
    Lines {
        lines: Vec<Vec<[f32; 2]>>,
        width: f32,
        colour: Rgb,
    },
    /// A text on its baseline.
    Text {
        text: String,
        at: [f32; 2],
        size: f32,
        colour: Rgb,
        anchor: Anchor,
        direction: TextDirection,
    },
}

/// A figure as a list of shapes on a white ground.
pub(crate) struct Drawing {
    /// Width in pixels.
    pub width: i64,
    /// Height in pixels.
    pub height: i64,
    shapes: Vec<Shape>,
}

impl Drawing {
    /// Creates an empty figure.
    pub fn new(width: i64, height: i64) -> Self {
        Self {
            width,
            height,
            shapes: vec![],
        }
    }

    /// Fills a rectangle.
    pub fn fill(&mut self, x: i64, y: i64, width: i64, height: i64, colour: Rgb) {
        self.shade([x, y, width, height], colour, 1.0);
    }

    /// Fills a rectangle (x, y, width, height) with an opacity.
    pub fn shade(&mut self, rectangle: [i64; 4], colour: Rgb, opacity: f32) {
        self.shapes
            .push(Shape::Rectangle(rectangle, colour, opacity));
    }

    /// Draws a border of `line` pixels around a rectangle (x, y, width, height).
    pub fn frame(&mut self, [x, y, width, height]: [i64; 4], line: i64, colour: Rgb) {
        self.fill(x - line, y - line, width + 2 * line, line, colour);
        self.fill(x - line, y + height, width + 2 * line, line, colour);
        self.fill(x - line, y, line, height, colour);
        self.fill(x + width, y, line, height, colour);
    }

    /// Draws an image with its upper left corner.
    pub fn image(&mut self, x: i64, y: i64, image: Canvas) {
        self.shapes.push(Shape::Image([x, y], image));
    }

    /// Draws polylines.
    pub fn lines(&mut self, lines: Vec<Vec<[f32; 2]>>, width: f32, colour: Rgb) {
        self.shapes.push(Shape::Lines {
            lines,
            width,
            colour,
        });
    }

    /// Draws a text; `at` is on its baseline.
    pub fn text(
        &mut self,
        text: &str,
        at: [f32; 2],
        style: &Style,
        anchor: Anchor,
        direction: TextDirection,
    ) {
        if !text.is_empty() {
            self.shapes.push(Shape::Text {
                text: text.to_string(),
                at,
                size: style.size,
                colour: style.colour,
                anchor,
                direction,
            });
        }
    }

    /// Adds all shapes of another figure, moved to the right and down.
    pub fn append(&mut self, other: Drawing, right: i64, down: i64) {
        let shift = |[x, y]: [f32; 2]| [x + right as f32, y + down as f32];
        self.shapes
            .extend(other.shapes.into_iter().map(|shape| match shape {
                Shape::Rectangle([x, y, width, height], colour, opacity) => {
                    Shape::Rectangle([x + right, y + down, width, height], colour, opacity)
                }
                Shape::Image([x, y], image) => Shape::Image([x + right, y + down], image),
                Shape::Lines {
                    mut lines,
                    width,
                    colour,
                } => {
                    lines
                        .iter_mut()
                        .flatten()
                        .for_each(|point| *point = shift(*point));
                    Shape::Lines {
                        lines,
                        width,
                        colour,
                    }
                }
                Shape::Text {
                    text,
                    at,
                    size,
                    colour,
                    anchor,
                    direction,
                } => Shape::Text {
                    text,
                    at: shift(at),
                    size,
                    colour,
                    anchor,
                    direction,
                },
            }));
    }

    /// Writes the figure as PNG.
    pub fn png(&self) -> Result<Vec<u8>> {
        let font = font()?;
        let mut canvas = Canvas::new(self.width as usize, self.height as usize, [255; 3]);
        for shape in &self.shapes {
            match shape {
                Shape::Rectangle([x, y, width, height], colour, opacity) => {
                    canvas.shade([*x, *y, *width, *height], *colour, *opacity);
                }
                Shape::Image([x, y], image) => canvas.paste(*x, *y, image),
                Shape::Lines {
                    lines,
                    width,
                    colour,
                } => canvas.lines(lines, *width, *colour),
                Shape::Text {
                    text,
                    at,
                    size,
                    colour,
                    anchor,
                    direction,
                } => {
                    let style = Style {
                        font: &font,
                        size: *size,
                        colour: *colour,
                    };
                    canvas.text(text, *at, &style, *anchor, *direction);
                }
            }
        }
        encode(&canvas)
    }

    /// Writes the figure as SVG: pictures as embedded PNG images, all else as vectors and text.
    pub fn svg(&self) -> Result<Vec<u8>> {
        let (width, height) = (self.width, self.height);
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" \
             height=\"{height}\" viewBox=\"0 0 {width} {height}\" font-family=\"Ubuntu, Helvetica, Arial, sans-serif\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        for shape in &self.shapes {
            out += &element(shape)?;
        }
        out += "</svg>\n";
        Ok(out.into_bytes())
    }
}

/// Returns a colour in the notation of SVG.
fn hexadecimal([r, g, b]: Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Returns the SVG element of a shape.
fn element(shape: &Shape) -> Result<String> {
    Ok(match shape {
        Shape::Rectangle([x, y, width, height], colour, opacity) => {
            let fill = hexadecimal(*colour);
            let opacity = match *opacity < 1.0 {
                true => format!(" fill-opacity=\"{opacity}\""),
                false => String::new(),
            };
            format!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"{opacity}/>\n"
            )
        }
        Shape::Image([x, y], image) => {
            let (width, height) = (image.width, image.height);
            let data = base64(&encode(image)?);
            format!(
                "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\" \
                 href=\"data:image/png;base64,{data}\"/>\n"
            )
        }
        Shape::Lines {
            lines,
            width,
            colour,
        } => {
            let (stroke, path) = (hexadecimal(*colour), path(lines));
            format!(
                "<path fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" stroke-linejoin=\"round\" d=\"{path}\"/>\n"
            )
        }
        Shape::Text {
            text,
            at: [x, y],
            size,
            colour,
            anchor,
            direction,
        } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let turn = match direction {
                TextDirection::Right => String::new(),
                TextDirection::Up => format!(" transform=\"rotate(-90 {x:.2} {y:.2})\""),
            };
            let (fill, text) = (hexadecimal(*colour), marked(text, *size));
            let size = size * FONT_HEIGHT;
            format!(
                "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size:.2}\" text-anchor=\"{anchor}\" fill=\"{fill}\"{turn}>{text}</text>\n"
            )
        }
    })
}

/// Returns polylines as the path of SVG.
fn path(lines: &[Vec<[f32; 2]>]) -> String {
    let mut out = String::new();
    for line in lines {
        for (i, [x, y]) in line.iter().enumerate() {
            let command = if i == 0 { 'M' } else { 'L' };
            // writing to a string cannot fail
            let _ = write!(out, "{command}{x:.2} {y:.2}");
        }
    }
    out
}

/// Size of a font in SVG, relative to its ascent minus its descent.
const FONT_HEIGHT: f32 = 0.87;
/// Size and rise of exponents in SVG, relative to the text.
const EXPONENT: [f32; 2] = [0.72, 0.35];

/// Returns a text with the marks of SVG; `^{…}` is a superscript.
fn marked(text: &str, size: f32) -> String {
    let escape = |text: &str| {
        let text = text
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;");
        // other control characters are not allowed in XML
        text.replace(|c: char| c.is_control(), " ")
    };
    let mut out = String::new();
    let (mut rest, mut down) = (text, 0.0);
    let [small, rise] = EXPONENT.map(|factor| factor * size * FONT_HEIGHT);
    // a shift holds for all that follows, until the next one
    let plain = |out: &mut String, text: &str, down: &mut f32| {
        match (text.is_empty(), *down == 0.0) {
            (true, _) => return,
            (_, true) => *out += &escape(text),
            _ => *out += &format!("<tspan dy=\"{down:.2}\">{}</tspan>", escape(text)),
        }
        *down = 0.0;
    };
    while let Some((before, (raised, after))) = rest
        .split_once("^{")
        .and_then(|(a, b)| Some((a, b.split_once('}')?)))
    {
        plain(&mut out, before, &mut down);
        let raised = escape(raised);
        let up = down - rise;
        out += &format!("<tspan font-size=\"{small:.2}\" dy=\"{up:.2}\">{raised}</tspan>");
        (rest, down) = (after, rise);
    }
    plain(&mut out, rest, &mut down);
    out
}

/// Encodes an image as PNG.
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

/// Encodes bytes in base 64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |i: usize| u32::from(*three.get(i).unwrap_or(&0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i > three.len() {
                '='
            } else {
                char::from(digit)
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{base64, marked};

    #[test]
    fn bytes_are_encoded_in_base_64() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
    }

    #[test]
    fn texts_are_escaped_and_exponents_raised() {
        assert_eq!(marked("a<b & c", 10.0), "a&lt;b &amp; c");
        let raised = marked("g/cm^{3}]", 10.0);
        assert!(
            raised.starts_with("g/cm<tspan") && raised.contains(">3</tspan>"),
            "{raised}"
        );
        assert!(raised.ends_with(">]</tspan>"), "{raised}");
    }
}
