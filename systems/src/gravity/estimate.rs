//! Estimates the number of halo exchanges of the solver.

use super::config::{Coupling, CycleSettings, GravityConfig, RootMethod};
use super::root_level::{SWEEPS, expected_cycles};
use super::surroundings::Surroundings;
use super::v_cycle::CoarsestSweeps;
use nestar_engine::comm::estimate::{ExtraTraffic, HierarchyShape};
use nestar_engine::mesh::Domain;
use nestar_kernels::CELLS;

/// Bytes per number of a transform.
const NUMBER: f64 = 8.0;
/// Typical residual of the root level at the start of a solve in its step, relative to the right-hand side.
const STEP_RESIDUAL: f64 = 0.02;
/// The same when it is synchronised with finer levels.
const ALIGNED_RESIDUAL: f64 = 0.01;

/// Settings that determine the number of exchanges.
#[derive(Clone, Copy)]
pub(super) struct ExchangeEstimate {
    pub cycle_settings: CycleSettings,
    /// `true` if levels with finer ones also solve for their own potential.
    pub own: bool,
    /// `true` if levels with coarser or finer ones also solve for the potentials of pairs.
    pub pairs: bool,
    pub two_way: bool,
    /// Relaxation sweeps at synchronisation points.
    pub aligned: usize,
    /// Cells of a root level that is solved by cycles; `None`: Fourier transforms.
    pub root: Option<[i32; 3]>,
    /// Cells of the box of transforms, in units of those of the domain.
    pub box_size: f64,
}

impl ExchangeEstimate {
    pub fn of(
        config: &GravityConfig,
        cycle_settings: CycleSettings,
        own: bool,
        pairs: bool,
        domain: &Domain,
        surroundings: Surroundings,
    ) -> Self {
        Self {
            cycle_settings,
            own,
            pairs,
            two_way: config.coupling == Coupling::TwoWay,
            aligned: config.sweeps_aligned,
            root: (config.root == RootMethod::Multigrid).then_some(domain.cells(0)),
            box_size: surroundings.box_size(),
        }
    }

    /// Returns, by level, what a root step waits for.
    pub fn waits(&self, shape: &HierarchyShape) -> Vec<ExtraTraffic> {
        let wait = |exchanges: usize| ExtraTraffic {
            exchanges: exchanges as f64,
            host_bytes: 0.0,
        };
        let mut waits: Vec<ExtraTraffic> = self.exchanges(shape).into_iter().map(wait).collect();
        if self.root.is_none() {
            // the root level with padding and mirror images, in its step and at synchronisation
            let has_finer = shape.patches.len() > 1;
            let aligned = f64::from(u8::from(self.two_way && has_finer));
            let own = if self.own { aligned } else { 0.0 };
            let outer = if has_finer && self.pairs { 2.0 } else { 0.0 };
            let solves = 1.0 + aligned + own + outer;
            waits[0].host_bytes =
                solves * self.box_size * NUMBER * (shape.patches[0] * CELLS) as f64;
        }
        waits
    }

    /// Returns the number of exchanges by level in a root step.
    fn exchanges(&self, shape: &HierarchyShape) -> Vec<usize> {
        let levels = shape.patches.len();
        let mut sums = vec![0; levels];
        // steps of a level at whose end it is not synchronised with a coarser one
        let alone = |level: usize| match level {
            0 => shape.steps[0],
            _ => shape.steps[level] - shape.steps[level - 1],
        };
        for level in 0..levels {
            let CycleSettings { cycles, sweeps } = self.cycle_settings;
            let steps = shape.steps[level] as usize;
            let has_finer = level + 1 < levels;
            let patches = shape.patches[level];
            let in_step = |cycles: usize| match level {
                0 => self.root(STEP_RESIDUAL),
                _ => cycles * cycle(sweeps, patches),
            };
            let synchronised = match level {
                0 => self.root(ALIGNED_RESIDUAL),
                _ => cycle(self.aligned, patches),
            };
            sums[level] += steps * in_step(cycles);
            if self.own && self.two_way && has_finer {
                sums[level] += steps * synchronised;
            }
            if self.pairs && has_finer {
                sums[level] +=
                    steps * (in_step(self.cycle_settings.for_outer_potential()) + synchronised);
            }
            if self.pairs && level > 0 {
                sums[level] += steps * in_step(self.cycle_settings.for_inner_potential());
            }
            if !self.two_way {
                continue;
            }
            let aligned = alone(level) as usize;
            if levels > 1 {
                sums[level] += aligned * synchronised;
            }
            // relaxed on the way down and up; the residual is restricted twice
            for finer in &mut sums[level + 1..] {
                *finer += aligned * (4 * self.aligned + 4);
            }
        }
        sums
    }

    /// Returns the number of exchanges of a root solve, in a step or at synchronisation.
    fn root(&self, residual: f64) -> usize {
        let cycles = self
            .root
            .map_or(0, |cells| expected_cycles(residual, cells));
        // one cell per patch is gathered once, and the residual is measured
        cycles * (exchanges_above_coarsest(SWEEPS) + 2)
    }
}

/// Returns the number of exchanges of a cycle on a level.
fn cycle(sweeps: usize, patches: usize) -> usize {
    exchanges_above_coarsest(sweeps) + 2 * CoarsestSweeps::of(patches).sweeps
}

/// Returns the number of exchanges of a cycle without the grid of one cell per patch. On each of the grids of 8^3, 4^3
/// and 2^3 cells there is one for each colour of each sweep, and one each for restriction and prolongation.
fn exchanges_above_coarsest(sweeps: usize) -> usize {
    3 * 4 * sweeps + 6
}

#[cfg(test)]
mod tests {
    use super::{CycleSettings, ExchangeEstimate};
    use nestar_engine::comm::estimate::HierarchyShape;

    #[test]
    fn cycles_are_counted_level_by_level() {
        let effects = ExchangeEstimate {
            cycle_settings: CycleSettings {
                cycles: 1,
                sweeps: 1,
            },
            own: false,
            pairs: false,
            two_way: true,
            aligned: 2,
            root: None,
            box_size: 8.0,
        };
        let (patches, steps) = (&[64, 64][..], &[1, 2][..]);
        let shape = HierarchyShape { patches, steps };
        // two steps of level 1, one synchronisation by itself, one with the root level
        let fine = 2 * (12 + 6 + 10) + (24 + 6 + 10) + 12;
        assert_eq!(effects.exchanges(&shape), [0, fine]);
        let bytes = 8.0 * 8.0 * 64.0 * 512.0;
        assert_eq!(effects.waits(&shape)[0].host_bytes, 2.0 * bytes);
        let (patches, steps) = (&[64][..], &[1][..]);
        let single = HierarchyShape { patches, steps };
        assert_eq!(effects.waits(&single)[0].host_bytes, bytes);
        let one_way = ExchangeEstimate {
            two_way: false,
            root: Some([32; 3]),
            ..effects
        };
        // 0.02 * 0.12^2 and 0.01 * 0.12^2 are below 0.01 / 32
        assert_eq!(one_way.exchanges(&shape), [2 * 20, 2 * 28]);
        let two_way = ExchangeEstimate {
            two_way: true,
            ..one_way
        };
        assert_eq!(two_way.exchanges(&shape)[0], (2 + 2) * 20);
    }
}
