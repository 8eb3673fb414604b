//! What moves the particles of a species.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What moves particles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MovedBy {
    /// They fall freely.
    #[default]
    Fall,
    /// Gas takes them along with its velocity, and nothing else: massless tracers of its paths.
    Gas,
    /// They jump from cell to cell by chance, as often as the mass of the gas goes that way: massless tracers of its mass, as many in each
    /// part of it at any time, up to the scatter of counts. Where they are in their cells means nothing.
    MassFluxes,
}
