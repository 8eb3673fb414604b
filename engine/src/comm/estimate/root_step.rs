//! Steps, regrids and additional communication of a root step.

use bevy_ecs::prelude::*;
use std::sync::Arc;

/// Shape of a hierarchy, passed to traffic estimators.
#[derive(Clone, Copy, Debug)]
pub struct HierarchyShape<'a> {
    /// Number of patches of each level, of all ranks.
    pub patches: &'a [usize],
    /// Number of one number of steps per level in a root step, starting with 1.
    pub steps: &'a [u64],
}

/// Communication of a level in a root step in addition to halo exchanges of fields.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExtraTraffic {
    /// Number of exchanges of one halo layer with one number per cell.
    pub exchanges: f64,
    /// Bytes that pass through host memory, summed over ranks.
    pub host_bytes: f64,
}

type TrafficEstimator = Arc<dyn Fn(&HierarchyShape) -> Vec<ExtraTraffic> + Send + Sync>;

/// Estimators of additional traffic that plugins have registered.
#[derive(Resource, Clone, Default)]
pub struct TrafficEstimators(Vec<TrafficEstimator>);

impl TrafficEstimators {
    /// Adds an estimator, which returns the additional traffic by level.
    pub(crate) fn add(
        &mut self,
        estimator: impl Fn(&HierarchyShape) -> Vec<ExtraTraffic> + Send + Sync + 'static,
    ) {
        self.0.push(Arc::new(estimator));
    }
}

/// Activities of a root step, by level.
#[derive(Clone, Debug, PartialEq)]
pub struct RootStep {
    /// Number of steps.
    pub steps: Vec<u64>,
    /// Number of regrids of the level, which change its children.
    pub regrids: Vec<f64>,
    /// Additional traffic for which steps wait.
    pub waits: Vec<ExtraTraffic>,
}

impl RootStep {
    /// Creates a root step in which each level takes twice as many steps as the coarser one, without regrids and
    /// additional traffic.
    #[must_use]
    pub fn with_halved_steps(levels: usize) -> Self {
        Self {
            steps: (0..levels).map(|level| 1 << level).collect(),
            regrids: vec![0.0; levels],
            waits: vec![ExtraTraffic::default(); levels],
        }
    }

    /// Creates the root step of a run in `world` with the given `patches` and `steps` of each level.
    ///
    /// Level `n` is regridded every `intervals[n]` steps.
    ///
    /// # Panics
    /// `patches` and `steps` have different lengths.
    #[must_use]
    pub fn of(world: &World, patches: &[usize], steps: Vec<u64>, intervals: &[u32]) -> Self {
        assert_eq!(patches.len(), steps.len(), "one number of steps per level");
        let regrids = steps.iter().enumerate().map(|(level, &steps)| {
            let interval = intervals.get(level);
            interval.map_or(0.0, |&every| steps as f64 / f64::from(every.max(1)))
        });
        let regrids = regrids.collect();
        let shape = HierarchyShape {
            patches,
            steps: &steps,
        };
        let mut waits = vec![ExtraTraffic::default(); steps.len()];
        for estimator in world
            .get_resource::<TrafficEstimators>()
            .iter()
            .flat_map(|all| &all.0)
        {
            for (sum, own) in waits.iter_mut().zip(estimator(&shape)) {
                sum.exchanges += own.exchanges;
                sum.host_bytes += own.host_bytes;
            }
        }
        Self {
            steps,
            regrids,
            waits,
        }
    }
}
