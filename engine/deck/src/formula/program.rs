//! Flat program of a formula: its operations, their mathematical functions, the functions that name it, and central
//! differences.
//!
//! They do not use the platform's libm, so the value of a formula has the same bits on every machine and device. Functions
//! missing from `nestar_device::math` are built from it here.

use super::curve::Curve;
use super::{Formula, FormulaError};
pub(super) use math::{atan, cos, cosh, erf, exp, ln, log10, pow, sin, sinh, tan, tanh};
use nestar_device::random::{normals, philox, uniforms};
use nestar_device::{Lane, Real, device, math};
use std::sync::Arc;

/// Operation of a stack machine in IEEE double precision. It pops its arguments from the stack, the last one from the
/// top, and pushes its result; comparisons and logic give 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(
    missing_docs,
    reason = "the names are those of the functions and operators of the language"
)]
pub enum Op {
    /// Pushes the constant with this index.
    Constant(u16),
    /// Pushes the variable with this index.
    Variable(u16),
    /// A power with an integer exponent, by repeated squaring.
    PowerInteger(i8),
    /// The tabulated function with this index.
    Curve(u16),
    Negate,
    Not,
    Abs,
    Sign,
    Step,
    Floor,
    Ceil,
    Sqrt,
    Exp,
    Ln,
    Log10,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Erf,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Power,
    Atan2,
    Min,
    Max,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Or,
    /// Takes a condition, the value if it is true and the value if it is false.
    Select,
    /// Takes a seed and the [`CELL_VARIABLES`].
    Random,
    /// Takes a seed and the [`CELL_VARIABLES`].
    Gaussian,
}

impl Op {
    /// Returns the number of arguments.
    #[must_use]
    pub fn arity(self) -> usize {
        use Op::*;
        match self {
            Constant(_) | Variable(_) => 0,
            PowerInteger(_) | Curve(_) | Negate | Not | Abs | Sign | Step | Floor | Ceil | Sqrt
            | Exp | Ln | Log10 => 1,
            Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Tanh | Erf => 1,
            Add | Subtract | Multiply | Divide | Modulo | Power | Atan2 | Min | Max => 2,
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual | And | Or => 2,
            Select => 3,
            Random | Gaussian => 1 + CELL_VARIABLES.len(),
        }
    }
}

/// Variables that describe a cell: its level and its index along x, y and z on this level. Random numbers are functions of them.
/// A formula that is evaluated in cells has them among its variables; no text can name them.
pub const CELL_VARIABLES: [&str; 4] = ["cell level", "cell x", "cell y", "cell z"];

/// Maximum depth of the stack.
pub(super) const DEPTH: usize = 32;

/// A formula as a program for a stack machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FormulaProgram {
    /// Operations; exactly one value is on the stack after the last.
    pub ops: Vec<Op>,
    /// Constants.
    pub constants: Vec<f64>,
    /// Tabulated functions with their names.
    pub curves: Vec<(String, Arc<Curve>)>,
    /// Maximum number of values on the stack; at most 32.
    pub depth: usize,
}

/// How a function's arguments become operations.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    /// A fixed number of arguments.
    Fixed(Op),
    /// Two or more arguments, combined in pairs from the left.
    Fold(Op),
    /// A seed, followed by the cell, which the text does not name.
    OfCell(Op),
}

/// Name of each function, with its arguments and meaning.
pub const FUNCTIONS: &[(&str, &str)] = &[
    ("if", "if(c, a, b): a if c is not 0, else b"),
    ("min", "min(a, b, …): minimum"),
    ("max", "max(a, b, …): maximum"),
    ("abs", "abs(a): absolute value"),
    ("sign", "sign(a): -1, 0 or 1"),
    ("step", "step(a): 1 if a >= 0, else 0"),
    ("floor", "floor(a): largest integer not above a"),
    ("ceil", "ceil(a): smallest integer not below a"),
    ("mod", "mod(a, b): a - b*floor(a/b), between 0 and b"),
    ("sqrt", "sqrt(a): square root"),
    ("exp", "exp(a): e^a"),
    ("ln", "ln(a): natural logarithm"),
    ("log10", "log10(a): decimal logarithm"),
    ("pow", "pow(a, b): a^b"),
    ("sin", "sin(a): sine, a in radians"),
    ("cos", "cos(a): cosine, a in radians"),
    ("tan", "tan(a): tangent, a in radians"),
    ("asin", "asin(a): arc sine, from -pi/2 to pi/2"),
    ("acos", "acos(a): arc cosine, from 0 to pi"),
    ("atan", "atan(a): arc tangent, from -pi/2 to pi/2"),
    (
        "atan2",
        "atan2(y, x): angle of the point (x, y), from -pi to pi",
    ),
    ("sinh", "sinh(a): hyperbolic sine"),
    ("cosh", "cosh(a): hyperbolic cosine"),
    ("tanh", "tanh(a): hyperbolic tangent"),
    ("erf", "erf(a): error function"),
    (
        "random",
        "random(seed): in [initial] and views, a number between 0 and 1 for each cell, uniform",
    ),
    (
        "gaussian",
        "gaussian(seed): in [initial] and views, a normal deviate for each cell, mean 0, variance 1",
    ),
];

/// Returns the call of the function `name`.
pub(super) fn call(name: &str) -> Option<Call> {
    let op = match name {
        "min" => return Some(Call::Fold(Op::Min)),
        "max" => return Some(Call::Fold(Op::Max)),
        "random" => return Some(Call::OfCell(Op::Random)),
        "gaussian" => return Some(Call::OfCell(Op::Gaussian)),
        "if" => Op::Select,
        "abs" => Op::Abs,
        "sign" => Op::Sign,
        "step" => Op::Step,
        "floor" => Op::Floor,
        "ceil" => Op::Ceil,
        "mod" => Op::Modulo,
        "sqrt" => Op::Sqrt,
        "exp" => Op::Exp,
        "ln" => Op::Ln,
        "log10" => Op::Log10,
        "pow" => Op::Power,
        "sin" => Op::Sin,
        "cos" => Op::Cos,
        "tan" => Op::Tan,
        "asin" => Op::Asin,
        "acos" => Op::Acos,
        "atan" => Op::Atan,
        "atan2" => Op::Atan2,
        "sinh" => Op::Sinh,
        "cosh" => Op::Cosh,
        "tanh" => Op::Tanh,
        "erf" => Op::Erf,
        _ => return None,
    };
    Some(Call::Fixed(op))
}

/// Returns the constant `name`.
pub(super) fn constant(name: &str) -> Option<f64> {
    match name {
        "pi" => Some(std::f64::consts::PI),
        "e" => Some(std::f64::consts::E),
        _ => None,
    }
}

impl Formula {
    /// Returns the central difference of the formula over one step: (f(1) - f(-1)) / 2, or with fourth order
    /// (8 (f(1) - f(-1)) - (f(2) - f(-2))) / 12. Its variables are those of the formula at the points 1, -1, 2, -2, in
    /// this order. A reflection changes only the sign of the result.
    ///
    /// # Errors
    /// The formula is too long.
    pub fn difference(&self, fourth: bool) -> Result<Formula, FormulaError> {
        let mut joined = DifferenceBuilder {
            formula: self,
            program: FormulaProgram {
                curves: self.program.curves.clone(),
                constants: self.program.constants.clone(),
                ..FormulaProgram::default()
            },
            points: 0,
        };
        if fourth {
            joined.constant(8.0);
        }
        joined.pair();
        if fourth {
            joined.program.ops.push(Op::Multiply);
            joined.pair();
            joined.program.ops.push(Op::Subtract);
        }
        joined.constant(if fourth { 12.0 } else { 2.0 });
        joined.program.ops.push(Op::Divide);
        // the stack also holds the value of the previous point and the result of the previous pair
        joined.program.depth = self.program.depth + 2;
        let constants = joined.program.constants.len() <= usize::from(u16::MAX);
        let variables = joined.points * self.variables.len() <= usize::from(u16::MAX);
        if joined.program.depth > DEPTH || !constants || !variables {
            let text = &self.text;
            let message = "the formula is too long for a slope; split it";
            return Err(FormulaError::new(text, 0..text.len(), message));
        }
        let names = &self.variables;
        let at = |point| names.iter().map(move |name| format!("{name} {point}"));
        Ok(Formula {
            text: format!("slope of {}", self.text),
            variables: (0..joined.points).flat_map(at).collect(),
            program: joined.program,
        })
    }
}

/// Builds a program that evaluates a formula at several points.
struct DifferenceBuilder<'a> {
    formula: &'a Formula,
    program: FormulaProgram,
    points: usize,
}

impl DifferenceBuilder<'_> {
    fn constant(&mut self, value: f64) {
        let index = self.program.constants.len() as u16;
        self.program.constants.push(value);
        self.program.ops.push(Op::Constant(index));
    }

    /// Appends the difference between the next two points.
    fn pair(&mut self) {
        self.point();
        self.point();
        self.program.ops.push(Op::Subtract);
    }

    /// Appends the formula with variables of the next point.
    fn point(&mut self) {
        let first = (self.points * self.formula.variables.len()) as u16;
        self.points += 1;
        let moved = |op: &Op| match *op {
            Op::Variable(index) => Op::Variable(first + index),
            op => op,
        };
        let ops = self.formula.program.ops.iter().map(moved);
        self.program.ops.extend(ops);
    }
}

/// Returns `a^n` by repeated squaring, in the same order as the device code.
pub(super) fn power_integer(a: f64, n: i8) -> f64 {
    Lane::powi(a, i32::from(n))
}

/// Returns the sign -1 or 1; zeros and NaN are returned unchanged.
#[device]
pub(super) fn sign<R: Real>(a: R) -> R {
    if a > 0.0 {
        1.0
    } else if a < 0.0 {
        -1.0
    } else {
        a
    }
}

/// Returns the remainder of floored division.
#[device]
pub(super) fn modulo<R: Real>(a: R, b: R) -> R {
    a - b * (a / b).floor()
}

/// Returns the minimum; NaN if either argument is NaN.
#[device]
pub(super) fn least<R: Real>(a: R, b: R) -> R {
    if a < b || a.is_nan() { a } else { b }
}

/// Returns the maximum; NaN if either argument is NaN.
#[device]
pub(super) fn greatest<R: Real>(a: R, b: R) -> R {
    if a > b || a.is_nan() { a } else { b }
}

/// Returns a block of random words of a cell, by Philox 4x32-10 with the index of the cell in the counter, and the seed and the level
/// in the key.
#[device]
fn words_of_cell<R: Real>(seed: R, cell: &[R; 4], n: u32) -> [u32; 4] {
    let level = cell[0].to_i32() as u32;
    // no stream of a run has this step
    philox(
        [
            cell[1].to_i32() as u32,
            cell[2].to_i32() as u32,
            cell[3].to_i32() as u32,
            0xffff_ffffu32,
        ],
        [seed.to_f64() as u32, level << 8 | n],
    )
}

/// Returns a number between 0 and 1, uniform, which depends only on the seed and the cell.
#[device]
pub(super) fn random<R: Real>(seed: R, level: R, i: R, j: R, k: R) -> R {
    let [number, _] = uniforms::<R>(words_of_cell::<R>(seed, &[level, i, j, k], 0));
    number
}

/// Returns a normal deviate, which depends only on the seed and the cell and is independent of [`random`].
#[device]
pub(super) fn gaussian<R: Real>(seed: R, level: R, i: R, j: R, k: R) -> R {
    let [number, _] = normals::<R>(words_of_cell::<R>(seed, &[level, i, j, k], 1));
    number
}

/// Returns `asin a = atan2(a, sqrt((1 - a)(1 + a)))`; NaN outside [-1, 1].
#[device]
pub(super) fn asin<R: Real>(a: R) -> R {
    angle(a, ((1.0 - a) * (1.0 + a)).sqrt())
}

/// Returns `acos a = atan2(sqrt((1 - a)(1 + a)), a)`; NaN outside [-1, 1].
#[device]
pub(super) fn acos<R: Real>(a: R) -> R {
    angle(((1.0 - a) * (1.0 + a)).sqrt(), a)
}

/// Returns `atan2(y, x)`, the angle of the point (x, y) in [-pi, pi], with IEEE 754 rules for zeros and infinities.
#[device]
pub(super) fn angle<R: Real>(y: R, x: R) -> R {
    let height = y.abs();
    let width = x.abs();
    let steep = height > width;
    let small = if steep { width } else { height };
    let large = if steep { height } else { width };
    // two zeros or two infinities are on an axis or a diagonal by definition
    let ratio = if small == large {
        if large == 0.0 { 0.0 } else { 1.0 }
    } else {
        small / large
    };
    let flat = math::atan(ratio);
    let left = R::lit(1.0).copysign(x) < 0.0;
    let angle = if steep {
        if left {
            1.5707963267948966 + (flat + 6.123233995736766e-17)
        } else {
            1.5707963267948966 - (flat - 6.123233995736766e-17)
        }
    } else if left {
        3.141592653589793 - (flat - 1.2246467991473532e-16)
    } else {
        flat
    };
    angle.copysign(y)
}

#[cfg(test)]
mod tests {
    use crate::formula::program::*;

    /// Returns the distance in units of the last place of `b`.
    fn ulps(a: f64, b: f64) -> f64 {
        if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) {
            return 0.0;
        }
        (a - b).abs() / (f64::from_bits(b.abs().to_bits() + 1) - b.abs())
    }

    fn samples() -> impl Iterator<Item = f64> {
        let mut state = 5u64;
        (0..200_000).map(move |i| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let unit = (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            // one third each over all exponents, in [-1, 1] and in [-20, 20]
            match i % 3 {
                0 => f64::from_bits(state),
                1 => unit,
                _ => 20.0 * unit,
            }
        })
    }

    #[test]
    fn arc_functions_are_within_two_ulp() {
        let mut last = 1.0;
        for x in samples() {
            let errors = [
                ulps(atan(x), x.atan()),
                ulps(asin(x), x.asin()),
                ulps(acos(x), x.acos()),
                ulps(angle(x, last), x.atan2(last)),
            ];
            let worst = errors.into_iter().fold(0.0, f64::max);
            assert!(worst <= 2.0, "{x:e} {last:e}: {errors:?} ulp");
            last = x;
        }
    }

    #[test]
    fn angles_of_axes_infinities_and_zeros() {
        let tiny = f64::MIN_POSITIVE;
        let values = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            tiny,
        ];
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        for y in values {
            assert!(same(atan(y), y.atan()), "atan({y})");
            for x in values {
                assert!(
                    same(angle(y, x), y.atan2(x)),
                    "atan2({y}, {x}) is {}",
                    angle(y, x)
                );
            }
        }
    }
}
