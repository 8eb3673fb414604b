//! Contributions of plugins to the cost of a patch.

use super::Topology;
use super::patch::CELLS;
use super::patch_controls::Cost;
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;

/// Largest number of contributions.
const MOST: usize = 8;

/// Contribution of one plugin to the cost of patches, returned by `Engine::register_cost_part`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostPart(usize);

/// Number of contributions in use.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub struct CostParts(usize);

impl CostParts {
    /// Registers a contribution.
    ///
    /// # Panics
    /// If there are already eight.
    pub fn register(&mut self) -> CostPart {
        assert!(
            self.0 < MOST,
            "more than {MOST} plugins measure the work of patches"
        );
        self.0 += 1;
        CostPart(self.0 - 1)
    }
}

/// Contributions to the cost of a patch measured since it arrived on this rank.
#[derive(Component, Clone, Copy, Debug, Default)]
pub(crate) struct PartCosts([f64; MOST]);

impl PartCosts {
    fn cost(&self) -> Cost {
        Cost(1.0 + self.0.iter().sum::<f64>())
    }
}

/// System parameter that sets the costs of patches. Each plugin sets its contribution; the cost is 1 plus their sum.
#[derive(SystemParam)]
pub struct Costs<'w, 's> {
    topology: Res<'w, Topology>,
    known: Query<'w, 's, (&'static mut Cost, Option<&'static mut PartCosts>)>,
    commands: Commands<'w, 's>,
}

impl Costs<'_, '_> {
    /// Sets the contribution `part` to the cost of a patch: work per step relative to its basic work.
    /// Each plugin repeats this in every step.
    pub fn set(&mut self, row: u32, part: CostPart, work: f64) {
        let entity = self.topology.entity(row);
        let known = self.known.get_mut(entity);
        // a cost without contributions comes from a parent or another rank
        let has_cost = known.is_ok();
        if let Ok((mut cost, Some(mut parts))) = known {
            parts.0[part.0] = work;
            *cost = parts.cost();
        } else if has_cost || work > 0.0 {
            let mut parts = PartCosts::default();
            parts.0[part.0] = work;
            self.commands.entity(entity).insert((parts.cost(), parts));
        }
    }

    /// Sets a contribution for `rows` from counts of work in their cells. One unit in a cell costs `weight` times the
    /// other work of the cell.
    pub fn weigh(&mut self, rows: &[u32], part: CostPart, counts: &[u32], weight: f64) {
        for (&row, &count) in rows.iter().zip(counts) {
            self.set(row, part, weight * f64::from(count) / CELLS as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, CostParts, PartCosts};

    #[test]
    fn a_cost_is_the_sum_of_its_parts() {
        let mut all = CostParts::default();
        let [first, second] = [all.register(), all.register()];
        let mut parts = PartCosts::default();
        assert_eq!(parts.cost(), Cost(1.0));
        (parts.0[first.0], parts.0[second.0]) = (2.0, 0.5);
        assert_eq!(parts.cost(), Cost(3.5));
        parts.0[first.0] = 0.25;
        assert_eq!(parts.cost(), Cost(1.75));
    }
}
