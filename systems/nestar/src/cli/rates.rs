//! Speeds that runs and measurements of this user have reached, remembered in the cache folder.
//!
//! The file only saves time: a missing or read-only folder and a damaged file are ignored.

use super::estimate::{Rate, measured_rate};
use nestar::engine::Engine;
use nestar::engine::comm::Ranks;
use nestar::engine::device::{ComputeDevice, cache_folder};
use nestar::engine::mesh::{CELLS, Topology};
use nestar::engine::run::RunSummary;
use nestar::engine::step::Activity;
use nestar::kernels::hydro::LaneChoice;
use nestar::{App, Simulation};
use nestar_deck::Deck;
use nestar_device::math::ln;
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::time::SystemTime;

/// Name of the file in the cache folder.
const FILE: &str = "rates.json";
/// Version of the file's meaning.
const SCHEMA: u32 = 1;
/// Maximum number of remembered speeds; the oldest are dropped.
const MOST: usize = 256;
/// Shortest time of steps, s, that gives the speed of a run.
const SHORTEST: f64 = 2.0;
/// Number of cells of a rank with which any device reaches its full speed.
const SATURATED: f64 = 4.2e6;
/// Largest ratio of the sizes of two runs on a GPU with comparable speeds.
const COMPARABLE: f64 = 16.0;
/// Maximum number of particles that are created to measure the speed.
pub const MAX_CREATED_PARTICLES: u64 = 1 << 22;
/// Tables of a deck that do not change the work in a cell.
const NOT_WORK: [&str; 9] = [
    "constants",
    "diagnostics",
    "domain",
    "initial",
    "mesh",
    "output",
    "run",
    "time",
    "units",
];

/// Describes the device of the run.
pub fn describe_device(compute: &ComputeDevice) -> String {
    let lanes = match LaneChoice::Auto.available() {
        LaneChoice::Avx512 => "AVX-512",
        LaneChoice::Avx2 => "AVX2",
        _ => "scalar",
    };
    match &compute.device {
        Some(device) => device.describe(),
        None => format!("CPU, {lanes} lanes"),
    }
}

/// Cells and levels of a hierarchy; those of one rank where a speed is compared.
#[derive(Clone, Copy)]
pub struct RunSize {
    pub cells: u64,
    pub levels: usize,
}

/// What the speed depends on, except for the size.
#[derive(Serialize, Deserialize, Clone, PartialEq)]
struct Work {
    device: String,
    precision: String,
    program: String,
    /// Tables of the deck that change the work in a cell.
    tables: Vec<String>,
    /// Digest of these tables.
    settings: String,
}

/// A remembered speed.
#[derive(Serialize, Deserialize, Clone)]
struct Record {
    #[serde(flatten)]
    work: Work,
    cells: u64,
    levels: usize,
    ranks: usize,
    cells_per_second: f64,
    date: String,
    /// Directory of the run; `None` for a measurement with a few cells.
    run: Option<PathBuf>,
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Records {
    schema: u32,
    rates: Vec<Record>,
}

/// Remembers the speed of a run that has ended. The first rank does so.
pub fn remember(app: &App, sim: &mut Simulation, summary: &RunSummary) {
    let work = Work::of(app, sim);
    let sim = sim.engine();
    let ranks = sim.world.resource::<Ranks>();
    let times = sim.world.resource::<Activity>().times().into_iter();
    let seconds: f64 = times
        .filter(|(name, _)| name != "output")
        .map(|(_, s)| s)
        .sum();
    if ranks.rank() > 0 || seconds < SHORTEST || summary.cell_updates == 0 {
        return;
    }
    let count = ranks.size();
    let directory = std::path::absolute(&summary.directory);
    let size = RunSize::of(sim);
    Record {
        work,
        cells: size.cells / count as u64,
        levels: size.levels,
        ranks: count,
        cells_per_second: summary.cell_updates as f64 / seconds / count as f64,
        date: today(),
        run: Some(directory.unwrap_or_else(|_| summary.directory.clone())),
    }
    .store();
}

/// Returns the speed of a run of `deck`, set up in `sim`: that of an earlier run on the same device with the same physics, or that of a
/// small grid, which is measured once if `may_measure`. `None` if neither exists.
pub fn expected(
    app: &App,
    deck: &Deck,
    sim: &mut Simulation,
    size: RunSize,
    may_measure: bool,
) -> Option<Rate> {
    let work = Work::of(app, sim);
    let known = read();
    let same = known.iter().filter(|record| record.work == work);
    let (runs, measurements): (Vec<_>, Vec<_>) = same.partition(|record| record.run.is_some());
    let is_gpu = !work.device.starts_with("CPU");
    let comparable = runs
        .into_iter()
        .filter(|run| !is_gpu || run.is_comparable(size));
    if let Some(best) = nearest(comparable, size).or_else(|| measurements.first().copied()) {
        return Some(best.rate());
    }
    if let Some(measured) = may_measure
        .then(|| measured_rate(app, deck, is_gpu))
        .flatten()
    {
        let (cells_per_second, cells) = measured;
        let record = Record {
            work,
            cells,
            levels: 1,
            ranks: 1,
            cells_per_second,
            date: today(),
            run: None,
        };
        record.store();
        return Some(record.rate());
    }
    let others = known.iter().filter(|record| record.work.resembles(&work));
    let others = others.filter(|record| record.work.device == work.device);
    nearest(others, size).map(Record::rate_with_other_settings)
}

/// Returns the speed of runs on a device whose name contains `name`.
///
/// # Errors
/// The known devices, if there is no such run with the physics of `sim`.
pub fn of_device(
    app: &App,
    sim: &mut Simulation,
    size: RunSize,
    name: &str,
) -> Result<Rate, String> {
    let work = Work::of(app, sim);
    let known = read();
    let named = |record: &&Record| {
        let device = record.work.device.to_lowercase();
        device.contains(&name.to_lowercase()) && record.work.resembles(&work)
    };
    let found: Vec<&Record> = known.iter().filter(named).collect();
    let equal = found
        .iter()
        .filter(|record| record.work.settings == work.settings);
    match nearest(equal.copied(), size) {
        Some(best) => Ok(best.rate()),
        None => match nearest(found.into_iter(), size) {
            Some(best) => Ok(best.rate_with_other_settings()),
            None => Err(format!(
                "no run in {} precision with the tables {} is known on a device {name:?}; {}",
                work.precision,
                work.tables.join(", "),
                describe_known(&known)
            )),
        },
    }
}

/// Lists the devices of all remembered speeds.
fn describe_known(known: &[Record]) -> String {
    let mut devices: Vec<&str> = known.iter().map(|r| r.work.device.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    match devices.is_empty() {
        true => "no run of this user has recorded its speed yet".into(),
        false => format!("known devices: {}", devices.join("; ")),
    }
}

/// Returns the record whose size is nearest, the latest of several.
fn nearest<'a>(records: impl Iterator<Item = &'a Record>, size: RunSize) -> Option<&'a Record> {
    records.min_by(|a, b| a.distance(size).total_cmp(&b.distance(size)))
}

impl RunSize {
    /// Returns the present size of a run, all ranks together.
    pub fn of(sim: &Engine) -> Self {
        let topology = sim.world.resource::<Topology>();
        let root: u64 = topology.domain.root.iter().map(|&n| n as u64).product();
        let finer = (1..=topology.finest()).map(|level| topology.rows(level).len() as u64);
        Self {
            cells: (root + finer.sum::<u64>()) * CELLS as u64,
            levels: topology.finest() + 1,
        }
    }
}

impl Work {
    fn of(app: &App, sim: &mut Simulation) -> Self {
        let threads = sim.with(|_| rayon::current_num_threads());
        let sim = sim.engine();
        let build = app.build_info();
        let (tables, settings) = settings(&sim.deck.resolved(), |name| {
            app.scenarios().iter().any(|scenario| scenario.name == name)
        });
        Self {
            device: device_name(sim.world.resource::<ComputeDevice>(), threads),
            precision: sim.precision().to_string(),
            program: format!(
                "{} {}, nestar {}",
                build.program, build.program_version, build.version
            ),
            tables,
            settings,
        }
    }

    /// Returns `true` for the same program, precision and tables, on any device and with any settings.
    fn resembles(&self, other: &Self) -> bool {
        self.tables == other.tables
            && self.precision == other.precision
            && self.program == other.program
    }
}

/// Returns the names of the tables that change the work in a cell, and the digest of their content.
fn settings(resolved: &str, scenarios: impl Fn(&str) -> bool) -> (Vec<String>, String) {
    let (mut tables, mut hasher) = (Vec::<String>::new(), DefaultHasher::new());
    let mut is_counted = false;
    for line in resolved.lines() {
        if let Some(header) = line.strip_prefix('[') {
            let name = header.trim_start_matches('[');
            let name = name.split(['.', ']']).next().unwrap_or_default();
            is_counted = !NOT_WORK.contains(&name) && !scenarios(name);
            if is_counted && !tables.iter().any(|known| known == name) {
                tables.push(name.into());
            }
        }
        if is_counted && !line.is_empty() {
            line.hash(&mut hasher);
        }
    }
    tables.sort();
    (tables, format!("{:016x}", hasher.finish()))
}

/// Returns the name of a device, without numbers that differ between runs.
fn device_name(compute: &ComputeDevice, threads: usize) -> String {
    let described = describe_device(compute);
    if compute.device.is_some() {
        let name = described.split(" (").next().unwrap_or_default();
        return name.to_string();
    }
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(": "));
    let model = model.map_or(String::new(), |(_, name)| format!(" {}", name.trim()));
    let lanes = described.trim_start_matches("CPU");
    match threads {
        1 => format!("CPU{model}{lanes}, 1 thread"),
        _ => format!("CPU{model}{lanes}, {threads} threads"),
    }
}

impl Record {
    /// Returns how much the size differs.
    fn distance(&self, size: RunSize) -> f64 {
        let levels = self.levels.abs_diff(size.levels) as f64;
        let ranks = ln(self.ranks as f64);
        ln(self.ratio(size)).abs() + levels + ranks
    }

    /// Returns the ratio of the sizes, where larger ones than saturated count as equal.
    fn ratio(&self, size: RunSize) -> f64 {
        let [own, other] = [self.cells, size.cells].map(|n| (n as f64).clamp(1.0, SATURATED));
        own / other
    }

    fn is_comparable(&self, size: RunSize) -> bool {
        let ratio = self.ratio(size);
        ratio.max(ratio.recip()) <= COMPARABLE
    }

    fn rate(&self) -> Rate {
        let origin = match &self.run {
            Some(run) => format!("in the run of {} in {}", self.date, run.display()),
            None => {
                let side = (1..).find(|n: &u64| n.pow(3) >= self.cells).unwrap_or(1);
                format!("on {} with {side}^3 cells of this deck", self.date)
            }
        };
        let ranks = match self.ranks {
            1 => String::new(),
            ranks => format!(" on {ranks} ranks"),
        };
        Rate {
            cells_per_second: self.cells_per_second,
            origin: format!("measured on {}{ranks} {origin}", self.work.device),
        }
    }

    fn rate_with_other_settings(&self) -> Rate {
        let Rate {
            cells_per_second,
            origin,
        } = self.rate();
        let origin = format!(
            "{} with other settings",
            origin.replace(" of this deck", "")
        );
        Rate {
            cells_per_second,
            origin,
        }
    }

    /// Adds the record to the file, in place of an earlier one of the same kind.
    fn store(&self) {
        let Some(folder) = cache_folder() else {
            return;
        };
        let size = |record: &Record| (record.cells.max(1).ilog2(), record.levels, record.ranks);
        let mut rates = read();
        rates.retain(|known| {
            known.work != self.work
                || known.run.is_some() != self.run.is_some()
                || size(known) != size(self)
        });
        rates.insert(0, self.clone());
        rates.truncate(MOST);
        let schema = SCHEMA;
        let Ok(text) = serde_json::to_string_pretty(&Records { schema, rates }) else {
            return;
        };
        // renamed, so that a run that ends at the same time reads whole files
        let beside = folder.join(format!("{FILE}.{}", std::process::id()));
        let written =
            fs::write(&beside, text).and_then(|()| fs::rename(&beside, folder.join(FILE)));
        if written.is_err() {
            // a partial file of a full disk does no harm
            let _ = fs::remove_file(&beside);
        }
    }
}

/// Reads the file; empty if it does not exist or cannot be used.
fn read() -> Vec<Record> {
    let text = cache_folder().and_then(|folder| fs::read(folder.join(FILE)).ok());
    let records = text.and_then(|text| serde_json::from_slice::<Records>(&text).ok());
    let usable = records.filter(|records| records.schema == SCHEMA);
    let mut rates = usable.map_or_else(Vec::new, |records| records.rates);
    rates.retain(|record| record.cells_per_second.is_finite() && record.cells_per_second > 0.0);
    rates
}

fn today() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now.split('T').next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::{Record, RunSize, Work, nearest, settings};

    fn record(cells: u64, levels: usize) -> Record {
        Record {
            work: Work {
                device: "GPU".into(),
                precision: "double".into(),
                program: String::new(),
                tables: Vec::new(),
                settings: String::new(),
            },
            cells,
            levels,
            ranks: 1,
            cells_per_second: cells as f64,
            date: String::new(),
            run: None,
        }
    }

    #[test]
    fn settings_without_work_in_cells_are_ignored() {
        let deck = |cells: u32, gamma: f64| {
            format!(
                "scenario = \"blast\"\n\n[domain]\ncells = [{cells}]\n\n[hydro]\ngamma = {gamma}\n\n[blast]\nr = {cells}\n\n[hydro.floors]\na = 1\n"
            )
        };
        let of = |cells, gamma| settings(&deck(cells, gamma), |name| name == "blast");
        assert_eq!(of(8, 1.4), of(16, 1.4));
        assert_ne!(of(8, 1.4).1, of(8, 1.5).1);
        assert_eq!(of(8, 1.4).0, ["hydro"]);
    }

    #[test]
    fn the_nearest_size_is_found_and_large_ones_are_equal() {
        let all = [record(1 << 15, 1), record(1 << 27, 1), record(1 << 27, 4)];
        let best = |cells, levels| {
            nearest(all.iter(), RunSize { cells, levels }).map(|r| (r.cells, r.levels))
        };
        assert_eq!(best(1 << 14, 1), Some((1 << 15, 1)));
        assert_eq!(best(1 << 30, 1), Some((1 << 27, 1)));
        assert_eq!(best(1 << 30, 3), Some((1 << 27, 4)));
        let size = RunSize {
            cells: 1 << 30,
            levels: 1,
        };
        assert!(!all[0].is_comparable(size) && all[1].is_comparable(size));
    }
}
