//! What the ranks of a run agree on once a root step: whether to stop, whether a snapshot is due.

use crate::ranks::{Ranks, RanksError, Reduction};

/// What each rank brings before a root step, and what they make of it together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Votes {
    /// The run is asked to stop.
    pub stop: bool,
    /// A snapshot is due by the clock on the wall.
    pub due: bool,
    /// A share of the latest snapshot is not on the disk yet.
    pub unsynced: bool,
    /// Something went wrong.
    pub failed: bool,
}

impl Votes {
    /// What any rank says: one number is reduced. All ranks call this.
    ///
    /// # Errors
    /// Another rank has failed, or the transport has.
    pub fn joined(self, ranks: &Ranks) -> Result<Self, RanksError> {
        let flags = [self.stop, self.due, self.unsynced, self.failed];
        let bits = flags.iter().enumerate();
        let mut bits = [bits.map(|(n, &flag)| u64::from(flag) << n).sum()];
        ranks.communicator().reduce(Reduction::Or, &mut bits)?;
        let flag = |n: u32| bits[0] >> n & 1 == 1;
        Ok(Self {
            stop: flag(0),
            due: flag(1),
            unsynced: flag(2),
            failed: flag(3),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranks::Threads;

    fn on_ranks<T: Send>(size: usize, work: impl Fn(&Ranks) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let work = &work;
            let start = |rank| scope.spawn(move || work(&Ranks::new(rank)));
            let started: Vec<_> = Threads::connect(size).into_iter().map(start).collect();
            started.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    #[test]
    fn a_vote_of_any_rank_counts_for_all() {
        let joined = on_ranks(3, |ranks| {
            let own = Votes {
                stop: ranks.rank() == 1,
                unsynced: ranks.rank() == 2,
                ..Votes::default()
            };
            own.joined(ranks).unwrap()
        });
        let expected = Votes {
            stop: true,
            unsynced: true,
            ..Votes::default()
        };
        assert_eq!(joined, [expected; 3]);
    }
}
