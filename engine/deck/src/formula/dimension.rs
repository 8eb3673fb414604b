//! Dimensions of constant expressions: `"3*kpc/Myr"` is a velocity.

use super::FormulaError;
use super::eval::apply;
use super::parse::{self, Tree};
use super::program::Op;
use crate::units::dimension::{Dimension, LENGTH, MASS, TIME};

/// A named number of a deck with its dimension.
pub(crate) struct NamedTerm<'a> {
    pub name: &'a str,
    pub value: f64,
    pub dimension: Dimension,
}

/// Value and dimension of a part of an expression.
#[derive(Clone, Copy)]
struct Term {
    value: f64,
    dimension: Dimension,
}

/// Returns the dimension of the expression `text` of some names.
///
/// # Errors
/// The text is not a formula of these names; it adds, compares or selects between different quantities, or takes a function
/// such as `exp` of a quantity.
pub(crate) fn dimension_of(text: &str, names: &[NamedTerm]) -> Result<Dimension, FormulaError> {
    let words: Vec<&str> = names.iter().map(|named| named.name).collect();
    let tree = parse::parse(text, &words, &[], &[])?;
    let term = term(&tree, names);
    let whole = |why: String| FormulaError::new(text, 0..text.len(), why);
    term.map(|term| term.dimension).map_err(whole)
}

fn term(tree: &Tree, names: &[NamedTerm]) -> Result<Term, String> {
    let (op, arguments) = match tree {
        Tree::Number(value) => {
            return Ok(Term {
                value: *value,
                dimension: Dimension::NONE,
            });
        }
        Tree::Variable(index) => {
            let named = &names[usize::from(*index)];
            return Ok(Term {
                value: named.value,
                dimension: named.dimension,
            });
        }
        Tree::Apply(op, arguments) => (*op, arguments),
    };
    let terms = arguments.iter().map(|argument| term(argument, names));
    let terms = terms.collect::<Result<Vec<Term>, String>>()?;
    let values: Vec<f64> = terms.iter().map(|term| term.value).collect();
    Ok(Term {
        value: apply(op, &values),
        dimension: applied(op, &terms)?,
    })
}

/// Returns the dimension of the result of an operation.
fn applied(op: Op, terms: &[Term]) -> Result<Dimension, String> {
    let first = terms.first().map_or(Dimension::NONE, |term| term.dimension);
    match (op, terms) {
        (Op::Add, [a, b]) => common(*a, *b, "adds"),
        (Op::Subtract, [a, b]) => common(*a, *b, "subtracts"),
        (Op::Min | Op::Max | Op::Modulo, [a, b]) => common(*a, *b, "combines"),
        (Op::Select, [_, a, b]) => common(*a, *b, "selects between"),
        (Op::Multiply, [a, b]) => Ok(a.dimension.times(b.dimension, 1.0)),
        (Op::Divide, [a, b]) => Ok(a.dimension.times(b.dimension, -1.0)),
        (Op::Power, [base, exponent]) => {
            pure(*exponent, "has the exponent")?;
            Ok(base.dimension.scaled(exponent.value))
        }
        (Op::Sqrt, _) => Ok(first.scaled(0.5)),
        (Op::Negate | Op::Abs | Op::Floor | Op::Ceil, _) => Ok(first),
        (Op::Random | Op::Gaussian, _) => Ok(Dimension::NONE),
        (Op::Sign | Op::Step | Op::Not | Op::And | Op::Or, _) => Ok(Dimension::NONE),
        (_, [a, b]) => common(*a, *b, "compares").map(|_| Dimension::NONE),
        (_, [a]) => pure(*a, "takes a function of"),
        _ => Ok(Dimension::Unknown),
    }
}

/// Returns the dimension that two terms share; 0 has any.
fn common(a: Term, b: Term, what: &str) -> Result<Dimension, String> {
    match (a.dimension, b.dimension) {
        (Dimension::Unknown, other) | (other, Dimension::Unknown) => Ok(other),
        (one, other) if one == other => Ok(one),
        (one, _) if b.value == 0.0 => Ok(one),
        (_, other) if a.value == 0.0 => Ok(other),
        (one, other) => Err(format!("it {what} {} and {}", one.shown(), other.shown())),
    }
}

fn pure(term: Term, what: &str) -> Result<Dimension, String> {
    match term.dimension {
        Dimension::Unknown | Dimension::NONE => Ok(Dimension::NONE),
        other => Err(format!("it {what} {}, not a pure number", other.shown())),
    }
}

/// Returns the dimension of a key with a unit such as `mass/length**3`; `None` for other units such as `K`.
pub(crate) fn dimension_of_key(unit: &str) -> Option<Dimension> {
    let base = [("length", LENGTH), ("mass", MASS), ("time", TIME)];
    let named = base.map(|(name, powers)| NamedTerm {
        name,
        value: 1.0,
        dimension: Dimension::Powers(powers.into()),
    });
    dimension_of(unit, &named).ok()
}
