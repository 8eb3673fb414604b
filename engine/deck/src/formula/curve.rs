//! Tabulated functions: piecewise cubic Hermite interpolation with continuous slope, and the slopes that it needs.

use nestar_device::{Item, Kind, Real, Table, TextPiece, device};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// Tabulated functions by name.
pub(super) type Curves<'a> = &'a [(String, Arc<Curve>)];

/// How a function continues outside its first or last point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extrapolation {
    /// NaN.
    Refuse = 0,
    /// The value at the point.
    Constant = 1,
    /// A line with the slope at the point.
    Linear = 2,
    /// a + b x^2 with the value and slope at the point.
    Square = 3,
    /// a - b / x with the value and slope at the point.
    Inverse = 4,
}

/// A function given by values and slopes at points.
#[derive(Clone, Debug)]
pub struct Curve {
    points: Table<f64>,
    values: Table<f64>,
    slopes: Table<f64>,
    beyond: [Extrapolation; 2],
    /// Points, values and slopes as device code.
    item: &'static Item,
}

impl PartialEq for Curve {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.item, other.item) && self.beyond == other.beyond
    }
}

/// Extrapolates from a point with a value and slope; `how` is an [`Extrapolation`].
#[device]
fn extrapolate<R: Real>(value: R, slope: R, end: R, how: i32, x: R) -> R {
    if how == 1 {
        value
    } else if how == 2 {
        value + slope * (x - end)
    } else if how == 3 {
        value + 0.5 * slope * (x - end) * (x + end) / end
    } else if how == 4 {
        value + slope * end * (x - end) / x
    } else {
        R::NAN
    }
}

/// Evaluates the cubic Hermite polynomial at the fraction `t` of an interval of this `width`.
#[device]
fn hermite_cubic<R: Real>(values: [R; 2], slopes: [R; 2], width: R, t: R) -> R {
    let [first, last] = slopes;
    let rise = values[1] - values[0];
    let square = 3.0 * rise - width * (2.0 * first + last);
    let cube = width * (first + last) - 2.0 * rise;
    values[0] + t * (width * first + t * (square + t * cube))
}

/// Evaluates a tabulated function at `x` by bisection; `below` and `above` are [`Extrapolation`]s at its ends.
#[device]
fn evaluate_curve<R: Real>(
    points: &Table<R>,
    values: &Table<R>,
    slopes: &Table<R>,
    below: i32,
    above: i32,
    x: R,
) -> R {
    let last = points.len() - 1;
    if x < points.at(0) {
        extrapolate(values.at(0), slopes.at(0), points.at(0), below, x)
    } else if x > points.at(last) {
        extrapolate(values.at(last), slopes.at(last), points.at(last), above, x)
    } else {
        let (mut low, mut high) = (0, last);
        while low + 1 < high {
            let middle = (low + high) / 2;
            if points.at(middle) <= x {
                low = middle;
            } else {
                high = middle;
            }
        }
        let width = points.at(high) - points.at(low);
        let t = (x - points.at(low)) / width;
        hermite_cubic(
            [values.at(low), values.at(high)],
            [slopes.at(low), slopes.at(high)],
            width,
            t,
        )
    }
}

impl Curve {
    /// Creates a function with these values and slopes at two or more ascending points.
    ///
    /// # Panics
    /// The lengths differ, or there are fewer than two points.
    #[must_use]
    pub fn new(points: &[f64], values: &[f64], slopes: &[f64], beyond: [Extrapolation; 2]) -> Self {
        let count = points.len();
        assert!(count >= 2 && values.len() == count && slopes.len() == count);
        Self {
            points: Table::new(points),
            values: Table::new(values),
            slopes: Table::new(slopes),
            beyond,
            item: item([points, values, slopes]),
        }
    }

    /// Returns the value at `x`.
    #[must_use]
    pub fn at(&self, x: f64) -> f64 {
        let [below, above] = self.beyond.map(|beyond| beyond as i32);
        evaluate_curve(&self.points, &self.values, &self.slopes, below, above, x)
    }

    /// Returns the range in which the function has values; infinite where it is extrapolated.
    #[must_use]
    pub fn range(&self) -> [f64; 2] {
        let ends = [
            self.points.at(0usize),
            self.points.at(self.points.len() - 1),
        ];
        let open = [f64::NEG_INFINITY, f64::INFINITY];
        std::array::from_fn(|end| match self.beyond[end] {
            Extrapolation::Refuse => ends[end],
            _ => open[end],
        })
    }

    /// Returns the call of the function in device code, and the items it needs.
    pub(super) fn device_call(&self, argument: &str) -> (String, [&'static Item; 2]) {
        let [below, above] = self.beyond.map(|beyond| beyond as i32);
        let (name, count) = (self.item.path(), self.points.len());
        let table = |part: &str| format!("::{}<double>{{::{name}_{part}, {count}}}", Table.path());
        let tables = ["points", "values", "slopes"].map(table).join(", ");
        let function = evaluate_curve::ITEM;
        let call = format!(
            "::{}<double>({tables}, {below}, {above}, {argument})",
            function.path()
        );
        (call, [function, self.item])
    }
}

/// Returns the numbers as constants in device code; the item is cached for the lifetime of the process.
fn item(parts: [&[f64]; 3]) -> &'static Item {
    static KNOWN: Mutex<BTreeMap<u64, &'static Item>> = Mutex::new(BTreeMap::new());
    let key = key(parts);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(key).or_insert_with(|| {
        let name: &'static str = Box::leak(format!("curve_{key:016x}").into_boxed_str());
        let mut text = String::new();
        for (part, values) in ["points", "values", "slopes"].into_iter().zip(parts) {
            // the shortest decimals that are parsed to the same number in every language
            let numbers: Vec<String> = values.iter().map(|x| format!("{x:e}")).collect();
            let numbers = numbers.join(", ");
            let _ = writeln!(text, "RS_TABLE double {name}_{part}[] = {{{numbers}}};");
        }
        let body: &'static [TextPiece] = Box::leak(Box::new([TextPiece::Text(Box::leak(
            text.into_boxed_str(),
        ))]));
        Box::leak(Box::new(Item {
            module: module_path!(),
            name,
            file: file!(),
            line: line!(),
            kind: Kind::Const,
            generics: &[],
            proto: &[],
            body,
        }))
    })
}

/// Returns the FNV-1a hash of the bits of the numbers.
fn key(parts: [&[f64]; 3]) -> u64 {
    let bytes = parts.into_iter().flatten().flat_map(|x| x.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Widths of the intervals between points, and difference quotients over them.
struct Intervals {
    widths: Vec<f64>,
    rises: Vec<f64>,
}

impl Intervals {
    fn of(points: &[f64], values: &[f64]) -> Self {
        let widths: Vec<f64> = points.windows(2).map(|x| x[1] - x[0]).collect();
        let rises = values.windows(2).zip(&widths);
        let rises = rises.map(|(y, width)| (y[1] - y[0]) / width).collect();
        Self { widths, rises }
    }

    /// Returns the intervals in reverse order.
    fn reversed(&self) -> Self {
        Self {
            widths: self.widths.iter().rev().copied().collect(),
            rises: self.rises.iter().rev().copied().collect(),
        }
    }

    /// Returns the slope at the first point of the polynomial through up to four points, by divided differences.
    fn first(&self) -> f64 {
        let (h, d) = (&self.widths, &self.rises);
        let Some(&next) = d.get(1) else {
            return d[0];
        };
        let bend = (next - d[0]) / (h[0] + h[1]);
        let parabola = d[0] - h[0] * bend;
        let Some(&third) = d.get(2) else {
            return parabola;
        };
        let twist = ((third - next) / (h[1] + h[2]) - bend) / (h[0] + h[1] + h[2]);
        parabola + h[0] * (h[0] + h[1]) * twist
    }
}

/// Returns the slopes of a cubic spline (continuous second derivative); end slopes are those of polynomials through four points.
pub fn spline(points: &[f64], values: &[f64]) -> Vec<f64> {
    let all = Intervals::of(points, values);
    let (h, d) = (&all.widths, &all.rises);
    let (last, mut slopes) = (points.len() - 1, vec![0.0; points.len()]);
    (slopes[0], slopes[last]) = (all.first(), all.reversed().first());
    // Thomas algorithm for h1 m[i-1] + 2 (h0 + h1) m[i] + h0 m[i+1] = 3 (h1 d0 + h0 d1)
    let mut factors = vec![0.0; points.len()];
    for i in 1..last {
        let (before, after) = (h[i - 1], h[i]);
        let right = 3.0 * (after * d[i - 1] + before * d[i]);
        let pivot = 2.0 * (before + after) - after * factors[i - 1];
        factors[i] = before / pivot;
        slopes[i] = (right - after * slopes[i - 1]) / pivot;
    }
    for i in (1..last).rev() {
        slopes[i] -= factors[i] * slopes[i + 1];
    }
    slopes
}

/// Returns slopes that keep the interpolant monotone between points (Fritsch & Butland 1984).
pub fn monotone(points: &[f64], values: &[f64]) -> Vec<f64> {
    let all = Intervals::of(points, values);
    let last = points.len() - 1;
    let slope = |i: usize| {
        if i == 0 {
            return end_slope(&all);
        } else if i == last {
            return end_slope(&all.reversed());
        }
        let (before, after) = (all.rises[i - 1], all.rises[i]);
        // the product of both could underflow
        if before == 0.0 || after == 0.0 || (before < 0.0) != (after < 0.0) {
            return 0.0;
        }
        let [first, second] = [all.widths[i - 1], all.widths[i]];
        let weights = [2.0 * second + first, second + 2.0 * first];
        (weights[0] + weights[1]) / (weights[0] / before + weights[1] / after)
    };
    (0..=last).map(slope).collect()
}

/// Returns the slope at the first point: that of the parabola through three points, limited to keep the cubic monotone.
fn end_slope(all: &Intervals) -> f64 {
    let (h, d) = (&all.widths, &all.rises);
    let Some(&next) = d.get(1) else {
        return d[0];
    };
    let slope = d[0] - h[0] * (next - d[0]) / (h[0] + h[1]);
    if slope * d[0] <= 0.0 {
        0.0
    } else if d[0] * next < 0.0 && slope.abs() > 3.0 * d[0].abs() {
        3.0 * d[0]
    } else {
        slope
    }
}

/// Returns the integrals of the piecewise cubic from the first point to each point.
pub fn integrals(points: &[f64], values: &[f64], slopes: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums = vec![0.0];
    for i in 1..points.len() {
        let width = points[i] - points[i - 1];
        let mean = 0.5 * (values[i - 1] + values[i]);
        let bend = (slopes[i - 1] - slopes[i]) / 12.0;
        sum += width * (mean + width * bend);
        sums.push(sum);
    }
    sums
}
