//! A plugin that inspects the hierarchy before every step of every level.

use bevy_ecs::prelude::*;
use nestar::engine::mesh::{LevelClock, Topology};
use nestar::engine::{Engine, Error, Plugin};
use nestar::systems::order::Limit;
use std::sync::{Arc, Mutex};

/// The check of a probe: returns an error message.
pub type Look = dyn Fn(&LevelClock, &Topology) -> Option<String> + Send + Sync;

/// The plugin.
pub struct Probe {
    look: Arc<Look>,
    found: Arc<Mutex<Vec<String>>>,
}

impl Probe {
    /// Makes a probe, and the list of errors that it finds.
    pub fn new(
        look: impl Fn(&LevelClock, &Topology) -> Option<String> + Send + Sync + 'static,
    ) -> (Self, Arc<Mutex<Vec<String>>>) {
        let found = Arc::new(Mutex::new(Vec::new()));
        let probe = Self {
            look: Arc::new(look),
            found: found.clone(),
        };
        (probe, found)
    }
}

impl Plugin for Probe {
    fn build(&self, sim: &mut Engine) -> Result<(), Error> {
        let (look, found) = (self.look.clone(), self.found.clone());
        sim.system_in(
            Limit::Propose,
            move |clock: Res<LevelClock>, topology: Res<Topology>| {
                if let Some(wrong) = look(&clock, &topology) {
                    found.lock().expect("the list is whole").push(wrong);
                }
            },
        );
        Ok(())
    }
}
