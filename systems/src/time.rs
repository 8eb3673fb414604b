//! Defines the table `[time]`: the keys of the engine and the Courant number of the gas.

use nestar_deck::Deck;
use nestar_engine::Error;
use nestar_engine::step::config::TimeSettings;
use nestar_engine::step::limits::LevelSteps;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Time and time steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeConfig {
    /// Simulation time at which the run ends.
    #[schemars(range(min = 0.0), extend("unit" = "time"))]
    pub end: f64,
    /// Largest number of root steps; 0: no limit.
    pub max_steps: u64,
    /// Courant number of the gas.
    #[schemars(extend("exclusiveMinimum" = 0.0), range(max = 1.0))]
    pub courant: f64,
    /// Relation between the time steps of the levels.
    pub levels: LevelSteps,
    /// With `adaptive`: largest relative increase of a step to synchronise with the coarser level.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub increase: f64,
    /// With `adaptive`: largest relative decrease of a step that avoids a short step of the finer level.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub decrease: f64,
    /// Longest step of any level; 0: no limit.
    #[schemars(range(min = 0.0), extend("unit" = "time"))]
    pub max_step: f64,
    /// Factor by which a step is shortened when it is repeated because of unphysical cells.
    #[schemars(range(min = 0.1, max = 0.95))]
    pub retry_factor: f64,
    /// Number of times a step may be repeated before the run stops.
    #[schemars(range(min = 0, max = 100))]
    pub retries: u32,
}

impl Default for TimeConfig {
    fn default() -> Self {
        Self {
            end: 1.0,
            max_steps: 0,
            courant: 0.8,
            levels: LevelSteps::Adaptive,
            increase: 0.1,
            decrease: 0.1,
            max_step: 0.0,
            retry_factor: 0.8,
            retries: 10,
        }
    }
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
