//! Watchdog thread of a direct link.
//!
//! Device work that waits for a failed rank would wait forever, and block the host with it.

use crate::Ranks;
use nestar_engine_device::parallel::lock;
use nestar_engine_device::{DeviceError, LinkTransport};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two checks.
const INTERVAL: Duration = Duration::from_millis(100);

/// Supervises a link until it is dropped.
pub(super) struct Watchdog {
    end: Arc<StopSignal>,
    thread: Option<JoinHandle<()>>,
}

/// Signal that ends the watchdog.
#[derive(Default)]
struct StopSignal {
    reached: Mutex<bool>,
    changed: Condvar,
}

impl Watchdog {
    pub(super) fn start(ranks: &Ranks, link: Arc<dyn LinkTransport>) -> Result<Self, DeviceError> {
        let (ranks, end) = (ranks.clone(), Arc::new(StopSignal::default()));
        let own = end.clone();
        let work = move || watch(&ranks, &*link, &own);
        let thread = std::thread::Builder::new().name("watch".into()).spawn(work);
        let thread = thread.map_err(|why| DeviceError::Failed {
            doing: "cannot start a thread".into(),
            why: why.to_string(),
        })?;
        Ok(Self {
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *lock(&self.end.reached) = true;
        self.end.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing.
            let _ = thread.join();
        }
    }
}

/// Checks the link until the signal is set or something has failed.
fn watch(ranks: &Ranks, link: &dyn LinkTransport, end: &StopSignal) {
    while !end.wait_for(INTERVAL) {
        if ranks.communicator().failure().is_some() {
            return link.stop();
        }
        if let Err(why) = link.check() {
            // Stop the ranks first, so that none continues with missing data.
            ranks.communicator().abort(&why.to_string());
            return link.stop();
        }
    }
}

impl StopSignal {
    /// Waits for the signal; returns `true` if it was set.
    fn wait_for(&self, time: Duration) -> bool {
        let reached = lock(&self.reached);
        let waited = self
            .changed
            .wait_timeout_while(reached, time, |reached| !*reached);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
