//! The vocabulary that plugins share: which fields there are, and how to read a cell of them.

use bevy_ecs::prelude::*;
use nestar_engine::field::Field;

/// Gas: density, momentum x y z, total energy, then the passive scalars (mass densities), per unit volume.
pub struct Gas;

impl Field for Gas {
    const NAME: &'static str = "gas";
}

/// Components of [`Gas`] before the scalars.
pub const GAS_COMPONENTS: usize = 5;

/// What is known of the gas beyond its values.
#[derive(Resource, Clone, Debug, PartialEq)]
pub struct GasModel {
    /// Ratio of specific heats.
    pub gamma: f64,
    /// Names of the passive scalars, in the order of their components.
    pub scalars: Vec<String>,
}
