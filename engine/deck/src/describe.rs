//! Documentation of parameters and the JSON schema of whole decks.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use crate::shape::{Kind, Record, Shape};

/// A table of decks: its name and everything known about its parameters.
#[derive(Clone, Debug)]
pub struct TableSchema {
    name: String,
    schema: Json,
}

impl TableSchema {
    /// The parameters of the struct `T` as the table `name`; an empty name stands for the keys at the top of a deck.
    ///
    /// The derived schema of `T` is the one source of documentation, defaults, ranges, units and words:
    /// - doc comments of fields and of enum variants document them;
    /// - `#[serde(default)]` on the struct and its `Default` give the defaults;
    /// - `#[schemars(range(min = 0, max = 1))]` bounds a number, `#[schemars(inner(range(min = 0)))]` each number of a
    ///   list. schemars ignores `range` on any other type: for an untagged "number or list" write
    ///   `#[schemars(extend("minimum" = 0.0, "maximum" = 1.0))]`, which holds for each number in it;
    /// - `#[schemars(extend("exclusiveMinimum" = 0.0))]` and `exclusiveMaximum` exclude the end, and hold likewise;
    /// - `#[schemars(length(min = 1))]` bounds the length of a text or a list;
    /// - `#[schemars(extend("unit" = "1/time"))]` names the unit;
    /// - `#[schemars(extend("elements" = ["x", "y", "z"]))]` names the elements of a list.
    #[must_use]
    pub fn of<T: JsonSchema>(name: &str) -> Self {
        let settings =
            SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let mut schema = settings
            .into_generator()
            .into_root_schema_for::<T>()
            .to_value();
        if let Some(object) = schema.as_object_mut() {
            object.remove("$schema");
        }
        TableSchema {
            name: name.to_string(),
            schema,
        }
    }

    /// The table's name; empty for the keys at the top of a deck.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the doc comment of the struct says.
    #[must_use]
    pub fn doc(&self) -> &str {
        self.schema["description"].as_str().unwrap_or_default()
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape::of(&self.schema)
    }
}

/// All that is known about one parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterDoc {
    /// The key within its table; `refine[].field` in a list of tables, `refine[gradient].field` if only tables whose
    /// tag is `gradient` have it.
    pub key: String,
    /// What values it takes: `number`, `3 numbers`, `word`, `number or a list of numbers` …
    pub kind: String,
    /// The unit of its numbers.
    pub unit: Option<String>,
    /// The default as TOML; `None` if the key is required or unset by default.
    pub default: Option<String>,
    /// The key cannot be left out.
    pub required: bool,
    /// The range of its numbers, such as `above 0 and at most 1`.
    pub range: Option<String>,
    /// The allowed words, each with its documentation; empty if it takes no words.
    pub allowed: Vec<(String, String)>,
    /// The documentation.
    pub doc: String,
}

/// Describes the parameters of the struct `T`, in the order of its fields; tables within it follow their key.
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

fn within(shape: &Shape, prefix: &str, docs: &mut Vec<ParameterDoc>) {
    match &shape.kind {
        Kind::Record(record) => fields(record, prefix, None, docs),
        Kind::List(list) => within(&list.item, &format!("{prefix}[]"), docs),
        Kind::Choice(shapes) => {
            for shape in shapes {
                match &shape.kind {
                    Kind::Record(record) => variant(record, shape, prefix, docs),
                    _ => within(shape, prefix, docs),
                }
            }
        }
        _ => {}
    }
}

/// The keys of one variant of a tagged table; the tag itself carries the variant's documentation.
fn variant(record: &Record, shape: &Shape, prefix: &str, docs: &mut Vec<ParameterDoc>) {
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

fn fields(record: &Record, prefix: &str, tag: Option<&str>, docs: &mut Vec<ParameterDoc>) {
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
        docs.push(parameter(key, false, shape));
    }
}

fn parameter(key: String, required: bool, shape: &Shape) -> ParameterDoc {
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

fn range_of(shape: &Shape) -> Option<String> {
    match &shape.kind {
        Kind::Number | Kind::Integer => shape.bounds.text(),
        Kind::List(list) => range_of(&list.item),
        Kind::Choice(shapes) => shapes.iter().find_map(range_of),
        _ => None,
    }
}

fn words(shape: &Shape) -> Vec<(String, String)> {
    match &shape.kind {
        Kind::Words(words) => words.clone(),
        Kind::List(list) => words(&list.item),
        Kind::Choice(shapes) => shapes
            .iter()
            .map(words)
            .find(|words| !words.is_empty())
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// A JSON value as TOML on one line.
fn inline_toml(value: &Json) -> Option<String> {
    toml::Value::try_from(value)
        .ok()
        .map(|value| crate::write::inline(&value))
}

/// One JSON schema of a whole deck, for editors: `tables` by name, the one with an empty name at the top level.
///
/// Tables named `a.b` are nested. Unknown tables and keys are refused by the schema as they are by the deck.
#[must_use]
pub fn schema(tables: &[TableSchema]) -> Json {
    let mut root = serde_json::json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Nestar deck",
        "type": "object",
        "properties": {},
        "additionalProperties": false,
    });
    for table in tables.iter().filter(|table| table.name.is_empty()) {
        for part in ["properties", "required"] {
            if let Some(value) = table.schema.get(part) {
                root[part] = value.clone();
            }
        }
    }
    for table in tables.iter().filter(|table| !table.name.is_empty()) {
        let mut place = &mut root;
        for name in table.name.split('.') {
            place = &mut place["properties"][name];
        }
        *place = table.schema.clone();
    }
    root
}
