//! The deck as a tree of values with positions, and its text with short numbers: `1e-300` instead of three hundred
//! zeros.

use crate::error::{Fault, SourceSpan, SourceText};
use std::sync::Arc;
use toml::de::{DeArray, DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// A value and its position in the source.
#[derive(Clone, Debug)]
pub(crate) struct DeckNode {
    pub value: DeckValue,
    pub location: SourceSpan,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(crate) enum DeckValue {
    Text(String),
    Integer(i64),
    Number(f64),
    Boolean(bool),
    Date(toml::value::Datetime),
    List(Vec<DeckNode>),
    Table(Vec<KeyValue>),
}

/// A key with its value, in the order of the deck.
#[derive(Clone, Debug)]
pub(crate) struct KeyValue {
    pub key: String,
    pub key_location: SourceSpan,
    pub node: DeckNode,
}

/// One step of a path such as `mesh.refine[1].threshold`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathStep {
    Key(String),
    Index(usize),
}

/// Splits a path such as `mesh.refine[1].threshold` into steps; `None` if it is malformed.
pub(crate) fn steps(path: &str) -> Option<Vec<PathStep>> {
    let mut steps = Vec::new();
    for part in path.split('.') {
        let (name, mut rest) = part.split_at(part.find('[').unwrap_or(part.len()));
        if name.is_empty()
            || !name
                .chars()
                .all(|c| c.is_alphanumeric() || c == '_' || c == '-')
        {
            return None;
        }
        steps.push(PathStep::Key(name.to_string()));
        while !rest.is_empty() {
            let close = rest.find(']')?;
            steps.push(PathStep::Index(
                rest.strip_prefix('[')?.get(..close - 1)?.parse().ok()?,
            ));
            rest = &rest[close + 1..];
        }
    }
    Some(steps)
}

/// Result of following a path.
pub(crate) struct PathLookup<'a> {
    /// Value, if every step of the path exists.
    pub node: Option<&'a DeckNode>,
    /// Position of the value, or of the innermost existing part of the path; `None` if the first key is missing.
    pub location: Option<&'a SourceSpan>,
}

impl DeckNode {
    /// Returns the entry of `key` in this table.
    pub fn get(&self, key: &str) -> Option<&KeyValue> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// Removes `key` from this table.
    pub fn remove(&mut self, key: &str) -> Option<KeyValue> {
        let DeckValue::Table(entries) = &mut self.value else {
            return None;
        };
        let at = entries.iter().position(|entry| entry.key == key)?;
        Some(entries.remove(at))
    }

    /// Returns the entries of this table; none if it is not a table.
    pub fn entries(&self) -> &[KeyValue] {
        if let DeckValue::Table(entries) = &self.value {
            entries
        } else {
            &[]
        }
    }

    /// Returns `true` for a table or a list of tables, which are written under a header.
    pub fn is_section(&self) -> bool {
        match &self.value {
            DeckValue::Table(_) => true,
            DeckValue::List(items) => items
                .iter()
                .any(|item| matches!(item.value, DeckValue::Table(_))),
            _ => false,
        }
    }

    /// Follows `path`.
    pub fn find(&self, path: &[PathStep]) -> PathLookup<'_> {
        let mut node = self;
        let mut location = None;
        for step in path {
            let next = match (step, &node.value) {
                (PathStep::Key(key), DeckValue::Table(_)) => node.get(key).map(|entry| {
                    // point at the key of a table, not at its whole text
                    let is_table = matches!(entry.node.value, DeckValue::Table(_));
                    (
                        &entry.node,
                        if is_table {
                            &entry.key_location
                        } else {
                            &entry.node.location
                        },
                    )
                }),
                (PathStep::Index(i), DeckValue::List(items)) => {
                    items.get(*i).map(|item| (item, &item.location))
                }
                _ => None,
            };
            let Some((found, at)) = next else {
                return PathLookup {
                    node: None,
                    location,
                };
            };
            node = found;
            location = Some(at);
        }
        PathLookup {
            node: Some(node),
            location,
        }
    }

    /// Returns the type of this value for messages, with its article.
    pub fn kind(&self) -> &'static str {
        match self.value {
            DeckValue::Text(_) => "a text",
            DeckValue::Integer(_) => "an integer",
            DeckValue::Number(_) => "a number",
            DeckValue::Boolean(_) => "true or false",
            DeckValue::Date(_) => "a date",
            DeckValue::List(_) => "a list",
            DeckValue::Table(_) => "a table",
        }
    }

    /// Formats the value for messages: `the text "abc"`, `3.5`, `a list of 2`.
    pub fn shown(&self) -> String {
        match &self.value {
            DeckValue::Text(text) => format!("the text {}", quoted(text)),
            DeckValue::Integer(number) => number.to_string(),
            DeckValue::Number(number) => format!("{number:?}"),
            DeckValue::Boolean(truth) => truth.to_string(),
            DeckValue::Date(date) => format!("the date {date}"),
            DeckValue::List(items) => format!("a list of {}", items.len()),
            DeckValue::Table(_) => "a table".to_string(),
        }
    }

    /// Returns the value without positions, for serde.
    pub fn to_toml(&self) -> toml::Value {
        match &self.value {
            DeckValue::Text(text) => text.clone().into(),
            DeckValue::Integer(number) => (*number).into(),
            DeckValue::Number(number) => (*number).into(),
            DeckValue::Boolean(truth) => (*truth).into(),
            DeckValue::Date(date) => (*date).into(),
            DeckValue::List(items) => {
                toml::Value::Array(items.iter().map(DeckNode::to_toml).collect())
            }
            DeckValue::Table(entries) => toml::Value::Table(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.node.to_toml()))
                    .collect(),
            ),
        }
    }
}

/// Quotes `text`, truncated for messages.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 40;
    if text.chars().count() <= MAX_SHOWN_CHARS {
        return format!("{text:?}");
    }
    let cut: String = text.chars().take(MAX_SHOWN_CHARS).collect();
    format!("{cut:?}…")
}

/// Converts the parsed `table` of `source`; adds numbers that do not fit to `faults`.
pub(crate) fn from_table(
    source: &Arc<SourceText>,
    table: Spanned<DeTable<'_>>,
    faults: &mut Vec<Fault>,
) -> DeckNode {
    let location = SourceSpan {
        source: source.clone(),
        span: table.span(),
    };
    DeckNode {
        value: entries(source, table.into_inner(), faults),
        location,
    }
}

/// Converts one parsed value of `source`.
pub(crate) fn from_value(
    source: &Arc<SourceText>,
    value: Spanned<DeValue<'_>>,
    faults: &mut Vec<Fault>,
) -> DeckNode {
    let location = SourceSpan {
        source: source.clone(),
        span: value.span(),
    };
    let mut refuse = |message: String| {
        faults.push(Fault::at(&location, message));
        DeckValue::Integer(0)
    };
    let value = match value.into_inner() {
        DeValue::String(text) => DeckValue::Text(text.into_owned()),
        DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) => DeckValue::Integer(number),
            Err(_) => refuse(format!("the integer {digits} does not fit 64 bits")),
        },
        DeValue::Float(digits) => match digits.as_str().parse::<f64>() {
            Ok(number) if number.is_infinite() && !digits.as_str().contains("inf") => refuse(
                format!("the number {digits} is too large for double precision (1.8e308)"),
            ),
            Ok(number) => DeckValue::Number(number),
            Err(_) => refuse(format!("{digits} is not a number")),
        },
        DeValue::Boolean(truth) => DeckValue::Boolean(truth),
        DeValue::Datetime(date) => DeckValue::Date(date),
        DeValue::Array(items) => list(source, items, faults),
        DeValue::Table(table) => entries(source, table, faults),
    };
    DeckNode { value, location }
}

fn list(source: &Arc<SourceText>, items: DeArray<'_>, faults: &mut Vec<Fault>) -> DeckValue {
    DeckValue::List(
        items
            .into_iter()
            .map(|item| from_value(source, item, faults))
            .collect(),
    )
}

fn entries(source: &Arc<SourceText>, table: DeTable<'_>, faults: &mut Vec<Fault>) -> DeckValue {
    let entry =
        |(key, value): (Spanned<std::borrow::Cow<'_, str>>, Spanned<DeValue<'_>>)| KeyValue {
            key_location: SourceSpan {
                source: source.clone(),
                span: key.span(),
            },
            key: key.into_inner().into_owned(),
            node: from_value(source, value, faults),
        };
    DeckValue::Table(table.into_iter().map(entry).collect())
}

/// Writes `table` as a TOML document.
pub(crate) fn document(table: &Table) -> String {
    let mut text = String::new();
    section(table, "", &mut text);
    text
}

/// Writes the keys of a table, then its nested tables under headers: in TOML keys must precede nested tables.
fn section(table: &Table, path: &str, text: &mut String) {
    for (key, value) in table.iter().filter(|(_, value)| !is_section(value)) {
        text.push_str(&format!("{} = {}\n", name(key), inline(value)));
    }
    for (key, value) in table.iter().filter(|(_, value)| is_section(value)) {
        let path = if path.is_empty() {
            name(key)
        } else {
            format!("{path}.{}", name(key))
        };
        match value {
            Value::Table(inner) => {
                // no header for a table that has only nested tables
                if inner.is_empty() || inner.iter().any(|(_, value)| !is_section(value)) {
                    header(&format!("[{path}]"), text);
                }
                section(inner, &path, text);
            }
            Value::Array(items) => {
                for item in items.iter().filter_map(Value::as_table) {
                    header(&format!("[[{path}]]"), text);
                    section(item, &path, text);
                }
            }
            _ => {}
        }
    }
}

fn header(line: &str, text: &mut String) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
}

/// Returns `true` for tables and lists of tables, which are written under headers.
fn is_section(value: &Value) -> bool {
    match value {
        Value::Table(_) => true,
        Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_table),
        _ => false,
    }
}

/// Writes a value on one line.
pub(crate) fn inline(value: &Value) -> String {
    match value {
        Value::Float(number) if number.is_finite() => format!("{number:?}"),
        Value::String(text) => basic_string(text),
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(inline).collect::<Vec<_>>().join(", ")
        ),
        Value::Table(table) if table.is_empty() => "{}".to_string(),
        Value::Table(table) => {
            let entries = table
                .iter()
                .map(|(key, value)| format!("{} = {}", name(key), inline(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

/// Writes a key, with quotes if TOML needs them.
fn name(key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare {
        key.to_string()
    } else {
        basic_string(key)
    }
}

/// Writes a basic string.
fn basic_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use crate::tree::document;

    #[test]
    fn is_read_back_as_it_was() {
        let text = "a = -0.0\nb = 1e-300\nc = [1, [2.5, nan], { x = 1e20, \"y z\" = \"q\" }]\nd = 1979-05-27T07:32:00Z\n\
            e = \"\\u0001\\\"\\\\\\n\\té\"\nf = []\ng = -inf\n\n[t]\nx = true\n\n[t.u]\n\n[[t.v]]\n\n[[t.v]]\n\n[t.v.w]\n\
            y = 9223372036854775807\n";
        let table: toml::Table = text.parse().expect("valid TOML");
        assert_eq!(document(&table), text);
    }
}
