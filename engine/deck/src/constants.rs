//! Named constants, and expressions in place of numbers.

use crate::check::{ShapeChoice, choose, join};
use crate::error::{DeckError, Fault, SourceSpan};
use crate::formula::{Formula, FormulaError, is_free_name};
use crate::shape::{ShapeKind, ValueShape};
use crate::tree::{DeckNode, DeckValue, KeyValue};

/// Name of the table of constants.
pub(crate) const CONSTANTS: &str = "constants";

/// Largest number up to which each integer is a distinct double (2^53).
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Constants by name, in the order of the deck.
pub(crate) type Constants = Vec<(String, f64)>;

/// Names available to expressions and formulas of a deck.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedNumbers {
    /// Constants of the deck, in its order.
    pub own: Constants,
    /// These constants, then the units that are not hidden by them.
    pub known: Constants,
}

/// Reads the constants of a deck, which may use `words`; a constant hides a word of the same name.
///
/// # Errors
/// The entry is not a table, a name is invalid or reserved, or a value is not a finite number.
pub(crate) fn constants(
    root: &DeckNode,
    words: &[(String, f64)],
) -> Result<NamedNumbers, DeckError> {
    let Some(table) = root.get(CONSTANTS) else {
        return Ok(NamedNumbers {
            own: Constants::new(),
            known: words.to_vec(),
        });
    };
    let words = words
        .iter()
        .filter(|(word, _)| table.node.get(word).is_none());
    let mut found = NamedNumbers {
        own: Constants::new(),
        known: words.cloned().collect(),
    };
    if !matches!(table.node.value, DeckValue::Table(_)) {
        let message = format!("`{CONSTANTS}` must be a table, written [{CONSTANTS}]");
        return Err(Fault::at(&table.node.location, message).into());
    }
    for entry in table.node.entries() {
        let named = (entry.key.clone(), constant(entry, &found.known)?);
        found.own.push(named.clone());
        found.known.insert(found.own.len() - 1, named);
    }
    Ok(found)
}

/// Evaluates a constant, which may use the `known` names.
fn constant(entry: &KeyValue, known: &[(String, f64)]) -> Result<f64, DeckError> {
    let path = format!("{CONSTANTS}.{}", entry.key);
    if !is_free_name(&entry.key) {
        let message = format!(
            "`{path}`: the name of a constant must consist of letters, digits and `_`, and must not be a word of formulas"
        );
        return Err(Fault::at(&entry.key_location, message).into());
    }
    let expected = "a number or an expression";
    let value = number(&entry.node, &path, expected, known).map_err(|fault| *fault)?;
    if !value.is_finite() {
        let message = format!("`{path}` must be a finite number, found {value:?}");
        return Err(Fault::at(&entry.node.location, message).into());
    }
    Ok(value)
}

/// Returns the number given by `node`, a number or an expression.
fn number(
    node: &DeckNode,
    path: &str,
    expected: &str,
    constants: &[(String, f64)],
) -> Result<f64, Box<Fault>> {
    let refused = || format!("`{path}` must be {expected}, found {}", node.shown());
    match &node.value {
        DeckValue::Integer(number) => Ok(*number as f64),
        DeckValue::Number(number) => Ok(*number),
        DeckValue::Text(text) => Formula::with_constants(text, &[], constants)
            .map(|formula| formula.eval(&[]))
            .map_err(|error| {
                let message = format!("{}: {}", refused(), error.message());
                Box::new(formula_fault(node, text, &error, &message))
            }),
        _ => Err(Box::new(Fault::at(&node.location, refused()))),
    }
}

/// Evaluates texts as expressions where `shape` needs numbers: `height = "5/3"`, `radius = "2*r0"`.
pub(crate) fn evaluate_expressions(
    node: &mut DeckNode,
    shape: &ValueShape,
    path: &str,
    constants: &[(String, f64)],
    faults: &mut Vec<Fault>,
) {
    match (&shape.kind, &mut node.value) {
        (ShapeKind::Number | ShapeKind::Integer, DeckValue::Text(_)) => {
            match number(node, path, &shape.expected(), constants) {
                Ok(value) => node.value = to_integer(value, &shape.kind),
                Err(fault) => faults.push(*fault),
            }
        }
        (ShapeKind::List(list), DeckValue::List(items)) => {
            for (i, item) in items.iter_mut().enumerate() {
                evaluate_expressions(item, &list.item, &format!("{path}[{i}]"), constants, faults);
            }
        }
        (ShapeKind::Record(record), DeckValue::Table(entries)) => {
            for entry in entries {
                let field = record.field(&entry.key).map(|field| &field.shape);
                if let Some(shape) = field.or(record.others.as_deref()) {
                    let path = join(path, &entry.key);
                    evaluate_expressions(&mut entry.node, shape, &path, constants, faults);
                }
            }
        }
        (ShapeKind::Choice(shapes), _) => {
            if let Some(shape) = intended_shape(node, shapes) {
                evaluate_expressions(node, shape, path, constants, faults);
            }
        }
        _ => {}
    }
}

/// Returns the shape that a value has; a number if the value is a text and no shape accepts texts.
fn intended_shape<'a>(node: &DeckNode, shapes: &'a [ValueShape]) -> Option<&'a ValueShape> {
    let numeric =
        |shape: &&ValueShape| matches!(shape.kind, ShapeKind::Number | ShapeKind::Integer);
    let texts = |shape: &ValueShape| {
        matches!(
            shape.kind,
            ShapeKind::Text(..) | ShapeKind::Words(_) | ShapeKind::Any
        )
    };
    match choose(node, shapes, "", &mut Vec::new()) {
        ShapeChoice::Shape(shape) => Some(shape),
        _ if shapes.iter().any(texts) || !matches!(node.value, DeckValue::Text(_)) => None,
        _ => shapes.iter().find(numeric),
    }
}

/// Converts to an integer if the shape is an integer and the value is one.
fn to_integer(value: f64, kind: &ShapeKind) -> DeckValue {
    match kind {
        ShapeKind::Integer if value.fract() == 0.0 && value.abs() <= MAX_EXACT_INTEGER => {
            DeckValue::Integer(value as i64)
        }
        _ => DeckValue::Number(value),
    }
}

/// Returns the fault for an error in the formula `text`, the value of `node`, with its position in the deck.
pub(crate) fn formula_fault(
    node: &DeckNode,
    text: &str,
    error: &FormulaError,
    message: &str,
) -> Fault {
    // a text without escapes is the same in the deck, after its quotes
    let SourceSpan { source, span } = &node.location;
    let raw = source.text.get(span.clone()).unwrap_or_default();
    let offset = raw.find(|c| !"\"'\r\n".contains(c)).unwrap_or_default();
    if !raw[offset..].starts_with(text) {
        let message = format!("{message} (column {})", error.column());
        return Fault::at(&node.location, message);
    }
    let start = span.start + offset;
    let location = SourceSpan {
        source: source.clone(),
        span: start + error.span().start..start + error.span().end,
    };
    Fault::at(&location, message)
}
