//! Writes TOML with short numbers: `1e-300` instead of three hundred zeros.

use toml::{Table, Value};

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
        Value::String(text) => quoted(text),
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
    if bare { key.to_string() } else { quoted(key) }
}

/// Writes a basic string.
fn quoted(text: &str) -> String {
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
    use super::document;

    #[test]
    fn is_read_back_as_it_was() {
        let text = "a = -0.0\nb = 1e-300\nc = [1, [2.5, nan], { x = 1e20, \"y z\" = \"q\" }]\nd = 1979-05-27T07:32:00Z\n\
            e = \"\\u0001\\\"\\\\\\n\\té\"\nf = []\ng = -inf\n\n[t]\nx = true\n\n[t.u]\n\n[[t.v]]\n\n[[t.v]]\n\n[t.v.w]\n\
            y = 9223372036854775807\n";
        let table: toml::Table = text.parse().expect("valid TOML");
        assert_eq!(document(&table), text);
    }
}
