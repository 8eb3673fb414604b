//! Rate tables indexed by the exponent and leading bits of the temperature, without logarithms and identical on every machine.
use super::rates::{RateChoices, Temperature, columns, value};
use nestar_device::{Real, Table, device};

/// Intervals per octave of temperature.
#[device]
pub const NODES: usize = 32;
/// Number of octaves, from 1 K.
#[device]
pub const OCTAVES: usize = 30;
/// Largest tabulated temperature, kelvin, just below 2^30; hotter gas uses its rates.
#[device]
pub const HIGHEST: f64 = 1_073_740_000.0;
/// Rates below this (in Myr, cm^3, kelvin) are set to 0, because single precision would lose their slopes.
pub const NEGLIGIBLE: f64 = 1e-30;

/// Values of [`Network::rates`](super::Network::rates).
///
/// Node `i` of octave `j`, at 2^j (1 + i/[`NODES`]) kelvin, holds value and slope per interval of each column. Each octave has its own end
/// node, so that both ends of an interval have the slope in the same unit.
#[derive(Clone, Debug, PartialEq)]
pub struct RateTable(pub Vec<f64>);

impl RateTable {
    /// Creates the table for a network of 6, 9 or 12 species.
    #[must_use]
    pub fn new(species: usize, choices: RateChoices) -> Self {
        let mut values = Vec::with_capacity(OCTAVES * (NODES + 1) * columns(species) * 2);
        for node in 0..OCTAVES * (NODES + 1) {
            let (t, width) = node_temperature(node);
            for column in 0..columns(species) {
                let (value, slope) = node_of(column, t, choices);
                values.extend([value, slope * width]);
            }
        }
        Self(values)
    }
}

/// Returns value and derivative; the derivative is a fourth-order difference of the fit's own branch.
fn node_of(column: usize, t: f64, choices: RateChoices) -> (f64, f64) {
    let h = 1e-4 * t;
    let at = |t_here| {
        let t = Temperature {
            t: t_here,
            branch: t,
        };
        value(column, t, choices)
    };
    let values = [-2.0, -1.0, 0.0, 1.0, 2.0].map(|step| at(t + step * h));
    if values[2].abs() < NEGLIGIBLE {
        return (0.0, 0.0);
    }
    (values[2], slope(values, h))
}

/// Returns the temperature of a row of the table, in kelvin, and the width of its intervals.
pub fn node_temperature(row: usize) -> (f64, f64) {
    let octave = f64::from(1u32 << (row / (NODES + 1)));
    let t = octave * (1.0 + (row % (NODES + 1)) as f64 / NODES as f64);
    (t, octave / NODES as f64)
}

/// Returns the fourth-order difference of five values at distances of `h`.
pub fn slope([far_below, below, _, above, far_above]: [f64; 5], h: f64) -> f64 {
    (8.0 * (above - below) - (far_above - far_below)) / (12.0 * h)
}

/// Position of a temperature in the table.
#[device]
#[derive(Clone, Copy, Debug)]
pub struct TablePosition<R> {
    /// Row of the lower node.
    pub row: usize,
    /// Offset of the lower node among all values.
    pub node: usize,
    /// Offset of the upper node.
    pub next: usize,
    /// Position between them, 0 to 1.
    pub x: R,
    /// Intervals per kelvin.
    pub per_kelvin: R,
}

/// Returns the position of a temperature in a table with this many columns; temperatures outside the range and NaN give an end.
#[device]
pub fn table_position<R: Real>(temperature: R, columns: usize) -> TablePosition<R> {
    let t = if temperature > 1.0 {
        temperature.min(R::lit(HIGHEST))
    } else {
        1.0
    };
    let (m, e) = t.frexp();
    let octave = e - 1;
    let nodes = R::from_usize(NODES);
    let position = (2.0 * m - 1.0) * nodes;
    let interval = position.to_i32();
    let stride = 2 * columns;
    let row = octave as usize * (NODES + 1) + interval as usize;
    let node = row * stride;
    TablePosition {
        row,
        node,
        next: node + stride,
        x: position - R::from_i32(interval),
        per_kelvin: nodes.ldexp(-octave),
    }
}

/// Interpolates a column with a cubic Hermite polynomial. Returns the value and its temperature derivative.
#[device]
pub fn interpolate_column<R: Real>(
    table: &Table<R>,
    at: &TablePosition<R>,
    column: usize,
) -> (R, R) {
    let low = at.node + 2 * column;
    let high = at.next + 2 * column;
    let value = table.at(low);
    let slope = table.at(low + 1);
    let end_slope = table.at(high + 1);
    let rise = table.at(high) - value;
    let square = (rise - slope) + (rise - slope) + (rise - end_slope);
    let cube = (slope - rise) + (end_slope - rise);
    let x = at.x;
    (
        value + x * (slope + x * (square + x * cube)),
        (slope + x * (2.0 * square + 3.0 * x * cube)) * at.per_kelvin,
    )
}
