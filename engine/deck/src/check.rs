//! Holds the values of a deck against the shapes of its parameters.

use crate::error::{Fault, Place};
use crate::nearest::nearest;
use crate::shape::{Field, Kind, List, Record, Shape};
use crate::tree::{Entry, Node, Value, quoted};

/// Checks `node`, which stands at `path` of the deck, and adds what is wrong with it to `faults`.
pub(crate) fn check(node: &Node, shape: &Shape, path: &str, faults: &mut Vec<Fault>) {
    let wrong_kind = |faults: &mut Vec<Fault>| {
        let hint = match (&shape.kind, &node.value) {
            (Kind::Text(..), Value::Integer(_) | Value::Number(_)) => {
                format!("; write \"{}\"", node.shown())
            }
            _ => String::new(),
        };
        let message = format!(
            "`{path}` must be {}, found {}{hint}",
            shape.expected(),
            node.shown()
        );
        faults.push(Fault::at(&node.place, message));
    };
    match (&shape.kind, &node.value) {
        (Kind::Any, _) | (Kind::Boolean, Value::Boolean(_)) => {}
        (Kind::Integer, Value::Integer(number)) => range(node, shape, *number as f64, path, faults),
        (Kind::Number, Value::Integer(number)) => range(node, shape, *number as f64, path, faults),
        (Kind::Number, Value::Number(number)) => range(node, shape, *number, path, faults),
        (Kind::Text(least, most), Value::Text(text)) => {
            length(node, (*least, *most), text, path, faults)
        }
        (Kind::Words(words), Value::Text(word)) => {
            let words: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
            self::word(node, &words, word, path, faults);
        }
        (Kind::List(list), Value::List(items)) => elements(node, list, items, path, faults),
        (Kind::Record(record), Value::Table(entries)) => {
            table(&node.place, record, entries, path, faults)
        }
        (Kind::Choice(shapes), _) => match choose(node, shapes, path, faults) {
            Chosen::Shape(shape) => check(node, shape, path, faults),
            Chosen::Reported => {}
            Chosen::None => wrong_kind(faults),
        },
        _ => wrong_kind(faults),
    }
}

/// A number must be finite and within the bounds.
fn range(node: &Node, shape: &Shape, number: f64, path: &str, faults: &mut Vec<Fault>) {
    let unit = shape
        .unit
        .as_ref()
        .map_or(String::new(), |unit| format!(" ({unit})"));
    if !number.is_finite() {
        faults.push(Fault::at(
            &node.place,
            format!("`{path}` must be a finite number, found {number:?}"),
        ));
    } else if let Some(bounds) = [shape.bounds, shape.width]
        .iter()
        .find(|bounds| !bounds.contains(number))
    {
        let bounds = bounds.text().unwrap_or_default();
        faults.push(Fault::at(
            &node.place,
            format!("`{path}` must be {bounds}{unit}, found {}", node.shown()),
        ));
    }
}

fn length(
    node: &Node,
    allowed: (Option<u64>, Option<u64>),
    text: &str,
    path: &str,
    faults: &mut Vec<Fault>,
) {
    let length = text.chars().count() as u64;
    if allowed.0.is_some_and(|least| length < least) {
        let message = match allowed.0 {
            Some(1) | None => format!("`{path}` must not be empty"),
            Some(least) => {
                format!("`{path}` must have at least {least} characters, found {length}")
            }
        };
        faults.push(Fault::at(&node.place, message));
    } else if let Some(most) = allowed.1.filter(|most| length > *most) {
        let message = format!("`{path}` must have at most {most} characters, found {length}");
        faults.push(Fault::at(&node.place, message));
    }
}

fn word(node: &Node, words: &[&str], word: &str, path: &str, faults: &mut Vec<Fault>) {
    if !words.contains(&word) {
        faults.push(Fault::at(&node.place, not_among(path, word, words)));
    }
}

/// The message about a word at `path` that is none of `words`.
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

fn elements(node: &Node, list: &List, items: &[Node], path: &str, faults: &mut Vec<Fault>) {
    let count = items.len() as u64;
    if list.least.is_some_and(|least| count < least) || list.most.is_some_and(|most| count > most) {
        let message = format!(
            "`{path}` must be {}, found {}",
            list.expected(),
            node.shown()
        );
        faults.push(Fault::at(&node.place, message));
    }
    for (i, item) in items.iter().enumerate() {
        check(item, &list.item, &format!("{path}[{i}]"), faults);
    }
}

/// Checks the keys of a table and their values. `path` is empty for the top level.
pub(crate) fn table(
    place: &Place,
    record: &Record,
    entries: &[Entry],
    path: &str,
    faults: &mut Vec<Fault>,
) {
    for entry in entries {
        let name = join(path, &entry.key);
        match (record.field(&entry.key), &record.others) {
            (Some(Field { shape, .. }), _) => check(&entry.node, shape, &name, faults),
            (None, Some(shape)) => check(&entry.node, shape, &name, faults),
            (None, None) => {
                let known: Vec<&str> = record.keys().collect();
                faults.push(unknown_key(&entry.key_place, &entry.key, path, &known));
            }
        }
    }
    for field in record.fields.iter().filter(|field| field.required) {
        if !entries.iter().any(|entry| entry.key == field.key) {
            let message = format!(
                "{}missing key `{}` ({})",
                within(path),
                field.key,
                field.shape.expected()
            );
            faults.push(Fault::at(place, message));
        }
    }
}

/// Which shape of several a value is held against.
pub(crate) enum Chosen<'a> {
    Shape(&'a Shape),
    /// None: the tag is wrong, and that was reported.
    Reported,
    None,
}

/// The shape among `shapes` that `node` was meant to have, so that the messages are about that one.
pub(crate) fn choose<'a>(
    node: &Node,
    shapes: &'a [Shape],
    path: &str,
    faults: &mut Vec<Fault>,
) -> Chosen<'a> {
    let candidates: Vec<&Shape> = shapes
        .iter()
        .filter(|shape| same_kind(node, shape))
        .collect();
    if candidates.len() <= 1 {
        return candidates
            .first()
            .map_or(Chosen::None, |shape| Chosen::Shape(shape));
    }
    if let Value::Table(_) = node.value
        && let Some(chosen) = by_tag(node, &candidates, path, faults)
    {
        return chosen;
    }
    let problems = |shape: &&Shape| {
        let mut found = Vec::new();
        check(node, shape, path, &mut found);
        found.len()
    };
    // The one with the fewest problems is the likeliest; the first of equals.
    candidates
        .into_iter()
        .min_by_key(problems)
        .map_or(Chosen::None, Chosen::Shape)
}

/// Chooses a table's shape by its tag; `None` if the shapes have no common tag.
fn by_tag<'a>(
    node: &Node,
    shapes: &[&'a Shape],
    path: &str,
    faults: &mut Vec<Fault>,
) -> Option<Chosen<'a>> {
    let tag = |shape: &&'a Shape| match &shape.kind {
        Kind::Record(record) => record.tag(),
        _ => None,
    };
    let tags: Vec<(&str, &str)> = shapes.iter().map(tag).collect::<Option<_>>()?;
    let key = tags[0].0;
    if tags.iter().any(|(other, _)| *other != key) {
        return None;
    }
    let words: Vec<&str> = tags.iter().map(|(_, word)| *word).collect();
    let Some(Entry { node: found, .. }) = node.get(key) else {
        let words = words.join(", ");
        let message = format!("{}missing key `{key}` (one of {words})", within(path));
        faults.push(Fault::at(&node.place, message));
        return Some(Chosen::Reported);
    };
    let path = join(path, key);
    match &found.value {
        Value::Text(text) => match words.iter().position(|word| word == text) {
            Some(i) => return Some(Chosen::Shape(shapes[i])),
            None => word(found, &words, text, &path, faults),
        },
        _ => {
            let message = format!("`{path}` must be a word, found {}", found.shown());
            faults.push(Fault::at(&found.place, message));
        }
    }
    Some(Chosen::Reported)
}

fn same_kind(node: &Node, shape: &Shape) -> bool {
    match (&shape.kind, &node.value) {
        (Kind::Any, _) | (Kind::Boolean, Value::Boolean(_)) => true,
        (Kind::Integer | Kind::Number, Value::Integer(_)) | (Kind::Number, Value::Number(_)) => {
            true
        }
        (Kind::Text(..) | Kind::Words(_), Value::Text(_)) => true,
        (Kind::List(_), Value::List(_)) | (Kind::Record(_), Value::Table(_)) => true,
        (Kind::Choice(shapes), _) => shapes.iter().any(|shape| same_kind(node, shape)),
        _ => false,
    }
}

/// `path.key`, or `key` at the top level.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_string()
    } else {
        format!("{path}.{key}")
    }
}

fn within(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("`{path}`: ")
    }
}

/// The fault of a key that the table at `path` does not have.
pub(crate) fn unknown_key<S: AsRef<str>>(
    place: &Place,
    key: &str,
    path: &str,
    known: &[S],
) -> Fault {
    let table = if path.is_empty() {
        String::new()
    } else {
        format!(" in [{path}]")
    };
    unknown(place, format!("unknown key `{key}`{table}"), key, known)
}

/// The fault of a name that is none of the `known` ones: `message` and the nearest name, or all of them.
pub(crate) fn unknown<S: AsRef<str>>(
    place: &Place,
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
    Fault::at(place, message + &hint)
}
