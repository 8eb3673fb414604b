//! JSON schemas of tables and of whole decks, and the documentation of parameters.

use crate::constants::CONSTANTS;
use crate::shape::{ShapeKind, TableShape, ValueShape};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json, json};

/// A table with any keys: an element of a list whose elements have different owners, `Vec<OpenTable>`.
///
/// A tag selects the owner of each element, which takes it with [`Deck::variant`](crate::Deck::variant).
pub type OpenTable = Map<String, Json>;

/// Schema of a deck table: its name and parameters.
#[derive(Clone, Debug)]
pub struct TableSchema {
    name: String,
    schema: Json,
    /// Tag and word, if this describes elements of the list `name`.
    variant: Option<(String, String)>,
}

impl TableSchema {
    /// Returns the schema of the struct `T` as the table `name`; an empty name means the top level of a deck.
    ///
    /// The derived schema of `T` is the only source of documentation, defaults, ranges, units and words:
    /// - doc comments of fields and of enum variants document them;
    /// - `#[serde(default)]` on the struct and its `Default` give the defaults;
    /// - `#[schemars(range(min = 0, max = 1))]` bounds a number, `#[schemars(inner(range(min = 0)))]` each number of a
    ///   list. schemars ignores `range` on other types: for an untagged "number or list" write
    ///   `#[schemars(extend("minimum" = 0.0, "maximum" = 1.0))]`, which applies to each number;
    /// - `#[schemars(extend("exclusiveMinimum" = 0.0))]` and `exclusiveMaximum` are exclusive bounds;
    /// - `#[schemars(extend("zeroOr" = 1e-3))]` allows 0 and numbers from this one on;
    /// - `#[schemars(length(min = 1))]` bounds the length of a text or a list;
    /// - `#[schemars(extend("unit" = "1/time"))]` gives the unit;
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
            variant: None,
        }
    }

    /// Returns the schema of the struct `T` for elements of the list `name` (such as `mesh.refine`) whose key `tag` is
    /// `word`. The list is a `Vec<OpenTable>` of its table, and the tag is not a field of `T`.
    #[must_use]
    pub fn variant<T: JsonSchema>(name: &str, tag: &str, word: &str) -> Self {
        let mut table = TableSchema::of::<T>(name);
        let mut properties = Map::new();
        properties.insert(tag.to_string(), json!({ "type": "string", "const": word }));
        if let Some(own) = table.schema["properties"].as_object() {
            properties.extend(own.clone());
        }
        let mut required = vec![Json::from(tag)];
        required.extend(
            table.schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .cloned(),
        );
        table.schema["properties"] = properties.into();
        table.schema["required"] = required.into();
        table.variant = Some((tag.to_string(), word.to_string()));
        table
    }

    /// Restricts texts with the extension `"words": list` to `words`, each given with its documentation.
    #[must_use]
    pub fn with_words(mut self, list: &str, words: &[(&str, &str)]) -> Self {
        put_words(&mut self.schema, list, words);
        self
    }

    /// Returns the tag and the word of a [`variant`](TableSchema::variant).
    #[must_use]
    pub fn tag(&self) -> Option<(&str, &str)> {
        self.variant
            .as_ref()
            .map(|(tag, word)| (tag.as_str(), word.as_str()))
    }

    /// Returns the schema of the elements of the list `name`, if this table has it.
    fn items(&mut self, name: &str) -> Option<&mut Json> {
        let mut location = &mut self.schema;
        let path = match self.name.as_str() {
            "" => name,
            own => name.strip_prefix(own)?.strip_prefix('.')?,
        };
        for key in path.split('.') {
            location = location.get_mut("properties")?.get_mut(key)?;
        }
        location.get_mut("items")
    }

    /// Returns the name of the table; empty for the top level of a deck.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the doc comment of the struct.
    #[must_use]
    pub fn doc(&self) -> &str {
        self.schema["description"].as_str().unwrap_or_default()
    }

    pub(crate) fn shape(&self) -> ValueShape {
        ValueShape::of(&self.schema)
    }
}

fn put_words(schema: &mut Json, list: &str, words: &[(&str, &str)]) {
    match schema {
        Json::Object(keys) if keys.get("words").is_some_and(|name| name == list) => {
            let word = |(word, doc): &(&str, &str)| json!({ "type": "string", "const": word, "description": doc });
            keys.retain(|key, _| key != "words" && key != "type");
            keys.insert("oneOf".into(), words.iter().map(word).collect());
        }
        Json::Object(keys) => keys
            .values_mut()
            .for_each(|value| put_words(value, list, words)),
        Json::Array(items) => items
            .iter_mut()
            .for_each(|item| put_words(item, list, words)),
        _ => {}
    }
}

/// Merges variants into the lists of their tables; variants of lists that no table has are dropped.
#[must_use]
pub fn merged(tables: &[TableSchema]) -> Vec<TableSchema> {
    let (variants, mut tables): (Vec<_>, Vec<_>) = tables
        .iter()
        .cloned()
        .partition(|table| table.variant.is_some());
    for variant in variants {
        let Some(items) = tables
            .iter_mut()
            .find_map(|table| table.items(&variant.name))
        else {
            continue;
        };
        match items.get_mut("oneOf").and_then(Json::as_array_mut) {
            Some(others) => others.push(variant.schema),
            None => *items = json!({ "oneOf": [variant.schema] }),
        }
    }
    tables
}

/// Returns one JSON schema of a whole deck, for editors; the table with an empty name is the top level.
///
/// Variants are merged into their lists, and tables named `a.b` are nested. The schema rejects unknown tables and keys.
#[must_use]
pub fn schema(tables: &[TableSchema]) -> Json {
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Nestar deck",
        "type": "object",
        "properties": {},
        "additionalProperties": false,
    });
    let tables = merged(tables);
    for table in tables.iter().filter(|table| table.name.is_empty()) {
        for part in ["properties", "required"] {
            if let Some(value) = table.schema.get(part) {
                root[part] = value.clone();
            }
        }
    }
    for table in tables.iter().filter(|table| !table.name.is_empty()) {
        let mut location = &mut root;
        for name in table.name.split('.') {
            location = &mut location["properties"][name];
        }
        *location = table.schema.clone();
    }
    with_expressions(&mut root);
    root["properties"][CONSTANTS] = json!({
        "description": "Named constants for formulas and expressions: each is a number or an expression of earlier constants.",
        "type": "object",
        "additionalProperties": { "type": ["number", "string"] },
    });
    root
}

/// Allows an expression for every number, also where the number is optional.
fn with_expressions(schema: &mut Json) {
    match schema {
        Json::Object(keys) => {
            for (key, value) in keys.iter_mut() {
                let kinds: Vec<&str> = match &*value {
                    Json::Array(kinds) => kinds.iter().filter_map(Json::as_str).collect(),
                    kind => kind.as_str().into_iter().collect(),
                };
                let is_number = kinds
                    .iter()
                    .any(|kind| ["number", "integer"].contains(kind));
                match key == "type" && is_number && !kinds.contains(&"string") {
                    true => *value = json!([&kinds[..], &["string"]].concat()),
                    false => with_expressions(value),
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(with_expressions),
        _ => {}
    }
}

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
        .map(|value| crate::tree::inline(&value))
}
