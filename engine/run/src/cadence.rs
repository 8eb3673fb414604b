//! Cadence of output: decides when a snapshot or an entry of a view is due.

use nestar_engine_mesh::Clock;
use std::time::Instant;

/// Part of an interval within which two times are the same.
const ROUND_OFF: f64 = 1e-9;
/// Relative difference of listed times within which they are the same.
const ROUND_OFF_OF_TIMES: f64 = 1e-12;

/// Decides when output is due: by simulation time, root steps or wall-clock time. What is due by simulation time and steps
/// follows from the clock alone, so that a resumed run continues as if it had not been interrupted.
#[derive(Clone, Debug)]
pub struct Cadence {
    /// Simulation time between two outputs; 0: none by interval.
    interval: f64,
    /// Further times, ascending.
    times: Vec<f64>,
    /// Root steps between two outputs; 0: none by steps.
    steps: u64,
    /// Wall-clock seconds between two outputs; 0: none by wall time.
    wall_interval: f64,
    /// Next simulation time, with its round-off.
    next: (f64, f64),
    latest_wall: Instant,
}

impl Cadence {
    /// Creates a cadence whose first output is after simulation time `time`; 0 or an empty list stands for none.
    #[must_use]
    pub fn new(interval: f64, times: Vec<f64>, steps: u64, wall_interval: f64, time: f64) -> Self {
        let mut cadence = Self {
            interval,
            times,
            steps,
            wall_interval,
            next: (f64::INFINITY, 0.0),
            latest_wall: Instant::now(),
        };
        cadence.schedule(time);
        cadence
    }

    /// Schedules the output after that at `time`: the next multiple of the interval or the next listed time.
    pub fn schedule(&mut self, time: f64) {
        self.next = (f64::INFINITY, 0.0);
        if self.interval > 0.0 {
            let next = ((time / self.interval + ROUND_OFF).floor() + 1.0) * self.interval;
            self.next = (next, ROUND_OFF * self.interval);
        }
        let margin = |at: f64| ROUND_OFF_OF_TIMES * at.abs();
        let listed = self.times.iter().find(|&&at| at > time + margin(at));
        if let Some(&at) = listed.filter(|&&at| at < self.next.0) {
            self.next = (at, margin(at));
        }
    }

    /// Notes that output was written at simulation time `time`.
    pub fn written(&mut self, time: f64) {
        self.latest_wall = Instant::now();
        self.schedule(time);
    }

    /// Returns the time at which the next root step must end: that of the next output or `end`; `end` if both are the same up
    /// to round-off.
    #[must_use]
    pub fn until(&self, end: f64) -> f64 {
        let (next, margin) = self.next;
        match (end - next).abs() <= margin {
            true => end,
            false => next.min(end),
        }
    }

    /// Returns `true` if output is due by simulation time or steps.
    #[must_use]
    pub fn is_due(&self, clock: &Clock) -> bool {
        let (next, margin) = self.next;
        clock.time >= next - margin || (self.steps > 0 && clock.steps.is_multiple_of(self.steps))
    }

    /// Returns `true` if output is written by wall-clock time.
    #[must_use]
    pub fn has_wall_time(&self) -> bool {
        self.wall_interval > 0.0
    }

    /// Returns `true` if output is due by the wall-clock time of this rank.
    #[must_use]
    pub fn is_due_by_wall(&self) -> bool {
        self.has_wall_time() && self.latest_wall.elapsed().as_secs_f64() >= self.wall_interval
    }
}

#[cfg(test)]
mod tests {
    use super::Cadence;
    use nestar_engine_mesh::Clock;

    fn clock(time: f64, steps: u64) -> Clock {
        Clock {
            time,
            steps,
            ..Clock::default()
        }
    }

    #[test]
    fn intervals_times_and_steps_are_met() {
        let mut cadence = Cadence::new(0.25, vec![0.1, 0.5, 0.6], 7, 0.0, 0.0);
        let mut met = Vec::new();
        let mut time = 0.0;
        while time < 1.0 {
            time = cadence.until(1.0);
            assert!(cadence.is_due(&clock(time, 1)));
            cadence.written(time);
            met.push(time);
        }
        assert_eq!(met, [0.1, 0.25, 0.5, 0.6, 0.75, 1.0]);
        assert!(!cadence.is_due(&clock(1.1, 8)) && cadence.is_due(&clock(1.1, 14)));
        assert!(!cadence.is_due_by_wall());
    }

    #[test]
    fn times_that_differ_by_round_off_are_one() {
        // three tenths: 0.3 and 3 * 0.1 differ in their last bit
        let (snapshots, view) = (
            Cadence::new(0.1, Vec::new(), 0, 0.0, 0.2),
            Cadence::new(0.0, vec![0.3], 0, 0.0, 0.2),
        );
        assert_ne!(snapshots.until(1.0), view.until(1.0));
        let until = view.until(snapshots.until(1.0));
        assert_eq!(until, snapshots.until(1.0));
        assert!(snapshots.is_due(&clock(until, 3)) && view.is_due(&clock(until, 3)));
        let resumed = Cadence::new(0.0, vec![0.3, 0.4], 0, 0.0, until);
        assert_eq!(resumed.until(1.0), 0.4);
    }
}
