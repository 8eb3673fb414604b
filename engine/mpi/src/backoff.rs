//! How a rank waits.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

/// Questions asked before the core is offered to others.
const EAGER: u32 = 2000;
/// Time after which a rank that waits sleeps between its questions: the others are at work, not on their way.
const SOON: Duration = Duration::from_millis(10);
/// One sleep.
const NAP: Duration = Duration::from_micros(20);

/// The backoff of one wait: eager at first, then polite to those that need the core.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    eager: u32,
    since: Option<Instant>,
}

impl Backoff {
    /// A wait that begins. Where ranks share their cores (`crowded`), the one awaited may need this one.
    pub fn new(crowded: bool) -> Self {
        Self {
            eager: if crowded { 0 } else { EAGER },
            since: None,
        }
    }

    /// A moment between two questions.
    pub fn wait(&mut self) {
        if self.eager > 0 {
            self.eager -= 1;
            return hint::spin_loop();
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < SOON {
            thread::yield_now();
        } else {
            thread::sleep(NAP);
        }
    }
}
