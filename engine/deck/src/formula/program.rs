//! The flat program of a formula.

use super::curve::Curve;
use std::sync::Arc;

/// A stack machine's operation. Operations take their arguments from the stack, the last one on top, and leave their
/// result there; all of it is IEEE double precision, with comparisons and logic giving 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(
    missing_docs,
    reason = "the names are those of the functions and operators of the language"
)]
pub enum Op {
    /// Puts the constant of this index on the stack.
    Constant(u16),
    /// Puts the variable of this index on the stack.
    Variable(u16),
    /// A power with a whole exponent, by repeated squaring.
    PowerWhole(i8),
    /// The tabulated function of this index.
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
    /// Condition, value if it is true, value if it is false.
    Select,
}

impl Op {
    /// How many values the operation takes from the stack.
    #[must_use]
    pub fn arity(self) -> usize {
        use Op::*;
        match self {
            Constant(_) | Variable(_) => 0,
            PowerWhole(_) | Curve(_) | Negate | Not | Abs | Sign | Step | Floor | Ceil | Sqrt
            | Exp | Ln | Log10 => 1,
            Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Tanh | Erf => 1,
            Add | Subtract | Multiply | Divide | Modulo | Power | Atan2 | Min | Max => 2,
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual | And | Or => 2,
            Select => 3,
        }
    }
}

/// Values on the stack at most.
pub(super) const DEPTH: usize = 32;

/// A formula in the order in which a stack machine evaluates it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FormulaProgram {
    /// The operations; exactly one value is on the stack after the last one.
    pub ops: Vec<Op>,
    /// The constants.
    pub constants: Vec<f64>,
    /// The tabulated functions, with their names.
    pub curves: Vec<(String, Arc<Curve>)>,
    /// The greatest number of values on the stack; at most 32.
    pub depth: usize,
}
