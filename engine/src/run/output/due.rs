//! Schedule of snapshots.

use super::Output;
use crate::mesh::Levels;
use crate::step::Engine;
use nestar_snapshot as store;
use std::path::PathBuf;

impl Output {
    /// Returns the time at which the next root step must end: the next snapshot or `end`. A snapshot within
    /// round-off of the end is the final one.
    #[must_use]
    pub fn until(&self, end: f64) -> f64 {
        if (end - self.next_time).abs() <= 1e-9 * self.interval {
            end
        } else {
            self.next_time.min(end)
        }
    }

    /// Schedules the next snapshot by time at the first multiple of the interval after `time`.
    pub(super) fn schedule(&mut self, time: f64) {
        if self.interval > 0.0 {
            self.next_time = ((time / self.interval + 1e-9).floor() + 1.0) * self.interval;
        }
    }

    /// Returns `true` if the latest snapshot holds the present state.
    #[must_use]
    pub fn is_current(&self, sim: &Engine) -> bool {
        let clock = sim.world.resource::<Levels>().clock(0);
        self.latest == Some((clock.time, clock.steps))
    }

    /// Returns `true` if a snapshot exists from which the run can continue.
    #[must_use]
    pub fn has_snapshots(&self) -> bool {
        self.latest.is_some()
    }

    /// Returns `true` if a snapshot is due by simulation time or steps.
    #[must_use]
    pub fn is_due(&self, sim: &Engine) -> bool {
        let clock = sim.world.resource::<Levels>().clock(0);
        let steps = sim.settings.output.steps;
        clock.time >= self.next_time || (steps > 0 && clock.steps.is_multiple_of(steps))
    }

    /// Returns `true` if a snapshot is due by the wall-clock time of the first rank.
    pub(super) fn is_due_by_wall(&self) -> bool {
        self.ranks.rank() == 0
            && self.wall_interval > 0.0
            && self.latest_wall.elapsed().as_secs_f64() >= self.wall_interval
    }

    /// Returns the path of the latest snapshot if it has been removed; first rank only.
    #[must_use]
    pub fn removed(&self) -> Option<PathBuf> {
        let number = self.number.checked_sub(1)?;
        let path = store::complete_path(&self.directory, number);
        let written = self.latest.is_some() && self.writing.is_none();
        (written && self.ranks.rank() == 0 && !path.exists()).then_some(path)
    }
}
