//! Stages of a step of a level.

use nestar_engine::data::StageShare;
use nestar_kernels::hydro::Scheme;

/// A stage of a step of a level.
#[derive(Clone, Copy)]
pub(super) struct LevelStage {
    /// Weight of the new state.
    pub weight: f64,
    /// Number and share in the fluxes.
    pub share: StageShare,
}

impl LevelStage {
    /// Returns the stages of a step of `scheme`, with the times of the states that they read as fractions of the step.
    pub fn of(scheme: Scheme) -> impl Iterator<Item = (f64, Self)> {
        let stages = scheme.stages();
        stages.iter().enumerate().map(|(n, stage)| {
            let share = StageShare {
                stage: n,
                stages: stages.len(),
                share: stage.share,
            };
            let weight = stage.weight;
            (stage.time, Self { weight, share })
        })
    }

    /// Returns `true` if the step has several stages.
    pub fn is_one_of_several(&self) -> bool {
        self.share.stages > 1
    }

    /// Returns `true` if it is the first stage of the step.
    pub fn is_first(&self) -> bool {
        self.share.stage == 0
    }

    /// Returns output and earlier mass fluxes among the present and the scratch bank.
    pub fn in_order<T>(&self, [present, scratch]: [T; 2]) -> [T; 2] {
        match self.share.is_tentative() {
            true => [present, scratch],
            false => [scratch, present],
        }
    }
}
