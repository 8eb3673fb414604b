//! The vocabulary that plugins share: which fields there are, and how to read a cell of them.

pub mod quantities;

use bevy_ecs::prelude::*;
use nestar_engine::field::Field;
use nestar_kernels::mesh::ShareSets;

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
    /// Scalars whose fractions sum to 1 in every cell, by component.
    pub sets: ShareSets,
}

/// How far the fractions of a set may be from 1 in sum where they are given.
pub const SET_TOLERANCE: f64 = 1e-6;

impl GasModel {
    /// The scalars of each set, as numbers.
    pub fn scalar_sets(&self) -> impl Iterator<Item = impl Iterator<Item = usize> + Clone + '_> {
        let scalars = |set| self.sets.members(set).map(|c| c - GAS_COMPONENTS);
        (1..=self.sets.count()).map(scalars)
    }

    /// What is wrong with the fractions of sets at a point, `fraction` of each scalar; their sum may be off by `tolerance`.
    #[must_use]
    pub fn wrong_set(&self, tolerance: f64, fraction: impl Fn(usize) -> f64) -> Option<String> {
        self.scalar_sets().find_map(|scalars| {
            let sum: f64 = scalars.clone().map(&fraction).sum();
            let sound = (sum - 1.0).abs() <= tolerance;
            if sound && scalars.clone().all(|n| fraction(n) >= 0.0) {
                return None;
            }
            let each: Vec<String> = scalars
                .map(|n| format!("{} = {}", self.scalars[n], fraction(n)))
                .collect();
            Some(format!(
                "the fractions of a set are {}, in sum {sum}; they must not be negative and sum to 1",
                each.join(", ")
            ))
        })
    }
}
