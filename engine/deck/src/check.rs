//! Checks the values of a deck against the shapes of its parameters.

use crate::error::nearest;
use crate::error::{Fault, SourceSpan};
use crate::shape::{KeyShape, ListShape, ShapeKind, TableShape, ValueShape};
use crate::tree::{DeckNode, DeckValue, KeyValue, quoted};

/// Checks `node`, the value at `path`, and adds its errors to `faults`.
pub(crate) fn check(node: &DeckNode, shape: &ValueShape, path: &str, faults: &mut Vec<Fault>) {
    let wrong_kind = |faults: &mut Vec<Fault>| {
        let hint = match (&shape.kind, &node.value) {
            (ShapeKind::Text(..), DeckValue::Integer(_) | DeckValue::Number(_)) => {
                format!("; write \"{}\"", node.shown())
            }
            _ => String::new(),
        };
        let message = format!(
            "`{path}` must be {}, found {}{hint}",
            shape.expected(),
            node.shown()
        );
        faults.push(Fault::at(&node.location, message));
    };
    match (&shape.kind, &node.value) {
        (ShapeKind::Any, _) | (ShapeKind::Boolean, DeckValue::Boolean(_)) => {}
        (ShapeKind::Integer, DeckValue::Integer(number)) => {
            range(node, shape, *number as f64, path, faults)
        }
        (ShapeKind::Number, DeckValue::Integer(number)) => {
            range(node, shape, *number as f64, path, faults)
        }
        (ShapeKind::Number, DeckValue::Number(number)) => range(node, shape, *number, path, faults),
        (ShapeKind::Text(least, most), DeckValue::Text(text)) => {
            length(node, *least, *most, text, path, faults)
        }
        (ShapeKind::Words(words), DeckValue::Text(word)) => {
            let words: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
            self::word(node, &words, word, path, faults);
        }
        (ShapeKind::List(list), DeckValue::List(items)) => {
            elements(node, list, items, path, faults)
        }
        (ShapeKind::Record(record), DeckValue::Table(entries)) => {
            table(&node.location, record, entries, path, faults)
        }
        (ShapeKind::Choice(shapes), _) => match choose(node, shapes, path, faults) {
            ShapeChoice::Shape(shape) => check(node, shape, path, faults),
            ShapeChoice::Reported => {}
            ShapeChoice::None => wrong_kind(faults),
        },
        _ => wrong_kind(faults),
    }
}

/// Checks that a number is finite and within its bounds.
fn range(node: &DeckNode, shape: &ValueShape, number: f64, path: &str, faults: &mut Vec<Fault>) {
    let unit = shape
        .unit
        .as_ref()
        .map_or(String::new(), |unit| format!(" ({unit})"));
    if !number.is_finite() {
        faults.push(Fault::at(
            &node.location,
            format!("`{path}` must be a finite number, found {number:?}"),
        ));
    } else if let Some(bounds) = [shape.bounds, shape.width]
        .iter()
        .find(|bounds| !bounds.contains(number))
    {
        let bounds = bounds.text().unwrap_or_default();
        faults.push(Fault::at(
            &node.location,
            format!("`{path}` must be {bounds}{unit}, found {}", node.shown()),
        ));
    }
}

/// Checks the length of a text.
fn length(
    node: &DeckNode,
    least: Option<u64>,
    most: Option<u64>,
    text: &str,
    path: &str,
    faults: &mut Vec<Fault>,
) {
    let length = text.chars().count() as u64;
    if least.is_some_and(|least| length < least) {
        let message = match least {
            Some(1) | None => format!("`{path}` must not be empty"),
            Some(least) => {
                format!("`{path}` must have at least {least} characters, found {length}")
            }
        };
        faults.push(Fault::at(&node.location, message));
    } else if let Some(most) = most.filter(|most| length > *most) {
        let message = format!("`{path}` must have at most {most} characters, found {length}");
        faults.push(Fault::at(&node.location, message));
    }
}

/// Checks that `word` is one of `words`.
fn word(node: &DeckNode, words: &[&str], word: &str, path: &str, faults: &mut Vec<Fault>) {
    if !words.contains(&word) {
        faults.push(Fault::at(&node.location, not_among(path, word, words)));
    }
}

/// Returns the error message for a word at `path` that is not in `words`.
pub(crate) fn not_among(path: &str, word: &str, words: &[&str]) -> String {
    let allowed = words
        .iter()
        .map(|word| format!("\"{word}\""))
        .collect::<Vec<_>>()
        .join(", ");
    let allowed = if words.len() > 1 {
        format!("one of {allowed}")
    } else {
        allowed
    };
    let hint =
        nearest(word, words.iter().copied()).map(|name| format!("; did you mean \"{name}\"?"));
    format!(
        "`{path}` must be {allowed}, found {}{}",
        quoted(word),
        hint.unwrap_or_default()
    )
}

/// Checks the length and the elements of a list.
fn elements(
    node: &DeckNode,
    list: &ListShape,
    items: &[DeckNode],
    path: &str,
    faults: &mut Vec<Fault>,
) {
    let count = items.len() as u64;
    if list.least.is_some_and(|least| count < least) || list.most.is_some_and(|most| count > most) {
        let message = format!(
            "`{path}` must be {}, found {}",
            list.expected(),
            node.shown()
        );
        faults.push(Fault::at(&node.location, message));
    }
    for (i, item) in items.iter().enumerate() {
        check(item, &list.item, &format!("{path}[{i}]"), faults);
    }
}

/// Checks the keys of a table and their values. `path` is empty for the top level.
pub(crate) fn table(
    location: &SourceSpan,
    record: &TableShape,
    entries: &[KeyValue],
    path: &str,
    faults: &mut Vec<Fault>,
) {
    for entry in entries {
        let name = join(path, &entry.key);
        match (record.field(&entry.key), &record.others) {
            (Some(KeyShape { shape, .. }), _) => check(&entry.node, shape, &name, faults),
            (None, Some(shape)) => check(&entry.node, shape, &name, faults),
            (None, None) => {
                let known: Vec<&str> = record.keys().collect();
                faults.push(unknown_key(&entry.key_location, &entry.key, path, &known));
            }
        }
    }
    // a misspelt key has been reported
    let is_misspelt = |key: &str| {
        let mut unknown = entries
            .iter()
            .filter(|entry| record.field(&entry.key).is_none());
        unknown.any(|entry| nearest(&entry.key, [key]).is_some())
    };
    for field in record.fields.iter().filter(|field| field.required) {
        let is_absent = !entries.iter().any(|entry| entry.key == field.key);
        if is_absent && !(record.others.is_none() && is_misspelt(&field.key)) {
            let message = format!(
                "{}missing key `{}` ({})",
                within(path),
                field.key,
                field.shape.expected()
            );
            faults.push(Fault::at(location, message));
        }
    }
}

/// Result of choosing a shape for a value that may have several.
pub(crate) enum ShapeChoice<'a> {
    Shape(&'a ValueShape),
    /// No shape, because the tag is wrong; this error has been reported.
    Reported,
    None,
}

/// Chooses the shape that `node` was most likely meant to have, so that error messages refer to it.
pub(crate) fn choose<'a>(
    node: &DeckNode,
    shapes: &'a [ValueShape],
    path: &str,
    faults: &mut Vec<Fault>,
) -> ShapeChoice<'a> {
    let candidates: Vec<&ValueShape> = shapes
        .iter()
        .filter(|shape| same_kind(node, shape))
        .collect();
    if candidates.len() <= 1 {
        return candidates
            .first()
            .map_or(ShapeChoice::None, |shape| ShapeChoice::Shape(shape));
    }
    if let DeckValue::Table(_) = node.value
        && let Some(chosen) = by_tag(node, &candidates, path, faults)
    {
        return chosen;
    }
    let problems = |shape: &&ValueShape| {
        let mut found = Vec::new();
        check(node, shape, path, &mut found);
        found.len()
    };
    // The shape with the fewest errors is the most likely; ties go to the first.
    candidates
        .into_iter()
        .min_by_key(problems)
        .map_or(ShapeChoice::None, ShapeChoice::Shape)
}

/// Chooses a table's shape by its tag; `None` if the shapes have no common tag.
fn by_tag<'a>(
    node: &DeckNode,
    shapes: &[&'a ValueShape],
    path: &str,
    faults: &mut Vec<Fault>,
) -> Option<ShapeChoice<'a>> {
    let tag = |shape: &&'a ValueShape| match &shape.kind {
        ShapeKind::Record(record) => record.tag(),
        _ => None,
    };
    let tags: Vec<(&str, &str)> = shapes.iter().map(tag).collect::<Option<_>>()?;
    let key = tags[0].0;
    if tags.iter().any(|(other, _)| *other != key) {
        return None;
    }
    let words: Vec<&str> = tags.iter().map(|(_, word)| *word).collect();
    let Some(KeyValue { node: found, .. }) = node.get(key) else {
        let words = words.join(", ");
        let message = format!("{}missing key `{key}` (one of {words})", within(path));
        faults.push(Fault::at(&node.location, message));
        return Some(ShapeChoice::Reported);
    };
    let path = join(path, key);
    match &found.value {
        DeckValue::Text(text) => match words.iter().position(|word| word == text) {
            Some(i) => return Some(ShapeChoice::Shape(shapes[i])),
            None => word(found, &words, text, &path, faults),
        },
        _ => {
            let message = format!("`{path}` must be a word, found {}", found.shown());
            faults.push(Fault::at(&found.location, message));
        }
    }
    Some(ShapeChoice::Reported)
}

/// Returns `true` if the value has the type of the shape.
fn same_kind(node: &DeckNode, shape: &ValueShape) -> bool {
    match (&shape.kind, &node.value) {
        (ShapeKind::Any, _) | (ShapeKind::Boolean, DeckValue::Boolean(_)) => true,
        (ShapeKind::Integer | ShapeKind::Number, DeckValue::Integer(_))
        | (ShapeKind::Number, DeckValue::Number(_)) => true,
        (ShapeKind::Text(..) | ShapeKind::Words(_), DeckValue::Text(_)) => true,
        (ShapeKind::List(_), DeckValue::List(_)) | (ShapeKind::Record(_), DeckValue::Table(_)) => {
            true
        }
        (ShapeKind::Choice(shapes), _) => shapes.iter().any(|shape| same_kind(node, shape)),
        _ => false,
    }
}

/// Returns `path.key`, or `key` at the top level.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_string()
    } else {
        format!("{path}.{key}")
    }
}

/// Returns the prefix of messages about a table.
fn within(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("`{path}`: ")
    }
}

/// Returns the fault for a key that the table at `path` does not have.
pub(crate) fn unknown_key<S: AsRef<str>>(
    location: &SourceSpan,
    key: &str,
    path: &str,
    known: &[S],
) -> Fault {
    let table = if path.is_empty() {
        String::new()
    } else {
        format!(" in [{path}]")
    };
    unknown(location, format!("unknown key `{key}`{table}"), key, known)
}

/// Returns the fault for an unknown name: `message`, then the most similar known name or all known names.
pub(crate) fn unknown<S: AsRef<str>>(
    location: &SourceSpan,
    message: String,
    name: &str,
    known: &[S],
) -> Fault {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    let hint = match nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if known.is_empty() => String::new(),
        None => format!("; known are {}", known.join(", ")),
    };
    Fault::at(location, message + &hint)
}
