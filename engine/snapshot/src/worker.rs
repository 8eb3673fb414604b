//! The thread that compresses and stores.

use crate::queue::{Done, Job, Outcome, Queue, Shard};
use crate::store::Plan;
use crate::{Result, SnapshotError, files};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// What a writer does beside storing shards, where several write one snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// There is no other writer: makes the snapshot's directories and names it when it is whole.
    Only,
    /// Makes the directories, and names the snapshot when it is told to ([`Finishing::publish`](crate::Finishing::publish)).
    Leader,
    /// Finds the directories there.
    Follower,
}

/// What the background thread works on.
pub(crate) struct Worker {
    pub plan: Arc<Plan>,
    pub queue: Arc<Queue>,
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

    /// Stores shards until the snapshot is finished or aborted.
    fn serve(&self, created: u64) -> Outcome {
        let (mut bytes, mut stored) = (created, Vec::new());
        loop {
            match self.queue.pop() {
                Job::Shard(first) => {
                    let more = self.queue.pop_shards(self.threads.saturating_sub(1));
                    bytes += self.store(&first, &more)?;
                    for shard in std::iter::once(&first).chain(&more) {
                        stored.push((shard.array, shard.first));
                    }
                }
                Job::Finish => {
                    for (array, first) in stored.drain(..) {
                        self.plan.sync(&self.partial, array, first)?;
                    }
                    match self.role {
                        Role::Only => return self.publish(bytes),
                        Role::Leader => self.queue.synced(),
                        Role::Follower => return self.done(bytes),
                    }
                }
                Job::Publish => return self.publish(bytes),
                Job::Abort => return Ok(None),
            }
        }
    }

    /// Stores a shard and, at the same time, others; their bytes on disk.
    fn store(&self, first: &Shard, more: &[Shard]) -> Result<u64> {
        let store = |shard: &Shard| {
            let Shard {
                array,
                first,
                values,
            } = shard;
            let bytes = (self.plan).store(&self.partial, *array, *first, values)?;
            self.queue.stored(shard.values.bytes().len());
            Ok(bytes)
        };
        let shards = Mutex::new(std::iter::once(first).chain(more));
        let next = || shards.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || std::iter::from_fn(next).try_fold(0, |sum, shard| Ok(sum + store(shard)?));
        std::thread::scope(|scope| {
            // where there are no threads to be had, the others do it all
            let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let started: Vec<_> = more.iter().filter_map(start).collect();
            let own = work();
            let joined = started.into_iter().map(|thread| {
                let joined = thread.join();
                joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            let others: Vec<Result<u64>> = joined.collect();
            others
                .into_iter()
                .try_fold(own?, |sum, bytes| Ok(sum + bytes?))
        })
    }

    fn publish(&self, bytes: u64) -> Outcome {
        let published = self
            .plan
            .publish(&self.partial, &self.complete, self.replace)?;
        self.done(bytes + published)
    }

    fn done(&self, bytes: u64) -> Outcome {
        Ok(Some(Done {
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
