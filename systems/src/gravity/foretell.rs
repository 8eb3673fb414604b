//! How often the solver exchanges halos, for forecasts.

use super::config::{Coupling, Effort, GravityConfig, RootMethod};
use super::cycle::Sweeps;
use nestar_engine::comm::estimate::{ExtraTraffic, HierarchyShape};
use nestar_kernels::CELLS;

/// Bytes of a number of a transform.
const NUMBER: f64 = 8.0;

/// What decides about it.
#[derive(Clone, Copy)]
pub(super) struct Effects {
    pub effort: Effort,
    /// Whether levels with finer ones have a potential of their own, too.
    pub own: bool,
    pub two_way: bool,
    /// Relaxations where levels meet.
    pub aligned: usize,
    /// Cycles of the root level at each solve, if it takes any.
    pub root: Option<usize>,
    /// Whether the domain is surrounded by itself.
    pub periodic: bool,
}

impl Effects {
    pub fn of(config: &GravityConfig, effort: Effort, own: bool, periodic: bool) -> Self {
        Self {
            effort,
            own,
            two_way: config.coupling == Coupling::TwoWay,
            aligned: config.sweeps_aligned,
            root: (config.root == RootMethod::Multigrid).then_some(config.root_cycles),
            periodic,
        }
    }

    /// By level, what steps wait for in a root step.
    pub fn waits(&self, shape: &HierarchyShape) -> Vec<ExtraTraffic> {
        let wait = |exchanges: usize| ExtraTraffic {
            exchanges: exchanges as f64,
            host_bytes: 0.0,
        };
        let mut waits: Vec<ExtraTraffic> = self.exchanges(shape).into_iter().map(wait).collect();
        if self.root.is_none() {
            // the root level, padded to twice its width where nothing surrounds it, at its step and where levels meet
            let padded = if self.periodic { 1.0 } else { 8.0 };
            let solves = 1.0 + f64::from(u8::from(self.two_way));
            waits[0].host_bytes = solves * padded * NUMBER * (shape.patches[0] * CELLS) as f64;
        }
        waits
    }

    /// By level, exchanges in a root step.
    fn exchanges(&self, shape: &HierarchyShape) -> Vec<usize> {
        let levels = shape.patches.len();
        let mut sums = vec![0; levels];
        // steps of a level at whose end no coarser level stands
        let alone = |level: usize| match level {
            0 => shape.steps[0],
            _ => shape.steps[level] - shape.steps[level - 1],
        };
        for level in 0..levels {
            let Effort { cycles, sweeps } = self.effort;
            let steps = shape.steps[level] as usize;
            let potentials = 1 + usize::from(self.own && self.two_way && level + 1 < levels);
            sums[level] += potentials
                * steps
                * match level {
                    0 => self.root(false),
                    _ => cycles * cycle(sweeps, shape.patches[level]),
                };
            if !self.two_way {
                continue;
            }
            let aligned = alone(level) as usize;
            sums[level] += aligned
                * match level {
                    0 => self.root(true),
                    _ => cycle(self.aligned, shape.patches[level]),
                };
            // relaxed on the way down and up, the residual told twice
            for finer in &mut sums[level + 1..] {
                *finer += aligned * (4 * self.aligned + 4);
            }
        }
        sums
    }

    /// Exchanges of a solve of the root level, `again` for the same matter: an isolated domain takes half of the cycles then.
    fn root(&self, again: bool) -> usize {
        let cycles = match self.root {
            Some(cycles) if again && !self.periodic => cycles.div_ceil(2),
            Some(cycles) => cycles,
            None => 0,
        };
        // one cell a patch is gathered once
        cycles * (beside_lowest(self.aligned) + 1)
    }
}

/// Exchanges of a cycle with so many sweeps on a level of so many patches.
fn cycle(sweeps: usize, patches: usize) -> usize {
    beside_lowest(sweeps) + 2 * Sweeps::of(patches).sweeps
}

/// But for those with one cell a patch: two colours of each sweep before and after on 8^3, 4^3 and 2^3 cells; one each to restrict and to
/// prolong.
fn beside_lowest(sweeps: usize) -> usize {
    3 * 4 * sweeps + 6
}

#[cfg(test)]
mod tests {
    use super::{Effects, Effort};
    use nestar_engine::comm::estimate::HierarchyShape;

    #[test]
    fn cycles_are_counted_level_by_level() {
        let effects = Effects {
            effort: Effort {
                cycles: 1,
                sweeps: 1,
            },
            own: false,
            two_way: true,
            aligned: 2,
            root: None,
            periodic: false,
        };
        let (patches, steps) = (&[64, 64][..], &[1, 2][..]);
        let shape = HierarchyShape { patches, steps };
        // two steps of level 1, one alone by a cycle, one with the root
        let fine = 2 * (12 + 6 + 16) + (24 + 6 + 16) + 12;
        assert_eq!(effects.exchanges(&shape), [0, fine]);
        let bytes = 2.0 * 8.0 * 8.0 * 64.0 * 512.0;
        assert_eq!(effects.waits(&shape)[0].host_bytes, bytes);
        let one_way = Effects {
            two_way: false,
            root: Some(2),
            ..effects
        };
        assert_eq!(one_way.exchanges(&shape), [2 * 31, 2 * 34]);
        let two_way = Effects {
            two_way: true,
            ..one_way
        };
        // half as many cycles for the same matter
        assert_eq!(two_way.exchanges(&shape)[0], 3 * 31);
    }
}
