//! The JSON schemas of tables and of whole decks.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json, json};

use crate::constants::CONSTANTS;
use crate::shape::ValueShape;

/// A table with any keys, for an element of a list whose elements belong to different owners: `Vec<OpenTable>`.
///
/// Each element says by a tag whose it is, and its owner takes it by [`Deck::variant`](crate::Deck::variant).
pub type OpenTable = Map<String, Json>;

/// A table of decks: its name and everything known about its parameters.
#[derive(Clone, Debug)]
pub struct TableSchema {
    name: String,
    schema: Json,
    /// Tag and word, if this is a kind of element of the list `name`.
    variant: Option<(String, String)>,
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
            variant: None,
        }
    }

    /// The parameters of the struct `T` as those elements of the list `name` (such as `mesh.refine`) whose key `tag` is
    /// `word`; the list itself is a `Vec<OpenTable>` of its table. The tag is no field of `T`.
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

    /// The same where every text with the extension `"words": list` is one of `words`, each with its documentation.
    #[must_use]
    pub fn with_words(mut self, list: &str, words: &[(&str, &str)]) -> Self {
        put_words(&mut self.schema, list, words);
        self
    }

    /// The tag and the word of a [`variant`](TableSchema::variant).
    #[must_use]
    pub fn tag(&self) -> Option<(&str, &str)> {
        self.variant
            .as_ref()
            .map(|(tag, word)| (tag.as_str(), word.as_str()))
    }

    /// The place of the elements' schema if this table has the list `name`.
    fn items(&mut self, name: &str) -> Option<&mut Json> {
        let mut place = &mut self.schema;
        let path = match self.name.as_str() {
            "" => name,
            own => name.strip_prefix(own)?.strip_prefix('.')?,
        };
        for key in path.split('.') {
            place = place.get_mut("properties")?.get_mut(key)?;
        }
        place.get_mut("items")
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

/// The tables among `tables` with all variants of their lists written into them; variants of lists that no table has are
/// left out.
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

/// One JSON schema of a whole deck, for editors: `tables` by name, the one with an empty name at the top level.
///
/// Variants are written into their lists; tables named `a.b` are nested. Unknown tables and keys are refused by the schema
/// as they are by the deck.
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
        let mut place = &mut root;
        for name in table.name.split('.') {
            place = &mut place["properties"][name];
        }
        *place = table.schema.clone();
    }
    with_expressions(&mut root);
    root["properties"][CONSTANTS] = json!({
        "description": "Numbers with names, for formulas and expressions: each a number, or an expression of those before it.",
        "type": "object",
        "additionalProperties": { "type": ["number", "string"] },
    });
    root
}

/// Lets every number be an expression as well.
fn with_expressions(schema: &mut Json) {
    match schema {
        Json::Object(keys) => {
            for (key, value) in keys.iter_mut() {
                match value.as_str() {
                    Some(kind @ ("number" | "integer")) if key == "type" => {
                        *value = json!([kind, "string"]);
                    }
                    _ => with_expressions(value),
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(with_expressions),
        _ => {}
    }
}
