//! Thread that appends entries to series while the run continues.

use crate::series::Series;
use crate::{Result, SnapshotError, Values};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
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
    /// Syncs all series and sends the first error since the last sync.
    Sync(Sender<Result<()>>),
}

/// Appends entries to some series in a thread of its own, in the order of the calls. Where the system refuses a thread, the caller's
/// thread appends them.
pub struct SeriesWriter {
    place: Place,
}

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
        let all = AllSeries {
            list: series,
            failure: None,
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
        Self { place }
    }

    /// Appends an entry to the series with the number `series`, at the latest before the next [`sync`](Self::sync), which reports an error.
    /// `values` returns the values of its arrays.
    ///
    /// # Errors
    /// [`SnapshotError::Request`] if the thread has panicked.
    pub fn append(
        &mut self,
        series: usize,
        time: f64,
        step: u64,
        values: impl FnOnce() -> Vec<Values> + Send + 'static,
    ) -> Result<()> {
        let values = Box::new(values);
        let entry = Entry {
            series,
            time,
            step,
            values,
        };
        match &mut self.place {
            Place::Here(all) => all.append(entry),
            Place::Thread { jobs, .. } => {
                let sent = jobs.as_ref().map(|jobs| jobs.send(Job::Append(entry)));
                return sent.and_then(std::result::Result::ok).ok_or_else(panicked);
            }
        }
        Ok(())
    }

    /// Waits until all entries are on disk.
    ///
    /// # Errors
    /// The first error of an entry; [`SnapshotError::Io`] if a file cannot be synced.
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

/// All series and the first error.
struct AllSeries {
    list: Vec<Series>,
    failure: Option<SnapshotError>,
}

impl AllSeries {
    fn serve(mut self, jobs: &Receiver<Job>) {
        for job in jobs {
            match job {
                Job::Append(entry) => self.append(entry),
                // the caller may have given up
                Job::Sync(reply) => drop(reply.send(self.sync())),
            }
        }
    }

    /// Appends an entry unless an earlier one failed: a series has no gaps.
    fn append(&mut self, entry: Entry) {
        if self.failure.is_some() {
            return;
        }
        let series = &mut self.list[entry.series];
        let values = (entry.values)();
        self.failure = series.append(entry.time, entry.step, &values).err();
    }

    fn sync(&mut self) -> Result<()> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.list.iter_mut().try_for_each(Series::sync),
        }
    }
}
