//! Numbers with names, and expressions where numbers are wanted.

use crate::check::{Chosen, choose, join};
use crate::error::{DeckError, Fault, Place};
use crate::formula::{Formula, FormulaError, is_free_name};
use crate::shape::{Kind, Shape};
use crate::tree::{Entry, Node, Value};

/// The table of the constants.
pub(crate) const TABLE: &str = "constants";

/// The largest number below which every double that is whole is one integer.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Constants by name, in the order of the deck.
pub(crate) type Constants = Vec<(String, f64)>;

/// The names that numbers and formulas of a deck may use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    /// The deck's own, in its order.
    pub own: Constants,
    /// Those, and the words for units that are no names of the deck's own.
    pub known: Constants,
}

/// Reads the constants of a deck, which may use `words`; a constant of such a name goes first.
///
/// # Errors
/// No table; a name that formulas use already or that is none; a value that is no finite number.
pub(crate) fn constants(root: &Node, words: &[(String, f64)]) -> Result<Named, DeckError> {
    let Some(table) = root.get(TABLE) else {
        return Ok(Named {
            own: Constants::new(),
            known: words.to_vec(),
        });
    };
    let words = words
        .iter()
        .filter(|(word, _)| table.node.get(word).is_none());
    let mut found = Named {
        own: Constants::new(),
        known: words.cloned().collect(),
    };
    if !matches!(table.node.value, Value::Table(_)) {
        let message = format!("`{TABLE}` must be a table, written [{TABLE}]");
        return Err(Fault::at(&table.node.place, message).into());
    }
    for entry in table.node.entries() {
        let named = (entry.key.clone(), constant(entry, &found.known)?);
        found.own.push(named.clone());
        found.known.insert(found.own.len() - 1, named);
    }
    Ok(found)
}

/// The value of a constant, which may use those that are `known`.
fn constant(entry: &Entry, known: &[(String, f64)]) -> Result<f64, DeckError> {
    let path = format!("{TABLE}.{}", entry.key);
    if !is_free_name(&entry.key) {
        let message = format!(
            "`{path}`: a constant's name has letters, digits and `_`, and is no word of formulas"
        );
        return Err(Fault::at(&entry.key_place, message).into());
    }
    let expected = "a number or an expression";
    let value = number(&entry.node, &path, expected, known).map_err(|fault| *fault)?;
    if !value.is_finite() {
        let message = format!("`{path}` must be a finite number, found {value:?}");
        return Err(Fault::at(&entry.node.place, message).into());
    }
    Ok(value)
}

/// The number that `node` is or says.
fn number(
    node: &Node,
    path: &str,
    expected: &str,
    constants: &[(String, f64)],
) -> Result<f64, Box<Fault>> {
    let refused = || format!("`{path}` must be {expected}, found {}", node.shown());
    match &node.value {
        Value::Integer(number) => Ok(*number as f64),
        Value::Number(number) => Ok(*number),
        Value::Text(text) => Formula::with_constants(text, &[], constants)
            .map(|formula| formula.eval(&[]))
            .map_err(|error| {
                let message = format!("{}: {}", refused(), error.message());
                Box::new(formula_fault(node, text, &error, &message))
            }),
        _ => Err(Box::new(Fault::at(&node.place, refused()))),
    }
}

/// Takes texts where `shape` wants numbers as expressions: `height = "5/3"`, `radius = "2*r0"`; what is none stays a text.
pub(crate) fn as_numbers(
    node: &mut Node,
    shape: &Shape,
    path: &str,
    constants: &[(String, f64)],
    faults: &mut Vec<Fault>,
) {
    match (&shape.kind, &mut node.value) {
        (Kind::Number | Kind::Integer, Value::Text(_)) => {
            match number(node, path, &shape.expected(), constants) {
                Ok(value) => node.value = whole(value, &shape.kind),
                Err(fault) => faults.push(*fault),
            }
        }
        (Kind::List(list), Value::List(items)) => {
            for (i, item) in items.iter_mut().enumerate() {
                as_numbers(item, &list.item, &format!("{path}[{i}]"), constants, faults);
            }
        }
        (Kind::Record(record), Value::Table(entries)) => {
            for entry in entries {
                let field = record.field(&entry.key).map(|field| &field.shape);
                if let Some(shape) = field.or(record.others.as_deref()) {
                    let path = join(path, &entry.key);
                    as_numbers(&mut entry.node, shape, &path, constants, faults);
                }
            }
        }
        (Kind::Choice(shapes), _) => {
            if let Some(shape) = meant(node, shapes) {
                as_numbers(node, shape, path, constants, faults);
            }
        }
        _ => {}
    }
}

/// The shape among `shapes` that a value has, or that a text has which none of them wants: a number.
fn meant<'a>(node: &Node, shapes: &'a [Shape]) -> Option<&'a Shape> {
    let numeric = |shape: &&Shape| matches!(shape.kind, Kind::Number | Kind::Integer);
    let texts = |shape: &Shape| matches!(shape.kind, Kind::Text(..) | Kind::Words(_) | Kind::Any);
    match choose(node, shapes, "", &mut Vec::new()) {
        Chosen::Shape(shape) => Some(shape),
        _ if shapes.iter().any(texts) || !matches!(node.value, Value::Text(_)) => None,
        _ => shapes.iter().find(numeric),
    }
}

/// An integer where one is wanted and found.
fn whole(value: f64, kind: &Kind) -> Value {
    match kind {
        Kind::Integer if value.fract() == 0.0 && value.abs() <= WHOLE => {
            Value::Integer(value as i64)
        }
        _ => Value::Number(value),
    }
}

/// What is wrong in the formula `text`, the value of `node`, at its place in the deck.
pub(crate) fn formula_fault(node: &Node, text: &str, error: &FormulaError, message: &str) -> Fault {
    // A text without escapes stands in the deck as it is, behind its quotes.
    let Place { source, span } = &node.place;
    let raw = source.text.get(span.clone()).unwrap_or_default();
    let offset = raw.find(|c| !"\"'\r\n".contains(c)).unwrap_or_default();
    if !raw[offset..].starts_with(text) {
        let message = format!("{message} (column {})", error.column());
        return Fault::at(&node.place, message);
    }
    let start = span.start + offset;
    let place = Place {
        source: source.clone(),
        span: start + error.span().start..start + error.span().end,
    };
    Fault::at(&place, message)
}
