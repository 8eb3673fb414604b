//! Clocks of the levels.

use bevy_ecs::prelude::*;
use std::fmt;
use std::sync::Arc;

/// Clocks of all levels.
#[derive(Resource, Clone, Debug)]
pub struct Levels {
    clocks: Vec<Clock>,
    numbers: ClockNumbers,
}

/// Two numbers as functions of the simulation time, which a plugin defines; 1 by default. The host evaluates them in double
/// precision for the time of a level. Functions of cells read them as `numbers` of their place.
#[derive(Clone, Default)]
struct ClockNumbers(Option<NumbersOfTime>);

/// Numbers as a function of the simulation time.
type NumbersOfTime = Arc<dyn Fn(f64) -> [f64; 2] + Send + Sync>;

impl fmt::Debug for ClockNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Some(_) => "numbers of a plugin",
            None => "ones",
        })
    }
}

/// One level's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    /// Current simulation time.
    pub time: f64,
    /// Length of the latest step; 0 before the first.
    pub dt: f64,
    /// Number of steps.
    pub steps: u64,
    /// Number of steps since the latest regrid of the level.
    pub since_regrid: u32,
    /// Time reached by split sources: `time`, or later after rejected steps.
    pub split: f64,
}

impl Levels {
    /// Creates clocks of `levels` levels at `time`.
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
            numbers: ClockNumbers::default(),
        }
    }

    /// Defines the numbers that follow the simulation time.
    pub fn define_numbers(&mut self, numbers: impl Fn(f64) -> [f64; 2] + Send + Sync + 'static) {
        self.numbers = ClockNumbers(Some(Arc::new(numbers)));
    }

    /// Returns the numbers that follow the simulation time, at `time`.
    #[must_use]
    pub fn numbers_at(&self, time: f64) -> [f64; 2] {
        self.numbers
            .0
            .as_ref()
            .map_or([1.0; 2], |numbers| numbers(time))
    }

    /// Returns the simulation time of `level`.
    #[must_use]
    #[inline]
    pub fn time(&self, level: usize) -> f64 {
        self.clocks[level].time
    }

    /// Returns the clock of `level`.
    #[must_use]
    #[inline]
    pub fn clock(&self, level: usize) -> Clock {
        self.clocks[level]
    }

    /// Sets the clock of `level`, for a restart.
    pub fn set(&mut self, level: usize, clock: Clock) {
        self.clocks[level] = clock;
    }

    /// Sets the time of a new level to that of its parent level.
    pub fn align_with_parent(&mut self, level: usize) {
        let Clock { time, split, .. } = self.clocks[level - 1];
        let clock = &mut self.clocks[level];
        clock.time = time;
        clock.split = clock.split.max(split);
    }

    /// Advances the clock of `level` by a step of length `dt` to `time`.
    pub fn advance(&mut self, level: usize, dt: f64, time: f64) {
        let clock = &mut self.clocks[level];
        clock.time = time;
        clock.split = clock.split.max(time);
        clock.dt = dt;
        clock.steps += 1;
        clock.since_regrid += 1;
    }

    /// Records that split sources of `level` have reached `time`.
    pub fn split(&mut self, level: usize, time: f64) {
        self.clocks[level].split = time;
    }

    /// Records a regrid of the level.
    pub fn regridded(&mut self, level: usize) {
        self.clocks[level].since_regrid = 0;
    }
}

/// The level of the running schedule, with its current step.
#[derive(Resource, Clone, Copy, Debug)]
pub struct LevelClock {
    /// The level.
    pub level: usize,
    /// Number of earlier steps of the level, including those before a restart.
    pub step: u64,
    /// Simulation time at the start of the step.
    pub time: f64,
    /// Length of the step.
    pub dt: f64,
    /// Simulation time at the end of the step. At a synchronisation point it equals that time exactly.
    pub end: f64,
    /// Width of a cell along each axis, code length.
    pub cell_width: [f64; 3],
    /// Numbers that follow the simulation time, at the start of the step ([`Levels::numbers_at`]).
    pub numbers: [f64; 2],
    /// The same numbers in the middle of the step, which functions of cells see.
    pub middle: [f64; 2],
}

impl Default for LevelClock {
    fn default() -> Self {
        Self {
            level: 0,
            step: 0,
            time: 0.0,
            dt: 0.0,
            end: 0.0,
            cell_width: [0.0; 3],
            numbers: [1.0; 2],
            middle: [1.0; 2],
        }
    }
}
