//! Threads that compress, store and sync shards.

use crate::queue::{QueuedShard, ShardQueue, WriteJob, WriteOutcome, WrittenSnapshot};
use crate::store::SnapshotPlan;
use crate::{Result, SnapshotError, files};
use rayon::prelude::*;
use rayon::{Scope, ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;
use std::time::Instant;

/// Number of threads that sync shards to disk; they mostly wait for the disk.
const SYNCING: usize = 4;

/// Role of a writer when several write one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Only writer: creates the directories and publishes the complete snapshot.
    Only,
    /// Creates the directories and publishes the snapshot on request
    /// ([`PendingSnapshot::publish`](crate::PendingSnapshot::publish)).
    Leader,
    /// Uses the existing directories.
    Follower,
}

/// Threads that write the snapshots of a run, one snapshot at a time.
///
/// They are not those of the run. A run waits in one of its own threads until the queue of shards has room, and its
/// other threads take work of others only when they are idle. With a single thread, no shard would ever be stored.
#[derive(Clone, Debug)]
pub struct WriterThreads {
    pool: Arc<ThreadPool>,
    /// Number of shards compressed at the same time.
    storing: usize,
}

impl WriterThreads {
    /// Starts threads for `storing` shards compressed at the same time (at least 1), which has no effect on the files.
    /// Starts a single thread if the system refuses this number.
    ///
    /// # Errors
    /// [`SnapshotError::Request`] if the system refuses every thread.
    pub fn new(storing: usize) -> Result<Self> {
        let storing = storing.max(1);
        // one thread serves the queue
        let pool = pool(storing + SYNCING + 1).or_else(|_| pool(1));
        let pool = pool.map_err(|error| {
            SnapshotError::Request(format!(
                "cannot start the threads that write snapshots: {error}; raise the limit (ulimit -u or -v, pids.max of the \
                 control group) or lower run.threads"
            ))
        })?;
        Ok(Self {
            pool: Arc::new(pool),
            storing,
        })
    }
}

/// Starts a pool of `threads` threads. If the system refuses some, the others have ended on return.
fn pool(threads: usize) -> std::result::Result<ThreadPool, ThreadPoolBuildError> {
    let mut started = Vec::new();
    let builder = ThreadPoolBuilder::new().num_threads(threads);
    let pool = builder.spawn_handler(|task| {
        let thread = Builder::new().name(format!("nestar-store-{}", task.index()));
        started.push(thread.spawn(|| task.run())?);
        Ok(())
    });
    let pool = pool.build();
    if pool.is_err() {
        for thread in started {
            // the thread returns nothing
            let _ = thread.join();
        }
    }
    pool
}

/// Task that writes one snapshot.
pub(crate) struct Worker {
    pub plan: Arc<SnapshotPlan>,
    pub queue: Arc<ShardQueue>,
    pub partial: PathBuf,
    pub complete: PathBuf,
    pub role: Role,
    pub replace: bool,
    pub threads: WriterThreads,
    pub begun: Instant,
}

impl Worker {
    /// Creates the temporary directory in the caller's thread, so that missing permissions fail at once, and
    /// starts the task.
    pub fn start(self) -> Result<()> {
        let created = match self.role {
            Role::Follower => 0,
            Role::Only | Role::Leader => {
                let created = self.plan.create(&self.partial);
                created.inspect_err(|_| self.clean())?
            }
        };
        let pool = self.threads.pool.clone();
        pool.spawn(move || self.run(created));
        Ok(())
    }

    /// Serves the queue and reports the result, also after a panic, so that the run does not wait forever.
    fn run(&self, created: u64) {
        let served = catch_unwind(AssertUnwindSafe(|| self.serve(created)));
        let panicked = |_| {
            Err(SnapshotError::Request(
                "a thread that writes snapshots panicked".to_string(),
            ))
        };
        let outcome = served.unwrap_or_else(panicked);
        if !matches!(outcome, Ok(Some(_))) {
            self.clean();
        }
        self.queue.end(outcome);
    }

    /// Stores shards until the snapshot is finished or aborted, and completes it.
    fn serve(&self, created: u64) -> WriteOutcome {
        let Some(stored) = self.store_and_sync()? else {
            return Ok(None);
        };
        let bytes = created + stored;
        match self.role {
            Role::Only => return self.publish(bytes),
            Role::Follower => return self.done(bytes),
            Role::Leader => self.queue.synced(),
        }
        match self.queue.pop() {
            WriteJob::Publish => self.publish(bytes),
            _ => Ok(None),
        }
    }

    /// Stores and syncs all shards; returns their bytes on disk, or `None` after an abort.
    fn store_and_sync(&self) -> Result<Option<u64>> {
        let syncs = Syncs::default();
        let stored = rayon::scope(|scope| {
            let stored = self.store_all(scope, &syncs);
            // an aborted snapshot needs no sync
            let wanted = matches!(stored, Ok(Some(_)));
            syncs.unwanted.store(!wanted, Ordering::Relaxed);
            stored
        })?;
        let failed = syncs.failed.into_inner();
        failed.unwrap_or_else(PoisonError::into_inner)?;
        Ok(stored)
    }

    /// Stores shards until there are no more or the snapshot is aborted; other threads sync stored shards.
    fn store_all<'a>(&'a self, scope: &Scope<'a>, syncs: &'a Syncs) -> Result<Option<u64>> {
        let mut bytes = 0;
        loop {
            match self.queue.pop() {
                WriteJob::Shard(first) => {
                    let mut shards = self.queue.pop_shards(self.threads.storing - 1);
                    shards.push(first);
                    bytes += self.store(&shards)?;
                    for QueuedShard { array, first, .. } in shards {
                        scope.spawn(move |_| {
                            syncs.note(|| self.plan.sync(&self.partial, array, first))
                        });
                    }
                }
                WriteJob::Finish => return Ok(Some(bytes)),
                WriteJob::Publish | WriteJob::Abort => return Ok(None),
            }
        }
    }

    /// Stores several shards at the same time; returns their bytes on disk.
    fn store(&self, shards: &[QueuedShard]) -> Result<u64> {
        let store = |shard: &QueuedShard| {
            let QueuedShard {
                array,
                first,
                values,
            } = shard;
            let bytes = (self.plan).store(&self.partial, *array, *first, values)?;
            self.queue.stored(shard.values.bytes().len());
            Ok(bytes)
        };
        let shards = shards.par_iter().with_max_len(1);
        shards.map(store).try_reduce(|| 0, |a, b| Ok(a + b))
    }

    fn publish(&self, bytes: u64) -> WriteOutcome {
        let published = self
            .plan
            .publish(&self.partial, &self.complete, self.replace)?;
        self.done(bytes + published)
    }

    fn done(&self, bytes: u64) -> WriteOutcome {
        Ok(Some(WrittenSnapshot {
            path: self.complete.clone(),
            bytes,
            seconds: self.begun.elapsed().as_secs_f64(),
        }))
    }

    /// Removes the temporary directory, unless another writer is responsible; errors here must not hide the
    /// original one.
    fn clean(&self) {
        if self.role != Role::Follower {
            let _ = files::remove_tree(&self.partial);
        }
    }
}

/// State of the syncs of one snapshot.
struct Syncs {
    /// `true` if no more syncs are needed.
    unwanted: AtomicBool,
    /// First error.
    failed: Mutex<Result<()>>,
}

impl Default for Syncs {
    fn default() -> Self {
        Self {
            unwanted: AtomicBool::new(false),
            failed: Mutex::new(Ok(())),
        }
    }
}

impl Syncs {
    /// Calls `sync`, unless that is no longer needed, and notes its error; the first error makes others unnecessary.
    fn note(&self, sync: impl FnOnce() -> Result<()>) {
        if self.unwanted.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = sync() {
            self.unwanted.store(true, Ordering::Relaxed);
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            if failed.is_ok() {
                *failed = Err(error);
            }
        }
    }
}
