//! Flat program of a formula.

use super::curve::Curve;
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
        }
    }
}

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
