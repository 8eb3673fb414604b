//! Snapshots: when they are due, and how they leave while the run goes on.
//!
//! Several ranks write a snapshot together: each stores and syncs its share of the shards by itself. Before the next root step
//! they learn from each other how far they are; when all shards are on the disk, the first rank gives the snapshot its name.

mod due;

use super::derived::DerivedArrays;
use super::diagnostics::Diagnostics;
use super::drain::{self, Transfer, TransferThread};
use super::files;
use super::headers::{attributes, levels};
use super::items::ParticleShare;
use super::layout::PatchOffsets;
use super::parts;
use super::provenance::{self, BuildInfo, Roster};
use super::restart::Restored;
use super::shares::{self, SnapshotShare};
use super::sink::{SnapshotSink, allowance, snapshot_error};
use super::votes::RunFlags;
use crate::comm::Ranks;
use crate::data::{StoreRef, Stores};
use crate::device::ComputeDevice;
use crate::mesh::{Levels, Topology};
use crate::step::agreement::{agreed_with_flags, on_first_rank};
use crate::step::{Engine, Error};
use nestar_snapshot as store;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// This rank's share of a snapshot, on its way.
enum Writing {
    /// The run has handed over all of it.
    Storing(store::PendingSnapshot),
    /// It still leaves the device.
    Draining(TransferThread<store::PendingSnapshot>),
}

/// The snapshots of a run.
pub struct Output {
    directory: PathBuf,
    ranks: Ranks,
    number: u32,
    writing: Option<Writing>,
    /// What ends `writing` before its time.
    abort_handle: Option<store::WriterAbort>,
    /// What went wrong here and the other ranks do not know yet.
    failure: Option<Error>,
    /// Simulation time and step of the latest snapshot.
    latest: Option<(f64, u64)>,
    latest_wall: Instant,
    next_time: f64,
    interval: f64,
    wall_interval: f64,
    seconds: f64,
}

impl Output {
    /// Removes what a killed run left half written, and writes `run.toml` and `provenance.json` into the run's directory, which
    /// is there. All ranks call this.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn new(
        sim: &Engine,
        directory: &Path,
        build: &BuildInfo,
        roster: &Roster,
        restored: Option<&Restored>,
    ) -> Result<Self, Error> {
        let ranks = sim.world.resource::<Ranks>().clone();
        on_first_rank(&ranks, || prepare(sim, directory, build, roster))?;
        let clock = sim.world.resource::<Levels>().clock(0);
        let mut output = Self {
            directory: directory.to_path_buf(),
            ranks,
            number: restored.map_or(0, |r| r.number + 1),
            writing: None,
            abort_handle: None,
            failure: None,
            latest: restored.map(|_| (clock.time, clock.steps)),
            latest_wall: Instant::now(),
            next_time: f64::INFINITY,
            interval: sim.settings.output.interval,
            wall_interval: sim.settings.output.wall_interval,
            seconds: 0.0,
        };
        output.schedule(clock.time);
        Ok(output)
    }

    /// Seconds that the run has spent on snapshots so far.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Notes what went wrong on this rank; the next vote tells it to all.
    pub fn note(&mut self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }

    /// What the ranks make together of `stop`, the clock on the wall and the snapshot on its way, which the first rank gives
    /// its name where all shares of it are on the disk. All ranks call this once a root step.
    ///
    /// # Errors
    /// What went wrong on any rank, on all of them the same; no half-written snapshot stays under its final name.
    pub(super) fn exchange_flags(&mut self, stop: bool) -> Result<RunFlags, Error> {
        let unsynced = !self.is_synced();
        let due = self.is_due_by_wall() || self.removed().is_some();
        let votes = RunFlags {
            stop,
            due,
            unsynced,
        };
        let own = self.failure.take().map_or(Ok(()), Err);
        let ((), bits) = self.agree_with(own, votes.bits())?;
        let joined = RunFlags::of(bits);
        if let (false, Some(Writing::Storing(finishing))) = (joined.unsynced, &mut self.writing) {
            finishing.publish();
        }
        Ok(joined)
    }

    /// Whether this rank's share of the latest snapshot is on the disk.
    fn is_synced(&mut self) -> bool {
        if let Some(Writing::Draining(drain)) = &self.writing
            && drain.is_over()
        {
            let drained = self.drained();
            self.note(drained);
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

    /// Waits for the thread that drains a device, if there is one: the share is on the disk then.
    fn drained(&mut self) -> Result<(), Error> {
        match self.writing.take() {
            Some(Writing::Draining(drain)) => {
                let stored = drain.wait();
                self.writing = Some(Writing::Storing(stored?));
            }
            other => self.writing = other,
        }
        Ok(())
    }

    /// Sends the present state off to be written. Waits for the snapshot before it and, unless a device keeps a copy, where the
    /// queue is full. All ranks call this.
    ///
    /// # Errors
    /// A full disk, a missing directory, and the like, of this or of another rank; no half-written snapshot stays under its
    /// final name. Some of it is told by the next vote only.
    pub fn snapshot(&mut self, sim: &Engine, diagnostics: &Diagnostics) -> Result<(), Error> {
        let start = Instant::now();
        self.settle()?;
        let clock = sim.world.resource::<Levels>().clock(0);
        let fields = Stores::of(&sim.world, |spec| spec.stored);
        let share = self.begin(sim, diagnostics, &fields)?;
        let sent = share.and_then(|share| self.send(sim, &fields, share));
        match sent {
            Ok(writing) => self.writing = Some(writing),
            Err(error) => self.note(Err(error)),
        }
        self.number += 1;
        self.latest = Some((clock.time, clock.steps));
        self.latest_wall = Instant::now();
        self.schedule(clock.time);
        self.seconds += start.elapsed().as_secs_f64();
        Ok(())
    }

    /// Begins this rank's share of a snapshot, for which all ranks meet.
    fn begin(
        &mut self,
        sim: &Engine,
        diagnostics: &Diagnostics,
        fields: &[StoreRef],
    ) -> Result<Result<SnapshotShare, Error>, Error> {
        let layout = PatchOffsets::gather(&sim.world)?;
        let attributes = attributes(sim, diagnostics, &layout)?;
        let derived = DerivedArrays::new(sim, fields);
        let levels = levels(sim, fields, &derived);
        let parts = parts::parts(&sim.world, &layout)?;
        let own = shares::parts(&layout);
        let sent = self.agree(shares::sent(sim, fields, &own))?;
        let received = shares::exchanged(sim, fields, &layout, &own, sent)?;
        let mut items = ParticleShare::gather(&sim.world, &layout)?;
        let sent = self.agree(items.sent(&sim.world))?;
        items.exchange(&sim.world, sent)?;
        let target = store::SnapshotTarget {
            directory: self.directory.clone(),
            number: self.number,
            replace: false,
            queue_bytes: queue_bytes(sim, fields, shares::bytes(&received) + items.bytes()),
            threads: store_threads(sim),
        };
        let (role, shards) = (shares::role(&self.ranks), shares::shards(&own, &items));
        let plan = || {
            let mut plan = store::SnapshotPlan::new(&attributes, &levels)?;
            parts.iter().try_for_each(|part| plan.add_blob(part))?;
            items.plan(sim, plan)
        };
        let begin = || store::SnapshotWriter::begin_share(&target, plan()?, role, &shards);
        let begin = || begin().map_err(snapshot_error);
        // the others find the directories there
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
        Ok(writer.map(|writer| SnapshotShare::new(writer, own, received, items, derived)))
    }

    fn send(
        &mut self,
        sim: &Engine,
        fields: &[StoreRef],
        mut share: SnapshotShare,
    ) -> Result<Writing, Error> {
        share.push_particles(&sim.world)?;
        if let Some(device) = &sim.world.resource::<ComputeDevice>().device {
            match drain::start_transfer(sim, device, fields, share)? {
                Transfer::Draining(drain) => return Ok(Writing::Draining(drain)),
                Transfer::Done(filled) => share = filled,
            }
        } else {
            push_all(sim, fields, &mut share)?;
        }
        Ok(Writing::Storing(share.finish()?))
    }

    /// Waits until the snapshot that is being written has its name. All ranks call this.
    ///
    /// # Errors
    /// What went wrong on any rank, on all of them the same.
    pub fn settle(&mut self) -> Result<(), Error> {
        let drained = self.drained();
        self.note(drained);
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

    /// As [`agreed`](crate::step::agreement::agreed); where ranks have failed, the snapshot that is being written goes.
    fn agree<T>(&mut self, own: Result<T, Error>) -> Result<T, Error> {
        self.agree_with(own, 0).map(|(own, _)| own)
    }

    /// As [`agreed_with_flags`], see [`Output::agree`].
    fn agree_with<T>(&mut self, own: Result<T, Error>, flags: u64) -> Result<(T, u64), Error> {
        let result = agreed_with_flags(&self.ranks, own, flags);
        if result.is_err() {
            self.abandon();
        }
        result
    }

    /// Drops the snapshot that is being written. The first rank removes it when nobody writes there any more.
    fn abandon(&mut self) {
        if let Some(abort_handle) = self.abort_handle.take() {
            abort_handle.stop();
        }
        self.writing = None;
        // where ranks are gone, the next run removes what is left
        if self.ranks.communicator().barrier().is_ok() && self.ranks.rank() == 0 {
            let _ = store::clean_partials(&self.directory);
        }
    }
}

/// Threads of this rank that compress what is written while the run goes on.
fn store_threads(sim: &Engine) -> usize {
    let cores = sim
        .world
        .resource::<Ranks>()
        .communicator()
        .placement()
        .cores;
    (cores / 4).clamp(1, 4)
}

/// What the first rank does in the run's directory before the first step.
fn prepare(
    sim: &Engine,
    directory: &Path,
    build: &BuildInfo,
    roster: &Roster,
) -> Result<(), Error> {
    store::clean_partials(directory).map_err(snapshot_error)?;
    files::write_deck(directory, &sim.deck.resolved())?;
    provenance::write(sim, build, roster, directory)
}

/// Memory that values may wait in: what the deck allows, but no more than a quarter of the pools (or 8 MiB), so that a
/// snapshot does not double the memory of a large run; less what values take on their way from a device, and `received` bytes
/// from other ranks.
fn queue_bytes(sim: &Engine, fields: &[StoreRef], received: usize) -> usize {
    let pools: usize = fields
        .iter()
        .map(|field| field.of(&sim.world).bytes())
        .sum();
    let most = allowance(sim).min((pools / 4).max(8 << 20));
    let held = match &sim.world.resource::<ComputeDevice>().device {
        Some(_) => drain::held(sim),
        None => 0,
    };
    most.saturating_sub(held + received).max(1)
}

/// Hands over this rank's share from the memory of the host.
fn push_all(sim: &Engine, fields: &[StoreRef], share: &mut SnapshotShare) -> Result<(), Error> {
    let topology = sim.world.resource::<Topology>();
    for level in 0..=topology.finest() {
        let part = share.part(level);
        let rows = &topology.rows(level)[part.sent..];
        for (n, rows) in rows.chunks(part.shard).enumerate() {
            let first = part.first + n * part.shard;
            shares::arrays(sim, fields, level, rows, |name, values| {
                share.push(level, name, first, values)
            })?;
        }
    }
    Ok(())
}
