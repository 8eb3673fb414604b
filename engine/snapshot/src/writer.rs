//! Writer of snapshots in the background of the run.

use crate::files::{self, SNAPSHOTS};
use crate::groups::{PlannedArray, PlannedGroup, level_path};
use crate::queue::{ShardQueue, WriteJob, WrittenSnapshot, aborted};
use crate::store::SnapshotPlan;
use crate::worker::{Role, Worker, WriterThreads};
use crate::{Attributes, LevelPlan, Result, SnapshotError, Values};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Location and resources of a snapshot to be written.
#[derive(Clone, Debug)]
pub struct SnapshotTarget {
    /// The existing directory of the run; `snapshots` is created in it.
    pub directory: PathBuf,
    /// Number of the snapshot: the file is `snapshots/NNNNNN.zarr`.
    pub number: u32,
    /// Replace an existing complete snapshot with this number.
    pub replace: bool,
    /// Bytes of values that may wait in the queue (one shard is always admitted).
    pub queue_bytes: usize,
    /// Threads that write the snapshot; no other snapshot uses them meanwhile.
    pub threads: WriterThreads,
}

/// A snapshot, or one writer's part of it, that is being written.
///
/// Values go through a bounded queue to background threads that compress and store them under a temporary
/// name. After [`SnapshotWriter::finish`] all are synced and, for a single writer, the snapshot is
/// renamed. Dropping an unfinished writer removes what was written, except for followers.
pub struct SnapshotWriter {
    plan: Arc<SnapshotPlan>,
    /// Per array: the shards of this writer, and whether they were pushed.
    pushed: Vec<BTreeMap<u64, bool>>,
    role: Role,
    task: Task,
}

/// A snapshot, or one writer's part of it, with all values pushed, that becomes durable in the background.
/// Dropping it waits; a leader that has not published drops the snapshot.
pub struct PendingSnapshot {
    task: Task,
    /// `true` if the snapshot still has to be published.
    unnamed: bool,
}

/// Aborts a writer from another thread: waiting shards are dropped and further pushes fail.
#[derive(Clone)]
pub struct WriterAbort(Arc<ShardQueue>);

impl WriterAbort {
    /// Aborts the writer.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// Queue of the task that writes; dropping it waits for the end of the task, unless another one does.
struct Task {
    queue: Arc<ShardQueue>,
    is_awaited: bool,
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.is_awaited {
            // an error is reported where the result matters
            let _ = self.queue.wait_for_outcome();
        }
    }
}

impl SnapshotTarget {
    /// Removes leftovers with the temporary name of the snapshot.
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
    /// Starts a snapshot: checks headers and target, and creates the temporary directory.
    ///
    /// # Errors
    /// [`SnapshotError::Io`] (missing directory or permission), [`SnapshotError::Exists`],
    /// [`SnapshotError::Request`] for headers that the format does not support.
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

    /// Starts one writer's part of a snapshot; `shards` holds the numbers of its shards by level, then by
    /// kind of particles. Followers start after the leader, which publishes when all writers have synced
    /// their shards. All plan the same levels and particles; attributes and blobs are the leader's.
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
            threads: target.threads.clone(),
            begun: Instant::now(),
        };
        worker.start()?;
        Ok(Self {
            plan,
            pushed,
            role,
            task: Task {
                queue,
                is_awaited: true,
            },
        })
    }

    /// Returns the patches per shard of `level`.
    pub fn shard_patches(&self, level: u8) -> usize {
        self.plan.shard_patches(level)
    }

    /// Returns a handle that aborts this writer from another thread, also while it finishes.
    pub fn abort_handle(&self) -> WriterAbort {
        WriterAbort(self.task.queue.clone())
    }

    /// Pushes one shard: the values of patches from `first_patch` up to a full shard or the end of the level.
    /// `first_patch` is a multiple of [`SnapshotWriter::shard_patches`]; values are in row-major order.
    /// Blocks while the queue is full.
    ///
    /// # Errors
    /// The error of the threads that write; [`SnapshotError::Request`] for values that are not one shard, and for a
    /// shard pushed twice or of another writer.
    pub fn push(&mut self, level: u8, array: &str, first_patch: u64, values: Values) -> Result<()> {
        self.push_to(&level_path(level), array, first_patch, values)
    }

    /// Pushes one shard of a particle array as [`SnapshotWriter::push`]; `path` names the kind, `first` is a
    /// multiple of [`Snapshot::shard_particles`](crate::Snapshot::shard_particles).
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
            Some(false) => return self.task.queue.push(index, first, values),
            Some(true) => "was pushed before",
            None => "is another writer's",
        };
        let name = self.plan.name(index);
        let text = format!("{name}: the shard from {first} {fault}");
        Err(SnapshotError::Request(text))
    }

    /// Completes this writer's part, which becomes durable in the background; a single writer then publishes
    /// the snapshot.
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
        self.task.queue.push_order(WriteJob::Finish);
        let task = Task {
            queue: self.task.queue.clone(),
            is_awaited: std::mem::take(&mut self.task.is_awaited),
        };
        Ok(PendingSnapshot {
            task,
            unnamed: self.role == Role::Leader,
        })
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if self.task.is_awaited {
            self.task.queue.stop();
        }
    }
}

impl PendingSnapshot {
    /// Returns the finished snapshot (or a follower's part), or `None` while threads work or a leader has
    /// not published.
    ///
    /// # Errors
    /// The error of the threads that write; the temporary directory has then been removed.
    pub fn poll(&self) -> Result<Option<WrittenSnapshot>> {
        self.task.queue.outcome().unwrap_or(Ok(None))
    }

    /// Returns `true` if all shards of this writer are on disk; for a single writer, if the snapshot is
    /// published.
    ///
    /// # Errors
    /// As [`PendingSnapshot::poll`].
    pub fn is_synced(&self) -> Result<bool> {
        self.task.queue.is_synced()
    }

    /// Waits until [`PendingSnapshot::is_synced`].
    ///
    /// # Errors
    /// As [`PendingSnapshot::poll`].
    pub fn wait_until_synced(&self) -> Result<()> {
        self.task.queue.wait_until_synced()
    }

    /// Tells the leader that all writers have synced their shards, so that it publishes the snapshot.
    /// No effect on other writers.
    pub fn publish(&mut self) {
        if std::mem::take(&mut self.unnamed) {
            self.task.queue.push_order(WriteJob::Publish);
        }
    }

    /// Waits for the finished snapshot; a leader publishes it first.
    ///
    /// # Errors
    /// As [`PendingSnapshot::poll`].
    pub fn wait(mut self) -> Result<WrittenSnapshot> {
        self.publish();
        let done = self.task.queue.wait_for_outcome()?;
        done.ok_or_else(aborted)
    }
}

impl Drop for PendingSnapshot {
    fn drop(&mut self) {
        if self.unnamed {
            self.task.queue.stop();
        }
    }
}
