//! Intervals of numbers.

use serde_json::Value as Json;

/// Interval of numbers; a flag is `true` if the end itself is excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NumberRange {
    pub least: Option<(f64, bool)>,
    pub most: Option<(f64, bool)>,
}

impl NumberRange {
    /// Returns `true` if `x` lies in the interval.
    pub fn contains(&self, x: f64) -> bool {
        self.least
            .is_none_or(|(end, open)| x > end || (x == end && !open))
            && self
                .most
                .is_none_or(|(end, open)| x < end || (x == end && !open))
    }

    /// Describes the interval, such as `above 0 and at most 1`; `None` if it is unbounded.
    pub fn text(&self) -> Option<String> {
        let least = self.least.map(|(end, open)| {
            format!("{} {}", if open { "above" } else { "at least" }, plain(end))
        });
        let most = self.most.map(|(end, open)| {
            format!("{} {}", if open { "below" } else { "at most" }, plain(end))
        });
        match (least, most) {
            (Some(least), Some(most)) => Some(format!("{least} and {most}")),
            (least, most) => least.or(most),
        }
    }

    /// Returns the intersection of both intervals.
    pub fn within(self, outer: NumberRange) -> NumberRange {
        let tighter = |a: Option<(f64, bool)>, b: Option<(f64, bool)>, sign: f64| match (a, b) {
            (Some(a), Some(b)) if a.0 == b.0 => Some((a.0, a.1 || b.1)),
            (Some(a), Some(b)) => Some(if (a.0 > b.0) == (sign > 0.0) { a } else { b }),
            (a, b) => a.or(b),
        };
        NumberRange {
            least: tighter(self.least, outer.least, 1.0),
            most: tighter(self.most, outer.most, -1.0),
        }
    }

    /// Reads the interval from a JSON schema.
    pub fn of(schema: &Json) -> NumberRange {
        let end = |closed: &str, open: &str| {
            let number = |key: &str, excluded| schema[key].as_f64().map(|end| (end, excluded));
            number(open, true).or(number(closed, false))
        };
        NumberRange {
            least: end("minimum", "exclusiveMinimum"),
            most: end("maximum", "exclusiveMaximum"),
        }
    }

    /// Returns the range of an integer type given by its JSON schema format.
    pub fn of_format(format: Option<&str>) -> NumberRange {
        let (least, most) = match format {
            Some("int32") => (f64::from(i32::MIN), f64::from(i32::MAX)),
            Some("uint32") => (0.0, f64::from(u32::MAX)),
            _ => return NumberRange::default(),
        };
        NumberRange {
            least: Some((least, false)),
            most: Some((most, false)),
        }
    }
}

/// Formats a number; integers without `.0`.
fn plain(x: f64) -> String {
    let text = format!("{x:?}");
    text.strip_suffix(".0").unwrap_or(&text).to_string()
}
