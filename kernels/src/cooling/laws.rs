//! Cooling and heating laws as functions of temperature, on the host.

use nestar_device::device;
use nestar_device::math::{exp, ln, sqrt};

/// Heating of the interstellar gas of Koyama & Inutsuka (2002), erg/s per hydrogen nucleus.
pub const KOYAMA_INUTSUKA_HEATING: f64 = 2e-26;

/// Largest temperature at which dust heats gas, kelvin.
#[device]
pub const DUST_MAX_TEMPERATURE: f64 = 2e4;

/// Returns the cooling rate of H. Koyama & S. Inutsuka (ApJ 564, L97, 2002, eq. 4), as corrected by E. Vázquez-Semadeni et al. (ApJ 657,
/// 870, 2007, eq. 4), in erg cm^3/s at `temperature` kelvin.
#[must_use]
pub fn koyama_inutsuka(temperature: f64) -> f64 {
    let lyman_alpha = 1e7 * exp(-1.184e5 / (temperature + 1000.0));
    let carbon = 1.4e-2 * sqrt(temperature) * exp(-92.0 / temperature);
    KOYAMA_INUTSUKA_HEATING * (lyman_alpha + carbon)
}

/// A piecewise power law through `values` at ascending positive `places`. It is continued outside with the exponents of the outermost
/// intervals, and linear where a value is not positive.
#[derive(Clone, Debug, PartialEq)]
pub struct PowerLaws {
    places: Vec<f64>,
    values: Vec<f64>,
    /// Exponents above each place, if given.
    exponents: Vec<f64>,
}

impl PowerLaws {
    /// Creates a function through nodes.
    ///
    /// # Errors
    /// Fewer than two places, lists of different lengths, places that do not ascend or are not positive, values that are not finite.
    pub fn through(places: &[f64], values: &[f64]) -> Result<Self, String> {
        if places.len() < 2 {
            return Err("at least two nodes are needed".into());
        }
        Self::new(places, values, &[])
    }

    /// Creates a function from pieces that begin at `places` with `values` and have these `exponents`.
    ///
    /// # Errors
    /// As [`PowerLaws::through`]; one place is enough.
    pub fn pieces(places: &[f64], values: &[f64], exponents: &[f64]) -> Result<Self, String> {
        if exponents.len() != places.len() || !exponents.iter().all(|e| e.is_finite()) {
            let (n, m) = (places.len(), exponents.len());
            return Err(format!("{n} pieces need {n} finite exponents, found {m}"));
        }
        Self::new(places, values, exponents)
    }

    fn new(places: &[f64], values: &[f64], exponents: &[f64]) -> Result<Self, String> {
        if places.is_empty() || places.len() != values.len() {
            let (n, m) = (places.len(), values.len());
            return Err(format!(
                "the number of temperatures ({n}) must equal the number of values ({m}) and be at least one"
            ));
        }
        let falls = places.windows(2).position(|pair| pair[1] <= pair[0]);
        if let Some(n) = falls {
            let (low, high) = (places[n], places[n + 1]);
            return Err(format!(
                "temperatures must ascend, but {high} follows {low}"
            ));
        }
        if let Some(n) = values.iter().position(|v| !v.is_finite()) {
            return Err(format!("the value at {} must be finite", places[n]));
        }
        if places[0] <= 0.0 || !places[places.len() - 1].is_finite() {
            return Err("temperatures must be above 0 and finite".into());
        }
        Ok(Self {
            places: places.to_vec(),
            values: values.to_vec(),
            exponents: exponents.to_vec(),
        })
    }

    /// Returns the ascending places between which the function is one power law, with two places around each jump. A single power law has
    /// none.
    #[must_use]
    pub fn nodes(&self) -> Vec<f64> {
        if self.exponents.is_empty() {
            return self.places.clone();
        }
        self.places[1..].iter().flat_map(|&x| around(x)).collect()
    }

    /// Returns the first place.
    #[must_use]
    pub fn lowest(&self) -> f64 {
        self.places[0]
    }

    /// Returns the last place.
    #[must_use]
    pub fn highest(&self) -> f64 {
        self.places[self.places.len() - 1]
    }

    /// Returns the value at a positive place.
    #[must_use]
    pub fn at(&self, x: f64) -> f64 {
        let above = self.places.partition_point(|&place| place <= x);
        let n = above.saturating_sub(1);
        if let Some(exponent) = self.exponents.get(n) {
            return self.values[n] * exp(exponent * ln(x / self.places[n]));
        }
        let n = n.min(self.places.len() - 2);
        between(
            [self.places[n], self.places[n + 1]],
            [self.values[n], self.values[n + 1]],
            x,
        )
    }
}

/// Returns a number just below and one just above `x`, for the nodes of a jump at `x`.
#[must_use]
pub fn around(x: f64) -> [f64; 2] {
    [x * (1.0 - 1e-12), x * (1.0 + 1e-12)]
}

/// Returns the power law through two points at `x`. If a value is not positive, returns the line instead, constant outside the points.
#[must_use]
pub fn between(places: [f64; 2], values: [f64; 2], x: f64) -> f64 {
    let [low, high] = places;
    let [a, b] = values;
    if a > 0.0 && b > 0.0 {
        return a * exp(ln(b / a) / ln(high / low) * ln(x / low));
    }
    a + (b - a) * ((x - low) / (high - low)).clamp(0.0, 1.0)
}
