//! From values to colours.

use crate::canvas::Rgb;
use crate::error::{PlotError, Result, nearest};
use crate::ticks::{Tick, ticks};
use crate::{PlotOptions, Scale};
use colorous::Gradient;

/// The colour maps by name. Those with two ends are for values of both signs. Any name may be followed by `-reversed`.
pub const COLOUR_MAPS: [&str; 17] = [
    "viridis",
    "inferno",
    "magma",
    "plasma",
    "cividis",
    "turbo",
    "cubehelix",
    "warm",
    "cool",
    "greys",
    "blues",
    "reds",
    "red-blue",
    "purple-orange",
    "brown-green",
    "red-yellow-blue",
    "spectral",
];

const GRADIENTS: [Gradient; COLOUR_MAPS.len()] = [
    colorous::VIRIDIS,
    colorous::INFERNO,
    colorous::MAGMA,
    colorous::PLASMA,
    colorous::CIVIDIS,
    colorous::TURBO,
    colorous::CUBEHELIX,
    colorous::WARM,
    colorous::COOL,
    colorous::GREYS,
    colorous::BLUES,
    colorous::REDS,
    colorous::RED_BLUE,
    colorous::PURPLE_ORANGE,
    colorous::BROWN_GREEN,
    colorous::RED_YELLOW_BLUE,
    colorous::SPECTRAL,
];

/// Colours of a table: more than the eye can tell apart.
const SHADES: usize = 1024;

/// The colour of a place without a value.
pub(crate) const NO_VALUE: Rgb = [190; 3];

/// The colours for a range of values.
pub(crate) struct Palette {
    /// The value of the first colour.
    pub min: f64,
    /// The value of the last colour.
    pub max: f64,
    /// How values between them are spaced.
    pub scale: Scale,
    /// Whether each whole number has one colour.
    whole: bool,
    shades: Vec<Rgb>,
}

/// The table of a colour map.
fn shades(name: &str) -> Result<Vec<Rgb>> {
    let (base, reversed) = match name.strip_suffix("-reversed") {
        Some(base) => (base, true),
        None => (name, false),
    };
    let Some(index) = COLOUR_MAPS.iter().position(|known| *known == base) else {
        let known = COLOUR_MAPS.map(str::to_string);
        let hint = nearest(base, &known)
            .map_or(String::new(), |near| format!(" (did you mean {near:?}?)"));
        let list = known.join(", ");
        return Err(PlotError::Option(format!(
            "there is no colour map {name:?}{hint}; there are {list}"
        )));
    };
    let shade = |i: usize| {
        let colour =
            GRADIENTS[index].eval_rational(if reversed { SHADES - 1 - i } else { i }, SHADES);
        [colour.r, colour.g, colour.b]
    };
    Ok((0..SHADES).map(shade).collect())
}

/// The least and the greatest value that the scale can show, or `None` if there is none.
fn extremes(values: &[f64], scale: Scale) -> Option<(f64, f64)> {
    let shown = values
        .iter()
        .filter(|value| value.is_finite() && (scale == Scale::Linear || **value > 0.0));
    shown.fold(None, |found: Option<(f64, f64)>, &value| {
        let (min, max) = found.unwrap_or((value, value));
        Some((min.min(value), max.max(value)))
    })
}

impl Palette {
    /// Colours for these values. `signed` values get a map with two ends around zero, unless the options say otherwise;
    /// `whole` numbers one colour each.
    pub fn new(options: &PlotOptions, values: &[f64], signed: bool, whole: bool) -> Result<Self> {
        let scale = options.scale;
        let found = extremes(values, scale).ok_or_else(|| no_values(options, values))?;
        let both = signed && scale == Scale::Linear;
        let (mut min, mut max) = (
            options.min.unwrap_or(found.0),
            options.max.unwrap_or(found.1),
        );
        if both && options.min.is_none() && options.max.is_none() {
            max = min.abs().max(max.abs());
            min = -max;
        }
        let steps =
            whole && scale == Scale::Linear && options.min.is_none() && options.max.is_none();
        if steps {
            (min, max) = (min - 0.5, max + 0.5);
        }
        if min == max && (options.min.is_none() || options.max.is_none()) {
            (min, max) = widened(min, options);
        }
        check_range(min, max, scale)?;
        let default = if both { "red-blue-reversed" } else { "inferno" };
        let mut shades = shades(options.colour_map.as_deref().unwrap_or(default))?;
        if steps {
            shades = stepped(&shades, (max - min) as usize);
        }
        Ok(Self {
            min,
            max,
            scale,
            whole: steps,
            shades,
        })
    }

    /// Marks for the colour bar, about `count` of them labelled.
    pub fn ticks(&self, count: usize) -> Vec<Tick> {
        let mut marks = ticks(self.min, self.max, self.scale, count);
        if self.whole && self.max - self.min < 20.0 {
            let whole = self.min.ceil() as i64..=self.max.floor() as i64;
            marks = whole
                .map(|number| Tick {
                    value: number as f64,
                    label: number.to_string(),
                })
                .collect();
        }
        marks
    }

    /// Where a value stands between the first colour, 0, and the last, 1; not limited to that range.
    pub fn fraction(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.min) / (self.max - self.min),
            Scale::Log => (value / self.min).ln() / (self.max / self.min).ln(),
        }
    }

    /// The colour of a value.
    pub fn colour(&self, value: f64) -> Rgb {
        let fraction = self.fraction(value);
        if fraction.is_nan() {
            NO_VALUE
        } else {
            self.shade(fraction)
        }
    }

    /// The colour at a place between 0 and 1.
    pub fn shade(&self, fraction: f64) -> Rgb {
        // The cast saturates.
        self.shades[((fraction * SHADES as f64) as usize).min(SHADES - 1)]
    }
}

/// A table of `count` colours, evenly out of `shades`.
fn stepped(shades: &[Rgb], count: usize) -> Vec<Rgb> {
    let shade = |i: usize| shades[(2 * (i * count / SHADES) + 1) * SHADES / (2 * count)];
    (0..SHADES).map(shade).collect()
}

/// Refuses a range that has no colours.
fn check_range(min: f64, max: f64, scale: Scale) -> Result<()> {
    if min.is_finite() && max.is_finite() && min < max && (scale == Scale::Linear || min > 0.0) {
        return Ok(());
    }
    let positive = match scale {
        Scale::Log => ", both positive for a logarithmic scale",
        Scale::Linear => "",
    };
    let text = format!("colours from {min} to {max}: min must be less than max{positive}");
    Err(PlotError::Option(text))
}

/// A range around a single value, keeping the end that the options give.
fn widened(value: f64, options: &PlotOptions) -> (f64, f64) {
    let room = if value == 0.0 { 1.0 } else { 0.1 * value.abs() };
    (
        options.min.unwrap_or(value - room),
        options.max.unwrap_or(value + room),
    )
}

/// The error of an empty picture.
fn no_values(options: &PlotOptions, values: &[f64]) -> PlotError {
    let drawn = || values.iter().filter(|value| !value.is_nan());
    let what = if drawn().next().is_none() {
        "is no number in any cell of this picture"
    } else if drawn().all(|value| value.is_infinite()) {
        "is infinite in every cell of this picture, in which no colour stands for it: take a snapshot, or a place, where it is not"
    } else {
        "has no positive value in this picture: use a linear scale"
    };
    PlotError::Option(format!("{} {what}", options.field))
}
