//! Writing a snapshot while the run goes on.

use crate::files::{self, SNAPSHOTS};
use crate::queue::{Done, Job, Outcome, Queue};
use crate::store::Plan;
use crate::{Attributes, Level, Result, SnapshotError, Values};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

/// Where and how a snapshot is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The run's directory, which must exist; `snapshots` is created in it.
    pub directory: PathBuf,
    /// The snapshot's number: the file is `snapshots/NNNNNN.zarr`.
    pub number: u32,
    /// Whether a complete snapshot with this number may be replaced.
    pub replace: bool,
    /// Bytes of field values that may wait for the background thread (one shard is always admitted).
    pub queue_bytes: usize,
}

/// A snapshot under construction.
///
/// Values go through a bounded queue to a background thread that compresses and stores them under a temporary name;
/// [`SnapshotWriter::finish`] lets that thread sync and rename it. Dropping an unfinished writer removes what was written.
pub struct SnapshotWriter {
    plan: Arc<Plan>,
    pushed: Vec<Vec<bool>>,
    thread: Thread,
}

/// A snapshot that is complete from the caller's side and becomes durable in the background. Dropping it waits.
pub struct Finishing {
    thread: Thread,
}

/// The background thread and the queue to it.
struct Thread {
    queue: Arc<Queue>,
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

/// What the background thread works on.
struct Worker {
    plan: Arc<Plan>,
    queue: Arc<Queue>,
    partial: PathBuf,
    complete: PathBuf,
    replace: bool,
    begun: Instant,
}

impl SnapshotWriter {
    /// Begins a snapshot: checks the headers and the target and creates the temporary directory.
    ///
    /// # Errors
    /// [`SnapshotError::Io`] (the run's directory is missing, no permission), [`SnapshotError::Exists`],
    /// [`SnapshotError::Request`] for headers that the format has no room for.
    pub fn begin(target: &Target, attributes: &Attributes, levels: &[Level]) -> Result<Self> {
        let plan = Arc::new(Plan::new(attributes, levels)?);
        let snapshots = target.directory.join(SNAPSHOTS);
        if !snapshots.is_dir() {
            files::create_directory(&snapshots)?;
            files::sync(&target.directory)?;
        }
        let name = files::complete_name(target.number);
        let complete = snapshots.join(&name);
        if complete.exists() && !target.replace {
            return Err(SnapshotError::Exists { path: complete });
        }
        let partial = snapshots.join(format!(".{name}.partial"));
        files::remove_tree(&partial)?;
        let shards = |array: &crate::store::PlannedArray| {
            vec![false; array.patches.div_ceil(array.shard) as usize]
        };
        let pushed = plan.arrays.iter().map(|(_, array)| shards(array)).collect();
        let queue = Arc::new(Queue::new(target.queue_bytes));
        let worker = Worker {
            plan: plan.clone(),
            queue: queue.clone(),
            partial,
            complete,
            replace: target.replace,
            begun: Instant::now(),
        };
        let handle = worker.start()?;
        Ok(Self {
            plan,
            pushed,
            thread: Thread {
                queue,
                handle: Some(handle),
            },
        })
    }

    /// Patches of a whole shard of `level`.
    pub fn shard_patches(&self, level: u8) -> usize {
        self.plan.shard_patches(level)
    }

    /// Hands one shard over: the values of the patches from `first_patch` (a multiple of
    /// [`SnapshotWriter::shard_patches`]) up to a whole shard or the end of the level, in row-major order. Waits while
    /// the queue is full.
    ///
    /// # Errors
    /// The background thread's error as soon as it has one; [`SnapshotError::Request`] for values that are not one
    /// shard, or a shard given twice.
    pub fn push(&mut self, level: u8, array: &str, first_patch: u64, values: Values) -> Result<()> {
        let index = self.plan.find(level, array)?;
        self.plan.check(index, first_patch, &values)?;
        let shard =
            &mut self.pushed[index][(first_patch / self.plan.arrays[index].1.shard) as usize];
        if std::mem::replace(shard, true) {
            let text = format!(
                "level {level}, array {array:?}: the shard at patch {first_patch} was pushed before"
            );
            return Err(SnapshotError::Request(text));
        }
        self.thread.queue.push(index, first_patch, values)
    }

    /// Declares the snapshot whole and lets the background thread make it durable under its final name.
    ///
    /// # Errors
    /// [`SnapshotError::Request`] if a shard is missing; the snapshot is then dropped.
    pub fn finish(mut self) -> Result<Finishing> {
        for ((level, array), pushed) in self.plan.arrays.iter().zip(&self.pushed) {
            if let Some(shard) = pushed.iter().position(|done| !done) {
                let text = format!(
                    "level {level}, array {:?}: shard {shard} was never pushed",
                    array.header.name
                );
                return Err(SnapshotError::Request(text));
            }
        }
        self.thread.queue.push_last(Job::Finish);
        let handle = self.thread.handle.take();
        Ok(Finishing {
            thread: Thread {
                queue: self.thread.queue.clone(),
                handle,
            },
        })
    }
}

impl Drop for SnapshotWriter {
    fn drop(&mut self) {
        if self.thread.handle.is_some() {
            self.thread.queue.push_last(Job::Abort);
        }
    }
}

impl Finishing {
    /// The finished snapshot, or `None` while the thread works.
    ///
    /// # Errors
    /// The background thread's error; the temporary directory is gone then.
    pub fn poll(&self) -> Result<Option<Done>> {
        self.thread.queue.outcome().unwrap_or(Ok(None))
    }

    /// Waits for the finished snapshot.
    ///
    /// # Errors
    /// As [`Finishing::poll`].
    pub fn wait(self) -> Result<Done> {
        let done = self.thread.queue.wait_for_outcome()?;
        done.ok_or_else(|| SnapshotError::Request("the snapshot was aborted".to_string()))
    }
}

impl Worker {
    /// Creates the temporary directory in the caller's thread, so that a missing permission shows at once, and starts.
    fn start(self) -> Result<JoinHandle<()>> {
        let created = self
            .plan
            .create(&self.partial)
            .inspect_err(|_| self.clean())?;
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
        let mut bytes = created;
        loop {
            match self.queue.pop() {
                Job::Shard {
                    array,
                    first_patch,
                    values,
                } => {
                    let (level, planned) = &self.plan.arrays[array];
                    let name = &planned.header.name;
                    bytes +=
                        self.plan
                            .store_shard(&self.partial, *level, name, first_patch, &values)?;
                    self.queue.stored(values.bytes().len());
                }
                Job::Finish => {
                    bytes += self
                        .plan
                        .publish(&self.partial, &self.complete, self.replace)?;
                    let seconds = self.begun.elapsed().as_secs_f64();
                    return Ok(Some(Done {
                        path: self.complete.clone(),
                        bytes,
                        seconds,
                    }));
                }
                Job::Abort => return Ok(None),
            }
        }
    }

    /// Removes the temporary directory; a failure here must not hide the error that led to it.
    fn clean(&self) {
        let _ = files::remove_tree(&self.partial);
    }
}
