//! The thread that compresses and stores.

use crate::queue::{QueuedShard, ShardQueue, WriteJob, WriteOutcome, WrittenSnapshot};
use crate::store::SnapshotPlan;
use crate::{Result, SnapshotError, files};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, ScopedJoinHandle};
use std::time::Instant;

/// Threads that bring shards to the disk while others are compressed: they wait for it most of the time.
const SYNCING: usize = 4;

/// A shard that is stored: its array, and its first patch.
type Stored = (usize, u64);

/// What a writer does beside storing shards, where several write one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// There is no other writer: makes the snapshot's directories and names it when it is whole.
    Only,
    /// Makes the directories, and names the snapshot when it is told to ([`PendingSnapshot::publish`](crate::PendingSnapshot::publish)).
    Leader,
    /// Finds the directories there.
    Follower,
}

/// What the background thread works on.
pub(crate) struct Worker {
    pub plan: Arc<SnapshotPlan>,
    pub queue: Arc<ShardQueue>,
    pub partial: PathBuf,
    pub complete: PathBuf,
    pub role: Role,
    pub replace: bool,
    /// Shards that are compressed at once.
    pub threads: usize,
    pub begun: Instant,
}

impl Worker {
    /// Creates the temporary directory in the caller's thread, so that a missing permission shows at once, and starts.
    pub fn start(self) -> Result<JoinHandle<()>> {
        let created = match self.role {
            Role::Follower => 0,
            Role::Only | Role::Leader => {
                let created = self.plan.create(&self.partial);
                created.inspect_err(|_| self.clean())?
            }
        };
        let partial = self.partial.clone();
        std::thread::Builder::new()
            .name("nestar-snapshot".to_string())
            .spawn(move || self.run(created))
            .map_err(|error| SnapshotError::io("start the thread that writes", &partial, &error))
    }

    /// Serves the queue and reports the outcome, a panic included: the run must not wait for ever.
    fn run(&self, created: u64) {
        let served = catch_unwind(AssertUnwindSafe(|| self.serve(created)));
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

    /// Stores shards until the snapshot is finished or aborted; other threads bring those to the disk that are stored.
    fn serve(&self, created: u64) -> WriteOutcome {
        let (stored, syncing) = (channel(), AtomicBool::new(true));
        let (sender, receiver) = (stored.0, Mutex::new(stored.1));
        let sync = || self.sync(&receiver, &syncing);
        std::thread::scope(|scope| {
            // where there are no threads to be had, this one does it all in the end
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, sync).ok();
            let started: Vec<_> = (0..SYNCING).filter_map(start).collect();
            let finish = || {
                let others = started.into_iter().map(joined);
                others.chain([sync()]).collect::<Result<Vec<()>>>()
            };
            let outcome = self.serve_queue(created, sender, finish);
            // of what was given up nothing has to be on the disk
            syncing.store(false, Ordering::Relaxed);
            outcome
        })
    }

    /// The same: `stored` tells of what may be brought to the disk, `finish` waits until all of it is there.
    fn serve_queue(
        &self,
        created: u64,
        stored: Sender<Stored>,
        finish: impl FnOnce() -> Result<Vec<()>>,
    ) -> WriteOutcome {
        let (mut bytes, mut ends) = (created, Some((stored, finish)));
        loop {
            match self.queue.pop() {
                WriteJob::Shard(first) => {
                    let more = self.queue.pop_shards(self.threads.saturating_sub(1));
                    bytes += self.store(&first, &more)?;
                    for shard in std::iter::once(&first).chain(&more) {
                        // they listen until the end
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

    /// Brings shards to the disk until there are no more, or nobody wants them there.
    fn sync(&self, stored: &Mutex<Receiver<Stored>>, wanted: &AtomicBool) -> Result<()> {
        let next = || lock(stored).recv().ok();
        while let Some((array, first)) = next().filter(|_| wanted.load(Ordering::Relaxed)) {
            self.plan.sync(&self.partial, array, first)?;
        }
        Ok(())
    }

    /// Stores a shard and, at the same time, others; their bytes on disk.
    fn store(&self, first: &QueuedShard, more: &[QueuedShard]) -> Result<u64> {
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
        let shards = Mutex::new(std::iter::once(first).chain(more));
        let next = || lock(&shards).next();
        let work = || std::iter::from_fn(next).try_fold(0, |sum, shard| Ok(sum + store(shard)?));
        std::thread::scope(|scope| {
            // where there are no threads to be had, the others do it all
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let started: Vec<_> = more.iter().filter_map(start).collect();
            let own = work();
            let others: Vec<Result<u64>> = started.into_iter().map(joined).collect();
            others
                .into_iter()
                .try_fold(own?, |sum, bytes| Ok(sum + bytes?))
        })
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

    /// Removes the temporary directory, unless another writer does; a failure here must not hide the error that led to it.
    fn clean(&self) {
        if self.role != Role::Follower {
            let _ = files::remove_tree(&self.partial);
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a thread has returned; its panic goes on here.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let joined = thread.join();
    joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
