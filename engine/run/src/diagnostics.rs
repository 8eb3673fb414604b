//! Tables that grow by one row per root step, written by the first rank: `diagnostics.csv` and `observed.csv`.
//! `column_units.rs` writes the units of the columns.

use crate::Progress;
use crate::column_units::{self, is_drift_absolute};
use crate::files::Series;
use crate::restart::{Restored, totals};
use bevy_ecs::prelude::World;
use nestar_engine_comm::{DiagnosticColumns, Ranks, RanksError, cells_repaired_between_levels};
use nestar_engine_data::Stores;
use nestar_engine_mesh::patch::{PatchComponents, decode, encode};
use nestar_engine_mesh::{
    CELLS, Level, LevelWork, Observed, PATCH, PatchIndex, PatchRow, Topology,
};
use nestar_engine_step::error::{agreed, on_first_rank};
use nestar_engine_step::{Activity, Engine, Error, RunCounters};
use std::fmt::Write as _;
use std::path::Path;

/// Name of the file in the run's directory.
const FILE: &str = "diagnostics.csv";

/// Writes the diagnostics of a run.
pub struct Diagnostics {
    /// The file; `None` on other ranks.
    series: Option<Series>,
    /// Conserved totals at the start of the simulation, component by component.
    pub initial: Vec<f64>,
    /// Work up to the previous row.
    work: LevelWork,
}

impl Diagnostics {
    /// Creates the file, or continues it after the row of the restored step. Collective.
    ///
    /// # Errors
    /// The file cannot be written; a device fails; another rank has failed.
    pub fn open(
        sim: &Engine,
        directory: &Path,
        restored: Option<&Restored>,
    ) -> Result<Self, Error> {
        let ranks = sim.world.resource::<Ranks>();
        let step = restored.map(|restored| restored.step);
        let header = columns(sim).join(",");
        let series = on_first_rank(ranks, || Series::open(directory, FILE, &header, step))?;
        let initial = match restored {
            Some(restored) => restored.initial_totals.clone(),
            None => totals(sim)?,
        };
        on_first_rank(ranks, || {
            column_units::write(sim, directory, &columns(sim), &initial)
        })?;
        Ok(Self {
            series,
            initial,
            work: sim.world.resource::<RunCounters>().work,
        })
    }

    /// Returns the row of a root step, or of the starting state. Collective.
    ///
    /// # Errors
    /// A device fails; another rank has failed.
    pub fn row(
        &mut self,
        sim: &mut Engine,
        progress: &Progress,
        memory: u64,
    ) -> Result<String, Error> {
        let columns = DiagnosticColumns::values(&mut sim.world)?;
        let repaired = cells_repaired_between_levels(&sim.world)?;
        let counters = sim.world.resource::<RunCounters>();
        let mut line = format!(
            "{},{:e},{:e},{}",
            progress.step, progress.time, progress.dt, progress.limiter
        );
        // writing to a string cannot fail
        for patches in &progress.patches {
            let _ = write!(line, ",{patches}");
        }
        self.write_totals(sim, &mut line)?;
        for value in columns {
            let _ = write!(line, ",{value:e}");
        }
        let work = counters.work.since(self.work);
        self.work = counters.work;
        let _ = write!(
            line,
            ",{:e},{},{},{},{},{},{},{}",
            progress.rate,
            memory,
            counters.fallback_cells,
            counters.retried_steps,
            repaired.averages,
            repaired.corrections,
            progress.capped,
            work.imbalance(sim.world.resource::<Ranks>().size()),
        );
        for seconds in sim.world.resource::<Activity>().seconds() {
            let _ = write!(line, ",{seconds:.6}");
        }
        line.push('\n');
        Ok(line)
    }

    /// Writes the totals, each with its relative drift since the start.
    fn write_totals(&self, sim: &Engine, line: &mut String) -> Result<(), Error> {
        let components = Stores::totalled(&sim.world).into_iter();
        for ((total, initial), component) in totals(sim)?.iter().zip(&self.initial).zip(components)
        {
            let scale = match is_drift_absolute(component, *initial) {
                true => 1.0,
                false => initial.abs(),
            };
            let _ = write!(line, ",{total:e},{:e}", (total - initial) / scale);
        }
        Ok(())
    }

    /// Returns a note about an earlier file that is not continued.
    pub(super) fn note(&self) -> Option<String> {
        self.series.as_ref().and_then(Series::note)
    }

    /// Appends a row; other ranks do nothing.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, row: &str) -> Result<(), Error> {
        match &mut self.series {
            Some(series) => series.append(row),
            None => Ok(()),
        }
    }
}

/// Returns the names of all columns.
pub(crate) fn columns(sim: &Engine) -> Vec<String> {
    let mut names: Vec<String> = DiagnosticColumns::FIRST.map(String::from).to_vec();
    names.extend(
        (0..=sim.world.resource::<Topology>().max_level).map(|level| format!("patches_{level}")),
    );
    for component in Stores::totalled(&sim.world) {
        names.push(format!("total_{}", component.name));
        names.push(format!("drift_{}", component.name));
    }
    let columns = sim.world.resource::<DiagnosticColumns>().names();
    names.extend(columns.map(String::from));
    names.extend(DiagnosticColumns::COUNTERS.map(String::from));
    let owners = sim.world.resource::<Activity>().names();
    names.extend(owners.iter().map(|owner| format!("seconds_{owner}")));
    names
}

/// Returns the resident memory of this process in bytes; 0 if unknown.
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

/// Name of the file in the run's directory.
const OBSERVED_FILE: &str = "observed.csv";
/// Columns; `quantity` is `mean`, `least`, `greatest`, or `cell` for a single cell.
const HEADER: &str = "step,time,name,level,patch_x,patch_y,patch_z,component,quantity,value";

/// Writes the observations if a plugin has registered the component.
pub(super) struct Observations {
    registered: bool,
    /// The file; `None` on other ranks.
    series: Option<Series>,
}

/// An observed patch of this rank.
struct ObservedPatch {
    level: usize,
    key: u64,
    index: [i32; 3],
    row: u32,
    what: Observed,
}

impl Observations {
    /// Creates the file, or continues it after the restored step. Collective.
    ///
    /// # Errors
    /// The file cannot be written; another rank has failed.
    pub fn open(
        sim: &Engine,
        directory: &Path,
        restored: Option<&Restored>,
    ) -> Result<Self, Error> {
        let registered = sim.world.resource::<PatchComponents>().has::<Observed>();
        let mut series = None;
        if registered {
            let ranks = sim.world.resource::<Ranks>();
            let step = restored.map(|restored| restored.step);
            series = on_first_rank(ranks, || {
                Series::open(directory, OBSERVED_FILE, HEADER, step)
            })?;
        }
        Ok(Self { registered, series })
    }

    /// Returns a note about an earlier file that is not continued.
    pub fn note(&self) -> Option<String> {
        self.series.as_ref().and_then(Series::note)
    }

    /// Appends the rows of a root step. Collective; the inner result tells whether they were written.
    ///
    /// # Errors
    /// An observed patch requests an unknown component or cell; a device fails; another rank has failed.
    pub fn append(
        &mut self,
        sim: &Engine,
        progress: &Progress,
    ) -> Result<Result<(), Error>, Error> {
        if !self.registered {
            return Ok(Ok(()));
        }
        let ranks = sim.world.resource::<Ranks>();
        let own = observed_patches(&sim.world).into_iter().map(|watched| {
            let place = (watched.level as u64, watched.key);
            Ok((place, rows(sim, progress, &watched)?.into_bytes()))
        });
        let own: Vec<((u64, u64), Vec<u8>)> = agreed(ranks, own.collect())?;
        let mut rows = gather_rows(ranks, own)?;
        rows.sort();
        let text = rows.iter().map(|(_, text)| String::from_utf8_lossy(text));
        let text: String = text.collect();
        Ok(match &mut self.series {
            Some(series) => series.append(&text),
            None => Ok(()),
        })
    }
}

/// Rows by level and key.
type KeyedRows = Vec<((u64, u64), Vec<u8>)>;

fn gather_rows(ranks: &Ranks, own: KeyedRows) -> Result<KeyedRows, RanksError> {
    let mut all = own;
    let received = ranks.gather_on_first(|| {
        let halves = all.iter().flat_map(|((level, key), text)| {
            [(*level, key.to_le_bytes().to_vec()), (0, text.clone())]
        });
        encode(&halves.collect::<Vec<_>>())
    })?;
    for message in received {
        let broken = || RanksError::Transport("a message with observed values is truncated".into());
        let halves = decode(&message.bytes).ok_or_else(broken)?;
        for pair in halves.as_chunks::<2>().0 {
            let [(level, key), (_, text)] = pair;
            let key = key.as_slice().try_into().map_err(|_| broken())?;
            all.push(((*level, u64::from_le_bytes(key)), text.clone()));
        }
    }
    Ok(all)
}

/// Returns the observed patches of this rank.
fn observed_patches(world: &World) -> Vec<ObservedPatch> {
    let topology = world.resource::<Topology>();
    let Some(mut patches) = world.try_query::<(&Level, &PatchIndex, &PatchRow, &Observed)>() else {
        return Vec::new();
    };
    let patch =
        |(level, index, row, what): (&Level, &PatchIndex, &PatchRow, &Observed)| ObservedPatch {
            level: usize::from(level.0),
            key: topology.key(row.0),
            index: index.0,
            row: row.0,
            what: what.clone(),
        };
    patches.iter(world).map(patch).collect()
}

/// Formats the rows of one patch.
fn rows(sim: &Engine, progress: &Progress, watched: &ObservedPatch) -> Result<String, Error> {
    let ObservedPatch {
        level, index, what, ..
    } = watched;
    let wrong = |why: String| {
        Error::Setup(format!(
            "the observed patch {index:?} of level {level}: {why}"
        ))
    };
    let cell = cell(what).map_err(wrong)?;
    let (mut text, mut known) = (String::new(), Vec::new());
    // of fields with 8^3 cells per patch
    for field in Stores::of(&sim.world, |spec| spec.side == PATCH) {
        for (c, component) in field.of(&sim.world).spec().components.iter().enumerate() {
            known.push(component.name.clone());
            if !what.components.is_empty() && !what.components.contains(&component.name) {
                continue;
            }
            let values = field
                .of(&sim.world)
                .save(*level, c, &[watched.row])?
                .into_f64();
            let [x, y, z] = index;
            let (step, time, name) = (progress.step, progress.time, &what.name);
            for (quantity, value) in quantities(&values, cell) {
                // writing to a string cannot fail
                let _ = writeln!(
                    text,
                    "{step},{time:e},{name},{level},{x},{y},{z},{},{quantity},{value:e}",
                    component.name
                );
            }
        }
    }
    match what.components.iter().find(|name| !known.contains(name)) {
        Some(name) => Err(wrong(format!(
            "there is no component `{name}`, only {known:?}"
        ))),
        None => Ok(text),
    }
}

/// Returns the offset of the observed cell in a patch, if only one cell is observed.
fn cell(what: &Observed) -> Result<Option<usize>, String> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if what.name.is_empty() || !what.name.bytes().all(fits) {
        let name = &what.name;
        return Err(format!(
            "its name {name:?} must consist of letters, digits and `_`"
        ));
    }
    let Some(cell) = what.cell else {
        return Ok(None);
    };
    let [x, y, z] = cell.map(usize::from);
    match x.max(y).max(z) < PATCH {
        true => Ok(Some((z * PATCH + y) * PATCH + x)),
        false => Err(format!("a patch has no cell {cell:?}")),
    }
}

/// Returns the quantities of a patch: the value of one cell, or statistics in storage order.
fn quantities(values: &[f64], cell: Option<usize>) -> Vec<(&'static str, f64)> {
    match cell {
        Some(cell) => vec![("cell", values[cell])],
        None => vec![
            ("mean", values.iter().sum::<f64>() / CELLS as f64),
            (
                "least",
                values.iter().copied().fold(f64::INFINITY, f64::min),
            ),
            (
                "greatest",
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ),
        ],
    }
}
