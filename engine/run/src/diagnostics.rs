//! `diagnostics.csv`: one row for the starting state and one per root step, written by the first rank.

use crate::Progress;
use crate::files::Series;
use crate::restart::{Restored, totals};
use nestar_engine_comm::{DiagnosticColumns, Ranks, cells_repaired_between_levels};
use nestar_engine_data::Stores;
use nestar_engine_mesh::{LevelWork, Topology};
use nestar_engine_step::agreement::on_first_rank;
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
        let series = on_first_rank(ranks, || Series::open(directory, FILE, &header(sim), step))?;
        let initial = match restored {
            Some(restored) => restored.initial_totals.clone(),
            None => totals(sim)?,
        };
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
        let absolute = components.map(|c| c.normal_to.is_some());
        for ((total, initial), absolute) in totals(sim)?.iter().zip(&self.initial).zip(absolute) {
            let scale = if absolute || *initial == 0.0 {
                1.0
            } else {
                initial.abs()
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

fn header(sim: &Engine) -> String {
    let mut names: Vec<String> = ["step", "time", "dt", "limiter"].map(String::from).to_vec();
    names.extend(
        (0..=sim.world.resource::<Topology>().max_level).map(|level| format!("patches_{level}")),
    );
    for component in Stores::totalled(&sim.world) {
        names.push(format!("total_{}", component.name));
        names.push(format!("drift_{}", component.name));
    }
    let columns = sim.world.resource::<DiagnosticColumns>().names();
    names.extend(columns.map(String::from));
    let counters = [
        "cell_updates_per_second",
        "memory_bytes",
        "first_order_cells",
        "retried_steps",
        "repaired_averages",
        "repaired_corrections",
        "capped_patches",
        "imbalance",
    ];
    names.extend(counters.map(String::from));
    let owners = sim.world.resource::<Activity>().names();
    names.extend(owners.iter().map(|owner| format!("seconds_{owner}")));
    names.join(",")
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
