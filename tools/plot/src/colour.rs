//! Colour maps.

use crate::canvas::Rgb;
use crate::error::{PlotError, Result, nearest};
use crate::ticks::{Tick, ticks};
use crate::{PlotOptions, Scale};
use colorous::Gradient;

/// Names of the colour maps. The suffix `-reversed` reverses a map. `red-blue` to `spectral` are diverging maps.
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

/// Number of colours in a table.
const SHADES: usize = 1024;

/// Colour of a pixel without a value.
pub(crate) const NO_VALUE: Rgb = [190; 3];

/// Colours of a range of values.
pub(crate) struct Palette {
    /// Value of the first colour.
    pub min: f64,
    /// Value of the last colour.
    pub max: f64,
    /// Scale between the two values.
    pub scale: Scale,
    /// `true` if each integer has one colour.
    integers: bool,
    shades: Vec<Rgb>,
}

/// Returns the colours of a colour map.
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
            "there is no colour map {name:?}{hint}; known are {list}"
        )));
    };
    let shade = |i: usize| {
        let colour =
            GRADIENTS[index].eval_rational(if reversed { SHADES - 1 - i } else { i }, SHADES);
        [colour.r, colour.g, colour.b]
    };
    Ok((0..SHADES).map(shade).collect())
}

/// Range of values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    /// Least and largest finite value.
    finite: Option<[f64; 2]>,
    /// Least and largest finite value above 0.
    positive: Option<[f64; 2]>,
    /// `true` if a value is infinite.
    infinite: bool,
}

/// Returns the range that contains two ranges.
fn joined(a: Option<[f64; 2]>, b: Option<[f64; 2]>) -> Option<[f64; 2]> {
    match (a, b) {
        (Some(a), Some(b)) => Some([a[0].min(b[0]), a[1].max(b[1])]),
        _ => a.or(b),
    }
}

impl Extent {
    /// Returns the range of these values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut found = Self::default();
        values.into_iter().for_each(|value| found.add(value));
        found
    }

    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        if value.is_finite() {
            let one = Some([value; 2]);
            self.finite = joined(self.finite, one);
            self.positive = joined(self.positive, one.filter(|_| value > 0.0));
        }
        self.infinite |= value.is_infinite();
    }

    /// Returns the range that contains both ranges.
    pub fn join(self, other: Self) -> Self {
        Self {
            finite: joined(self.finite, other.finite),
            positive: joined(self.positive, other.positive),
            infinite: self.infinite || other.infinite,
        }
    }

    /// Returns the range of all values times a factor above 0.
    pub fn scaled(self, factor: f64) -> Self {
        let scaled = |range: Option<[f64; 2]>| range.map(|range| range.map(|x| x * factor));
        Self {
            finite: scaled(self.finite),
            positive: scaled(self.positive),
            ..self
        }
    }

    /// Returns the largest magnitude; 0 without values.
    pub fn largest(&self) -> f64 {
        self.finite.map_or(0.0, |[a, b]| a.abs().max(b.abs()))
    }

    /// Returns the range of the values that a scale can show.
    pub fn shown(&self, scale: Scale) -> Option<[f64; 2]> {
        match scale {
            Scale::Linear => self.finite,
            Scale::Log => self.positive,
        }
    }

    /// Returns the range of the values that a scale can show.
    ///
    /// # Errors
    /// There is no such value; the error tells why.
    pub fn require(&self, scale: Scale, name: &str) -> Result<[f64; 2]> {
        let what = match (self.finite, self.infinite) {
            (None, false) => "is not a number in every cell of this picture",
            (None, true) => {
                "is infinite in every cell of this picture, and infinity has no colour: choose another snapshot or position"
            }
            _ => "has no positive value in this picture: use a linear scale, without --log",
        };
        let found = self.shown(scale);
        found.ok_or_else(|| PlotError::Option(format!("{name} {what}")))
    }
}

impl Palette {
    /// Creates the colours of values in this range. The defaults for `signed` values are a diverging map and a range symmetric around
    /// zero. With `integers`, each integer has one colour.
    pub fn new(
        options: &PlotOptions,
        extent: &Extent,
        signed: bool,
        integers: bool,
    ) -> Result<Self> {
        let scale = options.scale;
        let [least, largest] = extent.require(scale, &options.field)?;
        let both = signed && scale == Scale::Linear;
        let (mut min, mut max) = (options.min.unwrap_or(least), options.max.unwrap_or(largest));
        if both && options.min.is_none() && options.max.is_none() {
            max = min.abs().max(max.abs());
            min = -max;
        }
        let steps =
            integers && scale == Scale::Linear && options.min.is_none() && options.max.is_none();
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
            integers: steps,
            shades,
        })
    }

    /// Returns the ticks of the colour bar, with about `count` labels.
    pub fn ticks(&self, count: usize) -> Vec<Tick> {
        let mut marks = ticks(self.min, self.max, self.scale, count);
        if self.integers && self.max - self.min < 20.0 {
            let integers = self.min.ceil() as i64..=self.max.floor() as i64;
            marks = integers
                .map(|number| Tick {
                    value: number as f64,
                    label: number.to_string(),
                })
                .collect();
        }
        marks
    }

    /// Returns the position of a value on the scale, 0 at `min` and 1 at `max`, without clamping.
    pub fn fraction(&self, value: f64) -> f64 {
        self.scale.fraction([self.min, self.max], value)
    }

    /// Returns the colour of a value.
    pub fn colour(&self, value: f64) -> Rgb {
        let fraction = self.fraction(value);
        if fraction.is_nan() {
            NO_VALUE
        } else {
            self.shade(fraction)
        }
    }

    /// Returns the colour at a position from 0 to 1.
    pub fn shade(&self, fraction: f64) -> Rgb {
        // the cast saturates
        self.shades[((fraction * SHADES as f64) as usize).min(SHADES - 1)]
    }
}

/// Returns a table with `count` distinct colours, evenly sampled from `shades`.
fn stepped(shades: &[Rgb], count: usize) -> Vec<Rgb> {
    let shade = |i: usize| shades[(2 * (i * count / SHADES) + 1) * SHADES / (2 * count)];
    (0..SHADES).map(shade).collect()
}

/// Checks that the range is finite and not empty, and positive for a logarithmic scale.
pub(crate) fn check_range(min: f64, max: f64, scale: Scale) -> Result<()> {
    if min.is_finite() && max.is_finite() && min < max && (scale == Scale::Linear || min > 0.0) {
        return Ok(());
    }
    let positive = match scale {
        Scale::Log => ", and both must be positive for a logarithmic scale",
        Scale::Linear => "",
    };
    let text = format!("values from {min:?} to {max:?}: min must be less than max{positive}");
    Err(PlotError::Option(text))
}

/// Returns a range around a single value; limits given in the options are kept.
pub(crate) fn widened(value: f64, options: &PlotOptions) -> (f64, f64) {
    let room = if value == 0.0 { 1.0 } else { 0.1 * value.abs() };
    (
        options.min.unwrap_or(value - room),
        options.max.unwrap_or(value + room),
    )
}
