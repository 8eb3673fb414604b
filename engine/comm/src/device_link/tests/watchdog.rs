//! Tests of the watchdog of direct links.

use crate::device_link::Watchdog;
use crate::{Ranks, RanksError, ThreadRank};
use nestar_engine_device::{DeviceError, LinkTransport, Segment};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A transport that transfers nothing.
#[derive(Default)]
struct Idle {
    broken: AtomicBool,
    stopped: AtomicBool,
}

impl LinkTransport for Idle {
    fn describe(&self) -> String {
        "nowhere".into()
    }
    fn start(&self, _: &[Segment], _: &[Segment]) -> Result<(), DeviceError> {
        Ok(())
    }
    fn finish(&self) -> Result<(), DeviceError> {
        Ok(())
    }
    fn is_done(&self) -> Result<bool, DeviceError> {
        Ok(true)
    }
    fn check(&self) -> Result<(), DeviceError> {
        match self.broken.load(Ordering::SeqCst) {
            true => Err(DeviceError::Missing("the cable is out".into())),
            false => Ok(()),
        }
    }
    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }
}

/// Waits up to some seconds until `done` returns `true`.
fn wait_for(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "nothing happened"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_link_is_stopped_when_a_rank_or_the_link_has_failed() {
    let mut ranks = ThreadRank::connect(3).into_iter().map(Ranks::new);
    let (first, second, third) = (ranks.next(), ranks.next(), ranks.next());
    let (first, second, third) = (first.unwrap(), second.unwrap(), third.unwrap());
    let links: [Arc<Idle>; 2] = Default::default();
    let watches = [
        Watchdog::start(&first, links[0].clone()).unwrap(),
        Watchdog::start(&second, links[1].clone()).unwrap(),
    ];
    links[0].broken.store(true, Ordering::SeqCst);
    wait_for(|| links.iter().all(|link| link.stopped.load(Ordering::SeqCst)));
    let stopped = RanksError::Stopped {
        rank: 0,
        message: "the cable is out".into(),
    };
    assert_eq!(third.communicator().barrier(), Err(stopped));
    drop(watches);
}

#[test]
fn the_watchdog_ends_with_its_link() {
    let ranks = Ranks::new(ThreadRank::connect(1).remove(0));
    let link: Arc<Idle> = Arc::default();
    let start = Instant::now();
    drop(Watchdog::start(&ranks, link.clone()).unwrap());
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(!link.stopped.load(Ordering::SeqCst));
    assert_eq!(Arc::strong_count(&link), 1);
}
