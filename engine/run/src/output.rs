//! Snapshot output: schedule, and writing in the background.
//!
//! All ranks write a snapshot together; each stores and syncs its own shards. They report their progress
//! before each root step. When all shards are on disk, the first rank gives the snapshot its final name.

use crate::cadence::Cadence;
use crate::diagnostics::Diagnostics;
use crate::files::{BuildInfo, Roster};
use crate::restart::Restored;
use crate::snapshot::headers::{DerivedArrays, attributes, levels};
use crate::snapshot::particles::ParticleShards;
use crate::snapshot::shard_writer::ShardWriter;
use crate::snapshot::transfer::{TransferState, TransferThread};
use crate::snapshot::{
    PatchOffsets, SnapshotSink, buffer_limit, shard_writer, snapshot_error, transfer,
};
use crate::{blobs, files};
use nestar_engine_comm::Ranks;
use nestar_engine_data::{StoreRef, Stores};
use nestar_engine_device::ComputeDevice;
use nestar_engine_mesh::{Levels, Topology};
use nestar_engine_step::config::OutputConfig;
use nestar_engine_step::error::{agreed, agreed_with_flags, on_first_rank};
use nestar_engine_step::{Engine, Error};
use nestar_snapshot as store;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// State of this rank's part of a snapshot.
enum Writing {
    /// All values have been passed to the writer.
    Storing(store::PendingSnapshot),
    /// A thread still transfers values from the device.
    Transferring(TransferThread<store::PendingSnapshot>),
}

/// Writes the snapshots of a run.
pub struct Output {
    directory: PathBuf,
    ranks: Ranks,
    threads: store::WriterThreads,
    number: u32,
    writing: Option<Writing>,
    /// Aborts `writing` from outside.
    abort_handle: Option<store::WriterAbort>,
    /// Error of this rank that other ranks do not know yet.
    failure: Option<Error>,
    /// Simulation time and step of the latest snapshot.
    latest: Option<(f64, u64)>,
    cadence: Cadence,
    /// `true` if a file [`NOW`] could not be removed; such files are ignored then.
    ignores_now: bool,
}

/// Name of a file in the run's directory that asks for a snapshot.
const NOW: &str = "NOW";

impl Output {
    /// Removes partial snapshots of a killed run, writes `run.toml` and `provenance.json` into the
    /// existing directory, and starts the threads that write. Collective.
    ///
    /// # Errors
    /// The directory cannot be written; the system refuses threads.
    pub fn new(
        sim: &Engine,
        directory: &Path,
        build: &BuildInfo,
        roster: &Roster,
        restored: Option<&Restored>,
    ) -> Result<Self, Error> {
        let ranks = sim.world.resource::<Ranks>().clone();
        on_first_rank(&ranks, || prepare(sim, directory, build, roster))?;
        let threads = store::WriterThreads::new(storing_threads(sim)).map_err(snapshot_error);
        let threads = agreed(&ranks, threads)?;
        let clock = sim.world.resource::<Levels>().clock(0);
        let OutputConfig {
            interval,
            steps,
            wall_interval,
            ..
        } = sim.settings.output;
        let times = sim.settings.output.times.clone();
        Ok(Self {
            directory: directory.to_path_buf(),
            ranks,
            threads,
            number: restored.map_or(0, |r| r.number + 1),
            writing: None,
            abort_handle: None,
            failure: None,
            latest: restored.map(|_| (clock.time, clock.steps)),
            cadence: Cadence::new(interval, times, steps, wall_interval, clock.time),
            ignores_now: false,
        })
    }

    /// Stores an error of this rank; the next exchange of flags reports it to all ranks.
    pub fn note(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }

    /// Returns `true` if a file `NOW` in the run's directory asks for a snapshot, and removes it. First rank only.
    ///
    /// # Errors
    /// The file cannot be removed; it is ignored from then on.
    pub(super) fn take_request(&mut self) -> Result<bool, Error> {
        if self.ranks.rank() > 0 || self.ignores_now {
            return Ok(false);
        }
        let path = self.directory.join(NOW);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => {
                self.ignores_now = true;
                Err(Error::file("cannot remove", &path)(error))
            }
        }
    }

    /// Exchanges the requests to stop and for a snapshot, the wall-clock schedule and the state of the latest snapshot. If all its
    /// shards are on disk, the first rank publishes it. Collective, once per root step.
    ///
    /// # Errors
    /// The error of any rank, on all ranks; no partial snapshot keeps a final name.
    pub(super) fn exchange_flags(
        &mut self,
        stop: bool,
        requested: bool,
    ) -> Result<RunFlags, Error> {
        let unsynced = !self.is_synced();
        let due = requested || self.is_due_by_wall() || self.removed_snapshot().is_some();
        let flags = RunFlags {
            stop,
            due,
            unsynced,
        };
        let own = self.failure.take().map_or(Ok(()), Err);
        let ((), bits) = self.agree_with_flags(own, flags.bits())?;
        let joined = RunFlags::of(bits);
        if let (false, Some(Writing::Storing(finishing))) = (joined.unsynced, &mut self.writing) {
            finishing.publish();
        }
        Ok(joined)
    }

    /// Returns `true` if this rank's part of the latest snapshot is on disk.
    fn is_synced(&mut self) -> bool {
        if let Some(Writing::Transferring(transfer)) = &self.writing
            && transfer.is_over()
        {
            let finished = self.finish_transfer();
            self.note(finished);
        }
        let Some(Writing::Storing(finishing)) = &self.writing else {
            return self.writing.is_none();
        };
        match finishing
            .poll()
            .and_then(|done| Ok((done.is_some(), finishing.is_synced()?)))
        {
            Ok((done, synced)) => {
                if done {
                    self.writing = None;
                }
                synced
            }
            Err(error) => {
                self.note(Err(snapshot_error(error)));
                false
            }
        }
    }

    /// Waits for the thread that transfers from the device, if there is one. The values are on disk
    /// afterwards.
    fn finish_transfer(&mut self) -> Result<(), Error> {
        match self.writing.take() {
            Some(Writing::Transferring(transfer)) => {
                let stored = transfer.wait();
                self.writing = Some(Writing::Storing(stored?));
            }
            other => self.writing = other,
        }
        Ok(())
    }

    /// Starts to write the present state. Waits for the previous snapshot and, unless a device holds a copy,
    /// for free space in the queue. Collective.
    ///
    /// # Errors
    /// A full disk, a missing directory or the like on any rank; no partial snapshot keeps a final name.
    /// Later errors are reported with the next flags.
    pub fn snapshot(&mut self, sim: &Engine, diagnostics: &Diagnostics) -> Result<(), Error> {
        self.wait()?;
        let clock = sim.world.resource::<Levels>().clock(0);
        let fields = Stores::of(&sim.world, |spec| spec.stored);
        let shards = self.create_writer(sim, diagnostics, &fields)?;
        let sent = shards.and_then(|shards| self.push(sim, &fields, shards));
        match sent {
            Ok(writing) => self.writing = Some(writing),
            Err(error) => self.note(Err(error)),
        }
        self.number += 1;
        self.latest = Some((clock.time, clock.steps));
        self.cadence.written(clock.time);
        Ok(())
    }

    /// Creates the writer of this rank's part of a snapshot. Collective.
    fn create_writer(
        &mut self,
        sim: &Engine,
        diagnostics: &Diagnostics,
        fields: &[StoreRef],
    ) -> Result<Result<ShardWriter, Error>, Error> {
        let offsets = PatchOffsets::gather(&sim.world)?;
        let attributes = attributes(sim, diagnostics, &offsets)?;
        let derived = DerivedArrays::new(sim, fields);
        let levels = levels(sim, fields, &derived);
        let blobs = blobs::blobs(&sim.world, &offsets)?;
        let ranges = shard_writer::shard_ranges(&offsets);
        let sent = self.agree(shard_writer::pack(sim, fields, &ranges))?;
        let received = shard_writer::exchange(sim, fields, &offsets, &ranges, sent)?;
        let mut particles = ParticleShards::gather(&sim.world, &offsets)?;
        let sent = self.agree(particles.pack(&sim.world))?;
        particles.exchange(&sim.world, sent)?;
        let target = store::SnapshotTarget {
            directory: self.directory.clone(),
            number: self.number,
            replace: false,
            queue_bytes: queue_bytes(
                sim,
                fields,
                shard_writer::received_bytes(&received) + particles.bytes(),
            ),
            threads: self.threads.clone(),
        };
        let (role, shards) = (
            shard_writer::role(&self.ranks),
            shard_writer::shard_numbers(&ranges, &particles),
        );
        let plan = || {
            let mut plan = store::SnapshotPlan::new(&attributes, &levels)?;
            blobs.iter().try_for_each(|blob| plan.add_blob(blob))?;
            particles.plan(sim, plan)
        };
        let begin = || store::SnapshotWriter::begin_share(&target, plan()?, role, &shards);
        let begin = || begin().map_err(snapshot_error);
        // the leader creates the directories first
        let leader = match role {
            store::Role::Follower => Ok(None),
            _ => begin().map(Some),
        };
        let writer = match self.agree(leader)? {
            Some(writer) => Ok(writer),
            None => begin(),
        };
        self.abort_handle = writer
            .as_ref()
            .ok()
            .map(store::SnapshotWriter::abort_handle);
        Ok(writer.map(|writer| ShardWriter::new(writer, ranges, received, particles, derived)))
    }

    /// Pushes this rank's part from the host, or starts its transfer from the device.
    fn push(
        &mut self,
        sim: &Engine,
        fields: &[StoreRef],
        mut shards: ShardWriter,
    ) -> Result<Writing, Error> {
        shards.push_particles(&sim.world)?;
        if let Some(device) = &sim.world.resource::<ComputeDevice>().device {
            match transfer::start_transfer(sim, device, fields, shards)? {
                TransferState::InProgress(transfer) => return Ok(Writing::Transferring(transfer)),
                TransferState::Done(filled) => shards = filled,
            }
        } else {
            push_all(sim, fields, &mut shards)?;
        }
        Ok(Writing::Storing(shards.finish()?))
    }

    /// Waits until the snapshot in progress has its final name. Collective.
    ///
    /// # Errors
    /// The error of any rank, on all ranks.
    pub fn wait(&mut self) -> Result<(), Error> {
        let finished = self.finish_transfer();
        self.note(finished);
        let synced = match &self.writing {
            Some(Writing::Storing(finishing)) => finishing.wait_until_synced(),
            _ => Ok(()),
        };
        self.note(synced.map_err(snapshot_error));
        let own = self.failure.take().map_or(Ok(()), Err);
        self.agree(own)?;
        let named = match self.writing.take() {
            Some(Writing::Storing(finishing)) => finishing.wait().map(|_| ()),
            _ => Ok(()),
        };
        self.agree(named.map_err(snapshot_error))
    }

    /// Makes an error collective as [`agreed`](nestar_engine_step::error::agreed); on errors the snapshot in
    /// progress is dropped.
    fn agree<T>(&mut self, own: Result<T, Error>) -> Result<T, Error> {
        self.agree_with_flags(own, 0).map(|(own, _)| own)
    }

    /// Makes an error and flags collective; see [`Output::agree`].
    fn agree_with_flags<T>(
        &mut self,
        own: Result<T, Error>,
        flags: u64,
    ) -> Result<(T, u64), Error> {
        let result = agreed_with_flags(&self.ranks, own, flags);
        if result.is_err() {
            self.abandon();
        }
        result
    }

    /// Drops the snapshot in progress. The first rank removes its files when no rank writes any more.
    fn abandon(&mut self) {
        if let Some(abort_handle) = self.abort_handle.take() {
            abort_handle.stop();
        }
        self.writing = None;
        // if ranks are lost, the next run removes the files
        if self.ranks.communicator().barrier().is_ok() && self.ranks.rank() == 0 {
            let _ = store::clean_partials(&self.directory);
        }
    }
}

/// Returns the number of threads of this rank that write in the background.
pub(crate) fn storing_threads(sim: &Engine) -> usize {
    let cores = sim
        .world
        .resource::<Ranks>()
        .communicator()
        .placement()
        .cores;
    (cores / 4).clamp(1, 4)
}

/// Prepares the run's directory on the first rank.
fn prepare(
    sim: &Engine,
    directory: &Path,
    build: &BuildInfo,
    roster: &Roster,
) -> Result<(), Error> {
    store::clean_partials(directory).map_err(snapshot_error)?;
    files::write_deck(directory, &sim.deck.stored())?;
    files::write_provenance(sim, build, roster, directory)
}

/// Returns the bytes of values that may be buffered. That is the limit of the deck, but at most a quarter of
/// the pools (or 8 MiB). A snapshot must not double the memory of a large run. Transfers from a device and
/// `received` bytes of other ranks are subtracted.
fn queue_bytes(sim: &Engine, fields: &[StoreRef], received: usize) -> usize {
    let pools: usize = fields
        .iter()
        .map(|field| field.of(&sim.world).bytes())
        .sum();
    let most = buffer_limit(sim).min((pools / 4).max(8 << 20));
    let held = match &sim.world.resource::<ComputeDevice>().device {
        Some(_) => transfer::staging_bytes(sim),
        None => 0,
    };
    most.saturating_sub(held + received).max(1)
}

/// Passes this rank's part from host memory to the writer.
fn push_all(sim: &Engine, fields: &[StoreRef], shards: &mut ShardWriter) -> Result<(), Error> {
    let topology = sim.world.resource::<Topology>();
    for level in 0..=topology.finest() {
        let part = shards.range(level);
        let rows = &topology.rows(level)[part.sent..];
        for (n, rows) in rows.chunks(part.shard).enumerate() {
            let first = part.first + n * part.shard;
            shard_writer::visit_arrays(sim, fields, level, rows, |name, values| {
                shards.push(level, name, first, values)
            })?;
        }
    }
    Ok(())
}

impl Output {
    /// Returns the time at which the next root step must end: the next snapshot or `end`. A snapshot within
    /// round-off of the end is the final one.
    #[must_use]
    pub fn until(&self, end: f64) -> f64 {
        self.cadence.until(end)
    }

    /// Returns `true` if the latest snapshot holds the present state.
    #[must_use]
    pub fn is_current(&self, sim: &Engine) -> bool {
        let clock = sim.world.resource::<Levels>().clock(0);
        self.latest == Some((clock.time, clock.steps))
    }

    /// Returns `true` if a snapshot exists from which the run can continue.
    #[must_use]
    pub fn has_snapshots(&self) -> bool {
        self.latest.is_some()
    }

    /// Returns `true` if a snapshot is due by simulation time or steps.
    #[must_use]
    pub fn is_due(&self, sim: &Engine) -> bool {
        self.cadence
            .is_due(&sim.world.resource::<Levels>().clock(0))
    }

    /// Returns `true` if a snapshot is due by the wall-clock time of the first rank.
    pub(super) fn is_due_by_wall(&self) -> bool {
        self.ranks.rank() == 0 && self.cadence.is_due_by_wall()
    }

    /// Returns the path of the latest snapshot if it has been removed; first rank only.
    #[must_use]
    pub fn removed_snapshot(&self) -> Option<PathBuf> {
        let number = self.number.checked_sub(1)?;
        let path = store::complete_path(&self.directory, number);
        let written = self.latest.is_some() && self.writing.is_none();
        (written && self.ranks.rank() == 0 && !path.exists()).then_some(path)
    }
}

/// Holds the flags of one rank, or their combination by OR.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunFlags {
    /// The run is asked to stop.
    pub stop: bool,
    /// A snapshot is due by wall-clock time or requested.
    pub due: bool,
    /// Part of the latest snapshot is not on disk yet.
    pub unsynced: bool,
}

impl RunFlags {
    /// Encodes the flags as bits for [`agreed_with_flags`](nestar_engine_step::error::agreed_with_flags).
    pub fn bits(self) -> u64 {
        let flags = [self.stop, self.due, self.unsynced];
        let bits = flags.iter().enumerate();
        bits.map(|(n, &flag)| u64::from(flag) << n).sum()
    }

    /// Decodes the flags from bits.
    pub fn of(bits: u64) -> Self {
        let [stop, due, unsynced] = [0, 1, 2].map(|n| bits >> n & 1 == 1);
        Self {
            stop,
            due,
            unsynced,
        }
    }
}
