//! `nestar list`: lists everything that a deck can name, from the schemas that check decks.

use super::{CommandError, INVALID_INPUT, print};
use clap::{Args, ValueEnum};
use nestar::App;
use nestar::engine::step::CatalogueEntry;
use nestar::systems::fields::quantities::{derived_fields, vocabulary};
use nestar::systems::fields::{GasModel, GasUnits};
use nestar::systems::hydro::boundary::FACES;
use nestar_deck::{FUNCTIONS, ParameterDoc, TableSchema, describe_table, merged};
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

/// Width of the text in columns.
const WIDTH: usize = 100;

/// Arguments of `nestar list`.
#[derive(Args)]
pub struct ListArgs {
    /// Topic; default: all
    #[arg(value_enum)]
    topic: Option<Topic>,
    /// Show only entries that contain all of these words
    #[arg(value_name = "WORD", requires = "topic")]
    words: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Topic {
    /// Scenarios: initial conditions
    Scenarios,
    /// Plugins: additional physics of this program
    Plugins,
    /// Refinement criteria
    Criteria,
    /// Schemes: words that select a method
    Schemes,
    /// Every parameter of every table
    Parameters,
    /// Fields for refinement criteria and plots
    Fields,
    /// Functions and operators of formulas
    Formulas,
}

/// Prints the requested topics, through a pager if a terminal would scroll.
pub fn list(app: &App, arguments: &ListArgs) -> Result<(), CommandError> {
    let text = matching(&text(app, arguments), &arguments.words);
    if text.is_empty() {
        let words = arguments.words.join(" ");
        return Err(CommandError::new(
            INVALID_INPUT,
            format!("nothing contains {words:?}"),
        ));
    }
    match std::io::stdout().is_terminal() && paged(&text) {
        true => Ok(()),
        false => print(&text),
    }
}

/// Shows a text in the pager `PAGER` or `less`; `false` if there is none.
fn paged(text: &str) -> bool {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".into());
    let mut command = Command::new("sh");
    // short texts are printed as they are
    command
        .args(["-c", &pager])
        .env("LESS", "-FRX")
        .stdin(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    // a reader may leave before the end
    let _ = child
        .stdin
        .take()
        .map(|mut input| input.write_all(text.as_bytes()));
    child.wait().is_ok_and(|status| status.success())
}

/// Returns the entries of a list that contain all words, below their headings. An entry begins at an indented line and goes on
/// in lines that are indented further.
fn matching(text: &str, words: &[String]) -> String {
    if words.is_empty() {
        return text.into();
    }
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let (mut found, mut heading, mut entry) = (String::new(), ("", false), String::new());
    let mut close = |(heading, shown): &mut (&str, bool), entry: &mut String| {
        let all = format!("{heading} {entry}").to_lowercase();
        if !entry.is_empty() && words.iter().all(|word| all.contains(word)) {
            if !std::mem::replace(shown, true) {
                let _ = writeln!(found, "{heading}");
            }
            found.push_str(entry);
        }
        entry.clear();
    };
    for line in text.lines() {
        match line.len() - line.trim_start().len() {
            0 => {
                close(&mut heading, &mut entry);
                heading = (line, false);
            }
            // documentation is indented further than names
            indent => {
                if indent <= 4 {
                    close(&mut heading, &mut entry);
                }
                entry = entry + line + "\n";
            }
        }
    }
    close(&mut heading, &mut entry);
    found
}

/// Returns the text of the requested topics.
fn text(app: &App, arguments: &ListArgs) -> String {
    let topics: Vec<String> = Topic::value_variants()
        .iter()
        .filter(|topic| arguments.topic.is_none_or(|wanted| wanted == **topic))
        .map(|topic| match topic {
            Topic::Scenarios => scenarios(app),
            Topic::Plugins => plugins(app),
            Topic::Criteria => criteria(app),
            Topic::Schemes => schemes(app),
            Topic::Parameters => parameters(app),
            Topic::Fields => fields(app),
            Topic::Formulas => formulas(),
        })
        .collect();
    topics.join("\n")
}

/// Appends a name and its wrapped documentation.
fn entry(text: &mut String, name: &str, doc: &str) {
    let (margin, column) = (2, 24);
    let mut line = format!("{:margin$}{name}", "");
    if line.len() + 2 > column {
        let _ = writeln!(text, "{line}");
        line.clear();
    }
    for paragraph in wrapped(doc, WIDTH - column) {
        let _ = writeln!(text, "{line:column$}{paragraph}");
        line.clear();
    }
    if !line.is_empty() {
        let _ = writeln!(text, "{line}");
    }
}

/// Wraps `text` to lines of at most `width` columns.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

fn scenarios(app: &App) -> String {
    let mut text =
        "scenarios (selected by scenario = \"NAME\"; parameters in a table)\n".to_string();
    for scenario in app.scenarios() {
        let (doc, table) = (scenario.table.doc(), scenario.table.name());
        let doc = format!("{doc} Table [{table}].");
        entry(&mut text, scenario.name, &doc);
    }
    text
}

fn plugins(app: &App) -> String {
    let mut text =
        "plugins (each is active if the deck has its table, which may be empty) and what they register\n"
            .to_string();
    let plugins = app.registered_plugins();
    for plugin in &plugins {
        let doc = plugin
            .table
            .map_or("Active in every run.", TableSchema::doc);
        entry(&mut text, plugin.name, doc);
        match &plugin.entries {
            Ok(entries) => entries.iter().for_each(|e| registered(&mut text, e)),
            Err(why) => {
                let doc = format!(
                    "run `check DECK` to see what it registers; it cannot be built with its defaults: {why}"
                );
                entry(&mut text, "", &doc);
            }
        }
    }
    if plugins.is_empty() {
        text.push_str("  none; programs with additional physics have plugins (docs/physics.md)\n");
    }
    text
}

/// Appends an entry that a plugin has registered: kind, name, documentation, field and unit.
pub fn registered(text: &mut String, registered: &CatalogueEntry) {
    let facts = [registered.field, &registered.unit];
    let facts: Vec<&str> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    let mut doc = registered.doc.clone();
    if !facts.is_empty() {
        let _ = write!(doc, " ({})", facts.join("; "));
    }
    let name = format!("  {} {}", registered.kind, registered.name);
    entry(text, &name, doc.trim_start());
}

/// The table of one face, listed in place of those of all faces.
const ONE_FACE: &str = "inflow.x_lower";

/// Returns all tables with their parameters; only one of the tables of faces.
fn described(app: &App) -> Vec<(TableSchema, Vec<ParameterDoc>)> {
    merged(&app.tables())
        .into_iter()
        .filter(|table| !table.name().starts_with("inflow.") || table.name() == ONE_FACE)
        .map(|table| {
            let parameters = describe_table(&table);
            (table, parameters)
        })
        .collect()
}

fn criteria(app: &App) -> String {
    let mut text =
        "refinement criteria (any number of [[mesh.refine]] with criterion = \"NAME\")\n"
            .to_string();
    for (_, parameters) in described(app)
        .iter()
        .filter(|(table, _)| table.name() == "mesh")
    {
        for parameter in parameters {
            let Some((name, key)) = of_variant(&parameter.key) else {
                continue;
            };
            if key == "criterion" {
                entry(&mut text, name, &parameter.doc);
            } else {
                let doc = format!("{key}: {} {}", parameter.doc, facts(parameter));
                entry(&mut text, "", &doc);
            }
        }
    }
    text
}

/// Splits `refine[gradient].field` into variant and key.
fn of_variant(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix("refine[")?.split_once("].")
}

fn schemes(app: &App) -> String {
    let mut text = "schemes (words that select a method)\n".to_string();
    for (table, parameters) in described(app) {
        for parameter in &parameters {
            // a single word selects nothing, and a nested key repeats the words of the outer key
            let chooses = parameter.allowed.len() > 1 && !parameter.key.contains('.');
            if !chooses || table.name() == "run" {
                continue;
            }
            let default = parameter
                .default
                .as_ref()
                .map_or(String::new(), |default| format!(" (default {default})"));
            let _ = writeln!(
                text,
                "  {}: {}{default}",
                full_name(&table, &parameter.key),
                parameter.doc
            );
            for (word, doc) in &parameter.allowed {
                entry(&mut text, &format!("  {word}"), doc);
            }
        }
    }
    text
}

fn full_name(table: &TableSchema, key: &str) -> String {
    if table.name().is_empty() {
        key.to_string()
    } else {
        format!("{}.{key}", table.name())
    }
}

fn parameters(app: &App) -> String {
    let mut text = "parameters\n".to_string();
    for (table, parameters) in described(app) {
        let name = if table.name().is_empty() {
            "top level of the deck".to_string()
        } else if table.name() == ONE_FACE {
            let faces = FACES.as_flattened().join(", ");
            format!("[inflow.FACE], FACE: {faces}")
        } else {
            format!("[{}]", table.name())
        };
        let _ = writeln!(text, "\n{name}  {}", table.doc().replace('\n', " "));
        for parameter in &parameters {
            let doc = format!("{} {}", parameter.doc, facts(parameter));
            entry(&mut text, &parameter.key, &doc);
        }
    }
    text
}

/// Returns type, unit, range, words and default of a parameter in brackets.
fn facts(parameter: &ParameterDoc) -> String {
    let mut facts = vec![parameter.kind.clone()];
    facts.extend(parameter.unit.clone());
    facts.extend(parameter.range.clone());
    if !parameter.allowed.is_empty() {
        let words: Vec<&str> = parameter.allowed.iter().map(|(word, _)| &**word).collect();
        facts.push(words.join(" | "));
    }
    if parameter.required {
        facts.push("required".into());
    }
    facts.extend(parameter.default.iter().map(|d| format!("default {d}")));
    format!("({})", facts.join("; "))
}

fn fields(app: &App) -> String {
    let one = GasUnits {
        mean_molecular_weight: 1.0,
        kelvin: 1.0,
        number_density: 1.0,
        first_scale_factor: 1.0,
    };
    let model = GasModel {
        physical: Some(one),
        ..GasModel::plain(1.0, &["NAME"])
    };
    let mut text = "fields for refinement criteria and their formulas (NAME: a scalar of hydro.scalars; temperature_k and \
        number_density_cm3 need a table [units])\n"
        .to_string();
    let names = vocabulary(&model).into_iter().map(|(name, _)| name);
    paragraph(&mut text, &names.collect::<Vec<_>>().join(" "));
    text.push_str("fields for plots (`nestar plot`)\n");
    paragraph(&mut text, &drawn(app));
    text.push_str(
        "derived fields for snapshots (output.derived); plugins may define more, which `nestar check` lists if a deck names an \
         unknown one\n",
    );
    let names = derived_fields(&model).into_iter().map(|own| own.name);
    paragraph(&mut text, &names.collect::<Vec<_>>().join(" "));
    text
}

/// Appends indented words.
fn paragraph(text: &mut String, words: &str) {
    for line in wrapped(words, WIDTH - 2) {
        let _ = writeln!(text, "  {line}");
    }
}

/// Kinds of registered entries that can be plotted.
const DRAWN: [&str; 2] = ["field", "derived field"];

/// Describes the fields that can be plotted.
fn drawn(app: &App) -> String {
    let drawn = "the arrays of the snapshot (`nestar info`), level, velocity_x, velocity_y, velocity_z, speed, pressure, \
        temperature, sound_speed, mach, entropy; temperature_k and number_density_cm3 for snapshots with units; fraction_NAME, the \
        mass fraction of scalar_NAME; and particles/NAME, the density of a species";
    let entries = app
        .registered_plugins()
        .into_iter()
        .filter_map(|plugin| plugin.entries.ok());
    let own = (entries.flatten()).filter(|entry| DRAWN.contains(&entry.kind));
    let own: Vec<String> = own.map(|entry| entry.name).collect();
    match own.is_empty() {
        true => drawn.to_string(),
        false => format!("{drawn}; of plugins {}", own.join(", ")),
    }
}

fn formulas() -> String {
    let mut text = "\
formulas: numbers, variables, constants pi and e, operators + - * / ^ ( ), comparisons < <= > >= == !=, logic and or not,
and functions
"
    .to_string();
    for (name, doc) in FUNCTIONS {
        entry(&mut text, name, doc);
    }
    text.push_str("as well as tabulated functions: the table [tables.halo] defines halo(a)\n");
    let words = format!(
        "decks with a table [units] also have the constants {}, in code units",
        nestar_deck::units::words().collect::<Vec<_>>().join(" ")
    );
    for line in wrapped(&words, WIDTH) {
        let _ = writeln!(text, "{line}");
    }
    text
}
