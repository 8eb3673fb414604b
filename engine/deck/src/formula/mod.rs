//! Formulas: `"1 + 0.1*sin(2*pi*x)"`, parsed once and evaluated many times.
//!
//! The grammar, from weak to strong binding:
//!
//! | operators | |
//! |---|---|
//! | `\|\|`, `or` | 1 if either side is true, else 0 |
//! | `&&`, `and` | 1 if both sides are true, else 0 |
//! | `not` | 1 if the operand is 0, else 0 |
//! | `<` `<=` `>` `>=` `==` `!=` | 1 or 0; not chained |
//! | `+` `-` | |
//! | `*` `/` | |
//! | `-a` `+a` `!a` | |
//! | `^`, `**` | right associative: `2^3^2` is 2^9; binds more strongly than the sign: `-x^2` is -(x^2) |
//!
//! A number is true if it is not 0. `if(condition, a, b)` evaluates both `a` and `b` and selects one; the other has no
//! effect, even if it is NaN. Constants are `pi` and `e`; a variable of the same name hides a constant. Functions: see
//! [`FUNCTIONS`]. Arithmetic is IEEE double precision. Undefined values (`sqrt(-1)`, `ln(-1)`, `0/0`) are NaN. Only
//! comparisons, logic, `step` and `if` remove a NaN; `min` and `max` propagate it.
//!
//! `random(seed)` and `gaussian(seed)` are functions of a seed, an integer from 0 to 2^32 - 1, and of the cell in which the formula
//! is evaluated: its level and its index there. They are the same on any ranks and devices. They are errors in a formula without
//! [`CELL_VARIABLES`].
//!
//! An integer exponent from -16 to 16 means repeated multiplication, so that `x^2` is exactly `x*x`.

mod curve;
mod device;
mod dimension;
mod eval;
mod parse;
mod program;

use curve::Curves;
pub use curve::{Curve, Extrapolation, integrals, monotone, spline};
pub use device::DeviceFormula;
pub(crate) use dimension::{NamedTerm, dimension_of, dimension_of_key};
use eval::apply;
use parse::Tree;
use program::DEPTH;
pub use program::{CELL_VARIABLES, FUNCTIONS, FormulaProgram, Op};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A compiled formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    text: String,
    program: FormulaProgram,
    variables: Vec<String>,
}

impl Formula {
    /// Compiles `text`, a formula of `variables`, and folds constants.
    ///
    /// # Errors
    /// The text is not a formula, has an unknown name, or is too long or too deeply nested; the error has the column.
    pub fn parse(text: &str, variables: &[&str]) -> Result<Formula, FormulaError> {
        Formula::with_constants(text, variables, &[])
    }

    /// Works as [`Formula::parse`], with named `constants` in addition to pi and e.
    ///
    /// # Errors
    /// See [`Formula::parse`].
    pub fn with_constants(
        text: &str,
        variables: &[&str],
        constants: &[(String, f64)],
    ) -> Result<Formula, FormulaError> {
        Formula::with_curves(text, variables, constants, &[])
    }

    /// Works as [`Formula::with_constants`], with tabulated functions in addition.
    ///
    /// # Errors
    /// See [`Formula::parse`].
    pub fn with_curves(
        text: &str,
        variables: &[&str],
        constants: &[(String, f64)],
        curves: &[(String, Arc<Curve>)],
    ) -> Result<Formula, FormulaError> {
        let tree = parse::parse(text, variables, constants, curves)?;
        let program = lower(&tree, text, curves)?;
        let variables = variables.iter().map(|name| name.to_string()).collect();
        Ok(Formula {
            text: text.to_string(),
            program,
            variables,
        })
    }

    /// Returns the formula of a number that `text` describes.
    pub(crate) fn of_number(text: &str, value: f64, variables: &[&str]) -> Formula {
        let mut program = FormulaProgram::default();
        program.depth = emit(&Tree::Number(value), &[], &mut program);
        Formula {
            text: text.to_string(),
            program,
            variables: variables.iter().map(|name| name.to_string()).collect(),
        }
    }

    /// Returns the text of the formula.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the compiled program, for other evaluators.
    #[must_use]
    pub fn program(&self) -> &FormulaProgram {
        &self.program
    }

    /// Returns the variables in the order given to `parse`.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Returns `true` if the formula uses the variable `name`.
    #[must_use]
    pub fn uses(&self, name: &str) -> bool {
        let index = self.variables.iter().position(|variable| variable == name);
        index.is_some_and(|index| self.program.ops.contains(&Op::Variable(index as u16)))
    }

    /// Returns `true` if the value depends on the level or the index of the cell.
    #[must_use]
    pub fn uses_cell(&self) -> bool {
        CELL_VARIABLES.iter().any(|name| self.uses(name))
    }

    /// Returns a remark in brackets about the ranges of its tabulated functions; empty if none is bounded.
    #[must_use]
    pub fn ranges(&self) -> String {
        let range = |(name, curve): &(String, Arc<Curve>)| {
            let [first, last] = curve.range();
            match [first.is_finite(), last.is_finite()] {
                [true, true] => Some(format!("`{name}` is defined from {first:?} to {last:?}")),
                [true, false] => Some(format!("`{name}` is undefined below {first:?}")),
                [false, true] => Some(format!("`{name}` is undefined above {last:?}")),
                [false, false] => None,
            }
        };
        let ranges: Vec<String> = self.program.curves.iter().filter_map(range).collect();
        match ranges.is_empty() {
            true => String::new(),
            false => format!(" ({})", ranges.join(", ")),
        }
    }

    /// Returns the value if the formula is constant.
    #[must_use]
    pub fn constant(&self) -> Option<f64> {
        match self.program.ops.as_slice() {
            [Op::Constant(index)] => Some(self.program.constants[usize::from(*index)]),
            _ => None,
        }
    }
}

/// Returns `true` if this is a valid name of a variable.
pub(crate) fn is_name(name: &str) -> bool {
    let words = parse::tokens(name).unwrap_or_default();
    matches!(words[..], [(parse::Token::Name(word), _), _] if word == name)
}

/// Returns `true` if this is a valid name of a constant: not that of a built-in function or constant.
pub(crate) fn is_free_name(name: &str) -> bool {
    is_name(name) && program::constant(name).is_none() && program::call(name).is_none()
}

/// An error in a formula, with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct FormulaError {
    pub(crate) message: String,
    pub(crate) span: Range<usize>,
    pub(crate) column: usize,
}

impl FormulaError {
    pub(crate) fn new(text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let column = text[..span.start].chars().count() + 1;
        FormulaError {
            message: message.into(),
            span,
            column,
        }
    }

    /// Returns what is wrong and how to correct it.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the column of the error in characters, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// Returns the byte range of the error; empty at the end of the formula.
    #[must_use]
    pub fn span(&self) -> &Range<usize> {
        &self.span
    }
}

impl fmt::Display for FormulaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.message)
    }
}

impl std::error::Error for FormulaError {}

/// Largest integer exponent that is computed by repeated multiplication.
const MAX_WHOLE_EXPONENT: f64 = 16.0;

/// Compiles `tree` (the formula `text`, which may call `curves`) to a program.
fn lower(tree: &Tree, text: &str, curves: Curves) -> Result<FormulaProgram, FormulaError> {
    let mut program = FormulaProgram::default();
    let depth = emit(&simplify(tree, curves), curves, &mut program);
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

/// Folds constants with the same functions that evaluate the program.
fn simplify(tree: &Tree, curves: Curves) -> Tree {
    let Tree::Apply(op, arguments) = tree else {
        return tree.clone();
    };
    let mut arguments: Vec<Tree> = arguments
        .iter()
        .map(|argument| simplify(argument, curves))
        .collect();
    let whole = |x: f64| x == x.trunc() && x.abs() <= MAX_WHOLE_EXPONENT;
    let mut op = *op;
    match (op, arguments.as_slice()) {
        (Op::Select, [Tree::Number(condition), _, _]) => {
            return arguments.swap_remove(if *condition != 0.0 { 1 } else { 2 });
        }
        (Op::Power, [_, Tree::Number(exponent)]) if whole(*exponent) => {
            op = Op::PowerInteger(*exponent as i8);
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
        Some(numbers) => Tree::Number(match op {
            Op::Curve(index) => curves[usize::from(index)].1.at(numbers[0]),
            _ => apply(op, &numbers),
        }),
        None => Tree::Apply(op, arguments),
    }
}

/// Appends `tree` to `program` and returns the stack depth that it needs.
fn emit(tree: &Tree, curves: Curves, program: &mut FormulaProgram) -> usize {
    match tree {
        Tree::Number(number) => {
            let same = |other: &f64| other.to_bits() == number.to_bits();
            let index = program.constants.iter().position(same).unwrap_or_else(|| {
                program.constants.push(*number);
                program.constants.len() - 1
            });
            // `lower` rejects programs with more constants than indices
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
                .map(|(i, argument)| i + emit(argument, curves, program));
            let depth = needs.max().unwrap_or(0);
            let op = match *op {
                Op::Curve(index) => {
                    let (name, curve) = &curves[usize::from(index)];
                    Op::Curve(curve_index(name, curve, program))
                }
                op => op,
            };
            program.ops.push(op);
            depth
        }
    }
}

/// Returns the index of a tabulated function in the program.
fn curve_index(name: &str, curve: &Arc<Curve>, program: &mut FormulaProgram) -> u16 {
    let known = program.curves.iter().position(|own| own.0 == name);
    known.unwrap_or_else(|| {
        program.curves.push((name.into(), curve.clone()));
        program.curves.len() - 1
    }) as u16
}
