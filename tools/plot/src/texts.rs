//! Texts around pictures: numbers, units, times.

use crate::{PlotOptions, code_units};
use nestar_deck::ShownUnit;
use nestar_snapshot::Snapshot;

/// Returns the unit of times; that of the end of the run, so that all pictures of a run have the same.
pub(crate) fn time_unit(snapshot: &Snapshot, options: &PlotOptions) -> ShownUnit {
    let attributes = snapshot.attributes();
    let deck: Option<toml::Table> = attributes.config.parse().ok();
    let end = deck
        .as_ref()
        .and_then(|deck| deck.get("time")?.get("end")?.as_float());
    let typical = end.unwrap_or(attributes.time);
    code_units(snapshot).shown("time", options.units, typical)
}

/// Returns a unit for display; empty for code units, which axes do not show.
pub(crate) fn without_code(name: &str) -> String {
    match name {
        "length" | "time" => String::new(),
        name => readable(name),
    }
}

/// Returns a unit with a blank before it.
pub(crate) fn spaced(unit: &str) -> String {
    match unit {
        "" => String::new(),
        unit => format!(" {unit}"),
    }
}

/// Returns a label with its unit in brackets.
pub(crate) fn labelled(what: &str, unit: &str) -> String {
    match unit {
        "" => what.into(),
        unit => format!("{what} [{unit}]"),
    }
}

/// Returns a label with its first letter in lower case.
pub(crate) fn lower(label: &str) -> String {
    let mut letters = label.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_lowercase().to_string());
    format!("{}{}", first.unwrap_or_default(), letters.as_str())
}

/// Formats a number with at most four significant digits, with an exponent as `×10^{3}`.
#[must_use]
pub fn rounded(value: f64) -> String {
    let text = if value == 0.0 || (1e-3..1e5).contains(&value.abs()) {
        let digits = (3.0 - value.abs().max(1e-3).log10().floor()).clamp(0.0, 6.0) as usize;
        let text = format!("{value:.digits$}");
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        } else {
            text
        }
    } else {
        let text = format!("{value:.3e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{mantissa}×10^{{{exponent}}}")
    };
    text.replace('-', "−")
}

/// Returns the text of the time of a snapshot, or of its redshift if it has one.
pub(crate) fn time_text(snapshot: &Snapshot, options: &PlotOptions) -> String {
    if let Some(redshift) = snapshot.attributes().facts.get("redshift") {
        return format!("z = {}", rounded(*redshift));
    }
    let time = time_unit(snapshot, options);
    let value = rounded(snapshot.attributes().time * time.factor);
    format!("t = {value}{}", spaced(&without_code(&time.name)))
}

/// Returns the text of a point times a factor.
pub(crate) fn point(point: [f64; 3], factor: f64) -> String {
    let numbers = point.map(|x| rounded(x * factor));
    format!("({})", numbers.join(", "))
}

/// Converts a unit such as `mass/length**3` or `g/cm3` for display, with exponents as `^{3}`; empty for pure numbers.
#[must_use]
pub fn readable(unit: &str) -> String {
    if unit == "1" {
        return String::new();
    }
    let mut text = String::new();
    let plain = unit.replace("**", "^");
    let mut letters = plain.chars().peekable();
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        let is_power = letter == '^' || letter.is_ascii_digit() && before.is_ascii_alphabetic();
        if is_power {
            text += "^{";
            text.extend((letter != '^').then_some(letter));
            while let Some(digit) = letters.next_if(|c| c.is_ascii_digit() || *c == '-') {
                text.push(if digit == '-' { '−' } else { digit });
            }
            text.push('}');
        } else {
            text.push(letter);
        }
        before = letter;
    }
    text.replace('*', " ")
}

/// Returns a formula with integer exponents as `^{2}`.
pub(crate) fn raised_powers(formula: &str) -> String {
    let mut text = String::new();
    let plain = formula.replace("**", "^");
    let mut letters = plain.chars().peekable();
    while let Some(letter) = letters.next() {
        text.push(letter);
        if letter == '^' && letters.peek().is_some_and(char::is_ascii_digit) {
            text.push('{');
            while let Some(digit) = letters.next_if(char::is_ascii_digit) {
                text.push(digit);
            }
            text.push('}');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{raised_powers, readable};

    #[test]
    fn exponents_of_formulas_are_raised() {
        assert_eq!(raised_powers("a^2*b**10"), "a^{2}*b^{10}");
        assert_eq!(raised_powers("2^x + (y)^-1"), "2^x + (y)^-1");
    }

    #[test]
    fn units_are_made_readable() {
        assert_eq!(readable("1"), "");
        assert_eq!(readable("mass/length**3"), "mass/length^{3}");
        assert_eq!(readable("cm**-3"), "cm^{−3}");
        assert_eq!(readable("g/cm3"), "g/cm^{3}");
        assert_eq!(readable("km2/s2"), "km^{2}/s^{2}");
        assert_eq!(readable("1/cm3"), "1/cm^{3}");
        assert_eq!(readable("mass/(length*time**2)"), "mass/(length time^{2})");
    }
}
