//! Files of a run: written atomically and only in the run's directory, tables that grow by root steps, captures of
//! failed steps and cells, and `provenance.json`.

use nestar_engine_comm::{Ranks, RanksError};
use nestar_engine_data::{CellCase, FaultBox};
use nestar_engine_device::{ComputeDevice, Device};
use nestar_engine_step::error::on_first_rank;
use nestar_engine_step::{Capture, Engine, Error, Replays, StepVerdict};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// File with the units of the columns of `diagnostics.csv`.
pub(super) const COLUMN_UNITS: &str = "diagnostics.units.csv";
/// Names of the files that a run writes.
const WRITTEN: [&str; 12] = [
    ".lock",
    ".running",
    "run.toml",
    "provenance.json",
    "run.log",
    "diagnostics.csv",
    COLUMN_UNITS,
    "observed.csv",
    "capture.toml",
    "unfinished-cell.toml",
    "snapshots",
    "views",
];
/// First line of the deck in a run's directory.
const OWN_DECK: &str =
    "# The deck of the run in this directory, with all values; written by nestar.\n";

/// Rejects a directory with symbolic links in place of output files, or with a deck that no run has written.
///
/// # Errors
/// The file and advice.
pub(super) fn check_writable(directory: &Path) -> Result<(), Error> {
    for name in WRITTEN {
        let path = directory.join(name);
        if path.is_symlink() {
            return Err(Error::Setup(format!(
                "{} is a symbolic link, and a run writes only into its own directory: remove the link, or choose another \
                 directory with --output",
                path.display()
            )));
        }
    }
    let deck = directory.join("run.toml");
    if deck.exists() && !is_own_deck(&deck) {
        return Err(Error::Setup(format!(
            "{} was not written by a run and would be replaced: give it another name, or choose another directory with \
             --output",
            deck.display()
        )));
    }
    Ok(())
}

/// Returns `true` if a file is the deck written by a run.
#[must_use]
pub fn is_own_deck(path: &Path) -> bool {
    path.ends_with("run.toml")
        && std::fs::read(path).is_ok_and(|text| text.starts_with(OWN_DECK.as_bytes()))
}

/// Writes the resolved deck into the run's directory.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_deck(directory: &Path, resolved: &str) -> Result<(), Error> {
    write_atomically(
        &directory.join("run.toml"),
        &format!("{OWN_DECK}{resolved}"),
    )
}

/// Writes a text file atomically by renaming a temporary file.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_atomically(path: &Path, text: &str) -> Result<(), Error> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".partial");
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::file("cannot replace", &beside)(error));
        }
        _ => {}
    }
    // create a new file, so that nothing is written through a link
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&beside);
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(Error::file("cannot write", &beside))?;
    std::fs::rename(&beside, path).map_err(Error::file("cannot write", path))
}

/// Opens a file for appending.
///
/// # Errors
/// The file does not exist or cannot be written.
pub(super) fn append(path: &Path) -> Result<File, Error> {
    let file = OpenOptions::new().append(true).open(path);
    file.map_err(Error::file("cannot write", path))
}

/// Writes a file under the first unused name of `NAME.EXTENSION`, `NAME.1.EXTENSION` and so on. Several ranks
/// may do so at once. Returns the name.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_numbered(path: &Path, text: &str) -> Result<PathBuf, Error> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let (mut n, mut name) = (0, path.to_path_buf());
    loop {
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                n += 1;
                name = path.with_extension(format!("{n}.{extension}"));
            }
            opened => {
                let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
                written.map_err(Error::file("cannot write", &name))?;
                return Ok(name);
            }
        }
    }
}

/// Renames the file `NAME.EXTENSION` to the first unused name of `NAME.1.EXTENSION` and so on; returns it.
///
/// # Errors
/// It cannot be renamed.
pub(super) fn rename_numbered(path: &Path) -> Result<PathBuf, Error> {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let name = |n: u32| path.with_extension(format!("{n}.{extension}"));
    let free = (1..)
        .map(name)
        .find(|path| !path.exists() && !path.is_symlink());
    let free = free.unwrap_or_else(|| name(0));
    std::fs::rename(path, &free).map_err(Error::file("cannot rename", path))?;
    Ok(free)
}

/// A file of comma-separated rows whose first column is the root step.
pub(super) struct Series {
    file: File,
    path: PathBuf,
    /// New name of an earlier file whose rows are not all continued.
    pub renamed: Option<PathBuf>,
}

impl Series {
    /// Creates the file `name` in `directory`. With `step`, the rows of an existing file up to that step are
    /// kept. A damaged file, or one with other columns, is renamed.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(
        directory: &Path,
        name: &str,
        header: &str,
        step: Option<u64>,
    ) -> Result<Self, Error> {
        let path = directory.join(name);
        let (mut rows, mut renamed) = (String::new(), None);
        if let Some(text) = read(&path)? {
            let earlier = ExistingFile::of(&text, header);
            if step.is_none() || earlier.is_damaged {
                renamed = Some(rename_numbered(&path)?);
            }
            let resumed = earlier.rows.into_iter();
            let resumed = resumed.filter(|(row, _)| step.is_some_and(|step| *row <= step));
            rows.extend(resumed.map(|(_, line)| format!("{line}\n")));
        }
        write_atomically(&path, &format!("{header}\n{rows}"))?;
        let file = append(&path)?;
        Ok(Self {
            file,
            path,
            renamed,
        })
    }

    /// Returns `true` if a file has other content than rows of these columns, besides an incomplete last row; `None` if there is no file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_damaged(directory: &Path, name: &str, header: &str) -> Result<Option<bool>, Error> {
        let text = read(&directory.join(name))?;
        Ok(text.map(|text| ExistingFile::of(&text, header).is_damaged))
    }

    /// Appends complete rows and flushes them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, rows: &str) -> Result<(), Error> {
        let written = self.file.write_all(rows.as_bytes());
        let written = written.and_then(|()| self.file.flush());
        written.map_err(Error::file("cannot write", &self.path))
    }

    /// Syncs the file to disk.
    ///
    /// # Errors
    /// The file cannot be synced.
    pub fn sync(&self) -> Result<(), Error> {
        let synced = self.file.sync_data();
        synced.map_err(Error::file("cannot sync", &self.path))
    }

    /// Returns a note if not all rows of an earlier file are continued.
    pub fn note(&self) -> Option<String> {
        let renamed = self.renamed.as_ref()?.display();
        let path = self.path.display();
        Some(format!(
            "note: not all rows of {path} can be continued; the file was renamed to {renamed}"
        ))
    }
}

/// Reads a file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file("cannot read", path)(error)),
    }
}

/// Contents of an existing file.
struct ExistingFile<'a> {
    /// Complete rows with their steps; empty if the columns differ.
    rows: Vec<(u64, &'a str)>,
    /// `true` if the file has other content, besides an incomplete last row.
    is_damaged: bool,
}

impl<'a> ExistingFile<'a> {
    fn of(text: &'a [u8], header: &str) -> Self {
        let columns = header.split(',').count();
        let row = |line: &'a [u8]| {
            let line = std::str::from_utf8(line).ok()?;
            let step = line.split(',').next()?.parse().ok()?;
            (line.split(',').count() == columns).then_some((step, line))
        };
        let (whole, _cut) = match text.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => text.split_at(end),
            None => (&[][..], text),
        };
        let mut lines = whole.split(|byte| *byte == b'\n');
        if lines.next() != Some(header.as_bytes()) {
            return Self {
                rows: Vec::new(),
                is_damaged: true,
            };
        }
        let read: Vec<_> = lines.map(row).collect();
        Self {
            is_damaged: read.contains(&None),
            rows: read.into_iter().flatten().collect(),
        }
    }
}

/// Name of the capture file; earlier files are renamed.
const NAME: &str = "capture.toml";
/// Name of the file with the input of a cell function; numbered if it exists.
const CELL: &str = "unfinished-cell.toml";

/// Saves captures and adds the file name to the error that ends the run. Collective.
pub(super) fn save(sim: &mut Engine, directory: &Path, error: Error) -> Error {
    // the rank of the cell has the case, the others only its message
    let case = sim.world.resource::<FaultBox>().take_case();
    let case = case.filter(|case| sim.world.resource::<Replays>().contains(case));
    if let (Some(case), Error::Fault(why)) = (case, &error) {
        return Error::Fault(save_cell(sim, directory, case, why));
    }
    let Error::Unphysical {
        level,
        time,
        retries,
        why,
    } = error
    else {
        return error;
    };
    let captured = sim.world.resource_mut::<StepVerdict>().capture.take();
    let note = captured.map_or(String::new(), |text| {
        let ranks = sim.world.resource::<Ranks>();
        match on_first_rank(ranks, || write_capture(sim, directory, &text)) {
            Ok(_) => format!(
                "\nthe patch before the step is saved in {}: the command `replay` repeats the step",
                directory.join(NAME).display()
            ),
            Err(error) => format!("\nthe patch before the step cannot be saved: {error}"),
        }
    });
    Error::Unphysical {
        level,
        time,
        retries,
        why: why + &note,
    }
}

/// Saves the input of a cell function; returns the message that ends the run.
fn save_cell(sim: &Engine, directory: &Path, case: CellCase, why: &str) -> String {
    let folder = sim
        .deck
        .directory()
        .map(|folder| folder.display().to_string());
    let case = CellCase {
        why: why.into(),
        folder: folder.unwrap_or_default(),
        deck: sim.deck.resolved(),
        ..case
    };
    match write_numbered(&directory.join(CELL), &case.text()) {
        Ok(path) => format!(
            "{why}\nthe input of the function is saved: the command `replay {}` repeats the call",
            path.display()
        ),
        Err(error) => format!("{why}\nthe input of the function cannot be saved: {error}"),
    }
}

/// Writes a capture with the deck of the run.
fn write_capture(sim: &Engine, directory: &Path, text: &str) -> Result<PathBuf, Error> {
    let path = directory.join(NAME);
    if path.exists() {
        rename_numbered(&path)?;
    }
    let unreadable = |e: toml::de::Error| Error::Setup(e.to_string());
    let capture: Capture = toml::from_str(text).map_err(unreadable)?;
    let capture = Capture {
        deck: sim.deck.resolved(),
        ..capture
    };
    write_atomically(&path, &capture.text())?;
    Ok(path)
}

/// Describes the program and its build.
#[derive(Clone, Debug, Default)]
pub struct BuildInfo {
    /// Name of the program.
    pub program: String,
    /// Version of the program.
    pub program_version: String,
    /// Commit of the program, if known.
    pub program_commit: String,
    /// Version of the engine.
    pub version: String,
    /// Commit of the engine, if known.
    pub commit: String,
    /// Build flags of both.
    pub flags: String,
}

/// Lists the host and the device of each rank.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// Names of the hosts.
    pub hosts: Vec<String>,
    /// Compute devices of the ranks.
    pub devices: Vec<String>,
    /// Number of ranks in this rank's process.
    pub in_process: u64,
}

/// Host, device and process of a rank.
#[derive(Serialize, Deserialize)]
struct RankEntry {
    host: String,
    device: String,
    process: u32,
}

impl Roster {
    /// Gathers the hosts and devices of all ranks. Collective.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn gather(sim: &Engine) -> Result<Self, RanksError> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let device = sim.world.resource::<ComputeDevice>().device.as_ref();
        let own = RankEntry {
            host: host.trim().to_string(),
            device: device.map_or_else(|| "cpu".to_string(), Device::describe),
            process: std::process::id(),
        };
        let bytes = serde_json::to_vec(&own).unwrap_or_default();
        let ranks = sim.world.resource::<Ranks>().communicator();
        let read = |bytes: Vec<u8>| serde_json::from_slice::<RankEntry>(&bytes);
        let all: Result<Vec<RankEntry>, _> =
            ranks.all_gather(&bytes)?.into_iter().map(read).collect();
        let all = all.map_err(|e| {
            RanksError::Transport(format!("a description of a rank is damaged: {e}"))
        })?;
        let beside = |entry: &&RankEntry| (&entry.host, entry.process) == (&own.host, own.process);
        let in_process = all.iter().filter(beside).count() as u64;
        let (hosts, devices) = all.into_iter().map(|e| (e.host, e.device)).unzip();
        Ok(Self {
            hosts,
            devices,
            in_process,
        })
    }
}

/// Writes `provenance.json` into the run's directory; `host`, `device` and `threads` are those of the writing
/// rank.
///
/// # Errors
/// The file cannot be written.
pub fn write_provenance(
    sim: &Engine,
    build: &BuildInfo,
    roster: &Roster,
    directory: &Path,
) -> Result<(), Error> {
    let rank = sim.world.resource::<Ranks>().rank();
    let provenance = serde_json::json!({
        "program": build.program,
        "program_version": build.program_version,
        "program_commit": build.program_commit,
        "version": build.version,
        "commit": build.commit,
        "build_flags": build.flags,
        "host": roster.hosts.get(rank),
        "device": roster.devices.get(rank),
        "ranks": roster.hosts.len(),
        "hosts": roster.hosts,
        "devices": roster.devices,
        "threads": rayon::current_num_threads(),
        "precision": sim.precision(),
        "start_time_utc": humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
    });
    write_atomically(
        &directory.join("provenance.json"),
        &format!("{provenance:#}\n"),
    )
}
