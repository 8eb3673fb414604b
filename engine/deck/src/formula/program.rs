//! The flat program of a formula.

use super::FormulaError;
use super::eval::{DEPTH, apply};
use super::parse::Tree;

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
            PowerWhole(_) | Negate | Not | Abs | Sign | Step | Floor | Ceil | Sqrt | Exp | Ln
            | Log10 => 1,
            Sin | Cos | Tan | Asin | Acos | Atan | Sinh | Cosh | Tanh | Erf => 1,
            Add | Subtract | Multiply | Divide | Modulo | Power | Atan2 | Min | Max => 2,
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual | And | Or => 2,
            Select => 3,
        }
    }
}

/// A formula in the order in which a stack machine evaluates it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The operations; exactly one value is on the stack after the last one.
    pub ops: Vec<Op>,
    /// The constants.
    pub constants: Vec<f64>,
    /// The greatest number of values on the stack; at most 32.
    pub depth: usize,
}

/// Greatest whole exponent that is repeated multiplication.
const WHOLE: f64 = 16.0;

/// Simplifies `tree`, the formula `text`, and writes it as a program.
pub(super) fn lower(tree: &Tree, text: &str) -> Result<Program, FormulaError> {
    let mut program = Program::default();
    let depth = emit(&simplify(tree), &mut program);
    program.depth = depth;
    if depth > DEPTH || program.constants.len() > usize::from(u16::MAX) {
        return Err(FormulaError::new(
            text,
            0..text.len(),
            "the formula is too long; split it",
        ));
    }
    Ok(program)
}

/// Evaluates what has no variables, by the same functions that evaluate the program.
fn simplify(tree: &Tree) -> Tree {
    let Tree::Apply(op, arguments) = tree else {
        return tree.clone();
    };
    let mut arguments: Vec<Tree> = arguments.iter().map(simplify).collect();
    let whole = |x: f64| x == x.trunc() && x.abs() <= WHOLE;
    let mut op = *op;
    match (op, arguments.as_slice()) {
        (Op::Select, [Tree::Number(condition), _, _]) => {
            return arguments.swap_remove(if *condition != 0.0 { 1 } else { 2 });
        }
        (Op::Power, [_, Tree::Number(exponent)]) if whole(*exponent) => {
            op = Op::PowerWhole(*exponent as i8);
            arguments.truncate(1);
        }
        _ => {}
    }
    let number = |tree: &Tree| {
        if let Tree::Number(number) = tree {
            Some(*number)
        } else {
            None
        }
    };
    match arguments.iter().map(number).collect::<Option<Vec<f64>>>() {
        Some(numbers) => Tree::Number(apply(op, &numbers)),
        None => Tree::Apply(op, arguments),
    }
}

/// Appends `tree` to `program` and gives the depth of the stack it needs.
fn emit(tree: &Tree, program: &mut Program) -> usize {
    match tree {
        Tree::Number(number) => {
            let same = |other: &f64| other.to_bits() == number.to_bits();
            let index = program.constants.iter().position(same).unwrap_or_else(|| {
                program.constants.push(*number);
                program.constants.len() - 1
            });
            // `lower` refuses a program with more constants than indices.
            program.ops.push(Op::Constant(index as u16));
            1
        }
        Tree::Variable(index) => {
            program.ops.push(Op::Variable(*index));
            1
        }
        Tree::Apply(op, arguments) => {
            let needs = arguments
                .iter()
                .enumerate()
                .map(|(i, argument)| i + emit(argument, program));
            let depth = needs.max().unwrap_or(0);
            program.ops.push(*op);
            depth
        }
    }
}
