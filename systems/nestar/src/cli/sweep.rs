//! `nestar sweep`: runs a deck with all combinations of some settings.

use super::{CommandError, DeckArgs, FAILED, INTERRUPTED, INVALID_INPUT, print};
use clap::Args;
use nestar::report::print_message;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Name of the table of results in the directory of the sweep.
const TABLE: &str = "sweep.csv";
/// Time between two looks at a running run.
const POLL: Duration = Duration::from_millis(50);

/// Arguments of `nestar sweep`.
#[derive(Args)]
pub struct SweepArgs {
    /// Deck (TOML file), or the name of a deck inside the program
    deck: PathBuf,
    /// Values of a key, separated by commas; may be repeated: all combinations are run
    #[arg(long = "set", value_name = "TABLE.KEY=VALUE,VALUE", required = true)]
    settings: Vec<String>,
    /// Directory of the runs and of the table sweep.csv; started again, the command continues runs that have not ended
    #[arg(long, value_name = "DIR", default_value = "out/sweep")]
    output: PathBuf,
    /// Number of threads, overrides run.threads; 0: all cores
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Device, overrides run.device: auto, cpu, cuda or emulated
    #[arg(long)]
    device: Option<String>,
}

/// One combination of values.
#[derive(Clone, Debug, PartialEq)]
struct Combination {
    /// Settings `TABLE.KEY=VALUE`.
    settings: Vec<String>,
}

impl Combination {
    /// Returns the name of its directory.
    fn name(&self) -> String {
        let plain = |c: char| match c.is_ascii_alphanumeric() || "._+=-".contains(c) {
            true => c,
            false => '_',
        };
        let names = self
            .settings
            .iter()
            .map(|setting| setting.chars().map(plain).collect());
        names.collect::<Vec<String>>().join(",")
    }
}

/// Runs all combinations; returns the exit status.
pub fn sweep(arguments: &SweepArgs) -> Result<u8, CommandError> {
    let all =
        combinations(&arguments.settings).map_err(|why| CommandError::new(INVALID_INPUT, why))?;
    // before the first directory is made
    let deck = DeckArgs {
        deck: arguments.deck.clone(),
        overrides: Vec::new(),
    };
    deck.text()?;
    let stop = stop_requests().map_err(|error| {
        CommandError::new(FAILED, format!("cannot install signal handlers: {error}"))
    })?;
    let mut rows = Vec::new();
    for (n, combination) in all.iter().enumerate() {
        let name = combination.name();
        print_message(&format!(
            "run {} of {}: {}",
            n + 1,
            all.len(),
            combination.settings.join(", ")
        ));
        let directory = arguments.output.join(&name);
        let status = run(arguments, combination, &directory, &stop)?;
        let row = Row {
            name,
            settings: combination.settings.clone(),
            status,
            last: last_row(&directory),
        };
        rows.push(row);
        write_table(&arguments.output, &rows)?;
        if stop.load(Ordering::Relaxed) || status == Some(i32::from(INTERRUPTED)) {
            print_message("the sweep was interrupted; the same command continues it");
            return Ok(INTERRUPTED);
        }
    }
    let failed = rows.iter().filter(|row| row.status != Some(0)).count();
    let table = arguments.output.join(TABLE);
    print(&format!(
        "{}: {} runs, {failed} failed\n",
        table.display(),
        rows.len()
    ))?;
    Ok(if failed > 0 { FAILED } else { 0 })
}

/// Returns a flag that SIGINT and SIGTERM set, in place of ending the sweep before its present run.
fn stop_requests() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Runs one combination and passes a request to stop on to it. Returns its exit status, `None` if a signal has ended it.
fn run(
    arguments: &SweepArgs,
    combination: &Combination,
    directory: &Path,
    stop: &AtomicBool,
) -> Result<Option<i32>, CommandError> {
    let failed =
        |error: std::io::Error| CommandError::new(FAILED, format!("cannot start a run: {error}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command
        .arg("run")
        .arg(&arguments.deck)
        .arg("--resume")
        .arg("--output")
        .arg(directory);
    for setting in &combination.settings {
        command.args(["--set", setting]);
    }
    if let Some(threads) = arguments.threads {
        command.arg("--threads").arg(threads.to_string());
    }
    if let Some(device) = &arguments.device {
        command.arg("--device").arg(device);
    }
    let mut child = command.spawn().map_err(failed)?;
    let mut is_stopped = false;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status.code());
        }
        if stop.load(Ordering::Relaxed) && !is_stopped {
            is_stopped = true;
            // a terminal may have signalled the run as well, which counts both as one request
            // SAFETY: the process is a child that has not been waited for, so that its number is not used again
            unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
        }
        std::thread::sleep(POLL);
    }
}

/// Result of a run.
struct Row {
    name: String,
    settings: Vec<String>,
    status: Option<i32>,
    /// Last row of its diagnostics by column.
    last: BTreeMap<String, String>,
}

/// Reads the last row of the diagnostics of a run; empty if there is none.
fn last_row(directory: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(directory.join("diagnostics.csv")).unwrap_or_default();
    let mut lines = text.lines();
    let (Some(names), Some(values)) = (lines.next(), lines.last()) else {
        return BTreeMap::new();
    };
    let pairs = names.split(',').zip(values.split(','));
    pairs
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// Writes the table of all results so far.
fn write_table(directory: &Path, rows: &[Row]) -> Result<(), CommandError> {
    let first = rows.first().map_or(&[][..], |row| &row.settings);
    let keys = first
        .iter()
        .filter_map(|setting| setting.split_once('='))
        .map(|(key, _)| key);
    let mut columns: Vec<&String> = rows.iter().flat_map(|row| row.last.keys()).collect();
    columns.sort();
    columns.dedup();
    let head = ["run", "status"]
        .into_iter()
        .chain(keys)
        .chain(columns.iter().map(|name| name.as_str()));
    let mut text = head.map(quoted).collect::<Vec<_>>().join(",") + "\n";
    for row in rows {
        let status = row
            .status
            .map_or("killed".into(), |status| status.to_string());
        let values = row
            .settings
            .iter()
            .filter_map(|setting| setting.split_once('='));
        let values = values.map(|(_, value)| value.to_string());
        let last = columns
            .iter()
            .map(|name| row.last.get(*name).cloned().unwrap_or_default());
        let cells = [row.name.clone(), status]
            .into_iter()
            .chain(values)
            .chain(last);
        text += &(cells
            .map(|cell| quoted(&cell))
            .collect::<Vec<_>>()
            .join(",")
            + "\n");
    }
    let path = directory.join(TABLE);
    let beside = directory.join(format!("{TABLE}.partial"));
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&beside, text))
        .and_then(|()| std::fs::rename(&beside, &path));
    written.map_err(|error| {
        CommandError::new(FAILED, format!("cannot write {}: {error}", path.display()))
    })
}

/// Quotes a cell of a table that has a comma or quotes.
fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.into(),
    }
}

/// Returns all combinations of the values of `KEY=VALUE,VALUE`; the last key changes fastest.
///
/// # Errors
/// A setting has no value, or two have one key.
fn combinations(settings: &[String]) -> Result<Vec<Combination>, String> {
    let mut all = vec![Combination {
        settings: Vec::new(),
    }];
    let mut keys = Vec::new();
    for setting in settings {
        let (key, values) = setting
            .split_once('=')
            .ok_or_else(|| format!("--set {setting}: must be TABLE.KEY=VALUE,VALUE"))?;
        if keys.contains(&key) {
            return Err(format!(
                "--set {key}: given twice; separate its values by commas"
            ));
        }
        keys.push(key);
        let values = values_of(values);
        if values.iter().any(|value| value.trim().is_empty()) {
            return Err(format!("--set {setting}: a value is missing"));
        }
        let extended = all.iter().flat_map(|before| {
            values.iter().map(move |value| {
                let mut settings = before.settings.clone();
                settings.push(format!("{key}={}", value.trim()));
                Combination { settings }
            })
        });
        all = extended.collect();
    }
    Ok(all)
}

/// Splits values at commas outside brackets and quotes.
fn values_of(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut begin, mut values) = (0, None, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{' | '(') => depth += 1,
            (None, ']' | '}' | ')') => depth -= 1,
            (None, ',') if depth == 0 => {
                values.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    values.push(&text[begin..]);
    values
}

#[cfg(test)]
mod tests {
    use super::{combinations, values_of};

    #[test]
    fn values_may_be_lists_and_texts() {
        assert_eq!(values_of("1,2"), ["1", "2"]);
        assert_eq!(values_of("[8,8,8],[16,8,8]"), ["[8,8,8]", "[16,8,8]"]);
        assert_eq!(values_of("max(1,2),\"a,b\""), ["max(1,2)", "\"a,b\""]);
    }

    #[test]
    fn all_combinations_are_made() {
        let settings = ["a.b=1,2", "c=x", "d=[1,2],[3,4]"].map(String::from);
        let all = combinations(&settings).expect("valid");
        let names: Vec<String> = all.iter().map(super::Combination::name).collect();
        assert_eq!(names[0], "a.b=1,c=x,d=_1_2_");
        assert_eq!((names.len(), names[3].as_str()), (4, "a.b=2,c=x,d=_3_4_"));
        for wrong in ["a", "a=", "a=1,,2"] {
            combinations(&[wrong.into()]).expect_err(wrong);
        }
        combinations(&["a=1".into(), "a=2".into()]).expect_err("twice");
    }
}
