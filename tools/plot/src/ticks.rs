//! Ticks at round numbers along an axis.

use crate::Scale;

/// A tick; minor ticks have no label. Labels have exponents as `^{3}`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// Position on the axis.
    pub value: f64,
    /// Label; empty for a minor tick.
    pub label: String,
}

/// Returns the ticks between `min` and `max` (`min < max`), with about `count` labels.
pub(crate) fn ticks(min: f64, max: f64, scale: Scale, count: usize) -> Vec<Tick> {
    match scale {
        Scale::Log if max / min >= 8.0 => decades(min, max, count),
        _ => linear(min, max, count),
    }
}

/// Returns the step of 1, 2 or 5 times a power of ten that divides `span` into at most `count` parts.
fn round_step(span: f64, count: usize) -> f64 {
    let rough = span / count as f64;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= rough * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// Returns ticks at the multiples of a round step.
fn linear(min: f64, max: f64, count: usize) -> Vec<Tick> {
    let step = round_step(max - min, count);
    let (first, last) = (
        (min / step - 1e-6).ceil() as i64,
        (max / step + 1e-6).floor() as i64,
    );
    let largest = min.abs().max(max.abs());
    let value = |index: i64| index as f64 * step;
    (first..=last)
        .map(|index| Tick {
            value: value(index),
            label: number(value(index), step, largest),
        })
        .collect()
}

/// Formats `value` with the digits that `step` needs, and with an exponent if `largest` is large or small.
fn number(value: f64, step: f64, largest: f64) -> String {
    let magnitude = (largest * (1.0 + 1e-9)).log10().floor();
    let plain = (-3.0..5.0).contains(&magnitude);
    let (scaled, step) = if plain {
        (value, step)
    } else {
        (value / 10f64.powf(magnitude), step / 10f64.powf(magnitude))
    };
    let digits = (-(step * (1.0 + 1e-9)).log10().floor()).max(0.0) as usize;
    let text = format!("{scaled:.digits$}").replace('-', "−");
    if plain || value == 0.0 {
        text
    } else {
        format!("{text}×10^{{{}}}", exponent(magnitude as i32))
    }
}

/// Formats an exponent with a typographic minus sign.
fn exponent(value: i32) -> String {
    value.to_string().replace('-', "−")
}

/// Returns ticks at powers of ten, with about `count` labels, and minor ticks between.
fn decades(min: f64, max: f64, count: usize) -> Vec<Tick> {
    let (first, last) = (min.log10().floor() as i32, max.log10().floor() as i32);
    let stride = ((max / min).log10() / count as f64).ceil().max(1.0) as i32;
    let few = (max / min).log10() < 2.0;
    let mut ticks = Vec::new();
    for decade in first..=last {
        for factor in 1..10 {
            let value = f64::from(factor) * 10f64.powi(decade);
            let labelled =
                decade % stride == 0 && (factor == 1 || few && (factor == 2 || factor == 5));
            if (min * (1.0 - 1e-9)..=max * (1.0 + 1e-9)).contains(&value)
                && (labelled || stride == 1)
            {
                ticks.push(Tick {
                    value,
                    label: if labelled {
                        decade_label(factor, decade)
                    } else {
                        String::new()
                    },
                });
            }
        }
    }
    ticks
}

/// Formats `factor` times ten to the `decade`.
fn decade_label(factor: i32, decade: i32) -> String {
    match decade {
        -2..=-1 => format!(
            "{:.*}",
            -decade as usize,
            f64::from(factor) * 10f64.powi(decade)
        ),
        0..=3 => (factor * 10i32.pow(decade as u32)).to_string(),
        _ if factor == 1 => format!("10^{{{}}}", exponent(decade)),
        _ => format!("{factor}×10^{{{}}}", exponent(decade)),
    }
}

#[cfg(test)]
mod tests {
    use super::ticks;
    use crate::Scale;

    fn labels(min: f64, max: f64, scale: Scale, count: usize) -> String {
        let labels = ticks(min, max, scale, count)
            .into_iter()
            .map(|tick| tick.label);
        labels
            .filter(|label| !label.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn linear_ticks_are_round_and_inside() {
        assert_eq!(
            labels(0.0, 1.0, Scale::Linear, 5),
            "0.0 0.2 0.4 0.6 0.8 1.0"
        );
        assert_eq!(labels(-0.5, 0.5, Scale::Linear, 5), "−0.4 −0.2 0.0 0.2 0.4");
        assert_eq!(
            labels(3.0, 3.01, Scale::Linear, 5),
            "3.000 3.002 3.004 3.006 3.008 3.010"
        );
        assert_eq!(
            labels(0.0, 3e-7, Scale::Linear, 3),
            "0 1×10^{−7} 2×10^{−7} 3×10^{−7}"
        );
        assert_eq!(
            labels(0.0, 250000.0, Scale::Linear, 5),
            "0.0 0.5×10^{5} 1.0×10^{5} 1.5×10^{5} 2.0×10^{5} 2.5×10^{5}"
        );
    }

    #[test]
    fn logarithmic_ticks_are_powers_of_ten() {
        assert_eq!(labels(0.03, 200.0, Scale::Log, 6), "0.1 1 10 100");
        assert_eq!(
            labels(1e-9, 1e3, Scale::Log, 5),
            "10^{−9} 10^{−6} 10^{−3} 1 1000"
        );
        assert_eq!(labels(0.9, 21.0, Scale::Log, 5), "1 2 5 10 20");
        assert_eq!(labels(1.0, 3.0, Scale::Log, 5), "1.0 1.5 2.0 2.5 3.0");
        assert_eq!(ticks(1.0, 100.0, Scale::Log, 5).len(), 19);
    }
}
