//! Command-line overrides: `table.key=value`.

use std::sync::Arc;

use toml::de::DeValue;

use crate::check::{ShapeChoice, choose};
use crate::error::{DeckError, Fault, SourceSpan, SourceText};
use crate::shape::{ShapeKind, ValueShape};
use crate::tree::{DeckNode, DeckValue, KeyValue, PathStep, from_value, steps};

/// Maximum number of parts of a key; bounds the recursion.
const MAX_KEY_PARTS: usize = 64;

/// Maximum number of characters of an override in messages.
const MAX_SHOWN_CHARS: usize = 100;

/// Applies the override `argument` (`table.key=value`) to `root`.
pub(crate) fn set(root: &mut DeckNode, argument: &str) -> Result<(), DeckError> {
    let source = Arc::new(SourceText {
        name: match argument.char_indices().nth(MAX_SHOWN_CHARS) {
            Some((end, _)) => format!("--set {}…", &argument[..end]),
            None => format!("--set {argument}"),
        },
        text: argument.to_string(),
        is_file: false,
    });
    if let Some(fault) = Fault::of_invisible(&source) {
        return Err(fault.into());
    }
    let whole = SourceSpan {
        source: source.clone(),
        span: 0..argument.len(),
    };
    let Some(equals) = argument.find('=') else {
        let message = "`=` is missing; write table.key=value";
        return Err(Fault::at(&whole, message).into());
    };
    let name = argument[..equals].trim_end();
    if name.trim().is_empty() {
        return Err(Fault::at(&whole, "the key is missing; write table.key=value").into());
    }
    let key_location = SourceSpan {
        source: source.clone(),
        span: 0..name.len(),
    };
    let Some(path) = steps(name.trim_start()) else {
        let message =
            format!("`{name}` is not a key; write table.key=value or table.list[0].key=value");
        return Err(Fault::at(&key_location, message).into());
    };
    if path.len() > MAX_KEY_PARTS {
        let message = format!(
            "a key has at most {MAX_KEY_PARTS} parts, found {}",
            path.len()
        );
        return Err(Fault::at(&key_location, message).into());
    }
    let node = value(&source, equals + 1)?;
    insert(root, &path, node, &key_location)
        .map_err(|message| Fault::at(&key_location, message).into())
}

/// Reads the value that begins at byte `from`: TOML, otherwise a text without quotes.
fn value(source: &Arc<SourceText>, from: usize) -> Result<DeckNode, DeckError> {
    let text = &source.text[from..];
    let start = from + (text.len() - text.trim_start().len());
    let text = text.trim();
    let location = SourceSpan {
        source: source.clone(),
        span: start..start + text.len(),
    };
    if text.is_empty() {
        return Err(Fault::at(
            &location,
            "the value is missing; write table.key=\"\" for an empty text",
        )
        .into());
    }
    let mut faults = Vec::new();
    let node = match DeValue::parse(text) {
        Ok(value) => shift(from_value(source, value, &mut faults), start),
        Err(error) if text.starts_with(['"', '\'', '[', '{']) => {
            let span = error.span().map_or(location.span.clone(), |span| {
                start + span.start..start + span.end
            });
            let at = SourceSpan {
                source: source.clone(),
                span,
            };
            let reason = format!("the value is malformed: {}", error.message());
            return Err(Fault::not_toml(&at, reason).into());
        }
        Err(_) => DeckNode {
            value: DeckValue::Text(text.to_string()),
            location,
        },
    };
    DeckError::check(faults).map(|()| node)
}

/// Shifts the spans of a value that was read from the tail of its source.
fn shift(mut node: DeckNode, by: usize) -> DeckNode {
    let moved = |location: SourceSpan| SourceSpan {
        span: location.span.start + by..location.span.end + by,
        ..location
    };
    node.location = moved(node.location);
    node.value = match node.value {
        DeckValue::List(items) => {
            DeckValue::List(items.into_iter().map(|item| shift(item, by)).collect())
        }
        DeckValue::Table(entries) => {
            let entry = |e: KeyValue| KeyValue {
                key: e.key,
                key_location: moved(e.key_location),
                node: shift(e.node, by),
            };
            DeckValue::Table(entries.into_iter().map(entry).collect())
        }
        value => value,
    };
    node
}

/// Inserts `node` at `path` and creates missing tables.
pub(crate) fn insert(
    parent: &mut DeckNode,
    path: &[PathStep],
    node: DeckNode,
    location: &SourceSpan,
) -> Result<(), String> {
    let Some((step, rest)) = path.split_first() else {
        *parent = node;
        return Ok(());
    };
    let kind = parent.kind();
    let child = match (step, &mut parent.value) {
        (PathStep::Key(key), DeckValue::Table(entries)) => child(entries, key, location),
        (PathStep::Index(i), DeckValue::List(items)) => {
            let count = items.len();
            let absent =
                format!("there is no element [{i}]: the list has {count} (counted from 0)");
            items.get_mut(*i).ok_or(absent)?
        }
        (PathStep::Key(key), DeckValue::List(items)) if !items.is_empty() => {
            let hint = "select an element with [0], [1], …";
            return Err(format!("`{key}` is in a list; {hint}"));
        }
        (PathStep::Key(key), _) => {
            return Err(format!("`{key}` needs a table, found {kind}"));
        }
        (PathStep::Index(i), _) => {
            return Err(format!("element [{i}] needs a list, found {kind}"));
        }
    };
    insert(child, rest, node, location)
}

/// Returns the value of `key`; inserts an empty table if it is missing.
fn child<'a>(entries: &'a mut Vec<KeyValue>, key: &str, location: &SourceSpan) -> &'a mut DeckNode {
    let at = entries.iter().position(|entry| entry.key == key);
    let at = at.unwrap_or_else(|| {
        let node = DeckNode {
            value: DeckValue::Table(Vec::new()),
            location: location.clone(),
        };
        entries.push(KeyValue {
            key: key.to_string(),
            key_location: location.clone(),
            node,
        });
        entries.len() - 1
    });
    &mut entries[at].node
}

/// Restores texts of overrides that TOML reads as numbers or booleans where `shape` needs texts: `--set
/// initial.value=1` gives the formula "1".
pub(crate) fn restore_texts(node: &mut DeckNode, shape: &ValueShape) {
    let bare = matches!(
        node.value,
        DeckValue::Integer(_) | DeckValue::Number(_) | DeckValue::Boolean(_)
    );
    match (&shape.kind, &mut node.value) {
        (ShapeKind::Text(..), _) if bare && !node.location.source.is_file => {
            let text = node
                .location
                .source
                .text
                .get(node.location.span.clone())
                .unwrap_or_default();
            node.value = DeckValue::Text(text.to_string());
        }
        (ShapeKind::List(list), DeckValue::List(items)) => items
            .iter_mut()
            .for_each(|item| restore_texts(item, &list.item)),
        (ShapeKind::Record(record), DeckValue::Table(entries)) => {
            for entry in entries {
                let field = record.field(&entry.key).map(|field| &field.shape);
                if let Some(shape) = field.or(record.others.as_deref()) {
                    restore_texts(&mut entry.node, shape);
                }
            }
        }
        (ShapeKind::Choice(shapes), _) => {
            if let ShapeChoice::Shape(shape) = choose(node, shapes, "", &mut Vec::new()) {
                restore_texts(node, shape);
            }
        }
        _ => {}
    }
}
