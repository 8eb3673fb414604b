//! Dots at the positions of particles, and their legend.

use crate::canvas::{Anchor, Canvas, Rgb, TextDirection, text_width};
use crate::figure::FigureLayout;
use crate::particles;
use crate::view::PlotView;

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
                canvas.mix(self.left + column, self.top + row, dot.colour, cover);
            }
        }
    }

    /// Draws the names of species in their colours, in the upper left corner of the picture.
    pub fn legend(&self, canvas: &mut Canvas, species: &[(usize, String)]) {
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
        for row in 0..ground[1] as i64 {
            for column in 0..ground[0] as i64 {
                canvas.mix(self.left + column, self.top + row, GROUND, COVER);
            }
        }
        for (line, (number, path)) in species.iter().enumerate() {
            style.colour = self.dot(*number, None).colour;
            let x = self.left as f32 + units(12.0);
            let y = self.top as f32 + units(30.0) * (line as f32 + 0.85);
            let text = particles::name(path);
            canvas.text(text, (x, y), &style, Anchor::Start, TextDirection::Right);
        }
    }
}
