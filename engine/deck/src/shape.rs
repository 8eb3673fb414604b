//! What a parameter may be, read from the JSON schema that `schemars` derives.

use serde_json::{Map, Value as Json};

use crate::bounds::Bounds;

/// The allowed values of a parameter, with all that is known about it.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub kind: Kind,
    pub doc: String,
    pub unit: Option<String>,
    pub default: Option<Json>,
    pub bounds: Bounds,
    /// What the number's type can hold; said only where it is exceeded.
    pub width: Bounds,
}

/// The kinds of parameters.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// Anything: the schema says nothing that can be checked here.
    Any,
    Boolean,
    Integer,
    Number,
    /// A text with its least and greatest length in characters.
    Text(Option<u64>, Option<u64>),
    /// One of some words, each with its documentation.
    Words(Vec<(String, String)>),
    List(Box<List>),
    Record(Record),
    /// One of several shapes.
    Choice(Vec<Shape>),
}

/// A list: its elements and its length.
#[derive(Clone, Debug)]
pub(crate) struct List {
    pub item: Shape,
    pub least: Option<u64>,
    pub most: Option<u64>,
    /// Names of the elements, such as x, y and z.
    pub elements: Vec<String>,
}

/// A table: its keys, and the shape of the values of any other key.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub fields: Vec<Field>,
    pub others: Option<Box<Shape>>,
}

/// A key of a table.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub key: String,
    pub required: bool,
    pub shape: Shape,
}

impl Shape {
    /// Reads a JSON schema with inlined definitions.
    pub fn of(schema: &Json) -> Shape {
        Shape::inside(schema, Bounds::default(), None)
    }

    /// Reads a schema whose bounds and unit default to those of the schema around it: a range written on a list, or on
    /// "a number or a list of numbers", holds for every number in it.
    fn inside(schema: &Json, bounds: Bounds, unit: Option<&str>) -> Shape {
        let bounds = Bounds::of(schema).within(bounds);
        let unit = schema["unit"].as_str().or(unit);
        Shape {
            kind: Shape::kind_of(schema, bounds, unit),
            doc: schema["description"]
                .as_str()
                .unwrap_or_default()
                .trim()
                .to_string(),
            unit: unit.map(str::to_string),
            default: schema
                .get("default")
                .filter(|value| !value.is_null())
                .cloned(),
            bounds,
            width: Bounds::of_format(schema["format"].as_str()),
        }
    }

    fn kind_of(schema: &Json, bounds: Bounds, unit: Option<&str>) -> Kind {
        if let Some(branches) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            // A flattened enum: each branch is a table with the keys of the outer one besides.
            let branches: Vec<Json> = branches
                .iter()
                .map(|branch| with_outer(branch, schema))
                .collect();
            return Shape::choice(&branches, bounds, unit);
        }
        if let Some(word) = schema["const"].as_str() {
            let doc = schema["description"].as_str().unwrap_or_default();
            return Kind::Words(vec![(word.to_string(), doc.to_string())]);
        }
        if let Some(words) = schema["enum"].as_array() {
            let words = words
                .iter()
                .filter_map(|word| Some((word.as_str()?.to_string(), String::new())));
            return Kind::Words(words.collect());
        }
        let names: Vec<&str> = match &schema["type"] {
            Json::String(name) => vec![name],
            Json::Array(names) => names
                .iter()
                .filter_map(Json::as_str)
                .filter(|name| *name != "null")
                .collect(),
            _ => Vec::new(),
        };
        match names.as_slice() {
            ["boolean"] => Kind::Boolean,
            ["integer"] => Kind::Integer,
            ["number"] => Kind::Number,
            ["string"] => Kind::Text(schema["minLength"].as_u64(), schema["maxLength"].as_u64()),
            ["array"] => Kind::List(Box::new(List::of(schema, bounds, unit))),
            ["object"] => Kind::Record(Record::of(schema, bounds, unit)),
            _ => Kind::Any,
        }
    }

    fn choice(branches: &[Json], bounds: Bounds, unit: Option<&str>) -> Kind {
        let mut shapes: Vec<Shape> = Vec::new();
        for branch in branches.iter().filter(|branch| branch["type"] != "null") {
            let shape = Shape::inside(branch, bounds, unit);
            match (
                shapes
                    .iter_mut()
                    .find(|other| matches!(other.kind, Kind::Words(_))),
                shape.kind,
            ) {
                (
                    Some(Shape {
                        kind: Kind::Words(words),
                        ..
                    }),
                    Kind::Words(more),
                ) => words.extend(more),
                (_, Kind::Choice(nested)) => shapes.extend(nested),
                (_, kind) => shapes.push(Shape { kind, ..shape }),
            }
        }
        if shapes.len() == 1 {
            shapes.remove(0).kind
        } else {
            Kind::Choice(shapes)
        }
    }

    /// The keys of a table.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let record = if let Kind::Record(record) = &self.kind {
            Some(record)
        } else {
            None
        };
        record.into_iter().flat_map(Record::keys)
    }

    /// The keys that a table must have.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        let record = if let Kind::Record(record) = &self.kind {
            Some(record)
        } else {
            None
        };
        let fields = record.into_iter().flat_map(|record| &record.fields);
        fields
            .filter(|field| field.required)
            .map(|field| field.key.as_str())
    }

    /// What a message calls the expected value: `a number`, `3 numbers`, `a word or a table`.
    pub fn expected(&self) -> String {
        match &self.kind {
            Kind::Any => "a value".to_string(),
            Kind::Boolean => "true or false".to_string(),
            Kind::Integer => "an integer".to_string(),
            Kind::Number => "a number".to_string(),
            Kind::Text(..) => "a text".to_string(),
            Kind::Words(_) => "a word".to_string(),
            Kind::List(list) => list.expected(),
            Kind::Record(_) => "a table".to_string(),
            Kind::Choice(shapes) => {
                let mut names: Vec<String> = shapes.iter().map(Shape::expected).collect();
                names.dedup();
                names.join(" or ")
            }
        }
    }

    fn plural(&self) -> String {
        match &self.kind {
            Kind::Any => "values",
            Kind::Boolean => "truth values",
            Kind::Integer => "integers",
            Kind::Number => "numbers",
            Kind::Text(..) => "texts",
            Kind::Words(_) => "words",
            Kind::List(_) => "lists",
            Kind::Record(_) => "tables",
            Kind::Choice(shapes) => {
                let mut names: Vec<String> = shapes.iter().map(Shape::plural).collect();
                names.dedup();
                return if names.len() == 1 {
                    names.remove(0)
                } else {
                    format!("values, each {}", self.expected())
                };
            }
        }
        .to_string()
    }
}

/// `branch` with the keys of the table `outer` around its choice.
fn with_outer(branch: &Json, outer: &Json) -> Json {
    let mut branch = branch.clone();
    if let (Some(keys), Some(table)) = (outer["properties"].as_object(), branch.as_object_mut()) {
        let own = table
            .entry("properties")
            .or_insert_with(|| Json::Object(Map::new()));
        own.as_object_mut()
            .into_iter()
            .for_each(|own| own.extend(keys.clone()));
        let required = table
            .entry("required")
            .or_insert_with(|| Json::Array(Vec::new()));
        let more = outer["required"].as_array().into_iter().flatten().cloned();
        required
            .as_array_mut()
            .into_iter()
            .for_each(|required| required.extend(more.clone()));
    }
    branch
}

impl List {
    fn of(schema: &Json, bounds: Bounds, unit: Option<&str>) -> List {
        let elements = schema["elements"].as_array().into_iter().flatten();
        // The elements of a tuple may differ; then nothing is said of them.
        let tuple = schema["prefixItems"].as_array();
        let item = match tuple.and_then(|items| items.split_first()) {
            Some((first, rest)) if rest.iter().all(|item| item == first) => first,
            Some(_) => &Json::Null,
            None => &schema["items"],
        };
        List {
            item: Shape::inside(item, bounds, unit),
            least: schema["minItems"].as_u64(),
            most: schema["maxItems"].as_u64(),
            elements: elements
                .filter_map(Json::as_str)
                .map(str::to_string)
                .collect(),
        }
    }

    pub fn expected(&self) -> String {
        let items = self.item.plural();
        let names = if self.elements.is_empty() {
            String::new()
        } else {
            format!(", {}", self.elements.join(" "))
        };
        match (self.least, self.most) {
            (Some(least), Some(most)) if least == most => format!("{least} {items}{names}"),
            (Some(least), Some(most)) => format!("{least} to {most} {items}{names}"),
            (Some(least), None) => format!("{least} or more {items}{names}"),
            (None, Some(most)) => format!("up to {most} {items}{names}"),
            (None, None) => format!("a list of {items}{names}"),
        }
    }
}

impl Record {
    fn of(schema: &Json, bounds: Bounds, unit: Option<&str>) -> Record {
        let needed = schema["required"].as_array();
        let required = |key: &str| needed.is_some_and(|keys| keys.iter().any(|name| name == key));
        let fields = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, shape)| Field {
                key: key.clone(),
                required: required(key),
                shape: Shape::inside(shape, Bounds::default(), None),
            });
        let fields: Vec<Field> = fields.collect();
        let others = match &schema["additionalProperties"] {
            Json::Bool(true) => Some(Shape::of(&Json::Null)),
            shape @ Json::Object(_) => Some(Shape::inside(shape, bounds, unit)),
            // A table without any named key is an open map; one with keys is closed.
            _ if fields.is_empty() && schema["additionalProperties"].is_null() => {
                Some(Shape::of(&Json::Null))
            }
            _ => None,
        };
        Record {
            fields,
            others: others.map(Box::new),
        }
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.key.as_str())
    }

    pub fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// The key whose one allowed word tells this table from others (a serde tag), with that word.
    pub fn tag(&self) -> Option<(&str, &str)> {
        self.fields
            .iter()
            .find_map(|field| match &field.shape.kind {
                Kind::Words(words) if field.required && words.len() == 1 => {
                    Some((field.key.as_str(), words[0].0.as_str()))
                }
                _ => None,
            })
    }
}
