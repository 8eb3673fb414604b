//! The parts that a patch's [`Cost`] is the sum of, where several plugins measure the work of one.

use super::obeyed::Cost;
use super::patch::CELLS;
use super::topology::Topology;
use bevy_ecs::prelude::*;
use bevy_ecs::system::SystemParam;

/// Parts that there may be.
const MOST: usize = 8;

/// One plugin's part of the work of patches: what `Engine::register_cost_part` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostPart(usize);

/// How many parts plugins have.
#[derive(Resource, Clone, Copy, Debug, Default)]
pub(crate) struct CostParts(usize);

impl CostParts {
    /// Another part.
    ///
    /// # Panics
    /// With more than eight.
    pub fn next(&mut self) -> CostPart {
        assert!(
            self.0 < MOST,
            "more than {MOST} plugins measure the work of patches"
        );
        self.0 += 1;
        CostPart(self.0 - 1)
    }
}

/// The parts of a patch's cost that were measured since it came to this rank.
#[derive(Component, Clone, Copy, Debug, Default)]
pub(crate) struct PartCosts([f64; MOST]);

impl PartCosts {
    fn cost(&self) -> Cost {
        Cost(1.0 + self.0.iter().sum::<f64>())
    }
}

/// The costs of patches, as a system's parameter: each plugin sets its own part, and the cost is 1 plus all parts.
#[derive(SystemParam)]
pub struct Costs<'w, 's> {
    topology: Res<'w, Topology>,
    known: Query<'w, 's, (&'static mut Cost, Option<&'static mut PartCosts>)>,
    commands: Commands<'w, 's>,
}

impl Costs<'_, '_> {
    /// Sets a part of the cost of a patch: work of a step in units of that of the patch without any plugin's part. All parts are set
    /// again in every step.
    pub fn set(&mut self, row: u32, part: CostPart, work: f64) {
        let entity = self.topology.entity(row);
        let known = self.known.get_mut(entity);
        // a cost of which no part is known comes from a parent or another rank
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

    /// Sets a part of the costs of a level's `rows` to what was counted in their cells, where a unit in a cell is `weight` times the rest
    /// of the cell's work.
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
        let [first, second] = [all.next(), all.next()];
        let mut parts = PartCosts::default();
        assert_eq!(parts.cost(), Cost(1.0));
        (parts.0[first.0], parts.0[second.0]) = (2.0, 0.5);
        assert_eq!(parts.cost(), Cost(3.5));
        parts.0[first.0] = 0.25;
        assert_eq!(parts.cost(), Cost(1.75));
    }
}
