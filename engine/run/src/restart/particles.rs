//! Restart of particles: each rank reads those of its own patches.

use crate::snapshot::PatchOffsets;
use nestar_engine_data::{ParticleColumn, ParticleKinds, ParticleSet, ParticleSetRef};
use nestar_engine_mesh::{Topology, parallel};
use nestar_engine_step::{Engine, Error};
use nestar_snapshot::{ParticlesHeader, Snapshot, Values};
use std::ops::Range;

/// Replaces the particles of own patches by those of the snapshot.
///
/// # Errors
/// The snapshot is damaged, or holds other arrays; a device fails.
pub(crate) fn restore(
    sim: &mut Engine,
    snapshot: &Snapshot,
    offsets: &PatchOffsets,
) -> Result<(), Error> {
    for kind in sim.world.resource::<ParticleKinds>().all() {
        let version = kind.of(&sim.world).version();
        let mut stored = snapshot.particles();
        let header =
            stored.find(|particles| particles.path == kind.path && particles.version == version);
        let Some(header) = header else {
            continue;
        };
        restore_kind(sim, snapshot, offsets, &kind, header).map_err(|why| {
            let place = snapshot.path().display();
            Error::Snapshot(format!("{place}: {}: {why}", kind.path))
        })?;
    }
    Ok(())
}

fn restore_kind(
    sim: &mut Engine,
    snapshot: &Snapshot,
    offsets: &PatchOffsets,
    kind: &ParticleSetRef,
    header: &ParticlesHeader,
) -> Result<(), String> {
    let reader = RecordReader {
        snapshot,
        path: &kind.path,
        columns: record_columns(kind.of(&sim.world)),
    };
    let counts = counts(snapshot, offsets, header)?;
    let mut result = Ok(());
    kind.scope(&mut sim.world, |world, particles| {
        let topology = world.resource::<Topology>();
        result = (0..offsets.levels()).try_for_each(|level| {
            let mut rows = topology.rows(level).iter();
            rows.try_for_each(|&row| particles.take(row).map(|_| ()).map_err(|e| e.to_string()))
        });
        let mut before = 0;
        for (level, counts) in counts.iter().enumerate() {
            let (others, own) = counts.split_at(offsets.own(level).start);
            let first = before + sum(others);
            let own = topology.rows(level).iter().copied().zip(own.iter().copied());
            let own: Vec<(u32, u32)> = own.filter(|(_, count)| *count > 0).collect();
            if let Some((row, count)) = own.iter().find(|(row, _)| !topology.is_leaf(*row)) {
                let index = topology.index(*row);
                let why = format!("{count} particles are in patch {index:?} of level {level}, which has children; the snapshot is damaged");
                result = std::mem::replace(&mut result, Ok(())).and(Err(why));
            }
            if result.is_ok() {
                result = reader.fill(particles, first, &own);
            }
            before += sum(counts);
        }
    });
    result
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().map(|&count| u64::from(count)).sum()
}

/// Reads the number of particles per patch of each level, on all ranks.
fn counts(
    snapshot: &Snapshot,
    offsets: &PatchOffsets,
    header: &ParticlesHeader,
) -> Result<Vec<Vec<u32>>, String> {
    let level = |level: usize| {
        let (name, patches) = (header.counts(), 0..offsets.total(level) as u64);
        match snapshot.read_patches(level as u8, &name, patches) {
            Ok(Values::U32(counts)) => Ok(counts),
            Ok(_) => Err(format!("level_{level}/{name} has a wrong type")),
            Err(error) => Err(error.to_string()),
        }
    };
    let counts: Vec<Vec<u32>> = (0..offsets.levels()).map(level).collect::<Result<_, _>>()?;
    let all: u64 = counts.iter().map(|counts| sum(counts)).sum();
    match all == header.count {
        true => Ok(counts),
        false => Err(format!(
            "the header counts {} particles, the patches {all}; the snapshot is damaged",
            header.count
        )),
    }
}

/// Rejects a snapshot whose particle columns differ from those of the run.
///
/// # Errors
/// The column, and the deck key that controls it.
pub(crate) fn check(sim: &Engine, snapshot: &Snapshot) -> Result<(), Error> {
    let mut errors = Vec::new();
    for kind in sim.world.resource::<ParticleKinds>().all() {
        let particles = kind.of(&sim.world);
        let version = particles.version();
        let mut stored = snapshot.particles();
        if stored.any(|stored| stored.path == kind.path && stored.version == version) {
            let checked = check_columns(snapshot, particles, &kind.path).map_err(|why| {
                let place = snapshot.path().display();
                Error::Setup(format!(
                    "{place}: the snapshot was written by another run: {}: {why}",
                    kind.path
                ))
            });
            errors.push(checked);
        }
    }
    Error::all(errors)
}

/// Checks that the snapshot has the columns of a kind of particles.
fn check_columns(
    snapshot: &Snapshot,
    particles: &dyn ParticleSet,
    path: &str,
) -> Result<(), String> {
    let stored = snapshot.columns(path);
    for (_, column) in record_columns(particles) {
        let (name, length) = (&column.what.name, column.values() as u64);
        let wanted = format!("{length} x {} per particle", column.data_type.name());
        let Some(found) = stored.iter().find(|header| header.name == *name) else {
            let known: Vec<&str> = stored.iter().map(|header| &*header.name).collect();
            let without = match particles.key_of(name) {
                Some(key) => format!("change `{key}`"),
                None => "continue without it".into(),
            };
            return Err(format!(
                "the array `{name}` ({wanted}) is missing and has no initial value; there are {}: {without}",
                known.join(", ")
            ));
        };
        let found_length = found.shape.iter().product::<u64>();
        if found_length != length {
            let why = format!("{found_length} values per particle, this program needs {length}");
            return Err(format!(
                "the array `{name}` holds {why}; continue with the program that wrote it"
            ));
        }
        if found.data_type != column.data_type {
            let [found, kept] = [found.data_type, column.data_type].map(|of| of.name());
            return Err(format!(
                "the array `{name}` has the type {found}, this run needs {kept}: set `run.precision` as in that run"
            ));
        }
    }
    Ok(())
}

/// Returns the columns that records consist of, with their offsets in a record.
fn record_columns(particles: &dyn ParticleSet) -> Vec<(usize, ParticleColumn)> {
    let columns = particles.columns().into_iter();
    columns
        .filter_map(|column| Some((column.at?, column)))
        .collect()
}

/// Reads records from the columns of a snapshot.
struct RecordReader<'a> {
    snapshot: &'a Snapshot,
    path: &'a str,
    /// Columns with their offsets in a record.
    columns: Vec<(usize, ParticleColumn)>,
}

impl RecordReader<'_> {
    /// Fills rows with the given numbers of particles, starting at particle `first`, in pieces of a shard to
    /// limit memory.
    fn fill(
        &self,
        particles: &mut dyn ParticleSet,
        first: u64,
        rows: &[(u32, u32)],
    ) -> Result<(), String> {
        let (length, most) = (
            particles.record_bytes(),
            Snapshot::shard_particles(u64::MAX),
        );
        let (mut first, mut rows) = (first, rows);
        while !rows.is_empty() {
            let mut end = first;
            let here = rows.iter().take_while(|(_, count)| {
                let begins = end == first || end - first + u64::from(*count) <= most;
                end += if begins { u64::from(*count) } else { 0 };
                begins
            });
            let (here, others) = rows.split_at(here.count());
            let records = self.records(first..end, length)?;
            let mut records = records.as_slice();
            for (row, count) in here {
                let (own, rest) = records.split_at(*count as usize * length);
                particles
                    .put(*row, own)
                    .map_err(|error| error.to_string())?;
                records = rest;
            }
            (first, rows) = (end, others);
        }
        Ok(())
    }

    /// Reads the records of a range of particles.
    fn records(&self, range: Range<u64>, length: usize) -> Result<Vec<u8>, String> {
        let count = (range.end - range.start) as usize;
        let read = |(_, column): &(usize, ParticleColumn)| {
            let values = self
                .snapshot
                .read_particles(self.path, &column.what.name, range.clone());
            values.map_err(|error| error.to_string())
        };
        let values = parallel::map(&self.columns, read);
        let values: Vec<Values> = values.into_iter().collect::<Result<_, _>>()?;
        let mut records = vec![0; count * length];
        for ((at, column), values) in self.columns.iter().zip(&values) {
            let bytes = column.bytes();
            let particles = records
                .chunks_exact_mut(length)
                .zip(values.bytes().chunks_exact(bytes));
            particles.for_each(|(record, value)| record[*at..at + bytes].copy_from_slice(value));
        }
        Ok(records)
    }
}
