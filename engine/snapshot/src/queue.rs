//! Bounded queue between the run and the task that compresses and stores shards.

use crate::{Result, SnapshotError, Values};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Describes a complete snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenSnapshot {
    /// The snapshot's directory.
    pub path: PathBuf,
    /// Bytes on disk.
    pub bytes: u64,
    /// Seconds from the start of the snapshot to its final name.
    pub seconds: f64,
}

/// One shard of the planned array with index `array`.
pub(crate) struct QueuedShard {
    pub array: usize,
    pub first: u64,
    pub values: Values,
}

/// Next job of the task that writes.
pub(crate) enum WriteJob {
    /// Store a shard.
    Shard(QueuedShard),
    /// All shards have been pushed: sync them.
    Finish,
    /// All writers have synced their shards: rename the snapshot.
    Publish,
    /// Drop the snapshot.
    Abort,
}

/// Result of the task; `Ok(None)` after an abort.
pub(crate) type WriteOutcome = Result<Option<WrittenSnapshot>>;

#[derive(Default)]
struct QueueState {
    jobs: VecDeque<WriteJob>,
    bytes: usize,
    /// `true` if no more jobs are accepted.
    stopped: bool,
    /// `true` if all shards are on disk.
    synced: bool,
    outcome: Option<WriteOutcome>,
}

impl QueueState {
    fn is_over(&self) -> bool {
        self.stopped || self.outcome.is_some()
    }

    fn is_synced(&self) -> Result<bool> {
        match &self.outcome {
            Some(Ok(Some(_))) => Ok(true),
            Some(Ok(None)) => Err(aborted()),
            Some(Err(error)) => Err(error.clone()),
            None => Ok(self.synced),
        }
    }
}

/// Queue of jobs in order, with at most `capacity` bytes of values (or one larger shard).
pub(crate) struct ShardQueue {
    capacity: usize,
    state: Mutex<QueueState>,
    changed: Condvar,
}

impl ShardQueue {
    /// Creates an empty queue.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Locks the state, also after a panic elsewhere, because every change of it is complete.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, QueueState>) -> MutexGuard<'a, QueueState> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a shard; blocks while the queue is full and fails if the task has failed.
    pub fn push(&self, array: usize, first: u64, values: Values) -> Result<()> {
        let bytes = values.bytes().len();
        let mut state = self.lock();
        while !state.is_over() && state.bytes > 0 && state.bytes + bytes > self.capacity {
            state = self.wait(state);
        }
        if state.is_over() {
            let outcome = state.outcome.clone().and_then(Result::err);
            return Err(outcome.unwrap_or_else(ended_early));
        }
        state.bytes += bytes;
        state.jobs.push_back(WriteJob::Shard(QueuedShard {
            array,
            first,
            values,
        }));
        self.changed.notify_all();
        Ok(())
    }

    /// Adds a job without values.
    pub fn push_order(&self, job: WriteJob) {
        self.lock().jobs.push_back(job);
        self.changed.notify_all();
    }

    /// Drops waiting jobs and ends the task after its current one.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        state.jobs.clear();
        state.jobs.push_back(WriteJob::Abort);
        self.changed.notify_all();
    }

    /// Takes the next job; blocks while there is none.
    pub fn pop(&self) -> WriteJob {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return job;
            }
            state = self.wait(state);
        }
    }

    /// Takes up to `most` further shards from the front of the queue without blocking.
    pub fn pop_shards(&self, most: usize) -> Vec<QueuedShard> {
        let mut state = self.lock();
        let mut shards = Vec::new();
        while shards.len() < most {
            match state.jobs.pop_front() {
                Some(WriteJob::Shard(shard)) => shards.push(shard),
                Some(other) => {
                    state.jobs.push_front(other);
                    break;
                }
                None => break,
            }
        }
        shards
    }

    /// Releases the memory of a stored shard of `bytes` bytes.
    pub fn stored(&self, bytes: usize) {
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(bytes);
        self.changed.notify_all();
    }

    /// Reports that all shards are on disk.
    pub fn synced(&self) {
        self.lock().synced = true;
        self.changed.notify_all();
    }

    /// Reports the result of the task.
    pub fn end(&self, outcome: WriteOutcome) {
        let mut state = self.lock();
        state.jobs.clear();
        state.outcome = Some(outcome);
        self.changed.notify_all();
    }

    /// Returns the result of the task, or `None` while it works.
    pub fn outcome(&self) -> Option<WriteOutcome> {
        self.lock().outcome.clone()
    }

    /// Returns `true` if all shards are on disk.
    pub fn is_synced(&self) -> Result<bool> {
        self.lock().is_synced()
    }

    /// Waits until all shards are on disk.
    pub fn wait_until_synced(&self) -> Result<()> {
        let mut state = self.lock();
        while !state.is_synced()? {
            state = self.wait(state);
        }
        Ok(())
    }

    /// Waits for the end of the task.
    pub fn wait_for_outcome(&self) -> WriteOutcome {
        let mut state = self.lock();
        loop {
            if let Some(outcome) = &state.outcome {
                return outcome.clone();
            }
            state = self.wait(state);
        }
    }
}

/// Returns the error of a push after the end.
fn ended_early() -> SnapshotError {
    SnapshotError::Request("the snapshot has ended: nothing more can be written to it".to_string())
}

/// Returns the error of waiting for an aborted snapshot.
pub(crate) fn aborted() -> SnapshotError {
    SnapshotError::Request("the snapshot was aborted".to_string())
}

#[cfg(test)]
mod tests {
    use super::{QueuedShard, ShardQueue, WriteJob};
    use crate::{SnapshotError, Values};
    use std::sync::mpsc;
    use std::time::Duration;

    fn shard() -> Values {
        Values::F64(vec![0.0; 10])
    }

    /// Pushes in a thread and reports when the push is complete.
    fn push_beside(
        queue: &ShardQueue,
        test: impl FnOnce(mpsc::Receiver<Result<(), SnapshotError>>),
    ) {
        std::thread::scope(|scope| {
            let (send, receive) = mpsc::channel();
            scope.spawn(move || send.send(queue.push(0, 1, shard())));
            test(receive);
        });
    }

    #[test]
    fn a_push_waits_until_stored_values_make_room() {
        let queue = ShardQueue::new(100);
        queue.push(0, 0, shard()).unwrap();
        push_beside(&queue, |pushed| {
            assert!(matches!(
                queue.pop(),
                WriteJob::Shard(QueuedShard { first: 0, .. })
            ));
            // A shard that the task has taken is not stored yet, so its memory still counts.
            assert!(pushed.recv_timeout(Duration::from_millis(50)).is_err());
            queue.stored(80);
            assert_eq!(
                pushed.recv_timeout(Duration::from_secs(10)).unwrap(),
                Ok(())
            );
        });
    }

    #[test]
    fn a_blocked_push_returns_the_failure() {
        let queue = ShardQueue::new(100);
        queue.push(0, 0, shard()).unwrap();
        let failure = SnapshotError::Request("failure".to_string());
        push_beside(&queue, |pushed| {
            queue.end(Err(failure.clone()));
            assert_eq!(
                pushed.recv_timeout(Duration::from_secs(10)).unwrap(),
                Err(failure.clone())
            );
        });
        assert_eq!(queue.push(0, 2, shard()), Err(failure));
    }

    #[test]
    fn a_blocked_push_ends_after_a_stop() {
        let queue = ShardQueue::new(100);
        queue.push(0, 0, shard()).unwrap();
        push_beside(&queue, |pushed| {
            queue.stop();
            assert!(
                pushed
                    .recv_timeout(Duration::from_secs(10))
                    .unwrap()
                    .is_err()
            );
            assert!(matches!(queue.pop(), WriteJob::Abort));
        });
    }

    #[test]
    fn shards_are_popped_together_up_to_the_next_job() {
        let queue = ShardQueue::new(1000);
        for n in 0..3 {
            queue.push(0, n, shard()).unwrap();
        }
        queue.push_order(WriteJob::Finish);
        let taken = |most| -> Vec<u64> {
            let shards = queue.pop_shards(most);
            shards.iter().map(|shard| shard.first).collect()
        };
        assert_eq!(taken(2), [0, 1]);
        assert_eq!(taken(2), [2]);
        assert!(taken(2).is_empty());
        assert!(matches!(queue.pop(), WriteJob::Finish));
    }

    #[test]
    fn a_shard_larger_than_the_queue_is_admitted_alone() {
        let queue = ShardQueue::new(1);
        assert_eq!(queue.push(0, 0, shard()), Ok(()));
    }
}
