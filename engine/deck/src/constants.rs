//! Named constants, and expressions in place of numbers.

use crate::check::{ShapeChoice, choose, join};
use crate::error::{DeckError, Fault, SourceSpan};
use crate::formula::{
    Formula, FormulaError, NamedTerm, dimension_of, dimension_of_key, is_free_name,
};
use crate::shape::{ShapeKind, ValueShape};
use crate::tree::{DeckNode, DeckValue, KeyValue};
use crate::units::dimension::Dimension;
use crate::units::{self, CodeUnits, MeasuringUnit};

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
    /// Dimensions of the known names.
    dimensions: Vec<Dimension>,
    /// Units of the deck, if it has any.
    units: Option<CodeUnits>,
}

impl NamedNumbers {
    /// Reads the constants of a deck, which may use the words of `units`; a constant hides a word of the same name. Returns the valid constants,
    /// and the first error: the entry is not a table, a name is invalid or reserved, or a value is not a finite number.
    pub fn read(root: &DeckNode, units: Option<&CodeUnits>) -> (Self, Option<DeckError>) {
        let words = units.map_or_else(Vec::new, CodeUnits::words).into_iter();
        let table = root.get(CONSTANTS);
        let is_hidden = |word: &str| table.is_some_and(|table| table.node.get(word).is_some());
        let (known, dimensions) = words.filter(|((word, _), _)| !is_hidden(word)).unzip();
        let mut found = Self {
            own: Constants::new(),
            known,
            dimensions,
            units: units.cloned(),
        };
        let Some(table) = table else {
            return (found, None);
        };
        if !matches!(table.node.value, DeckValue::Table(_)) {
            let message = format!("`{CONSTANTS}` must be a table, written [{CONSTANTS}]");
            return (found, Some(Fault::at(&table.node.location, message).into()));
        }
        let mut first = None;
        for entry in table.node.entries() {
            match constant(entry, &found) {
                Ok(number) => {
                    let (named, place) = ((entry.key.clone(), number.value), found.own.len());
                    found.own.push(named.clone());
                    found.known.insert(place, named);
                    found.dimensions.insert(place, number.dimension);
                }
                Err(why) => first = first.or(Some(why)),
            }
        }
        (found, first)
    }

    /// Evaluates a number with a unit, such as `30 Myr` or `-1e-24 g/cm3`; `None` if the text is none. A `key_unit` such as
    /// `K` that is no product of length, mass and time may follow the number as it is.
    fn measured(&self, text: &str, key_unit: Option<&str>) -> Option<Result<Number, String>> {
        let (value, unit) = units::split_number(text.trim())?;
        if key_unit == Some(unit) {
            let dimension = Dimension::Unknown;
            return Some(Ok(Number { value, dimension }));
        }
        if !units::begins_with_unit(unit) {
            return None;
        }
        let Some(units) = &self.units else {
            return Some(Err("units need a table [units]".into()));
        };
        let number = |unit: MeasuringUnit| Number {
            value: unit.in_code_units(value),
            dimension: unit.dimension,
        };
        Some(units.read(unit).map(number))
    }

    /// Returns the value of a number with a unit in code units; `None` if the text is none.
    pub fn measured_value(&self, text: &str) -> Option<Result<f64, String>> {
        let number = self.measured(text, None)?;
        Some(number.map(|number| number.value))
    }

    /// Returns the dimension of an expression.
    fn dimension(&self, text: &str) -> Result<Dimension, FormulaError> {
        let named = self.known.iter().zip(&self.dimensions);
        let named = named.map(|((name, value), dimension)| NamedTerm {
            name,
            value: *value,
            dimension: *dimension,
        });
        dimension_of(text, &named.collect::<Vec<_>>())
    }
}

/// A number with its dimension.
struct Number {
    value: f64,
    dimension: Dimension,
}

/// Evaluates a constant, which may use the names before it.
fn constant(entry: &KeyValue, names: &NamedNumbers) -> Result<Number, DeckError> {
    let path = format!("{CONSTANTS}.{}", entry.key);
    if !is_free_name(&entry.key) {
        let message = format!(
            "`{path}`: the name of a constant must consist of letters, digits and `_`, and must not be a word of formulas"
        );
        return Err(Fault::at(&entry.key_location, message).into());
    }
    let expected = "a number or an expression";
    let number = number(&entry.node, &path, expected, None, names).map_err(|fault| *fault)?;
    if !number.value.is_finite() {
        let message = format!("`{path}` must be a finite number, found {:?}", number.value);
        return Err(Fault::at(&entry.node.location, message).into());
    }
    Ok(number)
}

/// Returns the number given by `node`, a number, an expression or a number with a unit; `unit` is that of the key.
fn number(
    node: &DeckNode,
    path: &str,
    expected: &str,
    unit: Option<&str>,
    names: &NamedNumbers,
) -> Result<Number, Box<Fault>> {
    let refused = || format!("`{path}` must be {expected}, found {}", node.shown());
    let text = match &node.value {
        DeckValue::Integer(number) => return Ok(in_code_units(*number as f64)),
        DeckValue::Number(number) => return Ok(in_code_units(*number)),
        DeckValue::Text(text) => text,
        _ => return Err(Box::new(Fault::at(&node.location, refused()))),
    };
    if let Some(measured) = names.measured(text, unit) {
        let fault = |why| Box::new(Fault::at(&node.location, format!("{}: {why}", refused())));
        return measured.map_err(fault);
    }
    let fault = |error: FormulaError| {
        let message = format!("{}: {}", refused(), error.message());
        Box::new(formula_fault(node, text, &error, &message))
    };
    let value = Formula::with_constants(text, &[], &names.known)
        .map(|formula| formula.eval(&[]))
        .map_err(fault)?;
    // of a number without a name, the deck does not tell the dimension
    let dimension = match names.dimension(text).map_err(fault)? {
        Dimension::NONE => Dimension::Unknown,
        dimension => dimension,
    };
    Ok(Number { value, dimension })
}

fn in_code_units(value: f64) -> Number {
    Number {
        value,
        dimension: Dimension::Unknown,
    }
}

/// Checks that a number has the dimension of a key with this unit. A key without a unit is a pure number; the dimension of a
/// key with a unit such as `of the field` is not known here.
fn check_dimension(
    node: &DeckNode,
    path: &str,
    unit: Option<&str>,
    dimension: Dimension,
) -> Result<(), Box<Fault>> {
    let unit = unit.unwrap_or("1");
    if dimension == Dimension::Unknown || unit.starts_with("of ") {
        return Ok(());
    }
    let wanted = match dimension_of_key(unit) {
        Some(wanted) if wanted == dimension => return Ok(()),
        Some(wanted) => wanted.shown(),
        None => format!("a number in {unit}"),
    };
    let found = dimension.shown();
    let message = format!("`{path}` must be {wanted}, but {} is {found}", node.shown());
    Err(Box::new(Fault::at(&node.location, message)))
}

/// Checks the dimension of a formula that is a constant expression. Formulas of variables may be in code units, and errors in
/// formulas are found where they are compiled.
fn check_formula(
    node: &DeckNode,
    path: &str,
    unit: Option<&str>,
    names: &NamedNumbers,
) -> Result<(), Box<Fault>> {
    let constant = match unit {
        Some(unit) => number(node, path, "a formula", Some(unit), names).ok(),
        None => None,
    };
    constant.map_or(Ok(()), |found| {
        check_dimension(node, path, unit, found.dimension)
    })
}

/// Evaluates texts as expressions where `shape` needs numbers: `height = "5/3"`, `radius = "2*r0"`.
pub(crate) fn evaluate_expressions(
    node: &mut DeckNode,
    shape: &ValueShape,
    path: &str,
    names: &NamedNumbers,
    faults: &mut Vec<Fault>,
) {
    match (&shape.kind, &mut node.value) {
        (ShapeKind::Number | ShapeKind::Integer, DeckValue::Text(_)) => {
            let unit = shape.unit.as_deref();
            let found = number(node, path, &shape.expected(), unit, names);
            let checked = found.and_then(|found| {
                check_dimension(node, path, unit, found.dimension).map(|()| found.value)
            });
            match checked {
                Ok(value) => node.value = to_integer(value, &shape.kind),
                Err(fault) => faults.push(*fault),
            }
        }
        (ShapeKind::Text(..) | ShapeKind::Any, DeckValue::Text(_)) => {
            let unit = shape.unit.as_deref();
            faults.extend(
                check_formula(node, path, unit, names)
                    .err()
                    .map(|fault| *fault),
            );
        }
        (ShapeKind::List(list), DeckValue::List(items)) => {
            for (i, item) in items.iter_mut().enumerate() {
                evaluate_expressions(item, &list.item, &format!("{path}[{i}]"), names, faults);
            }
        }
        (ShapeKind::Record(record), DeckValue::Table(entries)) => {
            for entry in entries {
                let field = record.field(&entry.key).map(|field| &field.shape);
                if let Some(shape) = field.or(record.others.as_deref()) {
                    let path = join(path, &entry.key);
                    evaluate_expressions(&mut entry.node, shape, &path, names, faults);
                }
            }
        }
        (ShapeKind::Choice(shapes), _) => {
            if let Some(shape) = intended_shape(node, shapes) {
                evaluate_expressions(node, shape, path, names, faults);
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
