//! Background thread that compresses and stores shards.

use crate::queue::{QueuedShard, ShardQueue, WriteJob, WriteOutcome, WrittenSnapshot};
use crate::store::SnapshotPlan;
use crate::{Result, SnapshotError, files};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, ScopedJoinHandle};
use std::time::Instant;

/// Number of threads that sync shards to disk; they mostly wait for the disk.
const SYNCING: usize = 4;

/// A stored shard: its array and first patch.
type Stored = (usize, u64);

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

/// Data of the background thread.
pub(crate) struct Worker {
    pub plan: Arc<SnapshotPlan>,
    pub queue: Arc<ShardQueue>,
    pub partial: PathBuf,
    pub complete: PathBuf,
    pub role: Role,
    pub replace: bool,
    /// Number of shards compressed at the same time.
    pub threads: usize,
    pub begun: Instant,
}

impl Worker {
    /// Creates the temporary directory in the caller's thread, so that missing permissions fail at once, and
    /// starts the thread.
    pub fn start(self) -> Result<JoinHandle<()>> {
        let created = match self.role {
            Role::Follower => 0,
            Role::Only | Role::Leader => {
                let created = self.plan.create(&self.partial);
                created.inspect_err(|_| self.clean())?
            }
        };
        let partial = self.partial.clone();
        let pool = self.pool()?;
        std::thread::Builder::new()
            .name("nestar-snapshot".to_string())
            .spawn(move || self.run(created, &pool))
            .map_err(|error| no_thread(&partial, &error.to_string()))
    }

    /// Creates the threads that compress shards; a single one if the system refuses this number.
    ///
    /// Without this pool, the codecs would create the global pool of rayon, with a thread per core.
    fn pool(&self) -> Result<ThreadPool> {
        let of = |threads: usize| {
            let pool = ThreadPoolBuilder::new().num_threads(threads);
            pool.thread_name(|n| format!("nestar-store-{n}")).build()
        };
        let pool = of(self.threads.max(1)).or_else(|_| of(1));
        pool.map_err(|error| {
            self.clean();
            no_thread(&self.partial, &error.to_string())
        })
    }

    /// Serves the queue and reports the result, also after a panic, so that the run does not wait forever.
    fn run(&self, created: u64, pool: &ThreadPool) {
        let served = catch_unwind(AssertUnwindSafe(|| self.serve(created, pool)));
        let panicked = |_| {
            Err(SnapshotError::Request(
                "the thread that writes snapshots panicked".to_string(),
            ))
        };
        let outcome = served.unwrap_or_else(panicked);
        if !matches!(outcome, Ok(Some(_))) {
            self.clean();
        }
        self.queue.end(outcome);
    }

    /// Stores shards until the snapshot is finished or aborted; other threads sync stored shards.
    fn serve(&self, created: u64, pool: &ThreadPool) -> WriteOutcome {
        let (stored, syncing) = (channel(), AtomicBool::new(true));
        let (sender, receiver) = (stored.0, Mutex::new(stored.1));
        let sync = || self.sync(&receiver, &syncing);
        std::thread::scope(|scope| {
            // if no threads can be started, this one syncs at the end
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, sync).ok();
            let started: Vec<_> = (0..SYNCING).filter_map(start).collect();
            let finish = || {
                let others = started.into_iter().map(join);
                others.chain([sync()]).collect::<Result<Vec<()>>>()
            };
            let outcome = self.serve_queue(created, pool, sender, finish);
            // an aborted snapshot needs no sync
            syncing.store(false, Ordering::Relaxed);
            outcome
        })
    }

    /// Serves the queue: `stored` passes shards to sync threads, `finish` waits until all are synced.
    fn serve_queue(
        &self,
        created: u64,
        pool: &ThreadPool,
        stored: Sender<Stored>,
        finish: impl FnOnce() -> Result<Vec<()>>,
    ) -> WriteOutcome {
        let (mut bytes, mut ends) = (created, Some((stored, finish)));
        loop {
            match self.queue.pop() {
                WriteJob::Shard(first) => {
                    let mut shards = self.queue.pop_shards(self.threads.saturating_sub(1));
                    shards.push(first);
                    bytes += pool.install(|| self.store(&shards))?;
                    for shard in &shards {
                        // receivers exist until the end
                        let stored = ends.as_ref().map(|(stored, _)| stored);
                        let _ = stored.map(|stored| stored.send((shard.array, shard.first)));
                    }
                }
                WriteJob::Finish => {
                    if let Some((stored, finish)) = ends.take() {
                        drop(stored);
                        finish()?;
                    }
                    match self.role {
                        Role::Only => return self.publish(bytes),
                        Role::Leader => self.queue.synced(),
                        Role::Follower => return self.done(bytes),
                    }
                }
                WriteJob::Publish => return self.publish(bytes),
                WriteJob::Abort => return Ok(None),
            }
        }
    }

    /// Syncs shards until there are no more or the snapshot is aborted.
    fn sync(&self, stored: &Mutex<Receiver<Stored>>, wanted: &AtomicBool) -> Result<()> {
        let next = || lock(stored).recv().ok();
        while let Some((array, first)) = next().filter(|_| wanted.load(Ordering::Relaxed)) {
            self.plan.sync(&self.partial, array, first)?;
        }
        Ok(())
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

/// Returns the error of a system that refuses threads.
fn no_thread(partial: &Path, why: &str) -> SnapshotError {
    let advice = "raise the limit (ulimit -u, pids.max of the control group) or lower run.threads";
    let error = io::Error::other(format!("{why}; {advice}"));
    SnapshotError::io("start the threads that write", partial, &error)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the result of a thread, or resumes its panic.
fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let join = thread.join();
    join.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
