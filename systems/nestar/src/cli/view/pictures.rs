//! Pictures of snapshots, by the code of `nestar plot`; opened snapshots and drawn pictures are kept.

use super::super::CommandError;
use super::super::plot::{PlotArgs, own_fields};
use clap::{Args as _, FromArgMatches as _};
use nestar::App;
use nestar_deck::UnitSystem;
use nestar_plot::{CustomField, Format, PlotError, readable};
use nestar_snapshot::{Snapshot, SnapshotError};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Number of snapshots that stay open.
const MOST_SNAPSHOTS: usize = 12;
/// Bytes of pictures that are kept.
const MOST_BYTES: usize = 64 << 20;
/// Number of pictures that are drawn at once.
const MOST_AT_ONCE: usize = 2;
/// Largest width of a picture in pixels.
pub const LARGEST_WIDTH: u32 = 4096;
/// Options of `nestar plot` that the page may use; they take a value.
const VALUES: [&str; 21] = [
    "field",
    "slice",
    "profile",
    "phase",
    "weight",
    "bins",
    "axis",
    "normal",
    "centre",
    "zoom",
    "min-value",
    "max-value",
    "colour-map",
    "contours",
    "arrows",
    "streamlines",
    "particles",
    "depth",
    "dot",
    "units",
    "level",
];
/// Options of `nestar plot` that the page may use, without a value.
const FLAGS: [&str; 6] = ["projection", "max", "log", "log-x", "log-y", "outlines"];

/// Why a document cannot be shown.
#[derive(Debug)]
pub struct Failure {
    /// HTTP status.
    pub status: u16,
    /// The reason.
    pub why: String,
}

impl Failure {
    /// Creates a failure.
    pub fn new(status: u16, why: &str) -> Self {
        Self {
            status,
            why: why.into(),
        }
    }
}

impl From<PlotError> for Failure {
    fn from(error: PlotError) -> Self {
        match error {
            PlotError::Snapshot(error) => error.into(),
            // options of the command line are not visible here
            error => Self::new(400, &error.to_string().replace("--", "")),
        }
    }
}

impl From<SnapshotError> for Failure {
    fn from(error: SnapshotError) -> Self {
        Self::new(500, &error.to_string())
    }
}

impl From<CommandError> for Failure {
    fn from(error: CommandError) -> Self {
        Self::new(400, &error.message.replace("--", ""))
    }
}

/// A snapshot that is open.
#[derive(Clone)]
pub struct Opened {
    /// Its number in the run.
    pub number: u32,
    /// The snapshot.
    pub snapshot: Arc<Snapshot>,
    /// What distinguishes it from an earlier one with its number.
    identity: (u64, i64, i64),
}

/// Fields of plugins for snapshots of one deck, and why they are missing.
struct OwnFields {
    deck: String,
    fields: Arc<Vec<CustomField>>,
    why: Option<String>,
}

/// A picture that was drawn.
#[derive(Clone)]
pub struct Drawn {
    /// Bytes of the file.
    pub bytes: Arc<[u8]>,
    /// Where a picture along an axis lies in the file, as JSON.
    pub frame: Option<String>,
}

/// Pictures of a run. The threads of the pool never wait for a lock or a turn: a thread that has one may take up the work of another
/// request while it waits for its own parts.
pub struct Pictures<'a> {
    app: &'a App,
    /// Threads that compute.
    pub pool: rayon::ThreadPool,
    directory: PathBuf,
    opened: Mutex<VecDeque<Opened>>,
    drawn: Mutex<VecDeque<(String, Drawn)>>,
    own: Mutex<Option<OwnFields>>,
    turns: Turns,
}

/// Lets a limited number of threads work at once.
#[derive(Default)]
struct Turns {
    taken: Mutex<usize>,
    returned: Condvar,
}

impl Turns {
    /// Runs `work` when it is its turn.
    fn wait<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Turn<'t>(&'t Turns);
        impl Drop for Turn<'_> {
            fn drop(&mut self) {
                *locked(&self.0.taken) -= 1;
                self.0.returned.notify_one();
            }
        }
        let mut taken = locked(&self.taken);
        while *taken >= MOST_AT_ONCE {
            taken = self
                .returned
                .wait(taken)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *taken += 1;
        drop(taken);
        let _turn = Turn(self);
        work()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // what the page keeps is whole at any time
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of a snapshot.
fn number(path: &Path) -> Option<u32> {
    path.file_stem()?.to_str()?.parse().ok()
}

impl<'a> Pictures<'a> {
    /// Creates the pictures of a run.
    pub fn new(app: &'a App, directory: PathBuf, pool: rayon::ThreadPool) -> Self {
        Self {
            app,
            pool,
            directory,
            opened: Mutex::default(),
            drawn: Mutex::default(),
            own: Mutex::default(),
            turns: Turns::default(),
        }
    }

    /// Returns the numbers of the complete snapshots.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn numbers(&self) -> Result<Vec<u32>, Failure> {
        let paths = nestar_snapshot::list_complete(&self.directory)?;
        Ok(paths.iter().filter_map(|path| number(path)).collect())
    }

    /// Opens the snapshot of a number, or the latest one.
    ///
    /// # Errors
    /// There is no such snapshot, or it is damaged.
    pub fn open(&self, wanted: Option<u32>) -> Result<Opened, Failure> {
        let paths = nestar_snapshot::list_complete(&self.directory)?;
        let path = match wanted {
            None => paths.last(),
            Some(wanted) => paths.iter().find(|path| number(path) == Some(wanted)),
        };
        let missing = || match wanted {
            None => Failure::new(404, "the run has no complete snapshot yet"),
            Some(wanted) => {
                Failure::new(404, &format!("the run has no snapshot {wanted} (any more)"))
            }
        };
        let path = path.ok_or_else(missing)?;
        let number = number(path).ok_or_else(missing)?;
        let file = path.join("zarr.json").metadata();
        let identity = file.map_or((0, 0, 0), |file| {
            (file.ino(), file.mtime(), file.mtime_nsec())
        });
        let mut opened = locked(&self.opened);
        let known = |one: &Opened| (one.number, one.identity) == (number, identity);
        if let Some(place) = opened.iter().position(known) {
            let found = opened.remove(place);
            opened.extend(found.clone());
            return found.ok_or_else(missing);
        }
        drop(opened);
        let new = Opened {
            number,
            snapshot: Arc::new(Snapshot::open(path)?),
            identity,
        };
        let mut opened = locked(&self.opened);
        opened.push_back(new.clone());
        if opened.len() > MOST_SNAPSHOTS {
            opened.pop_front();
        }
        Ok(new)
    }

    /// Returns the fields of plugins for a snapshot.
    fn own_fields(&self, snapshot: &Snapshot) -> (Arc<Vec<CustomField>>, Option<String>) {
        let deck = &snapshot.attributes().config;
        let mut own = locked(&self.own);
        if own.as_ref().is_none_or(|own| own.deck != *deck) {
            let (fields, why) = self.pool.install(|| own_fields(self.app, snapshot));
            *own = Some(OwnFields {
                deck: deck.clone(),
                fields: Arc::new(fields),
                why: why.map(|error| error.to_string()),
            });
        }
        own.as_ref()
            .map(|own| (own.fields.clone(), own.why.clone()))
            .unwrap_or_default()
    }

    /// Describes a snapshot: time, domain, levels, fields and species.
    ///
    /// # Errors
    /// The snapshot is damaged.
    pub fn description(&self, opened: &Opened) -> Result<Value, Failure> {
        let snapshot = &opened.snapshot;
        let attributes = snapshot.attributes();
        let (own, why) = self.own_fields(snapshot);
        let code = nestar_plot::code_units(snapshot);
        let fields = self
            .pool
            .install(|| nestar_plot::list_fields(snapshot, &own))?;
        let fields = fields.iter().map(|field| {
            let shown = code.shown(&field.units, UnitSystem::default(), 0.0);
            json!({
                "name": field.name,
                "label": field.label,
                "unit": plain(&readable(&shown.name)),
                "of_particles": field.of_particles,
            })
        });
        let (low, high) = (attributes.domain_left_edge, attributes.domain_right_edge);
        let extents = (0..3).map(|i| high[i] - low[i]);
        let length = code.shown("length", UnitSystem::default(), extents.fold(0.0, f64::max));
        let levels = snapshot.levels().map(|level| {
            json!({ "level": level.level, "patches": level.patches, "cell_width": level.cell_width })
        });
        let species = snapshot
            .particles()
            .filter_map(|group| group.path.strip_prefix("particles/"));
        Ok(json!({
            "number": opened.number,
            "step": attributes.step,
            "time": attributes.time,
            "low": low,
            "high": high,
            "length": { "name": if length.name == "length" { "" } else { &length.name }, "factor": length.factor },
            "has_units": !code.is_dimensionless(),
            "levels": levels.collect::<Vec<_>>(),
            "fields": fields.collect::<Vec<_>>(),
            "species": species.collect::<Vec<_>>(),
            "note": why,
        }))
    }

    /// Draws a snapshot with the options of a query, and returns the bytes of a file.
    ///
    /// # Errors
    /// An option is wrong, or the snapshot is damaged.
    pub fn draw(
        &self,
        opened: &Opened,
        query: &[(String, String)],
        format: Format,
    ) -> Result<Drawn, Failure> {
        let arguments = arguments(query)?;
        let key = format!(
            "{} {:?} {format:?} {arguments:?}",
            opened.number, opened.identity
        );
        if let Some(drawn) = self.known(&key) {
            return Ok(drawn);
        }
        let snapshot = &opened.snapshot;
        let parsed = parsed(arguments, snapshot.path())?;
        let panels = parsed.panels(&nestar_plot::code_units(snapshot), format)?;
        let (own, why) = self.own_fields(snapshot);
        let draw = || -> Result<Drawn, PlotError> {
            let frame = match &panels[..] {
                [panel] => nestar_plot::picture_frame(snapshot, panel, &own)?,
                _ => None,
            };
            Ok(Drawn {
                bytes: nestar_plot::plot_panels(snapshot, &panels, &own)?.into(),
                frame: frame.map(|frame| {
                    let (low, high) = (frame.low, frame.high);
                    json!({ "pixels": frame.pixels, "axes": frame.axes, "low": low, "high": high, "at": frame.at })
                        .to_string()
                }),
            })
        };
        let drawn = self.at_once(draw).map_err(|error| explained(error, why))?;
        let mut kept = locked(&self.drawn);
        kept.push_back((key, drawn.clone()));
        let mut all: usize = kept.iter().map(|(_, one)| one.bytes.len()).sum();
        while all > MOST_BYTES {
            all -= kept.pop_front().map_or(all, |(_, one)| one.bytes.len());
        }
        Ok(drawn)
    }

    /// Runs `draw` on the threads of the pool, when it is its turn: few pictures are drawn at once.
    pub fn at_once<T: Send>(&self, draw: impl FnOnce() -> T + Send) -> T {
        self.turns.wait(|| self.pool.install(draw))
    }

    /// Returns a picture that was drawn before.
    fn known(&self, key: &str) -> Option<Drawn> {
        let mut kept = locked(&self.drawn);
        let place = kept.iter().position(|(other, _)| other == key)?;
        let found = kept.remove(place)?;
        let drawn = found.1.clone();
        kept.push_back(found);
        Some(drawn)
    }
}

/// Returns the failure of a plot, and why fields of plugins are missing.
fn explained(error: PlotError, why: Option<String>) -> Failure {
    let unknown = matches!(error, PlotError::UnknownField { .. });
    let mut failure = Failure::from(error);
    if let Some(why) = why.filter(|_| unknown) {
        failure.why += &format!("; fields of plugins are missing: {why}");
    }
    failure
}

/// Returns a unit without marks of exponents.
fn plain(unit: &str) -> String {
    unit.replace("^{", "").replace('}', "")
}

/// Returns the arguments of `nestar plot` for a query, whose other keys are `n` and `width`.
fn arguments(query: &[(String, String)]) -> Result<Vec<String>, Failure> {
    let mut arguments = vec![];
    for (key, value) in query {
        let key = key.as_str();
        match key {
            "n" => {}
            "width" => {
                let width: u32 = value
                    .parse()
                    .map_err(|_| Failure::new(400, "width must be a number"))?;
                arguments.push(format!("--width={}", width.clamp(300, LARGEST_WIDTH)));
            }
            _ if FLAGS.contains(&key) => arguments.push(format!("--{key}")),
            _ if VALUES.contains(&key) => arguments.push(format!("--{key}={value}")),
            _ => {
                return Err(Failure::new(
                    400,
                    &format!("{key}: pictures have no such option"),
                ));
            }
        }
    }
    Ok(arguments)
}

/// Reads the options of `nestar plot`.
fn parsed(arguments: Vec<String>, snapshot: &Path) -> Result<PlotArgs, Failure> {
    let command = PlotArgs::augment_args(clap::Command::new("plot").no_binary_name(true));
    let arguments = arguments.into_iter().map(Into::into);
    let end = [std::ffi::OsString::from("--"), snapshot.into()];
    let matches = command.try_get_matches_from(arguments.chain(end));
    let parsed = matches.and_then(|matches| PlotArgs::from_arg_matches(&matches));
    parsed.map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        let why = first.trim_start_matches("error: ").replace("--", "");
        Failure::new(400, &why)
    })
}

#[cfg(test)]
mod tests {
    use super::{LARGEST_WIDTH, Turns, arguments, parsed};
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn query(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect()
    }

    #[test]
    fn options_are_those_of_plots_without_files() {
        let wide = query(&[
            ("n", "3"),
            ("field", "--output=x"),
            ("log", "1"),
            ("width", "99999"),
        ]);
        let found = arguments(&wide).expect("arguments");
        let width = format!("--width={LARGEST_WIDTH}");
        assert_eq!(found, ["--field=--output=x", "--log", &width]);
        assert!(parsed(found, Path::new("x")).is_ok());
        for key in [
            "output",
            "frames",
            "title",
            "help",
            "snapshot",
            "-o",
            "field=1 --output",
            "",
        ] {
            assert!(arguments(&query(&[(key, "x")])).is_err(), "{key}");
        }
        let wrong = arguments(&query(&[("axis", "w")])).expect("arguments");
        let refused = parsed(wrong, Path::new("x")).err().expect("an error");
        assert!(
            refused.why.contains("must be x, y or z") && !refused.why.contains("--"),
            "{}",
            refused.why
        );
    }

    #[test]
    fn few_threads_work_at_once() {
        let (turns, now, most) = (Turns::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    turns.wait(|| {
                        let count = now.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(count, Ordering::SeqCst);
                        std::thread::sleep(std::time::Duration::from_millis(5));
                        now.fetch_sub(1, Ordering::SeqCst);
                    });
                });
            }
        });
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }
}
