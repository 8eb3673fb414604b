//! The clocks of the levels.

use bevy_ecs::prelude::*;

/// Clocks of all levels.
#[derive(Resource, Clone, Debug, PartialEq)]
pub struct Levels {
    clocks: Vec<Clock>,
}

/// One level's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    /// Simulation time reached.
    pub time: f64,
    /// Length of the latest step; 0 before the first.
    pub dt: f64,
    /// Steps taken.
    pub steps: u64,
    /// Steps since the level's latest regrid.
    pub since_regrid: u32,
    /// Time that split sources have reached: `time`, but later after steps that were rejected.
    pub split: f64,
}

impl Levels {
    /// Clocks of `levels` levels at `time`.
    #[must_use]
    pub fn new(levels: usize, time: f64) -> Self {
        Self {
            clocks: vec![
                Clock {
                    time,
                    split: time,
                    ..Clock::default()
                };
                levels
            ],
        }
    }

    /// Simulation time of `level`.
    #[must_use]
    pub fn time(&self, level: usize) -> f64 {
        self.clocks[level].time
    }

    /// The clock of `level`.
    #[must_use]
    pub fn clock(&self, level: usize) -> Clock {
        self.clocks[level]
    }

    /// Sets the clock of `level` (restart).
    pub fn set(&mut self, level: usize, clock: Clock) {
        self.clocks[level] = clock;
    }

    /// The level gets patches from its parent level: it starts at the parent's time.
    pub fn align_with_parent(&mut self, level: usize) {
        let Clock { time, split, .. } = self.clocks[level - 1];
        let clock = &mut self.clocks[level];
        clock.time = time;
        clock.split = clock.split.max(split);
    }

    /// A step of `level` of length `dt` that ends at `time` is done.
    pub(crate) fn advance(&mut self, level: usize, dt: f64, time: f64) {
        let clock = &mut self.clocks[level];
        clock.time = time;
        clock.split = clock.split.max(time);
        clock.dt = dt;
        clock.steps += 1;
        clock.since_regrid += 1;
    }

    /// Split sources of `level` have reached `time`.
    pub(crate) fn split(&mut self, level: usize, time: f64) {
        self.clocks[level].split = time;
    }

    /// The level has been regridded.
    pub(crate) fn regridded(&mut self, level: usize) {
        self.clocks[level].since_regrid = 0;
    }
}

/// The level that the running schedule works on, and its step.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub struct LevelClock {
    /// The level.
    pub level: usize,
    /// Steps that the level has taken before, also before a restart.
    pub step: u64,
    /// Simulation time at the beginning of the step.
    pub time: f64,
    /// Length of the step.
    pub dt: f64,
    /// Simulation time at the end of the step: exactly the time that it meets, where it meets one.
    pub end: f64,
    /// Width of a cell along each axis, code length.
    pub cell_width: [f64; 3],
}
