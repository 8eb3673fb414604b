//! Shapes of parameters (allowed types, ranges and words), read from JSON schemas derived by `schemars`.

use serde_json::{Map, Value as Json};

/// Allowed values of a parameter, with its documentation.
#[derive(Clone, Debug)]
pub(crate) struct ValueShape {
    pub kind: ShapeKind,
    pub doc: String,
    pub unit: Option<String>,
    pub default: Option<Json>,
    pub bounds: NumberRange,
    /// Range of the number's type; mentioned only if it is exceeded.
    pub width: NumberRange,
}

/// Type of a parameter.
#[derive(Clone, Debug)]
pub(crate) enum ShapeKind {
    /// Any value: the schema has no conditions that can be checked.
    Any,
    Boolean,
    Integer,
    Number,
    /// A text with its minimum and maximum length in characters.
    Text(Option<u64>, Option<u64>),
    /// One of some words, each with its documentation.
    Words(Vec<(String, String)>),
    List(Box<ListShape>),
    Record(TableShape),
    /// One of several shapes.
    Choice(Vec<ValueShape>),
}

/// Shape of a list: its elements and its length.
#[derive(Clone, Debug)]
pub(crate) struct ListShape {
    pub item: ValueShape,
    pub least: Option<u64>,
    pub most: Option<u64>,
    /// Names of the elements, such as x, y and z.
    pub elements: Vec<String>,
}

/// Shape of a table: its keys, and the shape of other keys if they are allowed.
#[derive(Clone, Debug)]
pub(crate) struct TableShape {
    pub fields: Vec<KeyShape>,
    pub others: Option<Box<ValueShape>>,
}

/// A key of a table and the shape of its value.
#[derive(Clone, Debug)]
pub(crate) struct KeyShape {
    pub key: String,
    pub required: bool,
    pub shape: ValueShape,
}

impl ValueShape {
    /// Reads a JSON schema with inlined definitions.
    pub fn of(schema: &Json) -> ValueShape {
        ValueShape::inside(schema, NumberRange::default(), None)
    }

    /// Reads a schema that inherits bounds and unit from the enclosing schema: a range of a list, or of "a number or a
    /// list of numbers", applies to every number in it.
    fn inside(schema: &Json, bounds: NumberRange, unit: Option<&str>) -> ValueShape {
        let bounds = NumberRange::of(schema).within(bounds);
        let unit = schema["unit"].as_str().or(unit);
        ValueShape {
            kind: ValueShape::kind_of(schema, bounds, unit),
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
            width: NumberRange::of_format(schema["format"].as_str()),
        }
    }

    fn kind_of(schema: &Json, bounds: NumberRange, unit: Option<&str>) -> ShapeKind {
        if let Some(branches) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            // a flattened enum: each branch is a table that also has the keys of the outer table
            let branches: Vec<Json> = branches
                .iter()
                .map(|branch| with_outer(branch, schema))
                .collect();
            return ValueShape::choice(&branches, bounds, unit);
        }
        if let Some(word) = schema["const"].as_str() {
            let doc = schema["description"].as_str().unwrap_or_default();
            return ShapeKind::Words(vec![(word.to_string(), doc.to_string())]);
        }
        if let Some(words) = schema["enum"].as_array() {
            let words = words
                .iter()
                .filter_map(|word| Some((word.as_str()?.to_string(), String::new())));
            return ShapeKind::Words(words.collect());
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
            ["boolean"] => ShapeKind::Boolean,
            ["integer"] => ShapeKind::Integer,
            ["number"] => ShapeKind::Number,
            ["string"] => {
                ShapeKind::Text(schema["minLength"].as_u64(), schema["maxLength"].as_u64())
            }
            ["array"] => ShapeKind::List(Box::new(ListShape::of(schema, bounds, unit))),
            ["object"] => ShapeKind::Record(TableShape::of(schema, bounds, unit)),
            _ => ShapeKind::Any,
        }
    }

    /// Merges branches: words are joined, and a single branch is not a choice.
    fn choice(branches: &[Json], bounds: NumberRange, unit: Option<&str>) -> ShapeKind {
        let mut shapes: Vec<ValueShape> = Vec::new();
        for branch in branches.iter().filter(|branch| branch["type"] != "null") {
            let shape = ValueShape::inside(branch, bounds, unit);
            match (
                shapes
                    .iter_mut()
                    .find(|other| matches!(other.kind, ShapeKind::Words(_))),
                shape.kind,
            ) {
                (
                    Some(ValueShape {
                        kind: ShapeKind::Words(words),
                        ..
                    }),
                    ShapeKind::Words(more),
                ) => words.extend(more),
                (_, ShapeKind::Choice(nested)) => shapes.extend(nested),
                (_, kind) => shapes.push(ValueShape { kind, ..shape }),
            }
        }
        if shapes.len() == 1 {
            shapes.remove(0).kind
        } else {
            ShapeKind::Choice(shapes)
        }
    }

    /// Returns the keys of a table.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let record = if let ShapeKind::Record(record) = &self.kind {
            Some(record)
        } else {
            None
        };
        record.into_iter().flat_map(TableShape::keys)
    }

    /// Returns the required keys of a table.
    pub fn required(&self) -> impl Iterator<Item = &str> {
        let record = if let ShapeKind::Record(record) = &self.kind {
            Some(record)
        } else {
            None
        };
        let fields = record.into_iter().flat_map(|record| &record.fields);
        fields
            .filter(|field| field.required)
            .map(|field| field.key.as_str())
    }

    /// Describes the expected value for messages: `a number`, `3 numbers`, `a word or a table`.
    pub fn expected(&self) -> String {
        match &self.kind {
            ShapeKind::Any => "a value".to_string(),
            ShapeKind::Boolean => "true or false".to_string(),
            ShapeKind::Integer => "an integer".to_string(),
            ShapeKind::Number => "a number".to_string(),
            ShapeKind::Text(..) => "a text".to_string(),
            ShapeKind::Words(_) => "a word".to_string(),
            ShapeKind::List(list) => list.expected(),
            ShapeKind::Record(_) => "a table".to_string(),
            ShapeKind::Choice(shapes) => {
                let mut names: Vec<String> = shapes.iter().map(ValueShape::expected).collect();
                names.dedup();
                names.join(" or ")
            }
        }
    }

    fn plural(&self) -> String {
        match &self.kind {
            ShapeKind::Any => "values",
            ShapeKind::Boolean => "truth values",
            ShapeKind::Integer => "integers",
            ShapeKind::Number => "numbers",
            ShapeKind::Text(..) => "texts",
            ShapeKind::Words(_) => "words",
            ShapeKind::List(_) => "lists",
            ShapeKind::Record(_) => "tables",
            ShapeKind::Choice(shapes) => {
                let mut names: Vec<String> = shapes.iter().map(ValueShape::plural).collect();
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

/// Returns `branch` with the keys of the enclosing table `outer`.
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

impl ListShape {
    fn of(schema: &Json, bounds: NumberRange, unit: Option<&str>) -> ListShape {
        let elements = schema["elements"].as_array().into_iter().flatten();
        // elements of a tuple with different types are not checked
        let tuple = schema["prefixItems"].as_array();
        let item = match tuple.and_then(|items| items.split_first()) {
            Some((first, rest)) if rest.iter().all(|item| item == first) => first,
            Some(_) => &Json::Null,
            None => &schema["items"],
        };
        ListShape {
            item: ValueShape::inside(item, bounds, unit),
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

impl TableShape {
    fn of(schema: &Json, bounds: NumberRange, unit: Option<&str>) -> TableShape {
        let needed = schema["required"].as_array();
        let required = |key: &str| needed.is_some_and(|keys| keys.iter().any(|name| name == key));
        let fields = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, shape)| KeyShape {
                key: key.clone(),
                required: required(key),
                shape: ValueShape::inside(shape, NumberRange::default(), None),
            });
        let fields: Vec<KeyShape> = fields.collect();
        let others = match &schema["additionalProperties"] {
            Json::Bool(true) => Some(ValueShape::of(&Json::Null)),
            shape @ Json::Object(_) => Some(ValueShape::inside(shape, bounds, unit)),
            // a table without named keys accepts any key; a table with keys does not
            _ if fields.is_empty() && schema["additionalProperties"].is_null() => {
                Some(ValueShape::of(&Json::Null))
            }
            _ => None,
        };
        TableShape {
            fields,
            others: others.map(Box::new),
        }
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.key.as_str())
    }

    pub fn field(&self, key: &str) -> Option<&KeyShape> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// Returns the serde tag of this table: a required key with a single allowed word, and this word.
    pub fn tag(&self) -> Option<(&str, &str)> {
        self.fields
            .iter()
            .find_map(|field| match &field.shape.kind {
                ShapeKind::Words(words) if field.required && words.len() == 1 => {
                    Some((field.key.as_str(), words[0].0.as_str()))
                }
                _ => None,
            })
    }
}

/// Interval of numbers; a flag is `true` if the end itself is excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct NumberRange {
    pub least: Option<(f64, bool)>,
    pub most: Option<(f64, bool)>,
    /// 0 is allowed as well.
    pub or_zero: bool,
}

impl NumberRange {
    /// Returns `true` if `x` lies in the interval.
    pub fn contains(&self, x: f64) -> bool {
        if self.or_zero && x == 0.0 {
            return true;
        }
        self.least
            .is_none_or(|(end, open)| x > end || (x == end && !open))
            && self
                .most
                .is_none_or(|(end, open)| x < end || (x == end && !open))
    }

    /// Describes the interval, such as `above 0 and at most 1`; `None` if it is unbounded.
    pub fn text(&self) -> Option<String> {
        let least = self.least.map(|(end, open)| {
            format!("{} {}", if open { "above" } else { "at least" }, plain(end))
        });
        let most = self.most.map(|(end, open)| {
            format!("{} {}", if open { "below" } else { "at most" }, plain(end))
        });
        let text = match (least, most) {
            (Some(least), Some(most)) => Some(format!("{least} and {most}")),
            (least, most) => least.or(most),
        };
        text.map(|text| match self.or_zero {
            true => format!("0, or {text}"),
            false => text,
        })
    }

    /// Returns the intersection of both intervals.
    pub fn within(self, outer: NumberRange) -> NumberRange {
        let tighter = |a: Option<(f64, bool)>, b: Option<(f64, bool)>, sign: f64| match (a, b) {
            (Some(a), Some(b)) if a.0 == b.0 => Some((a.0, a.1 || b.1)),
            (Some(a), Some(b)) => Some(if (a.0 > b.0) == (sign > 0.0) { a } else { b }),
            (a, b) => a.or(b),
        };
        NumberRange {
            least: tighter(self.least, outer.least, 1.0),
            most: tighter(self.most, outer.most, -1.0),
            or_zero: self.or_zero || outer.or_zero,
        }
    }

    /// Reads the interval from a JSON schema.
    pub fn of(schema: &Json) -> NumberRange {
        let end = |closed: &str, open: &str| {
            let number = |key: &str, excluded| schema[key].as_f64().map(|end| (end, excluded));
            number(open, true).or(number(closed, false))
        };
        let beside_zero = schema["zeroOr"].as_f64();
        NumberRange {
            least: match beside_zero {
                Some(least) => Some((least, false)),
                None => end("minimum", "exclusiveMinimum"),
            },
            most: end("maximum", "exclusiveMaximum"),
            or_zero: beside_zero.is_some(),
        }
    }

    /// Returns the range of an integer type given by its JSON schema format.
    pub fn of_format(format: Option<&str>) -> NumberRange {
        let (least, most) = match format {
            Some("int32") => (f64::from(i32::MIN), f64::from(i32::MAX)),
            Some("uint32") => (0.0, f64::from(u32::MAX)),
            _ => return NumberRange::default(),
        };
        NumberRange {
            least: Some((least, false)),
            most: Some((most, false)),
            or_zero: false,
        }
    }
}

/// Formats a number; integers without `.0`.
fn plain(x: f64) -> String {
    let text = format!("{x:?}");
    text.strip_suffix(".0").unwrap_or(&text).to_string()
}
