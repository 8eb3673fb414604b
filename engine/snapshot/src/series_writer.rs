//! Thread that appends entries to series, and does similar work, while the run continues.

use crate::series::Series;
use crate::{Result, SnapshotError, Values};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Entries in the queue; the run waits when there are more.
const QUEUED: usize = 4;

/// An entry of a series, whose values are computed by the thread.
struct Entry {
    series: usize,
    time: f64,
    step: u64,
    values: Box<dyn FnOnce() -> Vec<Values> + Send>,
}

/// Work of the thread.
enum Job {
    Append(Entry),
    /// Work other than an entry of a series.
    Work(Box<dyn FnOnce() -> Result<()> + Send>),
    /// Syncs all series and sends the first error since the last sync.
    Sync(Sender<Result<()>>),
}

/// Appends entries to some series in a thread of its own, in the order of the calls. Where the system refuses a thread, the caller's
/// thread appends them.
pub struct SeriesWriter {
    place: Place,
    /// The first error, until the caller knows it.
    failure: Failure,
}

type Failure = Arc<Mutex<Option<SnapshotError>>>;

/// Where entries are appended.
enum Place {
    Thread {
        jobs: Option<SyncSender<Job>>,
        thread: Option<JoinHandle<()>>,
    },
    Here(AllSeries),
}

impl SeriesWriter {
    /// Takes the series, which have the numbers 0, 1 and so on. `threads` threads (at least 1) compute values.
    #[must_use]
    pub fn new(series: Vec<Series>, threads: usize) -> Self {
        let (jobs, queue) = sync_channel(QUEUED);
        // a refused thread must not take the series with it
        let (give, take) = channel::<AllSeries>();
        let work = move || {
            if let Ok(all) = take.recv() {
                let pool = threads_for_values(threads);
                all.serve(&queue);
                drop(pool);
            }
        };
        let thread = Builder::new().name("nestar-views".into()).spawn(work);
        let failure = Failure::default();
        let all = AllSeries {
            list: series,
            failed: false,
            failure: failure.clone(),
        };
        let place = match thread {
            Err(_) => Place::Here(all),
            Ok(thread) => match give.send(all) {
                Ok(()) => Place::Thread {
                    jobs: Some(jobs),
                    thread: Some(thread),
                },
                Err(back) => Place::Here(back.0),
            },
        };
        Self { place, failure }
    }

    /// Passes work other than an entry of a series to the thread, in the order of the calls. It is left out after an error.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn run(&mut self, work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
        self.send(Job::Work(Box::new(work)))
    }

    /// Appends an entry to the series with the number `series`, at the latest before the next [`sync`](Self::sync). `values` returns the
    /// values of its arrays.
    ///
    /// # Errors
    /// The error of an earlier entry; [`SnapshotError::Request`] if the thread has panicked.
    pub fn append(
        &mut self,
        series: usize,
        time: f64,
        step: u64,
        values: impl FnOnce() -> Vec<Values> + Send + 'static,
    ) -> Result<()> {
        self.send(Job::Append(Entry {
            series,
            time,
            step,
            values: Box::new(values),
        }))
    }

    fn send(&mut self, job: Job) -> Result<()> {
        if let Some(failure) = take(&self.failure) {
            return Err(failure);
        }
        match &mut self.place {
            Place::Here(all) => all.serve_one(job),
            Place::Thread { jobs, .. } => {
                let sent = jobs.as_ref().map(|jobs| jobs.send(job));
                return sent.and_then(std::result::Result::ok).ok_or_else(panicked);
            }
        }
        Ok(())
    }

    /// Waits until all entries are on disk.
    ///
    /// # Errors
    /// The first error of an entry, unless [`append`](Self::append) has reported it; [`SnapshotError::Io`] if a file cannot be synced.
    pub fn sync(&mut self) -> Result<()> {
        match &mut self.place {
            Place::Here(all) => all.sync(),
            Place::Thread { jobs, .. } => {
                let (reply, answer) = channel();
                let sent = jobs.as_ref().map(|jobs| jobs.send(Job::Sync(reply)));
                sent.and_then(std::result::Result::ok)
                    .ok_or_else(panicked)?;
                answer.recv().map_err(|_| panicked())?
            }
        }
    }
}

impl Drop for SeriesWriter {
    fn drop(&mut self) {
        if let Place::Thread { jobs, thread } = &mut self.place {
            // the thread ends after the entries that wait
            drop(jobs.take());
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

/// Starts threads for the parallel work of this thread; it works alone where the system refuses them.
fn threads_for_values(threads: usize) -> Option<ThreadPool> {
    let pool = |threads: usize| {
        let builder = ThreadPoolBuilder::new().num_threads(threads.max(1));
        let builder = builder.thread_name(|n| format!("nestar-views-{n}"));
        builder.use_current_thread().build()
    };
    pool(threads).or_else(|_| pool(1)).ok()
}

fn panicked() -> SnapshotError {
    SnapshotError::Request("the thread that writes views panicked".into())
}

/// Takes the first error.
fn take(failure: &Failure) -> Option<SnapshotError> {
    let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
    failure.take()
}

/// All series and the first error.
struct AllSeries {
    list: Vec<Series>,
    /// `true` after an error.
    failed: bool,
    failure: Failure,
}

impl AllSeries {
    fn serve(mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            self.serve_one(job);
        }
    }

    /// Does one piece of work, but writes nothing after an error: a series has no gaps.
    fn serve_one(&mut self, job: Job) {
        let done = match job {
            // the caller may have given up
            Job::Sync(reply) => return drop(reply.send(self.sync())),
            _ if self.failed => return,
            Job::Append(entry) => {
                let series = &mut self.list[entry.series];
                series.append(entry.time, entry.step, &(entry.values)())
            }
            Job::Work(work) => work(),
        };
        if let Err(error) = done {
            self.failed = true;
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }

    fn sync(&mut self) -> Result<()> {
        match take(&self.failure) {
            Some(failure) => Err(failure),
            None => self.list.iter_mut().try_for_each(Series::sync),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SeriesWriter;
    use crate::{DataType, Series, SeriesArray, SeriesPlan, Values};
    use serde_json::Map;

    #[test]
    fn an_error_ends_the_next_append() {
        let folder = std::env::temp_dir().join(format!("nestar-series-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let plan = SeriesPlan {
            attributes: Map::new(),
            time: Map::new(),
            coordinates: Vec::new(),
            arrays: vec![SeriesArray {
                name: "a".into(),
                data_type: DataType::F64,
                dimensions: Vec::new(),
                shape: Vec::new(),
                attributes: Map::new(),
            }],
            list: None,
        };
        let series = Series::create(&folder, &plan).expect("a series");
        let mut writer = SeriesWriter::new(vec![series], 1);
        let values = || vec![Values::F64(vec![1.0])];
        writer.append(0, 0.0, 0, values).expect("queued");
        writer.sync().expect("written");
        std::fs::remove_dir_all(&folder).expect("removed");
        writer.append(0, 1.0, 1, values).expect("queued");
        while !writer.failure.lock().expect("no panic").is_some() {
            std::thread::yield_now();
        }
        let error = writer.append(0, 2.0, 2, values).expect_err("reported");
        assert!(error.to_string().contains("nestar-series"), "{error}");
        assert!(!folder.exists());
    }
}
