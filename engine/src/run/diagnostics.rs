//! `diagnostics.csv`: one row per root step, appended and flushed by the first rank.

use super::Progress;
use super::restart::Restored;
use crate::field::FieldRegistry;
use crate::mesh::{LevelWork, Topology};
use crate::ranks::{self, Columns, Ranks, skipped_corrections};
use crate::step::agreement::agreed;
use crate::step::{Error, Phase, RunCounters, Simulation};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Name of the file in the run's directory.
const FILE: &str = "diagnostics.csv";

/// The open file and what drifts are measured against.
pub struct Diagnostics {
    /// None on ranks but the first.
    file: Option<File>,
    path: PathBuf,
    /// Conserved totals at the start of the simulation, component by component.
    pub initial: Vec<f64>,
    /// Work up to the row before.
    work: LevelWork,
}

impl Diagnostics {
    /// Creates the file, or continues it behind the row of the restored step. All ranks call this.
    ///
    /// # Errors
    /// The file cannot be written; a device fails; another rank has failed.
    pub fn open(
        sim: &Simulation,
        directory: &Path,
        restored: Option<&Restored>,
    ) -> Result<Self, Error> {
        let path = directory.join(FILE);
        let ranks = sim.world.resource::<Ranks>();
        let file = match ranks.rank() {
            0 => open(sim, directory, &path, restored).map(Some),
            _ => Ok(None),
        };
        let file = agreed(ranks, file)?;
        let initial = match restored {
            Some(restored) => restored.initial_totals.clone(),
            None => totals(sim)?,
        };
        Ok(Self {
            file,
            path,
            initial,
            work: sim.world.resource::<RunCounters>().work,
        })
    }

    /// The row of a root step. All ranks call this.
    ///
    /// # Errors
    /// A device fails; another rank has failed.
    pub fn row(
        &mut self,
        sim: &Simulation,
        progress: &Progress,
        memory: u64,
        output_seconds: f64,
    ) -> Result<String, Error> {
        let counters = sim.world.resource::<RunCounters>();
        let mut line = format!(
            "{},{:e},{:e},{}",
            progress.step, progress.time, progress.dt, progress.limiter
        );
        // writing to a string cannot fail
        for patches in &progress.patches {
            let _ = write!(line, ",{patches}");
        }
        let totals = totals(sim)?;
        let absolute = FieldRegistry::totalled(&sim.world)
            .into_iter()
            .map(|c| c.normal_to.is_some());
        for ((total, initial), absolute) in totals.iter().zip(&self.initial).zip(absolute) {
            let scale = if absolute || *initial == 0.0 {
                1.0
            } else {
                initial.abs()
            };
            let _ = write!(line, ",{total:e},{:e}", (total - initial) / scale);
        }
        for value in sim.world.resource::<Columns>().values(&sim.world)? {
            let _ = write!(line, ",{value:e}");
        }
        let work = counters.work.since(self.work);
        self.work = counters.work;
        let _ = write!(
            line,
            ",{:e},{},{},{},{},{},{}",
            progress.rate,
            memory,
            counters.mended_cells,
            counters.retried_steps,
            skipped_corrections(&sim.world)?,
            progress.capped,
            work.imbalance(sim.world.resource::<Ranks>().size()),
        );
        for seconds in counters.seconds {
            let _ = write!(line, ",{seconds:.6}");
        }
        let _ = writeln!(line, ",{output_seconds:.6}");
        Ok(line)
    }

    /// Appends a row; on ranks but the first this does nothing.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, row: &str) -> Result<(), Error> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let written = file.write_all(row.as_bytes()).and_then(|()| file.flush());
        written.map_err(Error::file("cannot write", &self.path))
    }
}

/// Creates the file with the rows up to the restored step.
fn open(
    sim: &Simulation,
    directory: &Path,
    path: &Path,
    restored: Option<&Restored>,
) -> Result<File, Error> {
    let header = header(sim);
    let kept = match restored {
        Some(r) => kept_rows(path, &header, r.step)?,
        None => String::new(),
    };
    let beside = directory.join(format!(".{FILE}.partial"));
    std::fs::write(&beside, format!("{header}\n{kept}"))
        .map_err(Error::file("cannot write", &beside))?;
    std::fs::rename(&beside, path).map_err(Error::file("cannot write", path))?;
    let file = OpenOptions::new().append(true).open(path);
    file.map_err(Error::file("cannot write", path))
}

/// Totals of all fields that have them, component by component.
fn totals(sim: &Simulation) -> Result<Vec<f64>, Error> {
    let operations = FieldRegistry::of(&sim.world, |spec| spec.in_totals);
    let mut totals = Vec::new();
    for field in &operations {
        totals.extend(ranks::totals(&sim.world, field)?);
    }
    Ok(totals)
}

fn header(sim: &Simulation) -> String {
    let mut names: Vec<String> = ["step", "time", "dt", "limiter"].map(String::from).to_vec();
    names.extend(
        (0..=sim.world.resource::<Topology>().max_level).map(|level| format!("patches_{level}")),
    );
    for component in FieldRegistry::totalled(&sim.world) {
        names.push(format!("total_{}", component.name));
        names.push(format!("drift_{}", component.name));
    }
    let columns = sim.world.resource::<Columns>().names();
    names.extend(columns.map(String::from));
    let counters = [
        "cell_updates_per_second",
        "memory_bytes",
        "mended_cells",
        "retried_steps",
        "skipped_corrections",
        "capped_patches",
        "imbalance",
    ];
    names.extend(counters.map(String::from));
    names
        .extend(Phase::ALL.map(|phase| format!("seconds_{}", format!("{phase:?}").to_lowercase())));
    names.push("seconds_output".into());
    names.join(",")
}

/// The rows of an earlier run up to `step`. If its columns were others, that file is kept under another name.
fn kept_rows(path: &Path, header: &str, step: u64) -> Result<String, Error> {
    let Ok(text) = std::fs::read_to_string(path) else {
        return Ok(String::new());
    };
    let mut lines = text.lines();
    if lines.next() != Some(header) {
        let name = |n: u32| path.with_file_name(format!("diagnostics.{n}.csv"));
        let free = (1..)
            .map(name)
            .find(|path| !path.exists())
            .unwrap_or_else(|| name(0));
        std::fs::rename(path, &free).map_err(Error::file("cannot rename", path))?;
        return Ok(String::new());
    }
    // a row that a kill cut short has fewer columns
    let columns = header.split(',').count();
    let whole = |line: &str| line.split(',').count() == columns;
    let number = |line: &str| {
        let first = line.split(',').next().filter(|_| whole(line));
        first.and_then(|n| n.parse::<u64>().ok())
    };
    let kept = lines.take_while(|line| number(line).is_some_and(|n| n <= step));
    Ok(kept.map(|line| format!("{line}\n")).collect())
}

/// Resident memory of this process in bytes; 0 where the system does not say.
#[must_use]
pub fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| {
            text.split_whitespace()
                .nth(1)
                .and_then(|pages| pages.parse::<u64>().ok())
        });
    pages.unwrap_or(0) * 4096
}
