//! Writing a snapshot while the run goes on.

use crate::files::{self, SNAPSHOTS};
use crate::groups::{PlannedArray, PlannedGroup, level_path};
use crate::queue::{ShardQueue, WriteJob, WrittenSnapshot, aborted};
use crate::store::SnapshotPlan;
use crate::worker::{Role, Worker};
use crate::{Attributes, LevelPlan, Result, SnapshotError, Values};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// Where and how a snapshot is written.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotTarget {
    /// The run's directory, which must exist; `snapshots` is created in it.
    pub directory: PathBuf,
    /// The snapshot's number: the file is `snapshots/NNNNNN.zarr`.
    pub number: u32,
    /// Whether a complete snapshot with this number may be replaced.
    pub replace: bool,
    /// Bytes of field values that may wait for the background thread (one shard is always admitted).
    pub queue_bytes: usize,
    /// Shards that are compressed at the same time, at least 1; the files do not depend on it.
    pub threads: usize,
}

/// A snapshot under construction, or one writer's share of it.
///
/// Values go through a bounded queue to a background thread that compresses and stores them under a temporary name;
/// [`SnapshotWriter::finish`] lets that thread sync them and, if the writer is the only one, rename it. Dropping an unfinished
/// writer removes what was written, unless that is the leader's business.
pub struct SnapshotWriter {
    plan: Arc<SnapshotPlan>,
    /// By array: the shards that are this writer's, and which of them were pushed.
    pushed: Vec<BTreeMap<u64, bool>>,
    role: Role,
    thread: Thread,
}

/// A snapshot, or one writer's share, that is complete from the caller's side and becomes durable in the background. Dropping it
/// waits, but a leader that was not told to publish drops the snapshot.
pub struct PendingSnapshot {
    thread: Thread,
    /// Whether the snapshot gets its name when this is asked for it.
    unnamed: bool,
}

/// Ends a writer from another thread: what it has not stored yet is dropped, and its pushes fail.
#[derive(Clone)]
pub struct WriterAbort(Arc<ShardQueue>);

impl WriterAbort {
    /// Ends the writer.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// The background thread and the queue to it.
struct Thread {
    queue: Arc<ShardQueue>,
    handle: Option<JoinHandle<()>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            // A panic of the thread has been turned into an outcome already.
            let _ = handle.join();
        }
    }
}

impl SnapshotTarget {
    /// Makes room for a snapshot under its temporary name.
    fn clear(&self) -> Result<()> {
        let snapshots = self.directory.join(SNAPSHOTS);
        if !snapshots.is_dir() {
            files::create_directory(&snapshots)?;
            files::sync(&self.directory)?;
        }
        let complete = self.complete();
        if complete.exists() && !self.replace {
            return Err(SnapshotError::Exists { path: complete });
        }
        files::remove_tree(&self.partial())
    }

    fn complete(&self) -> PathBuf {
        files::complete_path(&self.directory, self.number)
    }

    fn partial(&self) -> PathBuf {
        let name = files::complete_name(self.number);
        let snapshots = self.directory.join(SNAPSHOTS);
        snapshots.join(format!(".{name}.partial"))
    }
}

impl SnapshotWriter {
    /// Begins a snapshot: checks the headers and the target and creates the temporary directory.
    ///
    /// # Errors
    /// [`SnapshotError::Io`] (the run's directory is missing, no permission), [`SnapshotError::Exists`],
    /// [`SnapshotError::Request`] for headers that the format has no room for.
    pub fn begin(
        target: &SnapshotTarget,
        attributes: &Attributes,
        levels: &[LevelPlan],
    ) -> Result<Self> {
        let plan = SnapshotPlan::new(attributes, levels)?;
        let all = |group: &PlannedGroup| vec![group.shards()];
        let shards: Vec<_> = plan.groups.iter().map(all).collect();
        Self::begin_share(target, plan, Role::Only, &shards)
    }

    /// Begins a writer's share of a snapshot, by level and then by kind of items the numbers of the shards that it stores. Others store the
    /// other shards: the followers begin when the leader has begun, and the leader publishes when all writers have synced their
    /// shards. All plan the same levels and items; attributes and parts are the leader's.
    ///
    /// # Errors
    /// As [`SnapshotWriter::begin`].
    pub fn begin_share(
        target: &SnapshotTarget,
        plan: SnapshotPlan,
        role: Role,
        shards: &[Vec<Range<u64>>],
    ) -> Result<Self> {
        if role != Role::Follower {
            target.clear()?;
        }
        let plan = Arc::new(plan);
        let pushed = |array: &PlannedArray| {
            let own = shards.get(array.group).into_iter().flatten().cloned();
            own.flatten().map(|number| (number, false)).collect()
        };
        let pushed = plan.arrays.iter().map(pushed).collect();
        let queue = Arc::new(ShardQueue::new(target.queue_bytes));
        let worker = Worker {
            plan: plan.clone(),
            queue: queue.clone(),
            partial: target.partial(),
            complete: target.complete(),
            role,
            replace: target.replace,
            threads: target.threads,
            begun: Instant::now(),
        };
        let handle = Some(worker.start()?);
        Ok(Self {
            plan,
            pushed,
            role,
            thread: Thread { queue, handle },
        })
    }

    /// Patches of a whole shard of `level`.
    pub fn shard_patches(&self, level: u8) -> usize {
        self.plan.shard_patches(level)
    }

    /// What ends this writer from another thread, also when it is finishing.
    pub fn abort_handle(&self) -> WriterAbort {
        WriterAbort(self.thread.queue.clone())
    }

    /// Hands one shard over: the values of the patches from `first_patch` (a multiple of
    /// [`SnapshotWriter::shard_patches`]) up to a whole shard or the end of the level, in row-major order. Waits while
    /// the queue is full.
    ///
    /// # Errors
    /// The background thread's error as soon as it has one; [`SnapshotError::Request`] for values that are not one
    /// shard, a shard given twice or one of another writer.
    pub fn push(&mut self, level: u8, array: &str, first_patch: u64, values: Values) -> Result<()> {
        self.push_to(&level_path(level), array, first_patch, values)
    }

    /// Hands one shard of an array of items over, as [`SnapshotWriter::push`]: `path` is that of the items, `first` a multiple of
    /// [`Snapshot::shard_particles`](crate::Snapshot::shard_particles).
    ///
    /// # Errors
    /// As [`SnapshotWriter::push`].
    pub fn push_particles(
        &mut self,
        path: &str,
        array: &str,
        first: u64,
        values: Values,
    ) -> Result<()> {
        self.push_to(path, array, first, values)
    }

    fn push_to(&mut self, group: &str, array: &str, first: u64, values: Values) -> Result<()> {
        let index = self.plan.find(group, array)?;
        self.plan.check(index, first, &values)?;
        let number = first / self.plan.arrays[index].shard;
        let shard = self.pushed[index].get_mut(&number);
        let fault = match shard.map(|done| std::mem::replace(done, true)) {
            Some(false) => return self.thread.queue.push(index, first, values),
            Some(true) => "was pushed before",
            None => "is another writer's",
        };
        let name = self.plan.name(index);
        let text = format!("{name}: the shard from {first} {fault}");
        Err(SnapshotError::Request(text))
    }

    /// Declares this writer's shards whole and lets the background thread make them durable; if it is the only writer, under
    /// the snapshot's final name.
    ///
    /// # Errors
    /// [`SnapshotError::Request`] if a shard is missing; the snapshot is then dropped.
    pub fn finish(mut self) -> Result<PendingSnapshot> {
        for (index, pushed) in self.pushed.iter().enumerate() {
            if let Some((number, _)) = pushed.iter().find(|(_, done)| !**done) {
                let name = self.plan.name(index);
                let text = format!("{name}: shard {number} was never pushed");
                return Err(SnapshotError::Request(text));
            }
        }
        self.thread.queue.push_order(WriteJob::Finish);
        let handle = self.thread.handle.take();
        let queue = self.thread.queue.clone();
        Ok(PendingSnapshot {
            thread: Thread { queue, handle },
            unnamed: self.role == Role::Leader,
        })
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if self.thread.handle.is_some() {
            self.thread.queue.stop();
        }
    }
}

impl PendingSnapshot {
    /// The finished snapshot (of a follower: its share), or `None` while the thread works, or a leader waits to be told.
    ///
    /// # Errors
    /// The background thread's error; the temporary directory is gone then.
    pub fn poll(&self) -> Result<Option<WrittenSnapshot>> {
        self.thread.queue.outcome().unwrap_or(Ok(None))
    }

    /// Whether all of this writer's shards are on the disk; of an only writer: whether the snapshot has its name.
    ///
    /// # Errors
    /// As [`PendingSnapshot::poll`].
    pub fn is_synced(&self) -> Result<bool> {
        self.thread.queue.is_synced()
    }

    /// Waits until [`PendingSnapshot::is_synced`].
    ///
    /// # Errors
    /// As [`PendingSnapshot::poll`].
    pub fn wait_until_synced(&self) -> Result<()> {
        self.thread.queue.wait_until_synced()
    }

    /// Tells the leader that all writers have synced their shards: its thread gives the snapshot its name. Of others it asks
    /// nothing.
    pub fn publish(&mut self) {
        if std::mem::take(&mut self.unnamed) {
            self.thread.queue.push_order(WriteJob::Publish);
        }
    }

    /// Waits for the finished snapshot; a leader publishes it first.
    ///
    /// # Errors
    /// As [`PendingSnapshot::poll`].
    pub fn wait(mut self) -> Result<WrittenSnapshot> {
        self.publish();
        let done = self.thread.queue.wait_for_outcome()?;
        done.ok_or_else(aborted)
    }
}

impl Drop for PendingSnapshot {
    fn drop(&mut self) {
        if self.unnamed {
            self.thread.queue.stop();
        }
    }
}
