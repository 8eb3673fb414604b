//! What happens in a root step beside the work in patches.

use bevy_ecs::prelude::*;
use std::sync::Arc;

/// A hierarchy as those see it who foretell their exchanges.
#[derive(Clone, Copy, Debug)]
pub struct HierarchyShape<'a> {
    /// Patches of each level, of all ranks.
    pub patches: &'a [usize],
    /// Steps of each level in a root step, ascending from 1.
    pub steps: &'a [u64],
}

/// What steps of a level wait for in a root step, beside the halos of the fields' states.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExtraTraffic {
    /// Exchanges of a layer of one number of each cell.
    pub exchanges: f64,
    /// Bytes that pass through the memory of hosts, of all ranks together.
    pub host_bytes: f64,
}

type TrafficEstimator = Arc<dyn Fn(&HierarchyShape) -> Vec<ExtraTraffic> + Send + Sync>;

/// What plugins foretell.
#[derive(Resource, Clone, Default)]
pub struct TrafficEstimators(Vec<TrafficEstimator>);

impl TrafficEstimators {
    /// Adds what a plugin foretells, by level.
    pub(crate) fn add(
        &mut self,
        estimator: impl Fn(&HierarchyShape) -> Vec<ExtraTraffic> + Send + Sync + 'static,
    ) {
        self.0.push(Arc::new(estimator));
    }
}

/// What happens in a root step, by level.
#[derive(Clone, Debug, PartialEq)]
pub struct RootStep {
    /// Steps.
    pub steps: Vec<u64>,
    /// Regrids of the level, each of which changes its children.
    pub regrids: Vec<f64>,
    /// What steps wait for.
    pub waits: Vec<ExtraTraffic>,
}

impl RootStep {
    /// Each level takes twice as many steps as the coarser one, and nothing else happens.
    #[must_use]
    pub fn with_halved_steps(levels: usize) -> Self {
        Self {
            steps: (0..levels).map(|level| 1 << level).collect(),
            regrids: vec![0.0; levels],
            waits: vec![ExtraTraffic::default(); levels],
        }
    }

    /// In a run as `world` would be, with so many `patches` and `steps` of each level, of which the levels that may be refined are regridded
    /// every so many steps: `intervals`.
    ///
    /// # Panics
    /// If there are not as many steps as levels.
    #[must_use]
    pub fn of(world: &World, patches: &[usize], steps: Vec<u64>, intervals: &[u32]) -> Self {
        assert_eq!(patches.len(), steps.len(), "steps of each level");
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
