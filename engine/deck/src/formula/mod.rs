//! Formulas: `"1 + 0.1*sin(2*pi*x)"`, parsed once and evaluated many times.
//!
//! The grammar, from weak to strong binding:
//!
//! | operators | |
//! |---|---|
//! | `\|\|`, `or` | 1 if either side is true, else 0 |
//! | `&&`, `and` | 1 if both sides are true, else 0 |
//! | `not` | 1 if what follows is 0 |
//! | `<` `<=` `>` `>=` `==` `!=` | 1 or 0; not chained |
//! | `+` `-` | |
//! | `*` `/` | |
//! | `-a` `+a` `!a` | |
//! | `^`, `**` | to the right: `2^3^2` is 2^9; stronger than the sign: `-x^2` is -(x^2) |
//!
//! A number is true if it is not 0. `if(condition, a, b)` is `a` where the condition is true; both are evaluated, and
//! what is not taken has no effect, NaN included. Constants are `pi` and `e`; a variable of such a name hides it.
//! Functions: see [`FUNCTIONS`]. Arithmetic is IEEE double precision; what is undefined (`sqrt(-1)`, `ln(-1)`, `0/0`) is
//! NaN, which only comparisons, logic, `step` and `if` end: `min` and `max` of a NaN are NaN.
//!
//! A whole exponent from -16 to 16 is repeated multiplication, so that `x^2` is exactly `x*x`.

mod curve;
mod device;
mod difference;
mod eval;
mod functions;
mod lexer;
mod lower;
mod math;
mod parse;
mod program;
mod slopes;

pub use curve::{Curve, Extrapolation};
pub use device::DeviceFormula;
pub use functions::FUNCTIONS;
pub use program::{FormulaProgram, Op};
pub use slopes::{integrals, monotone, spline};

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A compiled formula of some variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    text: String,
    program: FormulaProgram,
    variables: Vec<String>,
}

impl Formula {
    /// Compiles `text`, a formula of `variables`.
    ///
    /// Parts without variables are evaluated here.
    ///
    /// # Errors
    /// The text is no formula, names something unknown, or is nested too deeply; the error has the column.
    pub fn parse(text: &str, variables: &[&str]) -> Result<Formula, FormulaError> {
        Formula::with_constants(text, variables, &[])
    }

    /// The same with `constants` by name beside pi and e; a variable of such a name hides it.
    ///
    /// # Errors
    /// As [`Formula::parse`].
    pub fn with_constants(
        text: &str,
        variables: &[&str],
        constants: &[(String, f64)],
    ) -> Result<Formula, FormulaError> {
        Formula::with_curves(text, variables, constants, &[])
    }

    /// The same with `curves`, tabulated functions, beside the others.
    ///
    /// # Errors
    /// As [`Formula::parse`].
    pub fn with_curves(
        text: &str,
        variables: &[&str],
        constants: &[(String, f64)],
        curves: &[(String, Arc<Curve>)],
    ) -> Result<Formula, FormulaError> {
        let tree = parse::parse(text, variables, constants, curves)?;
        let program = lower::lower(&tree, text, curves)?;
        let variables = variables.iter().map(|name| name.to_string()).collect();
        Ok(Formula {
            text: text.to_string(),
            program,
            variables,
        })
    }

    /// The text that was compiled.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The compiled program, for another machine to run.
    #[must_use]
    pub fn program(&self) -> &FormulaProgram {
        &self.program
    }

    /// The variables that `parse` was given, in that order.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// Whether the value depends on the variable `name`.
    #[must_use]
    pub fn uses(&self, name: &str) -> bool {
        let index = self.variables.iter().position(|variable| variable == name);
        index.is_some_and(|index| self.program.ops.contains(&Op::Variable(index as u16)))
    }

    /// The tabulated functions that it calls and that have none beyond their places, as a remark in brackets; empty if there are
    /// none.
    #[must_use]
    pub fn ranges(&self) -> String {
        let range = |(name, curve): &(String, Arc<Curve>)| {
            let [first, last] = curve.range();
            match [first.is_finite(), last.is_finite()] {
                [true, true] => Some(format!("`{name}` has numbers from {first:?} to {last:?}")),
                [true, false] => Some(format!("`{name}` has no numbers below {first:?}")),
                [false, true] => Some(format!("`{name}` has no numbers above {last:?}")),
                [false, false] => None,
            }
        };
        let ranges: Vec<String> = self.program.curves.iter().filter_map(range).collect();
        match ranges.is_empty() {
            true => String::new(),
            false => format!(" ({})", ranges.join(", ")),
        }
    }

    /// The value, if no variable is used.
    #[must_use]
    pub fn constant(&self) -> Option<f64> {
        match self.program.ops.as_slice() {
            [Op::Constant(index)] => Some(self.program.constants[usize::from(*index)]),
            _ => None,
        }
    }
}

/// Whether formulas can use this as the name of a variable.
pub(crate) fn is_name(name: &str) -> bool {
    let words = lexer::tokens(name).unwrap_or_default();
    matches!(words[..], [(lexer::Token::Name(word), _), _] if word == name)
}

/// Whether a constant may have this name: a word of its own that means nothing in formulas.
pub(crate) fn is_free_name(name: &str) -> bool {
    is_name(name) && functions::constant(name).is_none() && functions::call(name).is_none()
}

/// What is wrong with a formula, and where.
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

    /// What is wrong and what would be right.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The column of the mistake in characters, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The bytes of the mistake; empty at the end of the formula.
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
