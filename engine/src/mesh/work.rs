//! How work on levels is shared.

/// Work of one or more steps of levels, in units that are the same on all levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelWork {
    /// Of all ranks.
    pub all: u64,
    /// Of the busiest rank of each step.
    pub busiest: u64,
}

impl LevelWork {
    /// Adds the work of another step.
    pub fn add(&mut self, step: Self) {
        self.all += step.all;
        self.busiest += step.busiest;
    }

    /// The work since it was `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            all: self.all - before.all,
            busiest: self.busiest - before.busiest,
        }
    }

    /// What the busiest of `ranks` ranks had above the mean, as a share of it; 0 where there was no work.
    #[must_use]
    pub fn imbalance(self, ranks: usize) -> f64 {
        match self.all {
            0 => 0.0,
            all => (u128::from(self.busiest) * ranks as u128) as f64 / all as f64 - 1.0,
        }
    }
}
