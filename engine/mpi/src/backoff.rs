//! Waiting strategy of a rank.

use std::hint;
use std::thread;
use std::time::{Duration, Instant};

/// Number of polls before the core is yielded.
const EAGER: u32 = 2000;
/// Time after which a waiting rank sleeps between polls, because the other ranks are busy computing.
const SOON: Duration = Duration::from_millis(10);
/// Duration of a sleep.
const NAP: Duration = Duration::from_micros(20);

/// State of one wait: it polls first, then yields the core, then sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    eager: u32,
    since: Option<Instant>,
}

impl Backoff {
    /// Starts a wait. If ranks share cores (`crowded`), the core is yielded at once.
    pub fn new(crowded: bool) -> Self {
        Self {
            eager: if crowded { 0 } else { EAGER },
            since: None,
        }
    }

    /// Pauses between two polls.
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
