//! Numbers with units in decks: every key of the shipped decks, with the right dimension and with a wrong one.

use super::Place;
use nestar::{App, Simulation};
use nestar_deck::Deck;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Units of the decks.
const UNITS: &str = "length = \"kpc\"\nmass = \"Msun\"\nvelocity = \"km/s\"";

/// Units of keys, as decks write them in these code units, and a number of another dimension.
const WRITTEN: [(&str, &str, &str); 15] = [
    ("length", "kpc", "3 Msun"),
    ("mass", "Msun", "3 kpc"),
    ("time", "kpc km^-1 s", "0.02*kpc"),
    ("1/time", "km/s/kpc", "3 s"),
    ("1/length", "kpc^-1", "2*kpc"),
    ("length/time", "km/s", "3 km"),
    ("length/time**2", "km2/s2/kpc", "3*km/s"),
    ("length**2/time", "km kpc / s", "3*km/s"),
    ("length**2/time**2", "km2/s2", "3*km/s"),
    ("(length/time)**2", "km2/s2", "3*km/s"),
    ("mass/length**3", "Msun/kpc3", "5 g"),
    ("mass/(length*time**2)", "Msun km2 / kpc3 / s2", "5 g"),
    ("mass/(length*time**3)", "Msun km3 / kpc4 / s3", "5 g"),
    ("mass*length**2/time**2", "Msun km2 / s2", "5 g"),
    ("length**3/(mass*time**2)", "kpc km2 / s2 / Msun", "5 g"),
];

fn written(unit: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    WRITTEN.iter().find(|(key, ..)| *key == unit)
}

/// A number or constant formula of a deck: its path, its value and the unit of its key.
struct Leaf<'a> {
    path: &'a [String],
    value: &'a mut Value,
    unit: Option<&'a str>,
}

/// Calls `visit` for all numbers below `value`, whose schema is `schema`.
fn each_number(
    value: &mut Value,
    schema: &Json,
    unit: Option<&str>,
    path: &mut Vec<String>,
    visit: &mut dyn FnMut(Leaf),
) {
    let unit = schema["unit"].as_str().or(unit);
    let branches = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    if let Some(branches) = branches {
        let fitting = branches.iter().find(|branch| fits(value, branch));
        if let Some(branch) = fitting {
            each_number(value, branch, unit, path, visit);
        }
    }
    match value {
        Value::Integer(_) | Value::Float(_) if branches.is_none() => {
            visit(Leaf { path, value, unit });
        }
        Value::Table(table) => {
            for (key, value) in table.iter_mut() {
                let own = &schema["properties"][key];
                let own = if own.is_null() {
                    &schema["additionalProperties"]
                } else {
                    own
                };
                if own.is_object() {
                    path.push(key.clone());
                    each_number(value, own, unit, path, visit);
                    path.pop();
                }
            }
        }
        Value::Array(items) => {
            for (n, item) in items.iter_mut().enumerate() {
                let own = match schema["prefixItems"][n].is_object() {
                    true => &schema["prefixItems"][n],
                    false => &schema["items"],
                };
                path.push(n.to_string());
                each_number(item, own, unit, path, visit);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Returns `true` if a branch of a schema may be that of `value`.
fn fits(value: &Value, branch: &Json) -> bool {
    let kinds = branch["type"].to_string();
    match value {
        Value::Integer(_) | Value::Float(_) => {
            kinds.contains("number") || kinds.contains("integer")
        }
        Value::Array(_) => kinds.contains("array"),
        Value::Table(table) => {
            kinds.contains("object")
                && table.iter().all(|(key, value)| {
                    let own = &branch["properties"][key];
                    let word = own["const"].as_str();
                    word.is_none() || word == value.as_str()
                })
        }
        _ => false,
    }
}

/// Returns the shipped decks with all values of a run in [`UNITS`], by name; decks that refuse such units are left out.
fn resolved_decks() -> Vec<(String, Table)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = std::fs::read_dir(&folder).expect("the decks are there");
    let paths: BTreeSet<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    let is_deck = |path: &&PathBuf| {
        path.extension().is_some_and(|e| e == "toml") && !path.ends_with("Cargo.toml")
    };
    let resolve = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a deck");
        let mut table: Table = text.parse().expect("a deck");
        table.insert("units".into(), Value::Table(UNITS.parse().expect("units")));
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let deck = Deck::parse(&path.to_string_lossy(), &table.to_string()).ok()?;
        let resolved = resolve(deck).ok()?;
        let mut table: Table = resolved.parse().expect("a resolved deck");
        table.insert("units".into(), Value::Table(UNITS.parse().expect("units")));
        Some((name, table))
    };
    paths.iter().filter(is_deck).filter_map(resolve).collect()
}

/// Builds a deck and returns it with all values, apart from its table of units.
fn resolve(deck: Deck) -> Result<String, String> {
    let mut deck = deck;
    for setting in ["run.threads=1", "run.device=cpu", "run.memory_limit=64"] {
        deck.set(setting).map_err(|error| error.to_string())?;
    }
    let mut sim = Simulation::new(deck).map_err(|error| error.to_string())?;
    Ok(sim.engine().deck.resolved())
}

fn schema() -> Json {
    serde_json::from_str(&Place::new().nestar(&["schema"]).out).expect("JSON")
}

fn parse(name: &str, table: &Table) -> Deck {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let path = folder.join(format!("{name}.toml"));
    Deck::parse(&path.to_string_lossy(), &table.to_string())
        .unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn numbers_with_units_have_the_bits_of_code_numbers() {
    let (schema, mut decks, mut numbers) = (schema(), 0, 0);
    for (name, table) in resolved_decks() {
        let Ok(plain) = resolve(parse(&name, &table)) else {
            continue;
        };
        let mut root = Value::Table(table);
        each_number(&mut root, &schema, None, &mut Vec::new(), &mut |leaf| {
            if let Some((_, unit, _)) = leaf.unit.and_then(written) {
                *leaf.value = Value::String(format!("{} {unit}", leaf.value));
                numbers += 1;
            }
        });
        let Value::Table(table) = root else {
            unreachable!()
        };
        let found = resolve(parse(&name, &table)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(found, plain, "{name}");
        decks += 1;
    }
    println!("{numbers} numbers of {decks} decks");
    assert!(
        decks >= 20 && numbers >= 400,
        "{numbers} numbers of {decks} decks"
    );
}

#[test]
fn a_wrong_dimension_is_refused_for_every_key() {
    let (schema, mut tried) = (schema(), BTreeSet::new());
    for (name, table) in resolved_decks() {
        let mut wrong = Vec::new();
        let mut root = Value::Table(table.clone());
        each_number(&mut root, &schema, None, &mut Vec::new(), &mut |leaf| {
            let is_checked = !["units", "constants"].contains(&leaf.path[0].as_str())
                && !leaf.unit.unwrap_or_default().starts_with("of ");
            let key: Vec<&String> = leaf
                .path
                .iter()
                .filter(|step| step.parse::<usize>().is_err())
                .collect();
            if is_checked && tried.insert(format!("{key:?}")) {
                // a quantity for keys that are pure numbers or in other units
                let text = leaf
                    .unit
                    .and_then(written)
                    .map_or("3*kpc", |(.., wrong)| *wrong);
                wrong.push((leaf.path.to_vec(), text));
            }
        });
        for (path, text) in wrong {
            let mut table = Value::Table(table.clone());
            let place = path.iter().fold(&mut table, |value, step| match value {
                Value::Array(items) => &mut items[step.parse::<usize>().expect("an index")],
                value => &mut value[step.as_str()],
            });
            *place = Value::String(text.into());
            let Value::Table(table) = table else {
                unreachable!()
            };
            let deck = parse(&name, &table);
            let found = App::default()
                .check(&deck)
                .expect_err(&format!("{name}: {path:?} = {text}"));
            let found = found.to_string();
            assert!(
                found.contains(&format!("but the text \"{text}\" is")),
                "{name}: {path:?} = {text}: {found}"
            );
        }
    }
    println!("{} keys", tried.len());
    assert!(tried.len() >= 150, "{}", tried.len());
}
