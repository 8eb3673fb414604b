//! Tabulated functions: piecewise cubic Hermite interpolation with continuous slope.

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
pub(super) fn evaluate_curve<R: Real>(
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
