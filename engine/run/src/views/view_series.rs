//! The views of a running run: when they are due, and their series in `views/NAME.zarr` or files in `views/NAME`.

use super::collect::collect;
use super::file_entries::{FileEntries, unmade};
use super::file_view::FileReader;
use super::reader::ViewReader;
use super::{ComputedView, PreparedViews, ViewConfig, ViewLayout, ViewList, ViewSource};
use crate::cadence::Cadence;
use crate::output::storing_threads;
use crate::snapshot::snapshot_error;
use nestar_deck::CodeUnits;
use nestar_engine_comm::Ranks;
use nestar_engine_comm::communicator::Reduction;
use nestar_engine_device::parallel::lock;
use nestar_engine_mesh::Levels;
use nestar_engine_step::error::{agreed, on_first_rank};
use nestar_engine_step::{Engine, Error};
use nestar_snapshot::{
    DataType, Series, SeriesArray, SeriesList, SeriesPlan, SeriesWriter, SnapshotData, Values,
};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Name of the directory of the series in a run's directory.
const DIRECTORY: &str = "views";
/// Prefix of the attributes of a series with the keys of its view.
const KEYS: &str = "view_";
/// Bytes of an entry from which on it waits until all earlier ones are written, so that only one of its size is in memory.
const LARGE: usize = 64 << 20;

/// A view of a running run.
struct RunningView {
    config: ViewConfig,
    output: Output,
    cadence: Cadence,
    /// Step of the latest entry.
    latest: Option<u64>,
}

/// Where a view writes.
enum Output {
    /// A series with this number.
    Series(Arc<ViewReader>, usize),
    /// A series with this number, of entries that the view computes.
    Computed(Box<dyn ComputedView>, usize),
    /// Files; the first rank has their directory.
    Files(Arc<FileReader>, Option<Arc<Mutex<FileEntries>>>),
}

impl Output {
    /// Creates or continues the series or the files of a view; also returns the series and the step of the latest entry, on the first
    /// rank. Collective.
    ///
    /// # Errors
    /// As [`Views::open`].
    fn open(
        sim: &Engine,
        source: ViewSource,
        place: Place,
        config: &ViewConfig,
        resumed: Option<u64>,
    ) -> Result<(Self, Option<Series>, Option<u64>), Error> {
        let ranks = sim.world.resource::<Ranks>();
        let series = |layout: &ViewLayout, list: Option<&ViewList>| {
            let place = Place {
                ending: ".zarr",
                path: place.path.clone(),
                directory: place.directory.clone(),
                name: place.name.clone(),
            };
            let plan = plan(sim, &place.path, config, layout, list);
            let open = || open_series(sim, &place, &plan, resumed);
            let series = on_first_rank(ranks, open)?;
            let latest = series.as_ref().and_then(Series::latest_step);
            Ok::<_, Error>((series, latest))
        };
        match source {
            ViewSource::Series(reader) => {
                let (series, latest) = series(&reader.view.layout(), None)?;
                Ok((Self::Series(Arc::new(reader), 0), series, latest))
            }
            ViewSource::Computed(view) => {
                let (series, latest) = series(&view.layout(), view.list().as_ref())?;
                Ok((Self::Computed(view, 0), series, latest))
            }
            ViewSource::Files(reader) => {
                let ending = reader.view.ending();
                let open = || open_files(sim, &place, ending, resumed);
                let files = on_first_rank(ranks, open)?;
                let latest = files.as_ref().and_then(|files| files.latest);
                let files = files.map(|files| Arc::new(Mutex::new(files)));
                Ok((Self::Files(Arc::new(reader), files), None, latest))
            }
        }
    }
}

/// Writes the views of a run.
pub(crate) struct Views {
    ranks: Ranks,
    list: Vec<RunningView>,
    /// Writes the series of the views, on the first rank.
    writer: Option<SeriesWriter>,
}

impl Views {
    /// Creates the series of the views in the run's directory, or continues them after the present step if the run is resumed.
    /// Collective.
    ///
    /// # Errors
    /// A series cannot be written; that of a resumed run has other arrays.
    pub fn open(sim: &mut Engine, directory: &Path, is_resumed: bool) -> Result<Self, Error> {
        let prepared = sim.world.remove_resource::<PreparedViews>();
        let ranks = sim.world.resource::<Ranks>().clone();
        let clock = sim.world.resource::<Levels>().clock(0);
        let (mut list, mut all_series) = (Vec::new(), Vec::new());
        for own in prepared.unwrap_or_default().0 {
            let config = own.config;
            let key = format!("{}.interval", own.path);
            sim.settings.check_interval(
                &sim.deck,
                (&key, "entries"),
                config.interval,
                clock.time,
            )?;
            let key = format!("{}.steps", own.path);
            (sim.settings).check_steps(&sim.deck, (&key, "entries"), config.steps, clock.time)?;
            let resumed = is_resumed.then_some(clock.steps);
            let place = Place {
                path: own.path,
                directory: directory.join(DIRECTORY),
                name: config.name.clone(),
                ending: "",
            };
            let (output, series, own_latest) =
                Output::open(sim, own.source, place, &config, resumed)?;
            let output = match output {
                Output::Series(reader, _) => Output::Series(reader, all_series.len()),
                Output::Computed(view, _) => Output::Computed(view, all_series.len()),
                files => files,
            };
            all_series.extend(series);
            // all ranks must know whether the present state is written already
            let mut latest = [own_latest.map_or(0, |step| step + 1)];
            ranks.communicator().reduce(Reduction::Max, &mut latest)?;
            list.push(RunningView {
                cadence: Cadence::new(
                    config.interval,
                    config.all_times(&sim.settings),
                    config.steps,
                    config.wall_interval,
                    clock.time,
                ),
                latest: latest[0].checked_sub(1),
                config,
                output,
            });
        }
        let writes = ranks.rank() == 0 && !list.is_empty();
        Ok(Self {
            writer: writes.then(|| SeriesWriter::new(all_series, storing_threads(sim))),
            ranks,
            list,
        })
    }

    /// Returns the time at which the next root step must end: that of the next entry or `until`.
    #[must_use]
    pub fn until(&self, until: f64) -> f64 {
        let views = self.list.iter();
        views.fold(until, |until, view| view.cadence.until(until))
    }

    /// Writes an entry of all views with the initial state. Collective.
    ///
    /// # Errors
    /// The device fails; a file cannot be written.
    pub fn write_all(&mut self, sim: &Engine) -> Result<(), Error> {
        let due = vec![true; self.list.len()];
        self.write(sim, &due)
    }

    /// Writes an entry of the views that are due. Collective.
    ///
    /// # Errors
    /// The device fails; a file cannot be written.
    pub fn write_due(&mut self, sim: &Engine) -> Result<(), Error> {
        let clock = sim.world.resource::<Levels>().clock(0);
        let first = self.ranks.rank() == 0;
        let by_wall = |view: &RunningView| first && view.cadence.is_due_by_wall();
        let mut wall: Vec<u64> = self.list.iter().map(|view| by_wall(view).into()).collect();
        if self.list.iter().any(|view| view.cadence.has_wall_time()) {
            self.ranks.communicator().reduce(Reduction::Or, &mut wall)?;
        }
        let is_due = |(view, wall): (&RunningView, u64)| wall > 0 || view.cadence.is_due(&clock);
        let due: Vec<bool> = self.list.iter().zip(wall).map(is_due).collect();
        self.write(sim, &due)
    }

    fn write(&mut self, sim: &Engine, due: &[bool]) -> Result<(), Error> {
        let clock = sim.world.resource::<Levels>().clock(0);
        let mut result = Ok(());
        let views = self.list.iter_mut().zip(due);
        for (own, _) in views.filter(|(_, due)| **due) {
            own.cadence.written(clock.time);
            if own.latest == Some(clock.steps) {
                continue;
            }
            let written = own.write(sim, &mut self.writer)?;
            result = result.and(written);
            own.latest = Some(clock.steps);
        }
        match due.contains(&true) {
            true => agreed(&self.ranks, result.map_err(snapshot_error)),
            false => Ok(()),
        }
    }

    /// Waits until all entries are on disk, so that a snapshot never has more steps than a view. Collective.
    ///
    /// # Errors
    /// A file cannot be synced.
    pub fn sync(&mut self) -> Result<(), Error> {
        if self.list.is_empty() {
            return Ok(());
        }
        let synced = self.writer.as_mut().map_or(Ok(()), SeriesWriter::sync);
        agreed(&self.ranks, synced.map_err(snapshot_error))
    }
}

impl RunningView {
    /// Passes an entry with the present state to the writer, which the first rank has. Collective.
    ///
    /// # Errors
    /// The device or another rank has failed; the inner error is that of the writer.
    fn write(
        &self,
        sim: &Engine,
        writer: &mut Option<SeriesWriter>,
    ) -> Result<nestar_snapshot::Result<()>, Error> {
        let clock = sim.world.resource::<Levels>().clock(0);
        let data_type = self.config.precision.data_type();
        match &self.output {
            Output::Series(reader, number) => {
                let collected = collect(sim, reader)?;
                let (Some(collected), Some(writer)) = (collected, writer) else {
                    return Ok(Ok(()));
                };
                let reader = reader.clone();
                let values = move || {
                    let values = collected.values(&reader).into_iter();
                    values.map(|values| of_type(values, data_type)).collect()
                };
                Ok(writer.append(*number, clock.time, clock.steps, values))
            }
            Output::Computed(view, number) => {
                let entry = view.entry(sim)?;
                let (Some(entry), Some(writer)) = (entry, writer) else {
                    return Ok(Ok(()));
                };
                let values = move || {
                    let arrays = entry.arrays.into_iter();
                    let arrays = arrays.map(|values| of_type(values, data_type));
                    let columns = entry.columns.into_iter().map(|values| match values {
                        Values::F64(values) => of_type(values, data_type),
                        integers => integers,
                    });
                    arrays.chain(columns).collect()
                };
                Ok(writer.append(*number, clock.time, clock.steps, values))
            }
            Output::Files(reader, files) => {
                let collected = reader.collect(sim, &self.config.name)?;
                let (Some(data), Some(writer), Some(files)) = (collected, writer, files) else {
                    return Ok(Ok(()));
                };
                let waited = match bytes(&data) >= LARGE {
                    true => writer.sync(),
                    false => Ok(()),
                };
                let (reader, files) = (reader.clone(), files.clone());
                let name = self.config.name.clone();
                let work = move || {
                    let content = reader.view.content(data);
                    let content = content.map_err(|why| unmade(&name, &why))?;
                    lock(&files).append(clock.time, clock.steps, content)
                };
                Ok(waited.and_then(|()| writer.run(work)))
            }
        }
    }
}

/// Returns the bytes of all values.
fn bytes(data: &SnapshotData) -> usize {
    let arrays = data.arrays.iter().flat_map(|arrays| arrays.values());
    arrays.map(|values| values.bytes().len()).sum()
}

/// Converts values to the precision of a view.
fn of_type(values: Vec<f64>, data_type: DataType) -> Values {
    match data_type {
        DataType::F32 => Values::F32(values.iter().map(|&x| x as f32).collect()),
        _ => Values::F64(values),
    }
}

/// Place of a view in the deck and on disk.
struct Place {
    path: String,
    directory: PathBuf,
    name: String,
    ending: &'static str,
}

impl Place {
    fn at(&self) -> PathBuf {
        self.directory.join(format!("{}{}", self.name, self.ending))
    }

    /// Creates the directory of views and refuses links.
    fn prepare(&self) -> Result<(), Error> {
        std::fs::create_dir_all(&self.directory)
            .map_err(Error::file("cannot create the directory", &self.directory))?;
        match self.at().is_symlink() {
            true => Err(Error::Setup(format!(
                "{} is a symbolic link, and a run writes only into its own directory: remove the link",
                self.at().display()
            ))),
            false => Ok(()),
        }
    }

    /// Returns the error of a key that differs from that of the view on disk.
    fn differs(&self, sim: &Engine, key: &str, why: &str) -> Error {
        let path = &self.path;
        let message = format!(
            "`{path}`: the run cannot continue {}, whose `{key}` differs: {why}; give the view another name",
            self.at().display()
        );
        let key = match key.strip_prefix(KEYS) {
            Some(key) => format!("{path}.{key}"),
            None => format!("{path}.fields"),
        };
        let key = if sim.deck.has(&key) { &key } else { path };
        sim.deck.error_at(key, message).into()
    }
}

/// Creates or continues the series of a view.
fn open_series(
    sim: &Engine,
    place: &Place,
    plan: &SeriesPlan,
    resumed: Option<u64>,
) -> Result<Series, Error> {
    place.prepare()?;
    let Some(step) = resumed.filter(|_| place.at().exists()) else {
        return Series::create(&place.at(), plan).map_err(snapshot_error);
    };
    if let Some((key, why)) = Series::difference(&place.at(), plan).map_err(snapshot_error)? {
        return Err(place.differs(sim, &key, &why));
    }
    Series::resume(&place.at(), plan, step).map_err(snapshot_error)
}

/// Creates or continues the files of a view.
fn open_files(
    sim: &Engine,
    place: &Place,
    ending: &'static str,
    resumed: Option<u64>,
) -> Result<FileEntries, Error> {
    place.prepare()?;
    let mut keys = keys(sim, &place.path);
    let own = sim.deck.resolved_at(&place.path).unwrap_or_default();
    if let Some(fields) = own.get("fields") {
        keys.insert(format!("{KEYS}fields"), fields.clone());
    }
    let resumed = resumed.filter(|_| FileEntries::exist(&place.at()));
    if resumed.is_some()
        && let Some((key, why)) = FileEntries::difference(&place.at(), &keys)?
    {
        return Err(place.differs(sim, &key, &why));
    }
    FileEntries::open(&place.at(), ending, &keys, resumed)
}

/// Returns the plan of the series of a view.
fn plan(
    sim: &Engine,
    path: &str,
    config: &ViewConfig,
    layout: &ViewLayout,
    list: Option<&ViewList>,
) -> SeriesPlan {
    let (units, numbers) = (&sim.lasting_units(), config.precision.data_type());
    let length = |name: &String| {
        let own = layout.coordinates.iter().find(|own| own.name == *name);
        own.map_or(1, |own| own.values.len() as u64)
    };
    let array = |own: &super::ViewArray, data_type: DataType| SeriesArray {
        name: own.name.clone(),
        data_type,
        shape: own.dimensions.iter().map(length).collect(),
        dimensions: own.dimensions.clone(),
        attributes: described(units, own.units.as_deref(), &own.long_name),
    };
    let coordinate = |own: &super::ViewCoordinate| {
        let array = SeriesArray {
            name: own.name.clone(),
            data_type: DataType::F64,
            dimensions: vec![own.name.clone()],
            shape: vec![own.values.len() as u64],
            attributes: described(units, own.units.as_deref(), &own.long_name),
        };
        (array, Values::F64(own.values.clone()))
    };
    let columns = |list: &ViewList| {
        let columns = list.columns.iter();
        let columns = columns.map(|own| array(&own.array, own.data_type(numbers)));
        let mut count = described(units, None, &list.long_name);
        // as in the CF conventions for ragged arrays
        count.insert("sample_dimension".into(), json!(list.dimension));
        SeriesList {
            dimension: list.dimension.clone(),
            count,
            arrays: columns.collect(),
        }
    };
    let arrays = layout.arrays.iter();
    SeriesPlan {
        attributes: attributes(sim, path),
        time: described(units, Some("time"), "simulation time"),
        coordinates: layout.coordinates.iter().map(coordinate).collect(),
        arrays: arrays.map(|own| array(own, numbers)).collect(),
        list: list.map(columns),
    }
}

/// Returns the attributes of the group: the keys of the view that give its values their meaning.
fn attributes(sim: &Engine, path: &str) -> Map<String, Value> {
    let mut attributes = Map::new();
    attributes.insert("format".into(), json!("nestar-view"));
    attributes.insert("format_version".into(), json!(1));
    // readers such as xarray count this array among the coordinates
    attributes.insert("coordinates".into(), json!("step"));
    attributes.extend(keys(sim, path));
    attributes
}

/// Returns the keys of a view that must be the same in a resumed run.
fn keys(sim: &Engine, path: &str) -> Map<String, Value> {
    /// Keys that may differ in a resumed run.
    const FREE: [&str; 7] = [
        "name",
        "interval",
        "times",
        "output_times",
        "steps",
        "wall_interval",
        "fields",
    ];
    let own = sim.deck.resolved_at(path).unwrap_or_default();
    let own = own.into_iter().filter(|(key, _)| !FREE.contains(&&**key));
    own.map(|(key, value)| (format!("{KEYS}{key}"), value))
        .collect()
}

/// Returns the attributes of an array.
fn described(code: &CodeUnits, units: Option<&str>, long_name: &str) -> Map<String, Value> {
    let mut attributes = Map::new();
    attributes.insert("long_name".into(), json!(long_name));
    if let Some(units) = units {
        attributes.insert("units".into(), json!(units));
        attributes.insert("cgs_factor".into(), json!(code.cgs_factor(units)));
        attributes.insert("cgs_units".into(), json!(code.cgs_units(units)));
    }
    attributes
}
