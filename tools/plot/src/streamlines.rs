//! Streamlines of a vector field over a picture.

use crate::arrows::vectors;
use crate::error::Result;
use crate::view::PlotView;
use crate::{CustomField, PlotOptions};
use nestar_snapshot::Snapshot;

/// Pixels of the picture per sample of the field.
const SAMPLE: usize = 3;
/// Number of fields of the longer side of the picture, of which each has at most one line.
const FIELDS: usize = 36;
/// Length of a step in samples.
const STEP: f64 = 0.4;
/// Lines shorter than this many fields are left out.
const SHORTEST: f64 = 3.0;
/// Length and half width of the head of a line, in samples.
const HEAD: [f64; 2] = [3.5, 1.6];

/// A vector field on the samples of a picture.
pub(crate) struct Streamlines {
    /// Number of samples to the right and upwards.
    count: [usize; 2],
    /// Directions in samples, from the bottom row upwards; of length 1, or 0 where there is none.
    directions: Vec<[f64; 2]>,
}

/// Lines in pixels from the upper left corner of the picture.
type Lines = Vec<Vec<[f32; 2]>>;

impl Streamlines {
    /// Samples the vector field `name`.
    pub fn new(
        snapshot: &Snapshot,
        name: &str,
        options: &PlotOptions,
        custom: &[CustomField],
        view: &PlotView,
    ) -> Result<Self> {
        let count = view.pixels.map(|pixels| (pixels / SAMPLE).max(2));
        let coarse = view.with_pixels(count);
        let option = ["--streamlines", name];
        let (vectors, _) = vectors(snapshot, option, options, custom, &coarse)?;
        let scale = coarse.scale();
        let direction = |[right, up]: [f64; 2]| normalised([right * scale[0], up * scale[1]]);
        Ok(Self {
            count,
            directions: vectors.into_iter().map(direction).collect(),
        })
    }

    /// Returns the direction at a place in samples, or `None` outside of the picture and where the field is 0.
    fn direction(&self, place: [f64; 2]) -> Option<[f64; 2]> {
        let inside = |i: usize| (0.0..self.count[i] as f64).contains(&place[i]);
        if !(inside(0) && inside(1)) {
            return None;
        }
        let lower = place.map(|x| (x - 0.5).floor());
        let mut sum = [0.0; 2];
        for corner in 0..4 {
            let (mut weight, mut index) = (1.0, [0; 2]);
            for i in 0..2 {
                let upper = corner >> i & 1;
                let part = place[i] - 0.5 - lower[i];
                weight *= if upper == 1 { part } else { 1.0 - part };
                // the cast saturates at 0
                index[i] = ((lower[i] + upper as f64) as usize).min(self.count[i] - 1);
            }
            let vector = self.directions[index[1] * self.count[0] + index[0]];
            sum = [sum[0] + weight * vector[0], sum[1] + weight * vector[1]];
        }
        Some(normalised(sum)).filter(|direction| *direction != [0.0; 2])
    }

    /// Returns the line from a place along the field (`sign` 1) or against it (-1), until it leaves the picture or enters a taken field.
    fn trace(&self, from: [f64; 2], sign: f64, fields: &Fields) -> Vec<[f64; 2]> {
        let mut line = vec![from];
        let (mut place, mut left_start) = (from, false);
        let start = fields.of(from);
        let limit = 8 * (self.count[0] + self.count[1]);
        let along = |place: [f64; 2], direction: [f64; 2], length: f64| {
            [0, 1].map(|i| place[i] + sign * length * direction[i])
        };
        while line.len() < limit {
            let Some(first) = self.direction(place) else {
                break;
            };
            let Some(middle) = self.direction(along(place, first, 0.5 * STEP)) else {
                break;
            };
            place = along(place, middle, STEP);
            if self.direction(place).is_none() || fields.taken[fields.of(place)] {
                break;
            }
            // a closed line ends where it began
            left_start |= fields.of(place) != start;
            if left_start && fields.of(place) == start {
                break;
            }
            line.push(place);
        }
        line
    }

    /// Returns the lines and their heads.
    pub fn lines(&self, view: &PlotView) -> Lines {
        let mut fields = Fields::new(self.count);
        let total = fields.taken.len();
        let mut lines = vec![];
        for number in 0..total {
            // a scattered order: no line begins beside the one before
            let field = number * SCATTER % total;
            if fields.taken[field] {
                continue;
            }
            let seed = fields.middle(field);
            let mut line = self.trace(seed, -1.0, &fields);
            line.reverse();
            line.pop();
            line.extend(self.trace(seed, 1.0, &fields));
            if (line.len() as f64) * STEP < SHORTEST * fields.side {
                continue;
            }
            for place in &line {
                let field = fields.of(*place);
                fields.taken[field] = true;
            }
            lines.extend(self.head(&line));
            lines.push(line);
        }
        let pixels = [0, 1].map(|i| view.pixels[i] as f64 / self.count[i] as f64);
        let pixel = |[x, y]: [f64; 2]| {
            [
                (x * pixels[0]) as f32,
                (view.pixels[1] as f64 - y * pixels[1]) as f32,
            ]
        };
        lines
            .into_iter()
            .map(|line| line.into_iter().map(pixel).collect())
            .collect()
    }

    /// Returns the head of an arrow in the middle of a line.
    fn head(&self, line: &[[f64; 2]]) -> Option<Vec<[f64; 2]>> {
        let tip = line[line.len() / 2];
        let [right, up] = self.direction(tip)?;
        let [length, width] = HEAD;
        let back = |aside: f64| {
            [
                tip[0] - length * right - aside * up,
                tip[1] - length * up + aside * right,
            ]
        };
        Some(vec![back(width), tip, back(-width)])
    }
}

/// A prime number larger than the number of fields of a row.
const SCATTER: usize = 7919;

/// Square fields of a picture, of which each has at most one line.
struct Fields {
    taken: Vec<bool>,
    columns: usize,
    /// Side of a field in samples.
    side: f64,
}

impl Fields {
    fn new(count: [usize; 2]) -> Self {
        let side = count[0].max(count[1]) as f64 / FIELDS as f64;
        let [columns, rows] = count.map(|n| (n as f64 / side).ceil().max(1.0) as usize);
        Self {
            taken: vec![false; columns * rows],
            columns,
            side,
        }
    }

    /// Returns the field of a place inside of the picture.
    fn of(&self, place: [f64; 2]) -> usize {
        let [column, row] = place.map(|x| (x / self.side) as usize);
        row * self.columns + column.min(self.columns - 1)
    }

    fn middle(&self, field: usize) -> [f64; 2] {
        [field % self.columns, field / self.columns].map(|n| (n as f64 + 0.5) * self.side)
    }
}

/// Returns the vector of length 1 in this direction, or 0.
fn normalised([x, y]: [f64; 2]) -> [f64; 2] {
    let length = x.hypot(y);
    if length > 0.0 && length.is_finite() {
        [x / length, y / length]
    } else {
        [0.0; 2]
    }
}

#[cfg(test)]
mod tests {
    use super::{Streamlines, normalised};

    #[test]
    fn lines_of_a_rotation_are_circles_and_do_not_meet() {
        let count = [120, 90];
        let centre = [60.0, 45.0];
        let at = |i: usize| {
            [
                (i % 120) as f64 + 0.5 - centre[0],
                (i / 120) as f64 + 0.5 - centre[1],
            ]
        };
        let directions = (0..120 * 90)
            .map(|i| normalised([-at(i)[1], at(i)[0]]))
            .collect();
        let lines = Streamlines { count, directions };
        let fields = super::Fields::new(count);
        for seed in [[80.0, 45.0], [60.0, 80.0], [10.0, 10.0]] {
            let line = lines.trace(seed, 1.0, &fields);
            let radius = |[x, y]: [f64; 2]| (x - centre[0]).hypot(y - centre[1]);
            assert!(line.len() > 20);
            for place in line {
                assert!(
                    (radius(place) - radius(seed)).abs() < 0.2,
                    "{seed:?} {place:?}"
                );
            }
        }
    }
}
