//! The documents of the page: the page itself, the state of the run, pictures of snapshots, views, and curves of diagnostics.

use super::diagnostics::{ColumnUnits, Diagnostics, readable_name};
use super::guard::{admitted, random_token};
use super::http::{Request, Response, query};
use super::pictures::{Failure, LARGEST_WIDTH, Pictures};
use super::series::{self, Sizes, Wanted};
use super::state::{Log, state};
use super::views;
use nestar::App;
use nestar_deck::{CodeUnits, Deck, OpenTable, UnitSystem};
use nestar_plot::{COLOUR_MAPS, Format, TableColumn, TableOptions, plot_table};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The page.
const PAGE: &str = include_str!("page.html");
/// What stands in the page for a random text, by which the browser knows the page's own script and style.
const NONCE: &str = "{nonce}";
/// Largest number of curves.
const MOST_CURVES: usize = 16;

/// Everything that the page shows.
pub struct Site<'a> {
    directory: PathBuf,
    token: String,
    pictures: Pictures<'a>,
    diagnostics: Mutex<Diagnostics>,
    program: String,
}

/// The deck of a run, as far as the page needs it.
#[derive(Default)]
struct RunDeck {
    text: String,
    units: CodeUnits,
    /// End of the run in code time.
    end: Option<f64>,
    /// Longest side of the box in code length.
    side: Option<f64>,
    scenario: Option<String>,
}

/// Keys and values of a query.
type Query = Vec<(String, String)>;

/// Returns the value of a key.
fn value<'q>(query: &'q Query, key: &str) -> Option<&'q str> {
    let found = query.iter().find(|(other, _)| other == key);
    found.map(|(_, value)| value.as_str())
}

impl<'a> Site<'a> {
    /// Creates the page of a run.
    pub fn new(app: &'a App, directory: PathBuf, token: String, pool: rayon::ThreadPool) -> Self {
        Self {
            token,
            pictures: Pictures::new(app, directory.clone(), pool),
            diagnostics: Mutex::new(Diagnostics::new(directory.join("diagnostics.csv"))),
            program: app.signature(),
            directory,
        }
    }

    /// Answers a request.
    pub fn answer(&self, request: &Request) -> Response {
        let target = match admitted(request, &self.token) {
            Ok(target) => target,
            Err(why) => return Response::error(403, why),
        };
        if !["GET", "HEAD"].contains(&&*request.method) {
            let why = "this page is read only: GET and HEAD";
            return Response::error(405, why).with("Allow", "GET, HEAD".into());
        }
        let (path, rest) = target.split_once('?').unwrap_or((target, ""));
        let query = match query(rest) {
            Ok(query) => query,
            Err(why) => return Response::error(400, &why),
        };
        let answered = match path {
            "" => page(),
            "status.json" => Ok(Response::json(&self.status(&query))),
            "deck.toml" => self.deck_text(),
            "snapshot.json" => self.snapshot(&query),
            "picture.png" => self.picture(&query, Format::Png),
            "picture.svg" => self.picture(&query, Format::Svg),
            "view.png" => self.view_picture(&query),
            "series.png" => self.series(&query, Format::Png),
            "series.svg" => self.series(&query, Format::Svg),
            "curves.png" => self.curves(&query, Format::Png),
            "curves.svg" => self.curves(&query, Format::Svg),
            _ => Err(Failure::new(404, "there is no such document")),
        };
        answered.unwrap_or_else(|failure| Response::error(failure.status, &failure.why))
    }

    /// Reads the deck that the run has written; the default without one.
    fn deck(&self) -> RunDeck {
        let Ok(text) = std::fs::read_to_string(self.directory.join("run.toml")) else {
            return RunDeck::default();
        };
        let Ok(mut deck) = Deck::parse("run.toml", &text) else {
            // it may be half written
            return RunDeck::default();
        };
        let time = deck.table::<OpenTable>("time").unwrap_or_default();
        let domain = deck.table::<OpenTable>("domain").unwrap_or_default();
        let edge = |key: &str, axis: usize| domain.get(key)?.get(axis)?.as_f64();
        let sides = (0..3).filter_map(|a| Some(edge("right_edge", a)? - edge("left_edge", a)?));
        let scenario = text.lines().find_map(|line| {
            let name = line.strip_prefix("scenario = ")?;
            Some(name.trim().trim_matches('"').to_string())
        });
        RunDeck {
            units: deck.units().cloned().unwrap_or_default(),
            end: time.get("end").and_then(Value::as_f64),
            side: sides.reduce(f64::max),
            scenario,
            text,
        }
    }

    fn deck_text(&self) -> Result<Response, Failure> {
        let deck = self.deck();
        match deck.text.is_empty() {
            true => Err(Failure::new(404, "the run has written no deck yet")),
            false => Ok(Response::new("text/plain; charset=utf-8", deck.text)),
        }
    }

    /// Returns the state of the run. The log is left out if its size is that of the key `log`. Of the pictures of the view `view`, only
    /// those after the number `known` are listed.
    fn status(&self, query: &Query) -> Value {
        let deck = self.deck();
        let log = Log::read(&self.directory.join("run.log"));
        let (log, log_error) = match log {
            Ok(log) => (log, None),
            Err(why) => (Log::default(), Some(why)),
        };
        let is_known = value(query, "log").is_some_and(|size| size.parse() == Ok(log.size));
        let (snapshots, snapshots_error) = match self.pictures.numbers() {
            Ok(numbers) => (numbers, None),
            Err(failure) => (vec![], Some(failure.why)),
        };
        let number = |key: &str| value(query, key).and_then(|number| number.parse().ok());
        let name = self.directory.canonicalize();
        let name = name.as_ref().unwrap_or(&self.directory);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        json!({
            "name": name.file_name().unwrap_or_default().to_string_lossy(),
            "directory": name.display().to_string(),
            "program": self.program,
            "scenario": deck.scenario,
            "state": state(&self.directory, &log),
            "snapshots": snapshots,
            "snapshots_error": snapshots_error,
            "diagnostics": self.table_status(&deck),
            "log": { "size": log.size, "lines": (!is_known).then_some(log.lines), "error": log_error },
            "views": views::list(&self.directory, value(query, "view"), number("known")),
            "colour_maps": COLOUR_MAPS,
            "now": now.map_or(0.0, |now| now.as_secs_f64()),
        })
    }

    /// Returns the columns and the latest row of the diagnostics.
    fn table_status(&self, deck: &RunDeck) -> Value {
        let mut table = self
            .diagnostics
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let error = table.update().err();
        let latest = table.names.iter().zip(&table.latest);
        let number = |name: &str| {
            let found = latest.clone().find(|(other, _)| *other == name);
            found.and_then(|(_, text)| text.parse::<f64>().ok())
        };
        let end = deck.end.or(number("time")).unwrap_or(1.0);
        let unit = deck.units.shown("time", UnitSystem::default(), end);
        let numeric = |(place, name): (usize, &String)| {
            table
                .is_numeric(place)
                .then(|| json!({ "name": name, "label": readable_name(name) }))
        };
        let columns = table.names.iter().enumerate().filter_map(numeric);
        json!({
            "rows": table.rows,
            "stride": table.stride,
            "columns": columns.collect::<Vec<_>>(),
            "latest": latest.clone().map(|(name, text)| (name.clone(), Value::from(text.as_str()))).collect::<OpenTable>(),
            "step": number("step"),
            "time": number("time").map(|time| time * unit.factor),
            "end": deck.end.map(|end| end * unit.factor),
            "time_unit": if unit.name == "time" { "" } else { &unit.name },
            "error": error,
        })
    }

    fn snapshot(&self, query: &Query) -> Result<Response, Failure> {
        let opened = self.opened(query)?;
        let value = self.pictures.description(&opened)?;
        Ok(Response::json(&value))
    }

    /// Opens the snapshot of the key `n`, or the latest one.
    fn opened(&self, query: &Query) -> Result<super::pictures::Opened, Failure> {
        let number = value(query, "n").map(str::parse).transpose();
        let number = number.map_err(|_| Failure::new(400, "n must be the number of a snapshot"))?;
        self.pictures.open(number)
    }

    fn picture(&self, query: &Query, format: Format) -> Result<Response, Failure> {
        let opened = self.opened(query)?;
        let drawn = self.pictures.draw(&opened, query, format)?;
        let response = Response::new(media_type(format), drawn.bytes.to_vec());
        Ok(match drawn.frame {
            Some(frame) => response.with("Nestar-Frame", frame),
            None => response,
        })
    }

    /// Returns a picture that the run has drawn: entry `n` of the view `name`.
    fn view_picture(&self, query: &Query) -> Result<Response, Failure> {
        let name = value(query, "name").unwrap_or_default();
        let number = value(query, "n").and_then(|number| number.parse().ok());
        let number =
            number.ok_or_else(|| Failure::new(400, "n must be the number of a picture"))?;
        views::picture(&self.directory, name, number).map(|bytes| Response::new("image/png", bytes))
    }

    /// Draws the array `field` of the series `name`, of the entry `n` or of the latest one.
    fn series(&self, query: &Query, format: Format) -> Result<Response, Failure> {
        let entry = value(query, "n").map(str::parse).transpose();
        let wanted = Wanted {
            name: value(query, "name").unwrap_or_default(),
            entry: entry.map_err(|_| Failure::new(400, "n must be the number of an entry"))?,
            array: value(query, "field"),
            log: value(query, "log").is_some(),
            width_px: width(query),
            format,
        };
        let (deck, views) = (self.deck(), self.directory.join("views"));
        let sizes = Sizes {
            units: deck.units,
            end: deck.end.unwrap_or(1.0),
            side: deck.side.unwrap_or(1.0),
        };
        let bytes = self
            .pictures
            .at_once(|| series::draw(&views, &wanted, &sizes))?;
        Ok(Response::new(media_type(format), bytes))
    }

    /// Draws columns of the diagnostics: `x`, and `y` once or several times.
    fn curves(&self, query: &Query, format: Format) -> Result<Response, Failure> {
        let mut ys: Vec<&str> = query
            .iter()
            .filter(|(key, _)| key == "y")
            .map(|(_, name)| name.as_str())
            .collect();
        let mut known = BTreeSet::new();
        ys.retain(|name| known.insert(*name));
        if ys.len() > MOST_CURVES {
            let why = format!("choose at most {MOST_CURVES} curves");
            return Err(Failure::new(400, &why));
        }
        let deck = self.deck();
        let units = ColumnUnits::new(&self.directory, deck.units, deck.end.unwrap_or(1.0));
        let x = value(query, "x").unwrap_or("time");
        let (x, ys) = self.columns(&units, x, &ys)?;
        let options = TableOptions {
            log_axes: ["log-x", "log-y"].map(|key| value(query, key).is_some()),
            width_px: width(query),
            title: String::new(),
            remark: String::new(),
            format,
        };
        let pool = &self.pictures.pool;
        let drawn = pool.install(|| plot_table(&x, &ys, &options));
        let bytes = drawn.map_err(|error| Failure::new(400, &error.to_string()))?;
        Ok(Response::new(media_type(format), bytes))
    }

    /// Returns columns of the diagnostics in units for display.
    fn columns(
        &self,
        units: &ColumnUnits,
        x: &str,
        ys: &[&str],
    ) -> Result<(TableColumn, Vec<TableColumn>), Failure> {
        let mut table = self
            .diagnostics
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        table.update().map_err(|why| Failure::new(500, &why))?;
        if table.names.is_empty() {
            let why = "the run has written no diagnostics yet";
            return Err(Failure::new(404, why));
        }
        let column = |name: &str| {
            let values = table.column(name);
            let values = values.ok_or_else(|| {
                let why = format!("diagnostics.csv has no column {name:?}");
                Failure::new(404, &why)
            })?;
            Ok(units.shown(name, values))
        };
        let ys = ys.iter().map(|name| column(name));
        Ok((column(x)?, ys.collect::<Result<_, Failure>>()?))
    }
}

/// Returns the width of a figure in pixels.
fn width(query: &Query) -> u32 {
    let width = value(query, "width").and_then(|width| width.parse().ok());
    width.map_or(1000, |width: u32| width.clamp(300, LARGEST_WIDTH))
}

/// Returns the page, whose script and style are the only ones that the browser may use.
fn page() -> Result<Response, Failure> {
    let nonce = random_token().map_err(|error| Failure::new(500, &error.to_string()))?;
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self' blob: data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let page = PAGE.replace(NONCE, &nonce);
    Ok(Response::new("text/html; charset=utf-8", page).with("Content-Security-Policy", policy))
}

fn media_type(format: Format) -> &'static str {
    match format {
        Format::Png => "image/png",
        Format::Svg => "image/svg+xml",
    }
}
