//! Functions of formulas.

use super::program::Op;

/// How a function's arguments become operations.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    /// A fixed number of arguments.
    Fixed(Op),
    /// Two or more arguments, combined in pairs from the left.
    Fold(Op),
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
];

/// Returns the call of the function `name`.
pub(super) fn call(name: &str) -> Option<Call> {
    let op = match name {
        "min" => return Some(Call::Fold(Op::Min)),
        "max" => return Some(Call::Fold(Op::Max)),
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
