//! Defines the table `[time]`: the keys of the engine and the Courant number of the gas.

use nestar_deck::{Deck, deck};
use nestar_engine::Error;
use nestar_engine::step::config::TimeSettings;
use nestar_engine::step::limits::LevelSteps;

/// Time and time steps.
#[deck]
pub struct TimeConfig {
    /// Simulation time at which the run ends.
    #[key(default = 1.0, unit = "time", min = 0.0)]
    pub end: f64,
    /// Largest number of root steps; 0: no limit.
    #[key(default = 0)]
    pub max_steps: u64,
    /// Courant number of the gas.
    #[key(default = 0.8, min = 1e-6, max = 1.0)]
    pub courant: f64,
    /// Relation between the time steps of the levels.
    #[key(default = LevelSteps::Adaptive)]
    pub levels: LevelSteps,
    /// With `adaptive`: largest relative increase of a step to synchronise with the coarser level.
    #[key(default = 0.1, min = 0.0, max = 0.5)]
    pub increase: f64,
    /// With `adaptive`: largest relative decrease of a step that avoids a short step of the finer level.
    #[key(default = 0.1, min = 0.0, max = 0.5)]
    pub decrease: f64,
    /// Longest step of any level; 0: no limit.
    #[key(default = 0.0, unit = "time", min = 0.0)]
    pub max_step: f64,
    /// Factor by which a step is shortened when it is repeated because of unphysical cells.
    #[key(default = 0.8, min = 0.1, max = 0.95)]
    pub retry_factor: f64,
    /// Number of times a step may be repeated before the run stops.
    #[key(default = 10, min = 0, max = 100)]
    pub retries: u32,
}

impl TimeConfig {
    /// Returns the settings of the engine.
    ///
    /// # Errors
    /// An increased step would be unstable.
    pub fn settings(&self, deck: &Deck) -> Result<TimeSettings, Error> {
        let largest = self.courant * (1.0 + self.increase);
        if largest > 1.0 {
            let message = format!(
                "courant * (1 + increase) must be at most 1, found {largest}: a step may increase by time.increase = {}",
                self.increase
            );
            return Err(deck.error_at("time.courant", message).into());
        }
        Ok(TimeSettings {
            end: self.end,
            max_steps: self.max_steps,
            levels: self.levels,
            increase: self.increase,
            decrease: self.decrease,
            max_step: match self.max_step {
                0.0 => f64::INFINITY,
                longest => longest,
            },
            retry_factor: self.retry_factor,
            retries: self.retries,
        })
    }
}
