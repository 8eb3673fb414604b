//! Forces and flows that move the particles of a species.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What moves particles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MovedBy {
    /// Gravity: collisionless particles.
    #[default]
    Fall,
    /// The velocity of the gas: massless tracers that follow streamlines.
    Gas,
    /// The mass fluxes of the gas: massless Monte Carlo tracers, which jump between cells with the mass flux.
    /// They sample the gas mass at all times, up to Poisson noise. Positions within a cell have no meaning.
    MassFluxes,
}
