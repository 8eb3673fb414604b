//! Bodies one by one.

use super::{Made, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A body.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// Where it is.
    #[schemars(extend("unit" = "length"))]
    pub position: [f64; 3],
    /// How fast it moves.
    #[serde(default)]
    #[schemars(extend("unit" = "length/time"))]
    pub velocity: [f64; 3],
    /// Its mass; of no meaning where the species says the mass of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minimum" = 0.0, "unit" = "mass"))]
    pub mass: Option<f64>,
}

impl Source for Vec<Body> {
    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn make(&self, id: u64) -> Result<Option<Made>, String> {
        let Body {
            position,
            velocity,
            mass,
        } = self[id as usize];
        Ok(Some(Made {
            position,
            velocity,
            mass: mass.unwrap_or_default(),
            scalars: Vec::new(),
        }))
    }
}
