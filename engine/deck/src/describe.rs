//! Documentation of parameters.

use schemars::JsonSchema;
use serde_json::Value as Json;

use crate::schema::TableSchema;
use crate::shape::{ShapeKind, TableShape, ValueShape};

/// Documentation of one parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterDoc {
    /// Key within its table; `refine[].field` in a list of tables, `refine[gradient].field` if only tables with
    /// tag `gradient` have it.
    pub key: String,
    /// Type of its values: `number`, `3 numbers`, `word`, `number or a list of numbers` …
    pub kind: String,
    /// Unit of its numbers.
    pub unit: Option<String>,
    /// Default as TOML; `None` if the key is required or unset by default.
    pub default: Option<String>,
    /// `true` if the key must be given.
    pub required: bool,
    /// Range of its numbers, such as `above 0 and at most 1`.
    pub range: Option<String>,
    /// Allowed words, each with its documentation; empty if it takes no words.
    pub allowed: Vec<(String, String)>,
    /// Documentation text.
    pub doc: String,
}

/// Describes the parameters of the struct `T` in the order of its fields; nested tables follow their key.
#[must_use]
pub fn describe<T: JsonSchema>() -> Vec<ParameterDoc> {
    describe_table(&TableSchema::of::<T>(""))
}

/// Describes the parameters of `table`.
#[must_use]
pub fn describe_table(table: &TableSchema) -> Vec<ParameterDoc> {
    let mut docs = Vec::new();
    within(&table.shape(), "", &mut docs);
    docs
}

fn within(shape: &ValueShape, prefix: &str, docs: &mut Vec<ParameterDoc>) {
    match &shape.kind {
        ShapeKind::Record(record) => fields(record, prefix, None, docs),
        ShapeKind::List(list) => within(&list.item, &format!("{prefix}[]"), docs),
        ShapeKind::Choice(shapes) => {
            for shape in shapes {
                match &shape.kind {
                    ShapeKind::Record(record) => variant(record, shape, prefix, docs),
                    _ => within(shape, prefix, docs),
                }
            }
        }
        _ => {}
    }
}

/// Describes the keys of one variant of a tagged table; the tag carries the variant's documentation.
fn variant(record: &TableShape, shape: &ValueShape, prefix: &str, docs: &mut Vec<ParameterDoc>) {
    let Some((tag, word)) = record.tag() else {
        return fields(record, prefix, None, docs);
    };
    let prefix = match prefix.strip_suffix("[]") {
        Some(list) => format!("{list}[{word}]"),
        None => format!("{prefix}[{word}]"),
    };
    let first = docs.len();
    fields(record, &prefix, Some(tag), docs);
    if let Some(doc) = docs[first..]
        .iter_mut()
        .find(|doc| doc.key == format!("{prefix}.{tag}"))
    {
        doc.doc.clone_from(&shape.doc);
    }
}

fn fields(record: &TableShape, prefix: &str, tag: Option<&str>, docs: &mut Vec<ParameterDoc>) {
    let ordered = record.fields.iter().filter(|field| tag == Some(&field.key));
    for field in ordered.chain(record.fields.iter().filter(|field| tag != Some(&field.key))) {
        let key = if prefix.is_empty() {
            field.key.clone()
        } else {
            format!("{prefix}.{}", field.key)
        };
        docs.push(parameter(key.clone(), field.required, &field.shape));
        within(&field.shape, &key, docs);
    }
    if let Some(shape) = &record.others {
        let key = if prefix.is_empty() {
            "<name>".to_string()
        } else {
            format!("{prefix}.<name>")
        };
        docs.push(parameter(key.clone(), false, shape));
        within(shape, &key, docs);
    }
}

fn parameter(key: String, required: bool, shape: &ValueShape) -> ParameterDoc {
    let kind = shape.expected();
    ParameterDoc {
        key,
        kind: kind
            .strip_prefix("a ")
            .or(kind.strip_prefix("an "))
            .unwrap_or(&kind)
            .to_string(),
        unit: shape.unit.clone(),
        default: shape.default.as_ref().and_then(inline_toml),
        required,
        range: range_of(shape),
        allowed: words(shape),
        doc: shape.doc.clone(),
    }
}

fn range_of(shape: &ValueShape) -> Option<String> {
    match &shape.kind {
        ShapeKind::Number | ShapeKind::Integer => shape.bounds.text(),
        ShapeKind::List(list) => range_of(&list.item),
        ShapeKind::Choice(shapes) => shapes.iter().find_map(range_of),
        _ => None,
    }
}

fn words(shape: &ValueShape) -> Vec<(String, String)> {
    match &shape.kind {
        ShapeKind::Words(words) => words.clone(),
        ShapeKind::List(list) => words(&list.item),
        ShapeKind::Choice(shapes) => shapes
            .iter()
            .map(words)
            .find(|words| !words.is_empty())
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Writes a JSON value as TOML on one line.
fn inline_toml(value: &Json) -> Option<String> {
    toml::Value::try_from(value)
        .ok()
        .map(|value| crate::write::inline(&value))
}
