//! What happens in a root step beside the work in patches.

use bevy_ecs::prelude::*;
use std::sync::Arc;

/// A hierarchy as those see it who foretell their exchanges.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// Patches of each level, of all ranks.
    pub patches: &'a [usize],
    /// Steps of each level in a root step, ascending from 1.
    pub steps: &'a [u64],
}

type Foretell = Arc<dyn Fn(&Shape) -> Vec<f64> + Send + Sync>;

/// The exchanges that plugins foretell beside those of the fields' states.
#[derive(Resource, Clone, Default)]
pub struct Foretold(Vec<Foretell>);

impl Foretold {
    /// Adds what a plugin foretells: by level, how often the ranks exchange a layer of one number of each cell in a root step.
    pub(crate) fn add(&mut self, foretell: impl Fn(&Shape) -> Vec<f64> + Send + Sync + 'static) {
        self.0.push(Arc::new(foretell));
    }
}

/// What happens in a root step, by level.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Steps.
    pub steps: Vec<u64>,
    /// Regrids of the level, each of which changes its children.
    pub regrids: Vec<f64>,
    /// Exchanges of a layer of one number of each cell, for which steps wait.
    pub exchanged: Vec<f64>,
}

impl Course {
    /// Each level takes twice as many steps as the coarser one, and nothing else happens.
    #[must_use]
    pub fn halved(levels: usize) -> Self {
        Self {
            steps: (0..levels).map(|level| 1 << level).collect(),
            regrids: vec![0.0; levels],
            exchanged: vec![0.0; levels],
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
        let shape = Shape {
            patches,
            steps: &steps,
        };
        let mut exchanged = vec![0.0; steps.len()];
        for foretell in world
            .get_resource::<Foretold>()
            .iter()
            .flat_map(|all| &all.0)
        {
            let told = foretell(&shape);
            exchanged
                .iter_mut()
                .zip(told)
                .for_each(|(sum, own)| *sum += own);
        }
        Self {
            steps,
            regrids,
            exchanged,
        }
    }
}
