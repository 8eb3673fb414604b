//! Snapshots: when they are due, and how they leave while the run goes on.

use super::diagnostics::Diagnostics;
use super::drain::{self, Departure, Drain, Ring};
use super::provenance::{self, BuildInfo, write_whole};
use super::restart::{self, Restored};
use crate::device::ComputeDevice;
use crate::error::Error;
use crate::field::{Component, FieldOperations, FieldRegistry};
use crate::mesh::Topology;
use crate::simulation::{RunFacts, Simulation};
use crate::time::Levels;
use nestar_snapshot as store;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A snapshot on its way.
enum Writing {
    /// The run has handed over all of it.
    Storing(store::Finishing),
    /// It still leaves the device.
    Draining(Drain),
}

/// The snapshots of a run.
pub struct Output {
    directory: PathBuf,
    number: u32,
    writing: Option<Writing>,
    /// What the next snapshot of a device leaves through.
    ring: Option<Ring>,
    /// Simulation time and step of the latest snapshot.
    latest: Option<(f64, u64)>,
    latest_wall: Instant,
    next_time: f64,
    interval: f64,
    seconds: f64,
}

impl Output {
    /// Creates the run's directory with `run.toml` and `provenance.json`, and removes what a killed run left half written.
    ///
    /// # Errors
    /// The directory cannot be made or written.
    pub fn new(
        sim: &Simulation,
        directory: &Path,
        build: &BuildInfo,
        restored: Option<&Restored>,
    ) -> Result<Self, Error> {
        std::fs::create_dir_all(directory)
            .map_err(Error::file("cannot create the directory", directory))?;
        store::clean_partials(directory).map_err(snapshot_error)?;
        write_whole(&directory.join("run.toml"), &sim.deck.resolved())?;
        provenance::write(sim, build, directory)?;
        let clock = sim.world.resource::<Levels>().clock(0);
        let mut output = Self {
            directory: directory.to_path_buf(),
            number: restored.map_or(0, |r| r.number + 1),
            writing: None,
            ring: None,
            latest: restored.map(|_| (clock.time, clock.steps)),
            latest_wall: Instant::now(),
            next_time: f64::INFINITY,
            interval: sim.settings.output.interval,
            seconds: 0.0,
        };
        output.schedule(clock.time);
        Ok(output)
    }

    /// The time that the next root step must not pass: that of the next snapshot, or `end`. A snapshot that round-off puts
    /// beside the end is the final one.
    #[must_use]
    pub fn until(&self, end: f64) -> f64 {
        if (end - self.next_time).abs() <= 1e-9 * self.interval {
            end
        } else {
            self.next_time.min(end)
        }
    }

    /// Seconds that the run has spent on snapshots so far.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Sets the next snapshot by time to the first multiple of the interval behind `time`.
    fn schedule(&mut self, time: f64) {
        if self.interval > 0.0 {
            self.next_time = ((time / self.interval + 1e-9).floor() + 1.0) * self.interval;
        }
    }

    /// Whether the present state is in the latest snapshot.
    #[must_use]
    pub fn is_current(&self, sim: &Simulation) -> bool {
        let clock = sim.world.resource::<Levels>().clock(0);
        self.latest == Some((clock.time, clock.steps))
    }

    /// Whether a snapshot is due now.
    #[must_use]
    pub fn is_due(&self, sim: &Simulation) -> bool {
        let clock = sim.world.resource::<Levels>().clock(0);
        let settings = &sim.settings.output;
        let by_time = clock.time >= self.next_time;
        let by_steps = settings.steps > 0 && clock.steps.is_multiple_of(settings.steps);
        let by_wall = settings.wall_interval > 0.0
            && self.latest_wall.elapsed().as_secs_f64() >= settings.wall_interval;
        by_time || by_steps || by_wall
    }

    /// Sends the present state off to be written. Waits for the snapshot before it and, unless a device keeps a copy, where the
    /// queue is full.
    ///
    /// # Errors
    /// A full disk, a missing directory, and the like; no half-written snapshot stays under its final name.
    pub fn snapshot(&mut self, sim: &Simulation, diagnostics: &Diagnostics) -> Result<(), Error> {
        let start = Instant::now();
        self.wait()?;
        let clock = sim.world.resource::<Levels>().clock(0);
        let fields = sim.world.resource::<FieldRegistry>().operations();
        let target = store::Target {
            directory: self.directory.clone(),
            number: self.number,
            replace: false,
            queue_bytes: queue_bytes(sim, &fields),
        };
        let attributes = attributes(sim, diagnostics)?;
        let writer = store::SnapshotWriter::begin(&target, &attributes, &levels(sim, &fields))
            .map_err(snapshot_error)?;
        self.writing = Some(self.send(sim, &fields, writer)?);
        self.number += 1;
        self.latest = Some((clock.time, clock.steps));
        self.latest_wall = Instant::now();
        self.schedule(clock.time);
        self.seconds += start.elapsed().as_secs_f64();
        Ok(())
    }

    fn send(
        &mut self,
        sim: &Simulation,
        fields: &[FieldOperations],
        mut writer: store::SnapshotWriter,
    ) -> Result<Writing, Error> {
        if let Some(device) = &sim.world.resource::<ComputeDevice>().device {
            match drain::depart(sim, device, fields, writer, &mut self.ring)? {
                Departure::Draining(drain) => return Ok(Writing::Draining(drain)),
                Departure::Done(filled) => writer = filled,
            }
        } else {
            push_all(sim, fields, &mut writer)?;
        }
        let storing = writer.finish().map_err(snapshot_error)?;
        Ok(Writing::Storing(storing))
    }

    /// Reports an error of the threads that write as soon as there is one.
    ///
    /// # Errors
    /// As [`Output::snapshot`].
    pub fn poll(&mut self) -> Result<(), Error> {
        let over = match &self.writing {
            Some(Writing::Storing(storing)) => storing.poll().map_err(snapshot_error)?.is_some(),
            Some(Writing::Draining(drain)) => drain.is_over(),
            None => false,
        };
        if over { self.wait() } else { Ok(()) }
    }

    /// Waits for the snapshot that is being written.
    ///
    /// # Errors
    /// As [`Output::snapshot`].
    pub fn wait(&mut self) -> Result<(), Error> {
        match self.writing.take() {
            Some(Writing::Storing(storing)) => storing.wait().map(|_| ()).map_err(snapshot_error),
            Some(Writing::Draining(drain)) => {
                let (ring, result) = drain.wait();
                self.ring = ring;
                result
            }
            None => Ok(()),
        }
    }
}

/// Memory that values may wait in: what the deck allows, but no more than a quarter of the pools (or 8 MiB), so that a
/// snapshot does not double the memory of a large run; less what values take on their way from a device.
fn queue_bytes(sim: &Simulation, fields: &[FieldOperations]) -> usize {
    let pools: usize = fields.iter().map(|field| (field.bytes)(&sim.world)).sum();
    let most = ((sim.settings.output.buffer as usize) << 20).min((pools / 4).max(8 << 20));
    match &sim.world.resource::<ComputeDevice>().device {
        Some(_) => most.saturating_sub(drain::held(sim)).max(1),
        None => most,
    }
}

pub(super) fn snapshot_error(error: store::SnapshotError) -> Error {
    Error::Snapshot(error.to_string())
}

/// Moves the files of an earlier run, and nothing else, into a folder `earlier.N` of the same directory, so that nothing is
/// lost; returns that folder.
///
/// # Errors
/// A file cannot be moved.
pub fn set_aside(directory: &Path) -> Result<Option<PathBuf>, Error> {
    let latest = store::latest(directory).map_err(snapshot_error)?;
    if latest.is_none() && !directory.join("diagnostics.csv").exists() {
        return Ok(None);
    }
    let name = |n: u32| directory.join(format!("earlier.{n}"));
    let free = (1..).map(name).find(|path| !path.exists());
    let free = free.unwrap_or_else(|| name(0));
    std::fs::create_dir(&free).map_err(Error::file("cannot create the directory", &free))?;
    let entries = std::fs::read_dir(directory).map_err(Error::file("cannot list", directory))?;
    for entry in entries {
        let entry = entry.map_err(Error::file("cannot list", directory))?;
        let file = entry.file_name();
        if file
            .to_str()
            .is_some_and(|name| belongs_to_a_run(name, latest.is_some()))
        {
            std::fs::rename(entry.path(), free.join(&file))
                .map_err(Error::file("cannot move aside", entry.path()))?;
        }
    }
    Ok(Some(free))
}

/// Whether a run writes a file of this name; `snapshots` is a run's if there are snapshots in it.
fn belongs_to_a_run(name: &str, has_snapshots: bool) -> bool {
    let numbered = name
        .strip_prefix("diagnostics.")
        .and_then(|rest| rest.strip_suffix(".csv"));
    ["run.toml", "provenance.json", "diagnostics.csv", "run.log"].contains(&name)
        || numbered.is_some_and(|n| n.parse::<u32>().is_ok())
        || (name == "snapshots" && has_snapshots)
}

fn attributes(sim: &Simulation, diagnostics: &Diagnostics) -> Result<store::Attributes, Error> {
    let settings = &sim.settings;
    let clock = sim.world.resource::<Levels>().clock(0);
    let faces = settings.domain.boundary.faces();
    let boundary: serde_json::Map<String, serde_json::Value> = ["x", "y", "z"]
        .into_iter()
        .zip(faces)
        .map(|(axis, sides)| (axis.to_string(), serde_json::json!(sides)))
        .collect();
    Ok(store::Attributes {
        time: clock.time,
        step: clock.steps,
        domain_left_edge: settings.domain.left_edge,
        domain_right_edge: settings.domain.right_edge,
        root_cells: settings.domain.cells.map(u64::from),
        boundary: boundary.into(),
        precision: match sim.precision() {
            crate::field::Precision::Single => store::Precision::Single,
            crate::field::Precision::Double => store::Precision::Double,
        },
        units: store::Units {
            length_cgs: settings.units.length_cgs,
            mass_cgs: settings.units.mass_cgs,
            time_cgs: settings.units.time_cgs,
            name: settings.units.name.clone(),
        },
        gamma: sim.world.resource::<RunFacts>().gamma,
        config: sim.deck.resolved(),
        restart: restart::state(sim, &diagnostics.initial)?,
        cosmology: None,
    })
}

#[allow(
    clippy::disallowed_methods,
    reason = "unit factors are metadata: no run depends on their last bit"
)]
fn levels(sim: &Simulation, fields: &[FieldOperations]) -> Vec<store::Level> {
    let topology = sim.world.resource::<Topology>();
    let data_type = match sim.precision() {
        crate::field::Precision::Single => store::DataType::F32,
        crate::field::Precision::Double => store::DataType::F64,
    };
    let units = &sim.settings.units;
    let header = |component: &Component| {
        let [length, mass, time] = component.dimension;
        let factor =
            units.length_cgs.powi(length) * units.mass_cgs.powi(mass) * units.time_cgs.powi(time);
        store::FieldHeader::cells(
            &component.name,
            data_type,
            &component.units,
            factor,
            &component.long_name,
        )
    };
    let components: Vec<Component> = fields
        .iter()
        .flat_map(|field| (field.components)(&sim.world))
        .collect();
    (0..=topology.finest())
        .map(|level| {
            let clock = sim.world.resource::<Levels>().clock(level);
            store::Level {
                header: store::LevelHeader {
                    level: level as u8,
                    time: clock.time,
                    dt: clock.dt,
                    cell_width: topology.domain.cell_width(level),
                    patches: topology.rows(level).len() as u64,
                },
                fields: components.iter().map(header).collect(),
            }
        })
        .collect()
}

fn push_all(
    sim: &Simulation,
    fields: &[FieldOperations],
    writer: &mut store::SnapshotWriter,
) -> Result<(), Error> {
    let topology = sim.world.resource::<Topology>();
    for level in 0..=topology.finest() {
        let shard = writer.shard_patches(level as u8);
        for (n, rows) in topology.rows(level).chunks(shard).enumerate() {
            let mut push = |name: &str, values| {
                writer
                    .push(level as u8, name, (n * shard) as u64, values)
                    .map_err(snapshot_error)
            };
            for (name, values) in drain::structure(topology, rows) {
                push(name, values)?;
            }
            for field in fields {
                for (c, component) in (field.components)(&sim.world).iter().enumerate() {
                    push(
                        &component.name,
                        (field.extract)(&sim.world, level, c, rows)?,
                    )?;
                }
            }
        }
    }
    Ok(())
}
